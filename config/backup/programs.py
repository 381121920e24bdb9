"""PostgreSQL's own programs, and the address of the database as they take it."""

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

import psycopg
from django.db import connection
from psycopg.conninfo import make_conninfo

from config import embedded

# That of the programs that come along.
OURS = 18


class Unable(Exception):
    """It could not be done; the text says why, for people."""


def connect(**options: Any) -> psycopg.Connection:
    """A connection of its own to the database of Strata, as plain as PostgreSQL gives it."""
    return psycopg.connect(**_parameters(), **options)


def start(
    program: str, arguments: Sequence[str], server: int, stderr: IO[bytes], **pipes: Any
) -> subprocess.Popen:
    """Starts one of the programs for a server of this major version, connected by environment.

    Raises Unable when there is none.
    """
    parameters = _parameters()
    secret = {"PGPASSWORD": parameters.pop("password")} if "password" in parameters else {}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C", **secret}
    if home := os.environ.get("HOME"):
        environment["HOME"] = home
    address = f"--dbname={make_conninfo(**parameters)}"
    # pg_restore makes SQL of what it reads, and connects to nobody.
    where = [] if program == "pg_restore" else [address]
    command = [str(folder(server) / program), *where, *arguments]
    return subprocess.Popen(command, env=environment, stderr=stderr, **pipes)


def folder(server: int) -> Path:
    """Where the programs for a server of this major version are. Raises Unable."""
    if server <= OURS:
        return embedded.programs()
    found = shutil.which("pg_dump")
    if found is not None and version_of(Path(found)) >= server:
        return Path(found).resolve().parent
    raise Unable(
        f"The database runs on PostgreSQL {server}, and the pg_dump here is older: install the"
        f" client programs of PostgreSQL {server} and put them onto the PATH."
    )


def version_of(program: Path) -> int:
    """The major version that a program says it has; 0 when it says none."""
    said = subprocess.run([program, "--version"], capture_output=True, text=True).stdout.split()
    numbers = [word.partition(".")[0] for word in said]
    return next((int(one) for one in numbers if one.isdecimal()), 0)


def _parameters() -> dict[str, Any]:
    """What Django connects with, as far as PostgreSQL's library knows it."""
    known = {one.keyword.decode() for one in psycopg.pq.Conninfo.get_defaults()}
    given = connection.get_connection_params()
    return {name: value for name, value in given.items() if name in known and value is not None}
