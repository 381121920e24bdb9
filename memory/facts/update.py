"""Edit facts, and change their state. Only an edit saves an earlier version and increases
`version`.

The argument `version` is the version that the caller read. If the fact was edited since,
StaleVersionError is raised. None skips the check.
"""

from collections.abc import Mapping
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.models import Visibility
from memory.facts.create import Statement, lock_topics, reads_as_instruction
from memory.models import ActivityVerb, Fact, FactStatus, ModerationReason, ReviewReason
from memory.models.activity import record_activity
from projects.core.errors import InvalidInputError, StaleVersionError
from projects.core.models import new_id
from projects.models import Project


def edit(
    fact: Fact,
    statement: Statement,
    by: Any,
    version: int | None = None,
    reason: str = ModerationReason.OTHER,
) -> Fact:
    """Replace the content of `fact`; the user that it is about does not change.

    Content that reads like instructions to a model waits for review; a hidden fact stays hidden.
    Raises InvalidInputError like `Statement.checked`.
    """
    statement = replace(statement.normalized().checked(), user_id=fact.user_id)
    return _change(fact, statement, by, ActivityVerb.EDITED, version, reason)


def edit_fields(
    fact: Fact,
    changes: Mapping[str, Any],
    by: Any,
    version: int | None = None,
    reason: str = ModerationReason.OTHER,
) -> Fact:
    """Edit only the fields `changes` of the statement. The others keep their current values, even
    if somebody has edited them since the caller read `fact`.
    """
    while True:
        statement = replace(Statement.of(fact), **changes)
        try:
            at_version = fact.version if version is None else version
            return edit(fact, statement, by, at_version, reason)
        except StaleVersionError:
            if version is not None:
                raise
        # Not locked here, because topics are locked before facts.
        fact.refresh_from_db()


@transaction.atomic
def close(fact: Fact, at: datetime, by: Any, reason: str = ModerationReason.OUTDATED) -> Fact:
    """End `fact` at `at`. Raises InvalidInputError if `at` is not after its start."""
    lock_topics(fact.project, [fact.topic])
    # Somebody may have edited the fact since the caller read it.
    current = _locked(fact)
    statement = replace(Statement.of(current), valid_until=at).checked()
    return _change(current, statement, by, ActivityVerb.CLOSED, None, reason)


@transaction.atomic
def _change(
    fact: Fact, statement: Statement, by: Any, verb: ActivityVerb, version: int | None, reason: str
) -> Fact:
    lock_topics(fact.project, [fact.topic, statement.topic])
    fact = _locked(fact, version)
    if statement == Statement.of(fact):
        return fact
    now = timezone.now()
    earlier = Fact.objects.get(pk=fact.pk)
    earlier.pk, earlier.earlier_of = new_id(), fact
    earlier.recorded_at = min(fact.recorded_at, now)
    earlier.retired_at = now
    earlier.save(force_insert=True)
    for name, value in asdict(statement).items():
        setattr(fact, name, value)
    fact.recorded_at = now
    fact.version += 1
    fact.written_by = by.get_username()
    if fact.state != FactStatus.HIDDEN and reads_as_instruction(statement):
        fact.state, fact.waits_because = FactStatus.PROPOSED, ReviewReason.INSTRUCTIONS
    fact.set_keys()
    fact.save()
    _record(fact, verb, by, reason)
    return fact


def approve(
    fact: Fact, by: Any, reason: str = ModerationReason.CHECKED, version: int | None = None
) -> Fact:
    """Make a proposed fact live. Raises InvalidInputError if it was decided meanwhile."""
    verbs = {FactStatus.PROPOSED: ActivityVerb.APPROVED}
    return _set_state(fact, FactStatus.LIVE, verbs, by, reason, version)


def unhide(
    fact: Fact, by: Any, reason: str = ModerationReason.OTHER, version: int | None = None
) -> Fact:
    """Make a hidden fact live. Raises InvalidInputError if it is not hidden."""
    verbs = {FactStatus.HIDDEN: ActivityVerb.SHOWN}
    return _set_state(fact, FactStatus.LIVE, verbs, by, reason, version)


def hide(
    fact: Fact, by: Any, reason: str = ModerationReason.WRONG, version: int | None = None
) -> Fact:
    """Hide `fact`, or reject a proposed fact. It stays hidden if a message states it again.

    If `fact` ended an earlier fact of its topic, that fact becomes valid again. Raises
    InvalidInputError if `fact` is already hidden.
    """
    verbs = {FactStatus.PROPOSED: ActivityVerb.REJECTED, FactStatus.LIVE: ActivityVerb.HIDDEN}
    return _set_state(fact, FactStatus.HIDDEN, verbs, by, reason, version)


@transaction.atomic
def _set_state(
    fact: Fact,
    state: FactStatus,
    verbs: Mapping[FactStatus, ActivityVerb],
    by: Any,
    reason: str,
    version: int | None,
) -> Fact:
    """Set the state of a fact. `verbs` maps permitted current states to verbs of the log."""
    fact = _locked(fact, version)
    verb = verbs.get(FactStatus(fact.state))
    if verb is None:
        raise InvalidInputError(_("Someone else has already decided this."))
    fact.state = state
    if state == FactStatus.LIVE:
        fact.waits_because, fact.recorded_at = "", timezone.now()
    elif fact.sources.filter(session__visibility=Visibility.PROJECT).exists():
        # A rejected fact of private sessions keeps its reason, so that it stays as private as a
        # proposed one. Of a shared session, an owner decides also after it becomes private.
        fact.waits_because = ""
    fact.save(update_fields=["state", "waits_because", "recorded_at"])
    _record(fact, verb, by, reason)
    return fact


def lock_version(fact: Fact, version: int) -> None:
    """Lock `fact` until the end of the transaction. Raises StaleVersionError."""
    # Lock the project first, in the same order as forgetting does.
    Project.objects.select_for_update(no_key=True).get(pk=fact.project_id)
    lock_topics(fact.project, [fact.topic])
    _locked(fact, version)


def _locked(fact: Fact, version: int | None = None) -> Fact:
    rows = Fact.objects.current().select_for_update(of=("self",)).select_related("project")
    row = rows.filter(pk=fact.pk).first()
    if row is None:
        raise InvalidInputError(_("This no longer exists."))
    if version not in (None, row.version):
        raise StaleVersionError(
            _("Someone changed this fact while you were editing. Your version is below.")
        )
    return row


def _record(fact: Fact, verb: ActivityVerb, by: Any, reason: str) -> None:
    record_activity(fact.project_id, verb, by=by, reason=reason, fact_id=fact.pk)
