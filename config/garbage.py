"""When Python looks for objects that only hold each other: not among those that are loaded once
and stay, and of the others not too often. As CPython does by itself, a process that says fifty
replies at a time looked for an eighth of its time, and stood still for up to 0.4 s whenever it went
through all that is loaded.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager

# So many objects more than before, and it looks among them; 700 by itself.
# https://docs.python.org/3/library/gc.html#gc.set_threshold
YOUNG = 10_000


@contextmanager
def none_while_loading() -> Iterator[None]:
    """Does not look at all: where so much is loaded, hardly anything goes. Afterwards as `keep`."""
    gc.disable()
    try:
        yield
    finally:
        keep()


def keep() -> None:
    """All that is there by now stays, and is not looked through again."""
    gc.freeze()
    gc.set_threshold(YOUNG)
    gc.enable()
