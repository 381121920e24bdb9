#!/usr/bin/env python
"""Runs Strata's commands, with the embedded PostgreSQL there for those that need it."""

import os
import sys
from contextlib import AbstractContextManager, nullcontext

# `up` brings its own database; the others here need none.
WITHOUT_DATABASE = {
    *("up", "help", "version", "--help", "-h", "--version", "diffsettings", "findstatic"),
    *("collectstatic", "compilemessages", "makemessages", "startapp", "startproject"),
    *("spectacular", "sendtestemail"),
}


def needs_database(arguments: list[str]) -> bool:
    """Whether the command line `arguments` (without the program) runs something that asks one."""
    if not arguments or arguments[0] in WITHOUT_DATABASE or {"-h", "--help"} & {*arguments}:
        return False
    return arguments[0] != "check" or "--database" in arguments


def database(arguments: list[str]) -> AbstractContextManager[None]:
    """The embedded server while the command runs, if it is in use and asked for."""
    if needs_database(arguments):
        from django.conf import settings

        from config import embedded

        if settings.EMBEDDED_POSTGRES:
            return embedded.attached(settings.DATA_DIR)
    return nullcontext()


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    try:
        from django.core.management import execute_from_command_line
    except ImportError as error:
        raise SystemExit("Django is not installed here; run `make run` or `make test`.") from error
    from config.embedded import EmbeddedPostgresError

    try:
        with database(sys.argv[1:]):
            execute_from_command_line(sys.argv)
    except EmbeddedPostgresError as error:
        raise SystemExit(f"strata: {error}") from error


if __name__ == "__main__":
    main()
