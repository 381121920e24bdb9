# ruff: noqa: F811  (a fixture that is imported)
"""Backups under load, restored elsewhere; backups and restores that are killed at any instant."""

import io
import os
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path
from threading import Event, Thread
from urllib.parse import quote

import psycopg
import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import connection, connections
from django.utils import timezone

from chat.models import Message
from config.backup import archive
from memory.forgetting.service import ForgetScope, forget
from memory.layers import cycle
from memory.recall.indexing import catch_up
from projects.services import create_project
from tests.config.test_backup import elsewhere, everywhere, manage, say, writers  # noqa: F401
from tests.server import ROOT

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def garden(django_user_model, tmp_path, settings, scale):
    """A project with chats that each name a bird of their own, summarised and indexed."""
    settings.TOMBSTONES = tmp_path / "tombstones.jsonl"
    settings.MEDIA_ROOT = tmp_path / "files"
    settings.SYSTEM_MODEL = "extractive"
    user = django_user_model.objects.create_user("olive")
    project = create_project(user, name="Garden")
    birds = {f"bird{number}x": None for number in range(scale(120, 12))}
    for bird in birds:
        birds[bird] = say(project, user, bird)
    cycle.run(timezone.now() + timedelta(hours=1))
    catch_up()
    return project, user, birds


def forget_bird(project, birds: dict, chance) -> str:
    """Has a chat, its words or what was made of it forgotten; returns the bird that is gone."""
    bird = chance.choice([bird for bird, session in birds.items() if session is not None])
    session, birds[bird] = birds[bird], None
    entry = session.entries.first()
    wishes = [ForgetScope(session=session.pk)]
    wishes += [ForgetScope(entry=entry.pk, sources=True)] if entry else []
    if session.title_by_hand is False:
        wishes.append(ForgetScope(message=session.messages.order_by("seq").first().pk))
    forget(project, chance.choice(wishes))
    return bird


def test_backups_under_load_are_whole_and_what_is_forgotten_stays_away(
    garden,
    elsewhere,
    tmp_path,
    chance,
    scale,
    tally,
):
    project, user, birds = garden
    forgotten_birds: set[str] = set()
    for number in range(scale(15, 1)):
        file, data_dir = tmp_path / f"{number}.tar", tmp_path / f"data{number}"
        over = Event()

        def go_on_forgetting(over=over) -> None:
            while not over.is_set():
                forgotten_birds.add(forget_bird(project, birds, chance))
                time.sleep(chance.random() * 0.3)
            connections.close_all()

        forgetting = Thread(target=go_on_forgetting)
        with writers(project, user, scale(4, 2)):
            forgetting.start()
            call_command("backup", str(file), stdout=io.StringIO())
            over.set()
            forgetting.join()
        forgotten_birds.add(forget_bird(project, birds, chance))
        manifest = archive.verify(file)
        arguments = (f"--tombstones={settings.TOMBSTONES}", "--replace")
        done = manage(elsewhere, data_dir, "restore", str(file), *arguments)
        assert done.returncode == 0, done.stdout + done.stderr
        with psycopg.connect(elsewhere) as other_database:
            for bird in forgotten_birds:
                assert everywhere(other_database, bird) == set(), bird
            for bird, session in birds.items():
                assert session is None or everywhere(other_database, bird), bird
            named = {name for (name,) in other_database.execute("SELECT file FROM chat_attachment")}
        media = data_dir / "files"
        assert named == {
            str(path.relative_to(media)) for path in media.rglob("*") if path.is_file()
        }
        tally("rows restored, all counted", sum(t["rows"] for t in manifest["tables"].values()))
        tally("files restored", len(named))
        tally("backups under load")
    tally("forgotten, and nowhere", len(forgotten_birds))


def source() -> str:
    server = connection.settings_dict
    return f"postgresql://postgres@{quote(server['HOST'], safe='')}/{server['NAME']}"


def killed(address: str, data_dir: Path, after: float, *arguments: str) -> int:
    """Runs a command and kills it, with what it started, after so many seconds; its status."""
    environment = os.environ | {"DATABASE_URL": address, "STRATA_DATA_DIR": str(data_dir)}
    process = subprocess.Popen(
        [sys.executable, "manage.py", *arguments],
        cwd=ROOT,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        return process.wait(after)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        return process.wait()


def test_a_killed_backup_or_restore_leaves_nothing_half_done(
    garden,
    elsewhere,
    tmp_path,
    chance,
    scale,
    tally,
):
    project, _, birds = garden
    file = tmp_path / "whole.tar"
    call_command("backup", str(file), stdout=io.StringIO())
    bird = forget_bird(project, birds, chance)
    stays = next(bird for bird, session in birds.items() if session is not None)
    arguments = ("restore", str(file), f"--tombstones={settings.TOMBSTONES}", "--replace")
    for number in range(scale(40, 1)):
        new, data_dir = tmp_path / f"{number}.tar", tmp_path / "data"
        status = killed(source(), tmp_path / "here", 0.8 + chance.random() * 2, "backup", str(new))
        if new.exists():
            # It may have been killed after its work was done.
            archive.verify(new)
            tally("backups that were whole")
        else:
            assert status
            tally("backups killed")
        if killed(elsewhere, data_dir, 1 + chance.random() * 2, *arguments):
            with psycopg.connect(elsewhere) as other_database:
                other_database.execute("SET lock_timeout = '20s'")
                mark = other_database.execute("SELECT to_regclass('restore_under_way')").fetchone()
                tables = other_database.execute("SELECT to_regclass('chat_message')").fetchone()
                # Nothing yet, or marked, or done.
                if tables != (None,) and mark == (None,):
                    assert everywhere(other_database, bird) == set()
            tally("restores killed")
    done = manage(elsewhere, data_dir, *arguments)
    assert done.returncode == 0, done.stdout + done.stderr
    with psycopg.connect(elsewhere) as other_database:
        assert everywhere(other_database, bird) == set()
        assert everywhere(other_database, stays)
    assert Message.objects.exists()
