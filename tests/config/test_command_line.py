"""manage.py ends commands with one line, in place of a traceback, if the program has no error."""

import os
import signal
import subprocess
import sys
from contextlib import nullcontext

import pytest
from django.core import management
from django.db import OperationalError, ProgrammingError
from psycopg import errors

import manage
from tests.server import ROOT


@pytest.fixture
def execute(monkeypatch):
    """Run a command that raises an error, and return the exit code."""

    def run(error: BaseException, *options: str, cause: Exception | None = None) -> object:
        def fail(argv: list[str]) -> None:
            raise error from cause

        monkeypatch.setattr(management, "execute_from_command_line", fail)
        monkeypatch.setattr(manage, "database", lambda arguments: nullcontext())
        with pytest.raises(SystemExit) as ended:
            manage.execute(["memory_cycle", *options])
        return ended.value.code

    return run


def test_ctrl_c_ends_a_command_without_a_traceback(execute):
    assert execute(KeyboardInterrupt()) == 128 + signal.SIGINT


def test_an_unreachable_database_is_one_line(execute):
    error = OperationalError("couldn't get a connection after 30.00 sec")
    assert execute(error) == (
        "strata: The database cannot be used: couldn't get a connection after 30.00 sec."
    )


def test_missing_tables_are_one_line(execute):
    error = ProgrammingError('relation "auth_user" does not exist\nLINE 1: …')
    assert execute(error, cause=errors.UndefinedTable()) == (
        'strata: The tables are not up to date (relation "auth_user" does not exist): run `prepare`'
        " first."
    )


def test_an_argument_of_another_encoding_is_one_line(execute):
    error = UnicodeEncodeError("utf-8", "\udcfc", 0, 1, "surrogates not allowed")
    assert execute(error, "--project", "m\udcfcller") == "strata: an argument is not text in UTF-8"


@pytest.mark.parametrize(
    ("error", "cause", "options"),
    [
        (ProgrammingError("syntax error"), errors.SyntaxError(), []),
        (OperationalError("deadlock detected"), errors.DeadlockDetected(), []),
        (UnicodeEncodeError("ascii", "ü", 0, 1, "ordinal not in range"), None, []),
        (OperationalError("refused"), errors.ConnectionFailure(), ["--traceback"]),
    ],
)
def test_errors_of_the_program_keep_their_traceback(execute, error, cause, options):
    with pytest.raises(type(error)):
        execute(error, *options, cause=cause)


@pytest.mark.process
def test_a_reader_that_ends_is_no_error(tmp_path):
    program = "import sys; sys.argv[1:] = ['help', '--commands']; import manage; manage.main()"
    process = subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | {"STRATA_DATA_DIR": str(tmp_path), "PYTHONUNBUFFERED": "1"},
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert process.stdout is not None and process.stderr is not None
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait() == 1
