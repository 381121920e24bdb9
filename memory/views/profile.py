"""What a project holds about the one who asks."""

from django.contrib.auth.decorators import login_required
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils import timezone
from django.views.decorators.http import require_GET

from memory.profile import profile
from projects.access import membership


@login_required
@require_GET
def about_me(request: HttpRequest, slug: str) -> HttpResponse:
    """Counts, the latest chats and facts, and how to take it along or have it forgotten."""
    member = membership(request.user, slug)
    context = {
        "project": member.project,
        "membership": member,
        "told": profile(member, request.user),
    }
    with timezone.override(member.project.zone):
        return render(request, "memory/profile.html", context)
