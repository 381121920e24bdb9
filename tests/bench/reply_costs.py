"""Costs of replies: `python -m tests.bench.reply_costs`.

It starts `manage.py up`, a scripted model and its own readers in separate processes, and prints the
processor time of a reply by kind of process, and the waiting times beside the model's own.

With `--beside FOLDER`, it also starts the Strata in that folder, and measures the processor time of
both in turns, because the load of a machine changes it more than most changes of the code do.
"""

import argparse
import asyncio
import json
import os
import tempfile
import time
from collections import defaultdict
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import psutil
import psycopg

from config.postgres.server import socket_directory
from tests.commands import ROOT
from tests.load.model_server import speaker
from tests.load.readers import Hearing, Strata
from tests.server import installed
from tests.torture.running_strata import Whole

WORDS = 100
QUESTION = "How long does build {number} take on the slower of the two machines?"
# They are counted as usual, and never reached.
RATES = {f"STRATA_RATE_{name}": "100000/minute" for name in ("READS", "WRITES", "REPLIES")}


Work = Callable[[], Coroutine[Any, Any, Any]]


@dataclass(frozen=True)
class Target:
    """A request that is answered by a stream: to Strata, or to the model itself."""

    strata: Strata
    path: str
    body: Callable[[int], dict[str, object]]
    headers: dict[str, str]


async def first_token(target: Target, number: int) -> float:
    """Send the request, read the whole answer, and return the seconds until the first word."""
    took = 0.0
    began = time.perf_counter()

    def note(kind: str, id: str, data: bytes) -> None:
        nonlocal took
        if not took and b"word0" in data:
            took = time.perf_counter() - began
        if data.startswith(b"[DONE]") and not hearing.over.done():
            # The model keeps its connections open.
            hearing.over.set_result(None)

    body = target.body(number)
    request = target.strata.request("POST", target.path, body, **target.headers)
    transport, hearing = await asyncio.get_running_loop().create_connection(
        lambda: Hearing(request, note), target.strata.host, target.strata.port
    )
    await hearing.over
    transport.abort()
    if not took:
        raise ConnectionError(f"{target.path}: {hearing.status!r}")
    return took


class Stack:
    """The processes of `up` and its PostgreSQL."""

    def __init__(self, whole: Whole) -> None:
        postmaster = (whole.data_dir / "postgres/postmaster.pid").read_text().splitlines()[0]
        self._roots = [psutil.Process(whole.pid), psutil.Process(int(postmaster))]

    def seconds(self) -> dict[str, float]:
        """Return the processor time so far, by kind of process. It includes ended children."""
        used: dict[str, float] = defaultdict(float)
        for root in self._roots:
            for process in (root, *root.children(recursive=True)):
                try:
                    # Other processes are called strata-web, strata-worker and so on.
                    kind = "PostgreSQL" if process.name() == "postgres" else process.name()
                    used[kind] += sum(process.cpu_times()[:4])
                except psutil.NoSuchProcess:
                    continue
        return used

    async def spent(
        self, work: Coroutine[Any, Any, Any], idle: dict[str, float], settle: float = 4
    ) -> dict[str, float]:
        """Return the processor time of `work` and of what follows it within `settle` seconds."""
        before, began = self.seconds(), time.monotonic()
        await work
        await asyncio.sleep(settle)
        after, took = self.seconds(), time.monotonic() - began
        return {
            kind: after[kind] - before.get(kind, 0) - idle.get(kind, 0) * took for kind in after
        }


async def in_groups(targets: list[Target], number: int, at_once: int) -> list[float]:
    """Send `number` requests, `at_once` at a time, spread over the targets."""
    left = iter(range(number))

    async def ask(target: Target) -> list[float]:
        return [await first_token(target, index) for index in left]

    groups = await asyncio.gather(*(ask(target) for target in targets[:at_once]))
    return [seconds for group in groups for seconds in group]


def report(name: str, **figures: float) -> None:
    print(f"{name:<44}", *(f"{key} {figure:.4g}" for key, figure in figures.items()), flush=True)


