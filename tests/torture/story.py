"""The base of a random story: a team, a clock, and a check of the invariants after each act."""

from datetime import timedelta
from functools import wraps

import pytest
from django.db import connection, transaction
from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, rule

from memory.layers import coverage, cycle, digests, summarising
from tests.torture.marking_summariser import Scribe
from tests.torture.memory_acts import Team, chosen
from tests.torture.memory_invariants import Promises

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


class Stage(RuleBasedStateMachine):
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
        self.patches.setattr(summarising, "get_summariser", lambda project: self.scribe)
        self.patches.setattr(coverage, "MAX_RANGE_TOKENS", SHORT_STRETCH)
        self.team.set_clock()

    def teardown(self) -> None:
        self.patches.undo()
        transaction.set_rollback(True)
        self.transaction.__exit__(None, None, None)

    def did(self, description: str) -> None:
        type(self).acts += 1
        self.acted = True
        note(f"    # {description}")

    def _session(self, pick: int):
        return chosen(self.team.sessions(), pick)

    def _message(self, pick: int, **wanted):
        return chosen(self.team.messages(**wanted), pick)

    def _finished_message(self, pick: int, role: str = ""):
        """A message that stands and is said to its end."""
        role_wanted = {"role": role} if role else {}
        messages = self.team.messages(deleted_at=None, **role_wanted)
        return chosen([message for message in messages if message.is_final], pick)

    def _entry(self, pick: int, *states: str):
        rows = self.team.project.entries.all()
        return chosen(self.team.entries(rows.filter(state__in=states) if states else rows), pick)

    def _fact(self, pick: int, *states: str):
        rows = self.team.project.facts.current()
        return chosen(self.team.facts(rows.filter(state__in=states) if states else rows), pick)

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
        digests.update_layers(self.team.project.pk, self.team.clock)
        assert self.team.snapshot() == before, "looking through settled layers changed them"
        assert self.scribe.calls == calls, "looking through settled layers asked the model"
        self.tidy = True

    def promises_are_kept(self):
        self.team.set_clock()
        with connection.cursor() as cursor:
            # What the database checks at the end of a transaction.
            cursor.execute("SET CONSTRAINTS ALL IMMEDIATE; SET CONSTRAINTS ALL DEFERRED")
        self.promises.check(self.tidy)
