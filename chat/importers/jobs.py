"""Files of conversations on their way in: received, carried out in the background, swept.

An import is at work while its process holds a lock of the database that bears its name. The lock
goes with the process, so what a killed one left is free to be taken up by the next; and since a
message that was imported once is skipped from then on, taking up means beginning again.
"""

import logging
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import BinaryIO, cast
from uuid import UUID

from celery import current_app
from celery.exceptions import SoftTimeLimitExceeded
from django.conf import settings
from django.core.files import File
from django.db import connection, transaction
from django.db.models import Exists, OuterRef, Q
from django.db.models.functions import Now
from django.db.models.signals import post_delete
from django.dispatch import receiver
from django.http import Http404

from chat import files
from chat.importers import FileResult, Refused, check, import_file
from chat.models import Import, ImportedStretch, ImportState, Message
from chat.signals import import_finished
from chat.storable import storable
from projects.access import project_for_writing
from projects.models import Project

log = logging.getLogger(__name__)

UNFINISHED = (ImportState.WAITING, ImportState.RUNNING)
# Seconds that one task works at an import; the rest is for another task, so that none comes near
# the time limit of tasks.
STRETCH = 600.0
# How long an import may wait before the message that should have started it counts as lost.
LOST_AFTER = timedelta(minutes=2)
# Sets the locks of imports apart from other locks of the same database.
LOCKS = 0x696D706F7274  # "import"


class OutOfTime(Exception):
    """The stretch is over, and the import is not."""


class Gone(Exception):
    """The import was forgotten while it was at work."""


def receive(project: Project, user, file: File, format: str = "auto") -> Import:
    """Keeps an uploaded file and has it imported into `project` on behalf of `user`.

    Raises Refused for a file that is too large, or that is no conversations at first sight.
    """
    name = storable(file.name or "")[-200:]
    if (file.size or 0) > settings.MAX_UPLOAD_MB * 2**20:
        raise Refused(f"It is larger than {settings.MAX_UPLOAD_MB} MB.")
    check(name, cast(BinaryIO, file.file), format)
    file.seek(0)
    upload = Import(project=project, user=user, name=name, format=format)
    upload.file.save(name, file, save=False)
    upload.save()
    # Should the broker be away, the sweep finds it.
    transaction.on_commit(lambda: enqueue(upload.pk), robust=True)
    return upload


def bring_in(
    project: Project,
    user,
    name: str,
    file: BinaryIO,
    format: str = "auto",
    progress: Callable[[int, int], None] | None = None,
) -> FileResult:
    """As `import_file`, at once, and on record as an import of `user`, to be revoked as a whole.

    Until it is through it counts as failed. Raises Refused.
    """
    upload = Import.objects.create(
        project=project,
        user=user,
        name=storable(name)[-200:],
        format=format,
        state=ImportState.FAILED,
        errors=["It was broken off."],
    )
    row = Import.objects.filter(pk=upload.pk)
    result = FileResult()

    def note(done: int, total: int) -> None:
        if not row.update(imported=result.imported):
            raise Refused("It was forgotten meanwhile.")
        if progress:
            progress(done, total)

    try:
        import_file(project, user, name, file, format, note, result, upload)
    except Refused as reason:
        row.update(errors=[str(reason)], finished_at=Now())
        raise
    row.update(
        state=ImportState.DONE,
        progress=100,
        sessions=result.sessions,
        imported=result.imported,
        skipped=result.skipped,
        refused=result.refused,
        errors=list(result.errors),
        finished_at=Now(),
    )
    return result


def enqueue(import_id: UUID) -> None:
    current_app.send_task("chat.tasks.run_import", [str(import_id)])


def run(import_id: UUID, stretch: float = STRETCH) -> bool:
    """Works at one import for some `stretch` of seconds; False when there is more to do.

    Nothing happens when it is finished already, or another process is at it.
    """
    with _alone(import_id) as alone:
        unfinished = Import.objects.filter(pk=import_id, state__in=UNFINISHED)
        if not alone or not unfinished.update(state=ImportState.RUNNING):
            return True
        upload = Import.objects.select_related("project", "user").get(pk=import_id)
        try:
            _carry_out(upload, time.monotonic() + stretch)
        except OutOfTime:
            return False
        except Gone:
            log.info("import_forgotten import=%s", import_id)
        except Refused as reason:
            _finish(upload, ImportState.FAILED, errors=[str(reason)])
        except SoftTimeLimitExceeded:
            _finish(upload, ImportState.FAILED, errors=["It took too long to read."])
        except Exception:
            # Whatever went wrong, whoever uploaded the file is told.
            log.exception("import_failed import=%s", import_id)
            _finish(upload, ImportState.FAILED, errors=["Strata itself failed while importing."])
    return True


