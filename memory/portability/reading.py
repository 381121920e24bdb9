"""The files of an export, line by line, and what is wrong with them."""

import json
from collections.abc import Iterator
from typing import Any
from uuid import UUID
from zipfile import ZipFile

from django.db.models import ForeignKey

from chat.importers.archives import member
from chat.importers.base import Refused
from chat.storable import storable
from memory.portability.tables import FORMAT, MANIFEST, SETTINGS, TABLES, VERSION, Table
from projects.models import Role

# Bytes of the longest line.
LONGEST_LINE = 16 * 2**20
LARGEST_MANIFEST = 4 * 2**20
Row = dict[str, Any]


def recognises(names: set[str]) -> bool:
    """Whether files of these names are an export of a project."""
    return {MANIFEST, f"{TABLES[0].name}.jsonl"} <= names


def members_of(archive: ZipFile) -> tuple[str, dict[str, str]]:
    """The name of the project in `archive`, and its members' roles by username. Raises Refused."""
    manifest = _manifest(archive)
    about, listed = manifest.get("project"), manifest.get("members")
    name = about.get("name") if isinstance(about, dict) else None
    members = [one for one in listed if isinstance(one, dict)] if isinstance(listed, list) else []
    roles = {str(one.get("username")): str(one.get("role")) for one in members}
    known = {who: role for who, role in roles.items() if role in Role.values}
    return storable(str(name or "Imported project"))[:120], known


def check(archive: ZipFile) -> None:
    """Raises Refused for what is no whole export of a project."""
    manifest = _manifest(archive)
    if manifest.get("format") != FORMAT:
        raise Refused("It is no export of a project of Strata's.")
    if manifest.get("version") != VERSION:
        raise Refused(f"It is of version {manifest.get('version')}; this Strata reads {VERSION}.")
    wanted = {SETTINGS, *(f"{table.name}.jsonl" for table in TABLES)}
    missing = wanted - set(archive.namelist())
    if missing:
        raise Refused(f"It is not complete: {', '.join(sorted(missing))} is missing.")


def _manifest(archive: ZipFile) -> Row:
    """Raises Refused."""
    try:
        return _an_object(member(archive, MANIFEST).read(LARGEST_MANIFEST), MANIFEST)
    except KeyError:
        raise Refused("It is no export of a project of Strata's.") from None


def settings(archive: ZipFile) -> Row:
    """The project's own line. Raises Refused."""
    return _an_object(member(archive, SETTINGS).read(LARGEST_MANIFEST), SETTINGS)


def lines(archive: ZipFile, table: Table) -> Iterator[tuple[str, Row]]:
    """Each line as an object, with its place for people."""
    name = f"{table.name}.jsonl"
    file = member(archive, name)
    for number, line in enumerate(iter(lambda: file.readline(LONGEST_LINE + 1), b""), 1):
        place = f"{name}, line {number}"
        if len(line) > LONGEST_LINE:
            raise Refused(f"{place}: it is longer than {LONGEST_LINE // 2**20} MB.")
        yield place, _an_object(line, place)


def _an_object(data: bytes, place: str) -> Row:
    try:
        told = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise Refused(f"{place}: this is no JSON.") from error
    if not isinstance(told, dict):
        raise Refused(f"{place}: this is no object.")
    return told


def ids(archive: ZipFile, table: Table) -> Iterator[UUID]:
    """The ids of the rows of a table, if they have any of their own. Raises Refused."""
    key = table.model._meta.pk
    if key is None or key.name in table.left_out or isinstance(key, ForeignKey):
        return
    for place, told in lines(archive, table):
        given = uuid_in(told.get(key.name))
        if given is None:
            raise Refused(f"{place}: it has no id.")
        yield given


def uuid_in(told: object) -> UUID | None:
    """The id that `told` is; None for what is none."""
    try:
        return UUID(told) if isinstance(told, str) else None
    except ValueError:
        return None
