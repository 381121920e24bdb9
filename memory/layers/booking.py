"""The calls of a model for one piece of work: each under the lease, and each on the books."""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, TypeVar
from uuid import UUID

from chat import providers
from chat.prompt import Said
from chat.providers import Completion, Finished, ProviderError, Shape
from memory.layers.leases import Lease
from memory.layers.summarising import Unusable
from memory.models import Call, CallKind

ANSWERED = "answered"

T = TypeVar("T")


@dataclass
class Booking:
    """Makes calls and keeps their sums.

    `cost` is in US dollars, over the calls whose price is known; None when that is none of them.
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
        said: Sequence[Said],
        max_tokens: int,
        read: Callable[[Completion], T],
        shape: Shape | None = None,
    ) -> T:
        """What `read` makes of the model's answer, asked for in `shape` if that is given. That it
        makes nothing of it is booked too.

        The row is written before the request is made, outside of any transaction: when the worker
        dies meanwhile, it stays without an outcome. Raises LeaseLost, before anything is asked;
        ProviderError; and Unusable, as `read` does.
        """
        self.lease.renew()
        call = Call.objects.create(
            project_id=self.project_id, session_id=self.session_id, kind=kind, model=model
        )
        self.calls += 1
        begun = time.monotonic()
        try:
            answer = providers.get(model, kind).complete(said, max_tokens, shape)
            self._count(call, answer.finished)
            result = read(answer)
        except (ProviderError, Unusable) as error:
            self._complete(call, begun, str(error))
            raise
        except Exception as error:
            self._complete(call, begun, f"Strata itself failed ({type(error).__name__}).")
            raise
        self._complete(call, begun, ANSWERED)
        return result

    def _count(self, call: Call, finished: Finished) -> None:
        call.input_tokens, call.output_tokens = finished.input_tokens, finished.output_tokens
        call.cost = finished.cost
        self.input_tokens += finished.input_tokens
        self.output_tokens += finished.output_tokens
        if finished.cost is not None:
            self.cost = (self.cost or Decimal()) + finished.cost

    def _complete(self, call: Call, begun: float, outcome: str) -> None:
        call.duration_ms = round((time.monotonic() - begun) * 1000)
        call.outcome = outcome[:200]
        told = ("duration_ms", "input_tokens", "output_tokens", "cost", "outcome")
        rows = Call.objects.filter(project=self.project_id, pk=call.pk)
        rows.update(**{name: getattr(call, name) for name in told})
        self.duration_ms += call.duration_ms

    def totals(self) -> dict[str, Any]:
        """The sums as an Activity takes them; nothing where no model was asked."""
        if not self.calls:
            return {}
        return {
            "calls": self.calls,
            "input_tokens": self.input_tokens,
            "output_tokens": self.output_tokens,
            "cost": self.cost,
            "duration_ms": self.duration_ms,
        }
