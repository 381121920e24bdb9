"""Import a project export into an empty project, completely or not at all."""

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from uuid import UUID
from zipfile import ZipFile

from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.exceptions import ValidationError
from django.core.files.base import ContentFile
from django.db import DataError, IntegrityError, transaction
from django.db.models import CharField, Exists, F, Model, OuterRef
from django.db.models.functions import Cast

from chat.attachments import file_removal, images
from chat.importers.base import FileResult, ImportRejectedError, source_digest
from chat.importers.zip_files import open_member
from chat.models import Attachment, Message, SavedPrompt, Session
from memory.forgetting.scope import TombstoneScope
from memory.forgetting.service import ForgetScope, forget
from memory.layers.bank import item_tokens
from memory.layers.coverage import fingerprints, without_sources
from memory.layers.periods import Granularity
from memory.models import (
    Block,
    Entry,
    EntryState,
    EntryStatus,
    Fact,
    File,
    FileRevision,
    FileState,
    IndexCursor,
    Tombstone,
    TombstoneKind,
)
from memory.models.cursors import mark_layers_changed
from memory.models.entries import CONVERSATION
from memory.moderation.entry_operations import OUTDATED
from memory.portability.archive import Row, check_archive, read_ids, read_settings, recognises
from memory.portability.rows import ImportContext, convert_rows, derived_id, parse_value
from memory.portability.tables import SETTINGS, TABLES, ExportTable, setting_columns
from memory.wakeups import wake_indexing, wake_reading
from projects.models import MemberRole, Project, delete_rows

__all__ = ["import_project", "recognises", "import_archive"]

# The number of rows in one INSERT statement.
BATCH_SIZE = 1_000
# The kinds of tombstones whose subject is the id of a row that an export may contain.
FORGOTTEN_ROWS: dict[TombstoneKind, type[Model]] = {
    TombstoneKind.SESSION: Session,
    TombstoneKind.MESSAGE: Message,
    TombstoneKind.UNKEPT: Message,
    TombstoneKind.FILE: File,
    TombstoneKind.ENTRY: Entry,
    TombstoneKind.RECORD: Fact,
    TombstoneKind.BLOCK: Block,
}


def import_archive(
    project: Project, owner, archive: ZipFile, result: FileResult, match_members: bool = False
) -> None:
    """Import an export for `owner`. Raises `ImportRejectedError` unless they are an owner."""
    if not project.memberships.filter(user=owner, role=MemberRole.OWNER).exists():
        raise ImportRejectedError("Only an owner of the project can import a project export.")
    import_project(project, owner, archive, result, match_members)


def import_project(
    project: Project, owner, archive: ZipFile, result: FileResult, match_members: bool = False
) -> None:
    """Import everything in `archive` into the empty project `project`.

    A file can name any author. Therefore only the username of `owner` is matched with an account;
    with `match_members`, an option for administrators, the usernames of all members are matched.
    Rows that belong only to another user are skipped, and messages of other users keep only the
    name. Objects that were forgotten in this project are not imported again. Raises
    `ImportRejectedError`; nothing is written then.
    """
    check_archive(archive)
    with database_errors_refused(), files_removed_on_error() as files, transaction.atomic():
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        for model in (Session, Entry, Block, Fact, File, SavedPrompt):
            if model._default_manager.filter(project=project).exists():
                raise ImportRejectedError(
                    "A project export can only be imported into an empty project: create a new one."
                )
        members = get_user_model().objects.filter(memberships__project=project)
        users = members if match_members else [owner]
        known = {user.get_username(): user for user in users}
        context = ImportContext(project, known)
        for table in TABLES:
            context.ids[table.model] = set(read_ids(archive, table))
        tombstones = Tombstone.objects.filter(project=project)
        forgotten = set(tombstones.values_list("kind", "subject"))
        for table in TABLES:
            rows = convert_rows(archive, table, context)
            if table.model is Attachment:
                import_images(archive, rows, files, result)
            elif table.model is FileRevision:
                import_files(archive, rows, context, files, result)
            else:
                import_table(table, rows, project)
        check_parents(project)
        import_settings(archive, project)
        adapt_entries(project)
        start_memory(project)
        if forgotten:
            forget_again(context, forgotten)
    result.sessions = Session.objects.filter(project=project).count()
    result.imported = Message.objects.filter(project=project, forgotten_at=None).count()


@contextmanager
def files_removed_on_error() -> Iterator[list[Attachment | FileRevision]]:
    """Yield a list for the rows whose files were written. Delete these files if an error occurs.

    The transaction removes the rows, but not the files. Ctrl-C counts as an error.
    """
    written: list[Attachment | FileRevision] = []
    try:
        yield written
    except BaseException:
        for row in written:
            row.file.delete(save=False)
        raise


