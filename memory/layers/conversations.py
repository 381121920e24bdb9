"""One stretch of one conversation becomes one entry."""

import hashlib
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import accumulate, takewhile
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction

from chat.models import Message, Session, Visibility
from chat.paths import path_to
from memory.facts import claims, deriving
from memory.layers import leases, review, summarising, texts
from memory.layers.bank import item_tokens
from memory.layers.booking import Booking
from memory.layers.coverage import contributes, recount
from memory.layers.leases import Lease
from memory.layers.moments import at
from memory.layers.periods import Granularity, day_key
from memory.layers.summarising import Telling
from memory.layers.summarising.parts import Line
from memory.layers.suspicion import reads_like_instructions
from memory.models import Cursor, Entry, State, Verb, Waiting
from memory.models.activity import note
from memory.models.cursors import nudge
from memory.models.leased import LeasedQuerySet
from projects.models import remove

# One entry covers at most so many tokens of talk, so that it is written well within the time that
# a task may take, and a killed one is not begun from the start for ever.
MOST_TOKENS = 100_000
# What somebody is to decide on, whatever the text says.
UNDECIDED = (Waiting.ASKED, Waiting.IMPORTED)


@dataclass(frozen=True)
class Stretch:
    """The messages from `first_seq` to `last_seq`, as they were when `fingerprint` was taken."""

    first_seq: int
    last_seq: int
    contributing: list[Message]
    fingerprint: str


@dataclass(frozen=True)
class Written:
    """What a stretch comes to, with an empty summary where nothing is left to tell: by whom, and
    what it cost.
    """

    telling: Telling
    by: str
    booking: Booking

    @property
    def summary(self) -> str:
        return self.telling.summary


def summarise(session_id: UUID, now: datetime, force: bool = False) -> Entry | None:
    """Writes the entry of all that is unsummarised in a session; None when nothing was written.

    The session is claimed first. The model is called outside of any transaction; the result is
    committed in a short one that checks the lease and the sources. With `force`, a session that is
    not idle yet, or backing off, is summarised too.
    """
    rows = Cursor.objects.waiting() if force else Cursor.objects.due(now)
    return _claimed(rows, session_id, lambda lease: _summarise(lease, now))


def rewrite(entry_id: UUID, now: datetime) -> Entry | None:
    """Writes a stale conversation entry anew from what its stretch says now.

    None when nothing was written: it is not stale, its session is held or backing off, the model
    failed, or nothing in the stretch contributes any more, in which case the entry is gone.
    """
    entry = Entry.objects.filter(pk=entry_id, state=State.STALE).first()
    if entry is None or entry.session_id is None:
        return None
    rows = Cursor.objects.ready().filter(project=entry.project_id)
    return _claimed(rows, entry.session_id, lambda lease: _rewrite(lease, entry_id, now))


def _claimed(
    rows: LeasedQuerySet, session_id: UUID, work: Callable[[Lease], Entry | None]
) -> Entry | None:
    lease = leases.claim(rows, session_id)
    if lease is None:
        return None
    with leases.working(lease, "session"):
        return work(lease)
    return None


def _summarise(lease: Lease, now: datetime) -> Entry | None:
    rows = Cursor.objects.filter(project=lease.project, session__project=lease.project)
    cursor = rows.select_related("session__project").filter(pk=lease.pk).first()
    if cursor is None:
        # It was forgotten since it was claimed.
        raise leases.LeaseLost
    session = cursor.session
    stretch = read(session, cursor.summarised_through)
    if not stretch.contributing:
        _skip(lease, session, stretch)
        return None
    summariser = summarising.get(session.project)
    lines = _lines(stretch, session.project.zone)
    previous = _previous(session, stretch)
    booking = Booking(lease, session.project_id, session.pk)
    telling = summariser.conversation(lines, previous.text, booking)
    written = Written(telling, summariser.name, booking)
    return _commit(lease, session, stretch, previous, written, now)


def _rewrite(lease: Lease, entry_id: UUID, now: datetime) -> Entry | None:
    rows = Entry.objects.filter(project=lease.project, session__project=lease.project)
    entry = rows.select_related("session__project").filter(pk=entry_id).first()
    if entry is None:
        # It was forgotten since it was found to be stale; other entries of the session may wait.
        lease.release()
        return None
    session = entry.session
    assert session is not None and entry.first_seq is not None
    stretch = read(session, entry.first_seq - 1, entry.last_seq)
    previous = _previous(session, stretch)
    if entry.summary and entry.sources_hash == stretch.fingerprint:
        return _reinstate(lease, entry, stretch, now)
    telling, summariser = Telling(""), summarising.get(session.project)
    booking = Booking(lease, session.project_id, session.pk)
    if stretch.contributing:
        lines = _lines(stretch, session.project.zone)
        telling = summariser.conversation(lines, previous.text, booking)
    written = Written(telling, summariser.name, booking)
    return _commit_rewritten(lease, entry, stretch, previous, written, now)


