"""Management command `up`: run the database, web processes, workers and, if used, the demo model.

It loads all modules once. Its processes are forks, so that they share the memory of the modules.
"""

import fcntl
import os
import signal
import socket
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError
from django.urls import get_resolver

from chat.providers import demo
from config.celery import app
from config.observability.metrics import multiprocess
from config.postgres import server
from config.runtime import bootstrap, preload, system, temporary, watchdog, web, worker
from config.runtime.supervisor import TICK_S, Child, Supervisor
from config.runtime.watchdog import Watch
from config.settings.env import private_folder

DATABASE_RETRY_S = 2.0
# Queues with tasks that mostly wait, and queues with tasks that mostly compute.
WAITING, HEAVY = ("chat", "memory", "webhooks"), ("index", "io")
MAX_WEB_PROCESSES = 2
# The maximum number of connections that wait until a web process accepts them.
BACKLOG = 2048
# The length of a tick until the first request has been served.
FIRST_TICK_S = 0.05
# Workers have a lower priority than pages and replies. The units in deploy/systemd use this value.
WORKER_NICENESS = 5
STOPPING = "Stopping…"


class Command(BaseCommand):
    help = "Start Strata: database, web, worker and beat, until Ctrl-C."
    # None, because the checks take most of a second.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=port_number, default=settings.PORT)
        parser.add_argument(
            "--host", default="127.0.0.1", help="the address to listen on (0.0.0.0: all of IPv4)"
        )
        parser.add_argument(
            "--demo", action="store_true", help="add a project with two months of conversations"
        )
        parser.add_argument(
            temporary.OPTION,
            action="store_true",
            dest="is_temporary",
            help="use an empty data folder, and delete it when Strata stops",
        )

    def handle(
        self, *args: Any, host: str, port: int, demo: bool, is_temporary: bool, **options: Any
    ) -> None:
        # Until the supervisor handles signals, SIGTERM stops the command like Ctrl-C. SIGINT is set
        # too, because a shell script starts background jobs with SIGINT ignored.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        if is_temporary:
            self.check_temporary()
        # Only this account can read the logs, metrics and other files that the processes write.
        os.umask(0o077)
        os.chdir(settings.BASE_DIR)
        try:
            with ExitStack() as stack:
                self.run(host, port, demo, stack)
        except server.EmbeddedPostgresError as error:
            raise CommandError(str(error)) from error
        except OSError as error:
            # The disk is full, for example.
            reason = error.strerror or error
            raise CommandError(f"{error.filename or settings.DATA_DIR}: {reason}") from error
        except KeyboardInterrupt:
            # A second signal arrived while the database was stopping.
            pass
        self.print_line("Stopped.")

    def check_temporary(self) -> None:
        """Print the folder. Raises `CommandError` if some data would be stored elsewhere."""
        if not settings.DATA_DIR.name.startswith(temporary.PREFIX):
            raise CommandError(f"Write {temporary.OPTION} in full, after the command")
        if settings.DATABASE_URL or settings.BROKER_URL or settings.S3_BUCKET:
            raise CommandError(
                f"{temporary.OPTION} stores everything in one folder: unset DATABASE_URL,"
                " CELERY_BROKER_URL and STRATA_S3_BUCKET"
            )
        self.print_line(f"Everything is stored in {settings.DATA_DIR} and deleted at the end.")

    def run(self, host: str, port: int, with_demo: bool, stack: ExitStack) -> None:
        """Run until a signal arrives. `stack` then stops the processes that were started."""
        try:
            stack.enter_context(data_dir_lock(settings.DATA_DIR))
            listener = stack.enter_context(web.bound_socket(port, host))
            self.print_line("Strata is starting")
            if missing := system.missing_features(settings.DATA_DIR):
                self.print_line(missing)
            if settings.EMBEDDED_POSTGRES:
                stack.enter_context(server.attached(settings.DATA_DIR, load_application))
            else:
                load_application()
            bootstrap.prepare(self.print_line, with_demo)
            assert settings.METRICS_DIR
            multiprocess.clear(settings.METRICS_DIR)
            self.serve(listener)
        except KeyboardInterrupt:
            self.print_line(STOPPING)

    def print_line(self, line: str) -> None:
        # Ignore errors of a closed terminal or one without Unicode, so that the shutdown continues.
        with suppress(OSError, UnicodeEncodeError):
            self.stdout.write(line)
            self.stdout.flush()

    def serve(self, listener: socket.socket) -> None:
        """Start the processes, report when the first request is served, and keep them alive."""
        address = web.local_address(listener)
        url = "http://[{}]:{}" if ":" in address[0] else "http://{}:{}"
        children = [*self.demo_model(), *servers(listener)]
        listener.listen(BACKLOG)
        preload.freeze_loaded_objects()
        with Supervisor(children, self.print_line) as supervisor:
            ready = False
            while not supervisor.stopping:
                if not ready and watchdog.answers(address, health_host()):
                    ready = True
                    self.print_line(f"Strata is ready: {url.format(*address)}")
                supervisor.tick(TICK_S if ready else FIRST_TICK_S)
                self.keep_database_up()
            listener.close()
            self.print_line(STOPPING)

    def keep_database_up(self) -> None:
        """Restart the embedded PostgreSQL if it has died. The other processes reconnect."""
        if not settings.EMBEDDED_POSTGRES or server.is_running(settings.DATA_DIR):
            return
        self.print_line("PostgreSQL ended; restarting")
        try:
            server.start(settings.DATA_DIR)
        except (server.EmbeddedPostgresError, OSError) as error:
            # OSError: the disk is full, for example.
            self.print_line(f"{error}; trying again in {DATABASE_RETRY_S:.0f} s")
            time.sleep(DATABASE_RETRY_S)

    def demo_model(self) -> list[Child]:
        """Return the demo model's process if it is used and can run. Print a line about it."""
        if "demo" not in (settings.CHAT_MODEL, settings.SYSTEM_MODEL):
            return []
        advice = "To use another, set STRATA_CHAT_MODEL and its key in .env or the environment."
        if reason := demo.unavailable_reason():
            self.print_line(f"The demo model is not started: {reason}. {advice}")
            return []
        self.print_line(f"Replies come from a small demo model and are often wrong. {advice}")
        listener = web.bound_socket(0)
        listener.listen()
        settings.DEMO_MODEL_URL = f"http://127.0.0.1:{listener.getsockname()[1]}"
        run = partial(demo.serve, listener)
        return [Child("demo model", run, log=log("demo"), stops_last=True, on_demand=listener)]


