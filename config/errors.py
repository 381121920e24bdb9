"""What is answered where no view gets to answer: programs read JSON, where people get a page."""

import re

from django.conf import settings
from django.core.exceptions import DisallowedHost, RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.utils.translation import gettext as _
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.csrf import csrf_exempt
from django.views.defaults import server_error

from config.bodies import in_json, reads_json, too_large


@csrf_exempt
def no_such_route(request: HttpRequest) -> JsonResponse:
    reason = "Not found."
    if request.path.startswith("/api/") and not request.path.endswith("/"):
        reason = "Not found. Routes end in a slash."
    return JsonResponse(in_json(request.path, reason), status=404)


class HidesAddresses(SafeExceptionReporterFilter):
    """For the page of an error where STRATA_DEBUG is on: an address may hold a password."""

    hidden_settings = re.compile(
        SafeExceptionReporterFilter.hidden_settings.pattern
        + "|(DATABASE|BROKER|REPLICA|CACHE|EMAIL)_?(URL)?",
        re.IGNORECASE,
    )


def refused(request: HttpRequest, exception: Exception) -> HttpResponse:
    """A request that Django takes for none, or whose words are more than it keeps in memory."""
    path = request.path
    for_programs = reads_json(path, request.headers.get("Accept", ""))
    if isinstance(exception, RequestDataTooBig):
        reason = too_large(settings.DATA_UPLOAD_MAX_MEMORY_SIZE)
        if for_programs:
            return JsonResponse(in_json(path, reason), status=413)
        return HttpResponse(render_to_string("413.html", {"reason": reason}), status=413)
    if isinstance(exception, DisallowedHost):
        reason = _(
            "Strata does not answer under this name. Whoever runs it lists its names in "
            "STRATA_ALLOWED_HOSTS."
        )
    else:
        reason = _("This request cannot be read.")
    if for_programs:
        return JsonResponse(in_json(path, reason), status=400)
    return HttpResponse(render_to_string("400.html", {"reason": reason}), status=400)


def failed(request: HttpRequest) -> HttpResponse:
    """Strata itself failed; why is in the log."""
    if reads_json(request.path, request.headers.get("Accept", "")):
        told = in_json(request.path, "Strata itself failed: see its log.", "server_error")
        return JsonResponse(told, status=500)
    return server_error(request)
