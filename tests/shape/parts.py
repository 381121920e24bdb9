"""PgBouncer in transaction mode and Redis on one machine, from system packages. No ORM here."""

import os
import pwd
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from config.postgres.account import server_account
from config.postgres.server import socket_directory
from tests.shape.ports import reserved_port

# The variable that has tests run on it: STRATA_TEST_SHAPE=production.
VARIABLE = "STRATA_TEST_SHAPE"
PROGRAMS = {"pgbouncer": "pgbouncer", "redis-server": "redis-server"}
# Few, so that transactions of different clients meet on the same connection to the server.
SERVER_CONNECTIONS = 12

PGBOUNCER = """
[databases]
* = host={sockets} port=5432 user=postgres

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
logfile = {folder}/pgbouncer.log
pidfile = {folder}/pgbouncer.pid
auth_type = any
admin_users = postgres
pool_mode = transaction
max_client_conn = 500
default_pool_size = {connections}
# So that tests meet all of them.
server_round_robin = 1
ignore_startup_parameters = extra_float_digits
log_connections = 0
log_disconnections = 0
"""


def missing() -> list[str]:
    """Packages of the production shape that are not installed here."""
    return [package for program, package in PROGRAMS.items() if _executable(program) is None]


def is_wanted() -> bool:
    """Whether tests are to run on the production shape, and not on what a clone starts with."""
    return os.environ.get(VARIABLE) == "production"


@contextmanager
def in_front_of(data_dir: Path) -> Iterator[dict[str, str]]:
    """PgBouncer before the PostgreSQL of `data_dir`, and Redis; what a deployer would set."""
    with pgbouncer(data_dir, socket_directory(data_dir)) as pooled, redis(data_dir) as broker:
        yield {
            "DATABASE_URL": f"postgresql://postgres@127.0.0.1:{pooled}/postgres",
            "CELERY_BROKER_URL": f"redis://127.0.0.1:{broker}/0",
            # Without a name of its own, a client would go by that of who had the connection last.
            "PGAPPNAME": "strata",
        }


@contextmanager
def pgbouncer(folder: Path, sockets: Path) -> Iterator[int]:
    """A pooler in transaction mode in front of the server whose socket is in `sockets`; its port.

    It refuses to run as root, and runs then as whom the server runs as.
    """
    reservation, port = reserved_port()
    folder = _folder(folder / "pgbouncer")
    (folder / "pgbouncer.ini").write_text(
        PGBOUNCER.format(sockets=sockets, port=port, folder=folder, connections=SERVER_CONNECTIONS)
    )
    with reservation, _running([_executable("pgbouncer"), folder / "pgbouncer.ini"], folder, port):
        yield port


@contextmanager
def redis(folder: Path) -> Iterator[int]:
    """A Redis that writes down what it is told; its port."""
    reservation, port = reserved_port()
    folder = _folder(folder / "redis")
    options = ["--port", port, "--bind", "127.0.0.1", "--dir", folder, "--appendonly", "yes"]
    with reservation, _running([_executable("redis-server"), *options, "--save", ""], folder, port):
        yield port


def _executable(program: str) -> str | None:
    return shutil.which(program, path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin")


def _folder(path: Path) -> Path:
    path.mkdir()
    owner = server_account()
    if owner is not None:
        os.chown(path, owner.pw_uid, owner.pw_gid)
        path.chmod(0o755)
    return path


def _identity(owner: pwd.struct_passwd | None) -> dict[str, Any]:
    if owner is None:
        return {}
    return {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}


@contextmanager
def _running(command: Sequence[object], folder: Path, port: int) -> Iterator[None]:
    """A program until the end of the block, which takes connections at `port` at its beginning."""
    with (folder / "output.log").open("ab") as output:
        process = subprocess.Popen(
            list(map(str, command)),
            cwd="/",
            stdout=output,
            stderr=output,
            **_identity(server_account()),
        )
    try:
        _wait_for(port, process, folder)
        yield
    finally:
        process.terminate()
        process.wait(30)


def _wait_for(port: int, process: subprocess.Popen, folder: Path) -> None:
    for _ in range(300):
        assert process.poll() is None, (folder / "output.log").read_text()
        with socket.socket() as probe:
            if probe.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.1)
    raise AssertionError(f"Nobody listens at {port}")
