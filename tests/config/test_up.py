"""`manage.py up` in a separate process: output when it is stopped."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.server import ROOT, reserved_port

pytestmark = pytest.mark.process


@pytest.fixture
def up(tmp_path) -> Iterator[Callable[[], subprocess.Popen]]:
    started = []
    reservation, port = reserved_port()

    def start() -> subprocess.Popen:
        environment = os.environ | {
            "STRATA_DATA_DIR": str(tmp_path),
            "STRATA_CHAT_MODEL": "openai-chat:scripted",
            "STRATA_SYSTEM_MODEL": "extractive",
        }
        command = [sys.executable, "manage.py", "up", "--port", str(port)]
        process = subprocess.Popen(
            command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True
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
