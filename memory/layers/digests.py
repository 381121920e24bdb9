"""Digests: roll up and rewrite entries as `memory.layers.ladder` plans it."""

import hashlib
import logging
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from operator import attrgetter
from uuid import UUID

from django.db import IntegrityError, transaction
from django.db.models import Exists, OuterRef, Q, QuerySet

from chat.providers import ProviderError
from memory import leases
from memory.layers import bank, entry_text, injection_detection, ladder, lines, summarising
from memory.layers.ladder import AGES, VISIBLE, LadderNode, Period
from memory.layers.model_calls import CallRecorder
from memory.layers.periods import Granularity, ancestor_key, label
from memory.layers.summarising.base import EXTRACTIVE, Digest, DigestChild
from memory.leases import Lease
from memory.models import ActivityVerb, Entry, EntryStatus, Ladder, Nudge, ReviewReason
from memory.models.activity import record_entry_activity
from memory.models.entries import history_clock
from memory.moderation import entry_operations
from memory.moderation.redaction import redacted_among
from projects.core.errors import UnavailableError
from projects.models import Project, delete_rows

log = logging.getLogger(__name__)

# Marks, in the summariser's input, a text that somebody corrected by hand.
CORRECTED_BY_HAND = "Corrected by hand. Where this differs from the notes, this is right"
# Children in these states stop the writing of a digest.
UNUSABLE_STATES = (*entry_operations.OUTSIDE_LAYERS, EntryStatus.STALE)
# The maximum number of rounds in one update. More rounds mean that the plan does not converge.
MAX_ROUNDS = 1_000
# After this number of unusable answers in a layer of a plan, the other planned digests of the layer
# are left to the next update, because each would cost a call too.
MAX_UNUSABLE = 3
# The columns of an entry that become a `LadderNode`.
_NODE_COLUMNS = "id granularity period_key tokens last_source_at state parent pinned".split()


class SourcesChangedError(Exception):
    """A digest or its children changed after they were read."""


def update_layers(project_id: UUID, now: datetime) -> bool:
    """Roll up and rewrite the entries of a project; return whether anything changed.

    Only one worker at a time can claim the project's `Ladder`. Each digest is written outside of
    transactions and committed separately, so that a killed worker loses at most one model call.
    """

    def work(lease: Lease) -> bool:
        # Changes after this point create new nudges.
        nudges = list(Nudge.objects.filter(project=project_id).values_list("pk", flat=True))
        update = LayerUpdate(lease, Project.objects.get(pk=project_id), now)
        changed = update.run()
        update.finish(nudges)
        return changed

    try:
        Ladder.objects.get_or_create(project_id=project_id)
    except IntegrityError:
        # The project was deleted after it was found to be due.
        return False
    rows = Ladder.objects.ready().within_allowance()
    return leases.run(rows, project_id, "project", work) or False


def entry_budget(project: Project) -> int:
    """Return the number of tokens that the bank's budget leaves for lines of entries."""
    return max(0, project.bank_max_tokens - bank.frame_tokens())


@dataclass(frozen=True)
class DigestSources:
    """The children of a digest, and the entries (`material`) that it is written from, oldest first.

    `fingerprint` changes when one of these entries changes.
    """

    children: Sequence[Entry]
    material: Sequence[Entry]
    fingerprint: str


def read_sources(project: Project, ids: Iterable[UUID]) -> DigestSources:
    """Return the sources of the digest with the children `ids`.

    A model writes a digest from its children. The extractive summariser selects lines from all
    conversations below, not from the digests between.
    """
    rows = project.entries.filter(pk__in=ids).select_related("session")
    children = list(rows.order_by("first_source_at", "pk"))
    material = children
    if project.system_model_name == EXTRACTIVE:
        found = _conversations(project, children)
        material = sorted(found, key=attrgetter("first_source_at", "pk"))
    digest = hashlib.sha256()
    for source in dict.fromkeys((*children, *material)):
        is_unusable = source.state in UNUSABLE_STATES
        state = f"{source.pk} {source.revision} {source.pinned} {is_unusable};"
        digest.update(state.encode())
    return DigestSources(children, material, digest.hexdigest())


