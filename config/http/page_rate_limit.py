"""The rate limit for pages.

It is a separate module, because config.asgi imports the other middleware before models are loaded.
"""

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from config.http.error_pages import PROGRAM_PATHS, domain_error
from config.http.middleware import POLLED_VIEWS
from projects.rate_limits import RateLimitExceededError, count_page


class PageRateLimitMiddleware(MiddlewareMixin):
    """Limits how often a user or an IP address requests pages. Programs have separate limits."""

    def process_view(self, request: HttpRequest, *view: object) -> HttpResponse | None:
        match = request.resolver_match
        is_polled = match is not None and match.url_name in POLLED_VIEWS
        if is_polled or request.path_info.startswith(PROGRAM_PATHS):
            return None
        try:
            count_page(request)
        except RateLimitExceededError as error:
            return domain_error(request, error)
        return None
