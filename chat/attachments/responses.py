"""An image on its way to a reader."""

import asyncio
from collections.abc import AsyncIterator

from django.core.files.base import File
from django.db import connections
from django.http import Http404, HttpRequest, HttpResponseBase, StreamingHttpResponse
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import content_disposition_header, quote_etag

from chat.models import Attachment

PIECE = 64 * 1024  # bytes

# Should a browser ever take an image for something else: it runs nothing and loads nothing.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # Kept by the reader's own browser, and asked for again each time: access may be gone.
    "Cache-Control": "private, no-cache",
}
EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}


def image_response(
    request: HttpRequest, image: Attachment, *, download: bool = False
) -> HttpResponseBase:
    """The image as it is stored, piece by piece, or 304 to who has it. Raises Http404 when its file
    is gone.

    The end of a view: the database's connection is given back before the first piece.
    """
    etag = quote_etag(image.sha256)
    response = get_conditional_response(request, etag=etag) or _streamed(image, download)
    for name, value in (HEADERS | {"ETag": etag}).items():
        response[name] = value
    patch_vary_headers(response, ["Cookie", "Authorization"])
    return response


def _streamed(image: Attachment, download: bool) -> StreamingHttpResponse:
    try:
        file = image.file.open("rb")
    except FileNotFoundError as error:
        raise Http404 from error
    connections.close_all()
    response = StreamingHttpResponse(Pieces(file), content_type=image.media_type)
    name = f"{image.pk}.{EXTENSIONS.get(image.media_type, 'bin')}"
    disposition = content_disposition_header(download, name) or "inline"
    response["Content-Length"], response["Content-Disposition"] = str(image.size), disposition
    return response


class Pieces:
    """A file piece by piece, read off the event loop; the response closes it."""

    def __init__(self, file: File) -> None:
        self.file = file

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while piece := await asyncio.to_thread(self.file.read, PIECE):
            yield piece

    def close(self) -> None:
        self.file.close()
