"""What another program remembered waits for somebody to take it in, each memory by itself."""

import re

from django.utils import timezone

from chat.models import Message, Session
from memory.layers.conversations import Stretch, entry_of
from memory.layers.coverage import CONTRIBUTING, contributes, recount
from memory.models import Cursor, State, Waiting

# What stands before a line that is to be a bullet: those of lists and of headings.
_MARKS = re.compile(r"^\s*(?:(?:[-*+•]|#{1,6})\s+)?")


def propose(session: Session, messages: list[Message], source: str) -> None:
    """An entry that waits for review for each of `messages`, just written to the end of `session`,
    which is locked. Nothing is left of them for the summariser.

    Where something before them waits to be summarised, ranges without a gap leave no other way
    than that they are summarised with it; they are then no proposals. So it is too where nothing
    is to be remembered.
    """
    cursor = Cursor.objects.get(project=session.project_id, pk=session.pk)
    begin = cursor.summarised_through + 1
    said = session.messages.filter(CONTRIBUTING, project=session.project_id)
    before = said.filter(seq__range=(begin, messages[0].seq - 1))
    if before.exists() or not all(map(contributes, messages)):
        return
    now = timezone.now()
    for message in messages:
        stretch = Stretch(begin, message.seq, [message], fingerprint="")
        entry = entry_of(session, stretch, bullets(message.text), source, now)
        entry.state, entry.waits_because = State.PROPOSED, Waiting.IMPORTED
        entry.save(force_insert=True)
        begin = message.seq + 1
    recount(session, beyond=begin - 1, through=begin - 1)


def bullets(text: str) -> str:
    """Each line of `text` as a bullet."""
    lines = (_MARKS.sub("", line).strip() for line in text.splitlines())
    return "\n".join(f"- {line}" for line in lines if line)
