"""The interface of summarisers, and their results."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

from memory.layers.losses import Audit
from memory.layers.summarising.answers import FactClaim
from memory.layers.summarising.transcript import TranscriptLine
from projects.core.errors import UnavailableError

if TYPE_CHECKING:
    from memory.layers.model_calls import CallRecorder

# `Entry.written_by` of the extractive summariser.
EXTRACTIVE = "extractive"


class UnusableSummaryError(UnavailableError):
    """The answer of the model is no summary. The message gives the reason, for people."""


@dataclass(frozen=True)
class ConversationSummary:
    """The summary of a conversation, and the facts that the model claims to have found in it.

    `is_whole` is false if a part of the conversation was not searched for facts.
    """

    summary: str
    claims: tuple[FactClaim, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True)
class Digest:
    """The text of a period, and its losses: the particulars of its children that it omits
    (`Audit`).
    """

    text: str
    losses: Sequence[dict[str, str]]
    particulars: int

    @classmethod
    def audited(cls, text: str, audit: Audit) -> "Digest":
        return cls(text, audit.listed(), audit.held)


class Summariser(Protocol):
    name: str

    def conversation(
        self, lines: Sequence[TranscriptLine], previous: str, recorder: "CallRecorder"
    ) -> ConversationSummary:
        """Summarise all `lines`; `previous` is the summary of the range before them.

        Raises ProviderError or UnusableSummaryError.
        """

    def digest(
        self, label: str, children: Sequence[tuple[str, str]], recorder: "CallRecorder"
    ) -> Digest:
        """Write the digest of the period `label` from its children, each as (label, summary).

        Raises ProviderError or UnusableSummaryError.
        """
