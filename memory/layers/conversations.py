"""One stretch of one conversation becomes one entry."""

import hashlib
import logging
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from itertools import takewhile
from uuid import UUID
from zoneinfo import ZoneInfo

from django.db import transaction

from chat.models import Message, Session, Visibility
from chat.paths import path_to
from chat.providers import ProviderError
from memory.layers import leases, summarising
from memory.layers.bank import item_tokens
from memory.layers.leases import Lease, LeaseLost
from memory.layers.periods import Granularity, day_key
from memory.layers.summarising.parts import Line
from memory.models import Cursor, Entry, State
from memory.receivers import contributes

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Stretch:
    """The messages from `first_seq` to `last_seq`, as they were when `fingerprint` was taken."""

    first_seq: int
    last_seq: int
    contributing: list[Message]
    fingerprint: str


def summarise(session_id: UUID, now: datetime, force: bool = False) -> Entry | None:
    """Writes the entry of all that is unsummarised in a session; None when nothing was written.

    The session is claimed first. The model is called outside of any transaction; the result is
    committed in a short one that checks the lease and the sources. With `force`, a session that is
    not idle yet, or backing off, is summarised too.
    """
    rows = Cursor.objects.waiting() if force else Cursor.objects.due(now)
    lease = leases.claim(rows, session_id)
    if lease is None:
        return None
    try:
        return _summarise(lease, now)
    except LeaseLost:
        log.info("lease_lost session=%s", session_id)
    except (ProviderError, summarising.Unusable) as error:
        log.warning("summary_failed session=%s reason=%s", session_id, error)
        lease.fail(str(error))
    return None


def _summarise(lease: Lease, now: datetime) -> Entry | None:
    cursor = Cursor.objects.select_related("session__project").get(pk=lease.pk)
    session = cursor.session
    stretch = read(session, cursor.summarised_through)
    if not stretch.contributing:
        _skip(lease, session, cursor.summarised_through, stretch)
        return None
    summariser = summarising.get(session.project)
    lines = _lines(stretch, session.project.zone)
    summary = summariser.conversation(lines, _previous(session), lease.renew)
    entry = _entry(session, stretch, summary, summariser.name, now)
    return entry if _commit(lease, session, stretch, entry) else None


def read(session: Session, through: int) -> Stretch:
    """What stands in `session` after the seq `through`, up to the first unfinished message."""
    everything = list(session.messages.select_related("author").after(through))
    finished = list(takewhile(lambda message: message.is_final, everything))
    on_path = {message.pk for message in path_to(everything, session.head_id)}
    return Stretch(
        first_seq=through + 1,
        last_seq=finished[-1].seq if finished else through,
        contributing=[one for one in finished if one.pk in on_path and contributes(one)],
        fingerprint=_fingerprint((one.pk, one.version, one.status) for one in finished),
    )


def _fingerprint(rows: Iterable[tuple[object, ...]]) -> str:
    digest = hashlib.sha256()
    for row in rows:
        digest.update(repr([str(value) for value in row]).encode())
    return digest.hexdigest()


def _lines(stretch: Stretch, zone: ZoneInfo) -> list[Line]:
    return [
        Line(message.speaker, message.text, message.created_at.astimezone(zone), message.role)
        for message in stretch.contributing
    ]


def _previous(session: Session) -> str:
    """The summary of the stretch before, as context for the next."""
    before = session.entries.order_by("-last_seq").values_list("summary", flat=True)
    return before.first() or ""


def _entry(
    session: Session, stretch: Stretch, summary: str, written_by: str, now: datetime
) -> Entry:
    times = [message.created_at for message in stretch.contributing]
    project = session.project
    entry = Entry(
        project=project,
        session=session,
        granularity=Granularity.CONVERSATION,
        period_key=day_key(max(times), project.zone),
        zone=project.timezone,
        first_seq=stretch.first_seq,
        last_seq=stretch.last_seq,
        summary=summary,
        message_count=len(times),
        first_source_at=min(times),
        last_source_at=max(times),
        state=_first_state(session, written_by),
        written_by=written_by,
        written_at=now,
    )
    entry.tokens = item_tokens(entry.as_item())
    return entry


def _first_state(session: Session, written_by: str) -> State:
    """Live, unless someone has to look first.

    The extractive summariser quotes, and what was said in a private session is not to be quoted
    to others unseen.
    """
    quotes_private = written_by == "extractive" and session.visibility == Visibility.PRIVATE
    return State.PROPOSED if session.project.review_memories or quotes_private else State.LIVE


@transaction.atomic
def _commit(lease: Lease, session: Session, stretch: Stretch, entry: Entry) -> bool:
    """Keeps `entry` if the lease still holds and its sources are what they were."""
    Session.objects.select_for_update().get(pk=session.pk)
    lease.fence()
    range_now = session.messages.filter(
        seq__gte=stretch.first_seq, seq__lte=stretch.last_seq
    ).order_by("seq")
    if _fingerprint(range_now.values_list("pk", "version", "status")) != stretch.fingerprint:
        lease.release()
        return False
    entry.save(force_insert=True)
    _move(session, stretch.last_seq, stretch.last_seq)
    lease.release()
    return True


@transaction.atomic
def _skip(lease: Lease, session: Session, through: int, stretch: Stretch) -> None:
    """Nothing contributes yet: sets the counts right, so that the session is not due again.

    The cursor stays, and the next entry covers this stretch too: ranges have no gaps.
    """
    Session.objects.select_for_update().get(pk=session.pk)
    lease.fence()
    _move(session, through, stretch.last_seq)
    lease.release()


def _move(session: Session, through: int, read_through: int) -> None:
    """Sets the cursor to `through`, its counts to what stands beyond `read_through`."""
    left = [one for one in session.messages.after(read_through) if contributes(one)]
    Cursor.objects.filter(pk=session.pk).update(
        summarised_through=through,
        unsummarised_messages=len(left),
        unsummarised_tokens=sum(message.tokens for message in left),
    )
