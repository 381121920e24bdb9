"""Conversation entries: summaries of one range of one conversation, and imported memories."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from itertools import pairwise
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext_noop as _

from chat.models import Message, Session, Visibility
from memory import leases
from memory.facts import extraction
from memory.layers import entry_text, losses, summarising
from memory.layers.bank import item_tokens
from memory.layers.coverage import (
    CONTRIBUTING,
    MessageRange,
    contributes,
    fingerprints,
    new_entry,
    read_range,
    recount,
    set_source_times,
)
from memory.layers.injection_detection import reads_like_instructions
from memory.layers.lines import Line, from_text
from memory.layers.model_calls import CallRecorder
from memory.layers.summarising.base import ConversationSummary
from memory.layers.summarising.transcript import TranscriptLine
from memory.leases import Lease, LeaseLostError
from memory.models import ActivityVerb, Cursor, Entry, EntryStatus, ReviewReason
from memory.models.activity import record_entry_activity
from memory.models.cursors import mark_layers_changed
from memory.models.entries import history_clock
from memory.moderation import entry_operations
from projects.models import Project, delete_rows

# Entries with these reasons need a person's decision, even if their text changes.
UNDECIDED = (ReviewReason.PROJECT_RULE, ReviewReason.IMPORTED)
EDIT_REPLACED = _("This replaced an edit by hand, which is now an earlier version.")


def summarise(session_id: UUID, now: datetime, force: bool = False) -> Entry | None:
    """Write the next entry of a session, and return it; return None if none was written.

    The entry covers the unsummarised messages, up to `MAX_RANGE_TOKENS`. The session is claimed
    first. The model is called outside of any transaction. A short transaction that checks the lease
    and the sources commits the result. With `force`, the session is summarised even if it is not
    idle, if it waits for a retry, or if its project has used up its token allowance.
    """

    def work(lease: Lease) -> Entry | None:
        rows = Cursor.objects.filter(project=lease.project, session__project=lease.project)
        cursor = rows.select_related("session__project").filter(pk=lease.pk).first()
        if cursor is None:
            # The session was forgotten after it was claimed.
            raise LeaseLostError
        messages = read_range(cursor.session, cursor.summarised_through)
        job = SummaryJob(lease, cursor.session, messages, now)
        if not messages.contributing:
            job.skip()
            return None
        job.write()
        return job.commit()

    rows = Cursor.objects.waiting() if force else Cursor.objects.due(now)
    return leases.run(rows, session_id, "session", work)


def rewrite(entry_id: UUID, now: datetime) -> Entry | None:
    """Write a stale conversation entry again from the current messages of its range, or restore its
    text if the messages did not change.

    Returns None if the entry was neither written nor restored: it is not stale, its session is
    leased or waits for a retry, the model failed, the sources changed meanwhile, or nothing in the
    range contributes any more. In the last case the entry is deleted.
    """
    entry = Entry.objects.filter(pk=entry_id, state=EntryStatus.STALE).first()
    if entry is None or entry.session_id is None or entry.file_id is not None:
        return None

    def work(lease: Lease) -> Entry | None:
        rows = Entry.objects.filter(project=lease.project, session__project=lease.project)
        entry = rows.select_related("session__project").filter(pk=entry_id).first()
        if entry is None:
            # The entry was forgotten meanwhile. Release the lease, because other entries of the
            # session may wait for their rewrite.
            lease.release()
            return None
        session = entry.session
        assert session is not None and entry.first_seq is not None
        messages = read_range(session, entry.first_seq - 1, entry.last_seq)
        job = SummaryJob(lease, session, messages, now)
        if entry.summary and entry.sources_hash == messages.fingerprint:
            return job.reinstate(entry)
        if messages.contributing:
            job.write()
        return job.commit_rewritten(entry)

    rows = Cursor.objects.ready().filter(project=entry.project_id)
    return leases.run(rows, entry.session_id, "session", work)


@dataclass(frozen=True)
class PreviousSummary:
    """The last usable summary of an earlier range, if any, as context for the summariser."""

    entry: UUID | None = None
    revision: int = 0
    text: str = ""


def previous_summary(session: Session, messages: MessageRange) -> PreviousSummary:
    """Return the last summary before `messages` that is not withheld, hidden or held for review
    because it reads like instructions.
    """
    rows = session.entries.filter(project=session.project_id, withheld=False)
    rows = rows.filter(last_seq__lt=messages.first_seq)
    rows = rows.exclude(state=EntryStatus.HIDDEN)
    rows = rows.exclude(state=EntryStatus.PROPOSED, waits_because=ReviewReason.INSTRUCTIONS)
    latest = rows.order_by("-last_seq").values_list("pk", "revision", "summary").first()
    return PreviousSummary(*latest) if latest else PreviousSummary()


def review_reason(
    project: Project, session: Session | None, summary: str, quotes: bool, before: str = ""
) -> ReviewReason | None:
    """Return why a person has to see the summary first; None if it may be live.

    A private session must not be quoted to others without review. `before` is the review reason of
    the replaced text, or empty if no such text waits for review.
    """
    if reads_like_instructions(summary):
        return ReviewReason.INSTRUCTIONS
    if quotes and session is not None and session.visibility == Visibility.PRIVATE:
        return ReviewReason.PRIVATE
    if before in UNDECIDED:
        return ReviewReason(before)
    return ReviewReason.PROJECT_RULE if project.review_memories else None


def store_rewritten(
    entry: Entry,
    new: Sequence[Line],
    written_by: str,
    reason: ReviewReason | None,
    fingerprint: str,
    now: datetime,
) -> ActivityVerb:
    """Save the new text of a stale entry, which waits for review if there is a `reason`. Return the
    verb for the activity log.
    """
    entry.waits_because = reason or ""
    if reason:
        entry.state, entry.parent = EntryStatus.PROPOSED, None
    else:
        # While the digest itself waits for review, its children stay in the bank.
        absorbed = entry.parent is not None and entry.parent.state != EntryStatus.PROPOSED
        entry.state = EntryStatus.ABSORBED if absorbed else EntryStatus.LIVE
    entry_text.replace_text(entry, new, written_by, now)
    entry.sources_hash = fingerprint
    with history_clock(now):
        entry.save()
    return ActivityVerb.PROPOSED if reason else ActivityVerb.REWRITTEN


def store_reinstated(entry: Entry, now: datetime) -> None:
    """Save a stale entry with its current text, because its sources did not change.

    If it was proposed before its text was withheld, it waits for review again.
    """
    if entry.waits_because:
        entry.state = EntryStatus.PROPOSED
    else:
        entry.state = EntryStatus.ABSORBED if entry.parent_id else EntryStatus.LIVE
    entry.withheld = False
    entry.tokens = item_tokens(entry.as_item())
    with history_clock(now):
        entry.save(update_fields=["state", "withheld", "tokens"])
    mark_layers_changed(entry.project_id)


@dataclass
class SummaryJob:
    """The work on one range of messages under a lease; `write` sets `result`.

    The methods that commit run in one short transaction each and return the entry, or None if the
    sources changed meanwhile.
    """

    lease: Lease
    session: Session
    messages: MessageRange
    now: datetime
    previous: PreviousSummary = field(init=False)
    calls: CallRecorder = field(init=False)
    result: ConversationSummary = ConversationSummary()
    written_by: str = ""
    audit: losses.Audit = losses.Audit((), ())

    def __post_init__(self) -> None:
        self.previous = previous_summary(self.session, self.messages)
        self.calls = CallRecorder(self.lease, self.session.project_id, self.session.pk)

    @property
    def quotes(self) -> bool:
        """True if the summary consists of quotations."""
        return self.written_by == summarising.EXTRACTIVE

    def write(self) -> None:
        """Call the summariser, outside of any transaction."""
        project = self.session.project
        lines = [
            TranscriptLine(
                message.speaker,
                message.text,
                message.created_at.astimezone(project.zone),
                message.role,
                message.pk,
            )
            for message in self.messages.contributing
        ]
        summariser = summarising.get_summariser(project)
        self.result = summariser.conversation(lines, self.previous.text, self.calls)
        self.written_by = summariser.name
        texts = (message.text for message in self.messages.contributing)
        self.audit = losses.audit_messages(texts, self.result.text)

    def sources_unchanged(self) -> bool:
        """Lock the session and compare its messages with those that were read.

        Raises `LeaseLostError`.
        """
        rows = Session.objects.filter(project=self.session.project_id, pk=self.session.pk)
        fresh = rows.select_for_update().not_deleted().first()
        self.lease.fence()
        if fresh is None:
            return False
        current = read_range(fresh, self.messages.first_seq - 1, self.messages.last_seq)
        return (
            current.fingerprint == self.messages.fingerprint
            and previous_summary(fresh, self.messages) == self.previous
        )

    @transaction.atomic
    def commit(self) -> Entry | None:
        """Store the new entry and its facts."""
        session = self.session
        entry = new_entry(session, self.messages, self.result.lines, self.written_by, self.now)
        unchanged = self.sources_unchanged()
        if unchanged:
            rows = Session.objects.filter(project=session.project_id)
            session.refresh_from_db(fields=["visibility"], from_queryset=rows)
            reason = review_reason(session.project, session, self.result.text, self.quotes)
            entry.state = EntryStatus.PROPOSED if reason else EntryStatus.LIVE
            entry.waits_because = reason or ""
            self._set_losses(entry, session)
            with history_clock(self.now):
                entry.save(force_insert=True)
            recount(session, self.messages.last_seq, through=self.messages.last_seq)
            self._record(ActivityVerb.PROPOSED if reason else ActivityVerb.SUMMARISED, entry)
            self._store_facts(entry)
            mark_layers_changed(entry.project_id)
        self.lease.release()
        return entry if unchanged else None

    @transaction.atomic
    def commit_rewritten(self, stale: Entry) -> Entry | None:
        """Store the new text of a stale entry, and schedule a rewrite of the digests above it.

        Without a summary there is nothing left to remember, and the entry is deleted.
        """
        entry = self._lock_stale(stale)
        self.lease.release()
        if entry is None:
            return None
        summary = self.result.text
        mark_layers_changed(entry.project_id)
        with history_clock(self.now):
            if entry.withheld or not summary:
                above = Entry.objects.parents_of([entry.project_id], [entry.pk])
                entry_operations.withhold(above, for_good=not summary)
            else:
                entry_operations.schedule_rewrite(entry.parent)
        if not summary:
            self._delete(entry)
            return None
        assert entry.session is not None
        project, before = self.session.project, entry.waits_because
        was_edited = get_user_model().objects.filter(username=entry.written_by).exists()
        reason = review_reason(project, entry.session, summary, self.quotes, before)
        set_source_times(entry, self.messages)
        self._set_losses(entry, entry.session)
        was_withheld, fingerprint = entry.withheld, self.messages.fingerprint
        verb = store_rewritten(
            entry, self.result.lines, self.written_by, reason, fingerprint, self.now
        )
        self._record(verb, entry, EDIT_REPLACED if was_edited else "")
        self._store_facts(entry, for_good=was_withheld)
        return entry

    def _delete(self, entry: Entry) -> None:
        # This removes the links to the digests above, so callers withhold those first.
        self._record(ActivityVerb.DISSOLVED, entry)
        extraction.remove_sources(entry.fact_sources.filter(project=entry.project_id))
        delete_rows(Entry.objects.filter(project=entry.project_id, pk=entry.pk))

    @transaction.atomic
    def reinstate(self, stale: Entry) -> Entry | None:
        """Restore a stale entry whose sources did not change, without a model call."""
        self.previous = previous_summary(self.session, self.messages)
        entry = self._lock_stale(stale)
        self.lease.release()
        if entry is None or entry.sources_hash != self.messages.fingerprint:
            return None
        store_reinstated(entry, self.now)
        return entry

    def _lock_stale(self, entry: Entry) -> Entry | None:
        """Lock the session, then the entry; None if the entry or its sources changed."""
        unchanged = self.sources_unchanged()
        rows = Entry.objects.select_for_update(of=("self",)).select_related("parent", "session")
        rows = rows.filter(project=entry.project_id, pk=entry.pk, state=EntryStatus.STALE)
        return rows.first() if unchanged else None

    def _set_losses(self, entry: Entry, session: Session) -> None:
        """Set `losses` and `particulars`. In a private chat, store only the number of losses."""
        listed = self.audit.listed()
        if session.visibility == Visibility.PRIVATE:
            listed = losses.without_texts(listed)
        entry.losses, entry.particulars = listed, self.audit.held

    def _store_facts(self, entry: Entry, for_good: bool = False) -> None:
        """Store the facts of the result; `for_good` deletes the facts that are no longer in it."""
        messages, result = self.messages.contributing, self.result
        facts = extraction.ground_claims(result.claims, messages, entry.project)
        extraction.record_extracted(entry, facts, messages, self.now, result.is_whole, for_good)

    def _record(self, verb: ActivityVerb, entry: Entry, reason: str = "") -> None:
        record_entry_activity(
            entry,
            verb,
            session_id=entry.session_id,
            count=entry.message_count,
            reason=entry.waits_because or reason,
            **self.calls.totals(),
        )

    @transaction.atomic
    def skip(self) -> None:
        """Correct the counts of a session that has no contributing messages, so that it is no
        longer due.

        The cursor does not move: the next entry covers this range too, so that there is no gap.
        """
        if self.sources_unchanged():
            recount(self.session, self.messages.last_seq)
        self.lease.release()


def propose_imported(session: Session, messages: list[Message], source: str) -> None:
    """For each of `messages`, create an entry that waits for review.

    `messages` are the last messages of `session`, which the caller has locked. They count as
    summarised. No entry is created if earlier messages still wait for a summary, or if one of the
    messages does not contribute. The summariser then summarises them all.
    """
    cursor = Cursor.objects.get(project=session.project_id, pk=session.pk)
    begin = cursor.summarised_through + 1
    rows = session.messages.filter(CONTRIBUTING, project=session.project_id)
    before = rows.filter(seq__range=(begin, messages[0].seq - 1))
    if before.exists() or not all(map(contributes, messages)):
        return
    now = timezone.now()
    ends = [message.seq for message in messages]
    ranges = list(pairwise([begin - 1, *ends]))
    hashes = fingerprints(session, [(after + 1, last) for after, last in ranges])
    for message, (after, last), sources_hash in zip(messages, ranges, hashes, strict=True):
        covered = MessageRange(after + 1, last, [message], sources_hash)
        day = timezone.localdate(message.created_at, session.project.zone)
        found = [replace(line, sources=(message.pk,)) for line in from_text(message.text, day)]
        entry = new_entry(session, covered, found, source, now)
        entry.state, entry.waits_because = EntryStatus.PROPOSED, ReviewReason.IMPORTED
        entry.save(force_insert=True)
    recount(session, beyond=ends[-1], through=ends[-1])
