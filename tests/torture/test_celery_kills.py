"""Celery's own processes die, at any instant of a cycle; and what its broker loses comes back."""

import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from random import Random

import pytest
from django.conf import settings
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils import timezone
from django_celery_beat.models import IntervalSchedule, PeriodicTask

from memory.layers import cycle
from memory.layers.periods import Granularity
from memory.models import Cursor, Entry, Ladder
from memory.tasks import TASK_EXPIRES_S, run_cycle, summarise_session
from projects.models import Project
from tests.torture import queues
from tests.torture.prefork import TARGETS, Celery, celery
from tests.torture.test_memory_kills import (
    PHASES,
    Call,
    Model,
    Torture,
    check_coverage,
    check_layers,
    check_texts,
    current_leases,
    wait_until_ended,
)

pytestmark = pytest.mark.django_db(transaction=True)

# Seconds that a model takes for an answer.
PACES = (0.05, 0.2, 0.5)
# Seconds after which something that is waited for will not come any more, on a slow machine.
LONGEST = 90.0


class Fire:
    """Kills, and an account of what each of them hit and cost."""

    def __init__(
        self, torture: Torture, workers: Celery, queue: queues.Queue, chance: Random, tally
    ) -> None:
        self.torture, self.workers, self.queue = torture, workers, queue
        self.chance, self.tally = chance, tally
        # How often what was killed, and how often a phase was hit.
        self.killed: Counter[str] = Counter()
        self.hit: Counter[str] = Counter({phase: 0 for phase in PHASES})
        # The rows that dead processes may hold.
        self.leased: set[str] = set()

    def kill(self) -> None:
        """At a random instant: half of them anywhere, half in the phase that was hit least."""
        self.keep_busy()
        rarest = min(self.hit, key=self.hit.__getitem__)
        wanted = self.chance.choice((PHASES, {rarest}))
        pid = self.workers.wait_for(wanted, LONGEST if wanted == PHASES else 3)
        if pid is None:
            return
        if wanted == PHASES:
            time.sleep(self.chance.uniform(0, 1))
        elif wanted == {"call"}:
            time.sleep(self.chance.uniform(0, self.torture.model.pace))
        target = self.target(pid)
        killed_at = time.monotonic()
        dead = self.workers.kill(target, self.chance, pid)
        self.bury(dead)
        self.count(target, self.phase(pid if pid in dead else dead[-1], killed_at))
        if target != "child":
            self.go_on()
            self.workers.start("worker")

    def target(self, pid: int) -> str:
        """What was killed least; the parent itself does not die with a child."""
        possible = TARGETS if pid != self.workers.parent.pid else TARGETS[1:]
        return min(possible, key=self.killed.__getitem__)

    def phase(self, pid: int, killed_at: float) -> str:
        """What a dead process was at; of a call, the model knows best how far it had come."""
        noted, _ = self.workers.at(pid)
        if noted != "call":
            return noted
        last = self.calls(pid)[-1] if self.calls(pid) else None
        if last is None or last.number in self.torture.committed:
            return "claim"
        is_answered = last.answered_at is not None and last.answered_at < killed_at
        return "commit" if is_answered else "call"

    def count(self, target: str, phase: str) -> None:
        self.killed[target] += 1
        self.hit.update({phase} & PHASES)
        self.tally(f"kills of a {target}")
        self.tally(f"killed: {phase if phase in PHASES else 'between two tasks'}")

    def bury(self, dead: list[int]) -> None:
        """Waits for the database to end what they had begun, checks what they leave, and lets
        their leases run out.
        """
        for pid in dead:
            wait_until_ended(name(pid))
        self.look()
        for pid in dead:
            lost = {call.number for call in self.calls(pid)} - self.torture.committed
            phase, _ = self.workers.at(pid)
            assert lost <= {call.number for call in self.calls(pid)[-1:]}, (phase, lost)
            assert not lost or phase in ("call", "commit"), (phase, lost)
            self.tally("model calls that a kill cost", len(lost))
        self.leased |= {self.workers.at(pid)[1] for pid in dead}
        self.let_leases_run_out()

    def let_leases_run_out(self) -> None:
        """Those of the dead. Where one that lives is at the same row, it may hold it by now."""
        living = self.workers.pids() if self.workers.is_alive() else []
        over = self.leased - {self.workers.at(pid)[1] for pid in living}
        let_leases_run_out(over)
        self.leased -= over

    def calls(self, pid: int) -> list:
        return self.torture.model.by(name(pid))

    def look(self) -> None:
        """At one instant, though others are at work."""
        with transaction.atomic():
            with connection.cursor() as cursor:
                cursor.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
            self.torture.look()

    def go_on(self) -> None:
        """What happens while nobody works: people talk, and what was taken comes back."""
        if self.chance.random() < 0.5:
            self.torture.go_on(4)
        if self.chance.random() < 0.5:
            self.queue.let_visibility_run_out()

    def keep_busy(self) -> None:
        """A cycle begins when the last one has nothing more to give out."""
        self.torture.model.pace = self.chance.choice(PACES)
        if self.queue.waiting() > 2:
            return
        if not cycle.due(timezone.now()) and not current_leases():
            self.torture.go_on(6)
        self.queue.send(run_cycle, expires=TASK_EXPIRES_S)

    def finish(self, cycles: int) -> None:
        """So many undisturbed cycles, after which nothing is left to do."""
        self.torture.model.pace = 0.0
        self.queue.let_visibility_run_out()
        self.wait_until_done()
        self.let_leases_run_out()
        for _ in range(cycles):
            self.queue.send(run_cycle)
            self.wait_until_done()
        assert not cycle.due(timezone.now())
        assert not current_leases()
        self.torture.look()

    def wait_until_done(self) -> None:
        wait_until(lambda: len(self.queue) == 0, 5 * LONGEST)


