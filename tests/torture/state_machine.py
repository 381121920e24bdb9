"""A team that does anything to its chats and its memory, in any order, as Hypothesis chooses."""

from datetime import timedelta

from hypothesis import note
from hypothesis import strategies as st
from hypothesis.stateful import initialize

from memory.layers import cycle, summarising
from memory.layers.summarising.extractive import ExtractiveSummariser
from memory.models import EntryStatus, FactStatus
from tests.torture.conversation_acts import Talk
from tests.torture.story import act, picks, yes_or_no

ZONES = ("UTC", "Pacific/Kiritimati", "Pacific/Pago_Pago", "Europe/Vienna", "Asia/Kathmandu")
BUDGETS = (100, 150, 220, 400, 2_000)
WAITS = (
    *(timedelta(minutes=11), timedelta(hours=5), timedelta(days=1), timedelta(days=2)),
    *(timedelta(days=8), timedelta(days=35)),
)


class Memory(Talk):
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
            self.patches.setattr(
                summarising, "get_summariser", lambda project: ExtractiveSummariser()
            )
            note("    # summaries are extractive")
        self._talk_for_days(days, timedelta(hours=19))

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

    @act(pick=picks, sources=yes_or_no)
    def forget_fact(self, pick, sources):
        if fact := self._fact(pick):
            self.did(self.team.forget_fact(fact, sources))

    # Facts.

    @act(edgar=yes_or_no)
    def give_a_fact(self, edgar):
        self.did(self.team.give_fact(self.team.edgar if edgar else self.team.olive))

    @act(pick=picks, edgar=yes_or_no)
    def edit_fact(self, pick, edgar):
        if fact := self._fact(pick):
            self.did(self.team.edit_fact(fact, self.team.edgar if edgar else self.team.olive))

    @act(pick=picks)
    def hide_or_reject_fact(self, pick):
        if fact := self._fact(pick):
            self.did(self.team.hide_fact(fact))

    @act(pick=picks)
    def show_or_approve_fact(self, pick):
        if fact := self._fact(pick, FactStatus.HIDDEN, FactStatus.PROPOSED):
            self.did(self.team.show_fact(fact))

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
        if entry := self._entry(pick, EntryStatus.HIDDEN, EntryStatus.PROPOSED):
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
    def ask_for_rewrite(self, pick):
        if entry := self._entry(pick):
            self.did(self.team.ask_for_rewrite(entry))

    @act(review=yes_or_no)
    def review_or_not(self, review):
        self.did(self.team.settings(review_memories=review))

    @act(budget=st.sampled_from(BUDGETS))
    def change_the_budget(self, budget):
        self.did(self.team.settings(bank_max_tokens=budget))

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
