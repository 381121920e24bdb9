"""A secret may lie in a file; a wrong value stops the start with one line."""

import os
import subprocess
import sys

import pytest

from config import environment
from tests.server import ROOT


def read(name: str = "STRATA_PORT_OF_TESTS") -> int:
    return environment.read_secret(name, 1, environment.integer(1, 9), "a number from 1 to 9")


def test_a_value_is_read_from_a_file(monkeypatch, tmp_path):
    (tmp_path / "port").write_text("7\n")
    monkeypatch.setenv("STRATA_PORT_OF_TESTS_FILE", str(tmp_path / "port"))
    assert read() == 7


def test_a_file_that_is_not_there_stops_the_start(monkeypatch):
    monkeypatch.setenv("STRATA_PORT_OF_TESTS_FILE", "/nowhere")
    with pytest.raises(SystemExit, match="STRATA_PORT_OF_TESTS_FILE takes a file"):
        read()


@pytest.mark.parametrize(
    ("variables", "told"),
    [
        ({"STRATA_POOLER": "perhaps"}, "STRATA_POOLER takes on or off"),
        ({"STRATA_REPLICA_URL": "mysql://x"}, "STRATA_REPLICA_URL takes postgresql://"),
        ({"CELERY_BROKER_URL": "kafka://x"}, "CELERY_BROKER_URL takes a pgmq://"),
        ({"STRATA_S3_ENDPOINT": "https://s3.example"}, "STRATA_S3_BUCKET takes the name"),
    ],
)
def test_a_wrong_value_is_told_in_one_line(variables, told, tmp_path):
    command = [sys.executable, "-c", "import config.settings"]
    given = os.environ | {"STRATA_DATA_DIR": str(tmp_path)} | variables
    done = subprocess.run(command, cwd=ROOT, env=given, capture_output=True, text=True)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"strata: {told}")
