"""Causes of the processor time of a reply: `python -m tests.bench.reply_profile`.

It starts the same processes as `reply_costs`, samples the stacks of all Python processes while
replies with a session are generated, ten at once, and prints milliseconds per reply by cause. The
samples themselves cost time, so the sum is larger than in `reply_costs`.
"""

import argparse
import asyncio
import json
import os
import re
import tempfile
import time
from collections import Counter
from pathlib import Path

import psutil

from tests.bench.reply_costs import RATES, WORDS, Measure, in_groups
from tests.load.model_server import speaker
from tests.server import installed
from tests.torture.running_strata import Whole

SAMPLING = Path(__file__).parent / "sampling"
# The first pattern that a stack contains names its cause.
CAUSES = (
    ("recall", r"memory/recall/(service|search|ranking|query_parsing|embedders|fact_search|fullt)"),
    ("indexing", r"memory/recall/"),
    ("webhooks", r"memory/webhook"),
    ("prompt: bank, blocks, facts", r"memory/(prompt|blocks|layers)"),
    ("prompt: history", r"chat/prompt/history"),
    ("prompt: rest", r"chat/prompt|generation.py:_prepare|lookups.py:Answer.prepare"),
    ("broker", r"memory/wakeups|kombu|config/broker"),
    ("finalising", r"generation.py:(_finalise|finalise)"),
    ("flushing", r"generation.py:(_flush|flush)"),
    ("last event", r"sse.py:_last_event"),
    ("model: reading the stream", r"http_clients.py:(BatchedEventStream|_merge|_parse|TextCh)"),
    ("model: httpcore", r"httpcore|anyio"),
    ("model: request and SDK", r"pydantic_ai|/openai/|httpx2|chat/providers"),
    ("polls", r"poller.py"),
    ("stream to the reader", r"sse.py|responses.py:stream_chunks|live_replies.py"),
    ("authentication, rate limit", r"projects/(authentication|rate_limits)|knox"),
    ("rights", r"chat/permissions|projects/permissions"),
    ("question and pending reply", r"conversations/messages.py|idempotency|attachments"),
    ("rendering", r"serializers.py|renderers.py"),
    ("views, middleware", r"rest_framework|django/(core/handlers|middleware)|config/http|asgiref"),
    ("heartbeats", r"heartbeat|watchdog"),
    ("uvicorn", r"uvicorn|h11|httptools"),
    ("threads", r"concurrent/futures|threading.py"),
    ("event loop", r"asyncio"),
    ("tasks", r"celery"),
)
PATTERNS = [(cause, re.compile(pattern)) for cause, pattern in CAUSES]


def cause_of(stack: str) -> str:
    return next((cause for cause, pattern in PATTERNS if pattern.search(stack)), "rest")


def kind_of(path: Path) -> str:
    """Return the kind of process, such as strata-web."""
    return re.sub(r"(-\d+)+$", "", path.stem)


def read(folder: Path, processes: int) -> dict[str, Counter[str]]:
    """Let the processes write their stacks, and return nanoseconds by kind and stack."""
    (folder / "write").touch()
    asked_at = (folder / "write").stat().st_mtime
    # On a busy machine, a process takes several seconds.
    while sum(path.stat().st_mtime > asked_at for path in folder.glob("*.json")) < processes:
        time.sleep(0.1)
    stacks: dict[str, Counter[str]] = {}
    for path in folder.glob("*.json"):
        stacks.setdefault(kind_of(path), Counter()).update(json.loads(path.read_text()))
    return stacks


def report(used: Counter[str], replies: int, minimum_ms: float = 0.1) -> None:
    for name, ns in used.most_common():
        if (ms := ns / 1e6 / replies) >= minimum_ms:
            print(f"{ms:8.2f}  {name}")


def main(replies: int, functions: str) -> None:
    with tempfile.TemporaryDirectory() as temporary:
        os.environ.setdefault("STRATA_TEST_DATA", temporary)
        os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
        os.environ.setdefault("STRATA_DATA_DIR", temporary)
        folder, data_dir = Path(temporary) / "samples", Path(temporary) / "strata"
        folder.mkdir()
        data_dir.mkdir()
        sampled = {"PYTHONPATH": str(SAMPLING), "STRATA_SAMPLES": str(folder)}
        with (
            speaker(WORDS) as model,
            installed(data_dir, model) as installation,
            Whole(installation, **RATES, **sampled) as whole,
        ):
            measure = Measure(whole, model.base_url, installation.token)

            async def prepare() -> list:
                project = await measure.strata.json("POST", "projects/", {"name": "Billing"})
                measure.slug = project["slug"]
                targets = [await measure.session() for _ in range(10)]
                await in_groups(targets, 20, 10)
                await asyncio.sleep(8)
                return targets

            targets = asyncio.run(prepare())
            processes = len(psutil.Process(whole.pid).children())
            before = read(folder, processes)
            postgres = measure.stack.seconds()["PostgreSQL"]
            asyncio.run(in_groups(targets, replies, 10))
            time.sleep(4)
            postgres = measure.stack.seconds()["PostgreSQL"] - postgres
            after = read(folder, processes)
    print(f"{postgres / replies * 1000:8.2f}  PostgreSQL, all processes")
    for kind, stacks in after.items():
        new = stacks - before.get(kind, Counter())
        causes: Counter[str] = Counter()
        for stack, ns in new.items():
            causes[cause_of(stack)] += ns
        print(f"{causes.total() / 1e6 / replies:8.2f}  {kind}")
        report(causes, replies)
        if functions:
            matched = {s: ns for s, ns in new.items() if re.search(functions, cause_of(s))}
            report(Counter(by_function(matched)), replies, 0.05)


def by_function(stacks: dict[str, int]) -> Counter[str]:
    """Return the time below each function, which is counted once in a recursive stack."""
    used: Counter[str] = Counter()
    for stack, ns in stacks.items():
        for function in set(stack.split(";")):
            used[function] += ns
    return used


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--replies", type=int, default=100)
    parser.add_argument("--functions", default="", help="a pattern of causes to print in detail")
    arguments = parser.parse_args()
    main(arguments.replies, arguments.functions)
