"""Settings from the environment and from files."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config import environment
from tests.server import ROOT

NAMES = {
    "STRATA_SECRET_KEY": "long-and-random",
    "STRATA_ADMIN_PASSWORD": "pass-word-1",
    "DATABASE_URL": "postgresql://ana:se%20cret@db/strata",
    "CELERY_BROKER_URL": "redis://:secret@redis/0",
    # pydantic-ai reads them itself.
    "OPENAI_API_KEY": "sk-from-a-file",
    "DEEPSEEK_API_KEY": "sk-from-another",
}
SHOW = """
import json, os
from config import settings
print(json.dumps({name: getattr(settings, name.removeprefix("STRATA_"), os.environ[name])
                  for name in json.loads(os.environ["NAMES"])}))
"""


def started(program: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | {"STRATA_DATA_DIR": str(tmp_path)} | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def secret(name: str) -> str:
    return environment.read_secret(name, "", environment.text, "a key")


@pytest.fixture
def file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "secret"
        path.write_text(text)
        return str(path)

    return write


def test_every_secret_may_stand_in_a_file(tmp_path):
    variables = {"NAMES": json.dumps(list(NAMES))}
    for name, value in NAMES.items():
        path = tmp_path / name.lower()
        path.write_text(f"{value}\n")
        variables |= {name: "", f"{name}_FILE": str(path)}
    done = started(SHOW, tmp_path, **variables)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == NAMES


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_a_wrong_file_stops_the_start_with_the_variable_named(file, tmp_path, monkeypatch, text):
    path = str(tmp_path / "nowhere") if text is None else file(text)
    monkeypatch.setenv("SOME_KEY_FILE", path)
    with pytest.raises(SystemExit) as stopped:
        secret("SOME_KEY")
    takes = "a file that can be read and has a text"
    assert str(stopped.value) == f"strata: SOME_KEY_FILE takes {takes}"


def test_two_values_for_one_secret_stop_the_start(file, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "another-key")
    monkeypatch.setenv("SOME_KEY_FILE", file("one-key"))
    with pytest.raises(SystemExit, match="SOME_KEY and SOME_KEY_FILE are both set"):
        secret("SOME_KEY")
    # As in a process that one which has read the file starts.
    monkeypatch.setenv("SOME_KEY", "one-key")
    assert secret("SOME_KEY") == "one-key"


@pytest.mark.parametrize(
    ("value", "parse"),
    [
        ("mysql://ana:canary-7@db/strata", environment.database_url),
        ("postgresql://ana:canary-7@db:port/strata", environment.database_url),
        ("postgresql://ana:canary-7@x@db/strata", environment.database_url),
        ("postgresql://ana:p@canary-7/x@db/strata", environment.database_url),
        ("postgresql://ana:canary-7%zz@db/strata", environment.database_url),
        ("postgresql://ana:p@canary-7#x@db/strata", environment.database_url),
        ("postgresql://ana:canary-7@db", environment.database_url),
        ("canary-7", environment.url("redis")),
        ("canary-7", environment.integer(1, 9)),
    ],
)
def test_a_wrong_value_is_not_told(monkeypatch, value, parse):
    monkeypatch.setenv("SOME_URL", value)
    with pytest.raises(SystemExit) as stopped:
        environment.read_secret("SOME_URL", None, parse, "an address")
    assert str(stopped.value) == "strata: SOME_URL takes an address"
    assert stopped.value.__cause__ is None and stopped.value.__suppress_context__


def test_secrets_and_passwords_in_addresses_are_known_to_the_logs(monkeypatch):
    monkeypatch.setattr(environment, "SECRETS", set())
    environment.keep_out_of_logs("postgresql://ana:sec%20ret/#1@db/strata")
    environment.keep_out_of_logs("short")
    assert {"sec%20ret/#1", "sec ret/#1"} < environment.SECRETS
    assert "short" not in environment.SECRETS


def test_traces_without_their_packages_stop_the_start(tmp_path):
    lacking = "import sys; sys.modules['opentelemetry.exporter'] = None; import config.settings"
    done = started(lacking, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert done.returncode == 1
    assert done.stderr == (
        "strata: OTEL_EXPORTER_OTLP_ENDPOINT is set, and what sends traces is not installed: "
        "pip install -r deploy/requirements-tracing.txt\n"
    )


def test_who_wants_no_traces_loads_nothing_for_them(tmp_path):
    serve = (
        "import sys, config.asgi, chat.providers.models; print('opentelemetry.sdk' in sys.modules)"
    )
    done = started(serve, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="")
    assert (done.stdout, done.stderr) == ("False\n", "")


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
    done = started("import config.settings", tmp_path, **variables)
    assert done.returncode == 1
    [line] = done.stderr.splitlines()
    assert line.startswith(f"strata: {told}")
