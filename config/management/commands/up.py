"""The command `up`: starts database, web, workers, beat and, if it is used, the demo model."""

import fcntl
import os
import signal
import socket
import sys
import time
from argparse import ArgumentParser, ArgumentTypeError
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from django.conf import settings
from django.core.management.base import BaseCommand, CommandError

from chat.providers import demo
from config.observability.metrics import multiprocess
from config.postgres import server
from config.runtime import bootstrap, commands, watchdog
from config.runtime.supervisor import Child, Supervisor
from config.runtime.watchdog import Watch
from config.settings.env import private_folder

DATABASE_RETRY_S = 2.0
# Pages and replies come first. The units of deploy/systemd use the same value.
WORKER_NICENESS = 5
STOPPING = "Stopping…"


class Command(BaseCommand):
    help = "Start Strata: database, web, worker and beat, until Ctrl-C."
    # Checks would load the whole project; this process stays small.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=port_number, default=settings.PORT)
        parser.add_argument(
            "--demo", action="store_true", help="add a project with two months of conversations"
        )

    def handle(self, *args: Any, port: int, demo: bool, **options: Any) -> None:
        # Until the supervisor takes over, SIGTERM stops the command in the same way as Ctrl-C. Both
        # are set, because a shell script starts background jobs with SIGINT ignored.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        # Logs, metrics and all other files that its processes write are for this account only.
        os.umask(0o077)
        os.chdir(settings.BASE_DIR)
        try:
            with ExitStack() as stack:
                self.run(port, demo, stack)
        except server.EmbeddedPostgresError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            # A second signal arrived while the database was being stopped.
            pass
        self.print_line("Stopped.")

    def run(self, port: int, with_demo: bool, stack: ExitStack) -> None:
        """Run until a signal arrives. `stack` stops the processes that were started."""
        try:
            stack.enter_context(data_dir_lock(settings.DATA_DIR))
            check_port(port)
            self.print_line("Strata is starting")
            if settings.EMBEDDED_POSTGRES:
                stack.enter_context(server.attached(settings.DATA_DIR))
            bootstrap.prepare(self.print_line, with_demo)
            multiprocess.clear(metrics_folder())
            self.serve(port)
        except KeyboardInterrupt:
            self.print_line(STOPPING)

    def print_line(self, line: str) -> None:
        # A closed terminal, or one without Unicode, must not prevent the shutdown.
        with suppress(OSError, UnicodeEncodeError):
            self.stdout.write(line)
            self.stdout.flush()

    def serve(self, port: int) -> None:
        """Start the processes, report the first served request, and keep them alive."""
        children = [*self.demo_model(), *servers(port)]
        with Supervisor(children, self.print_line) as supervisor:
            ready = False
            while not supervisor.stopping:
                supervisor.tick()
                self.keep_database_up()
                if not ready and watchdog.answers(port, health_host()):
                    ready = True
                    self.print_line(f"Strata is ready: http://127.0.0.1:{port}")
            self.print_line(STOPPING)

    def keep_database_up(self) -> None:
        """Restart the embedded PostgreSQL if it died. The other processes reconnect."""
        if not settings.EMBEDDED_POSTGRES or server.is_running(settings.DATA_DIR):
            return
        self.print_line("PostgreSQL ended; restarting")
        try:
            server.start(settings.DATA_DIR)
        except server.EmbeddedPostgresError as error:
            self.print_line(f"{error}; trying again in {DATABASE_RETRY_S:.0f} s")
            time.sleep(DATABASE_RETRY_S)

    def demo_model(self) -> list[Child]:
        """Return the demo model's process if it is used and can run, and print a line about it."""
        if "demo" not in (settings.CHAT_MODEL, settings.SYSTEM_MODEL):
            return []
        advice = "To use another, set STRATA_CHAT_MODEL and its key in .env or the environment."
        if reason := demo.unavailable_reason():
            self.print_line(f"The demo model is not started: {reason}. {advice}")
            return []
        self.print_line(f"Replies come from a small demo model and are often wrong. {advice}")
        port = free_port()
        os.environ["STRATA_DEMO_URL"] = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-I", str(demo.__file__), "--port", str(port)]
        return [Child("demo model", command, log=log("demo"), stops_last=True)]


def servers(port: int) -> list[Child]:
    """Return web, workers and beat.

    Summaries, imports, webhooks and the rest each have workers of their own, so that none of them
    waits for another. Threads serve the queues whose tasks mostly wait or take a moment.
    """
    # Set here, so that a relative path or another PORT in .env does not apply to them.
    environment = {
        "STRATA_DATA_DIR": str(settings.DATA_DIR),
        "PORT": str(port),
        "PROMETHEUS_MULTIPROC_DIR": str(metrics_folder()),
    }
    workers = {
        "worker": commands.worker("memory"),
        "import worker": commands.worker("io", concurrency=1),
        "quick worker": commands.worker("chat", "index", pool="threads", concurrency=4),
        "webhook worker": commands.worker("webhooks", pool="threads", concurrency=4),
    }
    web_watch = Watch(lambda: watchdog.answers(port, health_host()))
    return [
        Child("web", commands.web(port), environment, log("web"), watch=web_watch),
        *(worker(name, command, environment) for name, command in workers.items()),
        Child("beat", commands.beat(), environment, log("beat")),
    ]


def worker(name: str, command: list[str], environment: dict[str, str]) -> Child:
    """Return a worker that is replaced when it no longer touches its heartbeat file."""
    path = log(name.split()[0])
    heartbeat = watchdog.HeartbeatFile(path.with_suffix(".heartbeat"))
    return Child(
        name,
        command,
        environment | {watchdog.HEARTBEAT_VARIABLE: str(heartbeat.path)},
        path,
        nice=WORKER_NICENESS,
        watch=Watch(heartbeat.has_changed, heartbeat.forget),
    )


def metrics_folder() -> Path:
    """Return the folder in which the processes share their metrics."""
    folder: Path = settings.METRICS_DIR or settings.DATA_DIR / "metrics"
    return folder


def log(name: str) -> Path:
    """Return the file for a process's output."""
    return private_folder(settings.DATA_DIR / "logs") / f"{name}.log"


@contextmanager
def data_dir_lock(data_dir: Path) -> Iterator[None]:
    """Hold `data_dir`/up.lock. Raises `CommandError` if another process does."""
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


def check_port(port: int) -> None:
    """Raise `CommandError` if the port cannot be used."""
    with socket.socket() as probe:
        # As the web server does: recently closed connections do not block the port.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError as error:
            raise CommandError(
                f"Port {port} cannot be used ({os.strerror(error.errno or 0)});"
                " choose another with --port or PORT"
            ) from error


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def health_host() -> str:
    """Return a host name that the web process answers to."""
    hosts = [host for host in settings.ALLOWED_HOSTS if not host.startswith(("*", "."))]
    return (hosts or ["localhost"])[0]
