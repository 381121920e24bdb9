"""Rate limits of tokens, users and pages. Requests of all processes are counted in the database.

The API responds 429, and sends headers with the number of remaining requests:
https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-07

The generic cell rate algorithm is used (https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm).
For example, a rate of 60 per minute permits 60 requests at once, and then one per second. A single
statement checks and counts.
"""

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.db.models.functions import Now
from django.http import HttpRequest
from django.utils.crypto import salted_hmac
from django.utils.translation import gettext_lazy as _
from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from projects.core.database import fetch
from projects.core.errors import LimitError
from projects.core.http.client_ip import client_network
from projects.models import Bucket, Token

RATE_LIMIT_DESCRIPTION = "Too many requests. `Retry-After` is the number of seconds to wait."
# The rate of all tokens of a user together, as a multiple of the rate of each token.
TOKENS_PER_USER = 3

# If a request exceeds one rate, it does not count for any rate. The condition of the UPDATE repeats
# the check, for concurrent requests. If a bucket is more than a whole span ahead, it was filled
# with a former setting of the rate.
_COUNT = """
    WITH wish AS MATERIALIZED (
        SELECT subject, cost * interval '1 second' AS cost,
               statement_timestamp() + span * interval '1 second' AS full_at
        FROM unnest(%s::text[], %s::float8[], %s::float8[]) AS given (subject, cost, span)
    ), over AS MATERIALIZED (
        SELECT subject, free_at + cost - full_at AS wait
        FROM wish JOIN projects_bucket USING (subject)
        WHERE free_at + cost > full_at AND free_at <= full_at
    ), spent AS (
        INSERT INTO projects_bucket AS bucket (subject, free_at)
        SELECT subject, statement_timestamp() + cost FROM wish
        WHERE NOT EXISTS (SELECT FROM over)
        ORDER BY subject
        ON CONFLICT (subject) DO UPDATE
        SET free_at = excluded.free_at + CASE
            WHEN bucket.free_at > (SELECT full_at FROM wish WHERE subject = bucket.subject)
            THEN interval '0'
            ELSE greatest(bucket.free_at - statement_timestamp(), interval '0')
        END
        WHERE NOT EXISTS (
            SELECT FROM wish WHERE subject = bucket.subject
            AND bucket.free_at + cost > full_at AND bucket.free_at <= full_at
        )
        RETURNING subject, free_at - statement_timestamp() AS used
    )
    SELECT subject, extract(epoch FROM wait)::float8, NULL FROM over
    UNION ALL
    SELECT subject, NULL, extract(epoch FROM used)::float8 FROM spent
"""


@dataclass(frozen=True)
class RateLimitState:
    """The state of one rate. After `reset_s` seconds, `limit` requests are possible again."""

    limit: int
    remaining: int
    reset_s: int

    @property
    def headers(self) -> dict[str, str]:
        return {
            "RateLimit-Limit": str(self.limit),
            "RateLimit-Remaining": str(self.remaining),
            "RateLimit-Reset": str(self.reset_s),
        }


class RateLimitExceededError(LimitError):
    """Too many requests. The next request may succeed after `retry_after_s` seconds."""

    status = 429
    default_message = _("Too many attempts. Wait a few minutes, then try again.")

    def __init__(self, state: RateLimitState, retry_after_s: int) -> None:
        super().__init__(code="rate_limited")
        self.state = state
        self.retry_after_s = retry_after_s


def count_request(user, token: Token, rates: Iterable[str]) -> RateLimitState | None:
    """Count one request for each of `rates`, both for the token and for its user.

    `rates` are names in the setting RATES. Returns the rate with the fewest remaining requests, or
    None if all of them are off. Raises `RateLimitExceededError`.
    """
    limits: dict[str, tuple[int, int]] = {}
    for name in rates:
        rate = settings.RATES[name]
        if rate is not None:
            limit, span = rate
            limits[f"token:{token.public_id}:{name}"] = limit, span
            limits[f"user:{user.pk}:{name}"] = limit * TOKENS_PER_USER, span
    return _count(limits) if limits else None


def count_page(request: HttpRequest) -> None:
    """Count one request of a page, by user. If nobody is signed in, count it by client network.

    Raises `RateLimitExceededError`.
    """
    if settings.PAGE_RATE is None:
        return
    if request.user.is_authenticated:
        subject = f"user:{request.user.pk}:pages"
    else:
        # Only a digest of the address is stored, because an address identifies a person.
        subject = f"address:{salted_hmac('pages', client_network(request)).hexdigest()}:pages"
    _count({subject: settings.PAGE_RATE})


def _count(limits: Mapping[str, tuple[int, int]]) -> RateLimitState:
    """Count one request for each subject in `limits`, which has pairs (requests, seconds)."""
    subjects = sorted(limits)
    costs = {subject: limits[subject][1] / limits[subject][0] for subject in subjects}
    spans = [float(limits[subject][1]) for subject in subjects]
    params = [subjects, [costs[subject] for subject in subjects], spans]
    counted = fetch(_COUNT, params, prepared=True)
    rows = {subject: (wait, used) for subject, wait, used in counted}
    waits = {subject: wait for subject, (wait, _used) in rows.items() if wait is not None}
    if not waits:
        # If a subject has no row, a concurrent request took the last place.
        waits = {subject: costs[subject] for subject in subjects if subject not in rows}
    if waits:
        subject = max(waits, key=lambda subject: waits[subject])
        limit, span = limits[subject]
        state = RateLimitState(limit, 0, math.ceil(span))
        raise RateLimitExceededError(state, max(1, math.ceil(waits[subject])))
    states = [_state(*limits[subject], rows[subject][1]) for subject in subjects]
    return min(states, key=lambda state: state.remaining)


def _state(limit: int, span: int, used: float) -> RateLimitState:
    # Add a tolerance, because the used seconds are rounded to microseconds.
    remaining = int((span - used) * limit / span + 1e-3)
    return RateLimitState(limit, remaining, math.ceil(used))


def delete_expired() -> int:
    """Delete the buckets that are fully available again. Return their number."""
    return Bucket.objects.filter(free_at__lt=Now()).delete()[0]


class TokenRateThrottle(BaseThrottle):
    """Counts requests that only read for the rate `reads`, and all others for `writes`.

    A view with the attribute `rate = "replies"` returns an answer of a model, and also counts for
    that rate.
    """

    retry_after_s: int | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        if request.auth is None:
            return True
        rates = ["reads"] if request.method in SAFE_METHODS else ["writes"]
        if request.method not in SAFE_METHODS and getattr(view, "rate", None):
            rates.append(view.rate)
        try:
            state = count_request(request.user, request.auth, rates)
        except RateLimitExceededError as error:
            state, self.retry_after_s = error.state, error.retry_after_s
        if state is not None:
            view.headers = {**view.headers, **state.headers}
        return self.retry_after_s is None

    def wait(self) -> int | None:
        return self.retry_after_s
