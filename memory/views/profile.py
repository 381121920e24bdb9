"""Pages about a member's data: what the project stores about the member, and exports of it."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory import profile
from memory.portability import ExportScope
from memory.portability.exporting import download
from memory.views import render_page
from projects.permissions import membership, project_for_owning, project_for_reading


@login_required
@require_GET
def about_me(request: HttpRequest, slug: str) -> HttpResponse:
    member = membership(request.user, slug)
    with timezone.override(member.project.zone):
        context = {"profile": profile.profile(member, request.user)}
        return render_page(request, member, "profile.html", context)


@login_required
@require_GET
def export(request: HttpRequest, slug: str) -> HttpResponseBase:
    """Export the project for its owners, without others' private data; with `?mine`, own data."""
    mine = "mine" in request.GET
    find = project_for_reading if mine else project_for_owning
    return download(ExportScope(find(request.user, slug), request.user, only_own=mine))
