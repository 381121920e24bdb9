"""The header `Idempotency-Key`: a request that is sent again is answered again, not done again.

After https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.db import transaction
from django.http import Http404
from django.http.response import HttpResponseBase
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.exceptions import APIException, ParseError
from rest_framework.request import Request

from projects.idempotency import OtherRequest, UnderWay, Use
from projects.models import IdempotencyKey

KEY = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description=(
        "A name of your own for this request, such as a random UUID. Sent again with it within 24 "
        "hours, the request is not carried out again: it gets the first answer, as it would read "
        "now, with the header `Idempotent-Replayed: true`."
    ),
)
_KEY = re.compile(r"[!-~]{1,255}")
# The status of an answer to a key, with what it means.
REFUSALS = {
    "409": "Another request with this key is being carried out, or it makes no sense as things are "
    "(see `detail`). `Retry-After` tells when to ask again for the first.",
    "410": "What this key made is gone, or no longer yours to see.",
    "422": "This key was used for another request.",
}


class Doubled(APIException):
    status_code = status.HTTP_409_CONFLICT
    default_detail = "The same request is being carried out. Ask again for its answer."
    # Seconds, as the header Retry-After.
    wait = 1


class Reused(APIException):
    status_code = status.HTTP_422_UNPROCESSABLE_ENTITY
    default_detail = "This Idempotency-Key was used for another request."


class Gone(APIException):
    status_code = status.HTTP_410_GONE
    default_detail = "What was made with this Idempotency-Key is gone."


@dataclass(frozen=True)
class Made:
    """What a request made, by ids, and the first answer, given when that is committed."""

    status: int
    ids: Mapping[str, object]
    answer: Callable[[], HttpResponseBase]


# Tells again of what was made, by its ids. Raises Http404 when that is gone, or out of sight.
Again = Callable[[Any, Request, Mapping[str, Any]], HttpResponseBase]


def idempotent(again: Again) -> Callable[[Callable[..., Any]], Callable[..., HttpResponseBase]]:
    """Has a view's `post` heed the header: carried out once, told `again` to who repeats it.

    It returns Made, or a response whose data has the `id` of what was made. With a key it runs
    inside a transaction, so that what takes time belongs into the answer of Made. What it refuses,
    by raising or with a status from 400 on, leaves nothing and may be tried again.
    """

    def decorate(post: Callable[..., Any]) -> Callable[..., HttpResponseBase]:
        @wraps(post)
        def once(view: Any, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
            use = _use(request)
            if use is None:
                return _made(post(view, request, *args, **kwargs)).answer()
            try:
                known = use.known()
                if known is None:
                    with use.alone():
                        known = use.known()
                        if known is None:
                            made = _made(post(view, request, *args, **kwargs))
                            _keep(use, made)
                if known is None:
                    return made.answer()
            except UnderWay as doubled:
                raise Doubled from doubled
            except OtherRequest as other:
                raise Reused from other
            return _tell(again, view, request, known)

        once.is_idempotent = True  # type: ignore[attr-defined]
        return once

    return decorate


def _use(request: Request) -> Use | None:
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not _KEY.fullmatch(key):
        raise ParseError("An Idempotency-Key is 1 to 255 visible characters of ASCII.")
    path = request.get_full_path()
    return Use.of(request.user, request.auth, key, request.method, path, request.data)


def _made(returned: Any) -> Made:
    if isinstance(returned, Made):
        return returned
    ids = {"id": returned.data["id"]} if returned.status_code < 400 else {}
    return Made(returned.status_code, ids, lambda: returned)


def _keep(use: Use, made: Made) -> None:
    if made.status < 400:
        use.keep(made.status, made.ids)
    else:
        transaction.set_rollback(True)


def _tell(again: Again, view: Any, request: Request, known: IdempotencyKey) -> HttpResponseBase:
    try:
        response = again(view, request, known.made)
    except Http404 as gone:
        raise Gone from gone
    if response.status_code == status.HTTP_200_OK and not response.streaming:
        response.status_code = known.status
    response.headers["Idempotent-Replayed"] = "true"
    return response
