"""A session on its way to a reader as a file."""

from collections.abc import AsyncIterator, Iterator

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from chat import exporters
from chat.database import in_thread
from chat.models import Session


def download(session: Session, format: str) -> StreamingHttpResponse:
    """The session as a file in `format`, one of CHAT_EXPORTERS, written while it is read."""
    name = exporters.file_name(session, format)
    return StreamingHttpResponse(
        _sent(exporters.export(session, format)),
        content_type=exporters.media_type(format),
        headers={
            "Content-Disposition": str(content_disposition_header(True, name)),
            "Cache-Control": "no-store",
        },
    )


async def _sent(pieces: Iterator[bytes]) -> AsyncIterator[bytes]:
    """Each piece is made in a thread; no connection is held while a slow reader takes it."""
    while (piece := await in_thread(next, pieces, None)) is not None:
        yield piece
