"""/metrics: who may read it, and what it says. tests/operations reads that of whole shared."""

import json
import os
import re
import resource
import signal
from datetime import timedelta
from functools import partial
from pathlib import Path
from threading import Event

import pytest
import yaml
from django.db import connection
from django.db.models.functions import Now
from kombu import Connection
from prometheus_client.mmap_dict import MmapedDict

from chat import metrics as calls
from chat.conversations.messages import ask
from chat.models import Session
from chat.providers import ProviderError
from config.health.probes import Probe
from config.http.middleware import LATENCY, measure_request
from config.models import Heartbeat
from config.observability.metrics import collectors, multiprocess
from tests.server import ROOT

DEPLOY = ROOT / "deploy"


@pytest.fixture(autouse=True)
def uncached_collectors(monkeypatch):
    """Nobody asked a moment ago."""
    monkeypatch.setattr(collectors, "CACHE_S", 0)


@pytest.fixture
def key(settings) -> dict[str, str]:
    return {"Authorization": f"Bearer {settings.METRICS_TOKEN}"}


def value(page: str, name: str) -> float:
    [metric_line] = [line for line in page.splitlines() if line.startswith(f"{name} ")]
    return float(metric_line.split()[-1])


@pytest.mark.django_db
class TestWhoMayRead:
    def test_the_servers_token_opens_the_metrics(self, client, key):
        answer = client.get("/metrics", headers=key)
        assert answer.status_code == 200
        assert answer.headers["Content-Type"] == "text/plain; version=0.0.4; charset=utf-8"

    def test_its_token_lies_beside_the_database_for_its_owner_alone(self, settings):
        path = settings.DATA_DIR / "metrics_token"
        assert path.read_text() == settings.METRICS_TOKEN
        assert path.stat().st_mode & 0o777 == 0o600

    def test_an_administrator_in_a_browser(self, client, django_user_model):
        client.force_login(django_user_model.objects.create_superuser("root"))
        assert client.get("/metrics").status_code == 200

    def test_nobody_else_not_even_on_this_machine(self, client, api, owner):
        for item in (client, api(owner)):
            answer = item.get("/metrics")
            assert answer.status_code == 401
            assert answer.headers["WWW-Authenticate"] == "Bearer"
            assert b"strata_" not in answer.content
        client.force_login(owner)
        assert client.get("/metrics").status_code == 401
        assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 401


@pytest.mark.django_db
class TestWhatIsTheCase:
    def test_metrics_show_how_many_tasks_wait_and_since_when(self, client, key, project, owner):
        Heartbeat.objects.create(part="beat", seen_at=Now() - timedelta(seconds=40))
        session = Session.objects.create(project=project, creator=owner)
        ask(session, "Hello", owner)
        page = client.get("/metrics", headers=key).content.decode()
        assert value(page, 'strata_pending_items{kind="replies"}') == 1
        assert value(page, 'strata_pending_items{kind="deliveries"}') == 0
        assert 0 <= value(page, 'strata_pending_oldest_age_seconds{kind="replies"}') < 60
        assert 40 <= value(page, 'strata_heartbeat_age_seconds{component="beat"}') < 60
        assert 0 < value(page, "strata_disk_free_ratio") < 1
        assert value(page, 'strata_memory_due_items{kind="sessions"}') == 0

    def test_a_query_for_each_question_however_much_there_is(
        self, project, owner, django_assert_num_queries
    ):
        for _ in range(3):
            ask(Session.objects.create(project=project, creator=owner), "Hello", owner)
        for collector, queries in (
            ("memory_due", 1),
            ("pending", 6),
            ("retrying", 4),
            ("heartbeat_ages", 1),
        ):
            with django_assert_num_queries(queries):
                list(getattr(collectors, collector)())

    def test_a_database_that_is_away_is_waited_for_once(self, monkeypatch):
        released = Event()
        monkeypatch.setattr(collectors, "_database", Probe(lambda: released.wait(10)))
        monkeypatch.setattr(collectors, "DATABASE_TIMEOUT_S", 0.1)
        monkeypatch.setattr(collectors, "_run", lambda collector: pytest.fail("It was asked."))
        by_name = {metric.name: metric for metric in collectors.StateCollector().collect()}
        released.set()
        failed = {
            sample.labels["collector"]: sample.value
            for sample in by_name["strata_collector_failed"].samples
        }
        assert failed["memory_due"] == failed["heartbeat_ages"] == 1

    def test_a_slow_collector_is_left_out_and_reported(self, client, key, monkeypatch):
        def slow():
            with connection.cursor() as cursor:
                cursor.execute("SELECT pg_sleep(5)")
            yield from ()

        monkeypatch.setattr(collectors, "QUERY_TIMEOUT_MS", 50)
        monkeypatch.setattr(collectors, "DATABASE_COLLECTORS", (slow, collectors.heartbeat_ages))
        page = client.get("/metrics", headers=key).content.decode()
        assert value(page, 'strata_collector_failed{collector="slow"}') == 1
        assert value(page, 'strata_collector_failed{collector="heartbeat_ages"}') == 0


