"""Read and validate the files of an export archive."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID
from zipfile import ZipFile

from django.db.models import ForeignKey

from chat.importers.base import ImportRejectedError
from chat.importers.zip_files import open_member
from memory.portability.tables import FORMAT, MANIFEST, SETTINGS, TABLES, VERSION, ExportTable
from projects.core.text import parse_uuid, storable
from projects.models import MemberRole

MAX_LINE_BYTES = 16 * 2**20
MAX_MANIFEST_BYTES = 4 * 2**20
MAX_NAME_CHARS = 120
Row = dict[str, Any]


def recognises(names: set[str]) -> bool:
    """Return whether an archive with files of these names is a project export."""
    return {MANIFEST, f"{TABLES[0].name}.jsonl"} <= names


def members_of(archive: ZipFile) -> tuple[str, dict[str, str]]:
    """Return the name of the exported project, and its members' roles by username.

    Raises `ImportRejectedError`.
    """
    manifest = read_manifest(archive)
    project, members = manifest.get("project"), manifest.get("members")
    name = project.get("name") if isinstance(project, dict) else None
    rows = [row for row in members if isinstance(row, dict)] if isinstance(members, list) else []
    roles = {storable(str(row.get("username"))): str(row.get("role")) for row in rows}
    known = {username: role for username, role in roles.items() if role in MemberRole.values}
    return storable(str(name or "Imported project"))[:MAX_NAME_CHARS], known


def check_archive(archive: ZipFile) -> None:
    """Raise `ImportRejectedError` unless `archive` is a complete export of a known version."""
    manifest = read_manifest(archive)
    if manifest.get("format") != FORMAT:
        raise ImportRejectedError("This is not a project export of Strata.")
    if manifest.get("version") != VERSION:
        raise ImportRejectedError(
            f"The export has version {manifest.get('version')}; this Strata reads {VERSION}."
        )
    counts = manifest.get("rows")
    listed = counts if isinstance(counts, dict) else {}
    tables = [table for table in TABLES if not table.added_later or table.name in listed]
    wanted = {SETTINGS, *(f"{table.name}.jsonl" for table in tables)}
    missing = wanted - set(archive.namelist())
    if missing:
        raise ImportRejectedError(
            f"The export is incomplete: {', '.join(sorted(missing))} is missing."
        )


def read_manifest(archive: ZipFile) -> Row:
    """Return the manifest. Raises `ImportRejectedError`."""
    try:
        return parse_object(open_member(archive, MANIFEST).read(MAX_MANIFEST_BYTES), MANIFEST)
    except KeyError:
        raise ImportRejectedError("This is not a project export of Strata.") from None


def read_settings(archive: ZipFile) -> Row:
    """Return the row of the project itself. Raises `ImportRejectedError`."""
    return parse_object(open_member(archive, SETTINGS).read(MAX_MANIFEST_BYTES), SETTINGS)


def read_rows(archive: ZipFile, table: ExportTable) -> Iterator[tuple[str, Row]]:
    """Yield (position for error messages, row) of a table. Raises `ImportRejectedError`."""
    name = f"{table.name}.jsonl"
    if table.added_later and name not in archive.namelist():
        return
    file = open_member(archive, name)
    for number, line in enumerate(iter(lambda: file.readline(MAX_LINE_BYTES + 1), b""), 1):
        position = f"{name}, line {number}"
        if len(line) > MAX_LINE_BYTES:
            raise ImportRejectedError(
                f"{position}: the line is longer than {MAX_LINE_BYTES // 2**20} MB."
            )
        yield position, parse_object(line, position)


def parse_object(data: bytes, position: str) -> Row:
    """Parse a JSON object. Raises `ImportRejectedError`."""
    try:
        value = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ImportRejectedError(f"{position}: this is not JSON.") from error
    if not isinstance(value, dict):
        raise ImportRejectedError(f"{position}: this is not a JSON object.")
    return value


def read_ids(archive: ZipFile, table: ExportTable) -> Iterator[UUID]:
    """Yield the primary keys of a table whose rows have their own. Raises `ImportRejectedError`."""
    key = table.model._meta.pk
    if key is None or key.name in table.left_out or isinstance(key, ForeignKey):
        return
    for position, row in read_rows(archive, table):
        pk = parse_uuid(row.get(key.name))
        if pk is None:
            raise ImportRejectedError(f"{position}: the row has no id.")
        yield pk
