"""Preview of a moderation action: the action is applied and rolled back."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction

from memory.forgetting import service
from memory.forgetting.service import ForgetReceipt
from memory.layers.bank import render
from memory.layers.bank_cache import bank_entries, bank_items
from memory.layers.periods import Granularity
from memory.models import Entry, EntryStatus
from memory.models.entries import CONVERSATION
from memory.moderation import entry_operations
from memory.moderation.actions import (
    ModerationAction,
    ModerationOutcome,
    ModerationRequest,
    Objection,
    apply_action,
    forget_scope,
)
from memory.moderation.diffs import DiffRow, diff_lines
from projects.models import Project

IsPrivate = Callable[[Entry], bool]


@dataclass(frozen=True)
class BankPreview:
    """The rendered bank without private texts. `tokens` is the length of the real bank."""

    text: str
    tokens: int


@dataclass(frozen=True)
class ModerationPreview:
    """The outcome of an action, the number of summaries and digests that would be rewritten, and
    the bank before and after the action.
    """

    outcome: ModerationOutcome
    summaries: int
    digests: int
    before: BankPreview
    after: BankPreview

    @property
    def lines(self) -> list[DiffRow]:
        """Return the lines of the bank that differ."""
        return diff_lines(self.before.text, self.after.text)

    @property
    def total(self) -> ForgetReceipt | None:
        """Return the sum of the receipts; None if nothing would be forgotten.

        Each entry to rewrite counts once. Each receipt assumes that only its own entry is
        forgotten, so a digest counts even if all its sources together will be forgotten.
        """
        receipts = self.outcome.receipts
        if not receipts:
            return None
        removed: Counter[str] = Counter()
        for receipt in receipts:
            removed.update(receipt.removed)
        rewrites = {pk for receipt in receipts for pk in receipt.rewrites}
        awaiting = sum(receipt.awaiting_rewrite for receipt in receipts)
        all_listed = all(receipt.awaiting_rewrite == len(receipt.rewrites) for receipt in receipts)
        return ForgetReceipt(
            removed=removed,
            awaiting_rewrite=len(rewrites) if all_listed else awaiting,
            rewrites=sorted(rewrites),
            withheld=sorted({pk for receipt in receipts for pk in receipt.withheld}),
            saw_it=sorted({pk for receipt in receipts for pk in receipt.saw_it}),
            phrases=sum(receipt.phrases for receipt in receipts),
            found=sorted({pk for receipt in receipts for pk in receipt.found}),
            kept_sources=sorted({pk for receipt in receipts for pk in receipt.kept_sources}),
            awaiting_files=sum(receipt.awaiting_files for receipt in receipts),
        )


def preview(
    project: Project,
    request: ModerationRequest,
    entries: Sequence[Entry],
    objection: Objection,
    is_private: IsPrivate = lambda entry: False,
) -> ModerationPreview:
    """Return what `request` would do to `entries` of `project`, without changing anything.

    The action is applied and rolled back, so the preview cannot differ from the action. The texts
    of private entries are replaced.
    """
    if request.action == ModerationAction.FORGET:
        return _preview_forgetting(request, entries, objection)
    with transaction.atomic():
        ancestors = _lock(project, entries)
        before, stale_before = _bank_preview(project, is_private), _stale(project)
        outcome = apply_action(request, entries, objection)
        stale = _stale(project)
        layers = _count_rewrites((stale - stale_before) | (stale & ancestors))
        result = ModerationPreview(
            outcome=outcome,
            summaries=layers[CONVERSATION],
            digests=layers.total() - layers[CONVERSATION],
            before=before,
            after=_bank_preview(project, is_private),
        )
        transaction.set_rollback(True)
    return result


def _preview_forgetting(
    request: ModerationRequest, entries: Sequence[Entry], objection: Objection
) -> ModerationPreview:
    """Return receipts without a bank: the text of a digest is unknown until it is rewritten."""
    outcome = ModerationOutcome()
    for entry in entries:
        if reason := objection(entry, request.action):
            outcome.refused.append((entry, reason))
        else:
            outcome.done.append(entry)
    ids = {entry.pk for entry in outcome.done}
    has_digest = any(entry.granularity != CONVERSATION for entry in outcome.done)
    for entry in outcome.done:
        # An entry below another selected entry is already forgotten together with it.
        if not has_digest or not ids & set(entry_operations.ancestors(entry)):
            scope = forget_scope(request, entry)
            outcome.receipts.append(service.preview(entry.project, scope, request.by))
    no_bank = BankPreview("", 0)
    return ModerationPreview(outcome, 0, 0, no_bank, no_bank)


def _lock(project: Project, entries: Iterable[Entry]) -> set[UUID]:
    """Lock all rows that the actions lock, and return the ids of the digests above `entries`.

    Several actions in one transaction could otherwise lock rows in different orders. The order is
    the same as elsewhere: first the project, then entries from the finest layer upward, by id.
    """
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    ids = [entry.pk for entry in entries]
    ancestors: set[UUID] = set()
    for granularity in Granularity:
        rows = project.entries.filter(granularity=granularity, pk__in=[*ids, *ancestors])
        locked = rows.select_for_update().order_by("pk").values_list("parent_id", flat=True)
        ancestors |= {parent for parent in locked if parent}
    return ancestors


def _bank_preview(project: Project, is_private: IsPrivate) -> BankPreview:
    entries = list(bank_entries(project))
    private = {entry.pk for entry in entries if is_private(entry)}
    items = bank_items(project, entries)
    bank = render(items, project.bank_max_tokens, private)
    return BankPreview(bank.text, bank.tokens)


def _stale(project: Project) -> set[UUID]:
    return set(project.entries.filter(state=EntryStatus.STALE).values_list("pk", flat=True))


def _count_rewrites(stale: set[UUID]) -> Counter[str]:
    """Count, by layer, the stale entries and the digests above them, which are rewritten too."""
    found: dict[UUID, str] = {}
    level = stale
    while level:
        rows = list(Entry.objects.filter(pk__in=level).values_list("pk", "granularity", "parent"))
        found |= {pk: granularity for pk, granularity, _ in rows}
        level = {parent for _, _, parent in rows if parent} - found.keys()
    return Counter(found.values())
