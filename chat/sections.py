"""The prompt sections that chat itself knows: who speaks, what was said, what is asked."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from uuid import UUID

from django.utils import timezone

from chat import providers, sight, tokens, tooling, window
from chat.models import Message, Role, name_of
from chat.prompt import Item, Said, Section, Turn, share
from chat.sight import Image
from chat.spoken import Spoken, may_be_told
from chat.tooling import ToolCall
from projects import instructions

DEFAULT_PERSONA = (
    "You are the assistant of the project “{project}”. Be helpful, accurate and brief. "
    "If you do not know something, say so."
)
TOO_MUCH = (
    "The question and what tools answered to it have {} tokens, and {} is the most that fits here."
)
# Names that the instructions can list.
MOST_MEMBERS = 50
# Of a section's budget: the rest is for words.
SHARE_FOR_IMAGES = 0.5
# Of a prompt's budget, what a program may tell the model itself.
SHARE_FOR_PROGRAM = 0.5


@share(ceiling=0.25)
def persona(turn: Turn) -> Section:
    """Who the assistant is: the project's instructions, or a default.

    Raises ProviderError when the instructions cannot be rendered.
    """
    project = turn.project
    text = DEFAULT_PERSONA.format(project=project.name)
    if project.instructions.strip():
        try:
            text = instructions.render(project.instructions, _circumstances(turn))
        except instructions.Mistake as mistake:
            reason = f"The project's instructions cannot be used. {mistake}"
            raise providers.ProviderError(reason) from mistake
    room = max(turn.budget - window.PER_MESSAGE, 0)
    return Section("persona", (Said("system", tokens.cut(text.strip(), room)),))


def _circumstances(turn: Turn) -> dict[str, object]:
    """What the instructions may speak of, in the shape of `instructions.EXAMPLE`."""
    project = turn.project
    now = timezone.now().astimezone(project.zone)
    members = project.memberships.select_related("user")[:MOST_MEMBERS]
    return {
        "project": {"name": project.name},
        "session": {"title": turn.session.label},
        "user": {"name": turn.reply_to.speaker if turn.reply_to else ""},
        "members": [name_of(membership.user) for membership in members],
        "date": f"{now:%Y-%m-%d}",
        "time": f"{now:%H:%M}",
    }


@share(ceiling=SHARE_FOR_PROGRAM)
def program(turn: Turn) -> Section | None:
    """What the program that asks tells the model itself, beneath the project's own front."""
    if not turn.system:
        return None
    room = max(turn.budget - window.PER_MESSAGE, 0)
    return Section("program", (Said("system", tokens.cut(turn.system, room)),))


@share(floor=0.3)
def history(turn: Turn) -> Section | None:
    """The window: the latest messages before what is answered now."""
    start = _exchange(turn)
    spoken = [message for message in turn.path[:start] if _counts(turn, message)]
    asked_with = sum(len(turn.images.get(one.pk, ())) for one in turn.path[start:])
    heard = _heard(turn, spoken, max(sight.MOST_IMAGES - asked_with, 0))
    # The limit counts what is answered now, too.
    limit = max(turn.window_limit - len(turn.path[start:]), 0)
    shown = tooling.paired(window.fit(heard, limit, turn.budget))
    if not shown:
        return None
    return Section(
        "history",
        tuple(_said(one) for one in shown),
        tuple(item for one in shown for item in _items(one)),
    )


@share()
def message(turn: Turn) -> Section | None:
    """What is answered: a message, or a question with all that tools have told since.

    A message longer than the whole context is cut at its end. Raises ProviderError where the
    answers of tools are.
    """
    if turn.reply_to is None:
        return None
    latest = turn.path[_exchange(turn) :]
    asked = [one for one in latest if one is latest[-1] or _counts(turn, one)]
    heard = tooling.paired(_heard(turn, asked, sight.MOST_IMAGES))
    said = [_said(one) for one in heard]
    size = sum(one.tokens for one in said)
    if size > turn.budget:
        if len(said) > 1:
            reason = TOO_MUCH.format(size, turn.budget)
            raise providers.ProviderError(reason, status=400, code="context_length_exceeded")
        room = turn.budget - size + sum(tokens.count(one.text) for one in said)
        said = [replace(one, text=tokens.cut(one.text, room), counted=None) for one in said]
    return Section("message", tuple(said), tuple(item for one in heard for item in _items(one)))


