"""Reads and indexes files under a lease, in steps. If a worker is killed, another one continues.

The bytes are read once, in a subprocess with limits, and stored as passages. Passages are indexed
in batches. The revision counts the passages that search already finds. The last step removes the
chunks of earlier versions.
"""

import logging
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from tempfile import TemporaryDirectory

from django.conf import settings
from django.core.files.storage import default_storage
from django.db import transaction
from django.db.models import F

from chat.models import Role
from memory import leases
from memory.files import reading, summaries
from memory.files.passages import chunk_text, place, speaker_of, split_sections
from memory.leases import Lease, LeaseLostError
from memory.models import Chunk, File, FilePassage, FileRevision, FileState, SourceType
from memory.models.files import FileRevisionQuerySet
from memory.recall import chunk_writer, embedders
from projects.core.errors import UnavailableError
from projects.core.text import storable
from projects.models import Project, delete_rows

log = logging.getLogger(__name__)

# The numbers of passages that are stored in one transaction, and that are indexed in one batch.
STORED_BATCH_SIZE = 1_000
INDEXED_BATCH_SIZE = 500
# A file whose last attempt killed the worker is not read again after this number of failures.
MAX_ATTEMPTS = 5


def due() -> FileRevisionQuerySet:
    return FileRevision.objects.unfinished().ready()


def catch_up(seconds: float) -> bool:
    """Read and index due files for at most `seconds`. Return False if more files are due."""
    end = time.monotonic() + seconds
    for pk in list(due().unleased().order_by("created_at").values_list("pk", flat=True)[:100]):
        if time.monotonic() > end:
            return False
        process(pk)
    return not due().unleased().exists()


def process(pk) -> None:
    """Process one revision from its current state to the end, unless another worker does."""
    leases.run(due(), pk, "file", _work)


def _work(lease: Lease) -> None:
    rows = FileRevision.objects.filter(project=lease.project)
    revision = rows.select_related("document", "project").filter(pk=lease.pk).first()
    if revision is None:
        raise LeaseLostError
    if revision.state in (FileState.WAITING, FileState.READING) and not _read(lease, revision):
        return
    _index(lease, revision)
    _finish(lease, revision)


def _read(lease: Lease, revision: FileRevision) -> bool:
    """Read the file and store its passages. Return False if the file cannot be read."""
    if revision.state == FileState.READING and revision.failures >= MAX_ATTEMPTS:
        return _give_up(lease, "interrupted")
    lease.row.update(state=FileState.READING, failures=F("failures") + 1)
    try:
        with local_copy(revision) as path:
            document = reading.read_document(path, revision.document.name, limits(), lease.renew)
    except reading.UnreadableFileError as error:
        return _give_up(lease, error.reason)
    except Exception:
        # This process is alive, so its attempt does not count. `leases.run` counts the failure.
        lease.row.update(state=FileState.WAITING, failures=revision.failures)
        raise
    passages = (
        FilePassage(
            project_id=revision.project_id, revision=revision, number=number, **asdict(passage)
        )
        for number, passage in enumerate(split_sections(document.sections), start=1)
    )
    with transaction.atomic():
        lease.fence()
        delete_rows(FilePassage.objects.filter(project=revision.project_id, revision=revision))
        revision.passage_count = 0
        while batch := list(islice(passages, STORED_BATCH_SIZE)):
            FilePassage.objects.bulk_create(batch)
            revision.passage_count += len(batch)
        revision.state = FileState.INDEXING
        revision.indexed_passages = 0
        revision.media_type = document.media_type[:100]
        revision.title = " ".join(storable(document.title).split())[:300]
        revision.page_count = document.page_count or 0
        revision.warnings = [storable(str(warning))[:500] for warning in document.warnings][:20]
        revision.save(
            update_fields=[
                *("passage_count", "state", "indexed_passages"),
                *("media_type", "title", "page_count", "warnings", "failures"),
            ]
        )
    if not revision.passage_count:
        return _give_up(lease, "no_text")
    return True


