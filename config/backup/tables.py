"""The database of a backup in the place of the one that is there: in one transaction."""

import subprocess
from collections.abc import Iterable, Mapping
from tempfile import TemporaryFile
from threading import Thread
from typing import IO, Any

from psycopg import sql

from config.backup import marker, programs
from config.backup.programs import Unable
from config.backup.snapshot import COUNTED, PLAINLY, TABLES
from config.backup.taking import last_words

PIECE = 2**20  # bytes
# What servers before 17 do not know.
SINCE_17 = b"SET transaction_timeout = 0;\n"
# What is Strata's in the schema goes, with what hangs on it; an extension's stays. Others have so
# long to end what they do.
EMPTY = """
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


def put_in_place(dump: Iterable[IO[bytes]], manifest: Mapping[str, Any], server: int) -> None:
    """Removes all tables and makes those of `dump`, of which `manifest` tells what they hold.

    All of it or nothing: what the tables hold is counted before the commit. Raises Unable.
    """
    with (
        TemporaryFile() as read,
        TemporaryFile() as ran,
        _psql(server, ran) as psql,
        _pg_restore(server, read) as restore,
    ):
        wrong: list[Exception] = []
        feeder = Thread(target=_feed, args=(dump, restore, wrong), daemon=True)
        try:
            feeder.start()
            _run(psql, _before(manifest))
            first = True
            while piece := restore.stdout.read(PIECE):  # type: ignore[union-attr]
                _run(psql, piece.replace(SINCE_17, b"", 1) if first and server < 17 else piece)
                first = False
            feeder.join()
            if wrong:
                raise wrong[0]
            if restore.wait():
                raise Unable(f"pg_restore failed: {last_words(read)}")
            _run(psql, _after(manifest))
            psql.stdin.close()  # type: ignore[union-attr]
            if psql.wait():
                raise BrokenPipeError
        except BaseException as error:
            # Without its end the transaction leaves everything as it was.
            psql.kill()
            restore.kill()
            feeder.join()
            if isinstance(error, BrokenPipeError):
                raise Unable(f"The database did not take it: {last_words(ran)}") from error
            raise


def _psql(server: int, said: IO[bytes]) -> subprocess.Popen:
    arguments = ["--no-psqlrc", "--quiet", "--set=ON_ERROR_STOP=1", "--output=/dev/null"]
    return programs.start(
        "psql",
        [*arguments, "--file=-"],
        server,
        said,
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
    )


def _pg_restore(server: int, said: IO[bytes]) -> subprocess.Popen:
    arguments = ["--no-owner", "--no-privileges", "--exit-on-error", "--file=-"]
    return programs.start(
        "pg_restore", arguments, server, said, stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )


def _feed(dump: Iterable[IO[bytes]], restore: subprocess.Popen, wrong: list[Exception]) -> None:
    """Gives pg_restore what it reads. What goes wrong is for the other thread to raise."""
    assert restore.stdin is not None
    try:
        for piece in dump:
            while data := piece.read(PIECE):
                restore.stdin.write(data)
        restore.stdin.close()
    except BrokenPipeError:
        # It ended, and says why.
        pass
    except Exception as error:
        wrong.append(error)
        restore.kill()


def _run(psql: subprocess.Popen, text: bytes) -> None:
    assert psql.stdin is not None
    psql.stdin.write(text)
    psql.stdin.flush()


def _before(manifest: Mapping[str, Any]) -> bytes:
    made = [
        sql.SQL("CREATE EXTENSION IF NOT EXISTS {} SCHEMA public;").format(sql.Identifier(name))
        for name in manifest["extensions"]
    ]
    return b"\n".join([b"BEGIN;", EMPTY.encode(), *(one.as_bytes() for one in made), b""])


def _after(manifest: Mapping[str, Any]) -> bytes:
    """Counts the tables, marks the database, and commits."""
    counted = [
        _check(name, int(told["rows"]), int(told["sum"]))
        for name, told in manifest["tables"].items()
    ]
    # No more tables than there were, either.
    names = f"SELECT count(*) FROM ({TABLES}) AS tables"  # noqa: S608
    whole = _same(sql.SQL(names), (len(counted),), "there are other tables than it had")
    marked = f"CREATE TABLE public.{marker.TABLE} ();"
    ended = [b"RESET ALL;", PLAINLY.encode(), b";", *counted, whole, marked.encode(), b"COMMIT;\n"]
    return b"\n".join(ended)


def _check(name: str, rows: int, total: int) -> bytes:
    counted = COUNTED.format(sql.Identifier(name))
    return _same(counted, (rows, total), f"{name} holds something else than it did")


def _same(question: sql.Composable, told: tuple[int, ...], otherwise: str) -> bytes:
    """A statement that fails unless the question is answered with these numbers."""
    return (
        sql.SQL(
            "DO $check$ BEGIN IF NOT EXISTS (SELECT FROM ({}) AS counted"
            " WHERE ROW(counted.*) = ROW({})) THEN"
            " RAISE EXCEPTION USING MESSAGE = {}; END IF; END $check$;"
        )
        .format(question, sql.SQL(", ").join(map(sql.Literal, told)), sql.Literal(otherwise))
        .as_bytes()
    )
