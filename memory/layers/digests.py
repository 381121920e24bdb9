"""Carries the ladder's plan out: rolls, rewrites, fades."""

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Func, IntegerField, OuterRef, Sum

from memory.layers import (
    bank,
    ladder,
    leases,
    losses,
    nodes,
    review,
    summarising,
    suspicion,
    texts,
)
from memory.layers.booking import Booking
from memory.layers.leases import Lease
from memory.layers.moments import at
from memory.layers.periods import Granularity, label
from memory.layers.summarising import Digest, audited
from memory.models import Entry, Ladder, Nudge, State, Verb, Waiting
from memory.models.activity import note
from memory.models.entries import CONVERSATION
from projects.models import Project, remove

log = logging.getLogger(__name__)

# What the writer of a digest is told of an earlier text that somebody corrected by hand.
BY_HAND = "Corrected by hand, and right where it differs from the notes"
# No digest is written from what is in one of these states.
UNSETTLED = (*review.ASIDE, State.STALE)
# More rounds than this in one go would mean that the plan does not converge.
MOST_ROUNDS = 1_000


class SourcesChanged(Exception):
    """A digest's children are no longer what it was written from."""


def settle(project_id: UUID, now: datetime) -> bool:
    """Lets a project's layers settle at `now`; False when there was nothing to do or it failed.

    One worker at a time: the project's ladder is claimed. Each digest is written outside of any
    transaction and committed on its own, so that a killed worker loses at most one call.
    """
    Ladder.objects.get_or_create(project_id=project_id)
    lease = leases.claim(Ladder.objects.ready().within_allowance(), project_id)
    if lease is None:
        return False
    with leases.working(lease, "project"):
        # What changes from here on nudges again.
        nudges = list(Nudge.objects.filter(project=project_id).values_list("pk", flat=True))
        project = Project.objects.get(pk=project_id)
        moved = _settle(lease, project, now)
        _look_again(lease, project, now, nudges)
        return moved
    return False


def _settle(lease: Lease, project: Project, now: datetime) -> bool:
    moved = False
    taken: Granularity | None = None
    thresholds = _thresholds(project)
    for _ in range(MOST_ROUNDS):
        moved = _dissolve(lease, project, now) or _absorb(lease, project, now) or moved
        found = nodes.moving(project)
        rolls: Sequence[ladder.Roll] = ladder.outdated(found)
        if not rolls:
            step = ladder.next_step(found, now, _room(project), taken, thresholds)
            if step is None:
                break
            taken, rolls = step.granularity, step.rolls
        for roll in rolls:
            try:
                _write(lease, project, roll, now)
            except SourcesChanged:
                log.info("digest_overtaken project=%s period=%s", project.pk, roll.key)
            moved = True
    return _fade(lease, project, now) or moved


@transaction.atomic
def _look_again(lease: Lease, project: Project, now: datetime, nudges: list[int]) -> None:
    """Notes when time alone makes the ladder due again, and forgets the nudges it has heeded."""
    lease.fence()
    standing = nodes.visible(project)
    ripe_at = ladder.next_look(standing, now, _room(project), _thresholds(project))
    Ladder.objects.filter(pk=project.pk).update(ripe_at=ripe_at)
    Nudge.objects.filter(project=project, pk__in=nudges).delete()
    lease.release()


def _thresholds(project: Project) -> ladder.Thresholds:
    return ladder.Thresholds(
        trigger=project.roll_percent / 100,
        ages={
            Granularity.DAY: timedelta(days=project.day_after_days),
            Granularity.WEEK: timedelta(days=project.week_after_days),
            Granularity.MONTH: timedelta(days=project.month_after_days),
        },
    )


def _room(project: Project) -> int:
    """Tokens of the budget that entries may take, beside the bank's frame and headings."""
    return max(0, project.bank_max_tokens - bank.frame_tokens())


@dataclass(frozen=True)
class Sources:
    """The children of a digest as they were when `fingerprint` was taken."""

    children: Sequence[Entry]
    fingerprint: str

    @property
    def are_settled(self) -> bool:
        """Whether a digest may be written from them: none was pinned, put aside or outdated."""
        return not any(child.pinned or child.state in UNSETTLED for child in self.children)


def _sources(project: Project, children: Iterable[UUID]) -> Sources:
    rows = project.entries.filter(pk__in=children).select_related("session")
    found = list(rows.order_by("first_source_at", "pk"))
    digest = hashlib.sha256()
    for entry in found:
        aside = entry.state in UNSETTLED
        shown = f"{entry.pk} {entry.revision} {entry.pinned} {aside};"
        digest.update(shown.encode())
    return Sources(found, digest.hexdigest())


