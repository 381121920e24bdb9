"""The interface of importers: their input, their output, and the result of an import.

It also parses times in exports, and computes the keys that identify imported objects.
CONTRIBUTING.md describes how to add an importer.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from hashlib import sha256
from typing import BinaryIO, Protocol
from uuid import UUID

from django.utils import timezone

from chat.models import SessionKind, SessionStatus, Status, Visibility
from chat.prompt.types import Lookup, ToolCall
from projects.core.errors import InvalidInputError
from projects.core.text import storable

MAX_STORED_ERRORS = 100
MAX_ERROR_CHARS = 300
MAX_KEY_CHARS = 300
EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
# Larger numbers are milliseconds, because as seconds they would be after the year 5000.
LAST_SECOND = 10**11
# How far the clock of the source may be ahead.
MAX_CLOCK_SKEW = timedelta(days=1)

# A longer name is cut, because many documents and messages can repeat it.
MAX_NAME_CHARS = 200

_BACKTICKS = re.compile("`{3,}")
_LANGUAGE = re.compile(r"[A-Za-z0-9+#.-]{1,30}")


class ImportRejectedError(InvalidInputError):
    """The file cannot be imported at all."""


class UnknownFormatError(ImportRejectedError):
    """The file has none of the formats."""


class InvalidItemError(InvalidInputError):
    """One item of a file, such as a conversation or message, cannot be read and is skipped."""


@dataclass(frozen=True)
class ImportedFile:
    """A file of conversations. Each call of `open` returns the file at its beginning.

    `images` are the images and documents in the same zip file, by the ids that messages use.
    `related` are its documents about users, memories and projects.
    """

    name: str
    open: Callable[[], BinaryIO]
    images: Mapping[str, "ImportedFile"] = field(default_factory=dict)
    related: Sequence["ImportedFile"] = ()


@dataclass(frozen=True)
class ImportedImage:
    """An image of a message. `read` returns the bytes of the image file.

    An image that Strata exported also has its properties and a signature of them.
    """

    name: str
    description: str
    read: Callable[[], bytes]
    media_type: str = ""
    width: int = 0
    height: int = 0
    signature: str = ""


@dataclass(frozen=True)
class ImportedRevision:
    """An earlier text of a message, and the user and time of the edit that replaced it."""

    version: int
    text: str
    editor: str
    at: datetime


@dataclass(frozen=True)
class ImportedMessage:
    """A message in the form of its source. `key` identifies it within its session.

    In a session that is a tree, `parent` is the key of an earlier message, or None for the start of
    a path. If `own` is true, the importing user is the author. `reactions` are pairs (user, emoji).
    `usage` has tokens, time and cost of a reply, by column of `Message`.
    """

    key: str
    role: str
    text: str
    at: datetime
    speaker: str = ""
    own: bool = False
    parent: str | None = None
    tool_calls: tuple[ToolCall, ...] = ()
    tool_call_id: str = ""
    lookups: tuple[Lookup, ...] = ()
    model: str = ""
    status: str = Status.COMPLETE
    error: str = ""
    remembered: bool = True
    version: int = 1
    edited_at: datetime | None = None
    deleted_at: datetime | None = None
    images: tuple[ImportedImage, ...] = ()
    revisions: tuple[ImportedRevision, ...] = ()
    reactions: tuple[tuple[str, str], ...] = ()
    usage: Mapping[str, int | Decimal | None] = field(default_factory=dict)


@dataclass
class ImportedSession:
    """A conversation of the source, with its messages in chronological order.

    Normally each message follows the preceding one. If `is_tree` is true, it follows its `parent`,
    and `head` is the key of the last message of the active path. `id` is the session's id, in
    exports of Strata.
    """

    key: str
    title: str
    messages: list[ImportedMessage] = field(default_factory=list)
    is_tree: bool = False
    head: str | None = None
    id: UUID | None = None
    kind: str = SessionKind.CHAT
    visibility: str = Visibility.PROJECT
    status: str = SessionStatus.ACTIVE
    remembered: bool = True
    created_at: datetime | None = None
    title_by_hand: bool = False
    pinned: bool = False
    archived_at: datetime | None = None
    history_limit: int | None = None
    chat_model: str = ""
    temperature: float | None = None
    reasoning_effort: str = ""
    tags: list[str] = field(default_factory=list)


@dataclass
class ImportResult:
    """The numbers of sessions, of added messages, and of messages that were there already
    (`skipped`), and the errors of what was not imported.

    `document_bytes` is the size of documents in a zip file whose text became a part of messages.
    """

    sessions: int = 0
    imported: int = 0
    skipped: int = 0
    document_bytes: int = 0
    errors: list[str] = field(default_factory=list)


class ErrorList(list[str]):
    """A list that keeps the first MAX_STORED_ERRORS errors. `total` counts all errors."""

    total = 0

    def append(self, error: str) -> None:
        self.total += 1
        if len(self) < MAX_STORED_ERRORS:
            super().append(storable(error)[:MAX_ERROR_CHARS])


@dataclass
class FileResult(ImportResult):
    """The result of importing one file. Its list of errors has a limited length."""

    errors: ErrorList = field(default_factory=ErrorList)

    @property
    def refused(self) -> int:
        return self.errors.total


class Importer(Protocol):
    """The interface of the modules in CHAT_IMPORTERS.

    A module may also have `memories(documents, result)`, which returns the memories of another
    program from the files in a zip file, and `NAME`, the name of that program.
    """

    def recognises(self, name: str, head: bytes) -> bool:
        """Return whether a file with this name and these first bytes has this format."""

    def sessions(self, document: ImportedFile, result: ImportResult) -> Iterator[ImportedSession]:
        """Yield the conversations in `document`. Skip damaged items, and add them to `result`.

        Raises `ImportRejectedError` if the document contains nothing in this format.
        """


def parse_time(value: object) -> datetime | None:
    """Parse an ISO 8601 text (UTC if it has no offset), or a number of seconds or milliseconds
    since 1970.

    Returns None for anything else.
    """
    try:
        if isinstance(value, str):
            at = datetime.fromisoformat(value.strip())
            return at.replace(tzinfo=at.tzinfo or UTC).astimezone(UTC)
        if isinstance(value, int | float) and not isinstance(value, bool):
            return EPOCH + timedelta(seconds=value if abs(value) < LAST_SECOND else value / 1000)
    except (ValueError, OverflowError):
        pass
    return None


def plausible_time(at: datetime | None) -> datetime | None:
    """Return `at`, or None if it is before 1970 or more than a day in the future."""
    return at if at is not None and EPOCH <= at <= timezone.now() + MAX_CLOCK_SKEW else None


def first_plausible(*times: datetime | None) -> datetime:
    """Return the first plausible time, or now."""
    return next(filter(None, map(plausible_time, times)), None) or timezone.now()


def with_plausible_times(
    messages: Sequence[ImportedMessage], start: datetime | None
) -> Iterator[ImportedMessage]:
    """Yield the messages. An implausible time is replaced by the time of the preceding message.

    For the first message, it is replaced by `start`, the beginning of the conversation, or else by
    the earliest plausible time of any message.
    """
    times = [at for message in messages if (at := plausible_time(message.at))]
    before = first_plausible(start, min(times, default=None))
    for message in messages:
        before = plausible_time(message.at) or before
        yield message if message.at == before else replace(message, at=before)


def quoted_document(name: str, text: str, language: str = "") -> str:
    """Return a document of a message as Markdown: its name, and its text as a code block.

    The fence is longer than any run of backticks in the text, so that the text cannot close it.
    """
    fence = "`" * max([3, *(len(run) + 1 for run in _BACKTICKS.findall(text))])
    language = language if _LANGUAGE.fullmatch(language) else ""
    return f"[file: {name[:MAX_NAME_CHARS]}]\n\n{fence}{language}\n{text}\n{fence}"


def source_key_for(text: str) -> str:
    """Return the value of a column `source_key`: `text`, or its digest if it is too long."""
    text = storable(text)
    return text if len(text) <= MAX_KEY_CHARS else sha256(text.encode()).hexdigest()


def source_digest(session_key: str, message_key: str = "") -> str:
    """Return a digest that identifies a session or message without revealing its key."""
    return sha256(f"{session_key}\n{message_key}".encode()).hexdigest()
