"""Helpers with which the other modules of `config.settings` declare environment variables.

A declaration validates the variable at start-up. `config.settings.reference` generates
`.env.example` and the tables in the documentation from the declarations. The file `.env` (see
`env_file`) is read as part of the environment.
"""

import os
import re
import secrets
import stat
import tempfile
from collections.abc import Callable
from contextlib import suppress
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, ClassVar, TypeVar
from urllib.parse import unquote, urlsplit

import dj_database_url
from dotenv import load_dotenv
from platformdirs import user_data_path
from pydantic import BeforeValidator, Field, ValidationError
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings, NoDecode, SettingsConfigDict

from config.observability.logging.processors import SECRETS

BASE_DIR = Path(__file__).resolve().parents[2]
# The installed package has __main__.py instead of manage.py (see pyproject.toml).
IS_PACKAGE = (BASE_DIR / "__main__.py").exists()
# The data folder if STRATA_DATA_DIR is not set.
DEFAULT_DATA_DIR = user_data_path("strata", appauthor=False) if IS_PACKAGE else BASE_DIR / "var"
# The minimum length of secrets that are hidden in logs. Shorter ones could be part of other words.
MIN_SECRET_CHARS = 6
# A name, or an IPv6 address in brackets, as in a Host header; or a pattern of Django.
_HOST = re.compile(r"(\*|[a-z0-9._-]+|\[[0-9a-f:.]+\])(:[0-9]{1,5})?")
# Between the addresses of several servers. Celery and Django use the next one if one fails.
_NEXT_ADDRESS = re.compile(r"[;,](?=\w+://)")
# A % that does not begin an escape sequence.
_BARE_PERCENT = re.compile(r"%(?![0-9A-Fa-f]{2})")


def comma_separated(value: str) -> list[str]:
    """Return the items of a comma-separated list."""
    return [item.strip() for item in value.split(",") if item.strip()]


def host_names(value: str) -> list[str]:
    """Return host names from a comma-separated list, such as *, .example.org or [::1].

    Ports are kept. The scheme and the slash of an address such as https://example.org/ are removed.
    """
    addresses = comma_separated(value.lower())
    hosts = [address.rpartition("://")[2].removesuffix("/") for address in addresses]
    for host in hosts:
        if not _HOST.fullmatch(host):
            raise ValueError(host)
    return hosts


def networks(value: str) -> list[IPv4Network | IPv6Network]:
    """Return networks in CIDR notation, or single addresses, from a comma-separated list."""
    return [ip_network(item) for item in comma_separated(value)]


def rate(value: str) -> tuple[int, int] | None:
    """Return (requests, seconds) for a rate such as 60/minute; None for `off`."""
    if value.lower() == "off":
        return None
    number, _, period = value.partition("/")
    seconds = {"second": 1, "minute": 60, "hour": 3_600, "day": 86_400}
    if period.strip().lower() not in seconds or not 1 <= int(number) <= 10_000_000:
        raise ValueError(value)
    return int(number), seconds[period.strip().lower()]


def address(*schemes: str) -> Callable[[str], str]:
    """Return a parser for URLs with one of `schemes`."""

    def parse(value: str) -> str:
        scheme, separator, _ = value.partition("://")
        if scheme not in schemes or not separator:
            raise ValueError(value)
        for single in _NEXT_ADDRESS.split(value):
            # Accessing `port` raises ValueError if it is invalid.
            urlsplit(single).port  # noqa: B018
        return value

    return parse


def database_url(value: str) -> str:
    """Return the URL of a PostgreSQL database.

    Raises ValueError if the password is not percent-encoded, because it would change the host or
    the database name.
    """
    address("postgres", "postgresql")(value)
    dj_database_url.parse(value)
    parts = urlsplit(value)
    name = parts.path.removeprefix("/")
    if not name or "@" in name or "/" in name or parts.netloc.count("@") > 1:
        raise ValueError(value)
    if parts.fragment or _BARE_PERCENT.search(value):
        raise ValueError(value)
    return value


