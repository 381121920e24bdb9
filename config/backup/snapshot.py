"""One moment of the database, and the files that its rows name."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import psycopg
from psycopg import IsolationLevel, sql

from chat import files
from config.backup import programs
from config.backup.places import Place, place

# Rows of the answer that are in memory at a time.
AT_ONCE = 5_000
NAMED = """
    SELECT file FROM chat_attachment
    UNION SELECT file FROM chat_import WHERE file <> '' AND state IN ('waiting', 'running')
    ORDER BY file
"""
# Those that a dump holds; what is unlogged is nothing that has to be kept.
TABLES = """
    SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
    AND relkind IN ('r', 'p') AND relpersistence = 'p' AND NOT relispartition
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e')
    ORDER BY relname
"""
# Rows as texts, which hang on how a session writes them; added up, since rows have no order.
PLAINLY = (
    "SET DateStyle = 'ISO, MDY'; SET IntervalStyle = postgres; SET TimeZone = 'UTC';"
    " SET extra_float_digits = 1; SET bytea_output = hex"
)
COUNTED = sql.SQL(
    "SELECT count(*), coalesce(sum(hashtextextended(one::text, 0)::numeric), 0)"
    " FROM public.{} AS one"
)


@dataclass(frozen=True)
class Snapshot:
    """`id` is what pg_dump calls it by; it lasts as long as `reader` is open. `place` has the files
    unless they are left out, `missing` are those that were not there. Nobody removes
    any as long as `guard` is locked.
    """

    id: str
    reader: psycopg.Connection
    guard: psycopg.Connection
    place: Place | None
    missing: list[str]

    def asked(self, question: str) -> list[Any]:
        return self.reader.execute(question).fetchall()  # type: ignore[arg-type]

    def tables(self) -> dict[str, dict[str, Any]]:
        """How many rows each table has, and what they add up to."""
        found = {}
        for (name,) in self.asked(TABLES):
            counted = COUNTED.format(sql.Identifier(name))
            rows, total = self.reader.execute(counted).fetchone() or (0, 0)
            found[name] = {"rows": rows, "sum": str(total)}
        return found

    def migrations(self) -> dict[str, list[str]]:
        """The names of those that were applied, by app."""
        found: dict[str, list[str]] = {}
        for app, name in self.asked("SELECT app, name FROM django_migrations ORDER BY app, name"):
            found.setdefault(app, []).append(name)
        return found

    def extensions(self) -> dict[str, str]:
        rows = "SELECT extname, extversion FROM pg_extension WHERE extname <> 'plpgsql'"
        schema = " AND extnamespace = 'public'::regnamespace ORDER BY extname"
        return dict(self.asked(rows + schema))

    def files(self) -> Iterator[tuple[str, int, IO[bytes]]]:
        """The files by the names that rows give them, with their size, each to be read before the
        next. Removals go on after the last.
        """
        if self.place is None:
            return
        for name in _named(self.reader):
            with self.place.opened(name) as opened:
                if opened is not None:
                    yield name, *opened
                elif name not in self.missing:
                    self.missing.append(name)
        self.guard.rollback()


@contextmanager
def snapshot(with_files: bool = True) -> Iterator[Snapshot]:
    """Now, for as long as the block lasts: people go on meanwhile."""
    files.clear_abandoned()
    with (
        programs.connect() as guard,
        programs.connect() as reader,
        files.folder_to_hold() as held,
    ):
        # Whose file is named in the snapshot is linked, or read, before anybody may remove it.
        guard.execute("SET idle_in_transaction_session_timeout = 0")
        guard.execute("SELECT pg_advisory_xact_lock(%s)", [files.LOCK])
        reader.execute(f"SET idle_in_transaction_session_timeout = 0; {PLAINLY}")
        reader.commit()
        reader.isolation_level, reader.read_only = IsolationLevel.REPEATABLE_READ, True
        [name] = reader.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
        where = place(held) if with_files else None
        missing = where.hold(_named(reader)) if where else []
        if not (where and where.reads_while_locked):
            guard.rollback()
        yield Snapshot(name, reader, guard, where, missing)


def _named(reader: psycopg.Connection) -> Iterator[str]:
    """The paths of files that rows name."""
    with reader.cursor(f"files_{os.urandom(4).hex()}") as cursor:
        cursor.itersize = AT_ONCE
        for (path,) in cursor.execute(NAMED):
            yield path
