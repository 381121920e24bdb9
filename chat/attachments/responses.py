"""The response that sends an image."""

from django.db import connections
from django.http import Http404, HttpRequest, HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag

from chat.models import Attachment
from projects.core.http.file_responses import stream_file

# Even if a browser treats an image as another type, it must not run or load anything.
HEADERS = {
    "Content-Security-Policy": "default-src 'none'; sandbox",
    "Cross-Origin-Resource-Policy": "same-origin",
    "X-Content-Type-Options": "nosniff",
    # The browser caches it, but revalidates each time: the reader may have lost access.
    "Cache-Control": "private, no-cache",
}
EXTENSIONS = {"image/png": "png", "image/jpeg": "jpg", "image/webp": "webp"}


def image_response(
    request: HttpRequest, image: Attachment, *, download: bool = False
) -> HttpResponseBase:
    """Return the stored image in chunks, or 304 to a client that has it.

    Raises `Http404` if its file is missing. Closes the view's database connection before a file is
    sent.
    """
    etag = quote_etag(image.sha256)
    response: HttpResponseBase | None = get_conditional_response(request, etag=etag)
    if response is None:
        try:
            file = image.file.open("rb")
        except FileNotFoundError as error:
            raise Http404 from error
        connections.close_all()
        name = f"{image.pk}.{EXTENSIONS.get(image.media_type, 'bin')}"
        response = stream_file(file, name, image.media_type, size=image.size, inline=not download)
    for name, value in (HEADERS | {"ETag": etag}).items():
        response[name] = value
    patch_vary_headers(response, ["Cookie", "Authorization"])
    return response
