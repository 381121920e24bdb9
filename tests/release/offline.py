"""What test_package_offline.py runs without a network: `offline.py WHEELS FOLDER FIGURES`."""

import socket
import subprocess
import sys
import time
import venv
from pathlib import Path

from tests.release.running import StrataCommand, chat, messages, size_mb
from tests.shape.ports import reserved_port

QUESTION = "The cutover is on 3 March. Who owns it?"


def main(wheels: Path, folder: Path, figures: Path) -> None:
    refuse_a_network()
    lines = []

    def note(what: str, figure: str) -> None:
        lines.append(f"{figure}  {what}")

    environment = folder / "env"
    venv.create(environment, with_pip=True)
    empty_mb, start = size_mb(environment), time.monotonic()
    pip(environment, "install", "--no-index", "--find-links", str(wheels), "strata[demo]")
    note("installation", f"{time.monotonic() - start:.1f} s")
    note("installed packages", f"{size_mb(environment) - empty_mb:.0f} MB")

    first, second = folder / "first", folder / "second"
    with command(environment, first).running() as strata:
        note("first start", f"{strata.start_s:.1f} s")
        note("data folder after the first start", f"{size_mb(first):.0f} MB")
        token = command(environment, first).run("create_token", "admin")
        start = time.monotonic()
        chat(strata, token, QUESTION)
        note("first reply of the demo model", f"{time.monotonic() - start:.1f} s")
        command(environment, first).run("backup", str(folder / "backup.tar"))
        written = messages(strata, token)
    assert QUESTION in written

    command(environment, second).run("restore", str(folder / "backup.tar"), "--without-tombstones")
    with command(environment, second).running() as strata:
        token = command(environment, second).run("create_token", "admin")
        assert messages(strata, token) == written

    pip(environment, "uninstall", "--yes", "strata", "strata-demo-model")
    assert not (environment / "bin/strata").exists()
    note("data folder after the removal of the package", f"{size_mb(first):.0f} MB")
    pip(environment, "install", "--no-index", "--find-links", str(wheels), "strata")
    with command(environment, first).running() as strata:
        note("start without the extra demo, on the data that was left", f"{strata.start_s:.1f} s")
        token = command(environment, first).run("create_token", "admin")
        assert messages(strata, token) == written
        note("stop", f"{strata.stop():.1f} s")
    figures.write_text("\n".join(lines))


def refuse_a_network() -> None:
    assert {name for _, name in socket.if_nameindex()} <= {"lo", "sit0", "tunl0"}


def pip(environment: Path, *arguments: str) -> None:
    python = environment / "bin/python"
    subprocess.run(
        [python, "-m", "pip", "--quiet", "--disable-pip-version-check", *arguments], check=True
    )


def command(environment: Path, data_dir: Path) -> StrataCommand:
    _, port = reserved_port()
    variables = {
        "PATH": "/usr/bin:/bin",
        "HOME": str(environment.parent),
        "STRATA_DATA_DIR": str(data_dir),
        "PORT": str(port),
    }
    return StrataCommand([environment / "bin/strata"], variables, environment)


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:]))