def origin(value: str) -> str:
    """Return the URL of a server: http:// or https://, a host, and optionally a port."""
    parts = urlsplit(value)
    # Accessing `port` raises ValueError if it is invalid.
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.port == 0:
        raise ValueError(value)
    if parts.username is not None or parts.path not in ("", "/") or parts.query or parts.fragment:
        raise ValueError(value)
    return f"{parts.scheme}://{parts.netloc.lower()}"


def model_name(*names: str) -> Callable[[str], str]:
    """Return a parser for one of `names` or a pydantic-ai model name `provider:model`."""

    def parse(value: str) -> str:
        provider, colon, model = value.partition(":")
        if value not in names and not (colon and provider and model):
            raise ValueError(value)
        return value

    return parse


Rate = Annotated[tuple[int, int] | None, NoDecode, BeforeValidator(rate)]
Http = Annotated[str, BeforeValidator(address("http", "https"))]
Database = Annotated[str, BeforeValidator(database_url)]
lower = BeforeValidator(str.lower)


def var(
    name: str,
    default: Any,
    takes: str,
    description: str,
    *,
    example: str = "",
    shown_default: str | None = None,
    secret: bool = False,
    in_readme: bool = False,
    ge: int | None = None,
    le: int | None = None,
) -> Any:
    """Declare the variable `name`. `takes` completes the error message "strata: NAME takes …".

    `shown_default` is the default in the documentation, if it differs from the value. A `secret`
    can also be in a file that NAME_FILE names, and is hidden in logs.
    """
    if shown_default is None and isinstance(default, bool):
        shown_default = "on" if default else "off"
    elif shown_default is None:
        shown_default = "" if default in ("", [], None) else f"`{default}`"
    extra: dict[str, Any] = {
        "takes": takes,
        "example": example,
        "default": shown_default,
        "secret": secret,
        "in_readme": in_readme,
    }
    return Field(
        default,
        validation_alias=name,
        description=description,
        json_schema_extra=extra,
        ge=ge,
        le=le,
    )


def number(
    name: str,
    default: int,
    limits: tuple[int, int],
    description: str,
    unit: str = "",
    *,
    example: str = "",
) -> Any:
    """Declare the variable `name`, a number of `unit` within `limits`."""
    takes = f"a number{unit and f' of {unit}'} from {limits[0]} to {limits[1]}"
    return var(name, default, takes, description, example=example, ge=limits[0], le=limits[1])


class Variables(BaseSettings):
    """A group of variables. `title` is its heading in the documentation."""

    model_config = SettingsConfigDict(
        case_sensitive=True, env_ignore_empty=True, validate_default=False, frozen=True
    )
    title: ClassVar[str]


T = TypeVar("T", bound=Variables)


def declaration(field: FieldInfo) -> dict[str, Any]:
    """Return the arguments of `var` for messages and documentation."""
    assert isinstance(field.json_schema_extra, dict)
    return field.json_schema_extra


def load(variables: type[T]) -> T:
    """Read and validate the variables in the environment.

    Raises SystemExit with one line that names the variable and its valid values. The line does not
    contain the value, which may be a secret.
    """
    try:
        load_dotenv(env_file())
    except OSError as error:
        raise SystemExit(f"strata: {env_file()}: {error.strerror}") from None
    except UnicodeDecodeError:
        raise SystemExit(f"strata: {env_file()} is not text in UTF-8") from None
    declared = {str(field.validation_alias): field for field in variables.model_fields.values()}
    for name, field in declared.items():
        if declaration(field)["secret"]:
            read_secret(name)
    try:
        return variables()
    except ValidationError as error:
        name = str(error.errors(include_input=False)[0]["loc"][0])
        raise SystemExit(f"strata: {name} takes {declaration(declared[name])['takes']}") from None


