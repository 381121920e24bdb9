"""Pages about a member: the data that the project stores about the member, and its export."""

from django.http import Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase

from memory import profile
from memory.portability import ExportScope
from memory.portability.exporting import download
from memory.views import project_page, render_page
from projects.models import MemberRole, Membership


@project_page()
def about_me(request: HttpRequest, member: Membership) -> HttpResponse:
    context = {
        "profile": profile.profile(member, request.user),
        "sentences": profile.personal_knowledge(member),
    }
    return render_page(request, member, "profile.html", context)


@project_page()
def export(request: HttpRequest, member: Membership) -> HttpResponseBase:
    """Export the project for its owners, without others' private data; with `?mine`, own data."""
    mine = "mine" in request.GET
    if not mine and member.role != MemberRole.OWNER:
        raise Http404
    return download(ExportScope(member.project, request.user, only_own=mine))
