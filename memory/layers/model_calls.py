"""The model calls of memory: each renews the lease first and is recorded with its cost."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from chat import providers
from chat.prompt.types import PromptMessage
from chat.providers import Completion, OutputSchema
from memory.leases import Lease
from memory.models import Call, CallKind
from projects.core.errors import UnavailableError

ANSWERED = "answered"

T = TypeVar("T")


@dataclass
class CallRecorder:
    """Makes model calls under a lease and adds up their figures.

    `cost` is in US dollars, over the calls whose price is known; None if no price is known.
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
        """Call the model, with the output schema `shape` if that is given, and return the result of
        `read` for its answer.

        The `Call` row is created before the request, outside of any transaction, so that it stays
        without an outcome when the worker dies meanwhile. Raises `LeaseLostError` before anything
        is sent, `ProviderError`, and `UnusableSummaryError` as `read` does.
        """
        self.lease.renew()
        call = Call.objects.create(
            project_id=self.project_id, session_id=self.session_id, kind=kind, model=model
        )
        self.calls += 1
        started = time.monotonic()
        try:
            answer = providers.get_provider(model, kind).complete(messages, max_tokens, shape)
            call.input_tokens = answer.finished.input_tokens
            call.output_tokens = answer.finished.output_tokens
            call.cost = answer.finished.cost
            result = read(answer)
        except UnavailableError as error:
            self._finish(call, started, str(error))
            raise
        except Exception as error:
            self._finish(call, started, f"Strata itself failed ({type(error).__name__}).")
            raise
        self._finish(call, started, ANSWERED)
        return result

    def _finish(self, call: Call, started: float, outcome: str) -> None:
        """Store the figures of a call and add them to the sums."""
        call.duration_ms = round((time.monotonic() - started) * 1000)
        call.outcome = outcome[:200]
        fields = ("duration_ms", "input_tokens", "output_tokens", "cost", "outcome")
        rows = Call.objects.filter(project=self.project_id, pk=call.pk)
        rows.update(**{name: getattr(call, name) for name in fields})
        self.duration_ms += call.duration_ms
        self.input_tokens += call.input_tokens
        self.output_tokens += call.output_tokens
        if call.cost is not None:
            self.cost = (self.cost or Decimal()) + call.cost

    def totals(self) -> dict[str, Any]:
        """Return the sums as fields of an `Activity`; empty if no model was called."""
        if not self.calls:
            return {}
        fields = ("calls", "input_tokens", "output_tokens", "cost", "duration_ms")
        return {name: getattr(self, name) for name in fields}
