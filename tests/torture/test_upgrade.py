"""A database of 0.1 is brought up to date while old and new processes work on it."""

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime, timedelta
from itertools import count
from threading import Event, Thread
from urllib.parse import quote
from uuid import UUID

import psycopg
import pytest
from django.core.management import call_command
from django.db import connection, connections
from django.db.models import F

from chat.conversations.messages import draft, post_messages
from chat.models import Message, Session
from memory.backfill import add_lines, entries_without_lines
from memory.layers import cycle
from memory.layers.bank_cache import rendered_bank
from memory.layers.lines import as_text
from memory.models import Cursor, Entry, EntryStatus
from projects.core import token_counting
from projects.models import Project
from tests.torture import old_version
from tests.torture.old_version import END, OldProcess
from tests.torture.test_memory_kills import check_parents, check_ranges

pytestmark = pytest.mark.django_db(transaction=True)

BUDGET = 1_000
# Between two acts of a thread: faster ones would mostly measure themselves.
PACE_S = 0.2


@pytest.fixture
def empty_database(settings) -> Iterator[str]:
    """An empty database in place of the test's own; yields its address."""
    settings.SYSTEM_MODEL = "extractive"
    own = connection.settings_dict
    host, name, name_of_test = own["HOST"], f"{own['NAME']}_old", own["NAME"]
    with psycopg.connect(host=host, user="postgres", dbname="postgres", autocommit=True) as server:
        server.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)")
        server.execute(f"CREATE DATABASE {name}")
        try:
            use_database(name)
            yield f"postgresql://postgres@{quote(host, safe='')}/{name}"
        finally:
            use_database(name_of_test)
            server.execute(f"DROP DATABASE {name} WITH (FORCE)")


def use_database(name: str) -> None:
    connection.close()
    connection.close_pool()
    connection.settings_dict["NAME"] = name


class Load:
    """Threads that repeat their acts until the end; a failure of one is raised there."""

    def __init__(self) -> None:
        self.turns: dict[str, int] = {}
        self.failures: list[BaseException] = []

    @contextmanager
    def beside(self, **acts: Callable[[int], object]) -> Iterator[None]:
        over = Event()

        def repeat(name: str, act: Callable[[int], object]) -> None:
            try:
                for number in count(self.turns.get(name, 0)):
                    if over.is_set():
                        break
                    act(number)
                    self.turns[name] = number + 1
                    time.sleep(PACE_S)
            except BaseException as failure:
                self.failures.append(failure)
            finally:
                connections.close_all()

        threads = [Thread(target=repeat, args=act) for act in acts.items()]
        for thread in threads:
            thread.start()
        try:
            yield
        finally:
            over.set()
            for thread in threads:
                thread.join()
        assert not self.failures, self.failures


class Reader:
    """Reads the banks of all projects in turn: none is over its budget."""

    def __init__(self) -> None:
        self.projects = list(Project.objects.order_by("slug"))
        self.fullest = 0

    def read(self, number: int) -> None:
        bank = rendered_bank(self.projects[number % len(self.projects)])
        assert bank.tokens == token_counting.count(bank.text) <= BUDGET
        assert bank.text, "the bank is empty"
        self.fullest = max(self.fullest, bank.tokens)

    def write(self, number: int) -> None:
        project = self.projects[number % len(self.projects)]
        session = Session.objects.create(project=project, title="New", created_at=END)
        text = old_version.message_text(2_000_000 + number, 1)
        post_messages(session, [draft(text, author_name="Eva", created_at=END)])
        Session.objects.filter(pk=session.pk).update(last_activity_at=END)


def settle(now: datetime) -> None:
    """What the periodic tasks do, until nothing is left to do."""
    while not add_lines(seconds=1) or cycle.due(now):
        cycle.run(now)


def test_an_old_database_is_upgraded_under_load(empty_database, scale, tally):
    apps = old_version.migrate()
    number = scale(10, 2)
    for place in range(number):
        old_version.Builder(apps, place, BUDGET).fill(scale(1_450, 75))
    Entry0 = apps.get_model("memory", "Entry")
    before = dict(Entry0.objects.filter(granularity="conversation").values_list("pk", "summary"))
    tally("entries of 0.1", Entry0.objects.count())
    projects = list(apps.get_model("projects", "Project").objects.values_list("pk", flat=True))
    old, load = OldProcess(empty_database, projects), Load()

    began = time.monotonic()
    with load.beside(old=old.turn):
        call_command("migrate", verbosity=0, interactive=False)
    tally("seconds of migrations", round(time.monotonic() - began))
    reader = Reader()
    with load.beside(old=old.turn, read=reader.read, write=reader.write):
        settle(END)
    tally("seconds until nothing was left to do", round(time.monotonic() - began))
    old.connection.close()
    # The talks of the last minutes are idle then.
    settle(END + timedelta(hours=1))
    for place in range(number):
        reader.read(place)

    for name, turns in load.turns.items():
        assert turns > 1
        tally(f"turns of {name}", turns)
    assert reader.fullest > BUDGET * 0.8
    check_nothing_is_lost(before | old.added | old.edited)
    tally("messages, each remembered once", Message.objects.count())


def check_nothing_is_lost(texts: dict[UUID, str]) -> None:
    check_ranges()
    check_parents()
    entries = Entry.objects.in_bulk()
    assert {pk: entries[pk].summary for pk in texts} == texts
    assert not entries_without_lines().exists()
    assert not Entry.objects.filter(state__in=(EntryStatus.STALE, EntryStatus.FADED)).exists()
    for pk, text in texts.items():
        assert as_text(entries[pk].read_lines()) == text
        if entries[pk].written_by == "extractive":
            assert all(line.sources for line in entries[pk].read_lines()), text
    cursors = Cursor.objects.exclude(summarised_through=F("session__last_seq"))
    assert not cursors.exists()
    tops = Entry.objects.filter(parent=None)
    assert sum(tops.values_list("message_count", flat=True)) == Message.objects.count()