def _conversations(project: Project, level: Sequence[Entry]) -> Iterator[Entry]:
    """Yield the conversation entries below `level`. A digest is yielded itself if somebody
    corrected it by hand or removed words from it, or if it was imported without its children.
    """
    while level:
        redacted = redacted_among(project.pk, level)
        changed = {entry.pk for entry in level if entry.note or entry.pk in redacted}
        rows = project.entries.in_layers().filter(parent__in=level, withheld=False)
        below = defaultdict(list)
        for row in rows.select_related("session"):
            below[row.parent_id].append(row)
        yield from (entry for entry in level if entry.pk in changed or not below[entry.pk])
        level = [row for entry in level if entry.pk not in changed for row in below[entry.pk]]


def review_reason(digest: Entry, text: str, sources: DigestSources) -> ReviewReason | None:
    """Return the reason why a person must review the digest before it is used; None without a
    reason.

    A digest needs review if it contains instructions that none of its approved sources contains, or
    if a hand-written correction of it was erased together with forgotten text.
    """
    found = injection_detection.find_instructions(text)
    if found:
        # Each source alone, because only the beginning of a long text is read.
        for source in (*sources.children, *sources.material):
            found -= injection_detection.find_instructions(source.summary)
    if found:
        return ReviewReason.INSTRUCTIONS
    if digest.waits_because == ReviewReason.SOURCES:
        return ReviewReason.SOURCES
    return None


@dataclass(frozen=True)
class WrittenDigest:
    """A digest, the name of the summariser that wrote it, and the model calls for it."""

    digest: Digest
    by: str
    calls: CallRecorder


