"""Absolute URLs of this server, for use outside of its pages: mail, invitations, API, MCP.

`PublicUrlMiddleware` uses it for pages and libraries. MCP requests do not pass through middleware.
"""

from urllib.parse import urljoin

from django.conf import settings
from django.http import HttpRequest


def absolute_url(request: HttpRequest, location: str | None = None) -> str:
    """Return the absolute URL of `location`, by default of the request itself.

    With STRATA_URL, the host of the request is ignored, because a forged host would lead readers of
    a mail to another server. Without it, Django permits only the hosts in ALLOWED_HOSTS.
    """
    if not settings.URL:
        return HttpRequest.build_absolute_uri(request, location)
    location = request.get_full_path() if location is None else location
    return urljoin(f"{settings.URL}{request.path}", location)
