"""Tracing spans. They do nothing until `config.observability.tracing` installs an opener."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# Adds attributes that are known only inside the span.
SpanAnnotator = Callable[..., None]
SpanOpener = Callable[..., AbstractContextManager[SpanAnnotator]]


@contextmanager
def _no_span(name: str, **attributes: str | int) -> Iterator[SpanAnnotator]:
    yield lambda **more: None


_open: SpanOpener = _no_span


def span(name: str, **attributes: str | int) -> AbstractContextManager[SpanAnnotator]:
    """Return a span called `name`. `attributes` must not contain user text."""
    return _open(name, **attributes)


def use_span_opener(opener: SpanOpener) -> None:
    """Open all further spans with `opener`."""
    global _open
    _open = opener
