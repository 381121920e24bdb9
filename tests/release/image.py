"""Builds and runs the image of a Dockerfile where no registry of images can be reached.

The base is a root file system made by debootstrap, with the same version of Python from Debian.
The steps of the Dockerfile are run in it. A container is a process with its own mounts and process
ids that has that file system read-only, no privileges, and the user of the image. It uses the
network of the machine.
"""

import json
import os
import re
import shutil
import subprocess
from dataclasses import dataclass, field
from pathlib import Path

from tests.release.running import StrataCommand
from tests.server import ROOT

# The release of Debian that has the Python of the Dockerfile. STRATA_RELEASE_SUITE=forky has 3.14.
SUITE = os.environ.get("STRATA_RELEASE_SUITE", "trixie")
# An older debootstrap does not know the names of newer releases.
SCRIPT = () if (Path("/usr/share/debootstrap/scripts") / SUITE).exists() else ("sid",)
MIRROR = "http://deb.debian.org/debian"
PACKAGES = "python3,python3-venv,ca-certificates"
# Docker's default.
SHARED_MEMORY = "64m"
DEVICES = ("null", "zero", "full", "random", "urandom", "tty")


def base(folder: Path) -> Path:
    """Return a root file system like that of python:slim: pip and python are in /usr/local."""
    root = folder / f"base-{SUITE}"
    if not root.exists():
        draft = root.with_suffix(".new")
        shutil.rmtree(draft, ignore_errors=True)
        options = ["--variant=minbase", f"--include={PACKAGES}"]
        subprocess.run(["debootstrap", *options, SUITE, draft, MIRROR, *SCRIPT], check=True)
        subprocess.run(["chroot", draft, "python3", "-m", "venv", "/usr/local"], check=True)
        draft.rename(root)
    for name in ("resolv.conf", "ssl/certs/ca-certificates.crt"):
        shutil.copyfile(f"/etc/{name}", root / "etc" / name)
    return root


@dataclass
class Image:
    root: Path
    environment: dict[str, str] = field(
        default_factory=lambda: {
            "PATH": "/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin",
            "HOME": "/data",
        }
    )
    folder: str = "/"
    user: str = "0"
    volumes: list[str] = field(default_factory=list)
    entry_point: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    health_check: list[str] = field(default_factory=list)

    def apply(self, instruction: str, rest: str) -> None:
        """Do one step of a Dockerfile."""
        if instruction == "ENV":
            self.environment |= dict(re.findall(r"(\w+)=(\S+)", rest))
        elif instruction == "WORKDIR":
            self.folder = rest
            (self.root / rest.lstrip("/")).mkdir(parents=True, exist_ok=True)
        elif instruction == "COPY":
            self._copy(*rest.split())
        elif instruction == "RUN":
            self._run(rest)
        elif instruction == "USER":
            self.user = rest
        elif instruction == "VOLUME":
            self.volumes.append(rest)
        elif instruction == "ENTRYPOINT":
            self.entry_point = json.loads(rest)
        elif instruction == "CMD":
            self.command = json.loads(rest)
        elif instruction == "HEALTHCHECK":
            self.health_check = json.loads(rest.partition("CMD ")[2])
        else:
            assert instruction in ("FROM", "ARG", "EXPOSE", "STOPSIGNAL", "LABEL"), instruction

    def _copy(self, *paths: str) -> None:
        *sources, target = paths
        folder = self.root / self.folder.lstrip("/") / target
        for source in sources:
            if (ROOT / source).is_dir():
                ignored = shutil.ignore_patterns("__pycache__")
                shutil.copytree(ROOT / source, folder, ignore=ignored, dirs_exist_ok=True)
            else:
                shutil.copy2(ROOT / source, folder)

    def _run(self, script: str) -> None:
        words = ["chroot", self.root, "sh", "-ec", f"cd {self.folder}\n{script}"]
        subprocess.run(list(map(str, words)), env=self.environment, check=True)

    def account(self) -> tuple[int, int]:
        """Return the ids of the image's user and of its group."""
        for line in (self.root / "etc/passwd").read_text().splitlines():
            _, _, uid, gid, *_ = line.split(":")
            if uid == self.user:
                return int(uid), int(gid)
        raise AssertionError(f"the image has no user {self.user}")


def build(folder: Path) -> Image:
    """Run the steps of deploy/docker/Dockerfile in a copy of the base."""
    root = folder / "image"
    subprocess.run(["cp", "--archive", base(ROOT / "var/release"), root], check=True)
    image = Image(root)
    text = (ROOT / "deploy/docker/Dockerfile").read_text()
    text = re.sub(r"^\s*#.*\n", "", text, flags=re.MULTILINE).replace("\\\n", " ")
    for line in filter(str.strip, text.splitlines()):
        instruction, _, rest = line.strip().partition(" ")
        image.apply(instruction, rest.strip())
    return image


@dataclass(frozen=True)
class Container:
    """A container with the volume `data`. `app` replaces the code in the image."""

    image: Image
    data: Path
    variables: dict[str, str]
    app: Path | None = None

    def command(self, *, writable: bool = False) -> StrataCommand:
        """Return the command of the image in a container of its own."""
        uid, gid = self.image.account()
        self.data.mkdir(exist_ok=True)
        os.chown(self.data, uid, gid)
        words = ["unshare", "--mount", "--pid", "--fork", "--kill-child", "sh", "-ec"]
        environment = self.image.environment | self.variables
        script = f'{self._mounts(writable)}\nexec {self._as_user()} "$@"'
        return StrataCommand(
            [*words, script, "container", *self.image.entry_point], environment, ROOT
        )

    def inside(self, pid: int) -> StrataCommand:
        """Return the command in the container whose first process is `pid`, as `docker exec`."""
        words = ["nsenter", f"--target={pid}", "--mount", "--pid", f"--root=/proc/{pid}/root"]
        return StrataCommand(
            [*words, *self._rights(), *self.image.entry_point],
            self.image.environment | self.variables,
            ROOT,
        )

    def _mounts(self, writable: bool) -> str:
        root = self.image.root
        lines = [
            "mount --make-rprivate /",
            f"mount --bind {root} {root}",
            f"mount -t proc proc {root}/proc",
            f"mount -t tmpfs tmpfs {root}/tmp",
            f"mount -t tmpfs tmpfs {root}/dev",
            *(f"touch {root}/dev/{name}" for name in DEVICES),
            *(f"mount --bind /dev/{name} {root}/dev/{name}" for name in DEVICES),
            f"mkdir -m 1777 {root}/dev/shm",
            f"mount -t tmpfs -o size={SHARED_MEMORY} tmpfs {root}/dev/shm",
            *(f"mount --bind {self.data} {root}{volume}" for volume in self.image.volumes),
        ]
        if self.app:
            lines.append(f"mount --bind {self.app} {root}{self.image.folder}")
        if not writable:
            lines.append(f"mount -o remount,bind,ro {root}")
        return "\n".join(lines)

    def _as_user(self) -> str:
        return " ".join(["chroot", str(self.image.root), *self._rights()])

    def _rights(self) -> list[str]:
        uid, gid = self.image.account()
        return [
            *("setpriv", f"--reuid={uid}", f"--regid={gid}", "--clear-groups", "--no-new-privs"),
            *("--bounding-set=-all", "--inh-caps=-all", "env", f"--chdir={self.image.folder}"),
        ]
