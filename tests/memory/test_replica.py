"""Searches and exports read from a copy of the database, and show nothing that it alone has."""

import io
import json
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from uuid import uuid4
from zipfile import ZipFile

import psycopg
import pytest
from django.db import connection, connections

from chat.conversations.messages import post_message
from chat.models import Message, Session, Visibility
from config.postgres import server as embedded
from memory.forgetting.service import ForgetScope, forget
from memory.portability.exporting import export
from memory.portability.tables import ExportScope
from memory.recall import RecallScope, indexing, recall, search
from projects.core import database

pytestmark = [pytest.mark.process, pytest.mark.django_db(transaction=True)]


class Copy:
    """A streaming replica of the tests' PostgreSQL, made by the programs that come with it."""

    def __init__(self, data_dir: Path) -> None:
        self.folder = data_dir / "postgres"
        embedded.give_to_account(data_dir)
        source = ("-h", connection.settings_dict["HOST"], "-U", "postgres")
        # With a slot: the primary keeps what the copy has not read, whatever other tests write.
        self.slot = f"copy_{uuid4().hex}"
        slot = ("-C", "-S", self.slot)
        self._run("pg_basebackup", *source, "-D", self.folder, "-R", "-c", "fast", *slot)
        # The socket's lock came along.
        (self.folder / f"{embedded.SOCKET_NAME}.lock").unlink(missing_ok=True)
        with (self.folder / "strata.conf").open("a") as file:
            file.write(f"unix_socket_directories = '{self.folder}'\n")
        self.start()

    def start(self) -> None:
        self._run("pg_ctl", "start", "-w", "-D", self.folder, "-l", self.folder / "server.log")

    def _run(self, program: str, *arguments: object) -> None:
        command = [str(embedded.programs() / program), *map(str, arguments)]
        silent = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        subprocess.run(command, check=True, timeout=90, **silent, **embedded.program_options())

    def say(self, query: str) -> tuple:
        where = {"host": str(self.folder), "user": "postgres", "dbname": "postgres"}
        with psycopg.connect(**where, autocommit=True) as copy:
            return copy.execute(query).fetchone()

    def catch_up(self) -> None:
        """Until it has all that the primary has by now."""
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_current_wal_lsn()")
            [now] = cursor.fetchone()
        # What it replays waits for who reads there, half a minute at most by its settings.
        deadline = time.monotonic() + 90
        while self.say(f"SELECT pg_last_wal_replay_lsn() >= '{now}'") != (True,):
            assert time.monotonic() < deadline
            time.sleep(0.02)

    def lag(self) -> None:
        """It has what there is, and nothing that comes."""
        self.catch_up()
        self.say("SELECT pg_wal_replay_pause()::text")

    def go_on(self) -> None:
        self.say("SELECT pg_wal_replay_resume()::text")

    def drop_slot(self) -> None:
        """As soon as the primary has seen that the copy is gone."""
        drop = """SELECT pg_drop_replication_slot(slot_name) FROM pg_replication_slots
            WHERE slot_name = %s AND NOT active"""
        default = connection.settings_dict
        where = {"host": default["HOST"], "user": "postgres", "dbname": "postgres"}
        deadline = time.monotonic() + 30
        with psycopg.connect(**where, autocommit=True) as primary:
            while not primary.execute(drop, [self.slot]).rowcount:
                assert time.monotonic() < deadline
                time.sleep(0.02)

    def stop(self) -> None:
        self._run("pg_ctl", "stop", "-m", "immediate", "-D", self.folder)


@pytest.fixture(scope="module")
def server(django_db_setup) -> Iterator[Copy]:
    data_dir = Path(tempfile.mkdtemp(prefix="strata-copy-"))
    data_dir.chmod(0o711)
    replica_copy = Copy(data_dir)
    yield replica_copy
    replica_copy.stop()
    replica_copy.drop_slot()
    shutil.rmtree(data_dir)


@pytest.fixture
def copy(server, settings, monkeypatch) -> Iterator[Copy]:
    monkeypatch.setattr(database, "_away_until", 0.0)
    default = connection.settings_dict
    brief = default["OPTIONS"] | {"pool": {"min_size": 0, "max_size": 2, "timeout": 1}}
    settings.DATABASES[database.REPLICA_ALIAS] = default | {
        "HOST": str(server.folder),
        "OPTIONS": brief,
    }
    # By itself: pytest-django keeps tests from connecting to what it did not make.
    connections[database.REPLICA_ALIAS].connect()
    yield server
    server.go_on()
    connections[database.REPLICA_ALIAS].close()
    connections[database.REPLICA_ALIAS].close_pool()
    del connections[database.REPLICA_ALIAS], settings.DATABASES[database.REPLICA_ALIAS]


