"""What is measured of chats and of the models behind them."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

from django.conf import settings
from prometheus_client import Counter, Gauge, Histogram

from chat.providers.base import Finished, ProviderError
from projects.tracing import span

SECONDS = (0.05, 0.1, 0.2, 0.3, 0.5, 0.75, 1, 1.5, 2, 3, 5, 10, 20, 60)
STREAMS = Gauge(
    "strata_streams_open", "Readers that follow a stream just now.", multiprocess_mode="livesum"
)
FIRST_TOKEN = Histogram(
    "strata_first_token_seconds",
    "From asking a model to the first piece of its answer.",
    ["model", "kind"],
    buckets=SECONDS,
)
CALLS = Histogram(
    "strata_model_call_duration_seconds",
    "Calls of models, from asking to the end of the answer, by what they were for and became of.",
    ["model", "kind", "outcome"],
    buckets=(0.1, 0.25, 0.5, 1, 2, 5, 10, 20, 60, 120, 300),
)
TOKENS = Counter(
    "strata_model_tokens", "Tokens that models read and wrote.", ["model", "kind", "direction"]
)
COST = Counter(
    "strata_model_cost_dollars", "What models cost, as far as prices are known.", ["model", "kind"]
)

# What a call came to, beside the codes of errors.
ANSWERED, ABANDONED, FAILED_HERE = "answered", "abandoned", "internal_error"
# People may type what they like as a model's name: it is told once something answered to it, and
# of so many at most.
MOST_MODELS = 30
OTHER = "other"
_answering: set[str] = set()


def label(model: str) -> str:
    """The name under which the calls of `model` are counted."""
    known = {settings.CHAT_MODEL, settings.SYSTEM_MODEL, settings.EMBEDDER} | _answering
    return model if model in known else OTHER


class Call:
    """One call of `model`, for what `kind` says."""

    def __init__(self, model: str, kind: str) -> None:
        self.model = model
        self.kind = kind
        self.outcome = ABANDONED
        self._began = time.perf_counter()
        self._spoke = False

    def spoke(self) -> None:
        """A piece of the answer is there."""
        if not self._spoke:
            self._spoke = True
            self._answers()
            waited = time.perf_counter() - self._began
            FIRST_TOKEN.labels(label(self.model), self.kind).observe(waited)

    def finished(self, end: Finished) -> None:
        """The whole answer is there."""
        self._answers()
        self.outcome = ANSWERED
        name = label(self.model)
        TOKENS.labels(name, self.kind, "input").inc(end.input_tokens)
        TOKENS.labels(name, self.kind, "output").inc(end.output_tokens)
        if end.cost is not None:
            COST.labels(name, self.kind).inc(float(end.cost))

    def embedded(self, tokens: int) -> None:
        """The vectors of so many tokens are there."""
        self.finished(Finished(self.model, tokens, 0, None))

    def _answers(self) -> None:
        if len(_answering) < MOST_MODELS:
            _answering.add(self.model)

    def close(self) -> None:
        took = time.perf_counter() - self._began
        CALLS.labels(label(self.model), self.kind, self.outcome).observe(took)


@contextmanager
def call(model: str, kind: str) -> Iterator[Call]:
    """Inside, `model` is asked once; an exception tells what came of it."""
    made = Call(model, kind)
    with span("model call", model=label(model), kind=kind) as note:
        try:
            yield made
        except ProviderError as error:
            made.outcome = error.code
            raise
        except Exception:
            # Whatever it was goes on to who asked; here it is counted alone.
            made.outcome = FAILED_HERE
            raise
        finally:
            made.close()
            note(outcome=made.outcome)