@dataclass
class LayerUpdate:
    """One update of a project's layers, under a lease."""

    lease: Lease
    project: Project
    now: datetime

    def run(self) -> bool:
        """Carry out the plan until nothing is left to do. Return whether anything changed.

        A digest that the model refuses or writes in an unusable form stops only the digests above
        it. After MAX_UNUSABLE such answers in one layer of a plan, the other digests of this layer
        wait too. The last error is raised at the end.
        """
        changed = False
        failed: dict[Period, UnavailableError] = {}
        # Begin after the digests that may have failed in the previous updates, so that they do not
        # block the others.
        skipped = MAX_UNUSABLE * Ladder.objects.get(pk=self.project.pk).failures
        for _ in range(MAX_ROUNDS):
            changed |= self.dissolve() | self.absorb()
            nodes = plannable_nodes(self.project)
            budget = entry_budget(self.project)
            plan = [roll_up for roll_up in ladder.rewrites(nodes) if roll_up.period not in failed]
            plan = plan or ladder.roll_ups(nodes, self.now, budget, failed.keys())
            if not plan:
                break
            first, unusable = skipped % len(plan), Counter[Granularity]()
            for position, roll_up in enumerate(plan := plan[first:] + plan[:first]):
                try:
                    self.write(roll_up)
                except SourcesChangedError:
                    log.info("digest_outdated project=%s period=%s", self.lease.pk, roll_up.key)
                except UnavailableError as error:
                    if isinstance(error, ProviderError) and error.is_outage:
                        raise
                    failed[roll_up.period] = error
                    layer = roll_up.granularity
                    unusable[layer] += 1
                    if unusable[layer] >= MAX_UNUSABLE:
                        left = [it.period for it in plan[position:] if it.granularity == layer]
                        failed |= dict.fromkeys(left, error)
                        break
                changed = True
        if failed:
            raise next(reversed(failed.values()))
        return changed

    @transaction.atomic
    def finish(self, nudges: list[int]) -> None:
        """Store when the next roll-up is due, and delete the processed nudges."""
        self.lease.fence()
        nodes = visible_nodes(self.project)
        ripe_at = ladder.next_due_at(nodes, self.now, entry_budget(self.project))
        Ladder.objects.filter(pk=self.project.pk).update(ripe_at=ripe_at)
        Nudge.objects.filter(project=self.project, pk__in=nudges).delete()
        self.lease.release()

    def write(self, roll_up: ladder.RollUp) -> None:
        """Write and commit the digest of one period from all its children.

        If the sources are unchanged, the existing text is used again without a model call. Raises
        `SourcesChangedError` if the children changed after the plan was made.
        """
        project = self.project
        sources = read_sources(project, roll_up.children)
        has_unusable = any(row.pinned or row.state in UNUSABLE_STATES for row in sources.children)
        if has_unusable or len(sources.children) < len(roll_up.children):
            raise SourcesChangedError
        current = project.entries.filter(pk=roll_up.digest).first() if roll_up.digest else None
        written = None
        if current is None or not current.summary or current.sources_hash != sources.fingerprint:
            written = self.call(roll_up, sources, current.note if current else "")
        self.commit(roll_up, sources, current, written)

    def call(
        self, roll_up: ladder.RollUp, sources: DigestSources, correction: str
    ) -> WrittenDigest:
        """Call the summariser. `correction`, written by hand, is the last part of the input."""
        calls = CallRecorder(self.lease, self.project.pk)
        children = [DigestChild(entry.label, entry.read_lines()) for entry in sources.children]
        material = [DigestChild(entry.label, entry.read_lines()) for entry in sources.material]
        if correction:
            day = sources.children[0].day
            material.append(DigestChild(CORRECTED_BY_HAND, lines.from_text(correction, day)))
        summariser = summarising.get_summariser(self.project)
        digest = summariser.digest(label(roll_up.granularity, roll_up.key), material, calls)
        if sources.material is not sources.children:
            digest = Digest.audited(digest.lines, children)
        return WrittenDigest(digest, summariser.name, calls)

    @transaction.atomic
    def commit(
        self,
        roll_up: ladder.RollUp,
        sources: DigestSources,
        current: Entry | None,
        written: WrittenDigest | None,
    ) -> None:
        """Store a digest. If `written` is None, its stored text stays.

        The lease must still be held. Raises `SourcesChangedError` if the sources or the current
        text changed since the summariser read them.

        A digest that needs review is removed from the digest above it. Until it is approved, its
        children stay in the bank: they have the digest as their parent, but are not absorbed.
        """
        self.lease.fence()
        ids = [child.pk for child in sources.children]
        children = self.project.entries.filter(pk__in=ids)
        entry_operations.lock(children)
        if read_sources(self.project, roll_up.children).fingerprint != sources.fingerprint:
            raise SourcesChangedError
        digest = self.lock_digest(roll_up)
        is_new = digest._state.adding
        seen = (current.revision, current.sources_hash) if current else (1, "")
        outside = digest.state in entry_operations.OUTSIDE_LAYERS
        if outside or (digest.revision, digest.sources_hash) != seen:
            raise SourcesChangedError
        # A text that waited for review before it was withheld waits again.
        above, reason = digest.parent, digest.waits_because or None
        if written is not None:
            reason = review_reason(digest, written.digest.text, sources)
            self.set_text(digest, written)
        if reason:
            digest.state, digest.parent = EntryStatus.PROPOSED, None
        else:
            absorbed = above and above.state != EntryStatus.PROPOSED
            digest.state = EntryStatus.ABSORBED if absorbed else EntryStatus.LIVE
        digest.waits_because = reason or ""
        digest.withheld = False
        digest.sources_hash = sources.fingerprint
        digest.message_count = sum(child.message_count for child in sources.children)
        digest.first_source_at = min(child.first_source_at for child in sources.children)
        digest.last_source_at = max(child.last_source_at for child in sources.children)
        digest.tokens = bank.item_tokens(digest.as_item())
        with history_clock(self.now):
            digest.save()
            if reason:
                children.filter(state=EntryStatus.ABSORBED).update(state=EntryStatus.LIVE)
                children.update(parent=digest)
            else:
                children.update(parent=digest, state=EntryStatus.ABSORBED)
            if above is not None and written is not None:
                entry_operations.mark_stale(above)
        if written is not None:
            verb = ActivityVerb.ROLLED_UP if is_new else ActivityVerb.REWRITTEN
            verb = ActivityVerb.PROPOSED if reason else verb
            totals = written.calls.totals()
            record_entry_activity(digest, verb, related=ids, reason=digest.waits_because, **totals)

    def lock_digest(self, roll_up: ladder.RollUp) -> Entry:
        """Return the digest of the period, locked. If there is none, return a new unsaved entry."""
        period = {
            "project": self.project,
            "granularity": roll_up.granularity,
            "period_key": roll_up.key,
        }
        rows = Entry.objects.select_for_update(of=("self",)).select_related("parent")
        return rows.filter(**period).first() or Entry(zone=self.project.timezone, **period)

    def set_text(self, digest: Entry, written: WrittenDigest) -> None:
        new, audit = written.digest.lines, written.digest.audit
        digest.losses, digest.particulars = audit.listed(), audit.held
        if digest.summary or digest.withheld:
            entry_text.replace_text(digest, new, written.by, self.now)
        else:
            digest.set_lines(new)
            digest.written_by, digest.written_at = written.by, self.now

    @transaction.atomic
    def dissolve(self) -> bool:
        """Delete the digests that have no children left. Return whether there were any."""
        self.lease.fence()
        children = Entry.objects.in_layers().filter(
            project=self.project, parent=OuterRef("pk"), pinned=False
        )
        empty = list(self.project.entries.rewritable().filter(~Exists(children)))
        if not empty:
            return False
        ids = [entry.pk for entry in empty]
        with history_clock(self.now):
            # Before the deletion: afterwards nothing records that the digests above contain text
            # from these digests.
            entry_operations.withhold(self.project.entries.filter(pk__in=ids), for_good=True)
            for entry in empty:
                record_entry_activity(entry, ActivityVerb.DISSOLVED)
            delete_rows(self.project.entries.filter(pk__in=ids))
        return True

    @transaction.atomic
    def absorb(self) -> bool:
        """Absorb the children of digests that were approved. Return whether there were any.

        First, entries that an older version of Strata left out of the bank (state `faded`) become
        live.
        """
        self.lease.fence()
        shown = (EntryStatus.LIVE, EntryStatus.FADED)
        changes = Q(state=EntryStatus.FADED) | Q(parent__state__in=shown)
        affected = self.project.entries.filter(changes, state__in=shown)
        if not affected.exists():
            return False
        entry_operations.lock(affected)
        with history_clock(self.now):
            self.project.entries.filter(state=EntryStatus.FADED).update(state=EntryStatus.LIVE)
            live = self.project.entries.live()
            children = live.filter(parent__in=live.values("pk"))
            return bool(children.update(state=EntryStatus.ABSORBED))


