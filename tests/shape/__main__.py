"""The production shape on one machine: `python -m tests.shape [FOLDER]`, until Ctrl-C.

An external PostgreSQL, PgBouncer in transaction mode before it, Redis, two web processes, three
workers and two beats, all with nothing but what a deployer sets. Packages: pgbouncer, redis-server.
"""

import os
import subprocess
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path

from config.postgres import server
from config.runtime import commands as processes
from config.runtime.supervisor import Child, Supervisor
from tests.server import ROOT
from tests.shape import parts
from tests.shape.ports import reserved_port

WORKERS = {"chat": ("chat", "index"), "memory": ("memory",), "io": ("io", "webhooks", "memory")}
WEBS, BEATS = 2, 2


def children(variables: dict[str, str], ports: list[int], logs: Path) -> list[Child]:
    """Web, workers and beats, each with its log in the folder `logs`."""
    web = [sys.executable, "manage.py", "run", "web", "--port"]
    commands = {f"web-{number}": [*web, str(port)] for number, port in enumerate(ports, 1)}
    commands |= {f"worker-{name}": processes.worker(*queues) for name, queues in WORKERS.items()}
    commands |= {f"beat-{number}": processes.beat() for number in range(1, BEATS + 1)}
    return [
        Child(name, processes.runner(command), variables, logs / f"{name}.log")
        for name, command in commands.items()
    ]


def main(folder: Path) -> None:
    logs = folder / "logs"
    logs.mkdir(exist_ok=True)
    with ExitStack() as stack:
        stack.enter_context(server.attached(folder))
        proxies = stack.enter_context(parts.in_front_of(folder))
        variables = os.environ | {"STRATA_DATA_DIR": str(folder)} | proxies
        for arguments in (["prepare"], ["create_token", "admin"]):
            command = [sys.executable, "manage.py", *arguments]
            completed = subprocess.run(
                command, cwd=ROOT, env=variables, check=True, stdout=subprocess.PIPE, text=True
            )
        _say(f"token {completed.stdout.strip()}")
        for name, value in proxies.items():
            _say(f"{name}={value}")
        reservations = [reserved_port() for _ in range(WEBS)]
        ports = [port for _, port in reservations]
        with Supervisor(children(variables, ports, logs), _say) as supervisor:
            for child in supervisor.children:
                _say(f"{child.name} is process {child.pid}")
            for port in ports:
                _say(f"http://127.0.0.1:{port}")
            _say("Ctrl-C ends it")
            while not supervisor.stopping:
                supervisor.tick()


def _say(line: str) -> None:
    print(line, flush=True)


if __name__ == "__main__":
    if lacking := parts.missing():
        raise SystemExit(f"The production shape takes {' and '.join(lacking)}")
    if len(sys.argv) > 1:
        Path(sys.argv[1]).mkdir(parents=True, exist_ok=True)
        main(Path(sys.argv[1]).resolve())
    else:
        with tempfile.TemporaryDirectory(prefix="strata-shape-") as temporary:
            main(Path(temporary))