def _exchange(turn: Turn) -> int:
    """Where on the path that begins which is answered now: what a person said last."""
    path = turn.path
    return max((at for at, one in enumerate(path) if one.role == Role.USER), default=0)


@dataclass(frozen=True)
class _Heard:
    """A message with those of its images that the model is shown, and those it is told of."""

    message: Spoken | Message
    text: str
    shown: tuple[Image, ...]
    told: tuple[Image, ...]
    calls: tuple[ToolCall, ...]
    answers: str

    @property
    def role(self) -> str:
        return self.message.role

    @property
    def tokens(self) -> int:
        as_said = self.text == self.message.text
        words = self.message.tokens if as_said else tokens.count(self.text)
        notes = sum(tokens.count(image.note) + 1 for image in self.told)
        images = sum(image.tokens for image in self.shown)
        return words + notes + images + sum(call.tokens for call in self.calls)


def _heard(turn: Turn, messages: Sequence[Spoken | Message], limit: int) -> list[_Heard]:
    """The messages with their images: the newest are shown, to a model that can see."""
    chosen = _chosen(turn, messages, limit)
    named = _several_people(turn.path)
    heard = []
    for one in messages:
        images = turn.images.get(one.pk, ())
        shown = tuple(image for image in images if image.id in chosen)
        told = tuple(image for image in images if image.id not in chosen)
        text = _text(turn, one, named)
        heard.append(_Heard(one, text, shown, told, one.calls, one.tool_call_id))
    if any(one.calls for one in heard) and not providers.can_call(turn.project.chat_model_name):
        return tooling.without_calls(heard)
    return heard


def _chosen(turn: Turn, messages: Sequence[Spoken | Message], limit: int) -> set[UUID]:
    newest_first = [
        image for one in reversed(messages) for image in reversed(turn.images.get(one.pk, ()))
    ]
    if not newest_first or not providers.can_see(turn.project.chat_model_name):
        return set()
    return sight.choose(newest_first, int(turn.budget * SHARE_FOR_IMAGES), limit)


def _items(heard: _Heard) -> list[Item]:
    message = heard.message
    said = Item("message", message.pk, message.version, message.tokens, message.speaker)
    return [
        said,
        *(Item("image", one.id, 1, one.tokens, one.description) for one in heard.shown),
    ]


def _counts(turn: Turn, message: Spoken | Message) -> bool:
    said = message.text or message.calls or message.tool_call_id or message.pk in turn.images
    stands = message.deleted_at is None or turn.project.keep_deleted
    told = may_be_told(message.role, message.tool_call_id)
    return bool(message.is_final and said and stands and told)


def _several_people(path: Sequence[Spoken | Message]) -> bool:
    return len({message.speaker for message in path if message.role == Role.USER}) > 1


def _text(turn: Turn, message: Spoken | Message, named: bool) -> str:
    """The words as the model reads them: who says them where several people talk, when they were
    deleted where a project keeps that, and how they were received.
    """
    text = message.text
    if named and message.role == Role.USER:
        text = f"{message.speaker}: {text}"
    if message.deleted_at is not None:
        at = message.deleted_at.astimezone(turn.project.zone)
        text = f"[deleted {at:%Y-%m-%d %H:%M}] {text}"
    if given := turn.reactions.get(message.pk):
        tag = " ".join(f"{emoji}{count}" for emoji, count in sorted(given.items()))
        text = f"{text}\n[reactions: {tag}]"
    return text


def _said(heard: _Heard) -> Said:
    notes = (image.note for image in heard.told)
    text = "\n".join(filter(None, [heard.text, *notes]))
    counted = heard.message.tokens if text == heard.message.text else None
    return Said(heard.role, text, heard.shown, counted, heard.calls, heard.answers)
