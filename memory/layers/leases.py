"""Claim, renew, fence: one worker at a time, and none that was overtaken may commit."""

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import TypeVar
from uuid import UUID, uuid4

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import (
    Case,
    DurationField,
    ExpressionWrapper,
    F,
    QuerySet,
    Value,
    When,
)
from django.db.models.functions import Greatest, Now

from chat.compiled import Compiled
from chat.providers import ProviderError
from memory.layers.summarising import Unusable
from memory.models import Cursor, Verb
from memory.models.activity import note
from memory.models.leased import LONGEST_LEASE, LONGEST_WAIT, Leased, LeasedQuerySet

log = logging.getLogger(__name__)

# One minute, then twice as long each time, and never more than LONGEST_WAIT between two tries.
FIRST_WAIT = timedelta(minutes=1)

# So many seconds the database may be away before its leases are left to run out.
DATABASE_RETRIES = 60

L = TypeVar("L", bound=Leased)


class LeaseLost(Exception):
    """Somebody else holds the lease now; what was prepared under it must not be committed."""


@dataclass(frozen=True)
class Lease:
    """The right to work on one row, for as long as the database's clock allows."""

    model: type[Leased]
    project: UUID
    pk: UUID
    holder: UUID

    def _held(self) -> LeasedQuerySet:
        return _held(self.model, self.project, self.pk, self.holder)

    def renew(self) -> None:
        """Starts the lease's time anew. Raises LeaseLost."""
        if self._held().update(lease_until=Now() + LONGEST_LEASE) != 1:
            raise LeaseLost

    def fence(self) -> None:
        """Locks the row until the end of the transaction. Raises LeaseLost."""
        if not _locking(self.model)(self.project, self.pk, self.holder):
            raise LeaseLost

    def release(self) -> None:
        """Gives the row back after a success, or when there was nothing to do."""
        self._held().update(
            lease_holder=None, lease_until=None, failures=0, next_try_at=None, last_error=""
        )

    def fail(self, reason: str, retry_after: float | None = None) -> None:
        """Gives the row back, to be tried again later; `reason` is for people.

        Not before `retry_after` seconds, if a provider asked for that.
        """
        patience = Now() + timedelta(seconds=min(retry_after or 0, LONGEST_WAIT.total_seconds()))
        self._held().update(
            lease_holder=None,
            lease_until=None,
            failures=F("failures") + 1,
            next_try_at=Greatest(Now() + _wait(), patience),
            last_error=reason[:500],
        )


def _held(model: type[Leased], project: UUID, pk: UUID, holder: UUID) -> LeasedQuerySet:
    rows: LeasedQuerySet = LeasedQuerySet(model).filter(project=project, pk=pk)
    return rows.filter(lease_holder=holder, lease_until__gt=Now())


@cache
def _locking(model: type[Leased]) -> Compiled:
    def rows(project: UUID, pk: UUID, holder: UUID) -> QuerySet:
        return _held(model, project, pk, holder).select_for_update().values_list("pk")

    return Compiled(rows, UUID, UUID, UUID)


def _wait() -> Case:
    """FIRST_WAIT × 2^failures, at most LONGEST_WAIT, in SQL."""
    doubled = ExpressionWrapper(
        Value(FIRST_WAIT) * (Value(2.0) ** F("failures")), output_field=DurationField()
    )
    return Case(
        When(failures__lt=9, then=doubled),
        default=Value(LONGEST_WAIT),
        output_field=DurationField(),
    )


def claim(rows: LeasedQuerySet, pk: UUID) -> Lease | None:
    """A lease on the row `pk` if it is among `rows` and nobody holds it, else None."""
    holder = uuid4()
    with transaction.atomic():
        # Locked before it is read: an UPDATE over a join would not look again after a wait.
        found = rows.filter(pk=pk).unheld().select_for_update(skip_locked=True, of=("self",))
        row = found.first()
        if row is None:
            return None
        lease = Lease(rows.model, row.project_id, pk, holder)
        LeasedQuerySet(rows.model).filter(project=lease.project, pk=pk).update(
            lease_holder=holder, lease_until=Now() + LONGEST_LEASE
        )
    return lease


@contextmanager
def working(lease: Lease, what: str) -> Iterator[None]:
    """Inside, work is done under `lease`; what goes wrong is noted on its row, and tried again."""
    try:
        yield
    except LeaseLost:
        log.info("lease_lost %s=%s", what, lease.pk)
    except ProviderError as error:
        log.warning("memory_failed %s=%s reason=%s", what, lease.pk, error)
        _failed(lease, error.reason, error.retry_after)
    except Unusable as error:
        log.warning("memory_failed %s=%s reason=%s", what, lease.pk, error)
        _failed(lease, str(error))
    except Exception as error:
        # Whatever it was, the row must not stay held, nor be tried again at once for ever.
        log.exception("memory_failed %s=%s", what, lease.pk)
        if isinstance(error, OperationalError | InterfaceError) and not connection.is_usable():
            _let_go(lease)
        else:
            _failed(lease, f"Strata itself failed ({type(error).__name__}).")


def _let_go(lease: Lease) -> None:
    """Gives the row back once the database is there again. That it went away is no failure of what
    was done, which need not wait for the next try.
    """
    for _ in range(DATABASE_RETRIES):
        connection.close()
        with suppress(OperationalError, InterfaceError):
            lease._held().update(lease_holder=None, lease_until=None)
            return
        time.sleep(1)


@transaction.atomic
def _failed(lease: Lease, reason: str, retry_after: float | None = None) -> None:
    """Gives the row back and puts the failure on the record, unless it is not ours any more."""
    rows: LeasedQuerySet = LeasedQuerySet(lease.model).filter(project=lease.project, pk=lease.pk)
    if rows.filter(lease_holder=lease.holder).exists():
        lease.fail(reason, retry_after)
        session = lease.pk if lease.model is Cursor else None
        note(lease.project, Verb.FAILED, session_id=session, reason=reason[:200], count=1)
