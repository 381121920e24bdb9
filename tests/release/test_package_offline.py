"""From the wheels alone, in an empty environment and without a network: the first chat, a backup,
a restore, and an uninstallation that leaves the data.
"""

import subprocess
import sys

from tests.release.running import size_mb, without_network
from tests.release.wheelhouse import wheelhouse
from tests.server import ROOT


def test_strata_installs_chats_and_moves_without_a_network(tmp_path, report):
    wheels = wheelhouse()
    figures = tmp_path / "figures"
    done = subprocess.run(
        without_network(
            [sys.executable, "-m", "tests.release.offline", wheels, tmp_path / "s", figures]
        ),
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    lines = figures.read_text().splitlines()
    report({"wheels of all packages": f"{size_mb(wheels):.0f} MB"})
    report({what: figure for figure, _, what in (line.partition("  ") for line in lines)})
    assert len(lines) == 8
