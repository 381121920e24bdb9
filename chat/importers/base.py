"""What an importer yields and what an import did."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from decimal import Decimal
from typing import BinaryIO, Protocol
from uuid import UUID

from chat.models import SessionKind, SessionStatus, Status, Visibility
from chat.storable import storable
from chat.tooling import ToolCall

KEPT_REASONS = 100
LONGEST_REASON = 300  # characters


class Refused(Exception):
    """The file cannot be imported at all; the text says why, for people."""


class Unusable(Exception):
    """One item of a file cannot be read; the text says why, for people."""


@dataclass(frozen=True)
class Document:
    """One file of conversations; `open` gives it from its beginning, as often as it is asked.

    `images` are those that lie beside it in a zip file, by the id under which it names them.
    """

    name: str
    open: Callable[[], BinaryIO]
    images: Mapping[str, "Document"] = field(default_factory=dict)


@dataclass(frozen=True)
class ImportedImage:
    """One image of a message; `read` gives its file. One of ours has what it was, and its seal."""

    name: str
    description: str
    read: Callable[[], bytes]
    media_type: str = ""
    width: int = 0
    height: int = 0
    seal: str = ""


@dataclass(frozen=True)
class ImportedRevision:
    """An earlier text of a message, and who replaced it when."""

    version: int
    text: str
    editor: str
    at: datetime


@dataclass(frozen=True)
class ImportedMessage:
    """One message as its source has it. `key` is its identity there, unique in its session.

    In a session that is a tree, `parent` is the key of the message it follows, one that comes
    earlier, or None for the beginning of a path. With `own`, whoever imports it said it.
    `reactions` are (user, emoji); `usage` is what a reply took, by column of Message.
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
    """One conversation of a source, its messages in the order they were said.

    Each message follows the one before it, unless it `is_tree`: then `head` is the key of the
    message that ends the path that counts. `id` is its id if it is an export of ours.
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


@dataclass
class ImportResult:
    """How many messages were added and skipped as known; what was refused, and why."""

    sessions: int = 0
    imported: int = 0
    skipped: int = 0
    errors: list[str] = field(default_factory=list)


class Reasons(list[str]):
    """Why items were refused: the first hundred reasons, and in `total` how many there were."""

    total = 0

    def append(self, reason: str) -> None:
        self.total += 1
        if len(self) < KEPT_REASONS:
            super().append(storable(reason)[:LONGEST_REASON])


@dataclass
class FileResult(ImportResult):
    """What the import of one file did; `errors` keeps the first hundred reasons."""

    errors: Reasons = field(default_factory=Reasons)

    @property
    def refused(self) -> int:
        return self.errors.total


class Importer(Protocol):
    """What a module of a format offers. One may also have `memories(documents, result)`, the
    texts of what another program remembered from files of a zip, and the `NAME` of that program.
    """

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file called `name` that begins with `head` is of this format."""

    def sessions(self, document: Document, result: ImportResult) -> Iterator[ImportedSession]:
        """The conversations in `document`. A damaged item costs only itself: `result` notes it.

        Raises Refused for a document that holds nothing of this format.
        """