def _write(lease: Lease, project: Project, roll: ladder.Roll, now: datetime) -> None:
    """Writes the digest of one period from all its children, and commits it.

    One whose sources are those it was written from stands as it stood, and no model is asked.
    Raises SourcesChanged when they are not what they were when the roll was planned.
    """
    sources = _sources(project, roll.children)
    if len(sources.children) < len(roll.children) or not sources.are_settled:
        raise SourcesChanged
    there = project.entries.filter(pk=roll.digest).first() if roll.digest else None
    booking = Booking(lease, project.pk)
    written = None
    if there is None or not there.summary or there.sources_hash != sources.fingerprint:
        written = _written(booking, project, roll, sources, there.note if there else "")
    _commit(lease, project, roll, sources, there, written, now)


@dataclass(frozen=True)
class Written:
    """A digest, by whom it was written, and what it cost."""

    digest: Digest
    by: str
    booking: Booking


def _written(
    booking: Booking, project: Project, roll: ladder.Roll, sources: Sources, by_hand: str
) -> Written:
    """An only child speaks for its period as it is: nothing is lost and nothing has to be called.
    What somebody wrote into the digest `by_hand` is told last.
    """
    told = [(child.label, child.summary) for child in sources.children]
    if len(told) == 1 and not by_hand:
        [only] = sources.children
        audit = losses.audit(told, only.summary)
        return Written(audited(only.summary, audit), only.written_by, booking)
    if by_hand:
        told.append((BY_HAND, by_hand))
    summariser = summarising.get(project)
    period = label(roll.granularity, roll.key)
    return Written(summariser.digest(period, told, booking), summariser.name, booking)


@transaction.atomic
def _commit(
    lease: Lease,
    project: Project,
    roll: ladder.Roll,
    sources: Sources,
    there: Entry | None,
    written: Written | None,
    now: datetime,
) -> None:
    """Keeps a digest if the lease holds and its sources are what they were when it was written,
    and so is its own text, `there`: it was told what somebody had written into that by hand.
    Without anything `written`, the text that is there stands again.

    One that reads like instructions awaits review. Its children stand in until then: they are its
    own, so that what becomes of them is known to it, but they are not absorbed; and it leaves the
    digest above.
    """
    lease.fence()
    ids = [child.pk for child in sources.children]
    children = project.entries.filter(pk__in=ids)
    list(children.select_for_update().order_by("pk").values_list("pk"))
    if _sources(project, roll.children).fingerprint != sources.fingerprint:
        raise SourcesChanged
    digest = _digest(project, roll)
    is_new = digest._state.adding
    before = (there.revision, there.sources_hash) if there else (1, "")
    if digest.state in review.ASIDE or (digest.revision, digest.sources_hash) != before:
        raise SourcesChanged
    above, waits = digest.parent, None
    if written is not None:
        waits = _waits_because(digest, written.digest.text, sources.children)
        _keep(digest, written, now)
    if waits:
        digest.state, digest.parent = State.PROPOSED, None
    else:
        digest.state = State.ABSORBED if above and above.state != State.PROPOSED else State.LIVE
    digest.waits_because = waits or ""
    digest.withheld = False
    digest.sources_hash = sources.fingerprint
    digest.message_count = sum(child.message_count for child in sources.children)
    digest.first_source_at = min(child.first_source_at for child in sources.children)
    digest.last_source_at = max(child.last_source_at for child in sources.children)
    digest.tokens = bank.item_tokens(digest.as_item())
    with at(now):
        digest.save()
        if waits:
            children.filter(state=State.ABSORBED).update(state=State.LIVE)
            children.update(parent=digest)
        else:
            children.update(parent=digest, state=State.ABSORBED)
        if above is not None and written is not None:
            review.mark_stale(above)
    if written is not None:
        verb = Verb.ROLLED_UP if is_new else Verb.REWRITTEN
        verb = Verb.PROPOSED if waits else verb
        totals = written.booking.totals()
        _record(verb, digest, ids, reason=digest.waits_because, **totals)


def _keep(digest: Entry, written: Written, now: datetime) -> None:
    """Gives `digest` its new text, in memory."""
    if digest.summary or digest.withheld:
        texts.rewrite(digest, written.digest.text, written.by, now)
    else:
        digest.summary, digest.written_by, digest.written_at = written.digest.text, written.by, now
    digest.losses, digest.particulars = list(written.digest.losses), written.digest.particulars


