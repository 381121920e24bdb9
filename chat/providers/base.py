"""The interface of a model provider: its input options, its stream events and its errors."""

import math
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Protocol

from chat.prompt.types import PromptMessage, ToolCall
from projects.core.errors import UnavailableError

# The largest values that are believed of a provider for one call: more tokens are reduced to this
# number, and a cost of this amount counts as unknown. Sums of many calls still fit into columns.
MAX_CALL_TOKENS = 10_000_000
MAX_CALL_COST = Decimal(10_000)


@dataclass(frozen=True)
class ReplyOptions:
    """Options of one reply. If an option is not set, the model's default applies.

    - `system`: the client's own system prompt, which follows the project's sections.
    - `settings`: pydantic-ai's ModelSettings that every provider supports: temperature, top_p,
      max_tokens, stop_sequences, seed, presence_penalty, frequency_penalty.
    - `openai_params`: parameters of OpenAI's chat completions (tools, tool_choice, response_format,
      …). Servers of that API receive them unchanged; for other providers they are translated.
    - `own_tools`: Strata's own tools, in OpenAI's format. If a server rejects tools, the request is
      repeated without them.
    """

    system: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    openai_params: Mapping[str, Any] = field(default_factory=dict)
    own_tools: Sequence[Mapping[str, Any]] = ()


@dataclass(frozen=True)
class Delta:
    """The next piece of the text of a reply."""

    text: str


@dataclass(frozen=True)
class Thought:
    """The next piece of a model's reasoning. Readers see it while the model reasons. It is not
    stored, and later prompts do not contain it.
    """

    text: str


@dataclass(frozen=True)
class Finished:
    """The end of a reply. `cost` is in US dollars, None if the price is unknown. Token counts come
    from the provider, or are estimated if it reports none.

    `cut_off` means that the reply reached its maximum length, and `filtered` that the provider
    blocked the rest of it. `calls` are tool calls that the client or Strata must execute. `unseen`
    is the number of images that the model rejected and received as descriptions instead. `native`
    is the answer in the form of `PromptMessage.native`.
    """

    model: str
    input_tokens: int
    output_tokens: int
    cost: Decimal | None
    cut_off: bool = False
    filtered: bool = False
    unseen: int = 0
    calls: tuple[ToolCall, ...] = ()
    native: Any = field(default=None, compare=False, repr=False)
    # The number of input tokens that the provider read from its cache.
    cached_tokens: int = 0


@dataclass(frozen=True)
class Completion:
    """A complete reply, used for background work."""

    text: str
    finished: Finished


@dataclass(frozen=True)
class OutputSchema:
    """A named JSON schema that a reply must match."""

    name: str
    schema: Mapping[str, object]


# The codes of errors that may not occur with another model.
OUTAGE_CODES = {
    "insufficient_quota",
    "overloaded",
    "rate_limit_exceeded",
    "timeout",
    "unavailable",
    "upstream_error",
}


class ProviderError(UnavailableError):
    """A model did not answer. The message is for users, and contains neither keys nor chat text.

    `retry_after_s` is set if the provider sent it. `status` and `code` are the HTTP status and
    OpenAI's error code for API clients. If `is_outage` is true, the project's second model is
    tried. `finished` has the tokens of an answer that could not be used.
    """

    finished: Finished | None = None

    def __init__(
        self,
        message: str,
        retry_after: float | None = None,
        status: int = 502,
        code: str = "upstream_error",
        is_outage: bool = False,
    ) -> None:
        super().__init__(message, code=code)
        self.is_outage = is_outage or code in OUTAGE_CODES
        self.retry_after_s = None if retry_after is None else math.ceil(retry_after)
        self.status = status  # type: ignore[misc]  # here it differs from instance to instance


class OutputSchemaRejectedError(ProviderError):
    """The server does not accept output schemas. Later requests to it contain no schema."""


@dataclass(frozen=True)
class Failed:
    """The last event of a failed reply, instead of `Finished`."""

    error: ProviderError


class Provider(Protocol):
    def stream(
        self, prompt: Sequence[PromptMessage], options: ReplyOptions = ReplyOptions()
    ) -> AsyncIterator[Delta | Thought | Finished]:
        """Yield the reply to `prompt` piece by piece, then `Finished`. Raises `ProviderError`."""

    def complete(
        self, prompt: Sequence[PromptMessage], max_tokens: int, schema: OutputSchema | None = None
    ) -> Completion:
        """Return the complete reply to `prompt`, for callers without an event loop.

        If `schema` is set and the model `supports_output_schema`, the answer is requested in this
        form, but may differ from it. Raises `ProviderError`.
        """


@dataclass(frozen=True)
class ModelServer:
    """The server of a model. If `is_guarded`, its address must be on the public internet."""

    kind: str
    address: str
    key: str = field(repr=False)
    is_guarded: bool = False
    # The maximum wait for the first token in seconds; None means the default.
    first_token_timeout: int | None = None
