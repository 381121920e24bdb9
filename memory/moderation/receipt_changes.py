"""Change a memory directly from the receipt of a reply: it is wrong, outdated or private."""

from dataclasses import dataclass, replace

from django.db import models
from django.utils import timezone
from django.utils.translation import gettext as _

from memory import facts
from memory.facts import Statement
from memory.facts.permissions import fact_for_reading, may_decide
from memory.layers.lines import Line, as_text
from memory.models import Entry, Fact, FactStatus, ModerationReason
from memory.moderation.actions import (
    ModerationAction,
    ModerationRequest,
    apply_action,
    objection_of,
)
from memory.permissions import entries_for
from projects.core.errors import InvalidInputError, NotFoundError
from projects.core.text import storable
from projects.models import Membership


class ReceiptAction(models.TextChoices):
    CORRECT = "correct"
    OUTDATED = "outdated"
    PRIVATE = "private"
    # For a fact, this hides it. For an entry, it removes the line.
    WRONG = "wrong"


REASONS = {
    ReceiptAction.CORRECT: ModerationReason.WRONG,
    ReceiptAction.OUTDATED: ModerationReason.OUTDATED,
    ReceiptAction.PRIVATE: ModerationReason.PRIVATE,
    ReceiptAction.WRONG: ModerationReason.WRONG,
}


@dataclass(frozen=True)
class ReceiptChange:
    """The change that a member requests. `text` is the correct version.

    An outdated fact without `text` ends; no other fact replaces it. `line` is the line of an entry;
    None for a fact or a text without lines.
    """

    action: str
    text: str = ""
    line: Line | None = None


def apply_change(member: Membership, key: str, change: ReceiptChange) -> str:
    """Apply the change to the entry or fact with this key. Return a sentence for the user.

    Raises DomainError.
    """
    if change.action not in ReceiptAction.values:
        raise InvalidInputError(_("This action does not exist."))
    kind, _colon, pk = key.partition(":")
    text = " ".join(storable(change.text).split())
    if change.action == ReceiptAction.CORRECT and not text:
        raise InvalidInputError(_("Enter the right version."), field="text")
    change = replace(change, text="" if change.action == ReceiptAction.WRONG else text)
    if kind == "fact":
        return _change_fact(member, fact_for_reading(member, pk), change)
    entry = entries_for(member).select_related("project").filter(pk=pk).first()
    if entry is None:
        raise NotFoundError(_("This no longer exists."))
    return _change_entry(member, entry, change)


def _change_fact(member: Membership, fact: Fact, change: ReceiptChange) -> str:
    by, reason = member.user, REASONS[ReceiptAction(change.action)]
    if change.action in (ReceiptAction.PRIVATE, ReceiptAction.WRONG):
        if not may_decide(member, fact):
            raise InvalidInputError(_("Only an owner can decide this."))
        facts.hide(fact, by, reason)
        return _("Hidden. New prompts do not contain this fact.")
    if change.action == ReceiptAction.CORRECT:
        statement = replace(Statement.of(fact), object=change.text)
        facts.edit(fact, statement, by, fact.version, reason)
        return _("Corrected.")
    if not change.text:
        now = timezone.now()
        until = getattr(fact, "until", None)
        # An end that a user enters contradicts the next fact, so a fact that has ended stays as is.
        if until is None or until > now:
            facts.close(fact, now, by, reason)
        return _("This fact has ended.")
    parts = (fact.subject, fact.predicate, change.text)
    new = Statement(*parts, valid_from=timezone.now(), user_id=fact.user_id)
    added, _is_new = facts.create_fact(member, new)
    if added.state == FactStatus.PROPOSED:
        return _("The fact waits for review.")
    return _("The new fact replaces this one.")


def _change_entry(member: Membership, entry: Entry, change: ReceiptChange) -> str:
    reason = REASONS[ReceiptAction(change.action)]
    action, text, done = ModerationAction.EDIT, change.text, _("Corrected.")
    lines = list(entry.read_lines()) if entry.lines else []
    if change.action == ReceiptAction.PRIVATE:
        action, text, done = ModerationAction.HIDE, "", _("Hidden. New prompts do not contain it.")
    elif change.line is not None:
        if change.line not in lines:
            raise InvalidInputError(_("This no longer exists."))
        place = lines.index(change.line)
        new = [replace(change.line, text=text, speaker="")] if text else []
        text = as_text([*lines[:place], *new, *lines[place + 1 :]])
    if action == ModerationAction.EDIT and not text:
        # No line is left, so hide the entry.
        action, done = ModerationAction.HIDE, _("Hidden. New prompts do not contain it.")
    wish = ModerationRequest(action, member.user, reason, text, entry.revision)
    outcome = apply_action(wish, [entry], objection_of(member))
    if outcome.refused:
        raise InvalidInputError(outcome.refused[0][1])
    return done