def load_application() -> None:
    """Load everything that the web processes and the workers need."""
    import config.asgi  # noqa: F401

    get_resolver().url_patterns  # noqa: B018  # imports all views
    app.finalize()
    app.loader.import_default_modules()
    preload.load()


def servers(listener: socket.socket) -> list[Child]:
    """Return the web processes and the workers. One of the workers also runs beat.

    One worker runs tasks that mostly wait, the other tasks that mostly compute. They are separate,
    because the threads of a process share one core.
    """
    count = min(MAX_WEB_PROCESSES, os.cpu_count() or 1)
    return [
        *(child(f"web {number + 1}", partial(web.serve, listener)) for number in range(count)),
        child("worker", partial(worker.work, "worker", WAITING, with_beat=True), WORKER_NICENESS),
        child("heavy worker", partial(worker.work, "heavy", HEAVY), WORKER_NICENESS),
    ]


def child(name: str, run: Callable[..., None], nice: int = 0) -> Child:
    """Return a process that is replaced when it stops calling `heartbeat`."""
    watch = Watch()
    run = partial(run, heartbeat=watch.heartbeat)
    return Child(name, run, log=log(name.replace(" ", "-")), nice=nice, watch=watch)


def log(name: str) -> Path:
    """Return the log file for the output of a process."""
    return private_folder(settings.DATA_DIR / "logs") / f"{name}.log"


@contextmanager
def data_dir_lock(data_dir: Path) -> Iterator[None]:
    """Hold a lock on `data_dir`/up.lock. Raises `CommandError` if another process holds it."""
    path = data_dir / "up.lock"
    with path.open("a+") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.seek(0)
            raise CommandError(
                f"Strata already runs on {data_dir} (process {file.read().strip()})"
            ) from error
        if not (path.exists() and os.path.samestat(path.stat(), os.fstat(file.fileno()))):
            raise CommandError("Another Strata was just stopping on this folder; try again")
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            path.unlink()


def port_number(text: str) -> int:
    if not text.isdecimal() or not 1 <= int(text) <= 65535:
        raise ArgumentTypeError("a port is a number from 1 to 65535")
    return int(text)


def health_host() -> str:
    """Return a host name that the web process accepts."""
    hosts = [host for host in settings.ALLOWED_HOSTS if not host.startswith(("*", "."))]
    return (hosts or ["localhost"])[0]
