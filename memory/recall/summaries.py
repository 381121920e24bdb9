"""Summaries of conversations, found as excerpts are: what no excerpt of may be quoted to someone is
still told to them in short. They follow the entries.
"""

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from uuid import UUID

from django.db import connection, transaction
from django.db.models import QuerySet

from chat.models import Role
from memory.models import Chunk, EntriesChanged, Entry, SourceType
from memory.models.entries import CONVERSATION
from memory.recall import writing
from memory.recall.embedders import Embedder, EmbedderError
from projects.models import Project, remove

log = logging.getLogger(__name__)

# Entries that are read, embedded and committed together.
BATCH = 500
# A chunk of a summary is known by its entry, and bears the entry's revision as its last place.
FIRST = 1


def catch_up(
    embedder: Embedder, project: Project | None = None, go_on: Callable[[], bool] = lambda: True
) -> int:
    """Brings the excerpts of summaries up to date where entries changed, as long as `go_on()`;
    returns how many were written. What fails stays due.
    """
    changed = EntriesChanged.objects.all()
    if project is not None:
        changed = changed.filter(project=project)
    written = 0
    for project_id in changed.order_by("project").values_list("project", flat=True).distinct():
        if not go_on():
            break
        try:
            written += follow(project_id, embedder)
        except EmbedderError as error:
            log.warning("memory_ingest_failed project=%s reason=%s", project_id, error)
    return written


def mark(projects: QuerySet[Project]) -> None:
    """Has the summaries of these projects looked through."""
    EntriesChanged.objects.bulk_create(
        EntriesChanged(project_id=pk) for pk in projects.values_list("pk", flat=True).iterator()
    )


def is_behind(project: Project | None = None) -> bool:
    changed = EntriesChanged.objects.all()
    return (changed if project is None else changed.filter(project=project)).exists()


def follow(project_id: UUID, embedder: Embedder) -> int:
    """Makes the excerpts of a project's summaries what its entries are; how many were written.

    Raises EmbedderError.
    """
    # What changes from here on is looked at again.
    heeded = list(EntriesChanged.objects.filter(project=project_id).values_list("pk", flat=True))
    spoken = Project.objects.get(pk=project_id).search_language_name
    wanted = dict(tellable(project_id).values_list("pk", "revision"))
    there = {
        source: (pk, revision)
        for source, pk, revision, language in _chunks(project_id).values_list(
            "source", "pk", "last_seq", "language"
        )
        if language == spoken or source not in wanted
    }
    remove(_chunks(project_id).filter(source__in=there.keys() - wanted.keys()))
    fresh = [pk for pk, revision in wanted.items() if there.get(pk, (None, None))[1] != revision]
    written = 0
    for start in range(0, len(fresh), BATCH):
        written += _write(project_id, fresh[start : start + BATCH], embedder)
    EntriesChanged.objects.filter(project=project_id, pk__in=heeded).delete()
    return written


def tellable(project_id: UUID) -> QuerySet[Entry]:
    """The summaries that anyone in the project may be told; search asks the same (search.py)."""
    entries = Entry.objects.in_the_layers().filter(project=project_id, withheld=False)
    return entries.filter(granularity=CONVERSATION).exclude(summary="")


def _chunks(project_id: UUID) -> QuerySet[Chunk]:
    return Chunk.objects.filter(project=project_id, source_type=SourceType.ENTRY)


def _write(project_id: UUID, ids: Sequence[UUID], embedder: Embedder) -> int:
    entries = list(tellable(project_id).filter(pk__in=ids).select_related("project"))
    known = dict(_chunks(project_id).filter(source__in=ids).values_list("source", "pk"))
    plan = writing.prepare([_chunk(entry, known) for entry in entries], [], embedder)
    with transaction.atomic():
        same = _unchanged(project_id, entries)
        return writing.write(plan, same)


def _chunk(entry: Entry, known: Mapping[UUID, UUID]) -> Chunk:
    chunk = Chunk(
        project_id=entry.project_id,
        source_type=SourceType.ENTRY,
        source=entry.pk,
        first_seq=FIRST,
        last_seq=entry.revision,
        role=Role.ASSISTANT,
        speaker="",
        text=entry.summary,
        occurred_at=entry.last_source_at,
        language=entry.project.search_language_name,
    )
    chunk.pk = known.get(entry.pk, chunk.pk)
    return chunk


def _unchanged(project_id: UUID, entries: Iterable[Entry]) -> set[UUID]:
    """Those that are still at the revision that was read, locked so that they stay so."""
    read = {entry.pk: entry.revision for entry in entries}
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT id, revision FROM memory_entry WHERE project_id = %s AND id = ANY(%s)"
            " ORDER BY id FOR SHARE",
            [project_id, list(read)],
        )
        return {pk for pk, revision in cursor.fetchall() if read[pk] == revision}
