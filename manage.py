#!/usr/bin/env python
"""Strata's command line, as manage.py in a checkout and as `strata` in the installed package.

Starts the embedded PostgreSQL for commands that need it.
"""

import os
import signal
import sys
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

# `up` starts the database itself; the others need none.
WITHOUT_DATABASE = {
    *("up", "run", "help", "--help", "-h", "diffsettings", "findstatic"),
    *("collectstatic", "compilemessages", "makemessages", "startapp", "startproject"),
    *("spectacular", "sendtestemail"),
}
VERSION, HELP = {"version", "--version"}, {"help", "--help", "-h"}


def needs_database(arguments: list[str]) -> bool:
    """Check whether the command line, without the program's name, uses the database."""
    if (
        not arguments
        or arguments[0] in WITHOUT_DATABASE | VERSION
        or {"-h", "--help"} & {*arguments}
    ):
        return False
    return arguments[0] != "check" or "--database" in arguments


def database(arguments: list[str]) -> AbstractContextManager[Any]:
    """Return a context that runs the embedded server, if it is in use and needed.

    For `up --temporary`, return a context with a data folder that is deleted at its end.
    """
    if arguments[:1] == ["up"] and not {"-h", "--help"} & {*arguments}:
        from config.runtime import temporary

        if temporary.OPTION in arguments:
            return temporary.temporary_data_dir()
    if needs_database(arguments):
        from django.conf import settings

        from config.postgres import server

        if settings.EMBEDDED_POSTGRES:
            return server.attached(settings.DATA_DIR)
    return nullcontext()


def main() -> None:
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
    folder = str(Path(__file__).resolve().parent)
    # The package keeps the apps in a folder of its own, which only this adds to the path.
    if folder not in sys.path:
        sys.path.insert(0, folder)
    # The package's file is __main__.py. The settings look at the command, too.
    if Path(__file__).stem == "__main__" and not sys.argv[1:]:
        sys.argv.append("up")
    arguments = sys.argv[1:]
    try:
        from config.management import overview
    except ImportError as error:
        raise SystemExit("Django is not installed: run `make run` or `make test`.") from error
    if len(arguments) == 1 and arguments[0] in VERSION:
        print(overview.version())
    elif len(arguments) == 1 and arguments[0] in HELP:
        print(overview.commands())
    else:
        execute(arguments)


def execute(arguments: list[str]) -> None:
    """Run a command. Problems that are no errors of the program end it with one line.

    Of a problem with the database, `--traceback` shows the traceback.
    """
    from django.core.management import execute_from_command_line
    from django.db import DatabaseError

    from config.management import overview
    from config.postgres.server import EmbeddedPostgresError

    try:
        with database(arguments):
            execute_from_command_line(sys.argv)
    except EmbeddedPostgresError as error:
        raise SystemExit(f"strata: {error}") from error
    except KeyboardInterrupt:
        raise SystemExit(128 + signal.SIGINT) from None
    except BrokenPipeError:
        # The reader of the output has ended, such as `head`. Python flushes the output at its exit,
        # and would report the same error again.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        raise SystemExit(1) from None
    except UnicodeEncodeError as error:
        # Only names of files may have bytes that are not UTF-8. Python stores them as surrogates.
        if not any("\udc80" <= character <= "\udcff" for character in "".join(arguments)):
            raise
        raise SystemExit("strata: an argument is not text in UTF-8") from error
    except DatabaseError as error:
        problem = overview.database_problem(error)
        if problem is None or "--traceback" in arguments:
            raise
        raise SystemExit(f"strata: {problem}") from error


if __name__ == "__main__":
    main()
