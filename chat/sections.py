"""The prompt sections that chat itself knows: who speaks, what was said, what is asked."""

from chat import tokens, window
from chat.models import Message, Role
from chat.prompt import Item, Said, Section, Turn, share

DEFAULT_PERSONA = (
    "You are the assistant of the project “{project}”. Be helpful, accurate and brief. "
    "If you do not know something, say so."
)


@share(ceiling=0.25)
def persona(turn: Turn) -> Section:
    """Who the assistant is: the project's instructions, or a default."""
    project = turn.project
    text = project.instructions.strip() or DEFAULT_PERSONA.format(project=project.name)
    return Section("persona", (Said("system", tokens.cut(text, max(turn.budget, 0))),))


@share(floor=0.3)
def history(turn: Turn) -> Section | None:
    """The window: the latest messages before the one that is asked now."""
    spoken = [message for message in turn.path[:-1] if _counts(message)]
    shown = window.fit(spoken, turn.session.window_limit, turn.budget)
    if not shown:
        return None
    named = _several_people(turn.path)
    return Section(
        "history",
        tuple(_said(message, named) for message in shown),
        tuple(
            Item("message", message.pk, message.version, message.tokens, message.speaker)
            for message in shown
        ),
    )


@share()
def message(turn: Turn) -> Section | None:
    """The message that is answered; one longer than the whole context is cut at its end."""
    asked = turn.reply_to
    if asked is None:
        return None
    said = _said(asked, _several_people(turn.path))
    if said.tokens > turn.budget:
        said = Said(said.role, tokens.cut(said.text, turn.budget - window.PER_MESSAGE))
    return Section(
        "message",
        (said,),
        (Item("message", asked.pk, asked.version, asked.tokens, asked.speaker),),
    )


def _counts(message: Message) -> bool:
    return bool(message.is_final and message.text and message.role in (Role.USER, Role.ASSISTANT))


def _several_people(path: list[Message]) -> bool:
    return len({message.speaker for message in path if message.role == Role.USER}) > 1


def _said(message: Message, named: bool) -> Said:
    """The message as the model reads it, with its speaker where several people talk."""
    text = (
        f"{message.speaker}: {message.text}"
        if named and message.role == Role.USER
        else message.text
    )
    return Said(message.role, text)
