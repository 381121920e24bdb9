"""What may be told of what happened: the words of this program, never those of others.

The message of an exception may quote a value, a library's line a whole request. So exceptions are
told by their names and numbers, and of libraries only those speak for themselves that are named
here.
"""

import logging
import sys
import traceback
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

import psycopg

Event = dict[str, Any]

# The first part of their loggers' names (`py` has Python's warnings). What others say may quote
# what was said.
SPEAK = (
    *("config", "projects", "chat", "memory", "django", "django_structlog", "uvicorn"),
    *("celery", "kombu", "psycopg", "py"),
)
# Errors whose message is of our own words, by where their classes are.
WORDED = {
    "chat.providers.base.ProviderError",
    "memory.layers.summarising.base.Unusable",
    "memory.recall.embedders.base.EmbedderError",
    "projects.outbound.OutboundError",
}
# Errors whose message names types, attributes and modules.
OF_CODE = (AttributeError, ImportError, NameError, NotImplementedError, RecursionError, TypeError)
# An error's attributes that are numbers, wherever they are.
NUMBERS = ("status_code", "smtp_code", "errno", "code")
LONGEST = 300  # characters
DEEPEST = 5  # errors behind an error


def told(error: BaseException) -> str:
    """`error` in a line: its class, and what of it quotes nobody."""
    kind = type(error)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if said := " ".join(_said(error)):
        return f"{name}: {said}"[:LONGEST]
    return name


def _said(error: BaseException) -> Iterator[str]:
    places = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    if places & WORDED or isinstance(error, OF_CODE):
        yield _first_line(str(error))
        return
    if isinstance(error, OSError) and error.strerror:
        yield error.strerror
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    if isinstance(cause, psycopg.OperationalError):
        # Of the connection, not of what was sent over it.
        yield _first_line(str(cause))
    elif isinstance(cause, psycopg.Error):
        about = (cause.sqlstate, cause.diag.table_name, cause.diag.constraint_name)
        yield " ".join(part for part in about if part)
    for number in NUMBERS:
        value = getattr(error, number, None)
        if isinstance(value, int):
            yield f"{number}={int(value)}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def trace(error: BaseException, deep: int = 0) -> str:
    """The calls that led to `error`, and to what lies behind it, as Python prints them."""
    behind = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    before = f"{trace(behind, deep + 1)}\n\n" if behind is not None and deep < DEEPEST else ""
    inside = "".join(f"\n  with {told(one)}" for one in getattr(error, "exceptions", ()))
    return f"{before}{_calls(error.__traceback__)}{told(error)}{inside}"


def _calls(where: TracebackType | None) -> str:
    return "".join(["Traceback (most recent call last):\n", *traceback.format_tb(where)])


class _Told:
    """Stands for an exception among the values of a line, however it is formatted."""

    def __init__(self, error: BaseException) -> None:
        self._told = told(error)

    def __str__(self) -> str:
        return self._told

    __repr__ = __str__


def fields(_: Any, __: str, event: Event) -> Event:
    """A processor: a line's event and values, of what may be told."""
    record: logging.LogRecord = event.pop("_record")
    if not event.pop("_from_structlog"):
        said = _of_record(record, event.pop("positional_args", ()))
        # What it tells goes before where it happened.
        event = said | {name: value for name, value in event.items() if name not in said}
    error = _error(event.pop("exc_info", None))
    # django-structlog gives both, the second as a text.
    named = event.pop("exception", None)
    event.pop("error", None)
    event.pop("stack_info", None)
    if isinstance(named, BaseException):
        event["error"] = told(named)
        error = error or named
    if error is not None:
        event["exception"] = trace(error)
    return {
        name: told(value) if isinstance(value, BaseException) else value
        for name, value in event.items()
    }


def _error(exc_info: Any) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if exc_info is True:
        # As structlog says that it is the one that is being handled.
        return sys.exception()
    return exc_info[1] if isinstance(exc_info, tuple) else None


def _of_record(record: logging.LogRecord, args: Any) -> Event:
    if record.name.partition(".")[0] not in SPEAK:
        place = "/".join(Path(record.pathname).parts[-3:])
        return {"event": "library_said", "where": f"{place}:{record.lineno}"}
    if isinstance(args, Mapping):
        return {"event": str(record.msg) % {name: _safe(one) for name, one in args.items()}}
    event, *pairs = str(record.msg).split(" ")
    if pairs and args and all("=" in pair for pair in pairs) and "%" not in event:
        return {"event": event} | dict(_named(pairs, list(map(_safe, args))))
    return {"event": str(record.msg) % tuple(map(_safe, args)) if args else str(record.msg)}


def _safe(value: object) -> object:
    return _Told(value) if isinstance(value, BaseException) else value


def _named(pairs: list[str], values: list[object]) -> Iterator[tuple[str, str]]:
    """The names and values of a line such as `reply_failed message=%s reason=%s`."""
    for pair in pairs:
        count = pair.count("%")
        name, _, value = (pair % tuple(values[:count])).partition("=")
        del values[:count]
        yield name, value
