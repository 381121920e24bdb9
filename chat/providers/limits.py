"""Spending limits of model calls, exact for any number of concurrent requests.

Before its request, a call to which a limit applies locks the row of the limit and reserves tokens:
those of the prompt, and the maximum number that the model may write. At the end of the call, the
used tokens replace the reservation. If the process dies, the reservation ends with its lease.
"""

import math
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta, tzinfo
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from django.conf import settings
from django.db import transaction
from django.db.models import Case, DecimalField, F, Q, QuerySet, Sum, Value, When
from django.db.models.functions import Coalesce, Now
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver
from django.utils import formats, timezone
from django.utils.translation import gettext, gettext_noop

from chat.models import Call
from chat.providers import prices
from chat.providers.base import ProviderError
from projects.models import Project, SpendingLimit

# Whether the server has limits is cached for this time. If it has none, checks need no query. A new
# limit reaches all processes within this time.
CACHE_S = 5.0
# The duration of a reservation, longer than the longest request.
LEASE = timedelta(seconds=settings.MODEL_TIMEOUT + 60)
# The tokens of calls of this age are final. A reply stores them at its end. After MODEL_TIMEOUT, it
# makes at most one more request, of at most LEASE.
SETTLED_AGE = 3 * LEASE
# The time for which a process keeps the sums of calls of that age. A month of 100,000 calls takes
# PostgreSQL 20 ms to sum, which each reservation would do under the lock of its limit.
SUMS_CACHE = timedelta(hours=1)
MAX_CACHED_SUMS = 10_000
# The minimum number of tokens for an answer. If fewer are left, the call is refused.
MIN_OUTPUT_TOKENS = 200
# The maximum reservation for an answer. Clients may request numbers that the columns of a call
# could not store.
MAX_OUTPUT_TOKENS = 10**8
# Users are warned when this share of a limit is used.
WARNING_SHARE = Decimal("0.8")
# The wait, in seconds, if replies in progress have reserved the rest of a limit. They may end soon.
RESERVED_RETRY_S = 15
ZERO = Decimal(0)

SUBJECT_NAMES = {
    "project": gettext_noop("this project"),
    "user": gettext_noop("your account"),
    "token": gettext_noop("this API token"),
    "group": gettext_noop("your group"),
}
_RESERVED = Q(outcome="", reserved_until__gt=Now())
# The columns of the used and of the reserved amounts, by unit.
_COLUMNS: dict[str, tuple[Any, Any]] = {
    "tokens": (F("input_tokens") + F("output_tokens"), F("reserved_tokens")),
    "dollars": (F("cost"), F("reserved_cost")),
}

_any_limit: tuple[float, bool] = (0.0, False)
# Cached sums by limit, user and periods, with the time up to which the calls are summed.
_settled_sums: dict[tuple[Any, ...], tuple[datetime, Mapping[str, Decimal]]] = {}


class Payer(NamedTuple):
    """The user who requested a call, and the public id of the API token."""

    user_id: Any = None
    token_id: UUID | None = None

    @classmethod
    def of(cls, request: Any) -> "Payer":
        token = getattr(request, "auth", None)
        return cls(request.user.pk, None if token is None else token.public_id)


class SpendingLimitError(ProviderError):
    """What is left of a limit after use and reservations is too little for a call. No other model
    is tried.
    """


@dataclass(frozen=True)
class Budget:
    """One amount of a limit, with its used and reserved parts. `unit` is "tokens" or "dollars",
    `period` is "day" or "month".
    """

    subject: str
    unit: str
    period: str
    maximum: Decimal
    used: Decimal
    reserved: Decimal
    resets_at: datetime

    @property
    def left(self) -> Decimal:
        return self.maximum - self.used - self.reserved

    @property
    def is_used_up(self) -> bool:
        return self.used >= self.maximum

    @property
    def is_nearly_used_up(self) -> bool:
        return self.used >= self.maximum * WARNING_SHARE

    @property
    def percent(self) -> int:
        return 100 if not self.maximum else min(100, int(100 * self.used / self.maximum))

    @property
    def name(self) -> str:
        return gettext(SUBJECT_NAMES[self.subject])

    @property
    def reset_text(self) -> str:
        """The time at which the limit is reset, with its time zone."""
        day = formats.date_format(self.resets_at, "DATE_FORMAT")
        return f"{day}, {self.resets_at:%H:%M} {self.resets_at.tzname()}"

    @property
    def amount(self) -> str:
        """The limit as text, such as “100,000 tokens a day”."""
        number = formats.number_format(self.maximum.normalize(), use_l10n=True, force_grouping=True)
        if self.unit == "dollars":
            number = f"${self.maximum:.2f}"
        return {
            ("tokens", "day"): gettext("%(number)s tokens a day"),
            ("tokens", "month"): gettext("%(number)s tokens a month"),
            ("dollars", "day"): gettext("%(number)s a day"),
            ("dollars", "month"): gettext("%(number)s a month"),
        }[self.unit, self.period] % {"number": number}

    def error(self, needed: Decimal = ZERO) -> SpendingLimitError:
        """Return the error for a call that exceeds the limit. The call needs at least `needed`."""
        context = {"who": self.name, "amount": self.amount, "time": self.reset_text}
        if self.reserved and not self.is_used_up and self.used + needed <= self.maximum:
            message = gettext(
                "Replies in progress have reserved the rest of the limit of %(who)s (%(amount)s). "
                "Try again in a moment. At the latest, the limit resets on %(time)s."
            )
            wait: float = RESERVED_RETRY_S
        else:
            if self.is_used_up:
                message = gettext(
                    "The limit of %(who)s is used up: %(amount)s. It resets on %(time)s."
                )
            else:
                message = gettext(
                    "The rest of the limit of %(who)s (%(amount)s) is not enough for this request. "
                    "The limit resets on %(time)s."
                )
            wait = max(1.0, (self.resets_at - timezone.now()).total_seconds())
        return SpendingLimitError(message % context, wait, status=429, code="spending_limit")


