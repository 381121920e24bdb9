"""The list of a project's files, with a form to add files."""

from typing import Any
from uuid import UUID

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.links import session_url
from chat.models import Session
from chat.permissions import session_for_writing
from memory.files import access, adding
from memory.models import File
from memory.recall import RecallScope
from memory.views import project_page, render_page
from memory.views.files import FileRow, search_files, search_query
from memory.views.layers_chart import day_range, end_of_day
from projects.models import Membership
from projects.permissions import WRITERS

FILES_PER_PAGE = 50


@project_page(post=WRITERS)
def file_list(request: HttpRequest, member: Membership) -> HttpResponse:
    """Show the files, the last changed first, or what `q` finds in them. A POST adds files.

    Query parameters: `at` selects a past day. `part` returns only the list.
    """
    if request.method == "POST":
        return _add(request, member)
    project, query = member.project, search_query(request)
    days = day_range(project, request.GET["at"]) if "at" in request.GET else None
    day = None if days is None or days.is_today else days.shown
    context: dict[str, Any] = {"query": query, "day": day}
    if query and "part" not in request.GET:
        # Without the list, because counting and sorting thousands of files takes 10 ms.
        context["results"] = search_files(RecallScope(project, member.user), query)
        return render_page(request, member, "files.html", context)
    moment = end_of_day(day, project) if day else None
    files = access.files_for(member.user, project, moment)
    page: Page[File] = Paginator(files.newest_first(), FILES_PER_PAGE).get_page(
        request.GET.get("page")
    )
    rows = [
        FileRow(document, access.latest(document), access.may_change(member, document))
        for document in page
    ]
    context |= {"rows": rows, "page": page}
    context["is_unfinished"] = any(row.is_unfinished for row in rows)
    template = "_files.html" if "part" in request.GET else "files.html"
    return render_page(request, member, template, context)


def _add(request: HttpRequest, member: Membership) -> HttpResponse:
    """Add the files of the form to the chat that it names, or by default to the project."""
    chat_session: Session | None = None
    if pk := request.POST.get("session"):
        chat_session = session_for_writing(request.user, _uuid(pk), slug=member.project.slug)
    session = chat_session if request.POST.get("for") == "chat" else None
    added, refused = 0, []
    for file in request.FILES.getlist("files"):
        result = adding.add_upload(member.project, request.user, file.name or "", file, session)
        added += len(result.added)
        refused += result.refused
    for name, reason in refused:
        messages.error(request, f"{name}: {reason}")
    if added:
        text = ngettext(
            "%(n)d file added. It is being read.", "%(n)d files added. They are being read.", added
        )
        messages.success(request, text % {"n": added})
    elif not refused:
        messages.error(request, _("Choose at least one file."))
    if chat_session is not None:
        return redirect(session_url(chat_session))
    return redirect("files", member.project.slug)


def _uuid(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Http404 from error
