"""Access to files: which a user may see and change, and the text of their pages."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from uuid import UUID

from django.db.models import Exists, Min, OuterRef, Prefetch, Q, QuerySet
from django.http import Http404
from django.urls import reverse
from django.utils.translation import gettext as _

from memory import permissions
from memory.models import File, FilePassage, FileRevision, FileState, SourceType
from memory.models.files import FileQuerySet
from memory.recall import RecallResult
from projects.core.errors import InvalidInputError, NotAllowedError
from projects.models import Membership, Project

MAX_PAGES = 100
# The maximum number of passages of one response, about 500,000 characters. A page of a document has
# a few passages, but text without headings is a single section of any length.
MAX_PASSAGES = 1_000
_PAGES = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?")


@dataclass(frozen=True)
class FilePage:
    """A page, slide, sheet or section of a file, with its passages in order."""

    number: int
    page: int | None
    label: str
    passages: Sequence[FilePassage]

    @property
    def text(self) -> str:
        return "".join(passage.text for passage in self.passages)


def files_for(user, project: Project, moment: datetime | None = None) -> FileQuerySet:
    """Return the files of `project` that the user may see, with their versions, latest version
    first. With `moment`, return those of that time, without files that were forgotten since.
    """
    rows = File.objects.visible_to(user).filter(project=project)
    return with_versions(rows, project, moment).select_related("added_by", "session")


def with_versions(
    rows: FileQuerySet, project: Project, moment: datetime | None = None
) -> FileQuerySet:
    """Return `rows` with their versions, latest version first. With `moment`, return those of that
    time.
    """
    versions = FileRevision.objects.filter(project=project).select_related("added_by")
    if moment is not None:
        versions = versions.filter(created_at__lte=moment)
        rows = rows.filter(Exists(versions.filter(document=OuterRef("pk"))))
    return rows.prefetch_related(Prefetch("revisions", versions.order_by("-number")))


def file_for_reading(user, project: Project, pk: UUID) -> File:
    """Return the file `pk` of `project`. Raises Http404 if the user may not see it."""
    document = files_for(user, project).filter(pk=pk).first()
    if document is None:
        raise Http404
    return document


def require_change(member: Membership, document: File) -> File:
    """Return the file. Raises NotAllowedError if the member may not start reading it again."""
    if not may_change(member, document):
        raise NotAllowedError(_("Only the person who added this file and the owners can do this."))
    return document


def may_change(member: Membership, document: File) -> bool:
    """Return whether the member may start reading the file again."""
    own = document.added_by_id == member.user_id
    return (member.may_write and own) or permissions.may_forget(member, document.session)


def may_forget(member: Membership, document: File) -> bool:
    """Return whether the member may forget the file, as `ForgetScope.is_permitted_to` does.

    Takes no query for files of `files_for`.
    """
    versions: Iterable[FileRevision] = document.revisions.all()
    own = document.added_by_id == member.user_id
    own = own and all(version.added_by_id == member.user_id for version in versions)
    return (member.may_write and own) or permissions.may_forget(member, document.session)


def latest(document: File) -> FileRevision:
    """Return the latest version. Takes no query for files of `files_for`."""
    return document.revisions.all()[0]


def readable(document: File) -> FileRevision | None:
    """Return the latest version that has text."""
    versions: Iterable[FileRevision] = document.revisions.all()
    states = (FileState.READY, FileState.INDEXING)
    return next((version for version in versions if version.state in states), None)


def version_of(document: File, number: str) -> FileRevision:
    """Return the version of this number. Without a number, return the latest version with text, or
    else the latest. Raises Http404 if the file has no version of this number.
    """
    if not number:
        return readable(document) or latest(document)
    for version in document.revisions.all():
        if str(version.number) == number:
            return version
    raise Http404


def passages_of(project: Project, results: Iterable[RecallResult]) -> dict[UUID, FilePassage]:
    """Return the passages of the results that come from files, with their versions and files."""
    ids = [result.id for result in results if result.source_type == SourceType.FILE]
    if not ids:
        return {}
    rows = FilePassage.objects.filter(project=project, pk__in=ids)
    return {row.pk: row for row in rows.select_related("revision__document")}


def parse_pages(text: str) -> list[tuple[int, int]]:
    """Return the ranges in a text such as `3-5,8`. Raises InvalidInputError."""
    ranges: list[tuple[int, int]] = []
    for part in text.replace(" ", "").split(","):
        match = _PAGES.fullmatch(part)
        first = int(match[1]) if match else 0
        last = int(match[2] or first) if match else 0
        if not 0 < first <= last or last - first >= MAX_PAGES or len(ranges) >= MAX_PAGES:
            reason = _("Pages are numbers or ranges such as 3-5, at most %(most)d pages.")
            raise InvalidInputError(reason % {"most": MAX_PAGES}, field="pages")
        ranges.append((first, last))
    return ranges


def pages_of(
    revision: FileRevision, pages: str = "", limit: int = MAX_PAGES, passage: int = 1
) -> list[FilePage]:
    """Return at most `limit` pages of a version, by default the first ones, with at most
    `MAX_PASSAGES` passages from number `passage` on.

    `pages` are page numbers or, in a file without pages, section numbers. Raises
    InvalidInputError.
    """
    rows = FilePassage.objects.filter(project=revision.project_id, revision=revision)
    if pages:
        has_pages = rows.filter(page__isnull=False).exists()
        column = "page__range" if has_pages else "section__range"
        chosen = Q()
        for bounds in parse_pages(pages):
            chosen |= Q(**{column: bounds})
        rows = rows.filter(chosen)
    elif passage == 1:
        rows = rows.filter(section__lte=limit)
    return _grouped(rows.filter(number__gte=passage))[:limit]


def next_passage(revision: FileRevision, pages: Sequence[FilePage]) -> int | None:
    """Return the number of the passage that follows `pages`; None at the end of the file."""
    last = pages[-1].passages[-1].number if pages else revision.passage_count
    return last + 1 if last < revision.passage_count else None


def pages_around(revision: FileRevision, number: int, section: int, count: int) -> list[FilePage]:
    """Return the group of `count` sections with the passage `number` or else the `section`, with at
    most `MAX_PASSAGES` passages. A passage is always in a group with the same other passages.
    """
    rows = FilePassage.objects.filter(project=revision.project_id, revision=revision)
    if number:
        section = rows.filter(number=number).values_list("section", flat=True).first() or 1
    first = (max(section, 1) - 1) // count * count + 1
    rows = rows.filter(section__range=(first, first + count - 1))
    start = rows.aggregate(Min("number"))["number__min"] or 1
    start += max(number - start, 0) // MAX_PASSAGES * MAX_PASSAGES
    return _grouped(rows.filter(number__gte=start))


def _grouped(rows: QuerySet[FilePassage]) -> list[FilePage]:
    pages = []
    rows = rows.order_by("number")[:MAX_PASSAGES]
    for number, group in groupby(rows, lambda passage: passage.section):
        passages = list(group)
        pages.append(FilePage(number, passages[0].page, passages[0].label, passages))
    return pages


def passage_url(project: Project, passage: FilePassage) -> str:
    """Return the URL of the file with the passage marked, in the version of the passage."""
    revision = passage.revision
    url = reverse("file", args=[project.slug, revision.document_id])
    return f"{url}?version={revision.number}&at={passage.number}#p{passage.number}"
