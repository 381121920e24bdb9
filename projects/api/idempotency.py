"""The header `Idempotency-Key`: a repeated request is not executed again, but gets the first
result.

https://datatracker.ietf.org/doc/draft-ietf-httpapi-idempotency-key-header/

The objects that a request creates and the row that records them are committed together, so that
after a crash either both or neither exist. Requests do not wait: a repetition during the first
request gets 409.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import wraps
from hmac import HMAC
from typing import Any
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.db import connection, transaction
from django.http import Http404
from django.http.response import HttpResponseBase
from django.utils.crypto import salted_hmac
from django.utils.datastructures import MultiValueDict
from drf_spectacular.utils import OpenApiParameter
from rest_framework import status
from rest_framework.exceptions import ParseError
from rest_framework.request import Request

from projects.core.errors import ConflictError, NotFoundError
from projects.models import IdempotencyKey

IDEMPOTENCY_KEY_HEADER = OpenApiParameter(
    "Idempotency-Key",
    {"type": "string", "minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"},
    OpenApiParameter.HEADER,
    description=(
        "A name that you choose for this request, such as a random UUID. If you send the request "
        "again with the same key within 24 hours, it is not executed again. You get the response "
        "of the first request, rendered again, with the header `Idempotent-Replayed: true`."
    ),
)
KEY_PATTERN = re.compile(r"[!-~]{1,255}")
# The error responses to requests with a key, by status, for the schema.
ERROR_DESCRIPTIONS = {
    "409": "Another request with this key is running, or the operation is not possible in the "
    "current state (see `detail`). In the first case, `Retry-After` is set.",
    "410": "The object that the first request created was deleted, or you may no longer see it.",
    "422": "This key was used for another request.",
}


class RequestRunningError(ConflictError):
    """Another request with this key is running, and has not been committed yet."""

    default_message = "The same request is running. Repeat it later to get its response."
    retry_after_s = 1


class KeyReusedError(ConflictError):
    """The key was used for another request."""

    status = 422
    default_message = "This Idempotency-Key was used for another request."


class ResultGoneError(NotFoundError):
    """The object that the first request created was deleted or hidden."""

    status = 410
    default_message = "The object that was created with this Idempotency-Key no longer exists."


@dataclass(frozen=True)
class IdempotentResult:
    """The ids of the objects that a request created. `respond` is called after the commit."""

    status: int
    ids: Mapping[str, object]
    respond: Callable[[], HttpResponseBase]


# Renders the created object again from its ids. Raises Http404 if it was deleted or hidden.
Replay = Callable[[Any, Request, Mapping[str, Any]], HttpResponseBase]


@dataclass(frozen=True)
class KeyUse:
    """A request with a key: its user, and digests of the key and of the request."""

    user: int
    # The project to which the token is limited; None for other tokens.
    project: UUID | None
    key: str
    request: str

    @classmethod
    def of(cls, user, token, key: str, method: str, path: str, data: object) -> "KeyUse":
        """Return the use of `key`. `data` is the parsed body. Files in it are read in chunks."""
        project = token.project_id if token is not None else None
        return cls(
            user.pk,
            project,
            digest("key", [str(user.pk), str(project), key]).hexdigest(),
            digest("request", [method, path], data).hexdigest(),
        )

    def find(self) -> IdempotencyKey | None:
        """Return the stored result; None for a new or expired key. Raises `KeyReusedError` for
        another request.
        """
        keys = IdempotencyKey.objects.filter(user=self.user, project=self.project, key=self.key)
        stored = keys.first()
        # The hourly task has not deleted it yet.
        if stored is not None and keys.expired().delete()[0]:
            return None
        if stored is not None and stored.request != self.request:
            raise KeyReusedError
        return stored

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Open a transaction that excludes others with this key. Raises `RequestRunningError`."""
        # PostgreSQL releases the lock at the end of the transaction, even if the process dies.
        number = int.from_bytes(bytes.fromhex(self.key)[:8], signed=True)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [number])
            if cursor.fetchone() != (True,):
                raise RequestRunningError
            yield

    def save(self, status: int, ids: Mapping[str, object]) -> None:
        """Store the `ids` of created objects. Call this in the transaction that creates them."""
        IdempotencyKey.objects.create(
            user_id=self.user,
            project_id=self.project,
            key=self.key,
            request=self.request,
            status=status,
            made={name: None if pk is None else str(pk) for name, pk in ids.items()},
        )