def let_leases_run_out(rows: set[str]) -> None:
    for model in (Cursor, Ladder):
        leased = model.objects.filter(pk__in=rows - {""}, lease_until__gt=Now())
        leased.update(lease_until=Now())


def name(pid: int) -> str:
    """By which the database and the model know a child."""
    return f"child-{pid}"


def wait_until(condition, seconds: float = LONGEST) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def check_calls(model: Model, stored_entries: set[int], tally) -> None:
    """Whether nothing was asked again once its answer was kept."""
    requests_by_key = defaultdict(list)
    for call in model.calls.values():
        requests_by_key[call.prompt].append(call.number)
    for numbers in requests_by_key.values():
        assert not stored_entries & set(numbers[:-1]), (
            "It was asked again though its answer was kept."
        )
    tally("model calls", len(model.calls))
    tally("model calls of use", len(stored_entries & set(model.calls)))


@pytest.fixture
def torture(model_server, chance, tally) -> Torture:
    model_server.reset()
    model_server.default = model = Model()
    return Torture(None, model, chance, tally)


@pytest.fixture
def workers(torture, model_server, tmp_path) -> Iterator[Celery]:
    with celery(model_server.base_url, tmp_path / "notes") as processes:
        yield processes


@pytest.fixture
def queue(db) -> queues.Queue:
    return queues.current_queue()


def test_celery_may_die_anywhere(torture, queue, workers, scale, chance, tally):
    torture.settle_in(scale(20, 3), scale(15, 4))
    Project.objects.update(idle_minutes=0)
    fire = Fire(torture, workers, queue, chance, tally)
    kills, least = scale(50, len(TARGETS)), scale(5, 0)
    while fire.killed.total() < kills or min(fire.hit.values()) < least:
        fire.kill()
    fire.finish(cycles=2)
    check_coverage(tally)
    check_layers(tally)
    check_texts(torture.model)
    check_calls(torture.model, torture.committed, tally)


def test_a_task_comes_back_when_its_worker_is_gone_for_good(
    torture,
    queue,
    workers,
    chance,
):
    torture.settle_in(1, 1)
    torture.model.pace = PACES[-1]
    cursor = Cursor.objects.get()
    queue.send(summarise_session, str(cursor.pk))
    assert workers.wait_for({"call"}, LONGEST) is not None
    workers.kill("group", chance)
    assert Entry.objects.count() == 0
    # Hidden until it cannot be under way any more.
    assert queue.hidden_for() > settings.CELERY_TASK_TIME_LIMIT - LONGEST
    let_leases_run_out({str(cursor.pk)})
    queue.let_visibility_run_out()
    workers.start("worker")
    wait_until(lambda: len(queue) == 0)
    assert Entry.objects.get().session_id == cursor.pk


def test_the_beat_finds_what_lost_messages_would_have_started(
    torture, queue, workers, empty_schedule
):
    torture.settle_in(1, 3)
    Project.objects.update(idle_minutes=0)
    every_second, _ = IntervalSchedule.objects.get_or_create(every=1, period="seconds")
    PeriodicTask.objects.create(name="Cycle", task=run_cycle.name, interval=every_second)
    workers.start("beat")
    wait_until(lambda: not cycle.due(timezone.now()), 5 * LONGEST)
    wait_until(lambda: not current_leases())
    assert Entry.objects.filter(granularity=Granularity.CONVERSATION).count() == 3


def test_a_repeated_request_would_be_noticed(tally):
    model = Model()
    model.calls = {number: Call(number, "child-1", "The same", "S1") for number in (1, 2)}
    check_calls(model, {2}, tally)
    with pytest.raises(AssertionError, match="asked again"):
        check_calls(model, {1, 2}, tally)
