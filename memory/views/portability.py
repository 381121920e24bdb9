"""A project, or what is one's own in it, as a file."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET

from memory.downloads import download
from memory.portability import Extent
from projects.access import project_for_owning, project_for_reading


@login_required
@require_GET
def export(request: HttpRequest, slug: str) -> HttpResponseBase:
    """For owners the project, without what others keep private; with `?mine`, one's own."""
    mine = "mine" in request.GET
    find = project_for_reading if mine else project_for_owning
    return download(Extent(find(request.user, slug), request.user, only_own=mine))
