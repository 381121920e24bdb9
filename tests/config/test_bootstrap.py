"""Checks that run before any process starts."""

from contextlib import nullcontext
from threading import Event, Thread
from unittest.mock import MagicMock, Mock

import psycopg
import pytest
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection
from django_celery_beat.models import PeriodicTask

from config.backup import restore_marker
from config.runtime import bootstrap
from projects.core.database import PreparedQuery, fetch


@pytest.mark.django_db
def test_a_search_language_that_the_database_does_not_know_is_refused(settings):
    settings.SEARCH_LANGUAGE = "klingon"
    with pytest.raises(CommandError, match="STRATA_SEARCH_LANGUAGE must be .*english, .*simple"):
        call_command("prepare")


@pytest.mark.parametrize(
    ("query", "expected"), [("", "Connection refused"), ("?nosuch=1", "nosuch")]
)
def test_an_unreachable_database_is_reported_in_one_line(settings, monkeypatch, query, expected):
    settings.DATABASE_URL = f"postgresql://strata:canary@127.0.0.1:1/strata{query}"
    monkeypatch.setattr(bootstrap, "CONNECT_TIMEOUT_S", 1.0)
    with pytest.raises(CommandError, match=f"does not lead to a database: .*{expected}") as refused:
        call_command("prepare")
    assert "\n" not in str(refused.value)
    assert "canary" not in str(refused.value)


def test_a_database_that_is_being_started_is_waited_for(settings, monkeypatch):
    settings.DATABASE_URL = "postgresql://strata@127.0.0.1/strata"
    tried = []

    def connect(*_: object, **__: object) -> Mock:
        tried.append(1)
        if len(tried) < 2:
            raise psycopg.OperationalError("the database system is starting up")
        return Mock()

    monkeypatch.setattr("config.runtime.bootstrap.psycopg.connect", connect)
    bootstrap.wait_for_database()
    assert len(tried) == 2


@pytest.mark.django_db
@pytest.mark.parametrize(
    "reason", ['permission denied to create extension "vector"\nHINT: …', "disk full"]
)
def test_tables_that_cannot_be_created_are_reported_in_one_line(monkeypatch, reason):
    def fail(*_: object, **__: object) -> None:
        raise DatabaseError(reason)

    monkeypatch.setattr(bootstrap, "restore_marker", Mock())
    monkeypatch.setattr(bootstrap, "unapplied_migrations", lambda: 1)
    monkeypatch.setattr("config.runtime.bootstrap.call_command", fail)
    with pytest.raises(CommandError, match="could not be created") as refused:
        call_command("prepare")
    assert ("CREATE EXTENSION vector" in str(refused.value)) == ("vector" in reason)
    assert "HINT" not in str(refused.value)


@pytest.mark.django_db
def test_a_start_without_new_migrations_only_adds_missing_tasks(monkeypatch):
    monkeypatch.setattr(bootstrap, "call_command", Mock(side_effect=AssertionError))
    task = PeriodicTask.objects.get(task="chat.tasks.purge_deleted")
    task.delete()
    bootstrap.migrate()
    assert PeriodicTask.objects.filter(task=task.task).count() == 1


@pytest.mark.django_db
def test_an_unfinished_restore_stops_a_start_without_new_migrations():
    with connection.cursor() as cursor:
        cursor.execute(f"CREATE TABLE public.{restore_marker.TABLE} ()")
    with pytest.raises(CommandError, match="restore of this database was not finished"):
        bootstrap.migrate()


@pytest.mark.django_db
def test_an_old_pgvector_stops_the_start(monkeypatch):
    monkeypatch.setattr(bootstrap, "VECTOR_SETTING", "hnsw.of_a_later_version")
    with pytest.raises(CommandError, match="Install version 0.8 or later"):
        call_command("prepare")


@pytest.mark.django_db
@pytest.mark.parametrize(("proxies", "warned"), [(0, True), (1, False)])
def test_https_without_a_proxy_is_warned_of(settings, monkeypatch, capsys, proxies, warned):
    settings.HTTPS, settings.ALLAUTH_TRUSTED_PROXY_COUNT = True, proxies
    call_command("prepare")
    assert ("STRATA_TRUSTED_PROXIES is 0" in capsys.readouterr().out) == warned


@pytest.mark.django_db
@pytest.mark.parametrize("name", ["SECRET_KEY", "METRICS_TOKEN"])
@pytest.mark.parametrize(("chars", "warned"), [(19, True), (20, False)])
def test_a_secret_that_can_be_guessed_is_warned_of(settings, capsys, name, chars, warned):
    setattr(settings, name, "a" * chars)
    call_command("prepare")
    assert (f"STRATA_{name} is short" in capsys.readouterr().out) == warned


@pytest.mark.django_db
@pytest.mark.parametrize(
    ("name", "warned"),
    [
        ("STRATA_RATE_READ", True),
        ("STRATA_OIDC_CLIENT_SECRET_FILE", False),
        ("STRATA_CONCURRENCY", False),
    ],
)
def test_a_misspelled_variable_is_warned_of(monkeypatch, capsys, name, warned):
    monkeypatch.setenv(name, "1")
    call_command("prepare")
    assert (f"{name} is not a setting" in capsys.readouterr().out) == warned


@pytest.mark.django_db
def test_the_prepared_queries_are_compiled_before_any_process_starts(settings, monkeypatch):
    settings.CELERY_BROKER_URL = "redis://127.0.0.1:1"
    monkeypatch.setattr(bootstrap, "migrate", lambda: None)
    monkeypatch.setattr(bootstrap, "preparation_lock", nullcontext)
    # The test needs its connection until the end.
    monkeypatch.setattr(bootstrap, "connection", MagicMock())
    queries = list(PreparedQuery.instances)
    assert queries
    for query in queries:
        query.__dict__.pop("compiled", None)
    bootstrap.prepare(print)
    assert all("compiled" in query.__dict__ for query in queries)


_OPEN_TRANSACTIONS = """
    SELECT count(*) FROM pg_stat_activity WHERE state = 'idle in transaction'
    AND datname = current_database() AND pid <> pg_backend_pid()
"""


@pytest.mark.django_db(transaction=True)
def test_one_process_at_a_time_prepares_the_database():
    """On a new database, the migrations of two processes would meet, and one would fail."""
    entered = Event()
    lines: list[str] = []

    def wait() -> None:
        with bootstrap.preparation_lock(lines.append):
            entered.set()
        connection.close()

    waiting = Thread(target=wait)
    with bootstrap.preparation_lock(print):
        waiting.start()
        assert not entered.wait(0.5)
        # A process that waits must not occupy a connection of a pooler. It does for each attempt.
        assert any(fetch(_OPEN_TRANSACTIONS) == [(1,)] for _ in range(100))
    waiting.join(10)
    assert entered.is_set()
    assert lines == ["Waiting for another process that prepares the database …"]


@pytest.mark.django_db(transaction=True)
def test_a_connection_that_is_lost_meanwhile_does_not_undo_the_preparation():
    with bootstrap.preparation_lock(print):
        fetch(
            "SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory' AND granted"
            " AND database = (SELECT oid FROM pg_database WHERE datname = current_database())"
        )
