"""What is answered where no view gets to answer: programs read JSON, where people get a page."""

import re

from django.conf import settings
from django.core.exceptions import RequestDataTooBig
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.template.loader import render_to_string
from django.views.debug import SafeExceptionReporterFilter
from django.views.decorators.csrf import csrf_exempt
from django.views.defaults import bad_request

from config.bodies import in_json, reads_json, too_large


@csrf_exempt
def no_such_route(request: HttpRequest) -> JsonResponse:
    reason = "Not found." if request.path.endswith("/") else "Not found. Routes end in a slash."
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
    if for_programs:
        return JsonResponse(in_json(path, "This request cannot be read."), status=400)
    return bad_request(request, exception)