def env_file() -> Path:
    """Return the path of `.env`: in the data folder of a package, otherwise beside manage.py."""
    if IS_PACKAGE:
        return Path(os.environ.get("STRATA_DATA_DIR") or DEFAULT_DATA_DIR) / ".env"
    return BASE_DIR / ".env"


def read_secret(name: str) -> str:
    """Return the secret in the variable `name`, or in the file that `name`_FILE names.

    The content of the file is copied to the environment, where libraries of providers and child
    processes read it. Raises SystemExit if the file cannot be read, or if both are set and differ.
    """
    if path := os.environ.get(f"{name}_FILE", "").strip():
        try:
            content = Path(path).read_text().strip()
        except (OSError, ValueError):
            content = ""
        if not content:
            raise SystemExit(
                f"strata: {name}_FILE takes the path of a readable file that is not empty"
            )
        if os.environ.get(name, "").strip() not in ("", content):
            raise SystemExit(f"strata: {name} and {name}_FILE are both set, and differ")
        os.environ[name] = content
    value = os.environ.get(name, "").strip()
    keep_out_of_logs(value)
    return value


def require_packages(module: str, extra: str, variable: str) -> None:
    """Raise SystemExit if `module` is not installed.

    The message names `variable`, which needs the module, and `extra`, which installs it.
    """
    try:
        found = find_spec(module)
    except ModuleNotFoundError:
        found = None
    if found is None:
        raise SystemExit(
            f"strata: {variable} is set, but its packages are not installed: install the extra "
            f"{extra} of the package, or deploy/requirements-{extra}.txt in a checkout"
        )


def keep_out_of_logs(value: str) -> None:
    """Hide `value` in logs. If it has one or several URLs, hide the passwords in them."""
    for single in (value, *_NEXT_ADDRESS.split(value)):
        password = single.partition("://")[2].rpartition("@")[0].partition(":")[2]
        candidates = (single, password, unquote(password))
        SECRETS.update(secret for secret in candidates if len(secret) >= MIN_SECRET_CHARS)


def private_folder(path: Path, is_passable: bool = False) -> Path:
    """Create the folder with mode 0700, or remove the access of other accounts to an existing
    folder.

    With `is_passable`, other accounts that could enter the folder still can, but cannot list it. A
    folder that all accounts share, like /tmp, is not changed.
    """
    path.mkdir(mode=0o700, parents=True, exist_ok=True)
    mode = path.stat().st_mode
    others = stat.S_IRWXG | stat.S_IRWXO & ~(stat.S_IXOTH if is_passable else 0)
    if mode & others and not mode & stat.S_ISVTX:
        # A mounted volume may belong to another account, which makes this impossible.
        with suppress(PermissionError):
            path.chmod(stat.S_IMODE(mode) & ~others)
    return path


def generated_secret(path: Path) -> str:
    """Return the secret in the file `path`. The first call creates it with mode 0600.

    If several processes start at once, they use the same secret: a complete file is linked to
    `path`, and the slower processes read it. Raises SystemExit if that is impossible, or if the
    file is empty, as after a power failure in version 0.1.
    """
    try:
        if not path.exists():
            _create_secret(path)
        secret = path.read_text()
    except OSError as error:
        raise folder_error("STRATA_DATA_DIR", error) from None
    if not secret.strip():
        raise SystemExit(
            f"strata: {path} is empty: restore it from a copy, or delete it so that the next start "
            "makes a new one"
        )
    return secret


def _create_secret(path: Path) -> None:
    handle, draft = tempfile.mkstemp(dir=path.parent)
    try:
        with os.fdopen(handle, "w") as file:
            file.write(secrets.token_urlsafe(64))
            # After a power failure, the link could otherwise name an empty file.
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)
    except FileExistsError:
        pass
    finally:
        Path(draft).unlink()


def folder_error(name: str, error: OSError) -> SystemExit:
    """Return the exception for a variable with a folder that cannot be used."""
    return SystemExit(
        f"strata: {name} takes the path of a folder in which this account can create files: "
        f"{error.filename}: {error.strerror}"
    )
