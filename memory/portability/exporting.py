"""A project on its way out: read from one snapshot, written to one zip file."""

import json
import logging
import shutil
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime
from decimal import Decimal
from typing import IO, Any
from uuid import UUID
from zipfile import ZIP_DEFLATED, ZipFile

from django.contrib.auth import get_user_model
from django.db import connections, transaction
from django.db.models import Field, Model, QuerySet
from django.utils import timezone

from chat import replica
from chat.models import Attachment, Message, Session, Status
from memory.portability.tables import (
    FORMAT,
    MANIFEST,
    SCHEMA,
    SETTINGS,
    TABLES,
    VERSION,
    Extent,
    Table,
    is_person,
    schema,
    setting_columns,
)
from memory.recall import corpus
from projects.models import Membership

log = logging.getLogger(__name__)

# Rows that are in memory at a time.
AT_ONCE = 500
UNTOLD = {"text": "", "receipt": {}, "error": ""}


def file_name(extent: Extent) -> str:
    """`billing-2026-03-12.zip`; of one user's own, `billing-olive-2026-03-12.zip`."""
    who = f"-{extent.viewer.get_username()}" if extent.only_own else ""
    return f"{extent.project.slug}{who}-{timezone.now():%Y-%m-%d}.zip"


def export(extent: Extent, file: IO[bytes]) -> dict[str, int]:
    """Writes everything in `extent` to `file`; returns how many rows of each table.

    All of it is of one moment, however long it takes. Of a deleted message only the place is told,
    of what others keep private neither words nor titles.
    """
    # So that whoever imports it, and counts anew, weighs words as they are weighed here.
    corpus.recount(extent.project.pk)
    with (
        replica.caught_up() as database,
        transaction.atomic(using=database, durable=True),
        connections[database].cursor() as cursor,
    ):
        cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ READ ONLY")
        return _export(extent, file)


def _export(extent: Extent, file: IO[bytes]) -> dict[str, int]:
    names = dict(get_user_model().objects.values_list("pk", "username"))
    counts: dict[str, int] = {}
    with ZipFile(file, "w", ZIP_DEFLATED) as archive:
        for table in TABLES:
            with archive.open(f"{table.name}.jsonl", "w", force_zip64=True) as lines:
                counts[table.name] = _write(table, extent, names, lines)
        _images(extent, archive)
        archive.writestr(SETTINGS, _written(_row(setting_columns(), extent.project, {})))
        archive.writestr(SCHEMA, json.dumps(schema(), indent=1))
        archive.writestr(MANIFEST, json.dumps(_manifest(extent, counts), indent=1))
    return counts


def _manifest(extent: Extent, counts: Mapping[str, int]) -> dict[str, Any]:
    project = extent.project
    members = Membership.objects.filter(project=project).select_related("user")
    return {
        "format": FORMAT,
        "version": VERSION,
        "exported_at": timezone.now().isoformat(),
        "project": {"id": str(project.pk), "name": project.name, "slug": project.slug},
        "of": extent.viewer.get_username() if extent.only_own else None,
        "rows": dict(counts),
        "members": []
        if extent.only_own
        else [{"username": one.user.get_username(), "role": one.role} for one in members],
    }


def _write(table: Table, extent: Extent, names: Mapping[int, str], lines: IO[bytes]) -> int:
    count = 0
    rows = table.rows(extent)
    hidden = _hidden_sessions(extent) if table.model is Session else set()
    for row in _one_by_one(rows):
        told = _row(table.columns, row, names)
        if isinstance(row, Message):
            told |= _of_message(row)
        if row.pk in hidden:
            told |= {"title": "", "head": None}
        lines.write(_written(told).encode() + b"\n")
        count += 1
    return count


def _one_by_one(rows: QuerySet[Any]) -> Iterator[Any]:
    """Rows in the order of their keys, some in memory at a time.

    Not by a cursor of the server's, which a pooler of connections might give to another.
    """
    rows, last = rows.order_by("pk"), None
    while batch := list((rows if last is None else rows.filter(pk__gt=last))[:AT_ONCE]):
        yield from batch
        last = batch[-1].pk


def _hidden_sessions(extent: Extent) -> set[UUID]:
    """Those whose words are kept from the viewer."""
    hidden = (
        extent.sessions().exclude(extent.readable("")) if extent.viewer else Session.objects.none()
    )
    return set(hidden.values_list("pk", flat=True))


def _of_message(message: Message) -> dict[str, Any]:
    """What is told differently from what is kept: of a deleted one, and of one still being said."""
    told: dict[str, Any] = dict(UNTOLD) if message.deleted_at is not None else {}
    return told if message.is_final else told | {"status": Status.INTERRUPTED}


def _row(columns: Iterable[Field], row: Model, names: Mapping[int, str]) -> dict[str, Any]:
    told = {}
    for field in columns:
        value = field.value_from_object(row)
        told[field.name] = names.get(value) if is_person(field) else _plain(value)
    return told


def _plain(value: Any) -> Any:
    """As JSON tells it, times to the microsecond."""
    if isinstance(value, datetime):
        return value.isoformat()
    return str(value) if isinstance(value, UUID | Decimal) else value


def _written(told: dict[str, Any]) -> str:
    return json.dumps(told, ensure_ascii=False)


def _images(extent: Extent, archive: ZipFile) -> None:
    for image in _one_by_one(extent.of_messages(Attachment.objects.all())):
        try:
            with (
                image.file.open("rb") as data,
                archive.open(f"images/{image.pk}", "w") as kept,
            ):
                shutil.copyfileobj(data, kept)
        except FileNotFoundError:
            log.error("image_missing attachment=%s", image.pk)
