"""Absolute addresses of this server, for links that leave it: mail, invitations, API, MCP.

A separate module, because pages, allauth and MCP need it, and MCP requests do not pass the
middleware.
"""

from functools import partial
from urllib.parse import urljoin

from django.conf import settings
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin


def absolute_url(request: HttpRequest, location: str | None = None) -> str:
    """Return the absolute address of `location`, by default of the request itself.

    With STRATA_URL, the host of the request is ignored, because a forged host would lead the reader
    of a mail to another server or port. Without it, Django allows the hosts in ALLOWED_HOSTS.
    """
    if not settings.URL:
        return HttpRequest.build_absolute_uri(request, location)
    location = request.get_full_path() if location is None else location
    return urljoin(f"{settings.URL}{request.path}", location)


class PublicUrlMiddleware(MiddlewareMixin):
    """Makes `request.build_absolute_uri` return addresses below STRATA_URL, also for libraries."""

    def process_request(self, request: HttpRequest) -> None:
        vars(request)["build_absolute_uri"] = partial(absolute_url, request)
