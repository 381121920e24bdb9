"""Summaries on request: summarise a session now, although it is not idle."""

import logging
import time
from collections.abc import Sequence
from dataclasses import dataclass

from django.db import connection
from django.utils.translation import gettext_lazy as _

from chat.models import Session
from memory.models import Cursor, Entry
from memory.tasks import summarise_session
from projects.core.errors import StrOrPromise

log = logging.getLogger(__name__)

BROKER_UNAVAILABLE = _(
    "The summary cannot be started now. It will be written when nobody has sent a message for a "
    "while."
)
# How long a request waits for the entry.
SUMMARY_WAIT_S = 2.0
SUMMARY_POLL_S = 0.1


@dataclass(frozen=True)
class SummaryRequest:
    """The result of requesting a summary of the messages after the seq `after`.

    `reason` is why no summary is written now, and `is_broker_down` is true if the broker is the
    reason. If `queued` is false and there is no reason, a summary is already being written.
    """

    after: int
    queued: bool = False
    reason: StrOrPromise = ""
    is_broker_down: bool = False


@dataclass(frozen=True)
class SummaryProgress:
    """The `entries` of a session after some seq. If there are none, `is_pending` is true if one
    will be written, and `error` is the reason why the last attempt failed.
    """

    entries: Sequence[Entry]
    is_pending: bool = False
    error: str = ""


def request_summary(session: Session) -> SummaryRequest:
    """Queue a summary of the new messages of `session`, unless one is being written."""
    cursor = Cursor.objects.filter(pk=session.pk)
    after = cursor.values_list("summarised_through", flat=True).first() or 0
    if not cursor.waiting().exists():
        return SummaryRequest(after, reason=_reason(session))
    if not cursor.unleased().exists():
        return SummaryRequest(after)
    # An error of an earlier attempt must not be shown as the result of this request.
    cursor.update(last_error="")
    try:
        summarise_session.delay(str(session.pk), force=True)
    except Exception as error:
        # Brokers have no common exception class.
        log.warning("summary_enqueue_failed session=%s cause=%r", session.pk, error)
        return SummaryRequest(after, reason=BROKER_UNAVAILABLE, is_broker_down=True)
    return SummaryRequest(after, queued=True)


def _reason(session: Session) -> StrOrPromise:
    if not session.project.memory_enabled:
        return _("The project's memory is off.")
    if not session.remembered:
        return _("New messages are not remembered here.")
    return _("There is nothing new to summarise.")


def wait_for_entry(session: Session, after: int) -> Entry | None:
    """Wait up to SUMMARY_WAIT_S for the entry after the seq `after`; else return None."""
    end = time.monotonic() + SUMMARY_WAIT_S
    rows = _entries_after(session, after)
    while (entry := rows.first()) is None and time.monotonic() < end:
        if not connection.in_atomic_block:
            # Return the connection to the pool while waiting, so that other requests can use it.
            connection.close()
        time.sleep(SUMMARY_POLL_S)
    return entry


def summary_progress(session: Session, after: int) -> SummaryProgress:
    """Return the progress of a summary of the messages after the seq `after`."""
    cursor = Cursor.objects.filter(pk=session.pk)
    # Read before the entries: after them, an entry that is written meanwhile would be overlooked.
    waiting = cursor.waiting().first()
    if entries := list(_entries_after(session, after)):
        return SummaryProgress(entries)
    if waiting is None:
        return SummaryProgress([])
    failed = bool(waiting.last_error) and cursor.unleased().exists()
    return SummaryProgress([], not failed, waiting.last_error if failed else "")


def _entries_after(session: Session, after: int):
    rows = Entry.objects.filter(project=session.project_id, session=session, first_seq__gt=after)
    return rows.order_by("first_seq")
