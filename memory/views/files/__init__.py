"""The pages of files: code that the list, the viewer and the search page share."""

from dataclasses import dataclass, replace

from django.http import HttpRequest

from memory.files import access
from memory.models import File, FileRevision, FileState, SourceType
from memory.models.files import UNFINISHED_STATES
from memory.recall import RecallResult, RecallScope, filter_relevant, recall
from memory.recall.service import MAX_QUERY_CHARS
from projects.models import Membership

MAX_RESULTS = 20


@dataclass(frozen=True)
class FileRow:
    """A file as a list shows it to one reader."""

    document: File
    version: FileRevision
    may_retry: bool
    may_forget: bool

    @classmethod
    def of(cls, member: Membership, document: File, version: FileRevision) -> "FileRow":
        # Only the latest version is read again.
        is_failed = version.state == FileState.FAILED and version.created_at >= document.changed_at
        may_retry = is_failed and access.may_change(member, document)
        return cls(document, version, may_retry, access.may_forget(member, document))

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
    scope: RecallScope, query: str, limit: int = MAX_RESULTS, min_score: float = 0
) -> list[tuple[RecallResult, str]]:
    """Return the passages that best answer `query`, with the URLs of their pages. With `min_score`,
    less relevant passages are left out.
    """
    results = recall(replace(scope, source_types=(SourceType.FILE,)), query, limit=limit)
    if min_score:
        results = filter_relevant(results, min_score)
    passages = access.passages_of(scope.project, results)
    return [
        (result, access.passage_url(scope.project, passages[result.id]))
        for result in results
        if result.id in passages
    ]