def report_costs(name: str, used: dict[str, float], number: int) -> None:
    """Print milliseconds of processor time per reply."""
    per_reply = {kind: seconds / number * 1000 for kind, seconds in used.items()}
    report(f"{name}, ms of processor time", all=sum(per_reply.values()), **per_reply)


class Measure:
    """One round of measurements of a running Strata."""

    def __init__(self, whole: Whole, model_url: str, token: str) -> None:
        self.strata = Strata(whole.url, token)
        self.database = socket_directory(whole.data_dir)
        self.stack = Stack(whole)
        self.idle: dict[str, float] = {}
        self.direct = Target(
            Strata(model_url, "x"), "/v1/chat/completions", lambda number: {"stream": True}, {}
        )

    async def session(self) -> Target:
        """Create a session with a past of ten exchanges."""
        made = await self.strata.json("POST", f"projects/{self.slug}/sessions/", {})
        path = f"sessions/{made['id']}/messages/"
        for number in range(10):
            content = f"Build {number} takes {number} minutes, and the tests {number * 2}."
            await self.strata.json("POST", path, {"content": content, "reply": False})
        return Target(
            self.strata,
            f"/api/v1/{path}",
            lambda number: {"content": QUESTION.format(number=number)},
            {},
        )

    def openai(self, key: str = "") -> Target:
        headers = {"X-Strata-Session": key} if key else {}

        def body(number: int) -> dict[str, object]:
            messages = [{"role": "user", "content": QUESTION.format(number=number)}]
            return {"model": self.slug, "stream": True, "messages": messages}

        return Target(self.strata, "/v1/chat/completions", body, headers)

    async def run(self, replies: int, idle_s: float, parts: str) -> None:
        """Measure the parts: keyed requests (k), costs (c), waiting times (w), bursts (b)."""
        await self.create_project()
        if "k" in parts:
            await self.keyed("right after the start")
        await self.warm_up()
        await asyncio.sleep(10)
        await self.measure_idle(idle_s)
        if "c" in parts:
            await self.costs(replies)
        if "w" in parts:
            await self.waits(self.targets[0])
        if "k" in parts:
            await self.keyed("later")
        if "b" in parts:
            for at_once in (20, 50):
                await self.burst(at_once)

    async def create_project(self) -> None:
        self.slug = (await self.strata.json("POST", "projects/", {"name": "Billing"}))["slug"]

    async def warm_up(self) -> None:
        """Create ten sessions, and get a reply in each. Then collect statistics, as PostgreSQL does
        every five minutes: without them, it plans queries of new tables badly.
        """
        self.targets = [await self.session() for _ in range(10)]
        await in_groups(self.targets, 10, 10)
        with psycopg.connect(
            host=str(self.database), user="postgres", dbname="postgres", autocommit=True
        ) as connection:
            connection.execute("ANALYZE")

    async def measure_idle(self, seconds: float) -> None:
        before = self.stack.seconds()
        await asyncio.sleep(seconds)
        after = self.stack.seconds()
        self.idle = {kind: (after[kind] - before.get(kind, 0)) / seconds for kind in after}
        report("idle, cores", all=sum(self.idle.values()), **self.idle)

    async def costs(self, replies: int) -> None:
        for name, (work, number) in self.works(replies).items():
            used = await self.stack.spent(work(), self.idle)
            report_costs(name, used, number)

    def works(self, replies: int) -> dict[str, tuple[Work, int]]:
        """Return what is measured by processor time, and its number of replies or messages."""
        written = replies * 3
        return {
            "reply with a session": (lambda: in_groups(self.targets, replies, 10), replies),
            "reply without a session": (
                lambda: in_groups([self.openai()] * 10, replies, 10),
                replies,
            ),
            "message without a reply": (lambda: self.write(written), written),
        }

    async def write(self, number: int) -> None:
        path = self.targets[0].path.removeprefix("/api/v1/")
        for index in range(number):
            body = {"content": QUESTION.format(number=index), "reply": False}
            await self.strata.json("POST", path, body)

    async def waits(self, target: Target) -> None:
        """Report the first token after the model's own, for one user."""
        added: dict[str, list[float]] = defaultdict(list)
        for number in range(12):
            direct = await first_token(self.direct, number)
            for name, asked in (("a", target), ("no", self.openai())):
                added[name].append(await first_token(asked, number) - direct)
        for name, seconds in added.items():
            times = [second * 1000 for second in seconds]
            p95 = quantiles(times, n=20)[-1]
            report(f"first token, {name} session, ms added", median=median(times), p95=p95)

    async def keyed(self, moment: str) -> None:
        """Report the first request of a new session beside the tenth."""
        target = self.openai(f"key {moment}")
        times = [await first_token(target, number) * 1000 for number in range(10)]
        report(f"keyed requests {moment}, ms", first=times[0], tenth=times[9])

    async def burst(self, at_once: int) -> None:
        """Report first tokens of requests that arrive at the same time."""
        targets = [await self.session() for _ in range(at_once)]
        await asyncio.sleep(5)
        direct = await asyncio.gather(*(first_token(self.direct, 0) for _ in targets))
        through = await asyncio.gather(*(first_token(target, 0) for target in targets))
        report(
            f"{at_once} at once, first token, s",
            direct=median(direct),
            median=median(through),
            last=max(through),
            by_direct=median(through) / median(direct),
            by_last=median(through) / max(through),
        )


