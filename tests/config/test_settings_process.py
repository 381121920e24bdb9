"""Settings as a process reads them; `tests/unit/test_settings.py` has the rules."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from config.settings.env import generated_secret
from tests.server import ROOT

pytestmark = pytest.mark.process

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


def run_python(program: str, tmp_path: Path, **variables: str) -> subprocess.CompletedProcess:
    return subprocess.run(
        [sys.executable, "-c", program],
        cwd=ROOT,
        env=os.environ | {"STRATA_DATA_DIR": str(tmp_path)} | variables,
        capture_output=True,
        text=True,
        timeout=60,
    )


def test_every_secret_may_be_in_a_file(tmp_path):
    variables = {"NAMES": json.dumps(list(NAMES))}
    for name, value in NAMES.items():
        path = tmp_path / name.lower()
        path.write_text(f"{value}\n")
        variables |= {name: "", f"{name}_FILE": str(path)}
    process = run_python(SHOW, tmp_path, **variables)
    assert process.returncode == 0, process.stderr
    assert json.loads(process.stdout) == NAMES


@pytest.mark.parametrize(
    ("package", "extra", "name", "value"),
    [
        (
            "opentelemetry.exporter",
            "tracing",
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "http://127.0.0.1:9",
        ),
        ("boto3", "s3", "STRATA_S3_BUCKET", "strata"),
    ],
)
def test_a_setting_without_its_packages_stops_the_start(tmp_path, package, extra, name, value):
    lacking = f"import sys; sys.modules['{package}'] = None; import config.settings"
    process = run_python(lacking, tmp_path, **{name: value})
    assert process.returncode == 1
    assert process.stderr == (
        f"strata: {name} is set, but its packages are not installed: install the extra "
        f"{extra} of the package, or deploy/requirements-{extra}.txt in a checkout\n"
    )
    assert (ROOT / f"deploy/requirements-{extra}.txt").exists()


def test_without_a_collector_no_tracing_package_is_loaded(tmp_path):
    serve = "import sys, config.asgi; print('opentelemetry.sdk' in sys.modules)"
    process = run_python(serve, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="")
    assert (process.stdout, process.stderr) == ("False\n", "")


def test_tracing_starts_no_thread_in_a_process_that_may_still_fork(tmp_path):
    count = "import threading, config.asgi; print(threading.active_count())"
    process = run_python(count, tmp_path, OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:9")
    assert (process.stdout, process.stderr) == ("1\n", "")


@pytest.mark.parametrize("name", ["STRATA_MAX_UPLOAD_MB", "STRATA_MAX_FILE_MB"])
def test_a_form_may_contain_the_largest_file(tmp_path, name):
    show = "from config import settings; print(settings.MAX_FORM_BYTES)"
    process = run_python(show, tmp_path, **{name: "1000"})
    assert (process.stdout, process.stderr) == (f"{1001 * 2**20}\n", "")


def test_a_wrong_value_stops_the_start_with_one_line(tmp_path):
    process = run_python(
        "import config.settings", tmp_path, STRATA_S3_ENDPOINT="https://s3.example"
    )
    assert process.returncode == 1
    assert process.stderr == (
        "strata: STRATA_S3_ENDPOINT is set, but STRATA_S3_BUCKET is not. "
        "Set it to the name of a bucket on that server.\n"
    )


@pytest.mark.parametrize("name", ["STRATA_DATA_DIR", "PROMETHEUS_MULTIPROC_DIR"])
def test_a_folder_that_cannot_be_used_stops_the_start_with_one_line(tmp_path, name):
    file = tmp_path / "file"
    file.touch()
    process = run_python("import config.settings", tmp_path, **{name: str(file)})
    assert process.returncode == 1
    assert process.stderr == (
        f"strata: {name} takes the path of a folder in which this account can create files:"
        f" {file}: File exists\n"
    )


@pytest.mark.parametrize("name", ["secret_key", "metrics_token"])
def test_an_empty_secret_stops_the_start(tmp_path, name):
    """With an empty metrics_token, anybody could read /metrics."""
    (tmp_path / name).touch()
    process = run_python(
        "import config.settings", tmp_path, STRATA_SECRET_KEY="", STRATA_METRICS_TOKEN=""
    )
    assert process.returncode == 1
    assert process.stderr.startswith(f"strata: {tmp_path / name} is empty: restore it")
    assert process.stderr.count("\n") == 1


def test_a_secret_that_cannot_be_stored_leaves_no_draft(tmp_path, monkeypatch):
    def fail(file: int) -> None:
        raise OSError(28, "No space left on device", str(tmp_path))

    monkeypatch.setattr("config.settings.env.os.fsync", fail)
    with pytest.raises(SystemExit, match="STRATA_DATA_DIR takes .* No space left on device"):
        generated_secret(tmp_path / "secret_key")
    assert list(tmp_path.iterdir()) == []


HOSTS = """
import json
from config import settings
print(json.dumps([settings.ALLOWED_HOSTS, settings.CSRF_TRUSTED_ORIGINS]))
"""


def test_an_allowed_host_with_a_port_is_accepted_with_the_origin_of_the_port(tmp_path):
    hosts = "example.org,https://Example.org:8443/,.lan"
    process = run_python(HOSTS, tmp_path, STRATA_ALLOWED_HOSTS=hosts, STRATA_URL="")
    allowed, origins = json.loads(process.stdout)
    assert allowed[:3] == ["example.org", "example.org", ".lan"]
    assert origins[:3] == ["https://example.org", "https://example.org:8443", "https://*.lan"]