def _carry_out(upload: Import, deadline: float) -> None:
    """Raises Refused; OutOfTime when the deadline (of the monotonic clock) is over; and Gone."""
    try:
        project_for_writing(upload.user, upload.project.slug)
    except Http404:
        raise Refused("You may no longer write in this project.") from None
    result = FileResult()
    before = upload.imported

    def note(done: int, total: int) -> None:
        if time.monotonic() > deadline:
            raise OutOfTime
        # In the transaction of what it counts. What an earlier stretch imported is skipped in this.
        there = Import.objects.filter(pk=upload.pk).update(
            progress=100 * done // total, imported=before + result.imported
        )
        if not there:
            raise Gone

    with _file(upload) as file:
        import_file(
            upload.project, upload.user, upload.name, file, upload.format, note, result, upload
        )
    _finish(
        upload,
        ImportState.DONE,
        progress=100,
        sessions=result.sessions,
        imported=before + result.imported,
        skipped=max(result.skipped - before, 0),
        refused=result.refused,
        errors=list(result.errors),
    )


@contextmanager
def _file(upload: Import) -> Iterator[BinaryIO]:
    try:
        file = upload.file.open("rb")
    except (OSError, ValueError):
        raise Refused("The uploaded file is gone.") from None
    with file:
        yield cast(BinaryIO, file)


def _finish(upload: Import, state: ImportState, **changes: object) -> None:
    with transaction.atomic():
        rows = Import.objects.filter(pk=upload.pk, state=ImportState.RUNNING)
        if rows.update(state=state, finished_at=Now(), **changes):
            finished = Import.objects.get(pk=upload.pk)
            import_finished.send(sender=Import, upload=finished)
    _discard_file(upload)


def _discard_file(upload: Import) -> None:
    with transaction.atomic():
        if upload.file.name:
            files.remove(upload.project_id, upload.file.name)
        Import.objects.filter(pk=upload.pk).update(file="")


@receiver(post_delete, sender=Import)
def remove_file(instance: Import, **kwargs: object) -> None:
    """The file goes when it is certain that its import went."""
    if instance.file.name:
        files.remove(instance.project_id, instance.file.name)


@dataclass(frozen=True)
class Reach:
    """What goes with an import: the conversations that it made, the messages that came into these
    by others or since, and those that it added to conversations of others.
    """

    sessions: int
    since: int
    added: int


def reach_of(upload: Import) -> Reach:
    stretches = ImportedStretch.objects.filter(project=upload.project_id, upload=upload)
    here = stretches.filter(
        session=OuterRef("session"), first_seq__lte=OuterRef("seq"), last_seq__gte=OuterRef("seq")
    )
    made = stretches.whole().values("session")
    messages = Message.objects.filter(project=upload.project_id, forgotten_at=None)
    return Reach(
        sessions=made.count(),
        since=messages.filter(~Exists(here), session__in=made).count(),
        added=messages.filter(Exists(here)).exclude(session__in=made).count(),
    )


def sweep() -> list[UUID]:
    """The imports that nobody is at, though somebody should be. What is left of finished ones
    goes.
    """
    for upload in Import.objects.exclude(state__in=UNFINISHED).exclude(file="")[:100]:
        _discard_file(upload)
    lost = Q(state=ImportState.WAITING, created_at__lt=Now() - LOST_AFTER)
    found = []
    running = Import.objects.filter(lost | Q(state=ImportState.RUNNING)).order_by("created_at")
    for import_id in running.values_list("pk", flat=True)[:100]:
        with _alone(import_id) as alone:
            if alone:
                found.append(import_id)
    return found


@contextmanager
def _alone(import_id: UUID) -> Iterator[bool]:
    """Whether nobody else is at this import; nobody will be before the block ends.

    The lock is that of a transaction on a connection of its own: the batches commit meanwhile, and
    behind a pooler of connections a lock of a session would belong to anyone.
    """
    guard = connection.copy()
    try:
        guard.set_autocommit(False)
        with guard.cursor() as cursor:
            question = "SELECT pg_try_advisory_xact_lock(hashtextextended(%s, %s))"
            cursor.execute(question, [str(import_id), LOCKS])
            [alone] = cursor.fetchone()
        yield alone
    finally:
        if guard.connection is not None:
            guard.rollback()
        guard.close()
