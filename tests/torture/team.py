"""A project, and everything that people do in it, at a clock that a test sets.

Each act says in a sentence what it did, so that a failing run can be read.
"""

from collections.abc import Callable, Sequence
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import Model, QuerySet

from chat import changes, sessions
from chat.models import Message, MessageRevision, Session, SessionStatus, Visibility
from chat.paths import path_to
from chat.replies import begin_reply, draft, finalise, post_messages
from chat.sessions import UNDO_WINDOW, create_session, update_session
from memory.forgetting import Scope, forget, preview
from memory.layers import moments, review
from memory.layers.coverage import contributes
from memory.layers.periods import Granularity
from memory.layers.rendering import rendered_bank
from memory.models import (
    Activity,
    Cursor,
    Entry,
    EntryRevision,
    EntryState,
    Ladder,
    Nudge,
    RenderedBank,
    Tombstone,
)
from projects.creation import create_project
from projects.models import Membership
from tests.torture.scribe import NOTED, TOLD, bullet, words

# Ahead of the real clock, which some acts write down. ISO week 53 and a change of the clock follow.
START = datetime(2043, 12, 14, 9, tzinfo=UTC)
# Of what is said, beside its word: enough for a phrase that a receipt looks for.
SAID = "so that {} is what was said here"

MODELS = (
    *(Session, Message, MessageRevision),
    *(Entry, EntryRevision, EntryState, RenderedBank),
    *(Cursor, Ladder, Nudge, Activity, Tombstone),
)


