"""`manage.py up` in a separate process: output when it is stopped."""

import errno
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from config.management.commands.up import Command
from config.postgres import server
from config.postgres.server import EmbeddedPostgresError
from tests.server import ROOT, reserved_port

pytestmark = pytest.mark.process


@pytest.fixture
def up(tmp_path) -> Iterator[Callable[[], subprocess.Popen]]:
    started = []
    reservation, port = reserved_port()

    def start(*options: str, **variables: str) -> subprocess.Popen:
        environment = os.environ | {
            "STRATA_DATA_DIR": str(tmp_path),
            "STRATA_CHAT_MODEL": "openai-chat:scripted",
            "STRATA_SYSTEM_MODEL": "extractive",
        }
        command = [sys.executable, "manage.py", "up", "--port", str(port), *options]
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment | variables,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.communicate()
    reservation.close()


def read_until(process: subprocess.Popen, beginning: str) -> str:
    """The next line that begins so; the lines before are passed over."""
    return next(line for line in process.stdout if line.startswith(beginning))


def test_its_files_are_for_its_account_only_and_ctrl_c_stops_it(up, tmp_path: Path):
    tmp_path.chmod(0o755)
    for name in ("logs", "metrics"):
        (tmp_path / name).mkdir(mode=0o755)
    (tmp_path / "logs/web-1.log").touch(mode=0o644)
    process = up()
    read_until(process, "Strata is ready")
    files = [path for path in tmp_path.rglob("*") if "postgres" not in path.parts]
    assert {"web-1.log", "secret_key", "metrics_token"} <= {path.name for path in files}
    assert {path for path in files if path.stat().st_mode & 0o077} == set()
    # The account of root's PostgreSQL passes through.
    assert tmp_path.stat().st_mode & 0o076 == 0
    check_ctrl_c(process, tmp_path)


def test_ctrl_c_is_answered_at_once_during_the_start(up, tmp_path: Path):
    process = up()
    read_until(process, "Strata is starting")
    check_ctrl_c(process, tmp_path)


def check_ctrl_c(process: subprocess.Popen, data_dir: Path) -> None:
    process.send_signal(signal.SIGINT)
    assert read_until(process, "Stopping") == "Stopping…\n"
    assert process.stdout.read().endswith("Stopped.\n")
    assert process.wait(30) == 0
    assert not (data_dir / "up.lock").exists()


def temporary_folder(process: subprocess.Popen) -> Path:
    return Path(read_until(process, "Everything is stored in").split()[4])


def processes_of(folder: Path) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if any(str(folder) in part for part in process.cmdline()):
                found.append(process)
    return found


@pytest.mark.parametrize(
    ("moment", "number"),
    [
        ("Strata is ready", signal.SIGTERM),
        ("Strata is ready", signal.SIGHUP),
        ("Strata is starting", signal.SIGINT),
        ("Strata is starting", signal.SIGHUP),
    ],
)
def test_a_temporary_store_is_gone_after_a_signal(up, tmp_path: Path, moment, number):
    process = up("--temporary")
    folder = temporary_folder(process)
    read_until(process, moment)
    assert (folder / "secret_key").exists()
    process.send_signal(number)
    process.stdout.read()
    assert process.wait(60) == 0
    assert not folder.exists()
    assert processes_of(folder) == []
    # The usual data folder was not used.
    assert list(tmp_path.iterdir()) == []


def test_a_temporary_store_is_gone_after_an_error(up):
    process = up("--temporary", CELERY_BROKER_URL="redis://127.0.0.1:6379/0")
    output = process.communicate(timeout=60)[0]
    assert "--temporary stores everything in one folder: unset DATABASE_URL" in output
    assert process.returncode != 0


def test_an_abbreviated_option_does_not_use_the_usual_folder(up, tmp_path: Path):
    process = up("--temp")
    output = process.communicate(timeout=60)[0]
    assert "Write --temporary in full" in output
    assert not (tmp_path / "postgres").exists()


def test_a_signal_while_modules_load_deletes_the_temporary_folder():
    code = """
import os, signal
from config.runtime.temporary import temporary_data_dir
with temporary_data_dir() as folder:
    print(folder, flush=True)
    os.kill(os.getpid(), signal.SIGTERM)
"""
    command = [sys.executable, "-c", code]
    result = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=60)
    assert result.returncode == 130
    assert result.stderr == ""
    assert not Path(result.stdout.strip()).exists()


@pytest.mark.parametrize("error", [OSError("No space left"), EmbeddedPostgresError("It ended")])
def test_a_database_that_does_not_start_is_tried_again(settings, monkeypatch, capsys, error):
    def fail(data_dir):
        raise error

    monkeypatch.setattr(server, "is_running", lambda data_dir: False)
    monkeypatch.setattr(server, "start", fail)
    monkeypatch.setattr("config.management.commands.up.DATABASE_RETRY_S", 0)
    settings.EMBEDDED_POSTGRES = True
    Command().keep_database_up()
    assert f"{error}; trying again" in capsys.readouterr().out


def test_a_full_disk_is_reported_in_one_line(tmp_path: Path):
    process = subprocess.run(
        ["sh", "-c", 'ulimit -f 0; exec "$@"', "sh", sys.executable, "manage.py", "up"],
        cwd=ROOT,
        env=os.environ
        | {
            "STRATA_DATA_DIR": str(tmp_path),
            "STRATA_SECRET_KEY": "long-and-random",
            "STRATA_METRICS_TOKEN": "another-one",
        },
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert process.returncode == 1
    assert process.stderr == f"CommandError: {tmp_path}: {os.strerror(errno.EFBIG)}\n"
