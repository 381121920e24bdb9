"""The page of a project's notes."""

from dataclasses import dataclass
from uuid import UUID

from django.contrib.auth.decorators import login_required
from django.core.paginator import Page, Paginator
from django.db.models import QuerySet
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.views.decorators.http import require_http_methods

from chat import access, pages, search
from chat import notes as kept
from chat.changes import Refused
from chat.forms import NoteForm
from chat.models import Message, Visibility
from projects.access import WRITERS, membership
from projects.models import Membership, Role

NOTES_A_PAGE = 50


@dataclass(frozen=True)
class Row:
    """A note as the page shows it to one reader."""

    note: Message
    may_change: bool
    may_forget: bool


@login_required
@require_http_methods(["GET", "POST"])
def notes(request: HttpRequest, slug: str) -> HttpResponse:
    """The notes of a project, the newest first, or those with the words `q`; with `at`, the page
    on which that note stands. A POST adds one.
    """
    if request.method == "GET":
        return _page(request, membership(request.user, slug), NoteForm())
    member = membership(request.user, slug, WRITERS)
    form = NoteForm(request.POST)
    if form.is_valid():
        try:
            note = kept.add(member.project, request.user, form.cleaned_data["text"])
            return redirect(pages.at(note))
        except Refused as refused:
            form.add_error("text", str(refused))
    return _page(request, member, form, status=400)


def _page(
    request: HttpRequest, member: Membership, form: NoteForm, status: int = 200
) -> HttpResponse:
    query = request.GET.get("q", "").replace("\0", "").strip()[: search.LONGEST]
    found = kept.notes_for(request.user, member.project)
    listed = search.saying(found, query) if query else found
    number = _number_of_page(request, member, listed)
    page: Page[Message] = Paginator(listed, NOTES_A_PAGE).get_page(number)
    context = {
        "project": member.project,
        "membership": member,
        "rows": [_row(member, note) for note in page],
        "page": page,
        "query": query,
        "own": kept.taking(member.project, request.user).first(),
        "form": form,
    }
    return render(request, "chat/notes.html", context, status=status)


def _number_of_page(
    request: HttpRequest, member: Membership, listed: QuerySet[Message]
) -> int | str | None:
    """The page that is asked for, or that on which the note `at` stands, or stood."""
    if "at" not in request.GET:
        return request.GET.get("page")
    places = kept.places_for(request.user, member.project)
    note = places.filter(pk=_id(request.GET["at"])).first()
    return listed.filter(kept.newer_than(note)).count() // NOTES_A_PAGE + 1 if note else None


def _row(member: Membership, note: Message) -> Row:
    own = note.author_id == member.user_id or note.session.visibility == Visibility.PRIVATE
    return Row(
        note,
        may_change=access.may_change(member, note),
        may_forget=member.role == Role.OWNER or (member.may_write and own),
    )


def _id(text: str) -> UUID:
    try:
        return UUID(text)
    except ValueError as error:
        raise Http404 from error