def idempotent(replay: Replay) -> Callable[[Callable[..., Any]], Callable[..., HttpResponseBase]]:
    """Decorate a view's `post`, so that it runs once per key. `replay` answers repeated requests.

    The view must return an `IdempotentResult`, or a response whose data has the `id` of the created
    object. With a key, the view runs in a transaction, so slow work belongs in `respond`. A request
    that raises an exception or responds with a status of 400 or higher stores nothing, and can be
    repeated.
    """

    def decorate(post: Callable[..., Any]) -> Callable[..., HttpResponseBase]:
        @wraps(post)
        def run_once(view: Any, request: Request, *args: Any, **kwargs: Any) -> HttpResponseBase:
            use = _key_use(request)
            if use is None:
                return _as_result(post(view, request, *args, **kwargs)).respond()
            stored = use.find()
            if stored is None:
                with use.lock():
                    stored = use.find()
                    if stored is None:
                        result = _as_result(post(view, request, *args, **kwargs))
                        if result.status < status.HTTP_400_BAD_REQUEST:
                            use.save(result.status, result.ids)
                        else:
                            transaction.set_rollback(True)
                if stored is None:
                    return result.respond()
            try:
                response = replay(view, request, stored.made)
            except Http404 as error:
                raise ResultGoneError from error
            if response.status_code == status.HTTP_200_OK and not response.streaming:
                response.status_code = stored.status
            response.headers["Idempotent-Replayed"] = "true"
            return response

        run_once.is_idempotent = True  # type: ignore[attr-defined]
        return run_once

    return decorate


def _key_use(request: Request) -> KeyUse | None:
    key = request.headers.get("Idempotency-Key")
    if key is None:
        return None
    if not KEY_PATTERN.fullmatch(key):
        raise ParseError("An Idempotency-Key must have 1 to 255 visible ASCII characters.")
    path = request.get_full_path()
    return KeyUse.of(request.user, request.auth, key, request.method, path, request.data)


def _as_result(returned: Any) -> IdempotentResult:
    if isinstance(returned, IdempotentResult):
        return returned
    ids = {"id": returned.data["id"]} if returned.status_code < 400 else {}
    return IdempotentResult(returned.status_code, ids, lambda: returned)


def digest(purpose: str, words: list[str], data: object = None) -> HMAC:
    """Return a keyed digest of `words` and of a parsed body."""
    result: HMAC = salted_hmac(f"projects.idempotency.{purpose}", "", algorithm="sha256")
    for word in words:
        _add_word(result, word)
    if isinstance(data, MultiValueDict):
        for name in sorted(data):
            for value in data.getlist(name):
                _add_word(result, name)
                _add_value(result, value)
    elif data is not None:
        # In chunks, because a body may contain megabytes of images.
        for chunk in json.JSONEncoder(sort_keys=True).iterencode(data):
            result.update(chunk.encode())
    return result


def _add_value(result: HMAC, value: object) -> None:
    if not isinstance(value, UploadedFile):
        _add_word(result, str(value))
        return
    _add_word(result, value.name or "")
    _add_word(result, str(value.size))
    for chunk in value.chunks():
        result.update(chunk)
    value.seek(0)


def _add_word(result: HMAC, word: str) -> None:
    """Add `word` with its length before it, so that different lists have different digests."""
    text = word.encode("utf-8", "surrogatepass")
    result.update(b"%d:" % len(text) + text)
