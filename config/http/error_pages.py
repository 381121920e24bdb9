"""Responses for errors outside of views: JSON for programs and scripts, pages for people."""

import logging
import re
import sys
from typing import Any

from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string, select_template
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import get_language_from_request
from django.utils.translation import gettext as _
from django.views import defaults
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.csrf import csrf_exempt

from projects.core.database import is_deleted_meanwhile
from projects.core.errors import DomainError, NotFoundError
from projects.core.outages import as_outage

log = logging.getLogger(__name__)

# Paths with JSON responses, whatever the Accept header says.
PROGRAM_PATHS = ("/api/", "/v1/", "/mcp")


def wants_json(request: HttpRequest) -> bool:
    """Return whether a request expects JSON, because it comes from a program or a page's script."""
    accept = request.headers.get("Accept", "")
    return request.path.startswith(PROGRAM_PATHS) or "text/html" not in accept


def page_language(request: HttpRequest) -> str:
    """Return the language of the response to `request`: English for APIs."""
    is_page = not request.path_info.startswith(PROGRAM_PATHS)
    return get_language_from_request(request) if is_page else settings.LANGUAGE_CODE


def error_body(
    path: str, message: str, error_type: str = "invalid_request_error"
) -> dict[str, Any]:
    """Return the JSON body of an error: OpenAI's format under /v1/, else `{"detail": message}`."""
    if not path.startswith("/v1/"):
        return {"detail": message}
    return {"error": {"message": message, "type": error_type, "param": None, "code": None}}


def too_large_message(max_bytes: int) -> str:
    message = _("The request is too large. The limit is %(limit)s MB.")
    return message % {"limit": f"{max_bytes / 1e6:.0f}"}


@csrf_exempt
def route_not_found(request: HttpRequest) -> JsonResponse:
    """Respond to an unknown path below /api/ or /v1/."""
    message = "Not found."
    if request.path.startswith("/api/") and not request.path.endswith("/"):
        message = "Not found. Routes end in a slash."
    return JsonResponse(error_body(request.path, message), status=404)


def bad_request(request: HttpRequest, exception: Exception) -> HttpResponse:
    """Respond to a malformed request, an unknown host, or fields that exceed the memory limit."""
    status = 400
    if isinstance(exception, RequestDataTooBig):
        status, message = 413, too_large_message(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
    elif isinstance(exception, DisallowedHost):
        message = _(
            "This host name is not allowed. An administrator can add it to STRATA_ALLOWED_HOSTS."
        )
    else:
        message = _("The server could not read this request.")
    if wants_json(request):
        return JsonResponse(error_body(request.path, message), status=status)
    return HttpResponse(render_to_string(f"{status}.html", {"reason": message}), status=status)


def server_error(request: HttpRequest) -> HttpResponse:
    """Respond to a request that failed because of an error in Strata, or because the database or
    the bucket is not available, in a view or in any middleware. The error is in the log.
    """
    # Django calls this function while it handles the exception.
    if outage := as_outage(sys.exception()):
        return domain_error(request, outage)
    if wants_json(request):
        body = error_body(request.path, "Internal error: see Strata's log.", "server_error")
        return JsonResponse(body, status=500)
    return defaults.server_error(request)


class DomainErrorMiddleware(MiddlewareMixin):
    """Converts a `DomainError` of a view: to JSON for scripts and programs, otherwise to a page.

    `error.html` is the page for statuses without a template of their own.
    """

    def process_exception(self, request: HttpRequest, exception: Exception) -> HttpResponse | None:
        if is_deleted_meanwhile(exception):
            log.warning("row_deleted_meanwhile", exc_info=exception)
            exception = NotFoundError()
        return domain_error(request, exception) if isinstance(exception, DomainError) else None


def form_address_page(request: HttpRequest) -> str:
    """Return the page for a browser that opens the address of a form."""
    reason = _("This address is that of a form. Go back, and send the form again.")
    return render_to_string("error.html", {"reason": reason}, request)


def domain_error(request: HttpRequest, error: DomainError) -> HttpResponse:
    """Return the response to `error`: JSON for scripts and programs, otherwise a page."""
    status = error.status
    if wants_json(request):
        error_type = "server_error" if status >= 500 else "invalid_request_error"
        body = error_body(request.path, str(error), error_type)
        return JsonResponse(body, status=status, headers=error.headers)
    template = select_template([f"{status}.html", "error.html"])
    page = template.render({"reason": str(error)}, request)
    return HttpResponse(page, status=status, headers=error.headers)


class SecretSettingsFilter(SafeExceptionReporterFilter):
    """Hides URLs with passwords from the error page that STRATA_DEBUG enables."""

    hidden_settings = re.compile(
        SafeExceptionReporterFilter.hidden_settings.pattern
        + "|(DATABASE|BROKER|REPLICA|CACHE|EMAIL)_?(URL)?",
        re.IGNORECASE,
    )