def _record(verb: Verb, digest: Entry, related: Iterable[UUID], **fields: Any) -> None:
    note(
        digest.project_id,
        verb,
        entry_id=digest.pk,
        granularity=digest.granularity,
        period_key=digest.period_key,
        related=related,
        **fields,
    )


def _waits_because(digest: Entry, text: str, children: Sequence[Entry]) -> Waiting | None:
    """Why somebody has to look at it first: it reads like instructions, by more than was let pass
    in its children, or somebody's own words in it rested on what was forgotten.
    """
    seen = suspicion.found_in("\n".join(child.summary for child in children))
    if not suspicion.found_in(text) <= seen:
        return Waiting.INSTRUCTIONS
    return Waiting.SOURCES if digest.waits_because == Waiting.SOURCES else None


def _digest(project: Project, roll: ladder.Roll) -> Entry:
    """The digest of the roll's period: the one that is there, locked, or a new one."""
    rows = Entry.objects.select_for_update(of=("self",)).select_related("parent")
    there = rows.filter(project=project, granularity=roll.granularity, period_key=roll.key)
    return there.first() or Entry(
        project=project,
        granularity=roll.granularity,
        period_key=roll.key,
        zone=project.timezone,
    )


def kept_by_layer(project: Project) -> dict[str, float]:
    """The share of their children's particulars that the digests of each layer carry.

    By granularity, over those that are live, absorbed or faded, in one query; a layer whose
    children hold no particulars is left out.
    """
    found = project.entries.filter(state__in=(State.LIVE, State.ABSORBED, State.FADED))
    layers = found.exclude(granularity=CONVERSATION).values("granularity").order_by()
    sums = layers.annotate(held=Sum("particulars"), lost=Sum(_Lost("losses"))).filter(held__gt=0)
    return {row["granularity"]: 1 - row["lost"] / row["held"] for row in sums}


class _Lost(Func):
    """The length of a list of losses, of which the last may tell how many more there are."""

    template = (
        "(jsonb_array_length(%(expressions)s) + CASE %(expressions)s->-1->>'kind'"
        f" WHEN '{losses.MORE}' THEN (%(expressions)s->-1->>'text')::int - 1 ELSE 0 END)"
    )
    output_field = IntegerField()


@transaction.atomic
def _dissolve(lease: Lease, project: Project, now: datetime) -> bool:
    """Removes digests that nothing is left to write from; True when there were any."""
    lease.fence()
    sources = Entry.objects.in_the_layers().filter(
        project=project, parent=OuterRef("pk"), pinned=False
    )
    empty = project.entries.rewritable().filter(~Exists(sources))
    gone = list(empty)
    if not gone:
        return False
    ids = [entry.pk for entry in gone]
    with at(now):
        # Nothing will know any more that what was below them had a part in what is above.
        review.withhold(Entry.objects.above([project.pk], ids), for_good=True)
        for entry in gone:
            _record(Verb.DISSOLVED, entry, ())
        remove(project.entries.filter(pk__in=ids))
    return True


@transaction.atomic
def _absorb(lease: Lease, project: Project, now: datetime) -> bool:
    """Lets digests that were taken in after review speak for the children that stood in for them;
    True when there were any.
    """
    lease.fence()
    told = (State.LIVE, State.FADED)
    digests = project.entries.filter(state__in=told).values("pk")
    standing = project.entries.filter(state__in=told, parent__in=digests)
    with at(now):
        return bool(standing.update(state=State.ABSORBED))


@transaction.atomic
def _fade(lease: Lease, project: Project, now: datetime) -> bool:
    """Sets which entries are out of the budget, worked out anew; True when that changed."""
    lease.fence()
    out = ladder.fade(nodes.visible(project), _room(project))
    live = project.entries.filter(state=State.LIVE, pk__in=out)
    faded = project.entries.filter(state=State.FADED).exclude(pk__in=out)
    changes = [(Verb.FADED, live, State.FADED), (Verb.RETURNED, faded, State.LIVE)]
    moved = False
    with at(now):
        for verb, rows, state in changes:
            # What somebody changes at this moment is looked at again when they have.
            free = rows.select_for_update(skip_locked=True, no_key=True)
            ids = list(free.values_list("pk", flat=True))
            if ids:
                project.entries.filter(pk__in=ids).update(state=state)
                note(project.pk, verb, related=ids)
                moved = True
    return moved
