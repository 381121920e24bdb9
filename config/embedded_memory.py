"""How much memory the embedded PostgreSQL may take for the pages that it keeps."""

from contextlib import suppress
from pathlib import Path

import psutil

# https://www.postgresql.org/docs/18/runtime-config-resource.html: a quarter of the memory.
SHARE = 4
LEAST, MOST = 128, 2_048  # megabytes
# What a container may have, in bytes, or "max"; psutil tells of the machine around it.
CONTAINER_LIMIT = Path("/sys/fs/cgroup/memory.max")


def shared_buffers() -> int:
    """Megabytes. They are only taken as they are filled: a small installation needs few of them."""
    return min(MOST, max(LEAST, _memory() // SHARE // 2**20))


def _memory() -> int:
    """Bytes that there are for this machine or container."""
    there = psutil.virtual_memory().total
    with suppress(OSError, ValueError):
        return min(there, int(CONTAINER_LIMIT.read_text()))
    return there
