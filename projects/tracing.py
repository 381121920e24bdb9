"""Spans of what takes time, where somebody collects them: config.tracing, if it is asked for."""

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

# Adds what is known only later.
Note = Callable[..., None]
Opener = Callable[..., AbstractContextManager[Note]]


@contextmanager
def _nothing(name: str, **about: str | int) -> Iterator[Note]:
    yield lambda **more: None


_open: Opener = _nothing


def span(name: str, **about: str | int) -> AbstractContextManager[Note]:
    """What happens inside, under `name`; `about` says of which kind it is, and quotes nobody."""
    return _open(name, **about)


def collect_with(opener: Opener) -> None:
    """Spans are opened by `opener` from now on."""
    global _open
    _open = opener
