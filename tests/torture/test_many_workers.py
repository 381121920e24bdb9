"""Any number of beats and workers: nothing is done twice, and no model is asked in vain."""

import random
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth import get_user_model

from chat.conversations import edits
from chat.conversations.messages import draft, post_messages
from chat.models import Message, Session
from memory.layers import cycle
from memory.models import Activity, ActivityVerb, Entry, EntryRevision
from projects.models import Project
from projects.services import create_project
from tests.scripted import Answer
from tests.torture import worker_processes as crews
from tests.torture.test_memory_kills import check_coverage, check_parents, check_ranges

pytestmark = pytest.mark.django_db(transaction=True)

BEATS, WORKERS = 3, 4
START = datetime(2025, 1, 6, 9, tzinfo=UTC)
STEP = timedelta(hours=12)
MESSAGE_TEMPLATE = (
    "The deploy took {} minutes, the rollback {} and its owner is team {} of plan {}."
)

SUMMARY_TEMPLATE = (
    "- Summary of {} messages about deploys, rollbacks and their owners, with all that was agreed "
    "on the minutes that each of them takes."
)
COUNTED = re.compile(r"Summary of (\d+) messages")


def go_on(project: Project, user, now: datetime, chance: random.Random, number: int) -> None:
    """What people do in half a day: new talk, more in an old chat, now and then an edit."""
    at = now - timedelta(hours=1)
    session = Session.objects.create(
        project=project, creator=user, title=f"S{number}", created_at=at, last_activity_at=at
    )
    say(session, at, chance)
    sessions = list(Session.objects.filter(project=project).order_by("created_at", "pk"))
    if chance.random() < 0.3:
        # At an instant of its own: of two at the same, either may come first.
        say(chance.choice(sessions), at + timedelta(minutes=1), chance)
    if chance.random() < 0.2:
        messages = Message.objects.filter(project=project).order_by("created_at", "session", "seq")
        message = chance.choice(list(messages[:200]))
        edits.edit(message, f"{message.text} Corrected in turn {number}.", user)


def say(session: Session, at: datetime, chance: random.Random) -> None:
    numbers = [chance.randrange(99) for _ in range(4)]
    post_messages(session, [draft(MESSAGE_TEMPLATE.format(*numbers), created_at=at)])
    Session.objects.filter(pk=session.pk).update(last_activity_at=at)


@pytest.fixture
def model(scripted):
    """Says of how many messages it was told, by themselves or by what was written of them.

    Not in which order, nor beside what: that hangs on who comes first.
    """
    scripted.default = lambda request: Answer(
        SUMMARY_TEMPLATE.format(number_in(request["messages"][1]["content"]))
    )
    return scripted


def number_in(mentions: str) -> int:
    counts = COUNTED.findall(mentions)
    return mentions.count(MESSAGE_TEMPLATE.partition("{")[0]) or sum(map(int, counts))


@contextmanager
def many(crew) -> Iterator:
    """What does all that is due at a moment, with BEATS that find it and WORKERS that do it."""
    queue = crew.JoinableQueue()
    together = crew.Barrier(BEATS)
    moments = [crew.JoinableQueue() for _ in range(BEATS)]
    beats = [
        crew.Process(target=crews.beat, args=(item, queue, together), daemon=True)
        for item in moments
    ]
    workers = [
        crew.Process(target=crews.work, args=(number, queue), daemon=True)
        for number in range(WORKERS)
    ]
    for process in (*beats, *workers):
        process.start()

    def run(now: datetime) -> None:
        for _ in range(20):
            for item in moments:
                item.put(now)
            for item in moments:
                item.join()
            queue.join()
            if not cycle.due(now):
                return
        raise AssertionError("It does not come to an end.")

    yield run
    for moment in moments:
        moment.put(None)
    for _ in workers:
        queue.put(None)
    for process in (*beats, *workers):
        process.join(30)


def alone(now: datetime) -> None:
    """All that is due at a moment, by one worker."""
    for _ in range(20):
        cycle.run(now)
        if not cycle.due(now):
            return
    raise AssertionError("It does not come to an end.")


def live(project: Project, user, cycles: int, run, model) -> int:
    """Lets a project live for so many half days; returns how many calls that took."""
    chance = random.Random(20)
    before = len(model.requests)
    for number in range(cycles):
        now = START + number * STEP
        go_on(project, user, now, chance, number)
        run(now)
    return len(model.requests) - before


def test_nothing_is_done_twice_and_no_model_is_asked_in_vain(crew, model, scale, tally):
    cycles = scale(500, 14)
    user = get_user_model().objects.create_user("olive")
    fields = {"bank_max_tokens": 300, "idle_minutes": 10}
    single = create_project(user, name="Alone", **fields)
    least = live(single, user, cycles, alone, model)
    Project.objects.filter(pk=single.pk).update(memory_enabled=False)
    project = create_project(user, name="Together", **fields)
    with many(crew) as run:
        calls = live(project, user, cycles, run, model)
    assert calls == least
    check_ranges()
    check_parents()
    check_coverage(tally)
    assert not Activity.objects.filter(verb=ActivityVerb.FAILED).exists()
    assert shape(project) == shape(single)
    for entry in Entry.objects.all():
        assert number_in(entry.summary) == entry.message_count
    tally("cycles", cycles)
    tally("model calls, and no one more than alone", calls)


def shape(project: Project) -> tuple:
    """What became of a project's memory, without what differs by the way it was done."""
    columns = ("granularity", "period_key", "state", "revision", "summary")
    entries = Counter(project.entries.values_list(*columns))
    revisions = EntryRevision.objects.filter(project=project).count()
    acts = Activity.objects.filter(project=project)
    return entries, revisions, Counter(acts.values_list("verb", flat=True))


def test_the_shape_tells_a_second_effect(model):
    user = get_user_model().objects.create_user("olive")
    project = create_project(user, name="Alone", bank_max_tokens=300)
    live(project, user, 6, alone, model)
    before = shape(project)
    entry = Entry.objects.filter(project=project).first()
    assert entry is not None
    Entry.objects.filter(pk=entry.pk).update(revision=entry.revision + 1)
    assert shape(project) != before
