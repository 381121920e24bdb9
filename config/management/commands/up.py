"""Start Strata: database, broker, web, worker, beat and, with no other model, the demo model."""

import fcntl
import http.client
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
from config import embedded, preparing, processes
from config.environment import integer
from config.metrics import shared
from config.supervisor import Child, Supervisor

DATABASE_RETRY = 2.0  # seconds
# By how much workers give way to pages and replies, as the units of deploy/systemd have it.
NICE = 5
STOPPING = "Stopping…"


class Command(BaseCommand):
    help = "Start Strata: database, web, worker and beat, until Ctrl-C."
    # The processes it starts load the whole project; this one stays small.
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: ArgumentParser) -> None:
        parser.add_argument("--port", type=port_number, default=settings.PORT)
        parser.add_argument(
            "--demo", action="store_true", help="add a project with two months of conversations"
        )

    def handle(self, *args: Any, port: int, demo: bool, **options: Any) -> None:
        # Until the supervisor takes over, SIGTERM leaves through the same doors as Ctrl-C. Set for
        # both: a shell script starts its background jobs with SIGINT ignored.
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, signal.default_int_handler)
        os.chdir(settings.BASE_DIR)
        try:
            with ExitStack() as stack:
                self.run(port, demo, stack)
        except embedded.EmbeddedPostgresError as error:
            raise CommandError(str(error)) from error
        except KeyboardInterrupt:
            # One more while the database was being stopped.
            pass
        self.say("Stopped.")

    def run(self, port: int, with_demo: bool, stack: ExitStack) -> None:
        """Until a signal comes: starts what `stack` then stops."""
        try:
            stack.enter_context(only_one(settings.DATA_DIR))
            check_port(port)
            self.say("Strata is starting")
            if settings.EMBEDDED_POSTGRES:
                stack.enter_context(embedded.attached(settings.DATA_DIR))
            preparing.prepare(self.say, with_demo)
            shared.empty(metrics_folder())
            self.serve(port)
        except KeyboardInterrupt:
            self.say(STOPPING)

    def say(self, line: str) -> None:
        # A closed terminal, or one of few letters, must not keep the processes from being stopped.
        with suppress(OSError, UnicodeEncodeError):
            self.stdout.write(line)
            self.stdout.flush()

    def serve(self, port: int) -> None:
        """Start the processes, say when the first request is served, and keep them alive."""
        children = [*self.demo_model(), *servers(port)]
        with Supervisor(children, self.say) as supervisor:
            ready = False
            while not supervisor.stopping:
                supervisor.tick()
                self.keep_database_up()
                if not ready and is_served(port):
                    ready = True
                    self.say(f"Strata is ready: http://127.0.0.1:{port}")
            self.say(STOPPING)

    def keep_database_up(self) -> None:
        """Start the embedded PostgreSQL again if it died; the children reconnect by themselves."""
        if not settings.EMBEDDED_POSTGRES or embedded.is_running(settings.DATA_DIR):
            return
        self.say("PostgreSQL ended; starting it again")
        try:
            embedded.start(settings.DATA_DIR)
        except embedded.EmbeddedPostgresError as error:
            self.say(f"{error}; trying again in {DATABASE_RETRY:.0f} s")
            time.sleep(DATABASE_RETRY)

    def demo_model(self) -> list[Child]:
        """The demo model's process when it is asked for and can run, and a line on it."""
        if "demo" not in (settings.CHAT_MODEL, settings.SYSTEM_MODEL):
            return []
        advice = "To use another, set STRATA_CHAT_MODEL and its key, in .env or the environment."
        if reason := demo.unavailable():
            self.say(f"The demo model is left out: {reason}. {advice}")
            return []
        self.say(f"Replies come from a small demo model, often wrong. {advice}")
        port = free_port()
        os.environ["STRATA_DEMO_URL"] = f"http://127.0.0.1:{port}"
        command = [sys.executable, "-I", str(demo.__file__), "--port", str(port)]
        return [Child("demo model", command, log=log("demo"), stops_last=True)]


def servers(port: int) -> list[Child]:
    """Web, workers and beat. Whoever waits for a title does not wait for summaries too, and
    whoever waits for a page or a word for neither.
    """
    # They must not resolve a relative path from another folder, nor tell people another port.
    environment = {
        "STRATA_DATA_DIR": str(settings.DATA_DIR),
        "PORT": str(port),
        "PROMETHEUS_MULTIPROC_DIR": str(metrics_folder()),
    }
    slow, quick = processes.worker("memory", "io"), processes.worker("chat", "index")
    return [
        Child("web", processes.web(port), environment, log("web")),
        Child("worker", slow, environment, log("worker"), nice=NICE),
        Child("quick worker", quick, environment, log("quick"), nice=NICE),
        Child("beat", processes.beat(), environment, log("beat")),
    ]


def metrics_folder() -> Path:
    """Where the processes put what they count."""
    folder: Path = settings.METRICS_DIR or settings.DATA_DIR / "metrics"
    return folder


def log(name: str) -> Path:
    """The file that takes a process's output."""
    folder: Path = settings.DATA_DIR / "logs"
    folder.mkdir(exist_ok=True)
    return folder / f"{name}.log"


@contextmanager
def only_one(data_dir: Path) -> Iterator[None]:
    """Hold `data_dir`/up.lock. Raises CommandError when another `up` does."""
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
            raise CommandError("Another Strata was just stopping here; try again")
        file.truncate(0)
        file.write(str(os.getpid()))
        file.flush()
        try:
            yield
        finally:
            path.unlink()


def port_number(text: str) -> int:
    try:
        return integer(1, 65535)(text)
    except ValueError as error:
        raise ArgumentTypeError("a port is a number from 1 to 65535") from error


def check_port(port: int) -> None:
    """Raise CommandError when nobody could listen on the port."""
    with socket.socket() as probe:
        # As the web server does: connections of a moment ago are no obstacle.
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


def is_served(port: int) -> bool:
    """Whether /healthz answers 200."""
    named = [host for host in settings.ALLOWED_HOSTS if not host.startswith(("*", "."))]
    client = http.client.HTTPConnection("127.0.0.1", port, timeout=2)
    try:
        client.request("GET", "/healthz", headers={"Host": (named or ["localhost"])[0]})
        return client.getresponse().status == 200
    except (OSError, http.client.HTTPException):
        return False
    finally:
        client.close()
