"""How a line looks: for people, or as JSON; and what is blotted out of it in any case."""

import json
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from config.environment import SECRETS

HIDDEN = "[secret]"
# What looks like a key or a token of ours or of a provider, whoever's it is.
KEYS = r"(?i:bearer|basic)\s+[\w.~+/=-]{16,}|\bstrata_\w{16,}|\bwhsec_[\w+/=]{8,}|\bsk-[\w-]{12,}"
# In this order, in front of whatever else a line has.
FIRST = ("timestamp", "level", "logger", "event")

Event = dict[str, Any]


def lines(as_json: bool) -> Callable[[Any, str, Event], str]:
    """A processor that makes the line."""
    line = _json if as_json else _readable
    return lambda _, __, event: line({name: _clean(value) for name, value in event.items()})


def _json(event: Event) -> str:
    return json.dumps({name: event[name] for name in FIRST if name in event} | event)


def _readable(event: Event) -> str:
    exception = event.pop("exception", None)
    timestamp, level, logger, what = (event.pop(name, "-") for name in FIRST)
    # A line is a line: nobody writes another one into it.
    what = str(what).replace("\n", "\\n").replace("\r", "\\r")
    values = "".join(f" {name}={_quoted(value)}" for name, value in event.items())
    after = f"\n{exception}" if exception else ""
    return f"{timestamp} {str(level).upper()} {logger} {what}{values}{after}"


def _quoted(value: object) -> str:
    text = str(value)
    return text if re.fullmatch(r"[\w.:/@+<>-]+", text) else json.dumps(text, ensure_ascii=False)


def _clean(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return _secrets(len(SECRETS)).sub(HIDDEN, str(value))


@lru_cache(1)
def _secrets(count: int) -> re.Pattern[str]:
    """Any secret that this process was told, of which there are `count` now, or what looks so."""
    known = sorted(map(re.escape, SECRETS), key=len, reverse=True)
    return re.compile("|".join([*known, KEYS]))
