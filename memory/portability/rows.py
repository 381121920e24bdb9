"""Convert the rows of an export into rows of the project that imports it."""

import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field, replace
from datetime import date, datetime
from hashlib import blake2b
from math import isfinite
from typing import Any
from uuid import UUID
from zipfile import ZipFile
from zoneinfo import ZoneInfo

from django.core.exceptions import ValidationError
from django.db.models import Field, ForeignKey, Model

from chat.conversations.sessions import clean_tags
from chat.importers.base import ImportRejectedError
from chat.models import Message, Role, Session, Status
from chat.models.messages import FINAL
from chat.prompt.types import dump_tool_calls, load_lookups, load_tool_calls
from memory.facts.create import MAX_YEAR, MIN_YEAR
from memory.files.adding import clean_name
from memory.layers import lines, losses, periods
from memory.layers.summarising.base import EXTRACTIVE
from memory.models import (
    Entry,
    EntryRevision,
    EntryState,
    EntryStatus,
    Fact,
    File,
    FilePassage,
    FileRevision,
    FileState,
    Tombstone,
    TombstoneKind,
)
from memory.portability.archive import MAX_NAME_CHARS, Row, read_rows
from memory.portability.tables import ExportTable, is_user
from projects.core import token_counting
from projects.core.errors import InvalidInputError
from projects.core.text import parse_uuid, storable
from projects.models import Project

# A mask of the bits of a UUIDv7 that sort it by time: its first half. The second half is random
# except for two bits.
TIME_BITS = ~((1 << 64) - 1)
VARIANT = 0b10 << 62
RANDOM_BITS = (1 << 62) - 1
# The errors that values of another type or range cause. ZoneInfo raises OSError for a folder.
MALFORMED = (
    *(ValidationError, ValueError, TypeError, KeyError, AttributeError, OverflowError),
    *(OSError, InvalidInputError),
)
# The largest value of an integer column.
MAX_INTEGER = 2**31 - 1
# The largest integer of a row. A column can store more, so that the numbers can grow later.
MAX_IMPORTED_INTEGER = 2**30
# Appended to the name of a writer. See `adjust_writer`.
IMPORTED = " (imported)"
# Names of models have a colon, so they are no usernames.
USERNAME = re.compile(r"[\w.@+-]+")
MAX_USERNAME_CHARS = 150


def derived_id(project: UUID, exported: UUID) -> UUID:
    """Return the id in `project` that corresponds to the id `exported`. It is always the same.

    Therefore one export can be imported into several projects, and no row of it can refer to a row
    outside of the export. New ids sort by time like the exported ids.
    """
    digest = blake2b(project.bytes + exported.bytes, digest_size=8).digest()
    random = VARIANT | (int.from_bytes(digest) & RANDOM_BITS)
    return UUID(int=(exported.int & TIME_BITS) | random)


@dataclass
class ImportContext:
    """One import: the target project, the users by username, and the exported ids by model.

    `skipped` are the exported ids of rows that belong to users who are unknown here.
    """

    project: Project
    users: Mapping[str, Any]
    ids: dict[type[Model], set[UUID]] = field(default_factory=dict)
    skipped: set[object] = field(default_factory=set)

    def new_id(self, value: object, model: type[Model]) -> UUID | None:
        """Return the id in the project for `value`, the exported id of a row of `model`.

        Returns None if the export does not contain this row.
        """
        exported, ids = parse_uuid(value), self.ids.get(model)
        if exported is None or (ids is not None and exported not in ids):
            return None
        return derived_id(self.project.pk, exported)

    def source_id(self, exported: UUID) -> UUID | None:
        """Return the id in the project of an exported message or passage; None if it is not in the
        export.
        """
        known = any(exported in self.ids.get(model, ()) for model in (Message, FilePassage))
        return derived_id(self.project.pk, exported) if known else None


