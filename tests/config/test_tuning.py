"""How much memory the embedded PostgreSQL may take."""

from types import SimpleNamespace

import pytest

from config.postgres import tuning

GB = 2**30


@pytest.fixture
def machine(monkeypatch, tmp_path):
    """Sets what the machine has, and what a container may have of it, in bytes."""

    def put(memory: int, limit: str | None) -> None:
        virtual_memory = SimpleNamespace(total=memory)
        monkeypatch.setattr(tuning.psutil, "virtual_memory", lambda: virtual_memory)
        monkeypatch.setattr(tuning, "CONTAINER_LIMIT", tmp_path / "memory.max")
        if limit is not None:
            (tmp_path / "memory.max").write_text(limit)

    return put


@pytest.mark.parametrize(
    ("memory", "limit", "megabytes"),
    [
        (4 * GB, None, 1_024),
        (256 * GB, None, 2_048),
        (GB // 4, None, 128),
        (64 * GB, "max\n", 2_048),
        (64 * GB, f"{GB}\n", 256),
        (GB, f"{64 * GB}\n", 256),
    ],
)
def test_it_is_a_quarter_of_what_there_is_within_bounds(machine, memory, limit, megabytes):
    machine(memory, limit)
    assert tuning.shared_buffers() == megabytes


@pytest.mark.parametrize(("gigabytes", "workers"), [(0.06, 0), (1, 0), (1.5, 2)])
def test_an_index_is_built_by_several_where_they_have_memory_to_share(
    machine, monkeypatch, gigabytes, workers
):
    machine(8 * GB, None)
    assert tuning.maintenance_work_mem() == 512
    shared = SimpleNamespace(f_bavail=int(gigabytes * GB) // 4096, f_frsize=4096)
    monkeypatch.setattr(tuning.os, "statvfs", lambda path: shared)
    assert tuning.maintenance_workers() == workers


def test_it_is_built_by_one_where_no_memory_is_shared(monkeypatch, tmp_path):
    monkeypatch.setattr(tuning, "SHARED_MEMORY", str(tmp_path / "not there"))
    assert tuning.maintenance_workers() == 0
