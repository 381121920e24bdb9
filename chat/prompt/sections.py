"""The prompt sections of the chat: persona, system text of an API client, history and message.

`CHAT_PROMPT_SECTIONS` in `config/settings/models.py` lists all sections in order.
"""

from collections.abc import Sequence
from dataclasses import replace
from uuid import UUID

from django.utils import timezone
from django.utils.translation import gettext_noop as _

from chat import providers
from chat.models import Message, Role, display_name
from chat.models.messages import is_emoji
from chat.prompt import quoting
from chat.prompt.builder import Turn
from chat.prompt.history import (
    MAX_IMAGES,
    HistoryMessage,
    choose_images,
    drop_unpaired_calls,
    fit,
    is_promptable,
    without_calls,
)
from chat.prompt.types import (
    MESSAGE_OVERHEAD_TOKENS,
    PromptItem,
    PromptMessage,
    PromptSection,
    share,
)
from projects import persona_template
from projects.core import token_counting

DEFAULT_PERSONA = (
    "You are the assistant of the project “{project}”. Be helpful, accurate and brief. "
    "If you do not know something, say so."
)
DELETED = _("The message was deleted before the model answered it.")
TOO_LONG = "The question and the answers of tools have {} tokens, and the limit here is {}."
# The maximum number of member names that the instructions can list.
MAX_MEMBERS = 50
# The maximum length of a title or name in the instructions.
MAX_VALUE_CHARS = 100
# The share of a section's budget for images. The rest is for text.
IMAGES_SHARE = 0.5
# The maximum share of the prompt's budget for the system text of an API client.
CLIENT_SYSTEM_SHARE = 0.5
# The maximum share of the budget for a message without tool results. The rest is for the other
# sections, above all for the instructions.
MESSAGE_SHARE = 0.9


@share(floor=0.1, ceiling=0.25)
def persona(turn: Turn) -> PromptSection:
    """Return the project's instructions, or a default persona.

    Raises ProviderError when the instructions cannot be rendered.
    """
    project = turn.project
    text = DEFAULT_PERSONA.format(project=project.name)
    if project.instructions.strip():
        try:
            text = persona_template.render(project.instructions, _instruction_values(turn))
        except persona_template.PersonaTemplateError as error:
            reason = f"The project's instructions cannot be used. {error}"
            raise providers.ProviderError(reason) from error
    return _system_section("persona", text.strip(), turn.budget)


def _system_section(name: str, text: str, budget: int) -> PromptSection:
    text = token_counting.truncate(text, max(budget - MESSAGE_OVERHEAD_TOKENS, 0))
    return PromptSection(name, (PromptMessage("system", text),))


def _instruction_values(turn: Turn) -> dict[str, object]:
    """Return the variables for the instructions, in the same form as `persona_template.EXAMPLE`."""
    project = turn.project
    now = timezone.now().astimezone(project.zone)
    members = project.memberships.select_related("user")[:MAX_MEMBERS]
    # The name of the account, because API clients can choose any `author_name`.
    author = turn.reply_to.author if turn.reply_to else None
    return {
        "project": {"name": project.name},
        "session": {"title": _quote_value(turn.session.label)},
        "user": {"name": _quote_value(display_name(author)) if author else ""},
        "members": [_quote_value(display_name(membership.user)) for membership in members],
        "date": f"{now:%Y-%m-%d}",
        "time": f"{now:%H:%M}",
        "context": project.custom_context,
    }


def _quote_value(text: str) -> str:
    """Quote and shorten a name or title that a member chose, for the instructions."""
    return quoting.quote_on_one_line(text)[:MAX_VALUE_CHARS]


@share(ceiling=CLIENT_SYSTEM_SHARE)
def program(turn: Turn) -> PromptSection | None:
    """Return the system text of the API client. It comes after the persona, blocks, facts and
    memory bank.
    """
    return _system_section("program", turn.system, turn.budget) if turn.system else None


@share(floor=0.3)
def history(turn: Turn) -> PromptSection | None:
    """Return the window: the latest messages before the current exchange."""
    start = _exchange_start(turn)
    current = turn.path[start:]
    sources = [message for message in turn.path[:start] if _is_in_prompt(turn, message)]
    reachable = _within_reach(sources, turn.budget)
    current_images = sum(len(turn.images.get(message.pk, ())) for message in current)
    messages = _prompt_messages(turn, reachable, max(MAX_IMAGES - current_images, 0))
    # The limit also counts the current exchange.
    limit = max(turn.window_limit - len(current), 0)
    window = drop_unpaired_calls(fit(messages, limit, turn.budget))
    return PromptSection("history", tuple(window), _items(window)) if window else None


def _within_reach(
    sources: Sequence[HistoryMessage | Message], budget: int
) -> Sequence[HistoryMessage | Message]:
    """Return the latest messages, with about twice the tokens of the budget. Some of them may be
    left out before the budget is applied.
    """
    tokens = 0
    for index in range(len(sources) - 1, -1, -1):
        tokens += sources[index].tokens
        if tokens > 2 * budget:
            return sources[index:]
    return sources