def convert_rows(
    archive: ZipFile, table: ExportTable, context: ImportContext
) -> Iterator[tuple[Any, Row]]:
    """Yield (instance to save, exported row) of a table. Raises `ImportRejectedError`."""
    for position, row in read_rows(archive, table):
        instance = convert_row(table, position, row, context)
        if instance is not None:
            yield instance, row


def convert_row(
    table: ExportTable, position: str, row: Row, context: ImportContext
) -> Model | None:
    """Return an unsaved instance, or None if the row belongs to a user who is unknown here.

    Columns that the row does not contain keep their defaults. Raises `ImportRejectedError`.
    """
    instance = table.model(project_id=context.project.pk)  # type: ignore[misc]
    for column in table.columns:
        if column.name not in row:
            continue
        value = row[column.name]
        if is_user(column):
            user = context.users.get(value) if isinstance(value, str) else None
            if user is None and value is not None and column.name in table.owners:
                context.skipped.add(row.get("id"))
                return None
            setattr(instance, column.name, user)
        elif value is not None and (isinstance(column, ForeignKey) or column.primary_key):
            if isinstance(value, str) and value in context.skipped:
                context.skipped.add(row.get("id"))
                return None
            model = column.related_model if isinstance(column, ForeignKey) else table.model
            pk = context.new_id(value, model)  # type: ignore[arg-type]
            if pk is None and not column.null:
                raise ImportRejectedError(
                    f"{position}: the row refers to a row that is not in the export."
                )
            setattr(instance, column.attname, pk)
        else:
            parsed = parse_value(column, value, position)
            if isinstance(parsed, int) and parsed > MAX_IMPORTED_INTEGER:
                raise ImportRejectedError(f"{position}: the value of {column.name} is not valid.")
            setattr(instance, column.attname, parsed)
    if adjust := ADJUSTMENTS.get(table.model):
        try:
            adjust(instance, row, context)
        except MALFORMED as error:
            raise ImportRejectedError(f"{position}: the row is not valid.") from error
    return instance


def parse_value(column: Field, value: Any, position: str) -> Any:
    """Return `value` as a value of the column. Raises `ImportRejectedError`."""
    text = storable(value) if isinstance(value, str) else value
    try:
        parsed = column.to_python(text)
        if isinstance(parsed, datetime) and not MIN_YEAR <= parsed.year <= MAX_YEAR:
            raise ValueError(parsed.year)
        if isinstance(parsed, float) and not isfinite(parsed):
            raise ValueError(parsed)
    except MALFORMED as error:
        raise ImportRejectedError(
            f"{position}: the value of {column.name} is not valid."
        ) from error
    return parsed


def adjust_session(session: Session, row: Row, context: ImportContext) -> None:
    """Clean the tags. Raises an error if they are no list of texts."""
    session.tags = clean_tags(session.tags)


def adjust_message(message: Message, row: Row, context: ImportContext) -> None:
    """Keep the author's name if the author is unknown here. Convert the ids in the receipt."""
    if message.author is None and not message.author_name and message.role != Role.ASSISTANT:
        message.author_name = storable(str(row.get("author") or ""))[:MAX_NAME_CHARS]
    if message.status not in FINAL:
        message.status = Status.INTERRUPTED
    message.tokens = token_counting.count(message.text)
    message.tool_calls = dump_tool_calls(load_tool_calls(message.tool_calls))
    message.lookups = [asdict(lookup) for lookup in load_lookups(message.lookups)]
    message.receipt = convert_receipt(message.receipt, context.project.pk)


def convert_receipt(receipt: Any, project: UUID) -> dict[str, Any]:
    """Return the receipt with ids of `project`; empty if it is malformed."""
    try:
        sections = [
            {
                "name": str(section["name"]),
                "tokens": _number(section["tokens"]),
                "items": [
                    item
                    | {"id": str(derived_id(project, UUID(item["id"]))), "kind": str(item["kind"])}
                    | {name: _number(item[name]) for name in ("revision", "tokens")}
                    for item in section["items"]
                ],
            }
            for section in receipt["sections"]
        ]
    except MALFORMED:
        return {}
    return {**receipt, "sections": sections}


