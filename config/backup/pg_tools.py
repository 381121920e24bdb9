"""Connections and client programs (pg_dump, pg_restore, psql) for backup and restore."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import psycopg
from django.db import connection
from psycopg.conninfo import make_conninfo

from config.postgres import server as embedded
from projects.core.errors import DomainError

BUNDLED_VERSION = 18
MAX_ERROR_CHARS = 1_000


class BackupError(DomainError):
    """A backup or restore is not possible. The message is a reason for the administrator."""


def connect(**options: Any) -> psycopg.Connection:
    """Return a new connection to Strata's database, independent of Django."""
    return psycopg.connect(**connection_parameters(), **options)


def start(
    program: str, arguments: Sequence[str], server: int, stderr: IO[bytes], **pipes: Any
) -> subprocess.Popen:
    """Start a client program of the server's major version.

    Raises `BackupError` if there is no such program.
    """
    parameters = connection_parameters()
    secret = {"PGPASSWORD": parameters.pop("password")} if "password" in parameters else {}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **secret}
    if home := os.environ.get("HOME"):
        environment["HOME"] = home
    # pg_restore only writes SQL, so it needs no connection.
    target = [] if program == "pg_restore" else [f"--dbname={make_conninfo(**parameters)}"]
    command = [str(program_folder(server) / program), *target, *arguments]
    return subprocess.Popen(command, env=environment, stderr=stderr, **pipes)


def program_folder(server: int) -> Path:
    """Return the folder of the programs of this major version. Raises `BackupError`."""
    if server <= BUNDLED_VERSION:
        return embedded.programs()
    pg_dump = shutil.which("pg_dump")
    if pg_dump is not None and program_version(Path(pg_dump)) >= server:
        return Path(pg_dump).resolve().parent
    raise BackupError(
        f"The database runs on PostgreSQL {server}, and pg_dump here is older: install the"
        f" client programs of PostgreSQL {server} and add them to PATH."
    )


def program_version(program: Path) -> int:
    """Return the major version of a program, or 0 if it is unknown."""
    output = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()
    numbers = [word.partition(".")[0] for word in output]
    return next((int(number) for number in numbers if number.isdecimal()), 0)


def error_output(stderr: IO[bytes]) -> str:
    """Return the end of a program's error output."""
    stderr.seek(0)
    return " ".join(stderr.read().decode(errors="replace").split())[-MAX_ERROR_CHARS:]


def connection_parameters() -> dict[str, Any]:
    """Return Django's connection parameters that libpq supports."""
    known = {option.keyword.decode() for option in psycopg.pq.Conninfo.get_defaults()}
    parameters = connection.get_connection_params()
    return {
        name: value for name, value in parameters.items() if name in known and value is not None
    }
