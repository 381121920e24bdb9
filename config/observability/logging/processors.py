"""Structlog processors that remove private data from events, and format lines as text or JSON.

Lines contain no text of users or models, and no secrets. The message of an exception may quote a
value, and a log line of a library may quote a complete request. Therefore exceptions are logged by
class, error number and traceback, and lines of a library are logged completely only if the library
is listed here.
"""

import json
import logging
import re
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from typing import Any

import psycopg

Event = dict[str, Any]

# Secrets from the settings, including the passwords in URLs.
SECRETS: set[str] = set()
PLACEHOLDER = "[secret]"
# Strings that look like keys or tokens of Strata or of a provider.
KEY_PATTERN = (
    r"(?i:bearer|basic)\s+[\w.~+/=-]{16,}|\bstrata_\w{16,}|\bwhsec_[\w+/=]{8,}|\bsk-[\w-]{12,}"
)
LEADING_FIELDS = ("timestamp", "level", "logger", "event")
# The first parts of the names of loggers whose messages contain no user text. `py` is the logger of
# Python's warnings.
TRUSTED_LOGGERS = (
    *("config", "projects", "chat", "memory", "django", "django_structlog", "uvicorn"),
    *("celery", "kombu", "psycopg", "py"),
)
# Errors whose message is written by Strata.
OWN_ERRORS = {
    "chat.providers.base.ProviderError",
    "memory.layers.summarising.base.UnusableSummaryError",
    "memory.recall.embedders.base.EmbedderError",
    "projects.core.outbound_http.OutboundError",
}
# Errors whose message contains only types, attributes and modules.
CODE_ERRORS = (
    AttributeError,
    ImportError,
    NameError,
    NotImplementedError,
    RecursionError,
    TypeError,
)
NUMERIC_ATTRIBUTES = ("status_code", "smtp_code", "errno", "code")
MAX_DESCRIPTION_CHARS = 300
MAX_CAUSES = 5


def describe_error(error: BaseException) -> str:
    """Return, in one line, the class of `error` and the parts of its message without user text."""
    kind = type(error)
    name = kind.__name__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__name__}"
    if details := " ".join(_safe_details(error)):
        return f"{name}: {details}"[:MAX_DESCRIPTION_CHARS]
    return name


def _safe_details(error: BaseException) -> Iterator[str]:
    paths = {f"{kind.__module__}.{kind.__name__}" for kind in type(error).__mro__}
    if paths & OWN_ERRORS or isinstance(error, CODE_ERRORS):
        yield _first_line(str(error))
        return
    if isinstance(error, OSError) and error.strerror:
        yield error.strerror
    cause = error if isinstance(error, psycopg.Error) else error.__cause__
    if isinstance(cause, psycopg.OperationalError):
        # It describes the connection, not the statement.
        yield _first_line(str(cause))
    elif isinstance(cause, psycopg.Error):
        names = (cause.sqlstate, cause.diag.table_name, cause.diag.constraint_name)
        yield " ".join(name for name in names if name)
    if "botocore.exceptions.ClientError" in paths:
        bucket_error: Any = error
        yield f"{bucket_error.operation_name} {bucket_error.response['Error'].get('Code', '')}"
    for attribute in NUMERIC_ATTRIBUTES:
        value = getattr(error, attribute, None)
        if isinstance(value, int):
            yield f"{attribute}={int(value)}"


def _first_line(text: str) -> str:
    return text.strip().partition("\n")[0]


def format_traceback(error: BaseException, depth: int = 0) -> str:
    """Return the traceback of `error` and its causes in Python's format, but without messages."""
    cause = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    before = ""
    if cause is not None and depth < MAX_CAUSES:
        before = f"{format_traceback(cause, depth + 1)}\n\n"
    members = "".join(
        f"\n  with {describe_error(member)}" for member in getattr(error, "exceptions", ())
    )
    return "".join(
        [
            before,
            "Traceback (most recent call last):\n",
            *traceback.format_tb(error.__traceback__),
            describe_error(error),
            members,
        ]
    )