def any_limits() -> bool:
    """Return whether the server has any limit, cached for CACHE_S. It may read the database."""
    global _any_limit
    read_at, answer = _any_limit
    if not read_at or time.monotonic() - read_at > CACHE_S:
        answer = SpendingLimit.objects.exists()
        _any_limit = (time.monotonic(), answer)
    return answer


@receiver([post_save, post_delete], sender=SpendingLimit)
def clear_cache(**_: Any) -> None:
    global _any_limit
    _any_limit = (0.0, False)
    _settled_sums.clear()


def limits_for(project_id: Any, payer: Payer) -> list[SpendingLimit]:
    """Return the limits that apply to a call of `payer` in the project. Limits of groups only apply
    to users without a limit of their own.
    """
    own = Q(project=project_id)
    if payer.user_id is not None:
        own |= Q(user=payer.user_id) | Q(group__user=payer.user_id)
    if payer.token_id is not None:
        own |= Q(token=payer.token_id)
    matching = SpendingLimit.objects.filter(own).select_related("project")
    limits = list(matching.order_by("pk").distinct())
    if any(limit.user_id is not None for limit in limits):
        limits = [limit for limit in limits if limit.group_id is None]
    return limits


def budgets(limit: SpendingLimit, payer: Payer) -> list[Budget]:
    """Return the amounts of a limit and their used parts.

    Takes one query, and a second one if no sums are cached or if they are older than SUMS_CACHE.
    """
    subject = next(name for name in SUBJECT_NAMES if getattr(limit, f"{name}_id") is not None)
    project = limit.project if subject == "project" else None
    calls = Call.objects.order_by()
    if project is not None:
        calls = calls.filter(project=project)
    elif subject == "token":
        calls = calls.filter(token_id=payer.token_id)
    else:
        calls = calls.filter(user=payer.user_id)
    spans = _spans(timezone.get_default_timezone() if project is None else project.zone)
    amounts = [
        (unit, period, Decimal(maximum))
        for unit in ("tokens", "dollars")
        for period in spans
        if (maximum := getattr(limit, f"{unit}_per_{period}")) is not None
    ]
    if not amounts:
        return []
    used, reserved = {}, {}
    for unit, period, _maximum in amounts:
        within = Q(started_at__gte=spans[period][0])
        used_column, reserved_column = _COLUMNS[unit]
        used[f"{unit}_{period}_used"] = _sum(used_column, within & ~_RESERVED)
        reserved[f"{unit}_{period}_reserved"] = _sum(reserved_column, within & _RESERVED)
    first = min(spans[period][0] for _unit, period, _maximum in amounts)
    calls = calls.filter(started_at__gte=first)
    key = (limit.pk, payer.user_id, *spans.values(), *used)
    until, settled = _sum_settled(key, calls, used)
    row = calls.filter(started_at__gte=until).aggregate(**used, **reserved)
    return [
        Budget(
            subject,
            unit,
            period,
            maximum,
            settled[f"{unit}_{period}_used"] + row[f"{unit}_{period}_used"],
            row[f"{unit}_{period}_reserved"],
            spans[period][1],
        )
        for unit, period, maximum in amounts
    ]