def limits() -> reading.ReadingLimits:
    """Return the limits for reading, including those that administrators have set."""
    return reading.ReadingLimits(
        max_bytes=settings.MAX_FILE_MB * 2**20, max_pages=settings.MAX_FILE_PAGES
    )


def explain(reason: str) -> str:
    """Return a stored reason or warning as a sentence in the reader's language."""
    return reading.explain(reason, limits())


def _give_up(lease: Lease, reason: str) -> bool:
    """Store the code of the reason. Only a user can start another attempt."""
    lease.row.update(state=FileState.FAILED, reason=reason, lease_holder=None, lease_until=None)
    return False


@contextmanager
def local_copy(revision: FileRevision) -> Iterator[Path]:
    """Yield the path of the stored file, or of a temporary copy if it is in a bucket.

    Raises UnavailableError if it cannot be opened.
    """
    try:
        path = default_storage.path(str(revision.file.name))
    except NotImplementedError:
        with TemporaryDirectory() as folder:
            copy = Path(folder) / "file"
            try:
                with revision.file.open("rb") as source, copy.open("wb") as target:
                    shutil.copyfileobj(source, target)
            except Exception as error:
                # Storages raise their own exceptions.
                log.warning("file_not_opened revision=%s", revision.pk, exc_info=error)
                raise UnavailableError from error
            yield copy
        return
    if not Path(path).exists():
        log.error("file_missing revision=%s", revision.pk)
        raise UnavailableError
    yield Path(path)


def _index(lease: Lease, revision: FileRevision) -> None:
    """Write chunks for the passages that have none, one batch at a time."""
    embedder = embedders.get()
    rows = FilePassage.objects.filter(project=revision.project_id, revision=revision)
    while passages := list(
        rows.filter(number__gt=revision.indexed_passages).order_by("number")[:INDEXED_BATCH_SIZE]
    ):
        chunks = [make_chunk(revision, passage) for passage in passages]
        plan = chunk_writer.prepare(chunks, [], embedder, lease.renew)
        with transaction.atomic():
            lease.fence()
            chunk_writer.write(plan, {revision.pk})
            revision.indexed_passages = passages[-1].number
            lease.row.update(indexed_passages=revision.indexed_passages)


def make_chunk(revision: FileRevision, passage: FilePassage) -> Chunk:
    """Return the unsaved chunk of a passage. It has the same id as the passage."""
    document = revision.document
    chunk = Chunk(
        id=passage.pk,
        project_id=revision.project_id,
        source_type=SourceType.FILE,
        source=revision.pk,
        session_id=document.session_id,
        first_seq=passage.number,
        last_seq=passage.number,
        role=Role.USER,
        speaker=place(document.name, passage.label, speaker_of(passage.headings, passage.text)),
        text=chunk_text(passage.headings, passage.text),
        occurred_at=revision.created_at,
        language=revision.project.search_language_name,
    )
    chunk.payer_id = revision.added_by_id
    return chunk


@transaction.atomic
def _finish(lease: Lease, revision: FileRevision) -> None:
    """Release the revision. Remove the chunks of all versions except the latest, and schedule the
    summary of the latest.

    If the search language of the project changed meanwhile, the revision stays due and is indexed
    again.
    """
    # In the order in which forgetting locks them. Another version may be finished meanwhile.
    project = Project.objects.select_for_update(no_key=True).filter(pk=lease.project).first()
    if project is None:
        raise LeaseLostError
    document = File.objects.select_for_update().filter(pk=revision.document_id)
    document.filter(project=lease.project).first()
    lease.fence()
    chunks = Chunk.objects.filter(project=lease.project, source_type=SourceType.FILE)
    written = chunks.filter(source=revision.pk)
    if written.exclude(language=project.search_language_name).exists():
        lease.row.update(indexed_passages=0)
        lease.release()
        return
    lease.row.update(state=FileState.READY, reason="")
    lease.release()
    ready = FileRevision.objects.filter(
        project=lease.project, document=revision.document_id, state=FileState.READY
    )
    latest, *earlier = ready.order_by("-number").values_list("pk", flat=True)
    if latest == revision.pk:
        summaries.request(revision)
    delete_rows(chunks.filter(source__in=earlier))
