"""Absolute URLs of this server, for use outside of its pages: mail, invitations, API, MCP.

This is a separate module, because pages, django-allauth and MCP need it, and MCP requests do not
pass through the middleware.
"""

from functools import partial
from urllib.parse import urljoin

from django.conf import settings
from django.http import HttpRequest
from django.utils.deprecation import MiddlewareMixin


def absolute_url(request: HttpRequest, location: str | None = None) -> str:
    """Return the absolute URL of `location`, by default of the request itself.

    With STRATA_URL, the host of the request is ignored, because a forged host would lead readers of
    a mail to another server. Without it, Django permits only the hosts in ALLOWED_HOSTS.
    """
    if not settings.URL:
        return HttpRequest.build_absolute_uri(request, location)
    location = request.get_full_path() if location is None else location
    return urljoin(f"{settings.URL}{request.path}", location)


class PublicUrlMiddleware(MiddlewareMixin):
    """Makes `request.build_absolute_uri` return URLs below STRATA_URL, also in libraries."""

    def process_request(self, request: HttpRequest) -> None:
        vars(request)["build_absolute_uri"] = partial(absolute_url, request)
