"""Carries the ladder's plan out: rolls, rewrites, fades; and renders the bank that results."""

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, Func, IntegerField, OuterRef, QuerySet, Sum

from memory.layers import bank, ladder, leases, losses, review, summarising, suspicion, texts
from memory.layers.booking import Booking
from memory.layers.leases import Lease
from memory.layers.periods import Granularity, label
from memory.layers.summarising import Digest, audited
from memory.models import Entry, Ladder, State, Waiting
from memory.models.entries import CONVERSATION
from projects.models import Project

log = logging.getLogger(__name__)

# More rounds than this in one go would mean that the plan does not converge.
MOST_ROUNDS = 1_000


class SourcesChanged(Exception):
    """A digest's children are no longer what it was written from."""


def rendered_bank(project: Project, max_tokens: int | None = None) -> bank.Bank:
    """The project's bank as it stands in prompts: at most its budget, or `max_tokens` if less."""
    budget = project.bank_max_tokens
    if max_tokens is not None:
        budget = min(budget, max_tokens)
    return bank.render([entry.as_item() for entry in bank_entries(project)], budget)


def bank_entries(project: Project) -> QuerySet[Entry]:
    """The entries that may stand in the project's bank, newest first."""
    return project.entries.in_the_bank().select_related("session").newest_first()


def settle(project_id: UUID, now: datetime) -> bool:
    """Lets a project's layers settle at `now`; False when there was nothing to do or it failed.

    One worker at a time: the project's ladder is claimed. Each digest is written outside of any
    transaction and committed on its own, so that a killed worker loses at most one call.
    """
    Ladder.objects.get_or_create(project_id=project_id)
    lease = leases.claim(Ladder.objects.ready(), project_id)
    if lease is None:
        return False
    with leases.working(lease, "project"):
        moved = _settle(lease, Project.objects.get(pk=project_id), now)
        lease.release()
        return moved
    return False


def _settle(lease: Lease, project: Project, now: datetime) -> bool:
    moved = False
    taken: Granularity | None = None
    for _ in range(MOST_ROUNDS):
        moved = _dissolve(lease, project) or _absorb(lease, project) or moved
        nodes = _nodes(project)
        rolls: Sequence[ladder.Roll] = ladder.outdated(nodes)
        if not rolls:
            step = ladder.next_step(nodes, now, _room(project), taken)
            if step is None:
                break
            taken, rolls = step.granularity, step.rolls
        for roll in rolls:
            try:
                _write(lease, project, roll, now)
            except SourcesChanged:
                log.info("digest_overtaken project=%s period=%s", project.pk, roll.key)
            moved = True
    return _fade(lease, project) or moved


def _nodes(project: Project) -> list[ladder.Node]:
    """Every entry of the layers, without its text."""
    return [entry.as_node() for entry in project.entries.defer("summary")]


def _room(project: Project) -> int:
    """Tokens of the budget that entries may take, beside the bank's frame and headings."""
    return max(0, project.bank_max_tokens - bank.frame_tokens())


@dataclass(frozen=True)
class Sources:
    """The children of a digest as they were when `fingerprint` was taken."""

    children: Sequence[Entry]
    fingerprint: str


def _sources(children: Iterable[UUID]) -> Sources:
    rows = Entry.objects.filter(pk__in=children).select_related("session")
    found = list(rows.order_by("first_source_at", "pk"))
    digest = hashlib.sha256()
    for entry in found:
        aside = entry.state in (State.HIDDEN, State.PROPOSED, State.STALE)
        shown = f"{entry.pk} {entry.revision} {entry.pinned} {aside};"
        digest.update(shown.encode())
    return Sources(found, digest.hexdigest())


def _write(lease: Lease, project: Project, roll: ladder.Roll, now: datetime) -> None:
    """Writes the digest of one period from all its children, and commits it."""
    sources = _sources(roll.children)
    written, written_by = _written(Booking(lease, project.pk), project, roll, sources.children)
    _commit(lease, project, roll, sources, written, written_by, now)


