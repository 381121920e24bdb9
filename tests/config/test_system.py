"""The line about what an operating system lacks."""

import platform
import sys
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from config.runtime import system

WSL_1, WSL_2 = "4.4.0-19041-Microsoft", "6.6.87.2-microsoft-standard-WSL2"


@pytest.fixture
def on(monkeypatch):
    """Pretends to be on another system."""

    def pretend(name: str = "linux", release: str = "6.1.0", glibc: str = "2.36") -> None:
        monkeypatch.setattr(sys, "platform", name)
        monkeypatch.setattr(platform, "release", lambda: release)
        monkeypatch.setattr(platform, "libc_ver", lambda: ("glibc", glibc))
        mounts = [("/", "ext4"), ("/mnt/c", "9p"), ("/mnt/c/linux", "ext4")]
        monkeypatch.setattr(
            psutil,
            "disk_partitions",
            lambda all: [SimpleNamespace(mountpoint=at, fstype=kind) for at, kind in mounts],
        )

    return pretend


def test_linux_with_glibc_lacks_nothing(on):
    on()
    assert system.missing_features(Path("/mnt/c/strata")) is None


def test_wsl_2_lacks_nothing_in_a_folder_of_linux(on):
    on(release=WSL_2)
    assert system.missing_features(Path("/home/ana")) is None
    assert system.missing_features(Path("/mnt/c/linux/strata")) is None


@pytest.mark.parametrize(
    ("elsewhere", "folder", "lacks"),
    [
        ({"name": "darwin"}, "/home/ana", ["killed", "kernel"]),
        ({"glibc": ""}, "/home/ana", ["musl"]),
        ({"release": WSL_1}, "/home/ana", ["WSL 2"]),
        ({"release": WSL_2}, "/mnt/c/strata", ["STRATA_DATA_DIR"]),
        ({"release": WSL_1}, "/mnt/c/strata", ["WSL 2", "STRATA_DATA_DIR"]),
    ],
)
def test_what_a_system_lacks_is_one_line(on, elsewhere, folder, lacks):
    on(**elsewhere)
    line = system.missing_features(Path(folder))
    assert line and "\n" not in line
    assert all(word in line for word in lacks)
