"""The interface of summarisers, and their results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

from memory.layers import losses
from memory.layers.lines import Line, as_text
from memory.layers.model_calls import CallRecorder
from memory.layers.summarising.answers import FactClaim
from memory.layers.summarising.transcript import TranscriptLine
from projects.core.errors import UnavailableError

# The value of `Entry.written_by` for the extractive summariser.
EXTRACTIVE = "extractive"
# The maximum number of lines in the summary of a conversation of any length.
MAX_LINES = 16


class UnusableSummaryError(UnavailableError):
    """The answer of the model is not a usable summary. The message is a reason for users."""


@dataclass(frozen=True)
class ConversationSummary:
    """The summary of a conversation, and the facts that the model claims to find in it.

    `is_whole` is false if part of the conversation was not searched for facts.
    """

    lines: Sequence[Line] = ()
    claims: tuple[FactClaim, ...] = ()
    is_whole: bool = False

    @property
    def text(self) -> str:
        return as_text(self.lines)


@dataclass(frozen=True)
class DigestChild:
    """One source of a digest: its label and its lines."""

    label: str
    lines: Sequence[Line]

    @property
    def text(self) -> str:
        return as_text(self.lines)


@dataclass(frozen=True)
class Digest:
    """The lines of a digest, and the particulars of its children that they contain or omit."""

    lines: Sequence[Line]
    audit: losses.Audit

    @property
    def text(self) -> str:
        return as_text(self.lines)

    @classmethod
    def audited(cls, lines: Sequence[Line], children: Sequence[DigestChild]) -> "Digest":
        texts = [(child.label, child.text) for child in children]
        return cls(lines, losses.audit(texts, as_text(lines)))


class Summariser(Protocol):
    name: str

    def conversation(
        self, lines: Sequence[TranscriptLine], previous: str, recorder: CallRecorder
    ) -> ConversationSummary:
        """Summarise all `lines`. `previous` is the summary of the preceding range, as context.

        Raises ProviderError or UnusableSummaryError.
        """

    def digest(self, label: str, children: Sequence[DigestChild], recorder: CallRecorder) -> Digest:
        """Write the digest of the period `label` from its children, which are in order, oldest
        first.

        Raises ProviderError or UnusableSummaryError.
        """
