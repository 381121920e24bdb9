"""An export on its way to its reader."""

from collections.abc import AsyncIterator
from tempfile import TemporaryFile
from typing import IO

from django.http import StreamingHttpResponse
from django.utils.http import content_disposition_header

from chat.database import in_thread
from memory.portability import Extent, export, file_name

MEDIA_TYPE = "application/zip"
PIECE = 256 * 1024  # bytes


def download(extent: Extent) -> StreamingHttpResponse:
    """All that is in `extent`, as a file. It is written whole first, so that it is of one moment
    and no connection is held while a slow reader takes it.
    """
    file = TemporaryFile()  # noqa: SIM115  (closed when it is sent)
    export(extent, file)
    size = file.tell()
    file.seek(0)
    return StreamingHttpResponse(
        _sent(file),
        content_type=MEDIA_TYPE,
        headers={
            "Content-Disposition": str(content_disposition_header(True, file_name(extent))),
            "Content-Length": str(size),
            "Cache-Control": "no-store",
        },
    )


async def _sent(file: IO[bytes]) -> AsyncIterator[bytes]:
    with file:
        while piece := await in_thread(file.read, PIECE):
            yield piece
