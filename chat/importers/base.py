"""What an importer yields and what an import did."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from typing import BinaryIO, Protocol


class Refused(Exception):
    """The file cannot be imported at all; the text says why, for people."""


@dataclass(frozen=True)
class ImportedMessage:
    """One message as its source has it. `key` is its identity there, unique in its session."""

    key: str
    role: str
    text: str
    at: datetime
    speaker: str = ""


@dataclass
class ImportedSession:
    """One conversation of a source, its messages in the order they were said."""

    key: str
    title: str
    messages: list[ImportedMessage] = field(default_factory=list)


@dataclass
class ImportResult:
    """How many messages were added and skipped as known; what was refused, and why."""

    sessions: int = 0
    imported: int = 0
    skipped: int = 0
    errors: list[str] = field(default_factory=list)


class Importer(Protocol):
    def recognises(self, name: str, head: bytes) -> bool:
        """Whether a file called `name` that begins with `head` is of this format."""

    def sessions(
        self, name: str, file: BinaryIO, result: ImportResult
    ) -> Iterator[ImportedSession]:
        """The conversations in `file`. A damaged item costs only itself: it is noted in `result`.

        Raises Refused for a file that holds nothing of this format.
        """
