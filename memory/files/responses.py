"""Responses that send a stored file, or a page of a PDF as an image."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import PurePath
from threading import BoundedSemaphore

from django.db import connections
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.utils.cache import get_conditional_response, patch_vary_headers
from django.utils.http import quote_etag

from chat.attachments.responses import HEADERS
from memory.files import reading
from memory.files.processing import local_copy
from memory.models import FileRevision
from projects.core.errors import UnavailableError
from projects.core.http.file_responses import stream_file

PDF = "application/pdf"
DOWNLOAD_TYPE = "application/octet-stream"
IMAGE_WIDTH = 1_000
# The maximum number of pages that a web process renders at the same time, and the seconds that a
# request waits for others. A page takes .15 s, and a hostile page up to 30 s and 400 MB.
RENDERERS = 2
MAX_WAIT_S = 5.0
_renderers = BoundedSemaphore(RENDERERS)


class RenderersBusyError(UnavailableError):
    """The maximum number of pages is being rendered."""

    retry_after_s = 5


@contextmanager
def _renderer() -> Iterator[None]:
    if not _renderers.acquire(timeout=MAX_WAIT_S):
        raise RenderersBusyError
    try:
        yield
    finally:
        _renderers.release()


def file_response(revision: FileRevision) -> HttpResponseBase:
    """Return the stored file as a download, never as a page: browsers must not run it.

    Raises Http404 if it is missing. Closes the view's database connection.
    """
    try:
        file = revision.file.open("rb")
    except (FileNotFoundError, ValueError) as error:
        raise Http404 from error
    name, size = PurePath(revision.document.name).name, revision.size
    connections.close_all()
    return _protected(stream_file(file, name, DOWNLOAD_TYPE, size=size))


def page_response(request: HttpRequest, revision: FileRevision, page: int) -> HttpResponseBase:
    """Return a page of a PDF as an image. Raises Http404 for other files and pages, and
    RenderersBusyError.
    """
    if revision.media_type != PDF or not 0 < page <= revision.page_count:
        raise Http404
    etag = quote_etag(f"{revision.sha256}-{page}-{IMAGE_WIDTH}")
    response: HttpResponseBase | None = get_conditional_response(request, etag=etag)
    if response is None:
        try:
            # Hold no connection while another process renders the page.
            connections.close_all()
            with _renderer(), local_copy(revision) as path:
                image = reading.page_image(path, page, IMAGE_WIDTH)
        except reading.UnreadableFileError as error:
            raise Http404 from error
        response = HttpResponse(image, content_type="image/png")
    response["ETag"] = etag
    return _protected(response)


def _protected(response: HttpResponseBase) -> HttpResponseBase:
    for name, value in HEADERS.items():
        response[name] = value
    patch_vary_headers(response, ["Cookie", "Authorization"])
    return response
