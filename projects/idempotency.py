"""Once and no more: what is carried out under a key, and what is known of it afterwards.

What a request makes and the row that says so are committed together: whatever dies, either both
are there or neither. Nobody waits: who comes while the first is at it is told so.
"""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import timedelta
from hmac import HMAC
from uuid import UUID

from django.core.files.uploadedfile import UploadedFile
from django.db import connection, transaction
from django.db.models.functions import Now
from django.utils.crypto import salted_hmac
from django.utils.datastructures import MultiValueDict

from projects.models import IdempotencyKey

KEPT = timedelta(hours=24)


class UnderWay(Exception):
    """Another request with this key is at it, and has not committed."""


class OtherRequest(Exception):
    """The key was used for something else."""


@dataclass(frozen=True)
class Use:
    """A key as one request uses it: whose, and digests of it and of what is asked."""

    user: int
    # The project that the token opens, if it opens but one.
    project: UUID | None
    key: str
    request: str

    @classmethod
    def of(cls, user, token, key: str, method: str, path: str, data: object) -> "Use":
        """`data` is what came as the body, read: files in it are read piece by piece."""
        project = token.project_id if token is not None else None
        return cls(
            user.pk,
            project,
            _digest("key", [str(user.pk), str(project), key]).hexdigest(),
            _digest("request", [method, path], data).hexdigest(),
        )

    def known(self) -> IdempotencyKey | None:
        """What was done under the key. Raises OtherRequest."""
        mine = IdempotencyKey.objects.filter(user=self.user, project=self.project, key=self.key)
        found = mine.first()
        if found is not None and found.request != self.request:
            raise OtherRequest
        return found

    @contextmanager
    def alone(self) -> Iterator[None]:
        """A transaction beside which no other with this key is at work. Raises UnderWay."""
        # It goes with its transaction, and so with its process.
        lock = int.from_bytes(bytes.fromhex(self.key)[:8], signed=True)
        with transaction.atomic(), connection.cursor() as cursor:
            cursor.execute("SELECT pg_try_advisory_xact_lock(%s)", [lock])
            if cursor.fetchone() != (True,):
                raise UnderWay
            yield

    def keep(self, status: int, made: Mapping[str, object]) -> None:
        """Writes down, in the transaction that makes it, what was made: ids by their names."""
        ids = {name: None if pk is None else str(pk) for name, pk in made.items()}
        IdempotencyKey.objects.create(
            user_id=self.user,
            project_id=self.project,
            key=self.key,
            request=self.request,
            status=status,
            made=ids,
        )


def clear() -> int:
    """Forgets the keys whose time is over; returns how many."""
    return IdempotencyKey.objects.filter(created_at__lt=Now() - KEPT).delete()[0]


def _digest(what: str, words: list[str], data: object = None) -> HMAC:
    digest: HMAC = salted_hmac(f"projects.idempotency.{what}", "", algorithm="sha256")
    for word in words:
        _add(digest, word)
    if isinstance(data, MultiValueDict):
        for name in sorted(data):
            for value in data.getlist(name):
                _add(digest, name)
                _add_value(digest, value)
    elif data is not None:
        # In pieces: a body may bring megabytes of images.
        for piece in json.JSONEncoder(sort_keys=True).iterencode(data):
            digest.update(piece.encode())
    return digest


def _add_value(digest: HMAC, value: object) -> None:
    if not isinstance(value, UploadedFile):
        _add(digest, str(value))
        return
    _add(digest, value.name or "")
    _add(digest, str(value.size))
    for chunk in value.chunks():
        digest.update(chunk)
    value.seek(0)


def _add(digest: HMAC, word: str) -> None:
    """Told apart from the next by its length."""
    text = word.encode("utf-8", "surrogatepass")
    digest.update(b"%d:" % len(text) + text)
