"""Reports, in one line at start-up, which features are not available on this operating system."""

import platform
import sys
from pathlib import Path

import psutil

# The file systems of Windows drives in WSL 2 and WSL 1.
WINDOWS_FILE_SYSTEMS = {"9p", "drvfs"}


def missing_features(data_dir: Path) -> str | None:
    """Return the features that do not work on this system in one line; None if all work."""
    missing = [*_of_the_system(), *_of_windows(data_dir)]
    return f"On this system, {'; '.join(missing)}. See docs/install.md." if missing else None


def _of_the_system() -> list[str]:
    if sys.platform != "linux":
        return [
            "processes go on if `strata` itself is killed (end them by hand)",
            "the kernel does not confine the processes that read files",
        ]
    # Without a version of glibc, the system uses musl.
    if not platform.libc_ver()[1]:
        return ["the embedded PostgreSQL and the demo model have no packages (musl)"]
    return []


def _of_windows(data_dir: Path) -> list[str]:
    """Return the problems of Linux in Windows (WSL)."""
    release = platform.release().lower()
    if sys.platform != "linux" or "microsoft" not in release:
        return []
    missing = []
    if "wsl2" not in release:
        missing.append("the embedded PostgreSQL is unreliable (WSL 1: use WSL 2)")
    if file_system(data_dir) in WINDOWS_FILE_SYSTEMS:
        missing.append(
            "the data folder is on a drive of Windows, which is slow and keeps no permissions "
            "(set STRATA_DATA_DIR to a folder of Linux)"
        )
    return missing


def file_system(path: Path) -> str:
    """Return the type of the file system that contains `path`, in lower case."""
    mounts = [
        (Path(mount.mountpoint), mount.fstype.lower()) for mount in psutil.disk_partitions(all=True)
    ]
    around = [mount for mount in mounts if path.resolve().is_relative_to(mount[0])]
    return max(around, key=lambda mount: len(mount[0].parts), default=(path, ""))[1]
