"""Polls the database once a second for all streams of the process.

LISTEN is not used, because it does not work with a transaction pooler and needs its own connection.
"""

import asyncio
import json
import logging
from collections import Counter
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar
from uuid import UUID
from weakref import WeakKeyDictionary

from django.conf import settings
from django.utils.translation import gettext_lazy as _

from chat.metrics import STREAMS
from chat.models import Session, Visibility
from projects.core.database import fetch, in_thread
from projects.core.errors import LimitError
from projects.models import Project

log = logging.getLogger(__name__)

T = TypeVar("T")

POLL_INTERVAL_S = 1.0


# Plain SQL, because Django would take 2 ms to compile these queries every second in each process.
_MEMBERS = """
    SELECT member.user_id, member.project_id FROM projects_membership member
    JOIN auth_user ON auth_user.id = member.user_id AND auth_user.is_active
    WHERE member.user_id = ANY(%s) AND member.project_id = ANY(%s)
"""
_VALID_TOKENS = """
    SELECT token.digest, token.project_id FROM projects_token token
    JOIN auth_user ON auth_user.id = token.user_id AND auth_user.is_active
    WHERE token.digest = ANY(%s) AND (token.expiry IS NULL OR token.expiry > statement_timestamp())
"""
_SESSIONS = """
    SELECT id, visibility, creator_id FROM chat_session
    WHERE id = ANY(%s) AND deleted_at IS NULL
"""
_VERSIONS = "SELECT id, version FROM chat_session WHERE id = ANY(%s)"
_REPLIES = """
    SELECT id, text, status, lookups FROM chat_message WHERE id = ANY(%s) AND deleted_at IS NULL
"""
_UNSTOPPED = "SELECT id FROM chat_message WHERE id = ANY(%s) AND NOT stop_requested"


@dataclass(frozen=True)
class StreamGrant:
    """The right to keep reading an open stream after the request that opened it was authorised.

    Without a session, only access to the project is checked. `token` is the digest of the API
    token; None for pages.
    """

    user: int
    project: UUID
    session: UUID | None = None
    token: str | None = None

    @classmethod
    def for_request(cls, request, place: Session | Project) -> "StreamGrant":
        """Return the grant of a request that may read `place`."""
        token = getattr(request, "auth", None)
        digest = None if token is None else token.pk
        if isinstance(place, Project):
            return cls(request.user.pk, place.pk, None, digest)
        return cls(request.user.pk, place.project_id, place.pk, digest)


class TooManyStreamsError(LimitError):
    """The user or the project already has the maximum number of open streams."""

    status = 429
    default_code = "rate_limited"
    default_message = _("Too many tabs are open. Close some of them and try again.")
    retry_after_s = 30


# The open streams of this process, by user and by project. Only changed in event loops.
_open_streams: Counter[tuple[str, int | UUID]] = Counter()


def require_free_stream(grant: StreamGrant) -> None:
    """Raise `TooManyStreamsError` if this process already has the maximum number of streams.

    Concurrent requests may exceed the limit by the number of threads, because a stream is counted
    once its response has begun.
    """
    if (
        _open_streams["user", grant.user] >= settings.STREAMS_PER_USER
        or _open_streams["project", grant.project] >= settings.STREAMS_PER_PROJECT
    ):
        raise TooManyStreamsError


@contextmanager
def counted(counts: Counter[T], *keys: T) -> Iterator[None]:
    """Within the block, `counts` counts each of `keys` once more."""
    counts.update(keys)
    try:
        yield
    finally:
        for key in keys:
            counts[key] -= 1
            if not counts[key]:
                del counts[key]


def withdrawn_grants(grants: Collection[StreamGrant]) -> frozenset[StreamGrant]:
    """Return the grants that are no longer valid. Takes at most three queries.

    A grant ends if its token was revoked or has expired, if the user is inactive or no longer a
    member, or if the session was deleted or hidden from the user.
    """
    if not grants:
        return frozenset()
    users = {grant.user for grant in grants}
    projects = {grant.project for grant in grants}
    members = set(fetch(_MEMBERS, [list(users), list(projects)], prepared=True))
    digests = {grant.token for grant in grants if grant.token is not None}
    sessions = {grant.session for grant in grants if grant.session is not None}
    # The project to which each token is limited, and the only reader of each session; None means
    # any.
    token_projects: dict[str, UUID | None] = {}
    readers: dict[UUID, int | None] = {}
    if digests:
        token_projects = dict(fetch(_VALID_TOKENS, [list(digests)], prepared=True))
    if sessions:
        readers = {
            pk: creator or 0 if visibility == Visibility.PRIVATE else None
            for pk, visibility, creator in fetch(_SESSIONS, [list(sessions)], prepared=True)
        }

    def is_valid(grant: StreamGrant) -> bool:
        if grant.token and token_projects.get(grant.token, grant) not in (None, grant.project):
            return False
        if grant.session and readers.get(grant.session, grant) not in (None, grant.user):
            return False
        return (grant.user, grant.project) in members

    return frozenset(grant for grant in grants if not is_valid(grant))


