"""Tasks whose process died are counted, set aside, and run again from the admin."""

import json
import subprocess
import sys
import threading
from datetime import timedelta

import pytest
from django.db import OperationalError
from django.urls import reverse
from django.utils import timezone

from config.models import CRASH_PAUSE, CrashedTask
from config.runtime import crashes
from tests.server import ROOT

pytestmark = pytest.mark.django_db

NAME, ID = "memory.tasks.summarise_session", "0198-1"
# It dies inside the task; `done` is a task that ended before.
DIES = """
import os, sys, django
django.setup()
from config.runtime import crashes
with crashes.running("memory.tasks.run_cycle", [], {}):
    pass
if "shut-down" not in sys.argv:
    with crashes.running("memory.tasks.summarise_session", ["0198-1"], {}):
        os._exit(9)
with crashes.running("memory.tasks.summarise_session", ["0198-1"], {}):
    crashes.remove_own_files()
    os._exit(9)
"""


@pytest.fixture(autouse=True)
def data_dir(tmp_path, settings, monkeypatch):
    settings.DATA_DIR = tmp_path
    monkeypatch.setattr(crashes, "_refreshed_at", float("-inf"))
    monkeypatch.setattr(crashes, "_counted_by_process", 0)
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
    return tmp_path


def die(*arguments: str) -> None:
    process = subprocess.run([sys.executable, "-c", DIES, *arguments], cwd=ROOT, check=False)
    assert process.returncode == 9


def crash(times: int = 1, args: tuple = (ID,)) -> None:
    for _ in range(times):
        crashes.record_crash(NAME, list(args), {})


@pytest.mark.process
def test_the_task_of_a_dead_process_is_counted_once(data_dir):
    die()
    crashes.count_crashes()
    crashes.count_crashes()
    row = CrashedTask.objects.get()
    assert (row.task, row.args, row.crashes) == (NAME, [ID], 1)
    assert list((data_dir / "running").iterdir()) == []


@pytest.mark.process
def test_a_task_that_a_shutdown_ended_is_not_to_blame():
    die("shut-down")
    crashes.count_crashes()
    assert not CrashedTask.objects.exists()


def test_a_shutdown_leaves_the_files_of_other_containers(data_dir, monkeypatch):
    """Workers in containers share the folder, and each is process 1 of its container."""
    for host in ("worker-1", "worker"):
        monkeypatch.setattr("socket.gethostname", lambda host=host: host)
        monkeypatch.setattr(crashes, "_thread", threading.local())
        with crashes.running(NAME, [ID], {}):
            pass
    crashes.remove_own_files()
    [file] = (data_dir / "running").iterdir()
    assert file.name.startswith("worker-1-")


@pytest.mark.parametrize("content", [b'{"name": "memory.ta', b"\0" * 60])
def test_an_incomplete_file_is_removed_and_stops_no_task(data_dir, content):
    (crashes.folder() / "1-2-x.json").write_bytes(content)
    assert not crashes.is_set_aside(NAME, [ID], {})
    assert list((data_dir / "running").iterdir()) == []


def test_a_task_that_runs_or_ended_is_not_counted(data_dir):
    with crashes.running(NAME, [ID], {}):
        crashes.count_crashes()
        [file] = (data_dir / "running").iterdir()
        assert json.loads(file.read_text())["args"] == [ID]
    assert file.read_text() == ""
    assert not CrashedTask.objects.exists()


def test_the_third_crash_sets_the_task_aside_for_its_arguments():
    crash(2)
    assert not crashes.is_set_aside(NAME, (ID,), {})
    crash()
    crashes._refreshed_at = float("-inf")
    assert crashes.is_set_aside(NAME, (ID,), {})
    assert not crashes.is_set_aside(NAME, ("0198-2",), {})


def test_an_old_crash_does_not_count():
    crash(2)
    day_ago = timezone.now() - crashes.CRASHES_EXPIRE_AFTER - timedelta(minutes=1)
    CrashedTask.objects.update(last_crash_at=day_ago)
    crash()
    assert CrashedTask.objects.get().crashes == 1


def test_a_task_for_all_projects_is_only_paused():
    crash(3, args=())
    assert crashes.is_set_aside(NAME, (), {})
    CrashedTask.objects.update(last_crash_at=timezone.now() - CRASH_PAUSE - timedelta(seconds=1))
    assert not crashes.is_set_aside(NAME, (), {})


def test_a_retry_counts_at_once_though_the_list_is_older():
    crash(3)
    assert crashes.is_set_aside(NAME, (ID,), {})
    CrashedTask.objects.all().delete()
    assert not crashes.is_set_aside(NAME, (ID,), {})


@pytest.mark.process
def test_without_a_database_tasks_run_and_crashes_wait(data_dir, monkeypatch):
    def away(*args, **kwargs):
        raise OperationalError

    die()
    with monkeypatch.context() as patch:
        patch.setattr(crashes, "record_crash", away)
        assert not crashes.is_set_aside(NAME, (ID,), {})
    crashes.is_set_aside(NAME, (ID,), {})
    assert CrashedTask.objects.get().crashes == 1


def test_the_admin_shows_it_and_runs_it_again(
    admin_client, monkeypatch, django_capture_on_commit_callbacks
):
    sent = []
    monkeypatch.setattr("config.admin.app.send_task", lambda *task: sent.append(task))
    crash(3)
    path = reverse("admin:config_crashedtask_changelist")
    assert ID in admin_client.get(path).content.decode()
    keys = list(CrashedTask.objects.values_list("pk", flat=True))
    form = {"action": "run_again", "_selected_action": keys}
    with django_capture_on_commit_callbacks(execute=True):
        assert admin_client.post(path, form).status_code == 302
    assert sent == [(NAME, [ID], {})]
    assert not CrashedTask.objects.exists()
