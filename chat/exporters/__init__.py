"""Export a session as a file. Each format is a module here, and is listed in CHAT_EXPORTERS."""

from collections.abc import Iterable, Iterator
from functools import partial
from importlib import import_module
from typing import Protocol, cast

from django.conf import settings
from django.http import StreamingHttpResponse
from django.utils import timezone
from django.utils.text import slugify

from chat.models import Session
from projects.core.http.file_responses import FileChunks, stream_chunks

# The minimum size of a chunk in bytes, so that a session is not sent line by line.
MIN_CHUNK_BYTES = 64 * 1024


class Exporter(Protocol):
    """The interface of a module that exports one format."""

    MEDIA_TYPE: str
    SUFFIX: str

    def render(self, session: Session) -> Iterator[str]:
        """Yield the file in parts."""


def get_exporter(format: str) -> Exporter:
    """Return the exporter of `format`. Raises `KeyError` if it is not in CHAT_EXPORTERS."""
    return cast(Exporter, import_module(settings.CHAT_EXPORTERS[format]))


def export(session: Session, format: str) -> Iterator[bytes]:
    """Yield the file in chunks, so that a long session does not fill the memory.

    Each chunk makes its own queries, and may be computed in another thread.
    """
    return _chunked(get_exporter(format).render(session))


def _chunked(parts: Iterable[str]) -> Iterator[bytes]:
    buffer = bytearray()
    for part in parts:
        buffer += part.encode()
        if len(buffer) >= MIN_CHUNK_BYTES:
            yield bytes(buffer)
            buffer.clear()
    if buffer:
        yield bytes(buffer)


def file_name(session: Session, format: str) -> str:
    """Return a file name of title and date, valid on every system: `cutover-2025-03-03.md`. The
    date is that in the project's time zone.
    """
    title = slugify(session.title, allow_unicode=True)[:60].strip("-") or "chat"
    created_at = timezone.localtime(session.created_at, session.project.zone)
    return f"{title}-{created_at:%Y-%m-%d}{get_exporter(format).SUFFIX}"


def export_response(session: Session, format: str) -> StreamingHttpResponse:
    """Return a response with the session as a file, which is created while it is sent."""
    chunks = FileChunks(partial(next, export(session, format), b""))
    return stream_chunks(chunks, file_name(session, format), get_exporter(format).MEDIA_TYPE)
