"""Tracing spans. They have no effect until `config.observability.tracing` installs an opener."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# A function that adds attributes to a span after it was opened.
SpanAnnotator = Callable[..., None]
SpanOpener = Callable[..., AbstractContextManager[SpanAnnotator]]


@contextmanager
def _no_span(name: str, **attributes: str | int) -> Iterator[SpanAnnotator]:
    yield lambda **more: None


_open: SpanOpener = _no_span


def span(name: str, **attributes: str | int) -> AbstractContextManager[SpanAnnotator]:
    """Return a span with this `name`. `attributes` must not contain user text."""
    return _open(name, **attributes)


def use_span_opener(opener: SpanOpener) -> None:
    """Use `opener` for all spans that are opened from now on."""
    global _open
    _open = opener
