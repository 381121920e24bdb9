"""Memory settings of the embedded PostgreSQL, derived from the machine's memory."""

import os
from contextlib import suppress
from pathlib import Path

import psutil

# A quarter of the memory: https://www.postgresql.org/docs/18/runtime-config-resource.html
MEMORY_DIVISOR = 4
MIN_MB, MAX_MB = 128, 2_048
# A container's limit in bytes, or "max". psutil reports the memory of the whole machine.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")
SHARED_MEMORY = "/dev/shm"


def shared_buffers() -> int:
    """Return megabytes. They are allocated as they fill, so a small installation uses few."""
    memory = psutil.virtual_memory().total
    with suppress(OSError, ValueError):
        memory = min(memory, int(CONTAINER_LIMIT.read_text()))
    return min(MAX_MB, max(MIN_MB, memory // MEMORY_DIVISOR // 2**20))


def maintenance_work_mem() -> int:
    """Return megabytes.

    They hold the graph of about 250,000 vectors of 256 dimensions while it is built. For larger
    graphs, pgvector takes many times as long.
    """
    return shared_buffers() // 4


def maintenance_workers() -> int:
    """Return the number of extra processes that build an index.

    They need shared memory. A container has little (Docker gives 64 MB), and the build would fail.
    """
    with suppress(OSError):
        status = os.statvfs(SHARED_MEMORY)
        if status.f_bavail * status.f_frsize > 2 * maintenance_work_mem() * 2**20:
            return 2
    return 0
