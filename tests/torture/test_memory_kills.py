"""Memory's workers die, or stop and come back too late, at any instant of a cycle."""

import os
import re
import signal
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import count
from multiprocessing.process import BaseProcess
from threading import Condition

import pytest
from django.conf import settings
from django.contrib.auth import get_user_model
from django.db import connection
from django.db.models import Q, QuerySet
from django.db.models.functions import Now
from django.utils import timezone

from chat.conversations import edits
from chat.conversations.messages import draft, post_messages
from chat.models import Message, Session
from memory.layers.bank_cache import rendered_bank
from memory.layers.coverage import CONTRIBUTING
from memory.layers.periods import Granularity, ancestor_key
from memory.models import Cursor, Entry, EntryRevision, EntryStatus, Ladder
from projects.models import Project
from projects.services import create_project
from tests.scripted import Answer
from tests.torture import cycles

pytestmark = pytest.mark.django_db(transaction=True)

# Seconds that a model takes for an answer, in one round after the other.
PACES = (0.01, 0.1, 0.3)
# Seconds after which a worker is killed that did not meet what it was to be killed at.
LONGEST = 10.0
# What a worker is at (CONTRACT, `make torture`).
PHASES = {"claim", "call", "commit", "acknowledge"}
# Titles of sessions and names of projects begin with these.
CONVERSATION, DIGEST = "S", "P"
SUMMARY = (
    "- In {}, {} was talked over at length: the deploy, its rollback, who owns them, how long each "
    "of them takes, what was tried the week before and why the next attempt should go better. "
    "No #{}."
)
NOTES = "The deploy took {} minutes, the rollback {} and the owner is team {}."


@dataclass
class Call:
    """A request to the model: who asked, what it was told, whose lease that stands under, and when
    it was answered.
    """

    number: int
    worker: str
    prompt: str
    about: str
    answered_at: float | None = None


class Model:
    """Writes summaries, each with a number that is never used again, and keeps a list of them.

    Asked for a digest once more, with what it left out, it says the same again.
    """

    def __init__(self) -> None:
        self.pace = 0.0
        self.calls: dict[int, Call] = {}
        self._numbers = count(1)
        self.change = Condition()

    def __call__(self, request) -> Answer:
        content = request["messages"][1]["content"]
        is_retry = len(request["messages"]) > 2
        with self.change:
            call = self._last_of(request["model"]) if is_retry else None
            if call is None:
                call = Call(next(self._numbers), request["model"], content, about(content))
            call.answered_at = None
            self.calls[call.number] = call
            self.change.notify_all()
        time.sleep(self.pace)
        with self.change:
            call.answered_at = time.monotonic()
            self.change.notify_all()
        project = re.search(rf"{DIGEST}\d+", content)
        assert project is not None
        return Answer(SUMMARY.format(project[0], call.about, call.number))

    def _last_of(self, worker: str) -> Call | None:
        return next((call for call in reversed(self.calls.values()) if call.worker == worker), None)

    def by(self, worker: str) -> list[Call]:
        with self.change:
            return [call for call in self.calls.values() if call.worker == worker]

    def wait_for_answers(self, worker: str, number: int, process, kind: str = "") -> None:
        """Until `worker` has got so many answers (about rows of a `kind`), or is at its end."""

        def answered() -> int:
            calls = self.by(worker)
            return sum(
                call.answered_at is not None and call.about.startswith(kind) for call in calls
            )

        self._wait(lambda: answered() >= number, process)

    def wait_for_any(self, worker: str, within: float) -> None:
        """Until `worker` asks something that it did not ask before, or so many seconds are over."""
        before, deadline = len(self.by(worker)), time.monotonic() + within
        with self.change:
            while len(self.by(worker)) == before and time.monotonic() < deadline:
                self.change.wait(0.1)

    def wait_for_call(self, worker: str, number: int, process) -> Call | None:
        """The call with this number of `worker`, under way; None when it does not come."""
        self._wait(lambda: len(self.by(worker)) >= number, process)
        calls = self.by(worker)
        return calls[-1] if len(calls) >= number and calls[-1].answered_at is None else None

    def _wait(self, condition, process) -> None:
        deadline = time.monotonic() + LONGEST
        with self.change:
            while not condition() and process.is_alive() and time.monotonic() < deadline:
                self.change.wait(0.02)


