"""Keeps the summaries of conversations, and facts, up to date in the search index.

Members may read all these summaries, even of conversations whose messages they may not see.
"""

import logging
from collections.abc import Callable, Sequence
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from chat.models import Role
from memory.models import Chunk, EntriesChanged, Entry, SourceType
from memory.models.entries import CONVERSATION
from memory.recall import chunk_writer, fact_chunks
from memory.recall.embedders import Embedder, EmbedderError
from projects.core.database import fetch
from projects.models import Project, delete_rows, in_project

log = logging.getLogger(__name__)

# The number of entries that are read, embedded and committed at once.
BATCH_SIZE = 500
# `first_seq` of all chunks of summaries. Their `last_seq` is the revision of the entry.
FIRST_SEQ = 1


def catch_up(
    embedder: Embedder,
    project: Project | None = None,
    may_continue: Callable[[], bool] = lambda: True,
) -> int:
    """Update the chunks of projects whose entries changed. Return the number of chunks written.

    Stops between two projects once `may_continue()` returns false. A project that fails stays due.
    """
    changed = EntriesChanged.objects.filter(in_project(project))
    written = 0
    for project_id in changed.order_by("project").values_list("project", flat=True).distinct():
        if not may_continue():
            break
        try:
            written += update_project(project_id, embedder)
        except EmbedderError as error:
            log.warning("memory_ingest_failed project=%s reason=%s", project_id, error)
        except Exception:
            # Catch every error, so that one project does not keep the others out of the index.
            log.exception("memory_ingest_failed project=%s", project_id)
    return written


def mark_changed(projects: QuerySet[Project]) -> None:
    """Mark the projects, so that their summaries are compared with the entries again."""
    EntriesChanged.objects.bulk_create(
        EntriesChanged(project_id=pk) for pk in projects.values_list("pk", flat=True).iterator()
    )


def update_project(project_id: UUID, embedder: Embedder) -> int:
    """Write the chunks of new and changed summaries and facts. Delete the chunks of summaries that
    are deleted, hidden or withheld.

    Return the number of chunks written. Raises EmbedderError.
    """
    # Rows inserted after this query are processed by the next run.
    handled = list(EntriesChanged.objects.filter(project=project_id).values_list("pk", flat=True))
    project = Project.objects.filter(pk=project_id).first()
    if project is None:
        return 0
    revisions = dict(searchable_entries(project_id).values_list("pk", "revision"))
    rows = _chunks(project_id).values_list("source", "last_seq", "language")
    indexed = {
        source: revision
        for source, revision, language in rows
        if language == project.search_language_name or source not in revisions
    }
    delete_rows(_chunks(project_id).filter(source__in=indexed.keys() - revisions.keys()))
    changed = [pk for pk, revision in revisions.items() if indexed.get(pk) != revision]
    written = 0
    for start in range(0, len(changed), BATCH_SIZE):
        written += _write(project_id, changed[start : start + BATCH_SIZE], embedder)
    written += fact_chunks.update_project(project)
    EntriesChanged.objects.filter(project=project_id, pk__in=handled).delete()
    return written


def searchable_entries(project_id: UUID) -> QuerySet[Entry]:
    """Return the summaries of conversations, which all members may read. VISIBLE_SUMMARY in
    search.py must match. Files are found by their passages, so that they displace no conversation.
    """
    entries = Entry.objects.in_layers().filter(project=project_id, withheld=False)
    return entries.filter(granularity=CONVERSATION, file=None).exclude(summary="")


def _chunks(project_id: UUID) -> QuerySet[Chunk]:
    return Chunk.objects.filter(project=project_id, source_type=SourceType.ENTRY)


def _write(project_id: UUID, ids: Sequence[UUID], embedder: Embedder) -> int:
    """Embed and write the summaries of the entries that do not change in the meantime."""
    entries = list(searchable_entries(project_id).filter(pk__in=ids).select_related("project"))
    existing = dict(_chunks(project_id).filter(source__in=ids).values_list("source", "pk"))
    chunks = [make_chunk(entry) for entry in entries]
    for chunk in chunks:
        chunk.pk = existing.get(chunk.source, chunk.pk)
    plan = chunk_writer.prepare(chunks, [], embedder)
    revisions = {entry.pk: entry.revision for entry in entries}
    with transaction.atomic():
        # Locked, so that the revisions do not change before the commit.
        rows = fetch(
            "SELECT id, revision FROM memory_entry WHERE project_id = %s AND id = ANY(%s)"
            " ORDER BY id FOR SHARE",
            [project_id, list(revisions)],
        )
        return chunk_writer.write(plan, {pk for pk, number in rows if revisions[pk] == number})


def make_chunk(entry: Entry) -> Chunk:
    """Return the unsaved chunk of a summary."""
    return Chunk(
        project_id=entry.project_id,
        source_type=SourceType.ENTRY,
        source=entry.pk,
        first_seq=FIRST_SEQ,
        last_seq=entry.revision,
        role=Role.ASSISTANT,
        text=entry.summary,
        occurred_at=entry.last_source_at,
        language=entry.project.search_language_name,
    )