class Team:
    """`gone` are the words that were forgotten; `unremembered` those that memory may not hold."""

    def __init__(self) -> None:
        self.clock = START
        users = get_user_model().objects
        self.olive, self.edgar = users.create(username="olive"), users.create(username="edgar")
        self.project = create_project(self.olive, name="Billing", slug="billing")
        Membership.objects.create(project=self.project, user=self.edgar)
        self.made: list[UUID] = []
        self.count = 0
        self.gone: set[str] = set()
        self.unremembered: set[str] = set()
        # What was written into entries by hand: who wrote which word into which.
        self.by_hand: list[tuple[int, UUID, str]] = []
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
        rows = Session.objects.filter(**({"deleted_at": None} | wanted)).in_bulk(self.made)
        return [rows[pk] for pk in self.made if pk in rows]

    def messages(self, **wanted) -> list[Message]:
        rows = Message.objects.filter(session__deleted_at=None, forgotten_at=None, **wanted)
        return sorted(rows.select_related("session"), key=self._place)

    def entries(self, rows: QuerySet[Entry] | None = None) -> list[Entry]:
        found = self.project.entries.all() if rows is None else rows
        return sorted(
            found.select_related("session", "project"),
            key=lambda one: (one.granularity, one.period_key, self._session(one), one.first_seq),
        )

    def _place(self, message: Message) -> tuple[int, int]:
        return self.made.index(message.session_id), message.seq

    def _session(self, entry: Entry) -> int:
        return self.made.index(entry.session_id) if entry.session_id else 0

    def name(self, one: Model) -> str:
        """What a session, message or entry is called in the story of a run."""
        if isinstance(one, Session):
            return f"session {self.made.index(one.pk)}"
        if isinstance(one, Message):
            return f"message {one.seq} of session {self.made.index(one.session_id)} ({one.text})"
        assert isinstance(one, Entry)
        home = f" of session {self._session(one)} from {one.first_seq}" if one.session_id else ""
        told = " ".join(one.summary.split())
        return f"{one.state} {one.granularity} {one.period_key}{home} ({told})"

    # What people say.

    def begin(self, count: int, private: bool, titled: bool, forgetful: bool) -> str:
        session = create_session(
            self.project,
            self.olive,
            title=f"Talk {len(self.made)}" if titled else "",
            visibility=Visibility.PRIVATE if private else Visibility.PROJECT,
            remembered=not forgetful,
            last_activity_at=self.clock,
            created_at=self.clock,
        )
        self.made.append(session.pk)
        kind = "private " * private + "unremembered " * forgetful
        return f"a {kind}{self.talk(session, count)}"

    def talk(self, session: Session, count: int) -> str:
        """Olive and Edgar by turns, each with an answer, a minute between them."""
        drafts = []
        for place in range(count):
            author = (self.olive, self.edgar)[place // 2 % 2]
            text = SAID.format(self.word())
            self.clock += timedelta(minutes=1)
            who = {"role": "assistant"} if place % 2 else {"author": author}
            drafts.append(draft(text, created_at=self.clock, **who))
        post_messages(session, drafts)
        if not session.remembered:
            self.unremembered |= {word for one in drafts for word in words(one.text)}
        said = " ".join(sorted(word for one in drafts for word in words(one.text)))
        return f"{self.name(session)} goes on at {self.clock:%Y-%m-%d %H:%M}: {said}"

    def ask(self, session: Session) -> str:
        """A question whose answer is not there yet."""
        told = self.talk(session, 1)
        asked = session.messages.get(seq=session.last_seq)
        asked.session = session
        self._at_the_clock(begin_reply(asked))
        return f"{told}, and an answer begins"

    def _at_the_clock(self, reply: Message) -> None:
        Message.objects.filter(pk=reply.pk).update(created_at=self.clock)

    def answer(self, reply: Message, status: str) -> str:
        text = SAID.format(self.word()) if status != "failed" else ""
        finalise(reply, text, status, {})
        if not reply.remembered:
            self.unremembered |= words(text)
        return f"the answer {reply.seq} of {self.name(reply.session)} is {status}: {text}"

    def answer_all(self) -> str:
        replies = self.messages(status__in=("pending", "streaming"))
        return "; ".join(self.answer(reply, "complete") for reply in replies)

    def edit(self, message: Message) -> str:
        text = SAID.format(self.word())
        before = self.name(message)
        edited = changes.edit(message, text, self.olive)
        if not edited.remembered:
            self.unremembered |= words(text)
        return f"{before} is edited: {text}"

    def delete(self, message: Message) -> str:
        changes.delete(message)
        return f"{self.name(message)} is deleted"

    def clear(self, session: Session) -> str:
        return f"{changes.clear(session)} messages of {self.name(session)} are cleared"

    def regenerate(self, reply: Message) -> str:
        _, again = changes.regenerate(reply)
        self._at_the_clock(again)
        return f"{self.name(reply)} is answered again; {self.answer(again, 'complete')}"

    def rerun(self, message: Message) -> str:
        text = SAID.format(self.word())
        asked, reply = changes.rerun(message, text, self.olive)
        for one in (asked, reply):
            self._at_the_clock(one)
        if not asked.remembered:
            self.unremembered |= words(text)
        told = f"{self.name(message)} is asked anew: {text}"
        return f"{told}; {self.answer(reply, 'complete')}"

    def choose(self, message: Message) -> str:
        changes.choose(message)
        return f"the path goes through {self.name(message)}"

    def fork(self, message: Message) -> str:
        session = changes.fork(message, self.edgar)
        Session.objects.filter(pk=session.pk).update(last_activity_at=self.clock)
        self.made.append(session.pk)
        return f"{self.name(session)} is forked from {self.name(message)}"

    # What becomes of sessions.

    def keep(self, session: Session, **settings) -> str:
        update_session(session, **settings)
        return f"{self.name(session)} gets {settings}"

    def close(self, session: Session) -> str:
        return self.keep(session, status=SessionStatus.CLOSED)

    def delete_session(self, session: Session) -> str:
        sessions.delete_session(session)
        return f"{self.name(session)} is deleted"

    def restore(self, session: Session) -> str:
        sessions.restore_session(session.pk)
        return f"{self.name(session)} is restored"

    def purge(self) -> str:
        """As when the time is over in which a deletion can be taken back."""
        deleted = self.sessions(deleted_at__isnull=False)
        for session in deleted:
            late = session.deleted_at - UNDO_WINDOW - timedelta(minutes=1)
            Session.objects.filter(pk=session.pk).update(deleted_at=late)
            self.gone |= self.words_of(session.messages.filter(copied_from=None))
        others = Message.objects.exclude(session__in=deleted)
        staying = dict(others.exclude(copied_from__session__in=deleted).values_list("pk", "text"))
        sessions.purge_deleted()
        still = dict(Message.objects.filter(pk__in=staying).values_list("pk", "text"))
        assert still == staying, "what was said elsewhere, and copied from there, went along"
        return f"purged: {', '.join(map(self.name, deleted)) or 'nothing'}"

    # What is forgotten.

    def words_of(self, messages: QuerySet[Message]) -> set[str]:
        """In all texts that these messages have, had, or were answered with."""
        answers = Message.objects.filter(parent__in=messages, role="assistant")
        return self._texts_of(messages) | self._texts_of(answers)

    def forget_message(self, message: Message) -> str:
        meant = Message.objects.filter(pk=message.pk)
        self._forget(Scope(message=message.pk), meant)
        return f"{self.name(message)} is forgotten"

    def forget_session(self, session: Session) -> str:
        self._forget(Scope(session=session.pk), session.messages.all())
        return f"{self.name(session)} is forgotten"

    def forget_user(self, user) -> str:
        self._forget(Scope(user=user.pk), Message.objects.filter(author=user))
        self.gone |= {word for by, _, word in self.by_hand if by == user.pk}
        return f"{user} is forgotten"

    def forget_before(self, moment: datetime) -> str:
        meant = Message.objects.filter(created_at__lt=moment)
        self._forget(Scope(before=moment), meant)
        return f"everything before {moment:%Y-%m-%d %H:%M} is forgotten"

    def forget_entry(self, entry: Entry, sources: bool) -> str:
        below = self._below(entry)
        meant = Message.objects.filter(pk__in=[pk for one in below for pk in covered(one)])
        told = {one.pk for one in below}
        if not sources:
            self.unremembered |= self._texts_of(meant)
        self._forget(Scope(entry=entry.pk, sources=sources), meant if sources else meant.none())
        self.gone |= {word for _, pk, word in self.by_hand if pk in told}
        return f"{self.name(entry)} is forgotten{', with its sources' * sources}"

    def _below(self, entry: Entry) -> list[Entry]:
        level, below = [entry], []
        while level:
            below += level
            level = list(Entry.objects.filter(parent__in=level).select_related("session"))
        return below

    def _texts_of(self, messages: QuerySet[Message]) -> set[str]:
        texts = [*messages.values_list("text", flat=True)]
        revisions = MessageRevision.objects.filter(message__in=messages.values("pk"))
        texts += revisions.values_list("text", flat=True)
        return {word for text in texts for word in words(text)}

    def _forget(self, scope: Scope, meant: QuerySet[Message]) -> None:
        """Looks first at what would go, which changes nothing, and then has it go just so."""
        self.gone |= self.words_of(meant)
        before = self.snapshot()
        promised = preview(self.project, scope, self.olive)
        assert self.snapshot() == before, "a preview changed something"
        standing = self._standing()
        receipt = forget(self.project, scope, self.olive)
        assert receipt.as_json() == promised.as_json(), "the receipt is not what was previewed"
        self.gone |= standing - self._standing()

    def _standing(self) -> set[str]:
        return self._texts_of(Message.objects.all())

    # What moderators do.

    def pin(self, entry: Entry, pinned: bool) -> str:
        return self._moderate(entry, lambda: review.pin(entry, pinned, self.olive), f"pin {pinned}")

    def hide(self, entry: Entry, hidden: bool) -> str:
        act = "hide or reject" if hidden else "show or approve"

        def decide() -> None:
            review.set_hidden(entry, hidden, self.olive)
            self.decided.add(entry.pk)

        return self._moderate(entry, decide, act)

    def edit_entry(self, entry: Entry, by) -> str:
        word = self.word("e")
        kept = words(entry.summary, TOLD)
        line = TOLD if entry.granularity == Granularity.CONVERSATION else NOTED
        text = bullet(line, {word, *kept})

        def change() -> None:
            review.edit(entry, text, by)
            self.by_hand.append((by.pk, entry.pk, word))

        return self._moderate(entry, change, f"{by} writes {text}")

    def redact(self, entry: Entry, pick: int) -> str:
        passage = chosen(sorted(words(entry.summary)), pick) or "nothing"
        act = f"redact {passage}"
        return self._moderate(entry, lambda: review.redact(entry, passage, self.olive), act)

    def ask_anew(self, entry: Entry) -> str:
        return self._moderate(entry, lambda: review.ask_anew(entry, self.olive), "ask anew")

    def _moderate(self, entry: Entry, change: Callable[[], object], act: str) -> str:
        told = f"{act}: {self.name(entry)}"
        try:
            change()
        except review.Refused as refused:
            return f"{told}: refused, {refused}"
        return told

    # The project and the time.

    def settings(self, **changes) -> str:
        for name, value in changes.items():
            setattr(self.project, name, value)
        self.project.save()
        return f"the project gets {changes}"

    def wait(self, time: timedelta) -> str:
        self.clock += time
        return f"it is {self.clock:%Y-%m-%d %H:%M}"

    def set_clock(self) -> None:
        """What is written from here on in this transaction stands from now on."""
        moments._set(self.clock.isoformat())

    def snapshot(self) -> dict[str, list]:
        """All rows that chat and memory have."""
        rendered_bank(self.project)
        return {model.__name__: sorted(map(repr, model.objects.values_list())) for model in MODELS}


def contributing(session: Session) -> list[Message]:
    """The messages that a session's summaries are to be written from, as they are now."""
    messages = list(session.messages.order_by("seq"))
    return [one for one in path_to(messages, session.head_id) if contributes(one)]


def covered(entry: Entry) -> list[UUID]:
    """The messages that a conversation entry is to be written from; none of a digest's."""
    if entry.session is None:
        return []
    stretch = range(entry.first_seq, entry.last_seq + 1)
    return [one.pk for one in contributing(entry.session) if one.seq in stretch]


def chosen(found: Sequence, pick: int):
    return found[pick % len(found)] if found else None
