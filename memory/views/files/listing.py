"""The list of a project's files, with a form to add files."""

from typing import Any

from django.contrib import messages
from django.core.paginator import Page, Paginator
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from chat.forms import ChatOptionsForm
from chat.links import session_url
from chat.model_forms import SessionModelForm
from chat.models import Session
from chat.permissions import session_for_writing
from memory.files import access, adding
from memory.models import File
from memory.recall import RecallScope
from memory.views import project_page, render_page
from memory.views.files import FileRow, search_files, search_query
from memory.views.layers_chart import day_range, end_of_day
from projects.core.errors import InvalidInputError
from projects.core.text import parse_uuid
from projects.models import Membership, delete_rows
from projects.permissions import WRITERS

FILES_PER_PAGE = 50
# In place of the id of a chat.
NEW_CHAT = "new"


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
    rows = [FileRow.of(member, document, access.latest(document)) for document in page]
    context |= {"rows": rows, "page": page}
    context["is_unfinished"] = any(row.is_unfinished for row in rows)
    template = "_files.html" if "part" in request.GET else "files.html"
    return render_page(request, member, template, context)


def _add(request: HttpRequest, member: Membership) -> HttpResponse:
    """Add the files of the form to the project or, with `for=chat`, to the chat `session`.

    If `session` is `new`, a new chat is created, but only with `for=chat` and at least one file. It
    is deleted if no file was added.
    """
    slug, pk = member.project.slug, request.POST.get("session", "")
    chat_session: Session | None = None
    if pk and pk != NEW_CHAT:
        chat_session = session_for_writing(request.user, parse_uuid(pk), slug=slug)
    elif pk and request.POST.get("for") == "chat" and request.FILES:
        chat_session = _begin_chat(request, member)
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
    if pk == NEW_CHAT and chat_session is not None and not added:
        delete_rows(Session.objects.filter(project=member.project, pk=chat_session.pk))
        chat_session = None
    if chat_session is not None:
        return redirect(session_url(chat_session))
    return redirect("project" if pk == NEW_CHAT else "files", slug)


def _begin_chat(request: HttpRequest, member: Membership) -> Session:
    """Create a chat without messages, with the options of the composer."""
    chat_session = Session(project=member.project, creator_id=request.user.pk)
    options = ChatOptionsForm(request.POST)
    model = SessionModelForm(request.POST, instance=chat_session)
    if not (options.is_valid() and model.is_valid()):
        raise InvalidInputError
    options.apply_to(chat_session)
    chat_session.save()
    return chat_session
