"""The model calls of memory. Each call first renews the lease, and is recorded with its cost."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from chat import providers
from chat.prompt.types import PromptMessage
from chat.providers import Completion, OutputSchema
from chat.providers.booking import CallAccount
from memory.leases import Lease
from memory.models import Call, CallKind
from projects.core.errors import INTERNAL_FAILURE, UnavailableError

T = TypeVar("T")


@dataclass
class CallRecorder:
    """Makes model calls under a lease and adds up their numbers of tokens, costs and durations.

    `cost` is in US dollars, the sum over the calls with a known price. It is None if no price is
    known.
    """

    lease: Lease
    project_id: UUID
    session_id: UUID | None = None
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost: Decimal | None = None
    duration_ms: int = 0

    def ask(
        self,
        model: str,
        kind: CallKind,
        messages: Sequence[PromptMessage],
        max_tokens: int,
        read: Callable[[Completion], T],
        shape: OutputSchema | None = None,
    ) -> T:
        """Call the model and return the result of `read` for its answer. `shape` is an optional
        output schema.

        The `Call` row is created before the request, outside of transactions. If the worker dies,
        the row stays without an outcome. Raises `LeaseLostError` before anything is sent,
        `ProviderError` for a failed request, and the errors of `read`, such as
        `UnusableSummaryError`.
        """
        self.lease.renew()
        account = CallAccount(self.project_id, kind, session_id=self.session_id, in_advance=True)
        try:
            provider = providers.get_provider(model, kind, account)
            answer = provider.complete(messages, max_tokens, shape)
            result = self._read(answer, account, read)
        except Exception:
            self._settle(account)
            raise
        self._settle(account)
        return result

    def _read(self, answer: Completion, account: CallAccount, read: Callable[[Completion], T]) -> T:
        """Return the result of `read`. If it fails, the error becomes the outcome of the call."""
        call = account.calls[-1]
        try:
            return read(answer)
        except UnavailableError as error:
            call.outcome = str(error)[:200]
            raise
        except Exception as error:
            call.outcome = f"{INTERNAL_FAILURE}: {type(error).__name__}."[:200]
            raise

    def _settle(self, account: CallAccount) -> None:
        """Store the calls, and add their figures to the totals."""
        for call in account.calls:
            self._add(call)
        account.settle()

    def _add(self, call: Call) -> None:
        self.calls += 1
        self.duration_ms += call.duration_ms or 0
        self.input_tokens += call.input_tokens
        self.output_tokens += call.output_tokens
        if call.cost is not None:
            self.cost = (self.cost or Decimal()) + call.cost

    def totals(self) -> dict[str, Any]:
        """Return the totals as fields of an `Activity`; empty if no model was called."""
        if not self.calls:
            return {}
        fields = ("calls", "input_tokens", "output_tokens", "cost", "duration_ms")
        return {name: getattr(self, name) for name in fields}
