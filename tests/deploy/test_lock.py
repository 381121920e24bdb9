"""The locks are complete and agree, and the SBOM lists every package that Strata runs on."""

import json
import re
import subprocess
import tomllib
from collections.abc import Iterable
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path

import pytest
from django.conf import settings
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from config import __version__

ROOT = Path(settings.BASE_DIR)
DECLARED = tomllib.loads((ROOT / "pyproject.toml").read_text())
RUNTIME = DECLARED["project"]["dependencies"]
TRACING = DECLARED["project"]["optional-dependencies"]["tracing"]
S3 = DECLARED["project"]["optional-dependencies"]["s3"]
DEMO = DECLARED["dependency-groups"]["demo"]
DEV = DECLARED["dependency-groups"]["dev"]
LOCKS = {
    "requirements.txt": RUNTIME,
    "requirements-dev.txt": RUNTIME + S3 + TRACING + DEV,
    "requirements-demo.txt": DEMO,
    "deploy/requirements-s3.txt": S3,
    "deploy/requirements-tracing.txt": TRACING,
}
PINNED = re.compile(r"(?P<name>[a-z0-9-]+)==(?P<version>[^\s;]+)(?P<marker> ; .*)?")


def locked(path: str) -> dict[str, str]:
    """Return the version of each package in a lock. Each line must be a pin with hashes."""
    text = re.sub(r"^\s*#.*\n", "", (ROOT / path).read_text(), flags=re.MULTILINE)
    versions = {}
    for entry in text.replace("\\\n", "").splitlines():
        pin, *hashes = entry.split("--hash=")
        match = PINNED.fullmatch(pin.strip())
        assert match, f"{path}: {pin}"
        assert hashes and all(re.fullmatch(r"sha256:[0-9a-f]{64}\s*", digest) for digest in hashes)
        versions[match["name"]] = match["version"]
    return versions


def runtime_packages() -> dict[str, str]:
    """Return the installed version of each package that Strata can import when it runs.

    Starts at the direct dependencies and follows the metadata of what is installed. The demo
    model's packages are installed without their dependencies, or not at all.
    """
    pins: dict[str, str] = {}
    waiting = [Requirement(line) for line in RUNTIME + S3]
    visited: set[tuple[str, frozenset[str]]] = set()
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in visited:
            continue
        visited.add((name, frozenset(wanted.extras)))
        pins[name] = version(name)
        for line in requires(name) or ():
            needed = Requirement(line)
            extras = ("", *wanted.extras)
            if not needed.marker or any(
                needed.marker.evaluate({"extra": extra}) for extra in extras
            ):
                waiting.append(needed)
    for line in DEMO:
        name = canonicalize_name(Requirement(line).name)
        try:
            pins[name] = version(name)
        except PackageNotFoundError:
            continue
    return pins


@pytest.mark.parametrize("path", LOCKS)
def test_a_lock_pins_every_direct_dependency_as_declared(path):
    versions = locked(path)
    for requirement in map(Requirement, LOCKS[path]):
        assert str(requirement.specifier) == f"=={versions[canonicalize_name(requirement.name)]}"


def test_the_locks_agree_on_every_version():
    everything = locked("requirements-dev.txt")
    for path in (
        "requirements.txt",
        "deploy/requirements-s3.txt",
        "deploy/requirements-tracing.txt",
    ):
        assert locked(path).items() <= everything.items(), path


def test_the_lock_holds_every_package_that_is_installed():
    packages = runtime_packages()
    assert len(packages) > 100
    assert (
        packages.items()
        <= (
            locked("requirements.txt")
            | locked("deploy/requirements-s3.txt")
            | locked("requirements-demo.txt")
        ).items()
    )


def installs() -> Iterable[str]:
    """Yield the lines of the Makefile and the image that install packages."""
    for path in ("Makefile", "deploy/docker/Dockerfile"):
        yield from re.findall(r"^[^#\n]*pip install.*$", (ROOT / path).read_text(), re.MULTILINE)


def test_nothing_is_installed_without_its_hash():
    assert list(installs())
    assert all("--require-hashes" in line for line in installs())


def test_the_sbom_lists_every_installed_package(tmp_path):
    written = tmp_path / "sbom.json"
    # The packages are installed already: make must not run pip from a test.
    targets = [
        argument
        for stamp in (".made", ".installed", ".installed-dev")
        for argument in ("-o", f".venv/{stamp}")
    ]
    subprocess.run(
        ["make", "--silent", *targets, "sbom", f"SBOM={written}"],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    sbom = json.loads(written.read_text())
    assert sbom["bomFormat"] == "CycloneDX"
    assert sbom["metadata"]["component"]["version"] == __version__
    listed = {canonicalize_name(component["name"]): component for component in sbom["components"]}
    packages = runtime_packages()
    assert {name: listed[name]["version"] for name in packages} == packages
    for name in packages:
        [distribution] = listed[name]["externalReferences"]
        assert {digest["alg"] for digest in distribution["hashes"]} == {"SHA-256"}
