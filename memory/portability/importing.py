"""A project on its way in: into an empty one, whole or not at all."""

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from uuid import UUID
from zipfile import ZipFile

from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.db import DataError, IntegrityError, transaction
from django.db.models import Model

from chat import images
from chat.importers.archives import member
from chat.importers.base import FileResult, Refused
from chat.importers.sources import mark_of
from chat.models import Attachment, Message, Session
from memory.forgetting import Scope, forget
from memory.layers.bank import item_tokens
from memory.models import Block, Entry, EntryState, Fact, Grave, IndexCursor, Tombstone
from memory.models.cursors import nudge
from memory.portability import reading
from memory.portability.identity import renamed
from memory.portability.reading import Row, recognises
from memory.portability.rows import Arrival, rows, value_of
from memory.portability.tables import SETTINGS, TABLES, Table, setting_columns
from memory.tasks import wake_indexing
from projects.models import Project, Role

__all__ = ["import_project", "recognises", "take_in"]

# Rows that are written at a time.
AT_ONCE = 1_000
# What is forgotten again when it comes in again.
_FORGOTTEN = (Grave.MESSAGE, Grave.SESSION, Grave.SOURCE)


def take_in(project: Project, owner, archive: ZipFile, result: FileResult) -> None:
    """As `import_project`, for an owner of the project. Raises Refused."""
    if not project.memberships.filter(user=owner, role=Role.OWNER).exists():
        raise Refused("The export of a project is brought in by an owner.")
    import_project(project, archive, result)


def import_project(project: Project, archive: ZipFile, result: FileResult) -> None:
    """Brings all that `archive` holds into `project`, which has to be empty.

    Members of the project are who they were there, by their usernames; what belongs to anybody
    else alone stays out, and what anybody else said stands under their name. What was forgotten
    here before does not come back. Raises Refused, and nothing is written then.
    """
    reading.check(archive)
    with _refusing(), _kept_files() as files, transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        _refuse_unless_empty(project)
        users = get_user_model().objects.filter(memberships__project=project)
        arrival = Arrival(project, {user.get_username(): user for user in users})
        for table in TABLES:
            arrival.ids[table.model] = set(reading.ids(archive, table))
        stones = Tombstone.objects.filter(project=project, kind__in=_FORGOTTEN)
        buried = set(stones.values_list("subject", flat=True))
        for table in TABLES:
            found = rows(archive, table, arrival)
            if table.model is Attachment:
                _images(archive, found, files, result)
            else:
                _bring_in(table, found, project)
        _settings(archive, project)
        _set_going(arrival)
        _forget_again(arrival, buried)
    sessions = Session.objects.filter(project=project)
    result.sessions = sessions.count()
    result.imported = Message.objects.filter(project=project, forgotten_at=None).count()


@contextmanager
def _kept_files() -> Iterator[list[Attachment]]:
    """The images whose files were written: should the import fail, they go again."""
    kept: list[Attachment] = []
    try:
        yield kept
    except BaseException:
        # Also when the process is told to stop: the rows go with the transaction, files do not.
        for image in kept:
            image.file.delete(save=False)
        raise


@contextmanager
def _refusing() -> Iterator[None]:
    try:
        yield
    except (IntegrityError, DataError) as error:
        # What the database says names rows; only the rule is for people.
        rule = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
        raise Refused(
            f"The export contradicts itself ({rule or 'a value does not fit'})."
        ) from error


def _refuse_unless_empty(project: Project) -> None:
    for model in (Session, Entry, Block, Fact):
        if model._default_manager.filter(project=project).exists():
            raise Refused(
                "The export of a project is brought into an empty project: make a new one."
            )


def _bring_in(table: Table, found: Iterator[tuple[Any, Row]], project: Project) -> None:
    if table.model is EntryState:
        # The trigger has noted how the entries stand at this moment.
        EntryState.objects.filter(project=project).delete()
    written = (row for row, _ in found)
    while some := list(islice(written, AT_ONCE)):
        # One of the same forgotten thing may be here already.
        table.model._default_manager.bulk_create(some, ignore_conflicts=table.model is Tombstone)


def _images(
    archive: ZipFile,
    found: Iterator[tuple[Attachment, Row]],
    kept: list[Attachment],
    result: FileResult,
) -> None:
    """Each made anew, like any upload. A damaged one costs only itself, with a reason."""
    names = set(archive.namelist())
    for image, told in found:
        name = f"images/{told.get('id')}"
        try:
            if name not in names:
                raise images.Refused("it is not in the export.")
            file = member(archive, name)
            encoded = images.reencode(file.read(images.MOST_BYTES + 1))
        except (Refused, images.Refused) as reason:
            result.errors.append(f"Image “{image.name}”: {reason}")
            continue
        image.media_type, image.sha256 = encoded.media_type, encoded.sha256
        image.width, image.height, image.size = encoded.width, encoded.height, len(encoded.data)
        kept.append(image)
        image.file.save(image.name, ContentFile(encoded.data), save=False)
        image.save(force_insert=True)


def _settings(archive: ZipFile, project: Project) -> None:
    """How the project answers and remembers; its name and slug stay. Raises Refused."""
    told = reading.settings(archive)
    changed = [column for column in setting_columns() if column.name in told]
    for column in changed:
        setattr(project, column.attname, value_of(column, told[column.name], SETTINGS))
    try:
        project.clean_fields()
    except ValidationError as error:
        raise Refused(f"{SETTINGS}: {'; '.join(error.messages)}") from error
    project.save(update_fields=[column.name for column in changed])


def _set_going(arrival: Arrival) -> None:
    """Memory takes over: what is told is measured here, and found again soon."""
    project = arrival.project
    measured = []
    for entry in project.entries.select_related("session").iterator(chunk_size=AT_ONCE):
        entry.tokens = item_tokens(entry.as_item())
        measured.append(entry)
    Entry.objects.bulk_update(measured, ["tokens"], batch_size=AT_ONCE)
    sessions = Session.objects.filter(project=project).values_list("pk", flat=True)
    cursors = [IndexCursor(session_id=pk, project=project, wanted=1) for pk in sessions]
    IndexCursor.objects.bulk_create(cursors, batch_size=AT_ONCE)
    nudge(project.pk)
    wake_indexing()


def _forget_again(arrival: Arrival, buried: set[str]) -> None:
    """What was forgotten here before the export was brought in."""
    if not buried:
        return
    project = arrival.project

    def gone(model: type[Model]) -> list[UUID]:
        new = {given: renamed(project.pk, given) for given in arrival.ids[model]}
        return [pk for given, pk in new.items() if {str(given), str(pk)} & buried]

    sessions = set(gone(Session))
    for session in Session.objects.filter(project=project).exclude(source_key=None):
        if mark_of(session.source_key or "") in buried:
            sessions.add(session.pk)
    messages = set(gone(Message))
    keyed = Message.objects.filter(project=project).exclude(source_key=None)
    for pk, key, session_key in keyed.values_list("pk", "source_key", "session__source_key"):
        if mark_of(session_key or "", key or "") in buried:
            messages.add(pk)
    for pk in sessions:
        forget(project, Scope(session=pk))
    for pk in messages:
        forget(project, Scope(message=pk))
