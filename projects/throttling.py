"""How often tokens and users may ask, counted where all processes see it.

The generic cell rate algorithm (https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm): a rate
of 60 a minute lets 60 through at once, and then one a second. One statement asks and counts.
"""

import math
from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db import connection
from django.db.models.functions import Now

from projects.models import Bucket, Token

# What all tokens of a user may together, as a multiple of what each may.
TOKENS_A_USER = 3

# What is over its rate already keeps all from being counted; the last condition holds for who came
# at the same time. What is further ahead than a whole span is left from another rate, set before.
_SPEND = """
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
class Left:
    """What is left of the rate that is nearest to its end; seconds until all of it is back."""

    limit: int
    remaining: int
    reset: int


class Exceeded(Exception):
    """Asked too often; again after `wait` seconds."""

    def __init__(self, left: Left, wait: int) -> None:
        super().__init__()
        self.left = left
        self.wait = wait


def spend(user, token: Token, rates: Iterable[str]) -> Left | None:
    """Counts one request against each of `rates`, for the token and for its user. Raises Exceeded.

    The names of rates are those of the setting RATES. None when all of them are off.
    """
    limits = dict(_limits(user, token, rates))
    if not limits:
        return None
    subjects = sorted(limits)
    costs = [limits[one][1] / limits[one][0] for one in subjects]
    spans = [float(limits[one][1]) for one in subjects]
    with connection.cursor() as cursor:
        cursor.execute(_SPEND, [subjects, costs, spans])
        rows = {subject: (wait, used) for subject, wait, used in cursor.fetchall()}
    over = {one: rows[one][0] for one in subjects if one in rows and rows[one][0] is not None}
    for one in subjects:
        if one not in rows and not over:
            # Somebody else was let through in this very moment.
            over[one] = limits[one][1] / limits[one][0]
    if over:
        subject = max(over, key=lambda one: over[one])
        limit, span = limits[subject]
        raise Exceeded(Left(limit, 0, math.ceil(span)), max(1, math.ceil(over[subject])))
    return min(
        (_left(*limits[one], rows[one][1]) for one in subjects), key=lambda left: left.remaining
    )


def _limits(user, token: Token, rates: Iterable[str]) -> Iterable[tuple[str, tuple[int, int]]]:
    """(whose and which, (how many, in so many seconds))."""
    for name in rates:
        rate = settings.RATES[name]
        if rate is not None:
            limit, span = rate
            yield f"token:{token.public_id}:{name}", (limit, span)
            yield f"user:{user.pk}:{name}", (limit * TOKENS_A_USER, span)


def _left(limit: int, span: int, used: float) -> Left:
    # The used seconds are rounded to microseconds.
    return Left(limit, int((span - used) * limit / span + 1e-3), math.ceil(used))


def clear() -> int:
    """Removes what tells nothing any more; returns how many."""
    return Bucket.objects.filter(free_at__lt=Now()).delete()[0]
