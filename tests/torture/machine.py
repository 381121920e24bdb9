"""A team that does anything to its chats and its memory, in any order, as Hypothesis chooses."""

from datetime import timedelta
from functools import wraps

import pytest
from django.db import connection, transaction
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

from chat import changes
from memory.layers import conversations, cycle, digests, summarising
from memory.layers.summarising.extractive import Extractive
from memory.models import State
from tests.torture.promises import Promises
from tests.torture.scribe import Scribe
from tests.torture.team import Team, chosen

ZONES = ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Vienna", "Asia/Kathmandu")
BUDGETS = (100, 150, 220, 400, 2_000)
WAITS = (
    *(timedelta(minutes=11), timedelta(hours=5), timedelta(days=1), timedelta(days=2)),
    *(timedelta(days=8), timedelta(days=35)),
)
# What may pass after an act: mostly nothing.
PAUSES = (None, None, None, timedelta(minutes=11), timedelta(days=2))
# So many cycles at one instant are enough for everything that is due.
ENOUGH = 2
# A stretch of talk is cut at so many tokens here, so that some are.
SHORT_STRETCH = 60

picks = st.integers(0, 99)
few = st.integers(1, 4)
yes_or_no = st.booleans()


def act(kind=rule, **drawn):
    """A rule that does something at the team's clock, after which all promises are asked.

    Often some time passes `then`, in which everything settles: between acts on a memory that is
    still empty there is not much to find.
    """

    def decorated(method):
        @wraps(method)
        def step(self, then, **choices):
            self.acted = self.tidy = False
            self.team.set_clock()
            method(self, **choices)
            if self.acted:
                self.promises_are_kept()
                if then:
                    self.settle(then)
                    self.promises_are_kept()

        return kind(then=st.sampled_from(PAUSES), **drawn)(step)

    return decorated


