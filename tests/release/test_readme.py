"""The commands of README.md start Strata as they are written: `uvx`, with nothing but the wheels of
a bundle, and `make run`. The steps of `docker build` are in test_image.py.
"""

import sys
from pathlib import Path

import pytest

from tests.docs.examples import examples
from tests.release.history import CODE
from tests.release.running import StrataCommand, chat
from tests.release.wheelhouse import wheelhouse
from tests.scripted import ScriptedModel
from tests.server import ROOT
from tests.shape.ports import reserved_port

STAMPS = (".made", ".uv-tried", ".installed", ".demo-tried")


def shown(beginning: str) -> str:
    """Return the commands of the README that begin so."""
    texts = [example.text for example in examples((ROOT / "README.md").read_text())]
    [text] = [text for text in texts if text.startswith(beginning)]
    return text


@pytest.fixture
def variables(tmp_path) -> dict[str, str]:
    _, port = reserved_port()
    return {
        "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "HOME": str(tmp_path),
        "STRATA_DATA_DIR": str(tmp_path / "data"),
        "PORT": str(port),
    }


def check_first_chat(text: str, create_token: str, variables: dict[str, str], cwd: Path) -> float:
    """Run the commands, get a reply and stop. Returns the seconds until Strata was ready."""
    with ScriptedModel(default="The platform team.") as model:
        variables |= {
            "STRATA_CHAT_MODEL": "openai-chat:scripted",
            "OPENAI_BASE_URL": model.base_url,
            "OPENAI_API_KEY": "test",
            "STRATA_OUTBOUND_ALLOW": "127.0.0.1",
        }
        command = StrataCommand(["bash", "-ec", text], variables, cwd)
        with command.running() as strata:
            # `uvx` and `make` start Strata and wait for it.
            family = [strata.main, *strata.main.children(recursive=True)]
            strata.main = next(each for each in family if "python" in Path(each.exe()).name)
            token = StrataCommand(["bash", "-ec", create_token], variables, cwd).run()
            reply = chat(strata, token, "Who owns the cutover?")["reply"]
            assert reply["content"] == "The platform team."
        return strata.start_s


def test_uvx_starts_the_wheels_of_a_release(variables, tmp_path, report):
    wheels = wheelhouse()
    variables |= {
        "UV_FIND_LINKS": str(wheels),
        "UV_OFFLINE": "1",
        "UV_CACHE_DIR": str(tmp_path / "cache"),
        # The bundle is for this Python. By itself, uvx takes the first that is no environment.
        "UV_PYTHON": sys.executable,
    }
    text = shown("uvx")
    create_token = text.replace(" strata\n", " strata create_token admin\n")
    assert create_token != text
    seconds = check_first_chat(text, create_token, variables, ROOT)
    report({"uvx from the wheels to the ready line": f"{seconds:.1f} s"})


def test_make_run_starts_a_checkout(variables, tmp_path, report):
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    for name in (*CODE, "Makefile", "requirements.txt", "requirements-demo.txt"):
        (checkout / name).symlink_to(ROOT / name)
    # The environment of this test, which is complete.
    environment = checkout / ".venv"
    environment.mkdir()
    for name in ("bin", "lib", "pyvenv.cfg"):
        (environment / name).symlink_to(Path(sys.prefix) / name)
    for stamp in STAMPS:
        (environment / stamp).touch()
    create_token = ".venv/bin/python manage.py create_token admin"
    seconds = check_first_chat(shown("make run"), create_token, variables, checkout)
    report({"make run to the ready line": f"{seconds:.1f} s"})
