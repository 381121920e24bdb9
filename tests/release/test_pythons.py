"""Strata from its lock and wheel on every Python that this machine has: start, a chat, stop."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.release.running import StrataCommand, chat, messages
from tests.release.wheelhouse import make
from tests.scripted import ScriptedModel
from tests.server import ROOT
from tests.shape.ports import reserved_port

VERSIONS = ("3.11", "3.12", "3.13", "3.14")
QUESTION = "The cutover is on 3 March. Who owns it?"


def interpreters() -> Iterator[Path]:
    """Yield what may be an interpreter: pyenv's, uv's, and those on the PATH."""
    homes = [Path.home() / ".pyenv/versions", Path.home() / ".local/share/uv/python"]
    for home in homes:
        yield from sorted(home.glob("*/bin/python3"))
    for folder in os.environ["PATH"].split(":"):
        yield from Path(folder).glob("python3.1?")


@pytest.fixture(scope="module")
def pythons() -> dict[str, Path]:
    found = {}
    for path in interpreters():
        done = subprocess.run([path, "--version"], capture_output=True, text=True)
        if match := re.fullmatch(r"Python (\d\.\d+)\.\d+\n", done.stdout):
            found[match[1]] = path
    return found


@pytest.fixture(scope="module")
def wheel() -> Path:
    make("dist")
    [path] = (ROOT / "dist").glob("strata-*.whl")
    return path


@pytest.mark.parametrize("version", VERSIONS)
def test_strata_runs_on_this_python(version, pythons, wheel, tmp_path, report):
    if version not in pythons:
        pytest.skip(f"Python {version} is not here")
    environment = tmp_path / "env"
    uv(environment, "venv", environment, "--python", pythons[version])
    install = ("pip", "install", "--only-binary", ":all:")
    uv(environment, *install, "--require-hashes", "-r", ROOT / "requirements.txt")
    uv(environment, *install, "--no-deps", wheel)

    _, port = reserved_port()
    with ScriptedModel(default="The platform team.") as model:
        variables = {
            "PATH": "/usr/bin:/bin",
            "STRATA_DATA_DIR": str(tmp_path / "data"),
            "PORT": str(port),
            "STRATA_CHAT_MODEL": "openai-chat:scripted",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "test",
            "STRATA_OUTBOUND_ALLOW": "127.0.0.1",
        }
        command = StrataCommand([environment / "bin/strata"], variables, tmp_path)
        with command.running() as strata:
            token = command.run("create_token", "admin")
            assert chat(strata, token, QUESTION)["reply"]["content"] == "The platform team."
            assert QUESTION in messages(strata, token)
            assert strata.is_healthy()
        report({f"first start on Python {version}": f"{strata.start_s:.1f} s"})
    # Code that this Python warns about would fail on the next one.
    assert not [line for line in strata.lines if "SyntaxWarning" in line]


def uv(environment: Path, *arguments: str | Path) -> None:
    subprocess.run(
        [Path(sys.executable).with_name("uv"), "--no-config", "--quiet", *arguments],
        env=os.environ | {"VIRTUAL_ENV": str(environment)},
        check=True,
    )
