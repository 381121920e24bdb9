"""What people decide about entries, for one of them or for many.

Each is changed by itself, in a transaction of its own: what is refused does not hold up the others.
Who may do what is for the caller to say, by an `Objection`.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from django.db import models, transaction
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy

from memory import forgetting
from memory.forgetting import Receipt, Scope
from memory.layers import review
from memory.layers.review import Refused
from memory.models import Entry, Reason, State
from projects.models import Project

# More than this at once is more than anybody has looked at.
MOST_AT_ONCE = 200


class Act(models.TextChoices):
    APPROVE = "approve", gettext_lazy("Approve")
    REJECT = "reject", gettext_lazy("Reject")
    PIN = "pin", gettext_lazy("Pin")
    UNPIN = "unpin", gettext_lazy("Unpin")
    HIDE = "hide", gettext_lazy("Hide")
    SHOW = "show", gettext_lazy("Show again")
    RESUMMARISE = "resummarise", gettext_lazy("Write anew")
    EDIT = "edit", gettext_lazy("Edit")
    REDACT = "redact", gettext_lazy("Redact")
    FORGET = "forget", gettext_lazy("Forget")


DONE = {
    Act.APPROVE: gettext_lazy("Approved"),
    Act.REJECT: gettext_lazy("Rejected"),
    Act.PIN: gettext_lazy("Pinned"),
    Act.UNPIN: gettext_lazy("Unpinned"),
    Act.HIDE: gettext_lazy("Hidden"),
    Act.SHOW: gettext_lazy("Taken in again"),
    Act.RESUMMARISE: gettext_lazy("Asked to be written anew"),
    Act.EDIT: gettext_lazy("Edited"),
    Act.REDACT: gettext_lazy("Redacted"),
    Act.FORGET: gettext_lazy("Forgotten"),
}
# What needs a text, and so is done to one entry at a time.
WORDED = (Act.EDIT, Act.REDACT)
# What is likely meant, to begin with.
USUAL_REASONS = {
    Act.APPROVE: Reason.CHECKED,
    Act.REJECT: Reason.WRONG,
    Act.EDIT: Reason.WRONG,
    Act.HIDE: Reason.OUTDATED,
    Act.REDACT: Reason.PRIVATE,
    Act.FORGET: Reason.PRIVATE,
}
# Decisions, and the state in which they are open.
DECISIONS = {Act.APPROVE: State.PROPOSED, Act.REJECT: State.PROPOSED, Act.SHOW: State.HIDDEN}

# Why whoever asks may not do this to the entry; empty when they may.
Objection = Callable[[Entry, Act], str]


@dataclass(frozen=True)
class Wish:
    """What the user `by` wants done, and why (one of Reason).

    `text` is what an edit puts in place, or the passage to be redacted; `revision` is the text
    that the editor read, None for whichever is there. With `sources`, the messages of what is
    forgotten go too.
    """

    act: Act
    by: Any
    reason: str = Reason.OTHER
    text: str = ""
    revision: int | None = None
    sources: bool = False


@dataclass
class Outcome:
    """Which entries were changed, which were not and why, and the receipts of forgetting."""

    done: list[Entry] = field(default_factory=list)
    refused: list[tuple[Entry, str]] = field(default_factory=list)
    receipts: list[Receipt] = field(default_factory=list)


def carry_out(wish: Wish, entries: Iterable[Entry], objection: Objection) -> Outcome:
    """Does what is wished to each of `entries`, as far as nothing speaks against it."""
    outcome = Outcome()
    for entry in entries:
        try:
            if wish.act == Act.FORGET:
                outcome.receipts.append(_forget(wish, entry, objection))
            else:
                _change(wish, entry, objection)
        except (Refused, forgetting.Refused) as refused:
            outcome.refused.append((entry, str(refused)))
        else:
            outcome.done.append(entry)
    return outcome


def _forget(wish: Wish, entry: Entry, objection: Objection) -> Receipt:
    if reason := objection(entry, wish.act):
        raise Refused(reason)
    return forgetting.forget(entry.project, scope(wish, entry), wish.by, wish.reason)


def scope(wish: Wish, entry: Entry) -> Scope:
    """What is to be forgotten when `entry` is."""
    return Scope(entry=entry.pk, sources=wish.sources)


@transaction.atomic
def _change(wish: Wish, entry: Entry, objection: Objection) -> None:
    # The project first, as whoever pins or forgets does.
    Project.objects.select_for_update(no_key=True).get(pk=entry.project_id)
    rows = Entry.objects.select_for_update(of=("self",)).select_related("session", "project")
    there = rows.filter(pk=entry.pk).first()
    if there is None:
        raise Refused(_("It is gone."))
    overtaken = wish.act == Act.EDIT and wish.revision not in (None, there.revision)
    for reason in (
        state_against(wish.act, there),
        _("Somebody changed this text while you wrote. Yours is kept below.") if overtaken else "",
        objection(there, wish.act),
    ):
        if reason:
            raise Refused(reason)
    _PERFORM[wish.act](there, wish)


def state_against(act: Act, entry: Entry) -> str:
    """Why this cannot be done to the entry as it stands, whoever asks; empty when it can."""
    if act in DECISIONS and entry.state != DECISIONS[act]:
        return _("This was decided meanwhile.")
    if act in (Act.HIDE, Act.PIN, Act.RESUMMARISE) and entry.state in review.ASIDE:
        return _("This is not among what is remembered.")
    if act == Act.PIN and entry.pinned:
        return _("It is pinned already.")
    if act == Act.UNPIN and not entry.pinned:
        return _("It is not pinned.")
    if act == Act.EDIT and (entry.withheld or entry.state == State.HIDDEN):
        return _("This text cannot be edited now.")
    if act == Act.REDACT and entry.withheld:
        return _("This text is withheld until it is written anew.")
    return ""


_PERFORM: dict[Act, Callable[[Entry, Wish], object]] = {
    Act.APPROVE: lambda entry, wish: review.set_hidden(entry, False, wish.by, wish.reason),
    Act.REJECT: lambda entry, wish: review.set_hidden(entry, True, wish.by, wish.reason),
    Act.HIDE: lambda entry, wish: review.set_hidden(entry, True, wish.by, wish.reason),
    Act.SHOW: lambda entry, wish: review.set_hidden(entry, False, wish.by, wish.reason),
    Act.PIN: lambda entry, wish: review.pin(entry, True, wish.by, wish.reason),
    Act.UNPIN: lambda entry, wish: review.pin(entry, False, wish.by, wish.reason),
    Act.EDIT: lambda entry, wish: review.edit(entry, wish.text, wish.by, wish.reason),
    Act.REDACT: lambda entry, wish: review.redact(entry, wish.text, wish.by, wish.reason),
    Act.RESUMMARISE: lambda entry, wish: review.ask_anew(entry, wish.by, wish.reason),
}
