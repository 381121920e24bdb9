"""The steps of the Dockerfile, and a container with a read-only file system and without privileges:
start, chat, stop, restart, and an upgrade from the code before the newest migration.
"""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.release.history import code_before
from tests.release.image import SUITE, Container, Image, build
from tests.release.running import RunningStrata, chat, messages, size_mb
from tests.scripted import ScriptedModel
from tests.server import ROOT
from tests.shape.ports import reserved_port

QUESTION = "The cutover is on 3 March. Who owns it?"
STOP_TIMEOUT_S = 10

pytestmark = pytest.mark.skipif(
    os.geteuid() != 0 or not shutil.which("debootstrap"),
    reason="needs root and debootstrap (Debian: apt install debootstrap)",
)


@pytest.fixture(scope="module")
def image(tmp_path_factory) -> Image:
    return build(tmp_path_factory.mktemp("image"))


@pytest.fixture(scope="module")
def model():
    with ScriptedModel(default="The platform team.") as model:
        yield model


@pytest.fixture
def variables(model) -> dict[str, str]:
    return {
        "STRATA_CHAT_MODEL": "openai-chat:scripted",
        "OPENAI_BASE_URL": model.base_url,
        "OPENAI_API_KEY": "test",
        "STRATA_OUTBOUND_ALLOW": "127.0.0.1",
    }


def arguments(image: Image) -> list[str]:
    """Return the image's default command, on a port that is free."""
    _, port = reserved_port()
    assert image.command[-2] == "--port"
    return [*image.command[:-1], str(port)]


def token(container: Container, strata: RunningStrata) -> str:
    return container.inside(strata.main.pid).run("create_token", "admin")


def test_it_runs_read_only_without_privileges(image, variables, tmp_path, report):
    container = Container(image, tmp_path / "data", variables)
    with container.command().running(*arguments(image)) as strata:
        first_start_s = strata.start_s
        assert set(strata.main.uids()) == {int(image.user)}
        status = Path(f"/proc/{strata.main.pid}/status").read_text()
        assert "CapBnd:\t0000000000000000" in status and "NoNewPrivs:\t1" in status
        key = token(container, strata)
        chat(strata, key, QUESTION)
        health(image, container, strata)
        stop_s = strata.stop()
    with container.command().running(*arguments(image)) as strata:
        assert QUESTION in messages(strata, key)
    assert stop_s < STOP_TIMEOUT_S
    report(
        {
            "image without its base": f"{size_mb(image.root) - base_mb():.0f} MB",
            "first start": f"{first_start_s:.1f} s",
            "stop": f"{stop_s:.1f} s",
            "second start": f"{strata.start_s:.1f} s",
        }
    )


def health(image: Image, container: Container, strata: RunningStrata) -> None:
    """Run the health check of the image, on the port of this container."""
    words = [word.replace("8000", strata.address.rpartition(":")[2]) for word in image.health_check]
    inside = container.inside(strata.main.pid)
    inside.words[-len(image.entry_point) :] = words
    inside.run()


def test_the_backup_goes_to_standard_output(image, variables, tmp_path):
    container = Container(image, tmp_path / "data", variables)
    with container.command().running(*arguments(image)) as strata:
        inside = container.inside(strata.main.pid)
        done = subprocess.run(
            [*inside.words, "backup", "-"], env=inside.environment, capture_output=True
        )
    assert done.returncode == 0, done.stderr
    (tmp_path / "backup.tar").write_bytes(done.stdout)
    listed = subprocess.run(
        ["tar", "--list", "--file", tmp_path / "backup.tar"], capture_output=True, text=True
    )
    assert "SHA256SUMS" in listed.stdout


def test_the_data_of_the_code_before_is_upgraded(image, variables, tmp_path):
    container = Container(image, tmp_path / "data", variables, app=code_before(1, tmp_path / "app"))
    with container.command().running(*arguments(image)) as strata:
        key = token(container, strata)
        chat(strata, key, QUESTION)
        before = container.inside(strata.main.pid).run("version")
        written = messages(strata, key)
    container = Container(image, tmp_path / "data", variables)
    with container.command().running(*arguments(image)) as strata:
        assert messages(strata, key) == written
        assert strata.is_healthy()
        assert container.inside(strata.main.pid).run("version") != before
        chat(strata, key, "And who signs it off?")


def base_mb() -> float:
    return size_mb(ROOT / f"var/release/base-{SUITE}")
