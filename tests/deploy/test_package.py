"""The wheel: built twice alike, and installed in an environment of its own, where it starts."""

import hashlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from urllib.request import urlopen
from zipfile import ZipFile

import pytest
from django.conf import settings

from config import __version__
from tests.shape.ports import reserved_port

ROOT = Path(settings.BASE_DIR)
pytestmark = pytest.mark.process


def build(folder: Path) -> Path:
    """Build the wheel from a copy of the source archive's files, and return its path."""
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", folder],
        cwd=ROOT,
        env=os.environ | {"SOURCE_DATE_EPOCH": "1790000000"},
        check=True,
        capture_output=True,
    )
    [wheel] = folder.glob("*.whl")
    return wheel


@pytest.fixture(scope="module")
def wheel(tmp_path_factory) -> Path:
    return build(tmp_path_factory.mktemp("dist"))


@pytest.fixture(scope="module")
def strata(wheel, tmp_path_factory) -> Path:
    """The command of the installed wheel. Its environment borrows the packages of this one."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, symlinks=True)
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    (packages / "borrowed.pth").write_text(sysconfig.get_path("purelib"))
    subprocess.run(
        [Path(sys.executable).with_name("uv"), "pip", "install", "--offline", "--no-deps"]
        + ["--quiet", "--python", folder / "bin/python", wheel],
        check=True,
    )
    return folder / "bin/strata"


def run(strata: Path, *arguments: str, **variables: str) -> str:
    # Neither the checkout nor a setting of this test run must help.
    environment = {"PATH": "/usr/bin:/bin", "HOME": str(strata.parents[1]), **variables}
    return subprocess.run(
        [strata, *arguments],
        cwd=strata.parent,
        env=environment,
        check=True,
        capture_output=True,
        text=True,
    ).stdout


def test_the_same_files_give_the_same_bytes(wheel, tmp_path):
    other = build(tmp_path)
    assert wheel.name == other.name == f"strata-{__version__}-py3-none-any.whl"
    assert (
        hashlib.sha256(wheel.read_bytes()).digest() == hashlib.sha256(other.read_bytes()).digest()
    )


def test_it_holds_what_strata_runs_on_and_no_more(wheel):
    with ZipFile(wheel) as archive:
        names = archive.namelist()
    assert {name.split("/")[0] for name in names} == {
        "strata",
        f"strata-{__version__}.dist-info",
    }
    inside = {name.removeprefix("strata/") for name in names}
    listed = subprocess.run(
        ["git", "ls-files", "config", "projects", "chat", "memory", "templates", "static"],
        cwd=ROOT,
        check=True,
        capture_output=True,
        text=True,
    ).stdout.split()
    assert set(listed) <= inside
    assert "__main__.py" in inside
    assert not [name for name in names if "/tests/" in name or name.endswith((".pyc", ".env"))]


def test_the_command_describes_itself(strata):
    assert run(strata, "version").startswith(f"strata {__version__} (schema: config 0")
    text = run(strata, "--help")
    assert "\n  backup " in text and "\n  up " in text
    assert "makemigrations" not in text
    assert "--concurrency" in run(strata, "run", "worker", "--help")


def test_it_starts_in_a_folder_of_the_user(strata, tmp_path):
    # The path of PostgreSQL's socket may not be long.
    data_home = tmp_path / "d"
    reservation, port = reserved_port()
    environment = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(tmp_path),
        "XDG_DATA_HOME": str(data_home),
        "PORT": str(port),
        "STRATA_CHAT_MODEL": "openai-chat:scripted",
    }
    process = subprocess.Popen(
        [strata], cwd=tmp_path, env=environment, stdout=subprocess.PIPE, text=True
    )
    try:
        assert process.stdout
        ready = next(line for line in process.stdout if line.startswith("Strata is ready"))
        address = ready.split()[-1]
        page = urlopen(f"{address}/accounts/login/").read().decode()
        style = page.partition('rel="stylesheet" href="')[2].partition('"')[0]
        assert urlopen(f"{address}{style}").status == 200
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
        reservation.close()
    assert process.returncode == 0
    assert (data_home / "strata/secret_key").exists()
    assert not shutil.which("strata", path=str(ROOT / ".venv/bin")), "the checkout is no package"
