"""The prompt of the next reply, shown to users before they send a message."""

from dataclasses import replace

from chat.models import Message, Role, Session
from chat.prompt import builder, tools
from chat.prompt.builder import Turn
from chat.prompt.types import Prompt
from chat.providers.limits import Payer
from projects.core import token_counting


def preview(session: Session, text: str, author, payer: Payer = Payer()) -> Prompt:
    """Return the prompt of the next reply if `author` posted `text`. No message is stored. Searches
    for the prompt are booked on `payer`.

    Without a text, return the prompt for an unanswered user message. If there is none, return the
    beginning of the prompt for the next message.
    """
    head = None
    if session.head_id is not None:
        head = Message.objects.get(project=session.project_id, pk=session.head_id)
    waits = head is not None and head.role == Role.USER and head.deleted_at is None
    if not text and waits:
        return _build(Turn(session, head, payer=payer))
    message = Message(
        id=None,
        session=session,
        seq=session.last_seq + 1,
        parent=head,
        role=Role.USER,
        author=author,
        text=text,
        tokens=token_counting.count(text),
    )
    prompt = _build(Turn(session, message, payer=payer))
    return prompt if text else replace(prompt, sections=prompt.sections[:-1])


def _build(turn: Turn) -> Prompt:
    return builder.build(turn, tools.count_tokens(tools.tools_for(turn)))
