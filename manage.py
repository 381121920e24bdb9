#!/usr/bin/env python
"""Strata's command line. Starts the embedded PostgreSQL for commands that need it."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext

# `up` starts the database itself; the others need none.
WITHOUT_DATABASE = {
    *("up", "help", "version", "--help", "-h", "--version", "diffsettings", "findstatic"),
    *("collectstatic", "compilemessages", "makemessages", "startapp", "startproject"),
    *("spectacular", "sendtestemail"),
}


def needs_database(arguments: list[str]) -> bool:
    """Check whether the command line, without the program's name, uses the database."""
    if not arguments or arguments[0] in WITHOUT_DATABASE or {"-h", "--help"} & {*arguments}:
        return False
    return arguments[0] != "check" or "--database" in arguments


def database(arguments: list[str]) -> AbstractContextManager[None]:
    """Return a context that runs the embedded server, if it is in use and needed."""
    if needs_database(arguments):
        from django.conf import settings

        from config.postgres import server

        if settings.EMBEDDED_POSTGRES:
            return server.attached(settings.DATA_DIR)
    return nullcontext()


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit("Django is not installed: run `make run` or `make test`.") from error
    from config.postgres.server import EmbeddedPostgresError

    try:
        with database(sys.argv[1:]):
            execute_from_command_line(sys.argv)
    except EmbeddedPostgresError as error:
        raise SystemExit(f"strata: {error}") from error


if __name__ == "__main__":
    main()
