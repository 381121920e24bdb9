"""The queries that the guard reports as queries of every shard."""

import pytest

from tests.sharding.guard import unbound

BOUND = [
    "SELECT id FROM chat_message WHERE project_id = %s AND seq > %s",
    "SELECT id FROM chat_message m WHERE m.project_id = ANY(%s) AND id IN (%s, %s)",
    "SELECT 1 FROM chat_message m JOIN chat_session s ON s.id = m.session_id"
    " AND s.project_id = m.project_id WHERE s.project_id = %s",
    "SELECT 1 FROM chat_message m JOIN projects_project p ON p.id = m.project_id WHERE p.id = %s",
    "SELECT 1 FROM memory_entry e WHERE e.project_id = %s AND EXISTS"
    " (SELECT FROM chat_message m WHERE m.project_id = e.project_id AND m.seq = e.last_seq)",
    "UPDATE memory_cursor SET failures = 0 WHERE project_id = %s AND session_id = %s",
    "DELETE FROM memory_nudge WHERE project_id IN (%s) AND id IN (%s)",
    "INSERT INTO memory_nudge (project_id) VALUES (%s)",
    "WITH kept AS (SELECT id FROM memory_chunk WHERE project_id = %s) SELECT id FROM kept",
    "SELECT slug FROM projects_project WHERE slug LIKE '%%a'",
    "SAVEPOINT here",
]
LOOSE = {
    "SELECT id FROM chat_message WHERE id = %s": ("chat_message",),
    "SELECT id FROM chat_message WHERE project_id = %s OR id = %s": ("chat_message",),
    "SELECT id FROM chat_message WHERE NOT project_id = %s": ("chat_message",),
    "SELECT 1 FROM chat_message m JOIN chat_session s ON s.id = m.session_id"
    " WHERE m.project_id = %s": ("chat_session",),
    "SELECT 1 FROM chat_message m JOIN chat_session s ON s.project_id = m.project_id": (
        "chat_message",
        "chat_session",
    ),
    "SELECT 1 FROM memory_entry e WHERE e.project_id = %s AND EXISTS"
    " (SELECT FROM chat_message m WHERE m.seq = e.last_seq)": ("chat_message",),
    "UPDATE memory_cursor SET failures = 0 WHERE session_id = %s": ("memory_cursor",),
    "WITH kept AS (SELECT id FROM memory_chunk) SELECT id FROM kept": ("memory_chunk",),
    "SELECT 1 FROM chat_message m JOIN projects_project p ON p.id = m.project_id": (
        "chat_message",
    ),
}


@pytest.mark.parametrize("sql", BOUND)
def test_a_query_that_tells_its_project_may_be_put(sql):
    assert unbound(sql) == ()


@pytest.mark.parametrize("sql", LOOSE)
def test_one_that_does_not_is_found(sql):
    assert unbound(sql) == LOOSE[sql]