class TestNames:
    def test_a_model_name_becomes_a_label_after_an_answer(self, monkeypatch):
        monkeypatch.setattr(calls, "_answering", set())
        with pytest.raises(ProviderError), calls.measure_call("typed:by-somebody", "reply"):
            raise ProviderError("No.", code="timeout")
        assert "typed:by-somebody" not in names_of_models()
        with calls.measure_call("typed:by-somebody", "reply") as call:
            call.record_chunk()
        assert "typed:by-somebody" in names_of_models()

    def test_the_number_of_model_labels_is_limited(self, monkeypatch):
        monkeypatch.setattr(calls, "_answering", set())
        for number in range(calls.MAX_MODEL_LABELS * 2):
            with calls.measure_call(f"many:{number}", "reply") as call:
                call.record_chunk()
        many = [name for name in names_of_models() if name.startswith("many:")]
        assert len(many) == calls.MAX_MODEL_LABELS

    def test_a_client_that_makes_methods_up_adds_one_name(self):
        for method in ("GET", "CANARY", "CANARIES"):
            measure_request("a-view", method, 200, 0.0)
        methods = {sample.labels["method"] for sample in samples(LATENCY, "a-view")}
        assert methods == {"GET", "other"}


def samples(metric, view: str) -> list:
    return [sample for sample in metric.collect()[0].samples if sample.labels["view"] == view]


def names_of_models() -> set[str]:
    return {sample.labels["model"] for sample in calls.CALLS.collect()[0].samples}


def test_gauges_of_a_dead_process_are_removed_and_its_counters_stay(tmp_path):
    for pid in ("1", "99999999"):
        for kind in ("gauge_livesum", "counter"):
            (tmp_path / f"{kind}_{multiprocess.HOST}-{pid}.db").touch()
    (tmp_path / "gauge_livesum_elsewhere-99999999.db").touch()
    multiprocess.remove_dead_gauges(tmp_path)
    stale_file = f"gauge_livesum_{multiprocess.HOST}-99999999.db"
    assert stale_file not in names(tmp_path) and len(names(tmp_path)) == 4
    multiprocess.clear(tmp_path)
    assert names(tmp_path) == set()


def test_a_process_begins_with_nothing_of_one_that_had_its_number(tmp_path, monkeypatch):
    monkeypatch.setattr("prometheus_client.values.ValueClass", None)
    for kind in ("gauge_livesum", "counter"):
        (tmp_path / f"{kind}_{multiprocess.HOST}-{os.getpid()}.db").touch()
    multiprocess.share(tmp_path)
    assert names(tmp_path) == {f"counter_{multiprocess.HOST}-{os.getpid()}.db"}


def test_queues_outside_of_the_database_may_be_empty(settings, monkeypatch):
    """Redis has no empty queues, so none exists on an idle server."""
    settings.BROKER_IN_DATABASE = False
    broker = Connection("memory://")
    monkeypatch.setattr(collectors.current_app, "connection_for_read", lambda: broker)
    with broker.clone() as other, other.SimpleQueue("memory") as waiting:
        waiting.put({})
        waiting.put({})
        metrics = collectors.external_queues()
        waiting.clear()
    assert metrics is not None
    depths = {sample.labels["queue"]: sample.value for sample in metrics[0].samples}
    assert depths == dict.fromkeys(settings.QUEUES, 0) | {"memory": 2}


@pytest.fixture
def full_disk(monkeypatch):
    """Return a function that fills the disk, and one that frees it: no file may grow."""
    monkeypatch.setattr(multiprocess, "RETRY_S", 0.0)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    free = partial(resource.setrlimit, resource.RLIMIT_FSIZE, limits)
    yield lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1])), free
    free()
    signal.signal(signal.SIGXFSZ, handler)


