"""Streams files to clients in chunks, without holding a database connection or the event loop."""

from collections.abc import AsyncIterator, Callable
from functools import partial
from typing import IO, Any

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from projects.core.database import in_thread

CHUNK_BYTES = 256 * 1024


class FileChunks:
    """Iterates over the results of `read` until one is empty. The response calls `close`."""

    def __init__(self, read: Callable[[], bytes], close: Callable[[], None] = lambda: None) -> None:
        self._read = read
        self.close = close

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while chunk := await in_thread(self._read):
            yield chunk


def stream_chunks(
    chunks: FileChunks, name: str, media_type: str, *, size: int | None = None, inline: bool = False
) -> StreamingHttpResponse:
    """Return a response that sends `chunks` as a file with this `name`. It must not be cached."""
    response = StreamingHttpResponse(chunks, content_type=media_type)
    response["Content-Disposition"] = content_disposition_header(not inline, name) or "inline"
    response["Cache-Control"] = "no-store"
    if size is not None:
        response["Content-Length"] = str(size)
    return response


def stream_file(file: IO[Any], name: str, media_type: str, **options: Any) -> StreamingHttpResponse:
    """Return a response that sends and closes `file`. For the options, see `stream_chunks`."""
    chunks = FileChunks(partial(file.read, CHUNK_BYTES), file.close)
    return stream_chunks(chunks, name, media_type, **options)
