"""Answers 429 to who asks too often, and tells everybody how much they have left.

The headers are RateLimit-Limit, RateLimit-Remaining and RateLimit-Reset (seconds), as in
https://datatracker.ietf.org/doc/html/draft-ietf-httpapi-ratelimit-headers-07
"""

from typing import Any

from rest_framework.permissions import SAFE_METHODS
from rest_framework.request import Request
from rest_framework.throttling import BaseThrottle

from projects.throttling import Exceeded, Left, spend

TOO_OFTEN = "Asked too often. `Retry-After` tells after how many seconds to ask again."


class Rate(BaseThrottle):
    """Reading counts as `reads`, all else as `writes`; and what has a model answer, as a view's
    attribute `rate` says, as `replies` too.
    """

    _wait: int | None = None

    def allow_request(self, request: Request, view: Any) -> bool:
        if request.auth is None:
            return True
        try:
            left = spend(request.user, request.auth, _rates(request, view))
        except Exceeded as exceeded:
            left, self._wait = exceeded.left, exceeded.wait
        if left is not None:
            view.headers = {**view.headers, **headers(left)}
        return self._wait is None

    def wait(self) -> int | None:
        return self._wait


def _rates(request: Request, view: Any) -> list[str]:
    if request.method in SAFE_METHODS:
        return ["reads"]
    more = getattr(view, "rate", None)
    return ["writes", more] if more else ["writes"]


def headers(left: Left) -> dict[str, str]:
    return {
        "RateLimit-Limit": str(left.limit),
        "RateLimit-Remaining": str(left.remaining),
        "RateLimit-Reset": str(left.reset),
    }
