"""Leases: exclusive rights to work on a row. A fence prevents a late worker from committing."""

import logging
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import TypeVar
from uuid import UUID, uuid4

from django.db import InterfaceError, OperationalError, connection, transaction
from django.db.models import Case, DurationField, ExpressionWrapper, F, Value, When
from django.db.models.functions import Greatest, Now

from memory.models import ActivityVerb, Cursor
from memory.models.activity import record_activity
from memory.models.leased import MAX_LEASE, MAX_RETRY_WAIT, LeasedModel, LeasedQuerySet
from projects.core.errors import INTERNAL_FAILURE, UnavailableError

log = logging.getLogger(__name__)

# The wait after the first failure. It doubles after each further failure, up to MAX_RETRY_WAIT.
FIRST_WAIT = timedelta(minutes=1)
# How long the release of a lease is retried while the database is not available. Afterwards, the
# lease stays held until it expires.
DATABASE_RETRY_S = 60

T = TypeVar("T")


class LeaseLostError(Exception):
    """The lease has expired, another worker has claimed the row, or the row was deleted. Work under
    the lease must not be committed.
    """


@dataclass(frozen=True)
class Lease:
    """The right to work on one row, until it expires by the database clock."""

    model: type[LeasedModel]
    project: UUID
    pk: UUID
    holder: UUID

    @property
    def held_row(self) -> LeasedQuerySet:
        """The row, even if the lease has expired; no row if another worker has claimed it."""
        rows: LeasedQuerySet = LeasedQuerySet(self.model).filter(project=self.project, pk=self.pk)
        return rows.filter(lease_holder=self.holder)

    @property
    def row(self) -> LeasedQuerySet:
        """The leased row; no row if this lease has been lost."""
        return self.held_row.filter(lease_until__gt=Now())

    def renew(self) -> None:
        """Extend the lease. Raises `LeaseLostError`."""
        if self.row.update(lease_until=Now() + MAX_LEASE) != 1:
            raise LeaseLostError

    def fence(self) -> None:
        """Lock the row until the end of the transaction. Raises `LeaseLostError`."""
        if not self.row.select_for_update().values_list("pk"):
            raise LeaseLostError

    def release(self) -> None:
        """Release the lease after a success, or if there was nothing to do."""
        self.row.update(
            lease_holder=None, lease_until=None, failures=0, next_try_at=None, last_error=""
        )

    def fail(self, reason: str, retry_after: float | None = None) -> None:
        """Release the lease and schedule a retry. The wait doubles with each failure. It is at
        least `retry_after` seconds if given, and at most MAX_RETRY_WAIT.

        `reason` is shown to users. The failure also counts if the lease has expired, so that slow
        failures are not retried at once. It does not count if another worker has claimed the row.
        """
        pause = timedelta(seconds=min(retry_after or 0, MAX_RETRY_WAIT.total_seconds()))
        # FIRST_WAIT × 2^failures, at most MAX_RETRY_WAIT.
        doubled = ExpressionWrapper(
            Value(FIRST_WAIT) * (Value(2.0) ** F("failures")), output_field=DurationField()
        )
        wait = Case(
            When(failures__lt=9, then=doubled),
            default=Value(MAX_RETRY_WAIT),
            output_field=DurationField(),
        )
        self.held_row.update(
            lease_holder=None,
            lease_until=None,
            failures=F("failures") + 1,
            next_try_at=Greatest(Now() + wait, Now() + pause),
            last_error=reason[:500],
        )

    def abandon(self) -> None:
        """Release the lease as soon as the database is available again.

        A lost connection is no failure of the work, so the next attempt need not wait.
        """
        for _ in range(DATABASE_RETRY_S):
            connection.close()
            with suppress(OperationalError, InterfaceError):
                self.row.update(lease_holder=None, lease_until=None)
                return
            time.sleep(1)


def claim(rows: LeasedQuerySet, pk: UUID) -> Lease | None:
    """Return a lease on the row `pk`, or None if it is not among `rows` or is already leased."""
    holder = uuid4()
    with transaction.atomic():
        # Lock the row with a separate SELECT: if an UPDATE with a join waits for the lock,
        # PostgreSQL does not check the joined rows again after that.
        free = rows.filter(pk=pk).unleased().select_for_update(skip_locked=True, of=("self",))
        row = free.first()
        if row is None:
            return None
        lease = Lease(rows.model, row.project_id, pk, holder)
        LeasedQuerySet(rows.model).filter(project=lease.project, pk=pk).update(
            lease_holder=holder, lease_until=Now() + MAX_LEASE
        )
    return lease


def run(rows: LeasedQuerySet, pk: UUID, kind: str, work: Callable[[Lease], T | None]) -> T | None:
    """Claim the row `pk` and return the result of `work`, which must release the lease.

    Returns None if the row cannot be claimed or if `work` fails. A failure is stored on the row,
    and the row is tried again later. `kind` is the kind of the row in the log.
    """
    lease = claim(rows, pk)
    if lease is None:
        return None
    try:
        return work(lease)
    except LeaseLostError:
        log.info("lease_lost %s=%s", kind, pk)
    except UnavailableError as error:
        log.warning("memory_failed %s=%s reason=%s", kind, pk, error)
        record_failure(lease, str(error), error.retry_after_s)
    except Exception as error:
        # Catch every error, so that the row does not stay leased. It is retried after a pause or,
        # if the connection was lost, without one.
        log.exception("memory_failed %s=%s", kind, pk)
        if isinstance(error, OperationalError | InterfaceError) and not connection.is_usable():
            lease.abandon()
        else:
            record_failure(lease, f"{INTERNAL_FAILURE}: {type(error).__name__}.")
    return None


@transaction.atomic
def record_failure(lease: Lease, reason: str, retry_after: float | None = None) -> None:
    """Release the lease and record the failure in the activity log, unless another worker has
    claimed the row or the row was deleted.
    """
    if lease.held_row.exists():
        lease.fail(reason, retry_after)
        session = lease.pk if lease.model is Cursor else None
        record_activity(
            lease.project, ActivityVerb.FAILED, session_id=session, reason=reason[:200], count=1
        )
