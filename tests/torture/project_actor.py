"""A project, and what people say in it, at a clock that a test sets.

Each act says in a sentence what it did, so that a failing run can be read.
"""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Model, QuerySet

from chat.conversations import edits
from chat.conversations.generation import finalise
from chat.conversations.messages import begin_reply, draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import Message, Session, Visibility
from memory.models import Entry, Fact
from projects.models import Membership
from projects.services import create_project
from tests.torture.marking_summariser import HOSTILE, number_in, words

# Ahead of the real clock, which some acts write down. ISO week 53 and a change of the clock follow.
START = datetime(2043, 12, 14, 9, tzinfo=UTC)
# Of what is said, beside its word: enough for a phrase that a receipt looks for.
MESSAGE_TEMPLATE = "so that {} is what was said here"


class People:
    """`gone` are the words that were forgotten; `unremembered` those that memory may not hold."""

    def __init__(self) -> None:
        self.clock = START
        users = get_user_model().objects
        self.olive, self.edgar = users.create(username="olive"), users.create(username="edgar")
        self.project = create_project(self.olive, name="Billing", slug="billing")
        Membership.objects.create(project=self.project, user=self.edgar)
        self.session_ids: list[UUID] = []
        self.count = 0
        self.forgotten_words: set[str] = set()
        self.unremembered: set[str] = set()
        # What was written into entries and facts by hand: who wrote which word into which.
        self.by_hand: list[tuple[int, UUID, str]] = []
        # Words that need be no facts, as somebody decided; and those that may be none any more.
        self.without_fact: set[str] = set()
        self.buried: set[str] = set()
        # Entries on which somebody decided since it was last asked.
        self.decided: set[UUID] = set()

    # What there is.

    def word(self, kind: str = "q") -> str:
        self.count += 1
        return f"{kind}{self.count}z"

    def sessions(self, **wanted) -> list[Session]:
        """Those that nobody deleted, unless `wanted` says otherwise, in the order of their making.

        Ids are not in that order when two are made in the same millisecond.
        """
        rows = Session.objects.filter(**({"deleted_at": None} | wanted)).in_bulk(self.session_ids)
        return [rows[pk] for pk in self.session_ids if pk in rows]

    def messages(self, **wanted) -> list[Message]:
        rows = Message.objects.filter(session__deleted_at=None, forgotten_at=None, **wanted)
        return sorted(rows.select_related("session"), key=self._place)

    def entries(self, rows: QuerySet[Entry] | None = None) -> list[Entry]:
        entries = self.project.entries.all() if rows is None else rows
        return sorted(
            entries.select_related("session", "project"),
            key=lambda entry: (
                entry.granularity,
                entry.period_key,
                self._session(entry),
                entry.first_seq,
            ),
        )

    def facts(self, rows: QuerySet[Fact]) -> list[Fact]:
        """Those that somebody changed first: Hypothesis likes the first."""
        entries = rows.select_related("project")
        return sorted(entries, key=lambda entry: (-entry.version, number_in([entry.object])))

    def _place(self, message: Message) -> tuple[int, int]:
        return self.session_ids.index(message.session_id), message.seq

    def _session(self, entry: Entry) -> int:
        return self.session_ids.index(entry.session_id) if entry.session_id else 0

    def name(self, item: Model) -> str:
        """What a session, message, fact or entry is called in the story of a run."""
        if isinstance(item, Session):
            return f"session {self.session_ids.index(item.pk)}"
        if isinstance(item, Message):
            number = self.session_ids.index(item.session_id)
            return f"message {item.seq} of session {number} ({item.text})"
        if isinstance(item, Fact):
            return f"{item.state} fact {item.object}"
        assert isinstance(item, Entry)
        home = f" of session {self._session(item)} from {item.first_seq}" if item.session_id else ""
        summary = " ".join(item.summary.split())
        return f"{item.state} {item.granularity} {item.period_key}{home} ({summary})"

    # What people say.

    def begin(
        self,
        count: int,
        private: bool = False,
        titled: bool = True,
        forgetful: bool = False,
        hostile: bool = False,
    ) -> str:
        session = create_session(
            self.project,
            self.olive,
            title=f"Talk {len(self.session_ids)}" if titled else "",
            visibility=Visibility.PRIVATE if private else Visibility.PROJECT,
            remembered=not forgetful,
            last_activity_at=self.clock,
            created_at=self.clock,
        )
        self.session_ids.append(session.pk)
        kind = "private " * private + "unremembered " * forgetful + "hostile " * hostile
        return f"a {kind}{self.talk(session, count, HOSTILE if hostile else '')}"

    def talk(self, session: Session, count: int, also: str = "") -> str:
        """Olive and Edgar by turns, each with an answer, a minute between them."""
        drafts = []
        for place in range(count):
            author = (self.olive, self.edgar)[place // 2 % 2]
            text = ". ".join(filter(None, (MESSAGE_TEMPLATE.format(self.word()), also)))
            self.clock += timedelta(minutes=1)
            author_fields = {"role": "assistant"} if place % 2 else {"author": author}
            drafts.append(draft(text, created_at=self.clock, **author_fields))
        post_messages(session, drafts)
        if not session.remembered:
            self.unremembered |= {word for item in drafts for word in words(item.text)}
        all_words = " ".join(sorted(word for item in drafts for word in words(item.text)))
        return f"{self.name(session)} goes on at {self.clock:%Y-%m-%d %H:%M}: {all_words}"

    def ask(self, session: Session) -> str:
        """A question whose answer is not there yet."""
        description = self.talk(session, 1)
        question = session.messages.get(seq=session.last_seq)
        question.session = session
        self._at_the_clock(begin_reply(question))
        return f"{description}, and an answer begins"

    def _at_the_clock(self, reply: Message) -> None:
        Message.objects.filter(pk=reply.pk).update(created_at=self.clock)

    def answer(self, reply: Message, status: str) -> str:
        text = MESSAGE_TEMPLATE.format(self.word()) if status != "failed" else ""
        finalise(reply, text, status, {})
        if not reply.remembered:
            self.unremembered |= words(text)
        return f"the answer {reply.seq} of {self.name(reply.session)} is {status}: {text}"

    def answer_all(self) -> str:
        replies = self.messages(status__in=("pending", "streaming"))
        return "; ".join(self.answer(reply, "complete") for reply in replies)

    def edit(self, message: Message) -> str:
        text = MESSAGE_TEMPLATE.format(self.word())
        before = self.name(message)
        edited = edits.edit(message, text, self.olive)
        if not edited.remembered:
            self.unremembered |= words(text)
        return f"{before} is edited: {text}"

    def delete(self, message: Message) -> str:
        edits.delete(message)
        return f"{self.name(message)} is deleted"

    def clear(self, session: Session) -> str:
        return f"{edits.clear(session)} messages of {self.name(session)} are cleared"

    def regenerate(self, reply: Message) -> str:
        _, second_reply = edits.regenerate(reply)
        self._at_the_clock(second_reply)
        return f"{self.name(reply)} is answered again; {self.answer(second_reply, 'complete')}"

    def rerun(self, message: Message) -> str:
        text = MESSAGE_TEMPLATE.format(self.word())
        question, reply = edits.rerun(message, text, self.olive)
        for item in (question, reply):
            self._at_the_clock(item)
        if not question.remembered:
            self.unremembered |= words(text)
        description = f"{self.name(message)} is asked anew: {text}"
        return f"{description}; {self.answer(reply, 'complete')}"

    def choose(self, message: Message) -> str:
        edits.choose(message)
        return f"the path goes through {self.name(message)}"

    def fork(self, message: Message) -> str:
        session = edits.fork(message, self.edgar)
        Session.objects.filter(pk=session.pk).update(last_activity_at=self.clock)
        self.session_ids.append(session.pk)
        return f"{self.name(session)} is forked from {self.name(message)}"
