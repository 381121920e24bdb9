"""Exports the active path as Markdown for reading: tags, speakers, times and texts."""

from collections.abc import Iterator
from datetime import datetime

from django.utils import timezone

from chat.exporters.messages import iter_active_path
from chat.models import Message, Session, Status

MEDIA_TYPE = "text/markdown; charset=utf-8"
SUFFIX = ".md"
STATUS_NOTES = {
    Status.PENDING: "This reply is still being written.",
    Status.STREAMING: "This reply is still being written.",
    Status.STOPPED: "This reply was stopped.",
    Status.INTERRUPTED: "This reply was interrupted.",
}


def render(session: Session) -> Iterator[str]:
    yield f"# {_one_line(session.label)}\n\n{_one_line(session.project.name)}\n"
    if session.tags:
        yield f"\nTags: {', '.join(session.tags)}\n"
    for message in iter_active_path(session):
        heading = _one_line(message.speaker)
        if message.recorded_by:
            heading += f" · recorded by {message.recorded_by}"
        heading += f" · {_time(message.created_at, session)}"
        yield f"\n## {heading}\n\n{_body(message, session)}\n"


def _body(message: Message, session: Session) -> str:
    if message.deleted_at:
        return f"*This message was deleted on {_time(message.deleted_at, session)}.*"
    parts = [message.text.rstrip()]
    parts += [f"[image: {it.description or it.name}]" for it in message.attachments.all()]
    if message.status == Status.FAILED:
        parts.append(f"*This reply failed: {_one_line(message.error)}*")
    elif message.status in STATUS_NOTES:
        parts.append(f"*{STATUS_NOTES[Status(message.status)]}*")
    if message.edited_at:
        parts.append(f"*Edited on {_time(message.edited_at, session)}.*")
    return "\n\n".join(filter(None, parts))


def _time(at: datetime, session: Session) -> str:
    return f"{timezone.localtime(at, session.project.zone):%Y-%m-%d %H:%M %Z}"


def _one_line(text: str) -> str:
    return " ".join(text.split())
