"""The HTML pages of a project's memory."""

from collections.abc import Mapping
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.shortcuts import render

from projects.models import Membership


def render_page(
    request: HttpRequest,
    member: Membership,
    template: str,
    context: Mapping[str, Any],
    status: int = 200,
) -> HttpResponse:
    """Render a page of the member's project."""
    context = {"project": member.project, "membership": member, **context}
    return render(request, f"memory/{template}", context, status=status)