class Memory(RuleBasedStateMachine):
    """One project, from its first word on. Everything is rolled back at the end of a run."""

    runs = acts = 0

    def __init__(self) -> None:
        super().__init__()
        type(self).runs += 1
        self.transaction = transaction.atomic()
        self.transaction.__enter__()
        self.team = Team()
        self.promises = Promises(self.team)
        self.scribe = Scribe()
        self.patches = pytest.MonkeyPatch()
        self.patches.setattr(summarising, "get", lambda project: self.scribe)
        self.patches.setattr(conversations, "MOST_TOKENS", SHORT_STRETCH)
        self.team.set_clock()

    def teardown(self) -> None:
        self.patches.undo()
        transaction.set_rollback(True)
        self.transaction.__exit__(None, None, None)

    def did(self, told: str) -> None:
        type(self).acts += 1
        self.acted = True
        note(f"    # {told}")

    def _session(self, pick: int):
        return chosen(self.team.sessions(), pick)

    def _message(self, pick: int, **wanted):
        return chosen(self.team.messages(**wanted), pick)

    def _said(self, pick: int, role: str = ""):
        """A message that stands and is said to its end."""
        role_wanted = {"role": role} if role else {}
        found = self.team.messages(deleted_at=None, **role_wanted)
        return chosen([one for one in found if one.is_final], pick)

    def _entry(self, pick: int, *states: str):
        rows = self.team.project.entries.all()
        return chosen(self.team.entries(rows.filter(state__in=states) if states else rows), pick)

    @act(
        initialize,
        budget=st.sampled_from(BUDGETS),
        zone=st.sampled_from(ZONES),
        quoting=st.integers(0, 3),
        days=st.integers(0, 6),
    )
    def begin_the_project(self, budget, zone, quoting, days):
        self.did(self.team.settings(bank_max_tokens=budget, timezone=zone))
        if quoting == 0:
            self.patches.setattr(summarising, "get", lambda project: Extractive())
            note("    # summaries are extractive")
        self._talk_for_days(days, timedelta(hours=19))

    # What people say.

    @act(count=few, titled=yes_or_no, manner=st.integers(0, 9))
    def begin(self, count, titled, manner):
        self.did(self.team.begin(count, manner < 2, titled, manner == 2, manner == 3))

    @act(count=st.integers(2, 6), pace=st.sampled_from((timedelta(hours=9), timedelta(days=3))))
    def talk_for_days(self, count, pace):
        self._talk_for_days(count, pace)

    def _talk_for_days(self, count, pace):
        for _ in range(count):
            self.did(self.team.begin(2))
            self.team.clock += pace
            self.team.set_clock()

    @act(pick=picks, count=few)
    def resume(self, pick, count):
        if session := self._session(pick):
            self.did(self.team.talk(session, count))

    @act(pick=picks)
    def ask(self, pick):
        if session := self._session(pick):
            self.did(self.team.ask(session))

    @act(pick=picks, status=st.sampled_from(("complete", "stopped", "failed")))
    def answer(self, pick, status):
        if reply := self._message(pick, status="pending"):
            self.did(self.team.answer(reply, status))

    @act(pick=picks)
    def edit(self, pick):
        if message := self._said(pick):
            self.did(self.team.edit(message))

    @act(pick=picks)
    def delete(self, pick):
        if message := self._said(pick):
            self.did(self.team.delete(message))

    @act(pick=picks)
    def clear(self, pick):
        session = self._session(pick)
        if session and not session.messages.filter(status="pending").exists():
            self.did(self.team.clear(session))

    @act(pick=picks)
    def regenerate(self, pick):
        reply = self._said(pick, "assistant")
        if reply and reply.parent_id:
            try:
                self.did(self.team.regenerate(reply))
            except changes.Refused as refused:
                self.did(str(refused))

    @act(pick=picks)
    def ask_again(self, pick):
        if message := self._said(pick, "user"):
            self.did(self.team.rerun(message))

    @act(pick=picks)
    def choose_a_branch(self, pick):
        if message := self._message(pick):
            self.did(self.team.choose(message))

    @act(pick=picks)
    def fork(self, pick):
        if message := self._message(pick):
            self.did(self.team.fork(message))

    # What becomes of sessions.

    @act(pick=picks, visibility=st.sampled_from(("private", "project")))
    def share_or_not(self, pick, visibility):
        if session := self._session(pick):
            self.did(self.team.keep(session, visibility=visibility))

    @act(pick=picks, remembered=yes_or_no)
    def remember_or_not(self, pick, remembered):
        if session := self._session(pick):
            self.did(self.team.keep(session, remembered=remembered))

    @act(pick=picks)
    def close(self, pick):
        if session := self._session(pick):
            self.did(self.team.close(session))

    @act(pick=picks)
    def delete_session(self, pick):
        if session := self._session(pick):
            self.did(self.team.delete_session(session))

    @act(pick=picks)
    def restore_session(self, pick):
        if session := chosen(self.team.sessions(deleted_at__isnull=False), pick):
            self.did(self.team.restore(session))

    @act()
    def purge(self):
        if self.team.sessions(deleted_at__isnull=False):
            self.did(self.team.purge())

    # What is forgotten.

    @act(pick=picks)
    def forget_message(self, pick):
        if message := self._message(pick):
            self.did(self.team.forget_message(message))

    @act(pick=picks)
    def forget_session(self, pick):
        if session := self._session(pick):
            self.did(self.team.forget_session(session))

    @act(pick=picks, sources=yes_or_no)
    def forget_entry(self, pick, sources):
        if entry := self._entry(pick):
            self.did(self.team.forget_entry(entry, sources))

    @act(pick=st.integers(0, 9))
    def forget_somebody(self, pick):
        # Seldom: little is left afterwards.
        if pick < 2:
            self.did(self.team.forget_user((self.team.olive, self.team.edgar)[pick]))

    @act(back=st.sampled_from(WAITS))
    def forget_what_was_before(self, back):
        self.did(self.team.forget_before(self.team.clock - 4 * back))

    # What moderators do.

    @act(pick=picks, pinned=yes_or_no)
    def pin(self, pick, pinned):
        if entry := self._entry(pick):
            self.did(self.team.pin(entry, pinned))

    @act(pick=picks)
    def hide_or_reject(self, pick):
        if entry := self._entry(pick):
            self.did(self.team.hide(entry, True))

    @act(pick=picks)
    def show_or_approve(self, pick):
        if entry := self._entry(pick, State.HIDDEN, State.PROPOSED):
            self.did(self.team.hide(entry, False))

    @act(pick=picks, edgar=yes_or_no)
    def edit_entry(self, pick, edgar):
        if entry := self._entry(pick):
            self.did(self.team.edit_entry(entry, self.team.edgar if edgar else self.team.olive))

    @act(pick=picks, passage=picks)
    def redact(self, pick, passage):
        if entry := self._entry(pick):
            self.did(self.team.redact(entry, passage))

    @act(pick=picks)
    def ask_anew(self, pick):
        if entry := self._entry(pick):
            self.did(self.team.ask_anew(entry))

    @act(review=yes_or_no)
    def review_or_not(self, review):
        self.did(self.team.settings(review_memories=review))

    @act(budget=st.sampled_from(BUDGETS))
    def change_the_budget(self, budget):
        self.did(self.team.settings(bank_max_tokens=budget))

    @act(
        trigger=st.sampled_from((100, 125, 300)),
        ages=st.sampled_from(((0, 0, 0), (1, 7, 30), (2, 3, 4), (30, 7, 1))),
    )
    def change_the_thresholds(self, trigger, ages):
        names = ("day_after_days", "week_after_days", "month_after_days")
        ages_by_name = dict(zip(names, ages, strict=True))
        self.did(self.team.settings(roll_percent=trigger, **ages_by_name))

    @act(zone=st.sampled_from(ZONES))
    def move(self, zone):
        self.did(self.team.settings(timezone=zone))

    # Time passes.

    @act(time=st.sampled_from(WAITS))
    def wait(self, time):
        self.did(self.team.wait(time))

    @act()
    def run_a_cycle(self):
        self.did(f"a cycle at {self.team.clock}: {cycle.run(self.team.clock)}")

    def settle(self, time):
        """Time passes, in which all answers come and everything that is due is done."""
        answers = self.team.answer_all()
        self.did(f"{self.team.wait(time)}, and everything settles; {answers}")
        self.team.set_clock()
        for _ in range(ENOUGH):
            cycle.run(self.team.clock)
        due = cycle.due(self.team.clock)
        assert not due, f"{due} is due, for ever"
        before, calls = self.team.snapshot(), self.scribe.calls
        # As when the queue brings the same work twice.
        digests.settle(self.team.project.pk, self.team.clock)
        assert self.team.snapshot() == before, "looking through settled layers changed them"
        assert self.scribe.calls == calls, "looking through settled layers asked the model"
        self.tidy = True

    def promises_are_kept(self):
        self.team.set_clock()
        with connection.cursor() as cursor:
            # What the database checks at the end of a transaction.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        self.promises.kept(self.tidy)