def stored_counts(path: Path) -> dict[str, float]:
    return {key: count for key, count, *_ in MmapedDict.read_all_values_from_file(path)}


def test_the_blocks_of_a_metrics_file_are_reserved(tmp_path):
    """Otherwise, on a full disk, the kernel kills each process that counts something."""
    path = tmp_path / "counter_1.db"
    counts = multiprocess.ReservedDict(str(path))
    keys = [f"{number}:{'x' * 500}" for number in range(300)]
    for key in keys:
        counts.write_value(key, 1.0, 0.0)
    size = path.stat().st_size
    assert size == 2**18 and path.stat().st_blocks * 512 >= size
    assert stored_counts(path) == dict.fromkeys(keys, 1.0)


def test_on_a_full_disk_a_process_keeps_its_counts_until_there_is_room(tmp_path, full_disk):
    fill, free = full_disk
    path = tmp_path / "counter_1.db"
    fill()
    counts = multiprocess.ReservedDict(str(path))
    counts.write_value("requests", counts.read_value("requests")[0] + 1, 0.0)
    assert counts.read_value("requests") == (1.0, 0.0) and not path.exists()
    free()
    counts.write_value("requests", 2.0, 0.0)
    fill()
    counts.write_value("requests", 3.0, 0.0)
    assert counts.read_value("requests") == (3.0, 0.0)
    assert stored_counts(path) == {"requests": 3.0}


def test_a_metrics_file_is_never_empty(tmp_path, monkeypatch):
    """/metrics would fail while it reads the files of all processes."""
    append = multiprocess._append_zeros

    def look(path: Path, count: int) -> None:
        assert not list(tmp_path.glob("*.db"))
        append(path, count)

    monkeypatch.setattr(multiprocess, "_append_zeros", look)
    counts = multiprocess.ReservedDict(str(tmp_path / "counter_1.db"))
    counts.write_value("requests", 1.0, 0.0)
    assert names(tmp_path) == {"counter_1.db"}


def test_a_process_goes_on_with_the_counts_of_one_that_had_its_number(tmp_path):
    path = tmp_path / "counter_1.db"
    for expected in (0.0, 1.0):
        counts = multiprocess.ReservedDict(str(path))
        assert counts.read_value("requests")[0] == expected
        counts.write_value("requests", 1.0, 0.0)
        counts.close()
    assert path.stat().st_size == 2**16


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


# Made of it: Prometheus adds these to a histogram's name, and a counter's.
ENDINGS = re.compile(r"_(bucket|count|sum|total|created)$")


@pytest.mark.django_db
def test_dashboard_and_alerts_ask_for_what_there_is(client, key):
    page = client.get("/metrics", headers=key).content.decode()
    metric_names = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE")}
    metric_names |= {ENDINGS.sub("", name) for name in metric_names}
    board = json.loads((DEPLOY / "grafana/strata.json").read_text())
    alerts = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
    expressions = [
        target["expr"] for panel in board["panels"] for target in panel.get("targets", ())
    ] + [rule["expr"] for group in alerts["groups"] for rule in group["rules"]]
    assert len(expressions) > 20
    wanted = {
        name
        for expression in expressions
        for name in re.findall(r"\b(?:strata|django)_\w+", expression)
    }
    assert {name for name in wanted if ENDINGS.sub("", name) not in metric_names} == set()
    assert yaml.safe_load((DEPLOY / "prometheus/scrape.yml").read_text())["scrape_configs"]


def test_each_alert_says_what_to_do_and_the_page_explains_it():
    alerts = yaml.safe_load((DEPLOY / "prometheus/alerts.yml").read_text())
    explained = (ROOT / "docs/operations.md").read_text()
    for rule in (rule for group in alerts["groups"] for rule in group["rules"]):
        assert set(rule["annotations"]) == {"summary", "description"}
        assert rule["labels"]["severity"] in ("page", "ticket")
        assert f"`{rule['alert']}`" in explained


def test_every_metric_of_ours_is_explained(client, key, db):
    page = client.get("/metrics", headers=key).content.decode()
    ours = {line.split()[2] for line in page.splitlines() if line.startswith("# TYPE strata_")}
    explained = (ROOT / "docs/operations.md").read_text()
    assert {
        name for name in ours if f"`{name}`" not in explained and "_created" not in name
    } == set()
