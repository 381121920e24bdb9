"""Replaces the database by the database of a backup, in one transaction."""

import subprocess
from collections.abc import Iterable, Mapping
from contextlib import suppress
from tempfile import TemporaryFile
from threading import Event, Thread
from typing import IO, Any

from psycopg import sql

from config.backup import archive, pg_tools, restore_marker
from config.backup.pg_tools import BackupError, error_output
from config.backup.snapshot import NO_TIMEOUTS, ROW_COUNT_AND_SUM, TABLES, TEXT_SETTINGS

BUFFER_BYTES = 2**20
# Names and contents of the members of a backup.
Members = Iterable[tuple[str, IO[bytes]]]
# A setting that PostgreSQL before version 17 does not have.
SINCE_17 = b"SET transaction_timeout = 0;\n"
# Drops the relations and routines in the schema `public` and what depends on them, except objects
# of extensions. It waits up to 30 s for locks of other connections.
DROP_ALL = """
    SET LOCAL lock_timeout = '30s';
    SET LOCAL client_min_messages = warning;
    DO $empty$
    DECLARE command text;
    BEGIN
        FOR command IN
            SELECT format('DROP %s IF EXISTS public.%I CASCADE',
                CASE relkind WHEN 'v' THEN 'VIEW' WHEN 'm' THEN 'MATERIALIZED VIEW'
                    WHEN 'S' THEN 'SEQUENCE' ELSE 'TABLE' END, relname)
            FROM pg_class WHERE relnamespace = 'public'::regnamespace
            AND relkind IN ('r', 'p', 'v', 'm', 'S')
            AND NOT EXISTS (
                SELECT FROM pg_depend WHERE objid = pg_class.oid AND deptype IN ('a', 'e', 'i')
            )
            UNION ALL
            SELECT format('DROP ROUTINE IF EXISTS public.%I(%s) CASCADE',
                proname, pg_get_function_identity_arguments(oid))
            FROM pg_proc WHERE pronamespace = 'public'::regnamespace
            AND NOT EXISTS (SELECT FROM pg_depend WHERE objid = pg_proc.oid AND deptype = 'e')
        LOOP
            EXECUTE command;
        END LOOP;
    END $empty$;
"""


def replace_database(members: Members, manifest: Mapping[str, Any], server: int) -> None:
    """Drop all tables and create those of the dump in `members`, in one transaction.

    Another thread reads all `members`. Before the commit, the new tables are compared with
    `manifest`. Raises `BackupError`.
    """
    restore_options = ["--no-owner", "--no-privileges", "--exit-on-error", "--file=-"]
    psql_options = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null"]
    pipe, null = subprocess.PIPE, subprocess.DEVNULL
    with (
        TemporaryFile() as restore_errors,
        TemporaryFile() as psql_errors,
        pg_tools.start(
            "psql", [*psql_options, "--file=-"], server, psql_errors, stdin=pipe, stdout=null
        ) as psql,
        pg_tools.start(
            "pg_restore", restore_options, server, restore_errors, stdin=pipe, stdout=pipe
        ) as restore,
    ):
        errors: list[Exception] = []
        stopped = Event()
        feeder = Thread(target=_feed, args=(members, restore, errors, stopped), daemon=True)
        try:
            feeder.start()
            _run(psql, _statements_before(manifest))
            is_first = True
            while chunk := restore.stdout.read(BUFFER_BYTES):  # type: ignore[union-attr]
                if is_first and server < 17:
                    chunk = chunk.replace(SINCE_17, b"", 1)
                _run(psql, chunk)
                is_first = False
            feeder.join()
            if errors:
                raise errors[0]
            if restore.wait():
                raise BackupError(f"pg_restore failed: {error_output(restore_errors)}")
            _run(psql, _statements_after(manifest))
            psql.stdin.close()  # type: ignore[union-attr]
            if psql.wait():
                raise BrokenPipeError
        except BaseException as error:
            # Without COMMIT, the transaction is rolled back and the database is unchanged.
            psql.kill()
            restore.kill()
            stopped.set()
            feeder.join()
            for process in (psql, restore):
                # Otherwise the end of the block would close it, and raise an error of its own.
                with suppress(OSError):
                    process.stdin.close()  # type: ignore[union-attr]
            if isinstance(error, BrokenPipeError):
                reason = error_output(psql_errors)
                raise BackupError(f"The database rejected the backup: {reason}") from error
            raise


def _feed(
    members: Members, restore: subprocess.Popen, errors: list[Exception], stopped: Event
) -> None:
    """Write the dump to pg_restore, until `stopped` is set. Errors are added to `errors`, and
    raised in the main thread.
    """
    assert restore.stdin is not None
    try:
        for name, piece in members:
            if stopped.is_set():
                return
            while name.startswith(archive.DATABASE) and (data := piece.read(BUFFER_BYTES)):
                restore.stdin.write(data)
        restore.stdin.close()
    except BrokenPipeError:
        # pg_restore has ended. Its error output contains the reason.
        pass
    except Exception as error:
        errors.append(error)
        restore.kill()


def _run(psql: subprocess.Popen, statements: bytes) -> None:
    assert psql.stdin is not None
    psql.stdin.write(statements)
    psql.stdin.flush()


def _statements_before(manifest: Mapping[str, Any]) -> bytes:
    create = sql.SQL("CREATE EXTENSION IF NOT EXISTS {} SCHEMA public;")
    extensions = [create.format(sql.Identifier(name)).as_bytes() for name in manifest["extensions"]]
    start = f"{NO_TIMEOUTS}; BEGIN;".encode()
    return b"\n".join([start, DROP_ALL.encode(), *extensions, b""])


def _statements_after(manifest: Mapping[str, Any]) -> bytes:
    """Return the SQL that checks the tables, sets the marker and commits."""
    checks = []
    for name, table in manifest["tables"].items():
        query = ROW_COUNT_AND_SUM.format(sql.Identifier(name))
        expected = (int(table["rows"]), int(table["sum"]))
        checks.append(_assert_equal(query, expected, f"the content of {name} differs"))
    table_count = sql.SQL(f"SELECT count(*) FROM ({TABLES}) AS tables")  # noqa: S608
    checks.append(_assert_equal(table_count, (len(checks),), "the number of tables differs"))
    marker = f"CREATE TABLE public.{restore_marker.TABLE} ();".encode()
    session = f"RESET ALL; {NO_TIMEOUTS}; {TEXT_SETTINGS};".encode()
    return b"\n".join([session, *checks, marker, b"COMMIT;\n"])


def _assert_equal(query: sql.Composable, expected: tuple[int, ...], message: str) -> bytes:
    """Return SQL that fails unless `query` returns the expected numbers."""
    return (
        sql.SQL(
            "DO $check$ BEGIN IF NOT EXISTS (SELECT FROM ({}) AS counted"
            " WHERE ROW(counted.*) = ROW({})) THEN"
            " RAISE EXCEPTION USING MESSAGE = {}; END IF; END $check$;"
        )
        .format(query, sql.SQL(", ").join(map(sql.Literal, expected)), sql.Literal(message))
        .as_bytes()
    )