def _number(value: Any) -> int:
    """Return `value` as a number that fits into an integer column. Raises ValueError."""
    number = int(value)
    if not 0 <= number <= MAX_INTEGER:
        raise ValueError(number)
    return number


def adjust_writer(written: Entry | EntryRevision | Fact, row: Row, context: ImportContext) -> None:
    """Append IMPORTED to the writer's name if an account that is not matched could have this name.

    Otherwise, that account would seem to be the writer. Accounts are not looked up, so that an
    import does not show which exist.
    """
    name = written.written_by
    is_username = len(name) <= MAX_USERNAME_CHARS and USERNAME.fullmatch(name)
    if is_username and name not in context.users and name != EXTRACTIVE:
        written.written_by += IMPORTED


def adjust_text(written: Entry | EntryRevision, row: Row, context: ImportContext) -> None:
    """Adjust the writer, and the sources of the lines.

    If a line is invalid, or the joined lines differ from the summary, only the summary is stored.
    """
    adjust_writer(written, row, context)
    try:
        found = [
            replace(line, sources=tuple(filter(None, map(context.source_id, line.sources))))
            for line in lines.from_json(written.lines)
        ]
    except MALFORMED:
        found = []
    is_finite = all(isfinite(line.score) for line in found)
    is_whole = is_finite and lines.as_text(found) == lines.as_text(
        lines.from_text(written.summary, date.min)
    )
    written.lines = lines.to_json(found) if is_whole else []


def adjust_entry(entry: Entry, row: Row, context: ImportContext) -> None:
    """Make an absorbed entry live if its digest is not in the export. Raises an error if its
    period, time zone or losses are not valid.
    """
    adjust_text(entry, row, context)
    periods.label(entry.layer, entry.period_key)
    ZoneInfo(entry.zone)
    entry.losses = [{name: str(loss[name]) for name in ("kind", "text")} for loss in entry.losses]
    losses.count_losses(entry.losses)
    if entry.state == EntryStatus.ABSORBED and entry.parent_id is None:
        entry.state = EntryStatus.LIVE


def adjust_entry_state(state: EntryState, row: Row, context: ImportContext) -> None:
    state.parent_id = context.new_id(row.get("parent_id"), Entry)


def adjust_fact(fact: Fact, row: Row, context: ImportContext) -> None:
    """Compute the keys again, because they depend on user ids of this server."""
    adjust_writer(fact, row, context)
    fact.set_keys()


def adjust_file(document: File, row: Row, context: ImportContext) -> None:
    """Clean the name as in an upload. Raises an error if it is empty."""
    document.name = clean_name(document.name)


def adjust_revision(revision: FileRevision, row: Row, context: ImportContext) -> None:
    """Schedule indexing of the file, and reading it if that was not complete in the export. Raises
    an error if the warnings are no list of texts.
    """
    revision.warnings = list(map(storable, revision.warnings))
    if revision.state in (FileState.READY, FileState.INDEXING):
        revision.state = FileState.INDEXING
    elif revision.state != FileState.FAILED:
        revision.state = FileState.WAITING


def adjust_tombstone(tombstone: Tombstone, row: Row, context: ImportContext) -> None:
    exported = parse_uuid(tombstone.subject)
    if tombstone.kind != TombstoneKind.SOURCE and exported is not None:
        tombstone.subject = str(derived_id(context.project.pk, exported))


ADJUSTMENTS: dict[type[Model], Callable[[Any, Row, ImportContext], None]] = {
    Session: adjust_session,
    Message: adjust_message,
    Entry: adjust_entry,
    EntryRevision: adjust_text,
    EntryState: adjust_entry_state,
    Fact: adjust_fact,
    File: adjust_file,
    FileRevision: adjust_revision,
    Tombstone: adjust_tombstone,
}
