"""The viewer of a file: its text, its pages as images, and the passages that replies cite."""

from typing import Any
from uuid import UUID

from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect
from django.views.decorators.http import require_GET

from chat.models import Message
from chat.permissions import message_for_reading
from memory.files import access, adding
from memory.files.responses import PDF, file_response, page_response
from memory.models import FilePassage, FileRevision
from memory.prompt.files import SECTION
from memory.recall import RecallScope
from memory.views import project_page, render_page
from memory.views.files import FileRow, search_files, search_query
from projects.models import Membership
from projects.permissions import WRITERS, membership

SECTIONS_PER_PAGE = 10


@project_page()
def file_detail(request: HttpRequest, member: Membership, pk: UUID) -> HttpResponse:
    """Show the text of a file, ten pages at a time. `at` is the number of a passage, which is
    shown and marked. `passage` shows it without a mark. `q` lists the passages that match.
    """
    document = access.file_for_reading(member.user, member.project, pk)
    revision = access.version_of(document, request.GET.get("version", ""))
    query = search_query(request)
    context: dict[str, Any] = {
        "row": FileRow.of(member, document, revision),
        "versions": document.revisions.all(),
        "query": query,
        "is_pdf": revision.media_type == PDF,
    }
    if query:
        versions = [version.pk for version in document.revisions.all()]
        scope = RecallScope(member.project, member.user, revisions=versions)
        context["results"] = search_files(scope, query)
    else:
        context |= _text(request, revision)
    return render_page(request, member, "file.html", context)


def _text(request: HttpRequest, revision: FileRevision) -> dict[str, Any]:
    marked, section = _number(request, "at"), _number(request, "section")
    number = marked or _number(request, "passage")
    pages = access.pages_around(revision, number, section, SECTIONS_PER_PAGE)
    first = pages[0].passages[0].number if pages else 1
    holders = (it.number for it in pages if marked in {passage.number for passage in it.passages})
    return {
        "pages": pages,
        "marked": marked,
        "marked_section": next(holders, 0) if marked else 0,
        "before": max(first - 1, 0),
        "after": access.next_passage(revision, pages),
        "first": first,
        "last": revision.passage_count,
    }


def _number(request: HttpRequest, name: str) -> int:
    value = request.GET.get(name, "")
    return int(value) if value.isdecimal() and value.isascii() and len(value) < 8 else 0


@project_page()
def file_download(request: HttpRequest, member: Membership, pk: UUID) -> HttpResponseBase:
    document = access.file_for_reading(member.user, member.project, pk)
    version = request.GET.get("version", "") or str(access.latest(document).number)
    revision = access.version_of(document, version)
    return file_response(revision)


@project_page()
def file_page_image(
    request: HttpRequest, member: Membership, pk: UUID, number: int
) -> HttpResponseBase:
    """Return a page of a PDF as an image."""
    document = access.file_for_reading(member.user, member.project, pk)
    revision = access.version_of(document, request.GET.get("version", ""))
    return page_response(request, revision, number)


@project_page(get=(), post=WRITERS)
def file_retry(request: HttpRequest, member: Membership, pk: UUID) -> HttpResponse:
    """Start another attempt to read a file that could not be read."""
    document = access.file_for_reading(member.user, member.project, pk)
    adding.retry(access.require_change(member, document))
    return redirect("files", member.project.slug)


@require_GET
def reply_file(request: HttpRequest, pk: UUID, number: int) -> HttpResponse:
    """Redirect to the passage that a reply cites as `[number]`."""
    message = message_for_reading(request.user, pk)
    member = membership(request.user, message.session.project.slug)
    passage = _cited(message, number)
    if passage is None:
        raise Http404
    access.file_for_reading(member.user, member.project, passage.revision.document_id)
    return redirect(access.passage_url(member.project, passage))


def _cited(message: Message, number: int) -> FilePassage | None:
    sections = message.receipt.get("sections", ())
    items: list[Any] = next((it["items"] for it in sections if it.get("name") == SECTION), [])
    if not 0 < number <= len(items):
        return None
    rows = FilePassage.objects.filter(project=message.project_id, pk=items[number - 1]["id"])
    return rows.select_related("revision").first()
