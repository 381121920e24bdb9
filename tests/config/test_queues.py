"""The queue of each task, and tasks that other versions send to a worker."""

import inspect

import pytest
from django.conf import settings

from config.celery import app
from config.management.commands import up

# The tasks of 0.1 with the names of their arguments: its messages may wait while workers are
# replaced, and its workers may be given ours. An argument that comes later needs a default.
RELEASED = {
    "chat.tasks.close_the_silent": (),
    "chat.tasks.purge_deleted": (),
    "chat.tasks.run_import": ("import_id",),
    "chat.tasks.sweep_attachments": (),
    "chat.tasks.sweep_imports": (),
    "chat.tasks.sweep_interrupted": (),
    "chat.tasks.title_session": ("session_id",),
    "config.tasks.heartbeat": (),
    "memory.tasks.clear_deliveries": (),
    "memory.tasks.deliver": ("webhook_id",),
    "memory.tasks.rewrite_entry": ("entry_id",),
    "memory.tasks.run_cycle": (),
    "memory.tasks.run_deliveries": (),
    "memory.tasks.run_indexing": (),
    "memory.tasks.settle_project": ("project_id",),
    "memory.tasks.summarise_session": ("session_id", "force"),
    "projects.tasks.clear": (),
}
# The queues of 0.1, and what it sends by them.
QUEUES = {"chat", "memory"}


def ours() -> list[str]:
    app.loader.import_default_modules()
    return [name for name in app.tasks if not name.startswith("celery.")]


def parameters(name: str) -> dict[str, inspect.Parameter]:
    return dict(inspect.signature(app.tasks[name].run).parameters)


@pytest.mark.parametrize("name", RELEASED)
def test_a_task_of_a_released_version_is_still_understood(name):
    assert name in ours()
    now, then = parameters(name), RELEASED[name]
    assert tuple(now)[: len(then)] == then
    added = list(now.values())[len(then) :]
    assert all(item.default is not inspect.Parameter.empty for item in added)


def queue_of(name: str) -> str:
    return app.amqp.router.route({}, name)["queue"].name


def test_every_task_goes_by_a_queue_that_somebody_takes_from():
    consumed = {*up.WAITING, *up.HEAVY}
    assert consumed == set(settings.QUEUES) >= QUEUES
    assert {queue_of(name) for name in ours()} == consumed


@pytest.mark.parametrize(
    ("name", "queue"),
    [
        ("chat.tasks.title_session", "chat"),
        ("chat.tasks.sweep_interrupted", "chat"),
        ("chat.tasks.run_import", "io"),
        ("chat.tasks.sweep_imports", "io"),
        ("memory.tasks.summarise_session", "memory"),
        ("memory.tasks.settle_project", "memory"),
        ("memory.tasks.run_cycle", "memory"),
        ("memory.tasks.run_indexing", "index"),
        ("memory.tasks.deliver", "webhooks"),
        ("memory.tasks.run_deliveries", "webhooks"),
        ("config.tasks.heartbeat", "chat"),
    ],
)
def test_a_short_task_does_not_wait_for_a_long_one(name, queue):
    assert queue_of(name) == queue


def test_a_message_comes_back_only_when_its_task_cannot_run_any_more():
    hidden = settings.CELERY_BROKER_TRANSPORT_OPTIONS["visibility_timeout"]
    assert hidden > settings.CELERY_TASK_TIME_LIMIT > settings.CELERY_TASK_SOFT_TIME_LIMIT
    assert app.conf.task_acks_late
    assert app.conf.worker_prefetch_multiplier == 1