def read(session: Session, through: int, last: int | None = None) -> Stretch:
    """What stands in `session` after the seq `through`, up to the first unfinished message.

    With `last`, no further than that seq.
    """
    rows = session.messages.filter(project=session.project_id)
    everything = list(rows.select_related("author").after(through))
    finished = list(takewhile(lambda message: message.is_final, everything))
    if last is None:
        finished = _first_part(finished)
    else:
        finished = [message for message in finished if message.seq <= last]
    on_path = {message.pk for message in path_to(everything, session.head_id)}
    return Stretch(
        first_seq=through + 1,
        last_seq=finished[-1].seq if finished else through,
        contributing=[one for one in finished if one.pk in on_path and contributes(one)],
        fingerprint=_fingerprint(finished, on_path),
    )


def _first_part(messages: list[Message]) -> list[Message]:
    """As much from the start as one entry covers; what is left over is due for the next."""
    sums = accumulate(message.tokens for message in messages)
    fitting = sum(1 for total in sums if total <= MOST_TOKENS)
    return messages[: max(fitting, 1)]


def _fingerprint(messages: Iterable[Message], on_path: Collection[UUID]) -> str:
    """Changes when a message of the stretch, or the path through it, does."""
    digest = hashlib.sha256()
    for one in messages:
        digest.update(f"{one.pk} {one.version} {one.status} {one.pk in on_path};".encode())
    return digest.hexdigest()


def _lines(stretch: Stretch, zone: ZoneInfo) -> list[Line]:
    return [
        Line(message.speaker, message.text, message.created_at.astimezone(zone), message.role)
        for message in stretch.contributing
    ]


@dataclass(frozen=True)
class Previous:
    """What the stretch before came to: context for the next. Equal as long as it is the same text;
    empty when there is none.
    """

    entry: UUID | None = None
    revision: int = 0
    text: str = ""


def _previous(session: Session, stretch: Stretch) -> Previous:
    """The summary of the stretch before; none that is withheld or hidden, nor one that waits
    because it reads like instructions.
    """
    before = session.entries.filter(project=session.project_id, withheld=False)
    before = before.filter(last_seq__lt=stretch.first_seq)
    before = before.exclude(state=State.HIDDEN)
    before = before.exclude(state=State.PROPOSED, waits_because=Waiting.INSTRUCTIONS)
    found = before.order_by("-last_seq").values_list("pk", "revision", "summary").first()
    return Previous(*found) if found else Previous()


def entry_of(
    session: Session, stretch: Stretch, summary: str, written_by: str, now: datetime
) -> Entry:
    """The entry, not saved yet, that covers a stretch in which something contributes."""
    project = session.project
    entry = Entry(
        project=project,
        session=session,
        granularity=Granularity.CONVERSATION,
        zone=project.timezone,
        first_seq=stretch.first_seq,
        last_seq=stretch.last_seq,
        summary=summary,
        sources_hash=stretch.fingerprint,
        written_by=written_by,
        written_at=now,
    )
    _set_times(entry, stretch)
    entry.period_key = day_key(entry.last_source_at, project.zone)
    entry.tokens = item_tokens(entry.as_item())
    return entry


def _set_times(entry: Entry, stretch: Stretch) -> None:
    times = [message.created_at for message in stretch.contributing]
    entry.message_count = len(times)
    entry.first_source_at, entry.last_source_at = min(times), max(times)


def _waits_because(
    session: Session, summary: str, written_by: str, before: str = ""
) -> Waiting | None:
    """Why someone has to look before the summary is shown; None when it may be live.

    The extractive summariser quotes, and what was said in a private session is not to be quoted
    to others unseen. `before` is why the text that it replaces waited, if nobody decided on it.
    """
    if reads_like_instructions(summary):
        return Waiting.INSTRUCTIONS
    if written_by == summarising.EXTRACTIVE and session.visibility == Visibility.PRIVATE:
        return Waiting.PRIVATE
    if before in UNDECIDED:
        return Waiting(before)
    return Waiting.ASKED if session.project.review_memories else None


def _unchanged(lease: Lease, session: Session, stretch: Stretch, previous: Previous) -> bool:
    """Whether the sources are what they were; the session is locked now. Raises LeaseLost."""
    rows = Session.objects.filter(project=session.project_id, pk=session.pk)
    fresh = rows.select_for_update().standing().first()
    lease.fence()
    if fresh is None:
        return False
    again = read(fresh, stretch.first_seq - 1, stretch.last_seq)
    return again.fingerprint == stretch.fingerprint and _previous(fresh, stretch) == previous