@share()
def message(turn: Turn) -> PromptSection | None:
    """Return the message to answer, or the last user message with the tool calls and results that
    follow it.

    A single message that is longer than MESSAGE_SHARE of the budget is cut at its end. A message
    with tool calls or results is not cut: if they are together longer than the whole budget,
    ProviderError is raised. ProviderError is also raised if the chat has been deleted or the
    message is not visible (`Turn.is_visible`).
    """
    if turn.reply_to is None:
        return None
    current = turn.path[_exchange_start(turn) :]
    if turn.session.deleted_at is not None or not turn.is_visible(current[-1]):
        raise providers.ProviderError(DELETED, status=409, code="message_deleted")
    sources = [
        message for message in current if message is current[-1] or _is_in_prompt(turn, message)
    ]
    messages = drop_unpaired_calls(_prompt_messages(turn, sources, MAX_IMAGES))
    size = sum(message.tokens for message in messages)
    if len(messages) > 1 and size > turn.budget:
        reason = TOO_LONG.format(size, turn.budget)
        raise providers.ProviderError(reason, status=400, code="context_length_exceeded")
    limit = int(turn.budget * MESSAGE_SHARE)
    if len(messages) == 1 and size > limit:
        room = limit - size + sum(token_counting.count(message.text) for message in messages)
        messages = [
            replace(message, text=token_counting.truncate(message.text, room), text_tokens=None)
            for message in messages
        ]
    return PromptSection("message", tuple(messages), _items(messages))


def _exchange_start(turn: Turn) -> int:
    """Return the index of the last user message on the path."""
    indexes = (index for index, message in enumerate(turn.path) if message.role == Role.USER)
    return max(indexes, default=0)


def _prompt_messages(
    turn: Turn, sources: Sequence[HistoryMessage | Message], image_limit: int
) -> list[PromptMessage]:
    """Return the messages. The newest images are included; placeholders replace the others."""
    shown_ids = _images_to_show(turn, sources, image_limit)
    names = {message.speaker for message in turn.path if message.role == Role.USER}
    labels = {quoting.label_of(name) for name in names} if len(names) > 1 else None
    messages = []
    for source in sources:
        images = turn.images.get(source.pk, ())
        placeholders = (image.placeholder for image in images if image.id not in shown_ids)
        text = "\n".join(filter(None, [_text(turn, source, labels), *placeholders]))
        messages.append(
            PromptMessage(
                source.role,
                text,
                tuple(image for image in images if image.id in shown_ids),
                source.tokens if text == source.text else None,
                source.calls,
                source.tool_call_id,
                source,
            )
        )
    has_calls = any(message.calls for message in messages)
    if has_calls and not providers.supports_tools(turn.model):
        return without_calls(messages)
    return messages


def _images_to_show(
    turn: Turn, sources: Sequence[HistoryMessage | Message], limit: int
) -> set[UUID]:
    newest_first = [
        image for source in reversed(sources) for image in reversed(turn.images.get(source.pk, ()))
    ]
    if not newest_first or not providers.supports_images(turn.model):
        return set()
    return choose_images(newest_first, int(turn.budget * IMAGES_SHARE), limit)


def _items(messages: Sequence[PromptMessage]) -> tuple[PromptItem, ...]:
    items = []
    for message in messages:
        row = message.source
        items.append(PromptItem("message", row.pk, row.version, row.tokens, row.speaker))
        items += [
            PromptItem("image", image.id, 1, image.tokens, image.description)
            for image in message.images
        ]
    return tuple(items)


def _is_in_prompt(turn: Turn, message: HistoryMessage | Message) -> bool:
    has_content = message.text or message.calls or message.tool_call_id or message.pk in turn.images
    promptable = is_promptable(message.role, message.tool_call_id)
    return bool(message.is_final and has_content and turn.is_visible(message) and promptable)


def _text(turn: Turn, message: HistoryMessage | Message, labels: set[str] | None) -> str:
    """Return the text of a message with the speaker's name, the time of deletion and reactions.

    Names are added if several people write: `labels` are then the labels of all of them. Lines that
    look like a message of another speaker are quoted. Only prompts of projects with `keep_deleted`
    contain deleted messages.
    """
    text = message.text
    if labels is not None and message.role == Role.USER:
        speaker = quoting.quote_on_one_line(message.speaker)
        text = f"{speaker}: {quoting.quote_labels(text, labels)}"
    if message.deleted_at is not None:
        at = message.deleted_at.astimezone(turn.project.zone)
        text = f"[deleted {at:%Y-%m-%d %H:%M}] {text}"
    # Skip reactions that are no emoji, which earlier versions of Strata accepted: a model could
    # read them as instructions.
    reactions = turn.reactions.get(message.pk, {}).items()
    tag = " ".join(f"{emoji}{count}" for emoji, count in sorted(reactions) if is_emoji(emoji))
    if tag:
        text = f"{text}\n[reactions: {tag}]"
    return text
