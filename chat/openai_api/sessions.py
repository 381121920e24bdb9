"""Stored sessions of API clients: a client names a session and continues it with each request."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from chat import attachments
from chat.attachments import file_removal
from chat.conversations.messages import NewBranch, begin_reply, post_messages
from chat.importers.base import source_digest, source_key_for
from chat.models import Attachment, Message, Role, Session, SessionStatus
from chat.openai_api.transcript import LoadedImages, TranscriptMessage, draft_message
from chat.openai_api.transcript_matching import (
    ComparedMessage,
    Continuation,
    Match,
    Regeneration,
    match_transcript,
)
from chat.signals import import_planned
from projects.core.errors import InvalidInputError
from projects.core.models import new_id
from projects.models import Project

# The prefix of `source_key` of messages that were stored from API requests.
SOURCE_KEY_PREFIX = "v1:"
# The minimum number of messages at the end of the path that are compared with a request.
MIN_PATH_MESSAGES = 200


@dataclass(frozen=True)
class SessionKey:
    """The session that `user` names `name` in `project`."""

    project: Project
    user: object
    name: str

    @property
    def source_key(self) -> str:
        return source_key_for(f"{SOURCE_KEY_PREFIX}{self.user.pk}:{self.name}")  # type: ignore[attr-defined]

    @property
    def deleted_source_key(self) -> str:
        """The key that a deleted session gets when a new session takes its name."""
        return source_key_for(f"deleted:{self.source_key}")

    def find_session(self) -> Session | None:
        """Return the session. None if it does not exist or was deleted."""
        rows = Session.objects.not_deleted().filter(
            project=self.project, source_key=self.source_key
        )
        return rows.filter(creator=self.user).select_related("project").first()  # type: ignore[misc]


def match_request(
    session: Session | None, transcript: Sequence[TranscriptMessage], loaded: LoadedImages
) -> Match:
    """Compare a request with `session`. Return None if it does not continue the session.

    The last message of `transcript` must have the role user or tool.
    """
    request = [
        ComparedMessage(
            message.role,
            message.text,
            calls=frozenset(call.id for call in message.calls),
            tool_call_id=message.tool_call_id,
            images=tuple(loaded[url].sha256 for url in message.images if url in loaded),
        )
        for message in transcript
    ]
    if request[-1].role == Role.TOOL:
        return _match_tool_results(session, request)
    path = [] if session is None else _path_messages(session, len(transcript))
    return match_transcript(path, request, session is None or not session.last_seq)


class Uploads:
    """Files of images, stored before the session is locked because storage can be slow."""

    def __init__(self, key: SessionKey, loaded: LoadedImages) -> None:
        self.key, self.loaded = key, loaded
        self._unused: dict[str, list[Attachment]] = {}
        self._used: list[Attachment] = []

    def add(self, urls: Iterable[str]) -> None:
        for url in urls:
            if url in self.loaded:
                self._unused.setdefault(url, []).append(self._store(url))

    def take(self, url: str, session: Session) -> UUID:
        """Save the row of an image of `session`, and return its id."""
        unused = self._unused.get(url)
        attachment = unused.pop() if unused else self._store(url)
        self._used.append(attachment)
        attachment.session = session
        attachment.save(force_insert=True)
        file_removal.keep_file(attachment)
        return attachment.pk

    def delete_files(self, *, is_stored: bool) -> None:
        """Delete the files without a row. After a rollback, no file has a row."""
        rows = [attachment for unused in self._unused.values() for attachment in unused]
        for attachment in rows if is_stored else [*rows, *self._used]:
            file_removal.schedule_removal(self.key.project.pk, str(attachment.file.name))

    def _store(self, url: str) -> Attachment:
        return attachments.store_file(self.key.project.pk, self.key.user, "", self.loaded[url])


def continue_session(
    key: SessionKey,
    transcript: Sequence[TranscriptMessage],
    loaded: LoadedImages,
    match: Match = None,
) -> Message | None:
    """Store the new messages of a request in the session `key`, and return the pending reply.

    `match` is the result of `match_request` without a lock. It lets images be stored before the
    session is locked. Then the request is matched again. Returns None if the request no longer
    continues the session. The session is created if it does not exist. Unless the session of the
    request was forgotten, older messages from `match.start` on are stored too, but are not
    remembered. Raises `InvalidInputError` if the session is closed.
    """
    uploads = Uploads(key, loaded)
    reply = None
    try:
        if isinstance(match, Continuation):
            start = min(match.start, _first_new_index(transcript))
            uploads.add(url for message in transcript[start:] for url in message.images)
        reply = _continue_locked(key, transcript, uploads)
    finally:
        uploads.delete_files(is_stored=reply is not None)
    return reply


@transaction.atomic
def _continue_locked(
    key: SessionKey, transcript: Sequence[TranscriptMessage], uploads: Uploads
) -> Message | None:
    session = _get_or_create_locked(key)
    if session.status == SessionStatus.CLOSED:
        raise InvalidInputError(_("This chat is closed."), code="session_closed")
    match = match_request(session, transcript, uploads.loaded)
    if match is None:
        return None
    if isinstance(match, Regeneration):
        question = session.messages.get(pk=match.id)
        question.session = session
        return begin_reply(question)
    return begin_reply(_store_messages(key, session, transcript, match, uploads)[-1])


def _get_or_create_locked(key: SessionKey) -> Session:
    deleted = Session.objects.exclude(deleted_at=None).filter(project=key.project)
    if deleted.filter(source_key=key.source_key).exists():
        # Rename the deleted session, so that it can still be restored beside the new session.
        deleted.filter(source_key=key.deleted_source_key).update(source_key=None)
        deleted.filter(source_key=key.source_key).update(source_key=key.deleted_source_key)
    # In an imported project, the user id in a key may have belonged to another user.
    others = Session.objects.filter(project=key.project, source_key=key.source_key)
    others.exclude(creator=key.user).update(source_key=None)  # type: ignore[misc]
    session = Session(project=key.project, creator=key.user, source_key=key.source_key)  # type: ignore[misc]
    Session.objects.bulk_create([session], ignore_conflicts=True)
    rows = Session.objects.select_for_update(of=("self",)).select_related("project")
    return rows.get(project=key.project, source_key=key.source_key)


def _store_messages(
    key: SessionKey,
    session: Session,
    transcript: Sequence[TranscriptMessage],
    match: Continuation,
    uploads: Uploads,
) -> list[Message]:
    first_new = _first_new_index(transcript)
    start = min(match.start, first_new)
    if not session.last_seq and _was_forgotten(key):
        start = first_new
    drafts = [
        draft_message(
            message,
            key.user,
            remembered=index >= first_new,
            source_key=f"{SOURCE_KEY_PREFIX}{new_id()}",
        )
        for index, message in enumerate(transcript[start:], start)
    ]
    stored = post_messages(session, drafts, at=NewBranch(match.below) if match.below else None)
    for message, source in zip(stored, transcript[start:], strict=True):
        ids = [uploads.take(url, session) for url in source.images if url in uploads.loaded]
        attachments.claim_uploads(message, ids, key.user)
    return stored


def _first_new_index(transcript: Sequence[TranscriptMessage]) -> int:
    """Return the index of the last message or, if tool results end the transcript, of the first of
    them.
    """
    index = len(transcript) - 1
    while index and transcript[index].role == transcript[index - 1].role == Role.TOOL:
        index -= 1
    return index


def _was_forgotten(key: SessionKey) -> bool:
    """Return True if a session with this key was forgotten or is about to be forgotten.

    Then the client's copy of it must not be stored again.
    """
    digests = {source_digest(key.source_key), source_digest(key.deleted_source_key)}
    answers = import_planned.send(sender=Session, project=key.project, subjects=digests)
    deleted = Session.objects.filter(project=key.project, source_key=key.deleted_source_key)
    return any(forgotten for _, forgotten in answers) or deleted.exists()


def _path_messages(session: Session, request_length: int) -> list[ComparedMessage]:
    """Return the end of the active path, long enough to be compared with a request."""
    limit = max(2 * request_length, MIN_PATH_MESSAGES)
    messages = list(session.messages.path_to(session, session.head_id, limit))  # type: ignore[attr-defined]
    digests: dict[UUID | None, tuple[str, ...]] = {}
    images = Attachment.objects.filter(message__in=[message.pk for message in messages])
    for message_id, digest in images.values_list("message", "sha256"):
        digests[message_id] = (*digests.get(message_id, ()), digest)
    return [
        ComparedMessage(
            message.role,
            message.text,
            calls=frozenset(call.id for call in message.calls),
            tool_call_id=message.tool_call_id,
            images=digests.get(message.pk, ()),
            id=message.pk,
            from_api=(message.source_key or "").startswith(SOURCE_KEY_PREFIX),
            is_deleted=message.deleted_at is not None,
        )
        for message in messages
    ]


def _match_tool_results(session: Session | None, request: Sequence[ComparedMessage]) -> Match:
    """Return where tool results belong: below the reply with their calls, on any branch."""
    if session is None or not session.last_seq:
        return Continuation(0)
    replies = session.messages.filter(
        role=Role.ASSISTANT,
        tool_calls__contains=[{"id": request[-1].tool_call_id}],
        deleted_at=None,
    )
    reply = replies.order_by("-seq").first()
    if reply is None:
        return None
    call_ids = {call.id for call in reply.calls}
    results = [(it.tool_call_id, it.text) for it in request if it.tool_call_id in call_ids]
    stored = _stored_tool_results(reply)
    if stored and [(message.tool_call_id, message.text) for message in stored] == results:
        return Regeneration(stored[-1].pk)
    return Continuation(len(request), reply.pk)


def _stored_tool_results(reply: Message) -> list[Message]:
    """Return the latest results of the tool calls of `reply`, each a child of the preceding one."""
    results: list[Message] = []
    result: Message | None = reply
    while result is not None:
        below = Message.objects.filter(
            project=reply.project_id, parent=result.pk, role=Role.TOOL, deleted_at=None
        )
        result = below.order_by("-seq").first()
        results += [result] if result else []
    return results