def visible_nodes(project: Project) -> list[LadderNode]:
    """Return the entries that are in the bank, or would be with a larger budget."""
    return list(_read_nodes(project.entries.filter(state__in=VISIBLE)))


def plannable_nodes(project: Project) -> list[LadderNode]:
    """Return all nodes that can affect the plan.

    These are the visible and stale entries, the digests of their periods, and the children of all
    digests that may be written. They include all digests between a stale entry and a stale digest
    above it. For example, between a conversation and a month, these are the digests of its day and
    its week.

    Most entries of a long history are absorbed, and entries below an unchanged digest cannot change
    the plan. Therefore the number of rows grows much more slowly than the history.
    """
    nodes = list(_read_nodes(project.entries.filter(state__in=[*VISIBLE, EntryStatus.STALE])))
    periods = Q()
    for layer in AGES:
        below = (node for node in nodes if node.granularity.depth < layer.depth)
        keys = {ancestor_key(node.granularity, node.key, layer) for node in below}
        periods |= Q(granularity=layer, period_key__in=keys)
    digests = list(_read_nodes(project.entries.filter(periods)))
    parents = {node.id for node in digests}
    parents |= {node.id for node in nodes if node.state == EntryStatus.STALE}
    children = _read_nodes(project.entries.filter(parent__in=parents)) if parents else ()
    return list({node.id: node for node in (*nodes, *digests, *children)}.values())


def _read_nodes(entries: QuerySet[Entry]) -> Iterator[LadderNode]:
    for pk, layer, *columns in entries.values_list(*_NODE_COLUMNS):
        yield LadderNode(pk, Granularity(layer), *columns)
