"""The time limits of tasks that run in threads."""

import signal
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from celery.exceptions import SoftTimeLimitExceeded
from django.db import connection

from config.runtime import threads

pytestmark = pytest.mark.timeout(60)


@pytest.fixture
def pool():
    created = threads.TaskPool(limit=2)
    created.start()
    yield created
    for task in Task.started:
        task.end.set()
    created.stop()


def apply(pool, task, timeout: float, soft_timeout: float):
    return pool.apply_async(
        task, (), {}, callback=lambda _: None, timeout=timeout, soft_timeout=soft_timeout
    )


class Task:
    """What Celery hands to a pool: it runs until the soft limit or `end`."""

    started: list["Task"] = []

    def __init__(self) -> None:
        self.started.append(self)
        self.began, self.end, self.caught = threading.Event(), threading.Event(), None

    def __call__(self) -> None:
        self.began.set()
        try:
            while not self.end.wait(0.01):
                pass
        except SoftTimeLimitExceeded as error:
            self.caught = error


def test_a_task_gets_an_exception_after_its_soft_limit(pool):
    task, other = Task(), Task()
    result = apply(pool, task, timeout=3_600, soft_timeout=0.01)
    apply(pool, other, timeout=3_600, soft_timeout=1_800)
    assert task.began.wait(10) and other.began.wait(10)
    time.sleep(0.02)
    pool.enforce_limits()
    result.get(10)
    other.end.set()
    assert isinstance(task.caught, SoftTimeLimitExceeded)
    assert other.caught is None


def test_a_task_over_its_hard_limit_ends_the_process(pool, monkeypatch):
    kills = []
    monkeypatch.setattr(threads.os, "kill", lambda pid, number: kills.append(number))
    task = Task()
    result = apply(pool, task, timeout=0.01, soft_timeout=0.01)
    assert task.began.wait(10)
    time.sleep(0.02)
    pool.enforce_limits()
    task.end.set()
    result.get(10)
    assert kills == [signal.SIGKILL]


def test_a_task_that_ended_has_no_limit(pool):
    apply(pool, lambda: None, timeout=0.01, soft_timeout=0.01).get(10)
    time.sleep(0.02)
    pool.enforce_limits()


@pytest.mark.django_db(transaction=True)
def test_connections_that_no_thread_uses_are_closed():
    with ThreadPoolExecutor() as executor:
        executor.submit(ask_and_close).result()
    pool = connection.pool
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
        threads.close_unused_connections()
        assert pool.get_stats()["pool_size"] == 1
        # The one in use still works.
        cursor.execute("SELECT 1")


def ask_and_close() -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    connection.close()
