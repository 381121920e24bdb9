"""What people change about a fact. What it said before stays as an earlier version of it.

`version` is the one that was read; with it, what was changed since then raises Stale.
"""

from dataclasses import replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from memory.facts.recording import Refused, Stale, Statement, commands, lock
from memory.models import Fact, Reason, Standing, Verb, Waiting
from memory.models.activity import note
from projects.identifiers import new_id
from projects.models import Project


def edit(
    fact: Fact, told: Statement, by: Any, version: int | None = None, reason: str = Reason.OTHER
) -> Fact:
    """Has `fact` say `told` from now on. Whom it is about stays as it is.

    `version` is what its editor read, None for whichever is there. What reads like instructions to
    a model waits for review. Raises Refused when somebody was faster, or for an end before the
    beginning.
    """
    told = replace(told.tidied(), user_id=fact.user_id)
    if told.valid_until is not None and told.valid_until <= told.valid_from:
        raise Refused(_("It would end before it begins."))
    return _change(fact, told, by, Verb.EDITED, version, reason)


def close(fact: Fact, at: datetime, by: Any, reason: str = Reason.OUTDATED) -> Fact:
    """Ends `fact` at `at`. Raises Refused for a moment before it begins."""
    if at <= fact.valid_from:
        raise Refused(_("It would end before it begins."))
    return _change(fact, replace(statement_of(fact), valid_until=at), by, Verb.CLOSED, None, reason)


def statement_of(fact: Fact) -> Statement:
    return Statement(
        subject=fact.subject,
        predicate=fact.predicate,
        object=fact.object,
        valid_from=fact.valid_from,
        valid_until=fact.valid_until,
        confidence=fact.confidence,
        user_id=fact.user_id,
    )


@transaction.atomic
def _change(
    fact: Fact, told: Statement, by: Any, verb: Verb, version: int | None, reason: str
) -> Fact:
    lock(fact.project, [fact.topic, told.topic])
    there = _locked(fact, version)
    if told == statement_of(there):
        return there
    now = timezone.now()
    _keep(there, now)
    there.subject, there.predicate, there.object = told.subject, told.predicate, told.object
    there.valid_from, there.valid_until = told.valid_from, told.valid_until
    there.confidence, there.recorded_at = told.confidence, now
    there.version += 1
    there.written_by = by.get_username()
    if commands(told):
        there.state, there.waits_because = Standing.PROPOSED, Waiting.INSTRUCTIONS
    there.set_keys()
    there.save()
    _record(there, verb, by, reason)
    return there


def _keep(fact: Fact, now: datetime) -> None:
    """Keeps `fact` as it is as an earlier version, held from when it was recorded until `now`."""
    earlier = Fact.objects.get(pk=fact.pk)
    earlier.pk, earlier.earlier_of = new_id(), fact
    earlier.recorded_at = min(fact.recorded_at, now)
    earlier.retired_at = now
    earlier.save(force_insert=True)


@transaction.atomic
def approve(fact: Fact, by: Any, reason: str = Reason.CHECKED, version: int | None = None) -> Fact:
    """Takes in what waits for review: from now on the project holds it to be so. Raises Refused
    for what was decided meanwhile.
    """
    there = _locked(fact, version)
    if there.state != Standing.PROPOSED:
        raise Refused(_("This was decided meanwhile."))
    return _take_in(there, Verb.APPROVED, by, reason)


@transaction.atomic
def show(fact: Fact, by: Any, reason: str = Reason.OTHER, version: int | None = None) -> Fact:
    """Takes in again what was hidden. Raises Refused for what is not."""
    there = _locked(fact, version)
    if there.state != Standing.HIDDEN:
        raise Refused(_("This was decided meanwhile."))
    return _take_in(there, Verb.SHOWN, by, reason)


def _take_in(fact: Fact, verb: Verb, by: Any, reason: str) -> Fact:
    fact.state, fact.waits_because = Standing.LIVE, ""
    fact.recorded_at = timezone.now()
    fact.save(update_fields=["state", "waits_because", "recorded_at"])
    _record(fact, verb, by, reason)
    return fact


@transaction.atomic
def hide(fact: Fact, by: Any, reason: str = Reason.WRONG, version: int | None = None) -> Fact:
    """Takes `fact` out, or refuses one that waits: told again, it stays out. The one before it is
    open again. Raises Refused for what is hidden already.
    """
    there = _locked(fact, version)
    if there.state == Standing.HIDDEN:
        raise Refused(_("This was decided meanwhile."))
    verb = Verb.REJECTED if there.state == Standing.PROPOSED else Verb.HIDDEN
    there.state, there.waits_because = Standing.HIDDEN, ""
    there.save(update_fields=["state", "waits_because"])
    _record(there, verb, by, reason)
    return there


def at_version(fact: Fact, version: int) -> None:
    """Has `fact` stay as it is until the end of the transaction. Raises Stale."""
    # The project first, as whoever forgets.
    Project.objects.select_for_update(no_key=True).get(pk=fact.project_id)
    lock(fact.project, [fact.topic])
    _locked(fact, version)


def _locked(fact: Fact, version: int | None = None) -> Fact:
    rows = Fact.objects.current().select_for_update(of=("self",)).select_related("project")
    there = rows.filter(pk=fact.pk).first()
    if there is None:
        raise Refused(_("It is gone."))
    if version not in (None, there.version):
        raise Stale(_("Somebody changed this fact while you wrote. Yours is kept below."))
    return there


def _record(fact: Fact, verb: Verb, by: Any, reason: str) -> None:
    note(fact.project_id, verb, by=by, reason=reason, fact_id=fact.pk)
