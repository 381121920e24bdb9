"""Carries the ladder's plan out: rolls, rewrites, fades; and renders the bank that results."""

import hashlib
import logging
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, OuterRef, QuerySet

from memory.layers import bank, ladder, leases, summarising, texts
from memory.layers.leases import Lease
from memory.layers.periods import Granularity, label
from memory.models import Entry, Ladder, State
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
        moved = _dissolve(lease, project) or moved
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
        aside = entry.state in (State.HIDDEN, State.STALE)
        shown = f"{entry.pk} {entry.revision} {entry.pinned} {aside};"
        digest.update(shown.encode())
    return Sources(found, digest.hexdigest())


def _write(lease: Lease, project: Project, roll: ladder.Roll, now: datetime) -> None:
    """Writes the digest of one period from all its children, and commits it."""
    sources = _sources(roll.children)
    text, written_by = _text(lease, project, roll, sources.children)
    _commit(lease, project, roll, sources, text, written_by, now)


def _text(
    lease: Lease, project: Project, roll: ladder.Roll, children: Sequence[Entry]
) -> tuple[str, str]:
    """The digest's text and who wrote it. An only child speaks for its period as it is: nothing
    is lost and nothing has to be called.
    """
    if len(children) == 1:
        return children[0].summary, children[0].written_by
    summariser = summarising.get(project)
    told = [(child.label, child.summary) for child in children]
    period = label(roll.granularity, roll.key)
    return summariser.digest(period, told, lease.renew), summariser.name


@transaction.atomic
def _commit(
    lease: Lease,
    project: Project,
    roll: ladder.Roll,
    sources: Sources,
    text: str,
    written_by: str,
    now: datetime,
) -> None:
    """Keeps a digest if the lease holds and its sources are what they were when it was written."""
    lease.fence()
    ids = [child.pk for child in sources.children]
    list(Entry.objects.select_for_update().filter(pk__in=ids).order_by("pk").values_list("pk"))
    if _sources(roll.children).fingerprint != sources.fingerprint:
        raise SourcesChanged
    digest = _digest(project, roll)
    if digest.state in (State.HIDDEN, State.PROPOSED):
        raise SourcesChanged
    digest.state = State.ABSORBED if digest.parent_id else State.LIVE
    if digest.summary:
        texts.rewrite(digest, text, written_by, now)
    else:
        digest.summary, digest.written_by, digest.written_at = text, written_by, now
    digest.sources_hash = sources.fingerprint
    digest.message_count = sum(child.message_count for child in sources.children)
    digest.first_source_at = min(child.first_source_at for child in sources.children)
    digest.last_source_at = max(child.last_source_at for child in sources.children)
    digest.tokens = bank.item_tokens(digest.as_item())
    digest.save()
    Entry.objects.filter(pk__in=ids).update(parent=digest, state=State.ABSORBED)
    if digest.parent_id:
        Entry.objects.filter(pk=digest.parent_id).update(state=State.STALE)


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


@transaction.atomic
def _dissolve(lease: Lease, project: Project) -> bool:
    """Removes digests that nothing is left to write from; True when there were any."""
    lease.fence()
    sources = Entry.objects.in_the_layers().filter(parent=OuterRef("pk"), pinned=False)
    empty = project.entries.rewritable().filter(~Exists(sources))
    above = [entry.parent_id for entry in empty if entry.parent_id]
    Entry.objects.filter(pk__in=above).update(state=State.STALE)
    return bool(empty.delete()[0])


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
