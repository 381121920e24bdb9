"""Texts for the command line: the version, the list of Strata's commands, and problems."""

from pathlib import Path

import django
from django.core.management import get_commands, load_command_class
from django.db import DatabaseError, OperationalError
from psycopg.errors import DeadlockDetected, UndefinedColumn, UndefinedTable

from config import __version__

APPS = ("config", "projects", "chat", "memory")


def version() -> str:
    """Return the version of Strata and the newest migration of each app."""
    root = Path(__file__).resolve().parents[2]
    newest = (max((root / app / "migrations").glob("0*.py")).stem for app in APPS)
    schema = ", ".join(f"{app} {name[:4]}" for app, name in zip(APPS, newest, strict=True))
    return f"strata {__version__} (schema: {schema})"


def commands() -> str:
    """Return a line for each of Strata's commands."""
    django.setup()
    names = {name: app for name, app in get_commands().items() if app in APPS}
    width = max(map(len, names))
    lines = [
        f"  {name:{width}}  {load_command_class(app, name).help.partition('. ')[0].rstrip('.')}"
        for name, app in sorted(names.items())
    ]
    return "\n".join(
        [
            "Usage: strata [COMMAND] [OPTIONS]",
            "",
            *lines,
            "",
            "Without a command, the installed package runs `up`.",
            "COMMAND --help describes a command. `help --commands` also lists those of Django.",
        ]
    )


def database_problem(error: DatabaseError) -> str | None:
    """Return the problem if the database is unavailable or has no tables; None for other errors."""
    reason = str(error).strip().partition("\n")[0].rstrip(".")
    if isinstance(error.__cause__, UndefinedTable | UndefinedColumn):
        return f"The tables are not up to date ({reason}): run `prepare` first."
    if isinstance(error, OperationalError) and not isinstance(error.__cause__, DeadlockDetected):
        return f"The database cannot be used: {reason}."
    return None