@dataclass(frozen=True)
class PollResult:
    """The state of all watched objects.

    `versions` are the versions of sessions. `replies` has the stored text, status and lookups of
    each reply, without deleted replies. `stops` are the replies that a reader has asked to stop,
    and those whose row was deleted with their chat. `withdrawn` are grants that are no longer
    valid.
    """

    versions: dict[UUID, int] = field(default_factory=dict)
    replies: dict[UUID, tuple[str, str, Any]] = field(default_factory=dict)
    stops: frozenset[UUID] = frozenset()
    withdrawn: frozenset[StreamGrant] = frozenset()


class Poller:
    """The watched sessions, replies and grants of one event loop, and the task that polls them."""

    def __init__(self) -> None:
        self.sessions: Counter[UUID] = Counter()
        self.replies: Counter[UUID] = Counter()
        self.stoppable: Counter[UUID] = Counter()
        self._grants: dict[StreamGrant, set[asyncio.Event]] = {}
        self._next: asyncio.Future[PollResult] | None = None
        self._task: asyncio.Task[None] | None = None

    @contextmanager
    def checking(self, grant: StreamGrant) -> Iterator[asyncio.Event]:
        """Within the block, check `grant`. The event is set once the grant is no longer valid."""
        withdrawn = asyncio.Event()
        self._grants.setdefault(grant, set()).add(withdrawn)
        self._ensure_running()
        try:
            user, project = ("user", grant.user), ("project", grant.project)
            with STREAMS.track_inprogress(), counted(_open_streams, user, project):
                yield withdrawn
        finally:
            self._grants[grant].discard(withdrawn)
            if not self._grants[grant]:
                del self._grants[grant]

    async def next_result(self) -> PollResult:
        """Wait for the next poll, at most one interval, and return its result."""
        if self._next is None:
            self._next = asyncio.get_running_loop().create_future()
        self._ensure_running()
        return await asyncio.shield(self._next)

    def _ensure_running(self) -> None:
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._poll_regularly())

    async def _poll_regularly(self) -> None:
        while self.sessions or self.replies or self.stoppable or self._grants:
            await asyncio.sleep(POLL_INTERVAL_S)
            waiting, self._next = self._next, None
            try:
                result = await in_thread(
                    query_state,
                    list(self.sessions),
                    list(self.replies),
                    list(self.stoppable),
                    list(self._grants),
                )
            except BaseException as error:
                if waiting is not None and not waiting.done():
                    waiting.set_exception(error)
                if not isinstance(error, Exception):
                    raise
                # Waiting streams receive the error. Grants are checked again in the next poll.
                log.warning("poll_failed cause=%r", error)
                continue
            for grant in result.withdrawn:
                for withdrawn in self._grants.get(grant, ()):
                    withdrawn.set()
            if waiting is not None and not waiting.done():
                waiting.set_result(result)


_pollers: WeakKeyDictionary[asyncio.AbstractEventLoop, Poller] = WeakKeyDictionary()


def get_poller() -> Poller:
    """Return the poller of the running event loop."""
    return _pollers.setdefault(asyncio.get_running_loop(), Poller())


def query_state(
    sessions: list[UUID], replies: list[UUID], stoppable: list[UUID], grants: list[StreamGrant]
) -> PollResult:
    """Query the database. Takes at most six queries for any number of watched objects."""
    texts = fetch(_REPLIES, [replies], prepared=True) if replies else []
    unstopped = fetch(_UNSTOPPED, [stoppable], prepared=True) if stoppable else []
    return PollResult(
        versions=dict(fetch(_VERSIONS, [sessions], prepared=True)) if sessions else {},
        replies={pk: (text, status, json.loads(lookups)) for pk, text, status, lookups in texts},
        stops=frozenset(stoppable).difference(pk for (pk,) in unstopped),
        withdrawn=withdrawn_grants(grants),
    )
