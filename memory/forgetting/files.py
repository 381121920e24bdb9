"""The versions that a forgotten user added to files of others. The files stay without them."""

from uuid import UUID

from django.db.models import Exists, OuterRef, Q

from memory.forgetting.scope import DeletionSet, lock, pks
from memory.models import Chunk, File, FileRevision, FileState, SourceType
from projects.models import Project


def find_versions(project: Project, deletions: DeletionSet) -> None:
    """Add to `deletions` the versions of the forgotten user, and lock their files. A file without
    another version is deleted.
    """
    rows = FileRevision.objects.filter(project=project).exclude(document__in=deletions.files)
    added = rows.filter(deletions.is_earlier("created_at"), added_by=deletions.user)
    files = lock(File.objects.filter(project=project, pk__in=added.values("document")))
    versions = pks(added.filter(document__in=files))
    remaining = rows.exclude(pk__in=versions).filter(document=OuterRef("pk"))
    kept = File.objects.filter(Exists(remaining), project=project, pk__in=files)
    deletions.changed_files = pks(kept)
    deletions.files |= files - deletions.changed_files
    deletions.versions = pks(rows.filter(pk__in=versions, document__in=deletions.changed_files))


def lock_versions(project: Project, deletions: DeletionSet) -> None:
    """Lock the versions to delete, so that no worker adds passages to them meanwhile."""
    doomed = Q(document__in=deletions.files) | Q(pk__in=deletions.versions)
    lock(FileRevision.objects.filter(doomed, project=project))


def find_entries_of_versions(
    project: Project, deletions: DeletionSet
) -> tuple[set[UUID], set[UUID]]:
    """Return the entries of the changed files, and those among them whose file keeps no version
    with text. The other entries may have an earlier text from a deleted version.
    """
    entries = project.entries.filter(file__document__in=deletions.changed_files)
    remaining = FileRevision.objects.filter(
        project=project, document=OuterRef("file__document"), passage_count__gt=0
    ).exclude(pk__in=deletions.versions)
    return pks(entries), pks(entries.filter(~Exists(remaining)))


def remove_versions(project: Project, deletions: DeletionSet) -> int:
    """Delete the versions, and return how many. The latest remaining version of a file is indexed
    and summarised instead of a deleted one, at the next periodic reading of files.
    """
    revisions = FileRevision.objects.filter(project=project)
    for entry in project.entries.filter(file__in=deletions.versions).select_related("file"):
        assert entry.file is not None
        others = revisions.filter(document=entry.file.document_id, passage_count__gt=0)
        latest = others.exclude(pk__in=deletions.versions).order_by("-number")[:1].get()
        entry.file, entry.last_source_at = latest, latest.created_at
        entry.save(update_fields=["file", "last_source_at"])
    revisions.filter(pk__in=deletions.versions).delete()
    for document in project.files.filter(pk__in=deletions.changed_files):
        remaining = revisions.filter(document=document).order_by("-number")
        document.changed_at = remaining[0].created_at
        document.save(update_fields=["changed_at"])
        ready = remaining.filter(state=FileState.READY).first()
        chunks = Chunk.objects.filter(project=project, source_type=SourceType.FILE)
        if ready is not None and not chunks.filter(source=ready.pk).exists():
            ready.state, ready.indexed_passages = FileState.INDEXING, 0
            ready.save(update_fields=["state", "indexed_passages"])
    return len(deletions.versions)