@contextmanager
def database_errors_refused() -> Iterator[None]:
    """Turn database errors into `ImportRejectedError` with the constraint, but without row data."""
    try:
        yield
    except (IntegrityError, DataError) as error:
        rule = getattr(getattr(error.__cause__, "diag", None), "constraint_name", None)
        raise ImportRejectedError(
            f"The export is inconsistent ({rule or 'a value does not fit'})."
        ) from error


def check_parents(project: Project) -> None:
    """Raise `ImportRejectedError` if an entry or a message may be above itself.

    Other code follows parents until there is none.
    """
    children = Entry.objects.filter(project=project, parent__isnull=False).order_by()
    pairs = children.values_list("granularity", "parent__granularity").distinct()
    are_above = all(Granularity(parent).depth > Granularity(child).depth for child, parent in pairs)
    messages = Message.objects.filter(project=project, parent__seq__gte=F("seq"))
    if not are_above or messages.exists():
        raise ImportRejectedError("The export is inconsistent (a parent is not above its child).")


def import_table(table: ExportTable, rows: Iterator[tuple[Any, Row]], project: Project) -> None:
    if table.model is EntryState:
        # The trigger has logged the states of the new entries. The export contains the real log.
        EntryState.objects.filter(project=project).delete()
    instances = (instance for instance, _ in rows)
    while batch := list(islice(instances, BATCH_SIZE)):
        # The project may already have a tombstone for the same object.
        ignore_conflicts = table.model is Tombstone
        table.model._default_manager.bulk_create(batch, ignore_conflicts=ignore_conflicts)


def import_images(
    archive: ZipFile,
    rows: Iterator[tuple[Attachment, Row]],
    written: list[Attachment | FileRevision],
    result: FileResult,
) -> None:
    """Re-encode each image like an upload. Skip damaged images, and report them as errors."""
    names = set(archive.namelist())
    for image, row in rows:
        name = f"images/{row.get('id')}"
        try:
            if name not in names:
                raise images.ImageRejectedError("it is not in the export.")
            file = open_member(archive, name)
            encoded = images.reencode(file.read(images.MAX_IMAGE_BYTES + 1))
        except (ImportRejectedError, images.ImageRejectedError) as error:
            result.errors.append(f"Image “{image.name}”: {error}")
            continue
        image.media_type, image.sha256 = encoded.media_type, encoded.sha256
        image.width, image.height, image.size = encoded.width, encoded.height, len(encoded.data)
        written.append(image)
        file_removal.save_file(image, image.name, ContentFile(encoded.data))
        image.save(force_insert=True)


def import_files(
    archive: ZipFile,
    rows: Iterator[tuple[FileRevision, Row]],
    context: ImportContext,
    written: list[Attachment | FileRevision],
    result: FileResult,
) -> None:
    """Store the bytes of each version of a file. Skip and report a version without bytes.

    Raises `ImportRejectedError` if the files exceed the project's quota.
    """
    names = set(archive.namelist())
    total_bytes = 0
    for revision, row in rows:
        name = f"files/{row.get('id')}"
        try:
            if name not in names:
                raise ImportRejectedError("it is not in the export.")
            data = open_member(archive, name).read(settings.MAX_FILE_MB * 2**20 + 1)
            if len(data) > settings.MAX_FILE_MB * 2**20:
                raise ImportRejectedError(f"it is larger than {settings.MAX_FILE_MB} MB.")
        except ImportRejectedError as error:
            result.errors.append(f"Version {revision.number} of a file: {error}")
            context.skipped.add(row.get("id"))
            continue
        total_bytes += len(data)
        if total_bytes > settings.PROJECT_FILES_MB * 2**20:
            most = settings.PROJECT_FILES_MB
            raise ImportRejectedError(f"The files are larger than {most} MB together.")
        revision.size, revision.sha256 = len(data), hashlib.sha256(data).hexdigest()
        written.append(revision)
        file_removal.save_file(revision, "file", ContentFile(data))
        revision.save(force_insert=True)
        context.project.has_files = True
    context.project.save(update_fields=["has_files"])
    # Only the latest version with text is indexed and summarised, as in `adding.index_again`.
    indexing = FileRevision.objects.filter(project=context.project, state=FileState.INDEXING)
    later = indexing.filter(document=OuterRef("document"), number__gt=OuterRef("number"))
    indexing.filter(Exists(later)).update(state=FileState.READY)
    # A file without a version has no state and no text.
    versions = FileRevision.objects.filter(project=context.project, document=OuterRef("pk"))
    delete_rows(File.objects.filter(~Exists(versions), project=context.project))


