"""What every summariser takes and gives."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

from chat.prompt import Said
from chat.providers import Completion, Shape
from memory.layers import losses
from memory.layers.summarising.answers import Claim
from memory.layers.summarising.parts import Line
from memory.models import CallKind

T = TypeVar("T")


class Unusable(Exception):
    """What the model wrote is no summary; the text says why, for people."""


class Asks(Protocol):
    """Makes the calls, as `booking.Booking` does: it renews the lease before each, and books it."""

    def ask(
        self,
        model: str,
        kind: CallKind,
        said: Sequence[Said],
        max_tokens: int,
        read: Callable[[Completion], T],
        shape: Shape | None = None,
    ) -> T:
        """What `read` makes of the answer. Raises ProviderError, and Unusable as `read` does."""


@dataclass(frozen=True)
class Telling:
    """What a conversation comes to: its summary, and what it claims to be facts. `is_whole` is
    false where not all of it was looked through for these.
    """

    summary: str
    claims: tuple[Claim, ...] = ()
    is_whole: bool = False


@dataclass(frozen=True)
class Digest:
    """The text of a period, and what it does not carry of its children (see losses.Audit)."""

    text: str
    losses: Sequence[dict[str, str]]
    particulars: int


def audited(text: str, audit: losses.Audit) -> Digest:
    return Digest(text, audit.listed(), audit.held)


class Summariser(Protocol):
    name: str

    def conversation(self, lines: Sequence[Line], previous: str, booking: Asks) -> Telling:
        """What all of `lines` come to; `previous` is what the stretch before came to.

        Raises ProviderError or Unusable.
        """

    def digest(self, label: str, children: Sequence[tuple[str, str]], booking: Asks) -> Digest:
        """The digest of the period `label` from its children, as (label, summary) each.

        Raises ProviderError or Unusable.
        """
