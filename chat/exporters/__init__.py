"""A session as a file. A format is a module here and a line in CHAT_EXPORTERS."""

from collections.abc import Iterable, Iterator
from importlib import import_module
from typing import Protocol, cast

from django.conf import settings
from django.utils.text import slugify

from chat.exporters.reading import everything
from chat.models import Session

__all__ = ["everything", "export", "file_name", "media_type"]

# Bytes that a piece has at least, so that a long session is not sent word by word.
PIECE = 64 * 1024


class Exporter(Protocol):
    MEDIA_TYPE: str
    SUFFIX: str

    def pieces(self, session: Session) -> Iterator[str]:
        """The file, in pieces."""


def export(session: Session, format: str) -> Iterator[bytes]:
    """The session as a file, in pieces, so that however long it is, little of it is in memory.

    Each piece queries for itself and may be asked for from another thread. Raises KeyError for a
    format that is none of CHAT_EXPORTERS.
    """
    return _in_pieces(_exporter(format).pieces(session))


def _in_pieces(texts: Iterable[str]) -> Iterator[bytes]:
    held = bytearray()
    for text in texts:
        held += text.encode()
        if len(held) >= PIECE:
            yield bytes(held)
            held.clear()
    if held:
        yield bytes(held)


def media_type(format: str) -> str:
    return _exporter(format).MEDIA_TYPE


def file_name(session: Session, format: str) -> str:
    """Made of the title and the day it began, safe on every system: `cutover-2025-03-03.md`."""
    title = slugify(session.title, allow_unicode=True)[:60].strip("-") or "chat"
    return f"{title}-{session.created_at:%Y-%m-%d}{_exporter(format).SUFFIX}"


def _exporter(format: str) -> Exporter:
    return cast(Exporter, import_module(settings.CHAT_EXPORTERS[format]))
