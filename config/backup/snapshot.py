"""A consistent view of the database and of the files that its rows refer to."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, Any

import psycopg
from psycopg import IsolationLevel, sql

from chat.attachments import file_removal
from config.backup import pg_tools
from config.backup.file_stores import FileStore, file_store

# The number of rows that are in memory at a time.
BATCH_SIZE = 5_000
FILE_PATHS = """
    SELECT file FROM chat_attachment
    UNION SELECT file FROM memory_filerevision
    UNION SELECT file FROM chat_import WHERE file <> '' AND state IN ('waiting', 'running')
    ORDER BY file
"""
# The tables in a dump. Unlogged tables are left out, because their data need not be kept.
TABLES = """
    SELECT relname FROM pg_class WHERE relnamespace = 'public'::regnamespace
    AND relkind IN ('r', 'p') AND relpersistence = 'p' AND NOT relispartition
    AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype = 'e')
    ORDER BY relname
"""
# Limits of the server or the role could end a backup or restore, which may take hours. Not all of
# them exist before PostgreSQL 17.
NO_TIMEOUTS = (
    "SELECT set_config(name, '0', false) FROM pg_settings WHERE name IN"
    " ('idle_in_transaction_session_timeout', 'statement_timeout', 'transaction_timeout')"
)
# The checksum is computed from rows as text, whose form depends on these session settings.
TEXT_SETTINGS = (
    "SET DateStyle = 'ISO, MDY'; SET IntervalStyle = postgres; SET TimeZone = 'UTC';"
    " SET extra_float_digits = 1; SET bytea_output = hex"
)
# The checksum is a sum of hashes, because rows have no order.
ROW_COUNT_AND_SUM = sql.SQL(
    "SELECT count(*), coalesce(sum(hashtextextended(entry::text, 0)::numeric), 0)"
    " FROM public.{} AS entry"
)


@dataclass(frozen=True)
class DatabaseSnapshot:
    """An exported snapshot of the database, which is valid while the connection `reader` is open.

    `id` is the name of the snapshot for pg_dump. `store` has the files, unless they are left out.
    `missing` are the names of files that do not exist. No file is deleted while `guard` holds its
    lock.
    """

    id: str
    reader: psycopg.Connection
    guard: psycopg.Connection
    store: FileStore | None
    missing: list[str]

    def fetch(self, query: str) -> list[Any]:
        return self.reader.execute(query).fetchall()  # type: ignore[arg-type]

    def tables(self) -> dict[str, dict[str, Any]]:
        """Return the number of rows and the checksum of each table."""
        tables = {}
        for (name,) in self.fetch(TABLES):
            query = ROW_COUNT_AND_SUM.format(sql.Identifier(name))
            rows, total = self.reader.execute(query).fetchone() or (0, 0)
            tables[name] = {"rows": rows, "sum": str(total)}
        return tables

    def migrations(self) -> dict[str, list[str]]:
        """Return the names of the applied migrations by app."""
        migrations: dict[str, list[str]] = {}
        for app, name in self.fetch("SELECT app, name FROM django_migrations ORDER BY app, name"):
            migrations.setdefault(app, []).append(name)
        return migrations

    def extensions(self) -> dict[str, str]:
        query = "SELECT extname, extversion FROM pg_extension WHERE extname <> 'plpgsql'"
        query += " AND extnamespace = 'public'::regnamespace ORDER BY extname"
        return dict(self.fetch(query))

    def files(self) -> Iterator[tuple[str, int, IO[bytes]]]:
        """Yield name, size and content of each file. Each must be read before the next.

        After the last one, files may be deleted again.
        """
        if self.store is None:
            return
        for name in _file_paths(self.reader):
            with self.store.open(name) as file:
                if file is not None:
                    yield name, *file
                elif name not in self.missing:
                    self.missing.append(name)
        self.guard.rollback()


@contextmanager
def take_snapshot(with_files: bool = True) -> Iterator[DatabaseSnapshot]:
    """Export a snapshot for the duration of the block. Strata can be used in the meantime."""
    file_removal.delete_abandoned_backup_folders()
    with (
        pg_tools.connect() as guard,
        pg_tools.connect() as reader,
        file_removal.backup_folder() as folder,
    ):
        # Under the lock, no file is deleted. `store.hold` links or reads those of the snapshot.
        guard.execute(NO_TIMEOUTS)
        guard.execute("SELECT pg_advisory_xact_lock(%s)", [file_removal.FILES_LOCK_ID])
        reader.execute(f"{NO_TIMEOUTS}; {TEXT_SETTINGS}")
        reader.commit()
        reader.isolation_level, reader.read_only = IsolationLevel.REPEATABLE_READ, True
        [snapshot_id] = reader.execute("SELECT pg_export_snapshot()").fetchone() or ("",)
        store = file_store(folder) if with_files else None
        missing = store.hold(_file_paths(reader)) if store else []
        if not (store and store.is_read_under_lock):
            guard.rollback()
        yield DatabaseSnapshot(snapshot_id, reader, guard, store, missing)


def _file_paths(reader: psycopg.Connection) -> Iterator[str]:
    with reader.cursor(f"files_{os.urandom(4).hex()}") as cursor:
        cursor.itersize = BATCH_SIZE
        for (path,) in cursor.execute(FILE_PATHS):
            yield path
