"""Memory settings of the embedded PostgreSQL, computed from the memory of the machine."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

# shared_buffers is a quarter of the memory:
# https://www.postgresql.org/docs/18/runtime-config-resource.html
MEMORY_DIVISOR = 4
MIN_MB, MAX_MB = 128, 2_048
# The memory limit of a container in bytes, or "max". psutil reports the whole machine's memory.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
SHARED_MEMORY = "/dev/shm"


def shared_buffers() -> int:
    """Return the size in megabytes. It is allocated as it fills, so small servers use little."""
    memory = psutil.virtual_memory().total
    with suppress(OSError, ValueError):
        memory = min(memory, int(CONTAINER_LIMIT.read_text()))
    return min(MAX_MB, max(MIN_MB, memory // MEMORY_DIVISOR // 2**20))


def maintenance_work_mem() -> int:
    """Return the size in megabytes.

    It is enough for the graph of about 250,000 vectors of 256 dimensions while an index is built.
    For larger graphs, pgvector takes many times as long.
    """
    return shared_buffers() // 4


def maintenance_workers() -> int:
    """Return the number of additional processes that build an index.

    They need shared memory. In a container with little of it (Docker's default is 64 MB), the build
    would fail, so the number is 0.
    """
    with suppress(OSError):
        status = os.statvfs(SHARED_MEMORY)
        if status.f_bavail * status.f_frsize > 2 * maintenance_work_mem() * 2**20:
            return 2
    return 0
