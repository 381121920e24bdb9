"""What an act would change, found by doing it and taking it back."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from uuid import UUID

from django.db import transaction

from memory import forgetting
from memory.diffs import Row, by_lines
from memory.forgetting import Receipt
from memory.layers import review
from memory.layers.bank import render
from memory.layers.periods import Granularity
from memory.layers.rendering import bank_entries
from memory.models import Entry, State
from memory.models.entries import CONVERSATION
from memory.moderation import Act, Objection, Outcome, Wish, carry_out, scope
from projects.models import Project

# Stands in for a text that is not to be shown here.
VEIL = "- (private)"
Veiled = Callable[[Entry], bool]


@dataclass(frozen=True)
class Shown:
    """The rendered bank as it is shown to whoever decides; `tokens` are those of the real one."""

    text: str
    tokens: int


@dataclass(frozen=True)
class Impact:
    """What would be done and what refused, how many texts are then to be written anew, and the
    rendered bank before and after.
    """

    outcome: Outcome
    summaries: int
    digests: int
    before: Shown
    after: Shown

    @property
    def lines(self) -> list[Row]:
        """The lines of the bank that differ."""
        return by_lines(self.before.text, self.after.text)

    @property
    def total(self) -> Receipt | None:
        """What goes for good, in all; None when nothing does."""
        receipts = self.outcome.receipts
        return total(receipts) if receipts else None


def preview(
    project: Project,
    wish: Wish,
    entries: Sequence[Entry],
    objection: Objection,
    veiled: Veiled = lambda entry: False,
) -> Impact:
    """What would come of `wish` for `entries`, all of `project`; nothing is changed.

    It is carried out and rolled back, so it cannot differ from the deed. The texts of the entries
    that are `veiled` do not show.
    """
    if wish.act == Act.FORGET:
        return _preview_forgetting(wish, entries, objection)
    with _undone():
        above = _lock(project, entries)
        before, stale_before = _shown(project, veiled), _stale(project)
        outcome = carry_out(wish, entries, objection)
        stale = _stale(project)
        layers = _to_be_rewritten((stale - stale_before) | (stale & above))
        return Impact(
            outcome=outcome,
            summaries=layers[CONVERSATION],
            digests=layers.total() - layers[CONVERSATION],
            before=before,
            after=_shown(project, veiled),
        )


def _preview_forgetting(wish: Wish, entries: Sequence[Entry], objection: Objection) -> Impact:
    """Receipts, and no bank: what is left of a digest is not known before it is written anew."""
    outcome = Outcome()
    for entry in entries:
        if reason := objection(entry, wish.act):
            outcome.refused.append((entry, reason))
        else:
            outcome.done.append(entry)
    for entry in _topmost(outcome.done):
        outcome.receipts.append(forgetting.preview(entry.project, scope(wish, entry), wish.by))
    nothing = Shown("", 0)
    return Impact(outcome, 0, 0, nothing, nothing)


def total(receipts: Collection[Receipt]) -> Receipt:
    """The sums of several receipts. What waits to be written anew for several of them counts once.

    A digest that each of them alone would leave something to, and all together nothing, is counted
    as waiting, not as gone.
    """
    removed: Counter[str] = Counter()
    for receipt in receipts:
        removed.update(receipt.removed)
    withheld = {pk for receipt in receipts for pk in receipt.withheld}
    waiting = sum(receipt.awaiting_rewrite for receipt in receipts)
    all_listed = all(one.awaiting_rewrite <= len(one.withheld) for one in receipts)
    return Receipt(
        removed=removed,
        awaiting_rewrite=min(waiting, len(withheld)) if all_listed else waiting,
        withheld=sorted(withheld),
        saw_it=sorted({pk for receipt in receipts for pk in receipt.saw_it}),
        phrases=sum(receipt.phrases for receipt in receipts),
        found=sorted({found for receipt in receipts for found in receipt.found}),
        awaiting_files=sum(receipt.awaiting_files for receipt in receipts),
    )


@contextmanager
def _undone() -> Iterator[None]:
    """Whatever is written inside is rolled back."""
    with transaction.atomic():
        yield
        transaction.set_rollback(True)


def _lock(project: Project, entries: Iterable[Entry]) -> set[UUID]:
    """Locks what the acts will, all of it at once and in everybody's order: the project, then from
    the finest layer upward by id. One after the other, two acts in one transaction might not.

    Returns the digests above `entries`.
    """
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    named = [entry.pk for entry in entries]
    above: set[UUID] = set()
    for granularity in Granularity:
        rows = project.entries.filter(granularity=granularity, pk__in=[*named, *above])
        locked = rows.select_for_update().order_by("pk").values_list("parent_id", flat=True)
        above |= {parent for parent in locked if parent}
    return above


def _shown(project: Project, veiled: Veiled) -> Shown:
    entries = list(bank_entries(project))
    bank = render([entry.as_item() for entry in entries], project.bank_max_tokens)
    hidden = {entry.pk for entry in entries if veiled(entry)}
    if not hidden:
        return Shown(bank.text, bank.tokens)
    items = [entry.as_item() for entry in entries if entry.pk in bank.included]
    told = [replace(item, summary=VEIL) if item.id in hidden else item for item in items]
    # What stands in it is settled: a shorter text in place of a private one makes no room.
    return Shown(render(told, bank.tokens + project.bank_max_tokens).text, bank.tokens)


def _stale(project: Project) -> set[UUID]:
    return set(project.entries.filter(state=State.STALE).values_list("pk", flat=True))


def _to_be_rewritten(stale: set[UUID]) -> Counter[str]:
    """By layer, how many entries are stale or above one that is: their turn comes with it."""
    found: dict[UUID, str] = {}
    level = stale
    while level:
        rows = list(Entry.objects.filter(pk__in=level).values_list("pk", "granularity", "parent"))
        found |= {pk: granularity for pk, granularity, _ in rows}
        level = {parent for _, _, parent in rows if parent} - found.keys()
    return Counter(found.values())


def _topmost(entries: Sequence[Entry]) -> list[Entry]:
    """Without those that go with a digest that is forgotten too."""
    named = {entry.pk for entry in entries}
    if all(entry.granularity == CONVERSATION for entry in entries):
        return list(entries)
    return [entry for entry in entries if not named & set(review.ancestors(entry))]
