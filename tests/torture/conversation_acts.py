"""Acts of a random story on sessions and messages."""

from datetime import timedelta

from hypothesis import strategies as st

from projects.core.errors import ConflictError
from tests.torture.memory_acts import chosen
from tests.torture.story import Stage, act, few, picks, yes_or_no


class Talk(Stage):
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
        if message := self._finished_message(pick):
            self.did(self.team.edit(message))

    @act(pick=picks)
    def delete(self, pick):
        if message := self._finished_message(pick):
            self.did(self.team.delete(message))

    @act(pick=picks)
    def clear(self, pick):
        session = self._session(pick)
        if session and not session.messages.filter(status="pending").exists():
            self.did(self.team.clear(session))

    @act(pick=picks)
    def regenerate(self, pick):
        reply = self._finished_message(pick, "assistant")
        if reply and reply.parent_id:
            try:
                self.did(self.team.regenerate(reply))
            except ConflictError as refused:
                self.did(str(refused))

    @act(pick=picks)
    def ask_again(self, pick):
        if message := self._finished_message(pick, "user"):
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
    def undo_window_ends(self):
        if self.team.sessions(deleted_at__isnull=False):
            self.did(self.team.purge())