def _written(
    booking: Booking, project: Project, roll: ladder.Roll, children: Sequence[Entry]
) -> tuple[Digest, str]:
    """The digest and who wrote it. An only child speaks for its period as it is: nothing is lost
    and nothing has to be called.
    """
    told = [(child.label, child.summary) for child in children]
    if len(children) == 1:
        audit = losses.audit(told, children[0].summary)
        return audited(children[0].summary, audit), children[0].written_by
    summariser = summarising.get(project)
    period = label(roll.granularity, roll.key)
    return summariser.digest(period, told, booking), summariser.name


@transaction.atomic
def _commit(
    lease: Lease,
    project: Project,
    roll: ladder.Roll,
    sources: Sources,
    written: Digest,
    written_by: str,
    now: datetime,
) -> None:
    """Keeps a digest if the lease holds and its sources are what they were when it was written.

    One that reads like instructions awaits review. Its children stand in until then: they are its
    own, so that what becomes of them is known to it, but they are not absorbed; and it leaves the
    digest above.
    """
    lease.fence()
    ids = [child.pk for child in sources.children]
    list(Entry.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk"))
    if _sources(roll.children).fingerprint != sources.fingerprint:
        raise SourcesChanged
    digest = _digest(project, roll)
    if digest.state in (State.HIDDEN, State.PROPOSED):
        raise SourcesChanged
    above, waits = digest.parent, _reads_like_instructions(written.text, sources.children)
    if waits:
        digest.state, digest.parent = State.PROPOSED, None
    else:
        digest.state = State.ABSORBED if above and above.state != State.PROPOSED else State.LIVE
    digest.waits_because = Waiting.INSTRUCTIONS if waits else ""
    if digest.summary:
        texts.rewrite(digest, written.text, written_by, now)
    else:
        digest.summary, digest.written_by, digest.written_at = written.text, written_by, now
    digest.losses, digest.particulars = list(written.losses), written.particulars
    digest.sources_hash = sources.fingerprint
    digest.message_count = sum(child.message_count for child in sources.children)
    digest.first_source_at = min(child.first_source_at for child in sources.children)
    digest.last_source_at = max(child.last_source_at for child in sources.children)
    digest.tokens = bank.item_tokens(digest.as_item())
    digest.save()
    children = Entry.objects.filter(pk__in=ids)
    if waits:
        children.filter(state=State.ABSORBED).update(state=State.LIVE)
        children.update(parent=digest)
    else:
        children.update(parent=digest, state=State.ABSORBED)
    review.outdate(above)


def _reads_like_instructions(text: str, children: Iterable[Entry]) -> bool:
    """Whether `text` does, by more than what was let pass in its children."""
    seen = suspicion.found_in("\n".join(child.summary for child in children))
    return not suspicion.found_in(text) <= seen


def _digest(project: Project, roll: ladder.Roll) -> Entry:
    """The digest of the roll's period: the one that is there, locked, or a new one."""
    there = Entry.objects.select_for_update().filter(
        project=project, granularity=roll.granularity, period_key=roll.key
    )
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
def _dissolve(lease: Lease, project: Project) -> bool:
    """Removes digests that nothing is left to write from; True when there were any."""
    lease.fence()
    sources = Entry.objects.in_the_layers().filter(parent=OuterRef("pk"), pinned=False)
    empty = project.entries.rewritable().filter(~Exists(sources))
    for entry in empty.select_related("parent"):
        review.outdate(entry.parent)
    return bool(empty.delete()[0])


@transaction.atomic
def _absorb(lease: Lease, project: Project) -> bool:
    """Lets digests that were taken in after review speak for the children that stood in for them;
    True when there were any.
    """
    lease.fence()
    standing = project.entries.filter(
        state__in=(State.LIVE, State.FADED), parent__state__in=(State.LIVE, State.FADED)
    )
    return bool(standing.update(state=State.ABSORBED))


@transaction.atomic
def _fade(lease: Lease, project: Project) -> bool:
    """Sets which entries are out of the budget, worked out anew; True when that changed."""
    lease.fence()
    nodes = _nodes(project)
    out = ladder.fade(nodes, _room(project))
    entries = project.entries
    faded = entries.filter(state=State.LIVE, pk__in=out).update(state=State.FADED)
    back = entries.filter(state=State.FADED).exclude(pk__in=out).update(state=State.LIVE)
    return bool(faded or back)
