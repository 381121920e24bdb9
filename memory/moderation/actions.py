"""Moderation: actions of users on one or several entries.

Each entry is changed in its own transaction, so that an entry that cannot be changed does not block
the others. The caller passes an `Objection` that checks permissions.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import models, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory.forgetting import service
from memory.forgetting.service import ForgetReceipt, ForgetScope
from memory.models import Entry, EntryStatus, ModerationReason
from memory.moderation import entry_operations
from memory.permissions import may_decide, may_forget
from projects.core.errors import DomainError, InvalidInputError, StaleVersionError
from projects.models import Membership, Project

# The maximum number of entries in one action, because nobody can review more at once.
MAX_ENTRIES_AT_ONCE = 200


class ModerationAction(models.TextChoices):
    APPROVE = "approve", gettext_lazy("Approve")
    REJECT = "reject", gettext_lazy("Reject")
    PIN = "pin", gettext_lazy("Pin")
    UNPIN = "unpin", gettext_lazy("Unpin")
    HIDE = "hide", gettext_lazy("Hide")
    SHOW = "show", gettext_lazy("Show again")
    RESUMMARISE = "resummarise", gettext_lazy("Rewrite")
    EDIT = "edit", gettext_lazy("Edit")
    REDACT = "redact", gettext_lazy("Remove text")
    FORGET = "forget", gettext_lazy("Forget")


DONE_LABELS = {
    ModerationAction.APPROVE: gettext_lazy("Approved"),
    ModerationAction.REJECT: gettext_lazy("Rejected"),
    ModerationAction.PIN: gettext_lazy("Pinned"),
    ModerationAction.UNPIN: gettext_lazy("Unpinned"),
    ModerationAction.HIDE: gettext_lazy("Hidden"),
    ModerationAction.SHOW: gettext_lazy("Shown again"),
    ModerationAction.RESUMMARISE: gettext_lazy("Rewrite requested"),
    ModerationAction.EDIT: gettext_lazy("Edited"),
    ModerationAction.REDACT: gettext_lazy("Text removed"),
    ModerationAction.FORGET: gettext_lazy("Forgotten"),
}
# Actions with a text, which therefore apply to one entry only.
TEXT_ACTIONS = (ModerationAction.EDIT, ModerationAction.REDACT)
# Actions that cannot be undone. Redaction also changes earlier revisions.
FINAL_ACTIONS = (ModerationAction.REDACT, ModerationAction.FORGET)
# The preselected reasons in forms.
DEFAULT_REASONS = {
    ModerationAction.APPROVE: ModerationReason.CHECKED,
    ModerationAction.REJECT: ModerationReason.WRONG,
    ModerationAction.EDIT: ModerationReason.WRONG,
    ModerationAction.HIDE: ModerationReason.OUTDATED,
    ModerationAction.REDACT: ModerationReason.PRIVATE,
    ModerationAction.FORGET: ModerationReason.PRIVATE,
}
# Decisions, and the state that an entry must have for each of them.
DECISIONS = {
    ModerationAction.APPROVE: EntryStatus.PROPOSED,
    ModerationAction.REJECT: EntryStatus.PROPOSED,
    ModerationAction.SHOW: EntryStatus.HIDDEN,
}

# A function that returns the reason why the user may not act on the entry, or "".
Objection = Callable[[Entry, ModerationAction], str]


def objection_of(member: Membership) -> Objection:
    """Return the function with which moderation checks actions of `member`."""

    def objection(entry: Entry, act: ModerationAction) -> str:
        if not member.may_write:
            return _("Only owners and editors can change the memory.")
        if act in DECISIONS and not may_decide(member, entry):
            return _("Only an owner can decide this.")
        if act in FINAL_ACTIONS and not may_forget(member, entry.session):
            return _("Only owners can forget this.")
        return ""

    return objection


@dataclass(frozen=True)
class ModerationRequest:
    """An action requested by the user `by`.

    `text` is the new text of an edit or the passage to redact. `revision` is the revision that the
    editor read; None skips the check. With `sources`, forgetting also deletes the source messages.
    """

    action: ModerationAction
    by: Any
    reason: str = ModerationReason.OTHER
    text: str = ""
    revision: int | None = None
    sources: bool = False


@dataclass
class ModerationOutcome:
    """The changed entries, the refused ones with reasons, and the receipts of forget requests."""

    done: list[Entry] = field(default_factory=list)
    refused: list[tuple[Entry, str]] = field(default_factory=list)
    receipts: list[ForgetReceipt] = field(default_factory=list)


def apply_action(
    request: ModerationRequest, entries: Iterable[Entry], objection: Objection
) -> ModerationOutcome:
    """Apply the action to each of `entries` for which there is no objection."""
    outcome = ModerationOutcome()
    for entry in entries:
        try:
            if request.action == ModerationAction.FORGET:
                if reason := objection(entry, request.action):
                    raise InvalidInputError(reason)
                scope = forget_scope(request, entry)
                receipt = service.forget(entry.project, scope, request.by, request.reason)
                outcome.receipts.append(receipt)
            else:
                _change(request, entry, objection)
        except DomainError as error:
            outcome.refused.append((entry, str(error)))
        else:
            outcome.done.append(entry)
    return outcome


def forget_scope(request: ModerationRequest, entry: Entry) -> ForgetScope:
    return ForgetScope(entry=entry.pk, sources=request.sources)


@transaction.atomic
def _change(request: ModerationRequest, entry: Entry, objection: Objection) -> None:
    # Lock the project first, in the same order as pinning and forgetting.
    Project.objects.select_for_update(no_key=True).get(pk=entry.project_id)
    rows = Entry.objects.select_for_update(of=("self",)).select_related("session", "project")
    row = rows.filter(pk=entry.pk).first()
    if row is None:
        raise InvalidInputError(_("This no longer exists."))
    is_edit = request.action == ModerationAction.EDIT
    if reason := state_objection(request.action, row):
        raise InvalidInputError(reason)
    if is_edit and request.revision not in (None, row.revision):
        raise StaleVersionError(
            _("Someone changed this text while you were editing. Your version is below.")
        )
    if reason := objection(row, request.action):
        raise InvalidInputError(reason)
    _perform(request, row)


def selection_objection(action: ModerationAction, count: int) -> str:
    """Return why the action cannot be applied to `count` entries at once, or ""."""
    if count > MAX_ENTRIES_AT_ONCE:
        return _("Select at most %(most)s memories.") % {"most": MAX_ENTRIES_AT_ONCE}
    if action in TEXT_ACTIONS and count > 1:
        return _("Select a single memory for this action.")
    return ""


def state_objection(action: ModerationAction, entry: Entry) -> str:
    """Return why the action is not possible in the state of the entry, or ""."""
    if action in DECISIONS and entry.state != DECISIONS[action]:
        return _("Someone else has already decided this.")
    needs_layers = (ModerationAction.HIDE, ModerationAction.PIN, ModerationAction.RESUMMARISE)
    if action in needs_layers and entry.state in entry_operations.OUTSIDE_LAYERS:
        return _("This memory is not in use.")
    if action == ModerationAction.PIN and entry.pinned:
        return _("This is already pinned.")
    if action == ModerationAction.UNPIN and not entry.pinned:
        return _("This is not pinned.")
    is_textless = entry.withheld or entry.state == EntryStatus.HIDDEN
    if action == ModerationAction.EDIT and is_textless:
        return _("This text cannot be edited right now.")
    if action == ModerationAction.REDACT and entry.withheld:
        return _("This text is hidden until it is rewritten.")
    return ""


def _perform(request: ModerationRequest, entry: Entry) -> None:
    by, reason = request.by, request.reason
    match request.action:
        case ModerationAction.APPROVE | ModerationAction.SHOW:
            entry_operations.set_hidden(entry, False, by, reason)
        case ModerationAction.REJECT | ModerationAction.HIDE:
            entry_operations.set_hidden(entry, True, by, reason)
        case ModerationAction.PIN | ModerationAction.UNPIN:
            entry_operations.pin(entry, request.action == ModerationAction.PIN, by, reason)
        case ModerationAction.EDIT:
            entry_operations.edit(entry, request.text, by, reason)
        case ModerationAction.REDACT:
            entry_operations.redact(entry, request.text, by, reason)
        case ModerationAction.RESUMMARISE:
            entry_operations.request_rewrite(entry, by, reason)