@transaction.atomic
def _commit(
    lease: Lease,
    session: Session,
    stretch: Stretch,
    previous: Previous,
    written: Written,
    now: datetime,
) -> Entry | None:
    """Keeps the entry and its facts if the lease still holds and the sources are what they were."""
    entry = entry_of(session, stretch, written.summary, written.by, now)
    kept = _unchanged(lease, session, stretch, previous)
    if kept:
        here = Session.objects.filter(project=session.project_id)
        session.refresh_from_db(fields=["visibility"], from_queryset=here)
        waits = _waits_because(session, entry.summary, entry.written_by)
        entry.state = State.PROPOSED if waits else State.LIVE
        entry.waits_because = waits or ""
        with at(now):
            entry.save(force_insert=True)
        recount(session, stretch.last_seq, through=stretch.last_seq)
        _record(Verb.PROPOSED if waits else Verb.SUMMARISED, entry, written.booking)
        _take_in_facts(entry, stretch, written.telling, now)
        nudge(entry.project_id)
    lease.release()
    return entry if kept else None


def _take_in_facts(
    entry: Entry, stretch: Stretch, telling: Telling, now: datetime, for_good: bool = False
) -> None:
    """With `for_good`, no trace stays of what is told no more."""
    told_by = stretch.contributing
    found = claims.found(telling.claims, told_by, entry.project)
    deriving.take_in(entry, found, told_by, now, telling.is_whole, for_good)


@transaction.atomic
def _commit_rewritten(
    lease: Lease,
    entry: Entry,
    stretch: Stretch,
    previous: Previous,
    written: Written,
    now: datetime,
) -> Entry | None:
    """Keeps the new text if the lease holds and nothing changed; what is above is rewritten too.

    Without a summary there is nothing left to tell, and the entry goes.
    """
    there = _stale(lease, entry, stretch, previous)
    lease.release()
    if there is None:
        return None
    nudge(there.project_id)
    with at(now):
        if there.withheld or not written.summary:
            above = Entry.objects.above([there.project_id], [there.pk])
            review.withhold(above, for_good=not written.summary)
        else:
            review.outdate(there.parent)
    if not written.summary:
        # Nothing will know any more what the digests above it told of it.
        _record(Verb.DISSOLVED, there, written.booking)
        deriving.untell(there.fact_sources.filter(project=there.project_id))
        remove(Entry.objects.filter(project=there.project_id, pk=there.pk))
        return None
    assert there.session is not None
    waits = _waits_because(there.session, written.summary, written.by, there.waits_because)
    there.waits_because = waits or ""
    if waits:
        there.state, there.parent = State.PROPOSED, None
    else:
        # Beside a digest that awaits review itself, its children stand in.
        spoken_for = there.parent is not None and there.parent.state != State.PROPOSED
        there.state = State.ABSORBED if spoken_for else State.LIVE
    _set_times(there, stretch)
    was_withheld = there.withheld
    texts.rewrite(there, written.summary, written.by, now)
    there.sources_hash = stretch.fingerprint
    with at(now):
        there.save()
    _record(Verb.PROPOSED if waits else Verb.REWRITTEN, there, written.booking)
    _take_in_facts(there, stretch, written.telling, now, for_good=was_withheld)
    return there


@transaction.atomic
def _reinstate(lease: Lease, entry: Entry, stretch: Stretch, now: datetime) -> Entry | None:
    """Lets the entry stand as it stood: its sources are what it was written from, so no model has
    to be asked.
    """
    there = _stale(lease, entry, stretch, None)
    lease.release()
    if there is None or there.sources_hash != stretch.fingerprint:
        return None
    there.state = State.ABSORBED if there.parent_id else State.LIVE
    there.withheld = False
    there.tokens = item_tokens(there.as_item())
    with at(now):
        there.save(update_fields=["state", "withheld", "tokens"])
    nudge(there.project_id)
    return there


def _stale(lease: Lease, entry: Entry, stretch: Stretch, previous: Previous | None) -> Entry | None:
    """The stale entry, locked after its session; None when it, or what it rests on, changed."""
    assert entry.session is not None
    told = _previous(entry.session, stretch) if previous is None else previous
    unchanged = _unchanged(lease, entry.session, stretch, told)
    rows = Entry.objects.select_for_update(of=("self",)).select_related("parent", "session")
    there = rows.filter(project=entry.project_id, pk=entry.pk, state=State.STALE).first()
    return there if unchanged else None


def _record(verb: Verb, entry: Entry, booking: Booking) -> None:
    note(
        entry.project_id,
        verb,
        entry_id=entry.pk,
        session_id=entry.session_id,
        granularity=entry.granularity,
        period_key=entry.period_key,
        count=entry.message_count,
        reason=entry.waits_because,
        **booking.totals(),
    )


@transaction.atomic
def _skip(lease: Lease, session: Session, stretch: Stretch) -> None:
    """Nothing contributes yet: sets the counts right, so that the session is not due again.

    The cursor stays, and the next entry covers this stretch too: ranges have no gaps.
    """
    Session.objects.select_for_update().get(project=session.project_id, pk=session.pk)
    lease.fence()
    recount(session, stretch.last_seq)
    lease.release()
