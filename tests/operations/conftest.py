"""A whole Strata in processes of its own, one of them a worker with a child, which writes its log
as JSON, tells everything that it would tell anybody, and sends its traces here. No ORM here.
"""

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep

import httpx2
import pytest

from tests.operations.collector import Collector
from tests.receiver import Receiver
from tests.scripted import ScriptedModel
from tests.server import Installation, Web, installed, worker

BASE_ENVIRONMENT = {
    "STRATA_LOG_LEVEL": "DEBUG",
    "STRATA_LOG_FORMAT": "json",
    "STRATA_SYSTEM_MODEL": "openai-chat:scripted",
    # Milliseconds until spans are sent.
    "OTEL_BSP_SCHEDULE_DELAY": "200",
}
PATIENCE = 30  # seconds


@dataclass(frozen=True)
class Strata:
    installation: Installation
    web: Web
    model: ScriptedModel
    collector: Collector
    receiver: Receiver
    token: str
    api: httpx2.Client

    def metrics(self) -> str:
        key = (self.installation.data_dir / "metrics_token").read_text()
        answer = httpx2.get(f"{self.web.url}/metrics", headers={"Authorization": f"Bearer {key}"})
        assert answer.status_code == 200, answer.text
        return answer.text

    def logs(self) -> str:
        """All that web and worker have written."""
        folder = self.installation.data_dir
        return "".join((folder / name).read_text() for name in ("web.log", "worker.log"))

    def lines(self, event: str) -> list[dict]:
        lines = (line for line in self.logs().splitlines() if line.startswith("{"))
        return [line for line in map(json.loads, lines) if line["event"] == event]


def until(condition, what: str):
    """What `condition` returns once it is true."""
    deadline = monotonic() + PATIENCE
    while not (result := condition()):
        assert monotonic() < deadline, f"{what} did not happen"
        sleep(0.2)
    return result


@pytest.fixture(scope="session")
def strata(tmp_path_factory) -> Iterator[Strata]:
    data_dir: Path = tmp_path_factory.mktemp("strata-operations")
    environment = BASE_ENVIRONMENT | {"PROMETHEUS_MULTIPROC_DIR": str(data_dir / "metrics")}
    with (
        ScriptedModel() as model,
        Collector() as collector,
        Receiver() as receiver,
        installed(data_dir, model) as installation,
    ):
        installation.environment.update(environment)
        traced = {"OTEL_EXPORTER_OTLP_ENDPOINT": collector.url}
        children = ("--pool=prefork", "--concurrency=1")
        with Web(installation, **traced) as web, worker(installation, *children, **traced):
            token = installation.token
            headers = {"Authorization": f"Bearer {token}"}
            with httpx2.Client(base_url=web.url, headers=headers, timeout=60) as api:
                yield Strata(installation, web, model, collector, receiver, token, api)
