"""Metrics of streams and of model calls, and the tracing spans of model calls."""

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from decimal import Decimal

from django.conf import settings
from prometheus_client import Counter, Gauge, Histogram

from chat.providers.base import Finished, ProviderError

STREAMS = Gauge(
    "strata_open_streams", "Readers that currently follow a stream.", multiprocess_mode="livesum"
)
FIRST_TOKEN = Histogram(
    "strata_model_first_token_seconds",
    "Time from the request to the first chunk of the answer.",
    ["model", "kind"],
    buckets=(0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 60),
)
CALLS = Histogram(
    "strata_model_call_duration_seconds",
    "Time from the request to the end of the answer, by kind of call and outcome.",
    ["model", "kind", "outcome"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60, 120, 300),
)
TOKENS = Counter(
    "strata_model_tokens", "Tokens that models read and wrote.", ["model", "kind", "direction"]
)
COST = Counter(
    "strata_model_cost_dollars", "Cost of model calls whose price is known.", ["model", "kind"]
)

# The outcomes in addition to the codes of errors.
SUCCESS, CANCELLED, INTERNAL_ERROR = "success", "cancelled", "internal_error"
# The maximum number of model names that become labels, to limit the number of time series. Users
# may enter any model name, so a name becomes a label only after a model of this name has answered.
MAX_MODEL_LABELS = 30
OTHER = "other"
_answering: set[str] = set()

# A function that adds attributes to a span after it was opened.
SpanAnnotator = Callable[..., None]


@contextmanager
def _no_span(name: str, **attributes: str | int) -> Iterator[SpanAnnotator]:
    yield lambda **more: None


# Opens a span with a name and attributes, which must not contain user text. Spans have no effect
# until `config.observability.tracing` replaces this function.
open_span: Callable[..., AbstractContextManager[SpanAnnotator]] = _no_span


def model_label(model: str) -> str:
    """Return the label for metrics of `model`."""
    known = {settings.CHAT_MODEL, settings.SYSTEM_MODEL, settings.EMBEDDER} | _answering
    return model if model in known else OTHER


class CallMetrics:
    """Measures one call of `model`."""

    def __init__(self, model: str, kind: str) -> None:
        self.model = model
        self.kind = kind
        self.outcome = CANCELLED
        self._began = time.perf_counter()
        self._has_answered = False

    def record_chunk(self) -> None:
        """Record the first chunk of the answer. Later calls change nothing."""
        if not self._has_answered:
            self._has_answered = True
            self._register_model()
            seconds = time.perf_counter() - self._began
            FIRST_TOKEN.labels(model_label(self.model), self.kind).observe(seconds)

    def record_success(self, end: Finished) -> None:
        self._register_model()
        self.outcome = SUCCESS
        self.record_usage(end.input_tokens, end.output_tokens, end.cost)

    def record_usage(self, input_tokens: int, output_tokens: int, cost: Decimal | None) -> None:
        label = model_label(self.model)
        TOKENS.labels(label, self.kind, "input").inc(input_tokens)
        TOKENS.labels(label, self.kind, "output").inc(output_tokens)
        if cost is not None:
            COST.labels(label, self.kind).inc(float(cost))

    def record_tokens(self, tokens: int) -> None:
        """Record that an embedding call succeeded, with the number of its tokens."""
        self.record_success(Finished(self.model, tokens, 0, None))

    def _register_model(self) -> None:
        if len(_answering) < MAX_MODEL_LABELS:
            _answering.add(self.model)

    def close(self) -> None:
        seconds = time.perf_counter() - self._began
        CALLS.labels(model_label(self.model), self.kind, self.outcome).observe(seconds)


@contextmanager
def measure_call(model: str, kind: str) -> Iterator[CallMetrics]:
    """Measure a call of `model` within the block.

    The outcome is the code of a `ProviderError`, INTERNAL_ERROR after another exception, and
    SUCCESS after `record_success`. Otherwise, for example if the task was cancelled, it is
    CANCELLED.
    """
    call = CallMetrics(model, kind)
    with open_span("model call", model=model_label(model), kind=kind) as set_attributes:
        try:
            yield call
        except ProviderError as error:
            call.outcome = error.code
            raise
        except Exception:
            call.outcome = INTERNAL_ERROR
            raise
        finally:
            call.close()
            set_attributes(outcome=call.outcome)
