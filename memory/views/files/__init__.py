"""The pages of files: code that the list and the viewer share."""

from dataclasses import dataclass

from django.http import HttpRequest

from memory.files import access
from memory.models import File, FileRevision, SourceType
from memory.models.files import UNFINISHED_STATES
from memory.recall import RecallResult, RecallScope, recall
from memory.recall.service import MAX_QUERY_CHARS
from projects.models import Membership

MAX_RESULTS = 20


@dataclass(frozen=True)
class FileRow:
    """A file as a list shows it to one reader."""

    document: File
    version: FileRevision
    may_change: bool

    @property
    def is_unfinished(self) -> bool:
        return self.version.state in UNFINISHED_STATES

    @property
    def kind(self) -> str:
        """The suffix of the name in capitals, which users know better than a media type."""
        _stem, dot, suffix = self.document.name.rpartition(".")
        return suffix[:8].upper() if dot else ""


def search_query(request: HttpRequest) -> str:
    return request.GET.get("q", "").replace("\0", "").strip()[:MAX_QUERY_CHARS]


def search_files(
    member: Membership, query: str, document: File | None = None
) -> list[tuple[RecallResult, str]]:
    """Return the passages that best answer `query`, with the URLs of their pages."""
    scope = RecallScope(
        member.project,
        member.user,
        source_types=(SourceType.FILE,),
        revisions=[row.pk for row in document.revisions.all()] if document else None,
    )
    results = recall(scope, query, limit=MAX_RESULTS)
    passages = access.passages_of(member.project, results)
    return [
        (result, access.passage_url(member.project, passages[result.id]))
        for result in results
        if result.id in passages
    ]