@pytest.fixture
def recalled_message(project, owner) -> Message:
    """Something found by recall."""
    session = Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)
    message = post_message(session, "The cutover is on 3 March, says the plan.", author=owner)
    indexing.catch_up()
    return message


@pytest.fixture
def searched_databases(monkeypatch) -> list[str]:
    """The databases that searches were answered by, in their order."""
    databases = []
    ask = database.query_replica

    def noted(query):
        answer, copied = ask(query)
        databases.append("copy" if copied else "primary")
        return answer, copied

    monkeypatch.setattr(search, "query_replica", noted)
    return databases


def recalled_texts(project, viewer) -> list[str]:
    return [result.text for result in recall(RecallScope(project, viewer), "When is the cutover?")]


def exported(project) -> str:
    file = io.BytesIO()
    export(ExportScope(project), file)
    return ZipFile(file).read("messages.jsonl").decode()


def test_recall_asks_the_copy(copy, recalled_message, project, owner, searched_databases):
    copy.catch_up()
    assert "cutover" in recalled_texts(project, owner)[0]
    assert searched_databases == ["copy"]


def test_forgotten_text_is_not_found_in_a_lagging_replica(
    copy, recalled_message, project, owner, searched_databases
):
    copy.lag()
    forget(project, ForgetScope(message=recalled_message.pk), owner)
    assert recalled_texts(project, owner) == []
    assert searched_databases == ["copy"]


def test_private_text_is_not_found_in_a_lagging_replica(
    copy, recalled_message, project, owner, viewer, searched_databases
):
    type(project).objects.filter(pk=project.pk).update(share_raw_turns=True)
    project.refresh_from_db()
    copy.lag()
    assert len(recalled_texts(project, viewer)) == 1
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert recalled_texts(project, viewer) == []
    assert len(recalled_texts(project, owner)) == 1
    assert searched_databases == ["copy"] * 3


def test_recall_tells_the_words_as_the_primary_has_them(copy, recalled_message, project, owner):
    copy.lag()
    with connection.cursor() as cursor:
        cursor.execute("UPDATE memory_chunk SET text = replace(text, '3 March', '9 April')")
    assert "9 April" in recalled_texts(project, owner)[0]


def test_an_export_waits_for_the_copy(copy, recalled_message, project, owner, monkeypatch):
    copy.lag()
    forget(project, ForgetScope(message=recalled_message.pk), owner)
    monkeypatch.setattr("time.sleep", lambda _: copy.go_on())
    assert "cutover" not in exported(project)


def test_an_export_does_without_a_copy_that_lags_for_long(
    copy, recalled_message, project, owner, monkeypatch, caplog
):
    monkeypatch.setattr(database, "MAX_REPLICA_WAIT_S", 0.2)
    copy.lag()
    forget(project, ForgetScope(message=recalled_message.pk), owner)
    assert "cutover" not in exported(project)
    assert "replica_behind" in caplog.text


def test_an_export_reads_from_the_copy(copy, recalled_message, project, monkeypatch):
    copy.catch_up()
    [line] = exported(project).splitlines()
    assert json.loads(line)["text"].startswith("The cutover")
    # The export has released it, and pytest-django keeps tests from connecting to it again.
    connections[database.REPLICA_ALIAS].connect()
    with database.caught_up_replica() as alias:
        assert alias == "replica"
        assert Message.objects.all().db == "replica"
        with pytest.raises(Exception, match="read-only"), connections[alias].cursor() as cursor:
            cursor.execute("DELETE FROM chat_message")
    assert Message.objects.all().db == "default"


def test_the_primary_answers_while_the_copy_is_away(
    copy, recalled_message, project, owner, searched_databases, caplog
):
    copy.catch_up()
    copy.stop()
    for _ in range(2):
        assert "cutover" in recalled_texts(project, owner)[0]
    assert searched_databases == ["primary", "primary"]
    assert caplog.text.count("replica_unavailable") == 1
    assert "cutover" in exported(project)
    copy.start()
