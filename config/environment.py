"""Reads settings from the environment, or from a `.env` file beside manage.py.

A value that does not fit ends the start with one line that names the variable and what it takes.
"""

import os
from collections.abc import Callable
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import urlsplit

T = TypeVar("T")


def read(name: str, default: T, parse: Callable[[str], T], takes: str) -> T:
    """The variable `name` parsed, or `default` when it is unset or empty.

    `parse` raises ValueError for what it does not take; `takes` says in words what it does.
    The value itself is not printed, since it may be a secret.
    """
    text = os.environ.get(name, "").strip()
    if not text:
        return default
    try:
        return parse(text)
    except ValueError as error:
        raise SystemExit(f"strata: {name} takes {takes}") from error


def read_secret(name: str, default: T, parse: Callable[[str], T], takes: str) -> T:
    """As `read`; the variable `name`_FILE may name a file that holds the value instead."""
    path = os.environ.get(f"{name}_FILE", "").strip()
    if path:
        try:
            # Libraries look there too.
            os.environ[name] = Path(path).read_text().strip()
        except (OSError, ValueError) as error:
            raise SystemExit(f"strata: {name}_FILE takes a file that can be read") from error
    return read(name, default, parse, takes)


def text(value: str) -> str:
    return value


def one_of(*words: str) -> Callable[[str], str]:
    """A parser for one of `words`, in either case."""

    def parse(value: str) -> str:
        if value.lower() not in words:
            raise ValueError(value)
        return value.lower()

    return parse


def flag(value: str) -> bool:
    """on/off in the usual spellings."""
    known = {"1": True, "true": True, "yes": True, "on": True}
    known |= {"0": False, "false": False, "no": False, "off": False}
    if value.lower() not in known:
        raise ValueError(value)
    return known[value.lower()]


def words(value: str) -> list[str]:
    """A list separated by commas."""
    return [word.strip() for word in value.split(",") if word.strip()]


def networks(value: str) -> list[IPv4Network | IPv6Network]:
    """Networks in CIDR notation, or single addresses, separated by commas."""
    return [ip_network(one) for one in words(value)]


def word(value: str) -> str:
    """Letters, digits and underscores, as names in a database have."""
    if not value.replace("_", "").isalnum():
        raise ValueError(value)
    return value


def integer(low: int, high: int) -> Callable[[str], int]:
    """A parser for whole numbers from `low` to `high`."""

    def parse(value: str) -> int:
        number = int(value)
        if not low <= number <= high:
            raise ValueError(value)
        return number

    return parse


def rate(value: str) -> tuple[int, int] | None:
    """How many in how many seconds, of a text such as 60/minute; None for `off`."""
    if value.lower() == "off":
        return None
    number, _, period = value.partition("/")
    seconds = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
    if period.strip().lower() not in seconds:
        raise ValueError(value)
    return integer(1, 10_000_000)(number), seconds[period.strip().lower()]


def url(*schemes: str) -> Callable[[str], str]:
    """A parser for addresses that begin with one of `schemes`."""

    def parse(value: str) -> str:
        if value.split("://")[0] not in schemes or "://" not in value:
            raise ValueError(value)
        return value

    return parse


def origin(value: str) -> str:
    """An address of a whole server: http:// or https://, a host, perhaps a port, and no path."""
    parts = urlsplit(value)
    # The port raises ValueError when it is none.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(value)
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(value)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def model_name(*words: str) -> Callable[[str], str]:
    """A parser for one of `words`, or a pydantic-ai model name, `provider:model`."""

    def parse(value: str) -> str:
        provider, colon, model = value.partition(":")
        if value in words or (colon and provider and model):
            return value
        raise ValueError(value)

    return parse
