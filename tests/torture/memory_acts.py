"""Acts of a random story on memory. Each act returns a description of itself."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from uuid import UUID

from django.db.models import QuerySet

from chat.conversations import sessions
from chat.conversations.branches import path_to
from chat.conversations.sessions import UNDO_WINDOW, update_session
from chat.models import Message, MessageRevision, Session, SessionStatus
from memory import facts
from memory.facts import Statement
from memory.forgetting.service import ForgetScope, forget, preview
from memory.layers.bank_cache import rendered_bank
from memory.layers.coverage import contributes
from memory.layers.periods import Granularity
from memory.models import (
    Activity,
    Cursor,
    Entry,
    EntryRevision,
    EntryState,
    Fact,
    FactSource,
    FactStatus,
    Ladder,
    Nudge,
    RenderedBank,
    Tombstone,
)
from memory.models.entries import set_history_clock
from memory.moderation import entry_operations
from projects.core.errors import DomainError
from tests.torture.marking_summariser import NOTE_LINE, SUBJECT, SUMMARY_LINE, bullet, words
from tests.torture.project_actor import People

MODELS = (
    *(Session, Message, MessageRevision),
    *(Entry, EntryRevision, EntryState, RenderedBank),
    *(Fact, FactSource),
    *(Cursor, Ladder, Nudge, Activity, Tombstone),
)


class Team(People):
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
            self.forgotten_words |= self.words_of(session.messages.filter(copied_from=None))
        others = Message.objects.exclude(session__in=deleted)
        staying = dict(others.exclude(copied_from__session__in=deleted).values_list("pk", "text"))
        sessions.purge_deleted()
        still = dict(Message.objects.filter(pk__in=staying).values_list("pk", "text"))
        assert still == staying, "what was said elsewhere, and copied from there, went along"
        return f"purged: {', '.join(map(self.name, deleted))}"

    # What is forgotten.

    def words_of(self, messages: QuerySet[Message]) -> set[str]:
        """In all texts that these messages have, had, or were answered with."""
        answers = Message.objects.filter(parent__in=messages, role="assistant")
        return self._texts_of(messages) | self._texts_of(answers)

    def forget_message(self, message: Message) -> str:
        meant = Message.objects.filter(pk=message.pk)
        self._forget(ForgetScope(message=message.pk), meant)
        return f"{self.name(message)} is forgotten"

    def forget_session(self, session: Session) -> str:
        self._forget(ForgetScope(session=session.pk), session.messages.all())
        return f"{self.name(session)} is forgotten"

    def forget_user(self, user) -> str:
        self._forget(ForgetScope(user=user.pk), Message.objects.filter(author=user))
        self.forgotten_words |= {word for by, _, word in self.by_hand if by == user.pk}
        return f"{user} is forgotten"

    def forget_before(self, moment: datetime) -> str:
        meant = Message.objects.filter(created_at__lt=moment)
        self._forget(ForgetScope(before=moment), meant)
        return f"everything before {moment:%Y-%m-%d %H:%M} is forgotten"

    def forget_entry(self, entry: Entry, sources: bool) -> str:
        below = self._below(entry)
        meant = Message.objects.filter(pk__in=[pk for child in below for pk in covered(child)])
        child_ids = {child.pk for child in below}
        if not sources:
            self.unremembered |= self._texts_of(meant)
        self._forget(
            ForgetScope(entry=entry.pk, sources=sources), meant if sources else meant.none()
        )
        self.forgotten_words |= {word for _, pk, word in self.by_hand if pk in child_ids}
        return f"{self.name(entry)} is forgotten{', with its sources' * sources}"

    def forget_fact(self, fact: Fact, sources: bool) -> str:
        """And has it looked for again where it was found."""
        object_names = {fact.object, *fact.earlier.values_list("object", flat=True)}
        message_ids = list(fact.sources.values_list("message", flat=True))
        meant = Message.objects.filter(pk__in=message_ids if sources else ())
        entries = list(fact.sources.values_list("entry", flat=True))
        self._forget(ForgetScope(fact=fact.pk, sources=sources), meant)
        self.forgotten_words |= {word for _, pk, word in self.by_hand if pk == fact.pk}
        self.buried |= object_names
        self.without_fact |= object_names
        containing_entries = self.project.entries.in_layers().filter(pk__in=entries)
        described = [self.ask_for_rewrite(entry) for entry in self.entries(containing_entries)]
        act = f"{self.name(fact)} is forgotten{', with its sources' * sources}"
        return "; ".join([act, *described])

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

    def _forget(self, scope: ForgetScope, meant: QuerySet[Message]) -> None:
        """Looks first at what would go, which changes nothing, and then has it go just so."""
        self.forgotten_words |= self.words_of(meant)
        before = self.snapshot()
        promised = preview(self.project, scope, self.olive)
        assert self.snapshot() == before, "a preview changed something"
        standing = self._standing()
        receipt = forget(self.project, scope, self.olive)
        assert receipt.as_json() == promised.as_json(), "the receipt is not what was previewed"
        self.forgotten_words |= standing - self._standing()

    def _standing(self) -> set[str]:
        return self._texts_of(Message.objects.all())

    # Facts.

    def give_fact(self, by) -> str:
        word = self.word("e")
        member = self.project.memberships.get(user=by)
        fact, _ = facts.create_fact(member, Statement(SUBJECT, "is", word, self.clock))
        Fact.objects.filter(pk=fact.pk).update(recorded_at=self.clock)
        self.by_hand.append((by.pk, fact.pk, word))
        return f"{by} says that {SUBJECT} is {word}"

    def edit_fact(self, fact: Fact, by) -> str:
        word = self.word("e")
        description = f"{by} makes {self.name(fact)} {word}"
        self.without_fact.add(fact.object)
        facts.edit(fact, Statement(SUBJECT, "is", word, fact.valid_from), by)
        Fact.objects.filter(pk=fact.pk).update(recorded_at=self.clock)
        self.by_hand.append((by.pk, fact.pk, word))
        return description

    def hide_fact(self, fact: Fact) -> str:
        def hide() -> None:
            facts.hide(fact, self.olive)
            self.without_fact.add(fact.object)

        return self._moderate(fact, hide, "hide or reject")

    def show_fact(self, fact: Fact) -> str:
        show = facts.approve if fact.state == FactStatus.PROPOSED else facts.unhide
        return self._moderate(fact, lambda: show(fact, self.olive), "show or approve")

    # What moderators do.

    def pin(self, entry: Entry, pinned: bool) -> str:
        return self._moderate(
            entry, lambda: entry_operations.pin(entry, pinned, self.olive), f"pin {pinned}"
        )

    def hide(self, entry: Entry, hidden: bool) -> str:
        act = "hide or reject" if hidden else "show or approve"

        def decide() -> None:
            entry_operations.set_hidden(entry, hidden, self.olive)
            self.decided.add(entry.pk)

        return self._moderate(entry, decide, act)

    def edit_entry(self, entry: Entry, by) -> str:
        word = self.word("e")
        kept_words = words(entry.summary, SUMMARY_LINE)
        line = SUMMARY_LINE if entry.granularity == Granularity.CONVERSATION else NOTE_LINE
        text = bullet(line, {word, *kept_words})

        def change() -> None:
            entry_operations.edit(entry, text, by)
            self.by_hand.append((by.pk, entry.pk, word))

        return self._moderate(entry, change, f"{by} writes {text}")

    def redact(self, entry: Entry, pick: int) -> str:
        passage = chosen(sorted(words(entry.summary)), pick) or "nothing"

        def redact() -> None:
            entry_operations.redact(entry, passage, self.olive)
            self.without_fact.add(passage)

        return self._moderate(entry, redact, f"redact {passage}")

    def ask_for_rewrite(self, entry: Entry) -> str:
        return self._moderate(
            entry, lambda: entry_operations.request_rewrite(entry, self.olive), "ask anew"
        )

    def _moderate(self, item: Entry | Fact, change: Callable[[], object], act: str) -> str:
        description = f"{act}: {self.name(item)}"
        try:
            change()
        except DomainError as refused:
            return f"{description}: refused, {refused}"
        return description

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
        set_history_clock(self.clock)

    def snapshot(self) -> dict[str, list]:
        """All rows that chat and memory have."""
        rendered_bank(self.project)
        return {model.__name__: sorted(map(repr, model.objects.values_list())) for model in MODELS}


def contributing(session: Session) -> list[Message]:
    """The messages that a session's summaries are to be written from, as they are now."""
    messages = list(session.messages.order_by("seq"))
    return [message for message in path_to(messages, session.head_id) if contributes(message)]


def covered(entry: Entry) -> list[UUID]:
    """The messages that a conversation entry is to be written from; none of a digest's."""
    if entry.session is None:
        return []
    stretch = range(entry.first_seq, entry.last_seq + 1)
    return [message.pk for message in contributing(entry.session) if message.seq in stretch]


def chosen(rows: Sequence, pick: int):
    return rows[pick % len(rows)] if rows else None
