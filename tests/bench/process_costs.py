"""What the processes of `manage.py up` cost: `python -m tests.bench.process_costs` prints it."""

import os
import signal
import statistics
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import psutil

from tests.commands import ROOT
from tests.shape.ports import reserved_port

AFTER_START_S = 15
IDLE_S = 60
# Connections, each a process of PostgreSQL, come and go: their number is the median of samples.
SAMPLE_S = 5
# What follows the start, such as the first of each periodic task, is over by then.
SETTLED_S = 75
DEMO = "demo model"


@dataclass
class Costs:
    """Seconds of processor time are of one core."""

    ready_s: float = 0.0
    processor_until_ready_s: float = 0.0
    processor_after_start_s: float = 0.0
    idle_cores: float = 0.0
    processes: float = 0
    pss_mb: float = 0.0


@contextmanager
def running(data_dir: Path, **variables: str) -> Iterator[tuple[psutil.Process, float]]:
    """`up` on a data folder, from its ready line; yields how many seconds that took, too."""
    reservation, port = reserved_port()
    command = [sys.executable, "manage.py", "up", "--port", str(port)]
    environment = os.environ | {"DATABASE_URL": "", "CELERY_BROKER_URL": ""}
    environment |= {"STRATA_DATA_DIR": str(data_dir)} | variables
    began = time.perf_counter()
    process = subprocess.Popen(
        command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        printed = [process.stdout.readline()]
        while not printed[-1].startswith("Strata is ready"):
            assert printed[-1], printed
            printed.append(process.stdout.readline())
        yield psutil.Process(process.pid), time.perf_counter() - began
    finally:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=60)
        reservation.close()


def measured(data_dir: Path, **variables: str) -> tuple[Costs, dict[str, tuple[int, float]]]:
    """The costs of one start and of its waiting, and by kind of process its number and PSS."""
    with running(data_dir, **variables) as (up, ready_s):
        costs = Costs(ready_s, processor_s(up))
        time.sleep(AFTER_START_S)
        costs.processor_after_start_s = processor_s(up) - costs.processor_until_ready_s
        time.sleep(SETTLED_S - AFTER_START_S)
        before, counts = processor_s(up), []
        for _ in range(IDLE_S // SAMPLE_S):
            time.sleep(SAMPLE_S)
            counts.append(sum(kind(process) != DEMO for process in family(up)))
        costs.idle_cores = (processor_s(up) - before) / IDLE_S
        costs.processes = statistics.median(counts)
        count: Counter[str] = Counter()
        pss: Counter[str] = Counter()
        for process in family(up):
            with suppress(psutil.NoSuchProcess, FileNotFoundError):
                pss[kind(process)] += pss_kb(process.pid)
                count[kind(process)] += 1
    kinds = {name: (count[name], pss[name] / 1024) for name in sorted(count)}
    costs.pss_mb = sum(size for name, (_, size) in kinds.items() if name != DEMO)
    return costs, kinds


def family(up: psutil.Process) -> list[psutil.Process]:
    return [up, *up.children(recursive=True)]


def processor_s(up: psutil.Process) -> float:
    """Of all processes, with those that have ended, which their parents count."""
    total = 0.0
    for process in family(up):
        with suppress(psutil.NoSuchProcess):
            total += sum(process.cpu_times()[:4])
    return total


def pss_kb(pid: int) -> int:
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("Pss:"))


def kind(process: psutil.Process) -> str:
    try:
        name, command = process.name(), " ".join(process.cmdline())
    except psutil.NoSuchProcess:
        return "ended"
    if name == "postgres":
        return "postgres " + command.partition(": ")[2].split(" postgres")[0].strip()
    if name.startswith("strata-demo"):
        return DEMO
    return name if name.startswith("strata-") else "supervisor"


def main() -> None:
    """One line for the first start, on an empty folder, and one for each that follows."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    with TemporaryDirectory() as folder:
        data_dir = Path(folder) / "data"
        data_dir.mkdir()
        with running(data_dir) as (up, ready_s):
            print(f"first start {ready_s:.1f} s, processor {processor_s(up):.1f} s", flush=True)
        for number in range(rounds):
            costs, kinds = measured(data_dir)
            if not number:
                for name, (count, size) in kinds.items():
                    print(f"{count:>3} {size:>7.1f} MB {name}")
            print(costs, flush=True)


if __name__ == "__main__":
    main()