async def compare(measures: dict[str, Measure], replies: int, idle_s: float, turns: int) -> None:
    """Print milliseconds of processor time per reply in turns, as median (lowest to highest)."""
    for measure in measures.values():
        await measure.create_project()
        await measure.warm_up()
    await asyncio.sleep(10)
    await asyncio.gather(*(measure.measure_idle(idle_s) for measure in measures.values()))
    used: dict[tuple[str, str], list[dict[str, float]]] = defaultdict(list)
    for _ in range(turns):
        for version, measure in measures.items():
            for name, (work, number) in measure.works(replies).items():
                spent = await measure.stack.spent(work(), measure.idle)
                per_reply = {kind: seconds / number * 1000 for kind, seconds in spent.items()}
                used[name, version].append({"all": sum(per_reply.values())} | per_reply)
    for (name, version), rows in sorted(used.items()):
        print(f"{name}, {version}, ms of processor time")
        for kind in rows[0]:
            values = [row.get(kind, 0) for row in rows]
            spread = f"({min(values):.1f} to {max(values):.1f})"
            print(f"    {kind:<18} {median(values):6.1f} {spread}", flush=True)


def main(replies: int, idle_s: float, parts: str, beside: Path | None, turns: int) -> None:
    with tempfile.TemporaryDirectory() as folder, ExitStack() as stack:
        os.environ.setdefault("STRATA_TEST_DATA", folder)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
        os.environ.setdefault("STRATA_DATA_DIR", folder)
        model = stack.enter_context(speaker(WORDS))

        def start(version: str, root: Path) -> Measure:
            data_dir = Path(folder) / version
            data_dir.mkdir()
            installation = stack.enter_context(installed(data_dir, model))
            whole = stack.enter_context(Whole(installation, root, **RATES))
            return Measure(whole, model.base_url, installation.token)

        measure = start("this", ROOT)
        print(json.dumps({"load": os.getloadavg()}))
        if beside is None:
            asyncio.run(measure.run(replies, idle_s, parts))
        else:
            both = {"beside": start("beside", beside), "this": measure}
            asyncio.run(compare(both, replies, idle_s, turns))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--replies", type=int, default=60)
    parser.add_argument("--idle", dest="idle_s", type=float, default=30, help="seconds")
    parser.add_argument("--parts", default="kcwb", help="of the measurements: see Measure.run")
    parser.add_argument("--beside", type=Path, help="the folder of another version of Strata")
    parser.add_argument("--turns", type=int, default=3, help="of each version, with --beside")
    main(**vars(parser.parse_args()))
