"""The files of a release, and all wheels for an installation without internet access."""

import hashlib
import subprocess
from pathlib import Path

from tests.server import ROOT

LOCKS = ("requirements.txt", "requirements-demo.txt")
# The test's packages are installed: make must not install them from a test.
INSTALLED = [
    argument
    for stamp in (".made", ".installed", ".installed-dev", ".demo-tried")
    for argument in ("-o", f".venv/{stamp}")
]


def make(*arguments: str) -> None:
    subprocess.run(["make", "--silent", *INSTALLED, *arguments], cwd=ROOT, check=True)


def wheelhouse() -> Path:
    """Return the folder of `make bundle` for the locks and this Python; downloads what it lacks."""
    locks = b"".join((ROOT / name).read_bytes() for name in LOCKS)
    folder = ROOT / "var/release" / hashlib.sha256(locks).hexdigest()[:12]
    folder.mkdir(parents=True, exist_ok=True)
    for old in folder.glob("strata*.whl"):
        old.unlink()
    make("bundle", f"DIR={folder}")
    return folder
