"""How much memory the embedded PostgreSQL may take: for the pages that it keeps, and to build."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

# https://www.postgresql.org/docs/18/runtime-config-resource.html: a quarter of the memory.
SHARE = 4
LEAST, MOST = 128, 2_048  # megabytes
# What a container may have, in bytes, or "max"; psutil tells of the machine around it.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
SHARED = "/dev/shm"


def shared_buffers() -> int:
    """Megabytes. They are only taken as they are filled: a small installation needs few of them."""
    return min(MOST, max(LEAST, _memory() // SHARE // 2**20))


def maintenance_work_mem() -> int:
    """Megabytes. In so many the graph of some 250,000 vectors of 256 dimensions is built; beyond
    them pgvector goes on many times as slowly.
    """
    return shared_buffers() // 4


def maintenance_workers() -> int:
    """Processes that help to build an index: those share their memory, and containers have little
    to share (Docker gives 64 MB), in which the building would fail.
    """
    with suppress(OSError):
        there = os.statvfs(SHARED)
        if there.f_bavail * there.f_frsize > 2 * maintenance_work_mem() * 2**20:
            return 2
    return 0


def _memory() -> int:
    """Bytes that there are for this machine or container."""
    there = psutil.virtual_memory().total
    with suppress(OSError, ValueError):
        return min(there, int(CONTAINER_LIMIT.read_text()))
    return there
