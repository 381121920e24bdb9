"""The page of a project's notes."""

from dataclasses import dataclass

from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from chat import permissions
from chat.conversations import notes, search
from chat.forms import NoteForm
from chat.links import message_url
from chat.models import Message, Visibility
from projects.core.errors import InvalidInputError
from projects.core.text import parse_uuid
from projects.models import MemberRole, Membership
from projects.permissions import WRITERS, membership, require_active

NOTES_PER_PAGE = 50


@dataclass(frozen=True)
class NoteContext:
    """A note as one reader sees it."""

    note: Message
    may_change: bool
    may_forget: bool


@require_http_methods(["GET", "POST"])
def notes_page(request: HttpRequest, slug: str) -> HttpResponse:
    """Show the notes, newest first, or the matches of `q`. With `at`, show the page of that note.

    A POST request adds a note.
    """
    if request.method == "GET":
        return _render_notes(request, membership(request.user, slug), NoteForm())
    member = membership(request.user, slug, WRITERS)
    require_active(member.project)
    form = NoteForm(request.POST)
    if form.is_valid():
        try:
            note = notes.add_note(member.project, request.user, form.cleaned_data["text"])
            return redirect(message_url(note))
        except InvalidInputError as error:
            form.add_error("text", str(error))
    return _render_notes(request, member, form, status=400)


def _render_notes(
    request: HttpRequest, member: Membership, form: NoteForm, status: int = 200
) -> HttpResponse:
    query = request.GET.get("q", "").replace("\0", "").strip()[: search.MAX_QUERY_CHARS]
    listed: QuerySet[Message] = notes.notes_for(request.user, member.project)
    if query:
        listed = search.search_messages(listed, query)
    number = _page_number(request, member, listed)
    page: Page[Message] = Paginator(listed, NOTES_PER_PAGE).get_page(number)
    context = {
        "project": member.project,
        "membership": member,
        "rows": [_note_context(member, note) for note in page],
        "page": page,
        "query": query,
        "own": notes.open_note_sessions(member.project, request.user).first(),
        "form": form,
    }
    return render(request, "chat/notes.html", context, status=status)


def _page_number(
    request: HttpRequest, member: Membership, listed: QuerySet[Message]
) -> int | str | None:
    """Return the parameter `page`, or the page of the note `at`, even if it is deleted."""
    if "at" not in request.GET:
        return request.GET.get("page")
    pk = parse_uuid(request.GET["at"])
    if pk is None:
        raise Http404
    note = notes.notes_with_deleted(request.user, member.project).filter(pk=pk).first()
    return listed.filter(notes.newer_than(note)).count() // NOTES_PER_PAGE + 1 if note else None


def _note_context(member: Membership, note: Message) -> NoteContext:
    own = note.author_id == member.user_id or note.session.visibility == Visibility.PRIVATE
    return NoteContext(
        note,
        may_change=permissions.may_change(member, note),
        may_forget=member.role == MemberRole.OWNER or (member.may_write and own),
    )