def about(text: str) -> str:
    """Which row's lease the request stands under: a session's title, or a project's name."""
    kind = DIGEST if text.startswith("The period:") else CONVERSATION
    match = re.search(rf"{kind}\d+", text)
    assert match is not None, text
    return match[0]


class Torture:
    """Projects full of talk, and the workers that are to make memory of it."""

    def __init__(self, crew, model: Model, chance, tally) -> None:
        self.crew, self.model, self.chance, self.tally = crew, model, chance, tally
        self.now = timezone.now() + timedelta(hours=1)
        self.user = get_user_model().objects.create_user("olive")
        self.workers = count(1)
        self.started: list[BaseProcess] = []
        # The guard that workers go without, to see whether that is noticed.
        self.without = ""
        # The numbers of the summaries that were in the database at some time.
        self.committed: set[int] = set()
        # How often a worker was killed, by what it was at.
        self.killed: Counter[str] = Counter()

    # What is there to remember.

    def settle_in(self, projects: int, sessions: int) -> None:
        for number in range(projects):
            project = create_project(
                self.user, name=f"{DIGEST}{number}", slug=f"p{number}", bank_max_tokens=120
            )
            # The digests of two days exceed the budget, so that they roll up into weeks.
            monday = self.now - timedelta(days=self.now.weekday() + 7 * self.chance.randint(3, 10))
            weekdays = self.chance.sample(range(7), max(2, sessions // 4))
            for place in range(sessions):
                self.begin(project, monday + timedelta(days=weekdays[place % len(weekdays)]))

    def begin(self, project: Project, day: datetime) -> None:
        at = day.replace(hour=8) + timedelta(minutes=self.chance.randrange(600))
        title = f"{CONVERSATION}{Session.objects.count()}"
        session = Session.objects.create(
            project=project, creator=self.user, title=title, created_at=at, last_activity_at=at
        )
        self.talk(session, self.chance.randint(1, 4))

    def talk(self, session: Session, pairs: int) -> None:
        """An even number of messages: one in each pair is never deleted, so that no entry goes."""
        chance = self.chance
        last = session.messages.order_by("seq").last()
        at = last.created_at if last is not None else session.created_at
        drafts = []
        for _ in range(2 * pairs):
            at += timedelta(minutes=1)
            note_text = NOTES.format(
                chance.randrange(99), chance.randrange(99), chance.randrange(99)
            )
            drafts.append(
                draft(f"{session.title} in {session.project.name}: {note_text}", created_at=at)
            )
        post_messages(session, drafts)

    def go_on(self, most: int) -> None:
        """More talk, edits and deletions, in sessions that are remembered already too."""
        chance = self.chance
        sessions = list(Session.objects.select_related("project"))
        for session in chance.sample(sessions, min(most, len(sessions))):
            self.talk(session, chance.randint(1, 2))
        for session in chance.sample(sessions, min(most // 2, len(sessions))):
            messages = list(session.messages.filter(deleted_at=None))
            changed = chance.choice(messages)
            if changed.seq % 2 == 0 and chance.random() < 0.5:
                edits.delete(changed)
            else:
                edits.edit(changed, f"{changed.text} That is corrected.", self.user)

    # Who makes memory of it.

    def start(self):
        name = f"worker-{next(self.workers)}"
        begun = self.crew.Event()
        args = (name, self.now, begun, self.without)
        process = self.crew.Process(target=cycles.work, args=args, name=name)
        process.start()
        self.started.append(process)
        assert begun.wait(60)
        return process

    def wait_for_the_instant(self, process) -> None:
        """Until a random instant: soon after the start, any, or soon after an answer; every other
        time after the answer to a digest, which comes late in a cycle.
        """
        chance = self.chance
        way = chance.randrange(6)
        if way == 0:
            time.sleep(chance.uniform(0, 0.1))
        elif way < 3:
            time.sleep(chance.uniform(0, 1.5))
        else:
            kind = chance.choice(("", DIGEST))
            self.model.wait_for_answers(process.name, chance.randint(1, 6), process, kind)
            time.sleep(chance.uniform(0, 0.03))

    def kill(self, process, undisturbed: bool = True) -> None:
        """Kills the worker, unless it has come to its end, and checks what it leaves.

        When nothing else was changed meanwhile, it loses the call that it was at, and no other.
        """
        process.kill()
        killed_at = time.monotonic()
        process.join(30)
        wait_until_ended(process.name)
        calls = self.model.by(process.name)
        if process.exitcode == 0:
            return
        assert process.exitcode == -signal.SIGKILL
        last = calls[-1] if calls else None
        phase, row = self.phase(last, killed_at)
        self.killed[phase] += 1
        layer = {DIGEST: " of a digest", CONVERSATION: " of a conversation"}.get(row[:1], "")
        self.tally(f"killed: {phase}{layer}")
        lost = {call.number for call in calls} - self.committed
        at = {last.number} if last is not None and phase in ("call", "commit") else set()
        assert lost == at or not undisturbed, (phase, lost)

    def phase(self, last: Call | None, killed_at: float) -> tuple[str, str]:
        """What a killed worker was at, and on which row, as the database shows it."""
        self.look()
        leases = current_leases()
        assert len(leases) <= 1
        row = next(iter(leases), last.about if last is not None else "")
        if last is not None and (last.answered_at is None or last.answered_at > killed_at):
            return "call", last.about
        if last is not None and last.number not in self.committed and row == last.about and leases:
            return "commit", row
        if leases and (last is None or row != last.about):
            return "claim", row
        return "acknowledge" if last is not None else "before its first claim", row

    def look(self) -> None:
        """Notes which summaries are in the database, and checks what holds at any instant."""
        texts = [*Entry.objects.values_list("summary", flat=True)]
        texts += EntryRevision.objects.values_list("summary", flat=True)
        self.committed |= {
            int(number) for text in texts for number in re.findall(r"#(\d+)\.", text)
        }
        check_ranges()
        check_parents()
        for project in Project.objects.all():
            assert rendered_bank(project).tokens <= project.bank_max_tokens

    def overtake(self) -> bool:
        """Stops a worker in the middle of a call and lets its lease run out; another one goes on,
        and the first comes back with its answer. False when it did not come to a call.
        """
        late = self.start()
        call = self.model.wait_for_call(late.name, self.chance.randint(1, 6), late)
        if call is None:
            self.kill(late)
            return False
        os.kill(late.pid, signal.SIGSTOP)
        # No transaction waits for a model.
        assert states(late.name) <= {"idle"}
        let_leases_run_out()
        other = self.start()
        self.go_on(2)
        self.wait_for_the_instant(other)
        os.kill(late.pid, signal.SIGCONT)
        time.sleep(self.chance.uniform(0.1, 0.6))
        for process in (late, other):
            process.kill()
            process.join(30)
            wait_until_ended(process.name)
        self.look()
        assert call.number not in self.committed, "A worker that was overtaken committed."
        self.tally("workers overtaken while they waited for the model")
        return True

    def finish(self) -> None:
        """Undisturbed cycles to the end."""
        let_leases_run_out()
        process = self.start()
        process.join(600)
        assert process.exitcode == 0
        self.look()
        assert {call.number for call in self.model.by(process.name)} <= self.committed
        self.tally("model calls", len(self.model.calls))


def states(name: str) -> set[str]:
    """Of the database connections of a process."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT state FROM pg_stat_activity WHERE application_name = %s", [name])
        return {state for (state,) in cursor.fetchall()}


def wait_until_ended(name: str) -> None:
    """Waits until the database has ended what a killed process had begun, one way or the other."""
    deadline = time.monotonic() + 120
    # A pooler's connection to the server lives on, and keeps the name of who used it last.
    over = {"idle"} if settings.POOLER else set()
    while states(name) - over:
        assert time.monotonic() < deadline, activity(name)
        time.sleep(0.005)


def activity(name: str) -> list[tuple]:
    """What the connections of a process do, and which others they wait for."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT state, wait_event, pg_blocking_pids(pid), query FROM pg_stat_activity "
            "WHERE application_name = %s",
            [name],
        )
        return cursor.fetchall()


def current_leases() -> set[str]:
    sessions = Cursor.objects.filter(lease_until__gt=Now()).values_list("session__title", flat=True)
    projects = Ladder.objects.filter(lease_until__gt=Now()).values_list("project__name", flat=True)
    return {*sessions, *projects}


def let_leases_run_out() -> None:
    """As time passes: a lease outlives the longest model call."""
    for model in (Cursor, Ladder):
        rows = model.objects.filter(lease_until__gt=Now())
        rows.update(lease_until=Now() - timedelta(seconds=1))


@pytest.fixture
def torture(crew, model_server, chance, tally) -> Iterator[Torture]:
    model_server.reset()
    model_server.default = model = Model()
    torture_run = Torture(crew, model, chance, tally)
    yield torture_run
    # One that a failed test left behind, even stopped, may hold locks.
    for process in torture_run.started:
        process.kill()


def test_a_cycle_may_die_anywhere(torture, scale, tally):
    torture.settle_in(scale(20, 3), scale(15, 4))
    kills, more = scale(200, 5), scale(8, 3)
    while torture.killed.total() < kills:
        torture.model.pace = torture.chance.choice(PACES)
        worker = torture.start()
        undisturbed = torture.chance.random() < 0.5
        if not undisturbed:
            torture.go_on(more)
        torture.wait_for_the_instant(worker)
        torture.kill(worker, undisturbed)
        let_leases_run_out()
        if torture.chance.random() < 0.5:
            torture.go_on(more)
    assert set(torture.killed) >= scale(PHASES, set()), torture.killed
    torture.finish()
    check_coverage(tally)
    check_layers(tally)
    check_texts(torture.model)


def test_a_worker_that_was_overtaken_changes_nothing(torture, scale, tally):
    torture.settle_in(scale(8, 3), scale(8, 4))
    wanted, overtaken = scale(40, 2), 0
    while overtaken < wanted:
        torture.model.pace = torture.chance.choice(PACES[1:])
        overtaken += torture.overtake()
        let_leases_run_out()
        torture.go_on(4)
    torture.finish()
    check_coverage(tally)
    check_layers(tally)
    check_texts(torture.model)


def test_without_the_fence_that_would_be_noticed(torture):
    torture.without = "fence"
    torture.settle_in(3, 4)
    torture.model.pace = PACES[1]
    with pytest.raises(AssertionError, match="overtaken committed"):
        for _ in range(20):
            torture.overtake()
            let_leases_run_out()
            torture.go_on(4)


def test_without_leases_that_would_be_noticed(torture):
    torture.without = "lease"
    torture.settle_in(2, 4)
    torture.model.pace = PACES[1]
    workers = [torture.start() for _ in range(3)]
    for worker in workers:
        worker.join(60)
    call_numbers = {call.number for call in torture.model.calls.values()}
    torture.look()
    assert call_numbers - torture.committed, "Every call was of use, as with leases."


def check_ranges() -> None:
    """Whether the entries of each session cover disjoint, gapless ranges, at any instant."""
    through: dict = defaultdict(int)
    for entry in Entry.objects.filter(granularity=Granularity.CONVERSATION).order_by("first_seq"):
        assert entry.first_seq == through[entry.session_id] + 1
        through[entry.session_id] = entry.last_seq
    for session, summarised in Cursor.objects.values_list("pk", "summarised_through"):
        assert summarised == through[session]


def check_parents() -> None:
    """Whether what is absorbed has one parent, of the right period, and no digest is without
    children, at any instant.
    """
    entries = {entry.pk: entry for entry in Entry.objects.defer("summary")}
    parents = set()
    for entry in entries.values():
        if entry.parent_id is None:
            assert entry.state != EntryStatus.ABSORBED
            continue
        assert entry.state in (EntryStatus.ABSORBED, EntryStatus.STALE)
        layer, parent = Granularity(entry.granularity), entries[entry.parent_id]
        parents.add(parent.pk)
        above = Granularity(parent.granularity)
        assert above.depth > layer.depth
        assert parent.period_key == ancestor_key(layer, entry.period_key, above)
        assert parent.project_id == entry.project_id
    digest_ids = {
        pk for pk, item in entries.items() if item.granularity != Granularity.CONVERSATION
    }
    assert digest_ids == parents
    periods = Counter(
        (entries[pk].project_id, entries[pk].granularity, entries[pk].period_key)
        for pk in digest_ids
    )
    assert not digest_ids or max(periods.values()) == 1


def check_coverage(tally) -> None:
    """Whether every message is remembered exactly once, and nothing waits any more."""
    ranges = Entry.objects.filter(granularity=Granularity.CONVERSATION)
    for cursor in Cursor.objects.select_related("session"):
        session = cursor.session
        assert cursor.summarised_through == session.last_seq
        for entry in ranges.filter(session=session):
            assert entry.message_count == contributing(entry).count() > 0
        assert (cursor.unsummarised_messages, cursor.unsummarised_tokens) == (0, 0)
    for model in (Cursor, Ladder):
        assert not model.objects.filter(~Q(last_error="") | Q(lease_holder__isnull=False)).exists()
    spoken = Message.objects.filter(CONTRIBUTING).count()
    assert sum(ranges.values_list("message_count", flat=True)) == spoken
    tally("sessions", Session.objects.count())
    tally("messages, each remembered once", spoken)


def contributing(entry: Entry) -> QuerySet[Message]:
    assert entry.session is not None
    covered = entry.session.messages.filter(seq__range=(entry.first_seq, entry.last_seq))
    return covered.filter(CONTRIBUTING)


def check_layers(tally) -> None:
    """Whether the layers have settled: nothing waits, and nothing is counted twice."""
    assert not Entry.objects.filter(Q(state=EntryStatus.STALE) | Q(withheld=True)).exists()
    assert (
        not Entry.objects.filter(parent__isnull=False).exclude(state=EntryStatus.ABSORBED).exists()
    )
    layers = Counter(Entry.objects.values_list("granularity", flat=True))
    assert set(layers) >= {Granularity.CONVERSATION, Granularity.DAY, Granularity.WEEK}
    for layer in Granularity:
        tally(f"{layer} entries", layers[layer])
    for project in Project.objects.all():
        tops = project.entries.filter(parent=None)
        spoken = Message.objects.filter(CONTRIBUTING, project=project).count()
        assert sum(tops.values_list("message_count", flat=True)) == spoken


def check_texts(model: Model) -> None:
    """Whether every summary was written from what its sources say now."""
    for entry in Entry.objects.select_related("session").prefetch_related("children"):
        prompt_text = model.calls[number_of(entry)].prompt
        if entry.granularity == Granularity.CONVERSATION:
            assert all(message.text in prompt_text for message in contributing(entry))
        else:
            children = entry.children.all()
            sources = [line.shown for child in children for line in child.read_lines()]
            assert all(text in prompt_text for text in sources)


def number_of(entry: Entry) -> int:
    match = re.search(r"#(\d+)\.", entry.summary)
    assert match is not None
    return int(match[1])
