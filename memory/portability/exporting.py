"""Export a project: read one database snapshot, and write it to a zip file."""

import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from tempfile import TemporaryFile
from typing import IO, Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile

from django.contrib.auth import get_user_model
from django.core.files.storage import default_storage
from django.db import connections, transaction
from django.db.models import Field, Model, QuerySet
from django.http import StreamingHttpResponse
from django.utils import timezone

from chat.models import Attachment, Message, Session, Status
from memory.models import Entry
from memory.portability.tables import (
    FORMAT,
    MANIFEST,
    SCHEMA,
    SETTINGS,
    TABLES,
    VERSION,
    ExportScope,
    ExportTable,
    is_user,
    json_schema,
    setting_columns,
)
from memory.recall import fulltext
from projects.core.database import caught_up_replica, release_connections
from projects.core.http.file_responses import stream_file
from projects.models import Membership

log = logging.getLogger(__name__)

MEDIA_TYPE = "application/zip"
# The number of rows that are in memory at a time.
BATCH_SIZE = 500


def file_name(scope: ExportScope) -> str:
    """Return a name such as `billing-2026-03-12.zip`, or for one user
    `billing-olive-2026-03-12.zip`. The date is that in the project's time zone.
    """
    username = f"-{scope.viewer.get_username()}" if scope.only_own else ""
    return f"{scope.project.slug}{username}-{timezone.localdate(timezone=scope.project.zone)}.zip"


def export(scope: ExportScope, file: IO[bytes]) -> dict[str, int]:
    """Write all data in `scope` to `file`. Return the number of rows by table.

    All rows show the same moment, however long the export takes. Files are copied afterwards,
    without a transaction, because a bucket can be slow. A file that is forgotten in the meantime is
    not exported. Deleted messages are exported without their text, and so are withheld entries for
    a viewer. Other users' private sessions are exported without text, title and `source_key`.
    """
    # Counted again, as the importing server will, so that both servers rank words equally.
    fulltext.recount(scope.project.pk)
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        counts, stored = write_snapshot(scope, archive)
        release_connections()
        for name, path in stored:
            write_stored(name, path, archive)
    return counts


def write_snapshot(
    scope: ExportScope, archive: ZipFile
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Write all rows in one transaction. Return their numbers by table, and the stored files, as
    pairs (name in the archive, path).
    """
    counts: dict[str, int] = {}
    with (
        caught_up_replica() as database,
        transaction.atomic(using=database, durable=True),
        connections[database].cursor() as cursor,
    ):
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        usernames = dict(get_user_model().objects.values_list("pk", "username"))
        for table in TABLES:
            with archive.open(f"{table.name}.jsonl", "w", force_zip64=True) as lines:
                counts[table.name] = write_table(table, scope, usernames, lines)
        images = iterate(scope.of_messages(Attachment.objects.all()))
        stored = [(f"images/{row.pk}", str(row.file.name)) for row in images]
        files = iterate(scope.file_revisions())
        stored += [(f"files/{row.pk}", str(row.file.name)) for row in files]
        project = row_of(setting_columns(), scope.project, {})
        archive.writestr(SETTINGS, json.dumps(project, ensure_ascii=False))
        archive.writestr(SCHEMA, json.dumps(json_schema(), indent=1))
        archive.writestr(MANIFEST, json.dumps(manifest(scope, counts), indent=1))
    return counts, stored


def manifest(scope: ExportScope, counts: Mapping[str, int]) -> dict[str, Any]:
    project = scope.project
    members = Membership.objects.filter(project=project).select_related("user")
    if scope.only_own:
        members = members.none()
    return {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": timezone.now().isoformat(),
        "project": {"id": str(project.pk), "name": project.name, "slug": project.slug},
        "of": scope.viewer.get_username() if scope.only_own else None,
        "rows": dict(counts),
        "members": [{"username": row.user.get_username(), "role": row.role} for row in members],
    }


def write_table(
    table: ExportTable, scope: ExportScope, usernames: Mapping[int, str], lines: IO[bytes]
) -> int:
    """Write the rows of a table as JSON Lines. Return the number of rows."""
    count = 0
    unreadable: set[UUID] = set()
    if table.model is Session and scope.viewer:
        rows = scope.sessions().exclude(scope.readable(""))
        unreadable = set(rows.values_list("pk", flat=True))
    for instance in iterate(table.rows(scope)):
        row = row_of(table.columns, instance, usernames)
        if isinstance(instance, Message):
            if not scope.has_text(instance):
                row |= {"text": "", "receipt": {}, "error": "", "tool_calls": [], "lookups": []}
            if not instance.is_final:
                row["status"] = Status.INTERRUPTED
        if isinstance(instance, Entry) and instance.withheld and scope.viewer:
            row |= {"summary": "", "lines": [], "note": "", "losses": []}
        if instance.pk in unreadable:
            row |= {"title": "", "head": None, "tags": [], "source_key": None}
        lines.write(json.dumps(row, ensure_ascii=False).encode() + b"\n")
        count += 1
    return count


def iterate(rows: QuerySet[Any]) -> Iterator[Any]:
    """Yield the rows in the order of their keys, with BATCH_SIZE rows in memory at a time.

    Server-side cursors are not used, because they do not work with a connection pooler.
    """
    rows, last = rows.order_by("pk"), None
    while batch := list((rows if last is None else rows.filter(pk__gt=last))[:BATCH_SIZE]):
        yield from batch
        last = batch[-1].pk


def row_of(
    columns: Iterable[Field], instance: Model, usernames: Mapping[int, str]
) -> dict[str, Any]:
    """Return the columns as JSON values: usernames for users, times with microseconds."""
    row = {}
    for field in columns:
        value = field.value_from_object(instance)
        if is_user(field):
            value = usernames.get(value)
        elif isinstance(value, datetime):
            value = value.isoformat()
        elif isinstance(value, UUID | Decimal):
            value = str(value)
        row[field.name] = value
    return row


def write_stored(name: str, path: str, archive: ZipFile) -> None:
    """Write the stored file at `path` to the archive as `name`."""
    try:
        with default_storage.open(path) as data, archive.open(name, "w") as target:
            shutil.copyfileobj(data, target)
    except FileNotFoundError:
        log.error("file_missing file=%s", name)


def download(scope: ExportScope) -> StreamingHttpResponse:
    """Return a response with everything in `scope` as a file.

    The file is completed before it is sent. Therefore it shows one moment, and a slow client does
    not hold a database connection.
    """
    file = TemporaryFile()  # noqa: SIM115  (the response closes it)
    export(scope, file)
    size = file.tell()
    file.seek(0)
    return stream_file(file, file_name(scope), MEDIA_TYPE, size=size)
