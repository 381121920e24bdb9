"""Reads settings from the environment, or from a `.env` file beside manage.py.

A value that does not fit ends the start with one line that names the variable and what it takes.
"""

import os
import re
from collections.abc import Callable
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import TypeVar
from urllib.parse import unquote, urlsplit

import dj_database_url

T = TypeVar("T")

# What was read as a secret, and the passwords within: no log shows them.
SECRETS: set[str] = set()
# What is shorter is no secret, and stands in every other line.
SHORTEST_SECRET = 6


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
    except ValueError:
        # Not from the error, which quotes what it could not read.
        raise SystemExit(f"strata: {name} takes {takes}") from None


def read_secret(name: str, default: T, parse: Callable[[str], T], takes: str) -> T:
    """As `read`; the value may also stand in a file, which the variable `name`_FILE names.

    What is in the file goes into the environment too: the providers' libraries look there, and so
    do the processes that this one starts.
    """
    path = os.environ.get(f"{name}_FILE", "").strip()
    if path:
        found = _in_file(f"{name}_FILE", path)
        if os.environ.get(name, "").strip() not in ("", found):
            raise SystemExit(f"strata: {name} and {name}_FILE are both set, and not to the same")
        os.environ[name] = found
    keep_out_of_logs(os.environ.get(name, "").strip())
    return read(name, default, parse, takes)


def _in_file(name: str, path: str) -> str:
    try:
        found = Path(path).read_text().strip()
    except (OSError, ValueError):
        found = ""
    if not found:
        raise SystemExit(f"strata: {name} takes a file that can be read and has a text")
    return found


def keep_out_of_logs(value: str) -> None:
    """Has no log show `value`, nor the password in it if it is an address."""
    password = value.partition("://")[2].rpartition("@")[0].partition(":")[2]
    found = (value, password, unquote(password))
    SECRETS.update(one for one in found if len(one) >= SHORTEST_SECRET)


def is_there(package: str) -> bool:
    """Whether a package is installed, of which it imports what stands above it."""
    try:
        return find_spec(package) is not None
    except ModuleNotFoundError:
        return False


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


# A % that escapes nothing.
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def database_url(value: str) -> str:
    """The address of a PostgreSQL database, in a form that Django's settings are made of.

    One whose password is not escaped would lead elsewhere, and who says so would quote it.
    """
    address = url("postgres", "postgresql")(value)
    dj_database_url.parse(address)
    parts = urlsplit(address)
    name = parts.path.removeprefix("/")
    if not name or "@" in name or "/" in name or parts.netloc.count("@") > 1:
        raise ValueError(value)
    if parts.fragment or _BARE_PERCENT.search(address):
        raise ValueError(value)
    return address


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
