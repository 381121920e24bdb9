"""What was said on the path that counts, for people: speakers, times and texts."""

from collections.abc import Iterator
from datetime import datetime

from django.utils import timezone

from chat.exporters.reading import path
from chat.models import Message, Session, Status

MEDIA_TYPE = "text/markdown; charset=utf-8"
SUFFIX = ".md"
ENDED = {
    Status.PENDING: "This reply is still being said.",
    Status.STREAMING: "This reply is still being said.",
    Status.STOPPED: "This reply was stopped.",
    Status.INTERRUPTED: "This reply was interrupted.",
}


def pieces(session: Session) -> Iterator[str]:
    yield f"# {_line(session.label)}\n\n{_line(session.project.name)}\n"
    for message in path(session):
        at = _time(message.created_at, session)
        yield f"\n## {_line(message.speaker)} · {at}\n\n{_text(message, session)}\n"


def _text(message: Message, session: Session) -> str:
    if message.deleted_at:
        return f"*This message was deleted on {_time(message.deleted_at, session)}.*"
    images = (f"[image: {it.description or it.name}]" for it in message.attachments.all())
    parts = [message.text.rstrip(), *images, *_notes(message, session)]
    return "\n\n".join(filter(None, parts))


def _notes(message: Message, session: Session) -> Iterator[str]:
    if message.status == Status.FAILED:
        yield f"*This reply failed: {_line(message.error)}*"
    elif message.status in ENDED:
        yield f"*{ENDED[Status(message.status)]}*"
    if message.edited_at:
        yield f"*Edited on {_time(message.edited_at, session)}.*"


def _time(at: datetime, session: Session) -> str:
    return f"{timezone.localtime(at, session.project.zone):%Y-%m-%d %H:%M %Z}"


def _line(text: str) -> str:
    """A name as it stands in a heading."""
    return " ".join(text.split())