def _sum_settled(
    key: tuple[Any, ...], calls: QuerySet[Call], sums: Mapping[str, Any]
) -> tuple[datetime, Mapping[str, Decimal]]:
    """Return a time, and the `sums` of the calls that began before it. These no longer change. Both
    are cached under `key`.
    """
    latest = timezone.now() - SETTLED_AGE
    cached = _settled_sums.get(key)
    # The time is later than `latest` if the clock was set back.
    if cached is None or not timedelta() <= latest - cached[0] <= SUMS_CACHE:
        if len(_settled_sums) >= MAX_CACHED_SUMS:
            _settled_sums.clear()
        cached = latest, calls.filter(started_at__lt=latest).aggregate(**sums)
        _settled_sums[key] = cached
    return cached


def _sum(value: Any, condition: Q) -> Any:
    counted = Case(When(condition, then=value), default=Value(0), output_field=_DECIMAL)
    return Coalesce(Sum(counted, output_field=_DECIMAL), Value(ZERO), output_field=_DECIMAL)


_DECIMAL = DecimalField(max_digits=30, decimal_places=6)


def _spans(zone: tzinfo) -> dict[str, tuple[datetime, datetime]]:
    """Return the start and end of the current day and of the current month in `zone`."""
    now = timezone.localtime(timezone=zone)
    today = now.date()
    month = today.replace(day=1)
    next_month = (month + timedelta(days=32)).replace(day=1)

    def midnight(day: Any) -> datetime:
        return datetime(day.year, day.month, day.day, tzinfo=zone)

    return {
        "day": (midnight(today), midnight(today + timedelta(days=1))),
        "month": (midnight(month), midnight(next_month)),
    }


def all_budgets(project_id: Any, payer: Payer) -> Iterator[Budget]:
    for limit in limits_for(project_id, payer):
        yield from budgets(limit, payer)


def require_within_limits(project: Project, payer: Payer) -> None:
    """Raise `SpendingLimitError` if a limit is used up. Call this before anything is written."""
    if not any_limits():
        return
    for budget in all_budgets(project.pk, payer):
        if budget.is_used_up:
            raise budget.error()


def warnings(project: Project, payer: Payer) -> list[Budget]:
    """Return the amounts that are nearly used up. If the server has no limits, usually takes no
    query.
    """
    if not any_limits():
        return []
    return [item for item in all_budgets(project.pk, payer) if item.is_nearly_used_up]


def reserve(
    call: Call, limits: list[SpendingLimit], payer: Payer, input_tokens: int, max_output: int
) -> int:
    """Insert `call` with a reservation. Return the number of output tokens that it may use, at most
    `max_output`. Raises `SpendingLimitError`.
    """
    with transaction.atomic():
        # The lock makes concurrent calls check and reserve one after the other. The sums are read
        # by later statements, which see what earlier holders of the lock have committed.
        rows = SpendingLimit.objects.select_for_update(no_key=True, of=("self",))
        locked = rows.filter(pk__in=[limit.pk for limit in limits]).order_by("pk")
        output = max_output = min(max_output, MAX_OUTPUT_TOKENS)
        for limit in locked.select_related("project"):
            for budget in budgets(limit, payer):
                output = min(output, _fitting_output(budget, call.model, input_tokens, max_output))
        # Stored now, so that the tokens of the prompt are known even if the process dies.
        call.input_tokens = input_tokens
        call.reserved_tokens = input_tokens + output
        call.reserved_cost = prices.cost(call.model, input_tokens, 0, output)
        call.reserved_until = Now() + LEASE  # type: ignore[assignment]
        call.save(force_insert=True)
    return output


def _fitting_output(budget: Budget, model: str, input_tokens: int, max_output: int) -> int:
    """Return the number of output tokens that fit. Raises `SpendingLimitError` if it is too
    small.
    """
    least_output = min(MIN_OUTPUT_TOKENS, max_output)
    if budget.unit == "tokens":
        fitting = int(budget.left) - input_tokens
        needed = Decimal(input_tokens + least_output)
    else:
        fixed, rate = prices.cost(model, input_tokens, 0, 0), prices.cost(model, 0, 0, 1_000_000)
        if fixed is None or rate is None:
            # A call without a known price does not count, but is refused if the limit is used up.
            if budget.is_used_up:
                raise budget.error()
            return max_output
        left = budget.left - fixed
        needed = fixed + rate * least_output / 1_000_000
        if left <= 0:
            raise budget.error(needed)
        fitting = math.floor(left * 1_000_000 / rate) if rate else max_output
    if fitting < least_output:
        raise budget.error(needed)
    return fitting


def end_expired() -> int:
    """Store that reserved calls of dead processes were interrupted. Return their number."""
    expired = Call.objects.filter(outcome="", reserved_until__lt=Now())
    return expired.update(outcome="interrupted", cost=None)
