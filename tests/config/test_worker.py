"""The loop of a worker of `up` reports that it is alive."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest
from celery.utils.imports import symbol_by_name
from celery.worker.consumer import Consumer
from django.core.management import CommandError, call_command

from config.celery import app
from config.runtime import worker
from tests.operations.collector import Collector
from tests.server import ROOT

# The worker runs one task and ends. Its process ends as those of `up`, without handlers at exit.
TRACED = """
import os, django
django.setup()
from celery import signals
from config.celery import app
from config.runtime import worker

class Worker:
    exitcode = 0
    def __init__(self, **options):
        pass
    def start(self):
        task = app.tasks["tests.ping"]
        signals.task_prerun.send(sender=task, task=task)
        signals.task_postrun.send(sender=task, task=task, state="SUCCESS")
        signals.worker_shutdown.send(sender=self)

@app.task(name="tests.ping")
def ping():
    pass

app.Worker = Worker
try:
    worker.work("worker", ["io"], lambda: None)
finally:
    os._exit(0)
"""


class EnoughError(Exception):
    """Ends a wait for a broker that never comes."""


class Pool:
    """Counts how often it was tended."""

    tended, is_green = 0, False

    def tend(self) -> None:
        self.tended += 1


class Beats:
    """Counts heartbeats up to a limit."""

    def __init__(self, limit: int = 100) -> None:
        self.count, self.limit = 0, limit

    def __call__(self) -> None:
        self.count += 1
        if self.count == self.limit:
            raise EnoughError


def consumer(heartbeat: Beats) -> Consumer:
    return worker.WatchedConsumer(
        heartbeat,
        lambda request: None,
        app=app,
        pool=Pool(),
        controller=SimpleNamespace(use_eventloop=False),
    )


def test_it_reports_while_its_broker_is_away(tmp_path):
    beats = Beats(limit=4)
    away = app.connection_for_read(f"pgmq://nobody@{str(tmp_path).replace('/', '%2F')}/nothing")
    with pytest.raises(EnoughError):
        consumer(beats).ensure_connected(away)
    assert beats.count == 4


def test_each_turn_reports_and_the_pool_is_tended_less_often(monkeypatch):
    beats = Beats()
    turning = consumer(beats)
    for _ in range(3):
        turning.perform_pending_operations()
    assert (beats.count, turning.pool.tended) == (3, 0)
    monkeypatch.setattr(worker, "HEARTBEAT_S", 0)
    turning.perform_pending_operations()
    assert turning.pool.tended == 1


def test_a_worker_updates_its_file_while_its_broker_is_away(settings, tmp_path, monkeypatch):
    """Otherwise an orchestrator would replace all workers while the broker restarts."""

    def stop() -> None:
        raise EnoughError

    monkeypatch.setattr(worker, "maybe_shutdown", stop)
    settings.HEARTBEAT_FILE = tmp_path / "heartbeat"
    away = app.connection_for_read(f"pgmq://nobody@{str(tmp_path).replace('/', '%2F')}/nothing")
    consumer_class = symbol_by_name(app.conf.worker_consumer)
    waiting = consumer_class(
        lambda request: None,
        app=app,
        pool=Pool(),
        controller=SimpleNamespace(use_eventloop=False),
    )
    with pytest.raises(EnoughError):
        waiting.ensure_connected(away)
    assert settings.HEARTBEAT_FILE.exists()


@pytest.mark.parametrize("part", ["worker", "beat"])
def test_a_heartbeat_file_that_cannot_be_written_stops_workers_and_beat(
    settings, tmp_path, monkeypatch, part
):
    """Other processes ignore the file: its folder may exist for workers and beat alone."""
    started: list[str] = []
    monkeypatch.setattr("os.execv", lambda *command: started.append(part))
    settings.HEARTBEAT_FILE = tmp_path / "heartbeat"
    call_command("run", part)
    assert started == [part]
    settings.HEARTBEAT_FILE = tmp_path / "nowhere" / "heartbeat"
    with pytest.raises(CommandError, match="STRATA_HEARTBEAT_FILE takes the path of a file"):
        call_command("run", part)
    assert started == [part]


@pytest.mark.process
def test_the_tasks_of_a_pool_of_threads_are_traced(tmp_path):
    with Collector() as collector:
        variables = {
            "STRATA_DATA_DIR": str(tmp_path),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url,
        }
        subprocess.run([sys.executable, "-c", TRACED], cwd=ROOT, env=os.environ | variables)
    assert [(span.name, span.part) for span in collector.spans] == [("tests.ping", "worker")]
