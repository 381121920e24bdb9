"""Import jobs: background tasks import uploaded files.

A process that runs an import holds an advisory lock with the import's id. If the process dies, the
lock is released, and another process can continue. It starts at the beginning of the file, and
skips messages that are already imported.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import BinaryIO, cast
from uuid import UUID

from celery import current_app
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.files import File
from django.db import OperationalError, connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.utils.translation import gettext
from django.utils.translation import gettext_noop as _

from chat.attachments import file_removal
from chat.importers import FileResult, ImportRejectedError, check_file, import_file
from chat.models import Import, ImportedStretch, ImportState, Message
from chat.signals import import_finished
from projects.core.database import collect_statistics
from projects.core.errors import LimitError
from projects.core.outages import DiskFullError, as_outage
from projects.core.text import storable
from projects.models import Membership, Project

log = logging.getLogger(__name__)

UNFINISHED = (ImportState.WAITING, ImportState.RUNNING)
# The maximum number of imports of one user, in all projects, that are not finished. Each may have a
# file of MAX_UPLOAD_MB.
MAX_UNFINISHED = 3
# Seconds after which another task continues, below the soft time limit of tasks (840 s).
TASK_SECONDS = 600.0
# After this time, the broker message of a waiting import is considered lost.
LOST_AFTER = timedelta(minutes=2)
# The number of imported messages from which the statistics of the tables are collected again.
MIN_ANALYZED_MESSAGES = 1_000
# The first half of the lock id, which separates import locks from other advisory locks.
LOCK_NAMESPACE = 0x696D706F7274  # "import"


class TooManyImportsError(LimitError):
    """The user already has the maximum number of unfinished imports."""

    status = 429
    retry_after_s = 60

    def __init__(self) -> None:
        reason = gettext(
            "You already have %(most)d imports that are not finished. Wait until one of them is."
        )
        super().__init__(reason % {"most": MAX_UNFINISHED}, field="file")


class ImportDeadlineError(Exception):
    """The time of the task was over before the import was complete."""


class ImportDeletedError(Exception):
    """The import was forgotten while it was running."""


def create_import(project: Project, user, file: File, format: str = "auto") -> Import:
    """Store an uploaded file and enqueue its import into `project` by `user`.

    Raises `ImportRejectedError` for a file that is too large or not recognised, and
    `TooManyImportsError`.
    """
    name = storable(file.name or "")[-200:]
    if (file.size or 0) > settings.MAX_UPLOAD_MB * 2**20:
        raise ImportRejectedError(_("It is larger than %s MB.") % settings.MAX_UPLOAD_MB)
    check_file(name, cast(BinaryIO, file.file), format)
    file.seek(0)
    upload = Import(project=project, user=user, name=name, format=format)
    file_removal.write_file(upload, name, file)
    try:
        with transaction.atomic():
            # Locked, so that simultaneous requests are counted.
            get_user_model().objects.select_for_update(no_key=True).filter(pk=user.pk).first()
            if Import.objects.filter(user=user, state__in=UNFINISHED).count() >= MAX_UNFINISHED:
                raise TooManyImportsError
            upload.save()
            file_removal.keep_file(upload)
    except BaseException:
        # With IntegrityError, the project or the user was deleted in the meantime.
        upload.file.delete(save=False)
        raise
    # If the broker is unavailable, `find_interrupted` finds the import later.
    transaction.on_commit(lambda: enqueue(upload.pk), robust=True)
    return upload


def import_now(
    project: Project,
    user,
    name: str,
    file: BinaryIO,
    format: str = "auto",
    progress: Callable[[int, int], None] | None = None,
    match_members: bool = False,
) -> FileResult:
    """Import a file in the foreground. It is recorded as an import of `user`, so that it can be
    forgotten.

    `match_members` has the same meaning as in `import_file`. The state of the import is `failed`
    until it is complete. Raises `ImportRejectedError`.
    """
    upload = Import.objects.create(
        project=project,
        user=user,
        name=storable(name)[-200:],
        format=format,
        state=ImportState.FAILED,
        errors=[_("It was interrupted.")],
    )
    row = Import.objects.filter(pk=upload.pk)
    result = FileResult()

    def store_progress(done: int, total: int) -> None:
        if not row.update(imported=result.imported):
            raise ImportRejectedError(_("It was forgotten meanwhile."))
        if progress:
            progress(done, total)

    try:
        import_file(
            project, user, name, file, format, store_progress, result, upload, match_members
        )
    except ImportRejectedError as error:
        row.update(errors=[str(error)], finished_at=Now())
        raise
    row.update(state=ImportState.RUNNING)
    _finish(upload, ImportState.DONE, **_totals(result))
    return result


def enqueue(import_id: UUID) -> None:
    current_app.send_task("chat.tasks.run_import", [str(import_id)])


def run_import(import_id: UUID) -> bool:
    """Run an import for at most TASK_SECONDS. Return False if it must be continued.

    Does nothing if the import is complete or if another process runs it.
    """
    with _lock(import_id) as is_locked:
        unfinished = Import.objects.filter(pk=import_id, state__in=UNFINISHED)
        if not is_locked or not unfinished.update(state=ImportState.RUNNING):
            return True
        upload = Import.objects.select_related("project", "user").get(pk=import_id)
        try:
            _run(upload, time.monotonic() + TASK_SECONDS)
        except ImportDeadlineError:
            return False
        except ImportDeletedError:
            log.info("import_forgotten import=%s", import_id)
        except ImportRejectedError as error:
            _finish(upload, ImportState.FAILED, errors=[str(error)])
        except SoftTimeLimitExceeded:
            _finish(upload, ImportState.FAILED, errors=[_("It took too long to read.")])
        except Exception as error:
            outage = as_outage(error)
            if isinstance(outage, DiskFullError):
                # The import itself may have filled the disk, and would do so again.
                _finish(upload, ImportState.FAILED, errors=[str(DiskFullError.default_message)])
                return True
            if outage:
                # It stays unfinished, so that the sweep continues it.
                log.warning("import_interrupted import=%s cause=%r", import_id, error)
                return True
            # Catch every error, so that the user who uploaded the file always sees the failure.
            log.exception("import_failed import=%s", import_id)
            _finish(upload, ImportState.FAILED, errors=[_("Strata itself failed while importing.")])
    return True


def _run(upload: Import, deadline: float) -> None:
    """Run the import. Raises `ImportRejectedError`, `ImportDeletedError`, or `ImportDeadlineError`
    at `deadline` (monotonic clock).
    """
    _check_may_write(upload)
    result = FileResult()
    before = upload.imported

    def store_progress(done: int, total: int) -> None:
        if time.monotonic() > deadline:
            raise ImportDeadlineError
        # In the transaction that writes the messages. Messages of earlier tasks are skipped.
        exists = Import.objects.filter(pk=upload.pk).update(
            progress=100 * done // total, imported=before + result.imported
        )
        if not exists:
            raise ImportDeletedError
        _check_may_write(upload)

    with _file(upload) as file:
        import_file(
            upload.project,
            upload.user,
            upload.name,
            file,
            upload.format,
            store_progress,
            result,
            upload,
        )
    _finish(upload, ImportState.DONE, **_totals(result, before))


def _totals(result: FileResult, before: int = 0) -> dict[str, object]:
    """Return the columns of a complete import. Earlier tasks have added `before` messages."""
    return {
        "progress": 100,
        "sessions": result.sessions,
        "imported": before + result.imported,
        "skipped": max(result.skipped - before, 0),
        "refused": result.refused,
        "errors": list(result.errors),
    }


def _check_may_write(upload: Import) -> None:
    """Raise `ImportRejectedError` if the user may no longer write, or the project was archived."""
    writers = Membership.objects.writers().filter(project=upload.project_id)
    if not writers.filter(user=upload.user_id).exists():
        raise ImportRejectedError(_("You may no longer write in this project."))
    if Project.objects.filter(pk=upload.project_id).exclude(archived_at=None).exists():
        raise ImportRejectedError(_("This project is archived."))


@contextmanager
def _file(upload: Import) -> Iterator[BinaryIO]:
    try:
        file = upload.file.open("rb")
    except (OSError, ValueError):
        raise ImportRejectedError(_("The uploaded file is gone.")) from None
    with file:
        yield cast(BinaryIO, file)


def _finish(upload: Import, state: ImportState, **changes: object) -> None:
    with transaction.atomic():
        rows = Import.objects.filter(pk=upload.pk, state=ImportState.RUNNING)
        if rows.update(state=state, finished_at=Now(), **changes):
            # A forget request that reached a part of the import has emptied its name. The errors
            # may quote that part.
            Import.objects.filter(pk=upload.pk, name="").update(errors=[])
            finished = Import.objects.get(pk=upload.pk)
            import_finished.send(sender=Import, upload=finished)
    _discard_file(upload)
    if state == ImportState.DONE and cast(int, changes["imported"]) >= MIN_ANALYZED_MESSAGES:
        collect_statistics()


def _discard_file(upload: Import) -> None:
    with transaction.atomic():
        if upload.file.name:
            file_removal.schedule_removal(upload.project_id, upload.file.name)
        Import.objects.filter(pk=upload.pk).update(file="")


@receiver(post_delete, sender=Import)
def remove_file(instance: Import, **kwargs: object) -> None:
    """Delete the file after the transaction that deletes the import."""
    if instance.file.name:
        file_removal.schedule_removal(instance.project_id, instance.file.name)


@dataclass(frozen=True)
class RevocationScope:
    """The number of objects that are deleted with an import: sessions that it created, later
    messages in these sessions (`since`), and messages that it added to other sessions.
    """

    sessions: int
    since: int
    added: int


def revocation_scope(upload: Import) -> RevocationScope:
    stretches = ImportedStretch.objects.filter(project=upload.project_id, upload=upload)
    in_stretch = stretches.filter(
        session=OuterRef("session"), first_seq__lte=OuterRef("seq"), last_seq__gte=OuterRef("seq")
    )
    created = stretches.of_new_sessions().values("session")
    messages = Message.objects.filter(project=upload.project_id, forgotten_at=None)
    return RevocationScope(
        sessions=created.count(),
        since=messages.filter(~Exists(in_stretch), session__in=created).count(),
        added=messages.filter(Exists(in_stretch)).exclude(session__in=created).count(),
    )


def find_interrupted() -> list[UUID]:
    """Return the unfinished imports that no process runs. Delete the files of finished imports."""
    for upload in Import.objects.exclude(state__in=UNFINISHED).exclude(file="")[:100]:
        _discard_file(upload)
    lost = Q(state=ImportState.WAITING, created_at__lt=Now() - LOST_AFTER)
    interrupted = []
    running = Import.objects.filter(lost | Q(state=ImportState.RUNNING)).order_by("created_at")
    for import_id in running.values_list("pk", flat=True)[:100]:
        with _lock(import_id) as is_locked:
            if is_locked:
                interrupted.append(import_id)
    return interrupted


@contextmanager
def _lock(import_id: UUID) -> Iterator[bool]:
    """Lock the import until the end of the block. Yields False if another process holds the lock.

    The lock belongs to a transaction on a separate connection, because the import commits several
    times. A session-level lock would not work with a connection pooler.
    """
    guard = connection.copy()
    try:
        guard.set_autocommit(False)
        with guard.cursor() as cursor:
            query = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))"
            cursor.execute(query, [str(import_id), LOCK_NAMESPACE])
            [is_locked] = cursor.fetchone()
        yield is_locked
    finally:
        # If the database has closed the connection, the lock is released already.
        with closing(guard), suppress(OperationalError):
            if guard.connection is not None:
                guard.rollback()