def import_settings(archive: ZipFile, project: Project) -> None:
    """Apply the exported settings, without name and slug. Raises `ImportRejectedError`."""
    values = read_settings(archive)
    changed = [column for column in setting_columns() if column.name in values]
    for column in changed:
        setattr(project, column.attname, parse_value(column, values[column.name], SETTINGS))
    try:
        project.clean_fields()
    except ValidationError as error:
        raise ImportRejectedError(f"{SETTINGS}: {'; '.join(error.messages)}") from error
    project.save(update_fields=[column.name for column in changed])


def adapt_entries(project: Project) -> None:
    """Update the columns of imported entries that depend on ids and on sources.

    An entry whose sources were not exported keeps its text: it does not wait for a rewrite. The
    hashes of the sources contain ids. Without the new hashes, a chat that is deleted and restored
    would lose corrections of its summaries.
    """
    rows = without_sources(project.entries.filter(withheld=False).exclude(summary=""))
    unsourced = project.entries.filter(pk__in=list(rows.values_list("pk", flat=True)))
    unsourced.update(sources_hash="")
    stale = unsourced.filter(state=EntryStatus.STALE)
    stale.exclude(parent=None).update(state=EntryStatus.ABSORBED)
    stale.update(state=EntryStatus.LIVE)
    entries = project.entries.filter(granularity=CONVERSATION)
    current = entries.exclude(state=EntryStatus.STALE).exclude(sources_hash=OUTDATED)
    current.exclude(file=None).update(sources_hash=Cast("file_id", CharField()))
    changed = []
    for session in Session.objects.filter(project=project, cursor__summarised_through__gt=0):
        covering = list(current.filter(session=session, file=None))
        ranges = [(entry.first_seq or 0, entry.last_seq or 0) for entry in covering]
        for entry, digest in zip(covering, fingerprints(session, ranges), strict=True):
            entry.sources_hash = digest
        changed += covering
    Entry.objects.bulk_update(changed, ["sources_hash"], batch_size=BATCH_SIZE)


def start_memory(project: Project) -> None:
    """Count the tokens of the entries. Schedule the project for indexing and a memory cycle."""
    entries = []
    for entry in project.entries.select_related("session").iterator(chunk_size=BATCH_SIZE):
        entry.tokens = item_tokens(entry.as_item())
        entries.append(entry)
    Entry.objects.bulk_update(entries, ["tokens"], batch_size=BATCH_SIZE)
    sessions = Session.objects.filter(project=project).values_list("pk", flat=True)
    cursors = [IndexCursor(session_id=pk, project=project, wanted=1) for pk in sessions]
    IndexCursor.objects.bulk_create(cursors, batch_size=BATCH_SIZE)
    mark_layers_changed(project.pk)
    wake_indexing()
    wake_reading()


def forget_again(context: ImportContext, forgotten: set[tuple[str, str]]) -> None:
    """Forget the imported rows for which this project has tombstones. `forgotten` are pairs of the
    kind and the subject of a tombstone.
    """
    project = context.project

    def is_source(*keys: str | None) -> bool:
        digest = source_digest(*(key or "" for key in keys))
        return (TombstoneKind.SOURCE, digest) in forgotten

    found: dict[TombstoneKind, set[UUID]] = {}
    for kind, model in FORGOTTEN_ROWS.items():
        ids = {exported: derived_id(project.pk, exported) for exported in context.ids[model]}
        found[kind] = {
            pk
            for exported, pk in ids.items()
            if {(kind, str(exported)), (kind, str(pk))} & forgotten
        }
    for session in Session.objects.filter(project=project).exclude(source_key=None):
        if is_source(session.source_key):
            found[TombstoneKind.SESSION].add(session.pk)
    imported = Message.objects.filter(project=project).exclude(source_key=None)
    for pk, key, session_key in imported.values_list("pk", "source_key", "session__source_key"):
        if is_source(session_key, key):
            found[TombstoneKind.MESSAGE].add(pk)
    scopes = [
        *(ForgetScope(session=pk) for pk in found[TombstoneKind.SESSION]),
        *(ForgetScope(file=pk) for pk in found[TombstoneKind.FILE]),
        *(ForgetScope(message=pk) for pk in found[TombstoneKind.MESSAGE]),
        *(ForgetScope(entry=pk) for pk in found[TombstoneKind.ENTRY]),
    ]
    for scope in scopes:
        forget(project, scope)
    others = TombstoneScope(
        unremembered=frozenset(found[TombstoneKind.UNKEPT]),
        facts=frozenset(found[TombstoneKind.RECORD]),
        blocks=frozenset(found[TombstoneKind.BLOCK]),
    )
    if others:
        forget(project, ForgetScope(tombstones=others))
