"""What every model provider gives and how it fails."""

from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Protocol

from chat.options import Options
from chat.prompt import Said
from chat.tooling import ToolCall


@dataclass(frozen=True)
class Delta:
    """The next piece of a reply."""

    text: str


@dataclass(frozen=True)
class Finished:
    """The end of a reply. `cost` is in US dollars, None when the price is not known. The tokens
    are the provider's count, or ours where it gave none.

    `calls` are those of tools that whoever asked offered, and is to carry out. `unseen` counts the
    images that the model refused, and was told of in words.
    """

    model: str
    input_tokens: int
    output_tokens: int
    cost: Decimal | None
    cut_off: bool = False
    unseen: int = 0
    calls: tuple[ToolCall, ...] = ()


@dataclass(frozen=True)
class Completion:
    """A whole answer, for work in the background."""

    text: str
    finished: Finished


@dataclass(frozen=True)
class Shape:
    """The form of an answer: a JSON schema, and what it is called."""

    name: str
    schema: Mapping[str, object]


class ProviderError(Exception):
    """A model did not answer. `reason` is for people: it names no key and quotes nobody.

    `retry_after` is in seconds, when the provider named it. `status` is how HTTP calls the like
    where a program asked, and `code` how OpenAI does.
    """

    def __init__(
        self,
        reason: str,
        retry_after: float | None = None,
        status: int = 502,
        code: str = "upstream_error",
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after = retry_after
        self.status = status
        self.code = code


class ShapeRefused(ProviderError):
    """The server takes no schema for its model's answers. It is not offered one again."""


@dataclass(frozen=True)
class Failed:
    """In place of Finished: why a reply ends here."""

    error: ProviderError


class Provider(Protocol):
    def stream(
        self, said: Sequence[Said], options: Options = Options()
    ) -> AsyncIterator[Delta | Finished]:
        """The reply to `said` piece by piece, Finished last. Raises ProviderError."""

    def complete(
        self, said: Sequence[Said], max_tokens: int, shape: Shape | None = None
    ) -> Completion:
        """The whole answer to `said`, for callers without an event loop. Raises ProviderError.

        With `shape`, in that form, from a model that `can_shape`; it may still answer otherwise.
        """