class RedactedError:
    """Replaces an exception among the values of a line, for both %s and %r."""

    def __init__(self, error: BaseException) -> None:
        self._description = describe_error(error)

    def __repr__(self) -> str:
        return self._description


def redact(_: Any, __: str, event: Event) -> Event:
    """Structlog processor that keeps only those parts of an event that may be logged."""
    record: logging.LogRecord = event.pop("_record")
    if not event.pop("_from_structlog"):
        message = _redact_record(record, event.pop("positional_args", ()))
        # The values in the message come first in the line.
        event = message | {name: value for name, value in event.items() if name not in message}
    error = _exception(event.pop("exc_info", None))
    # django-structlog passes the exception as `exception`. Its text, `error`, is not needed.
    named_error = event.pop("exception", None)
    event.pop("error", None)
    event.pop("stack_info", None)
    if isinstance(named_error, BaseException):
        event["error"] = describe_error(named_error)
        error = error or named_error
    if error is not None:
        event["exception"] = format_traceback(error)
    return {
        name: describe_error(value) if isinstance(value, BaseException) else value
        for name, value in event.items()
    }


def _exception(exc_info: Any) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if exc_info is True:
        # In structlog, this value means the exception that is currently handled.
        return sys.exception()
    return exc_info[1] if isinstance(exc_info, tuple) else None


def _redact_record(record: logging.LogRecord, args: Any) -> Event:
    if record.name.partition(".")[0] not in TRUSTED_LOGGERS:
        path = "/".join(Path(record.pathname).parts[-3:])
        return {"event": "library_message", "location": f"{path}:{record.lineno}"}
    message = str(record.msg)
    if isinstance(args, Mapping):
        return {"event": message % {name: _redact_value(value) for name, value in args.items()}}
    values = [_redact_value(value) for value in args]
    event, *pairs = message.split(" ")
    if pairs and values and all("=" in pair for pair in pairs) and "%" not in event:
        return {"event": event} | dict(_named_values(pairs, values))
    return {"event": message % tuple(values) if values else message}


def _redact_value(value: object) -> object:
    return RedactedError(value) if isinstance(value, BaseException) else value


def _named_values(pairs: list[str], values: list[object]) -> Iterator[tuple[str, str]]:
    """Yield names and values of a line with placeholders such as `reply_failed message=%s`."""
    for pair in pairs:
        count = pair.count("%")
        name, _, value = (pair % tuple(values[:count])).partition("=")
        del values[:count]
        yield name, value


def render(as_json: bool) -> Callable[[Any, str, Event], str]:
    """Return a structlog processor that formats an event as a line."""
    to_line = _json if as_json else _text
    return lambda _, __, event: to_line({name: _mask(value) for name, value in event.items()})


def _json(event: Event) -> str:
    return json.dumps({name: event[name] for name in LEADING_FIELDS if name in event} | event)


def _text(event: Event) -> str:
    exception = event.pop("exception", None)
    timestamp, level, logger, message = (event.pop(name, "-") for name in LEADING_FIELDS)
    # Escape line breaks, so that a message cannot forge another line.
    message = str(message).replace("\n", "\\n").replace("\r", "\\r")
    values = "".join(f" {name}={_quote(value)}" for name, value in event.items())
    traceback = f"\n{exception}" if exception else ""
    return f"{timestamp} {str(level).upper()} {logger} {message}{values}{traceback}"


def _quote(value: object) -> str:
    text = str(value)
    return text if re.fullmatch(r"[\w.:/@+<>-]+", text) else json.dumps(text, ensure_ascii=False)


def _mask(value: object) -> object:
    if value is None or isinstance(value, bool | int | float):
        return value
    return _secret_pattern(len(SECRETS)).sub(PLACEHOLDER, str(value))


@lru_cache(1)
def _secret_pattern(count: int) -> re.Pattern[str]:
    """Return a pattern for SECRETS and KEY_PATTERN, cached by `count`, the number of SECRETS."""
    known = sorted(map(re.escape, SECRETS), key=len, reverse=True)
    return re.compile("|".join([*known, KEY_PATTERN]))
