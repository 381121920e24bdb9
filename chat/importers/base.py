"""What an importer yields and what an import did."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Protocol
from uuid import UUID

from chat.models import SessionStatus, Status, Visibility
from chat.storable import storable

KEPT_REASONS = 100
LONGEST_REASON = 300  # characters


class Refused(Exception):
    """The file cannot be imported at all; the text says why, for people."""


class Unusable(Exception):
    """One item of a file cannot be read; the text says why, for people."""


@dataclass(frozen=True)
class ImportedMessage:
    """One message as its source has it. `key` is its identity there, unique in its session.

    In a session that is a tree, `parent` is the key of the message it follows, one that comes
    earlier, or None for the beginning of a path. With `own`, whoever imports it said it.
    """

    key: str
    role: str
    text: str
    at: datetime
    speaker: str = ""
    own: bool = False
    parent: str | None = None
    model: str = ""
    status: str = Status.COMPLETE
    error: str = ""
    remembered: bool = True
    edited_at: datetime | None = None
    deleted_at: datetime | None = None


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
    visibility: str = Visibility.PROJECT
    status: str = SessionStatus.ACTIVE
    remembered: bool = True
    created_at: datetime | None = None


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
    """What a module of a format offers. One may also have `memories(name, file) -> list[str]`, for
    the files of a zip that hold what another program remembered.
    """

    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file called `name` that begins with `head` is of this format."""

    def sessions(
        self, name: str, file: BinaryIO, result: ImportResult
    ) -> Iterator[ImportedSession]:
        """The conversations in `file`. A damaged item costs only itself: it is noted in `result`.

        Raises Refused for a file that holds nothing of this format.
        """
