"""Queries that ask all shards, by the function that puts them, and why they have to."""

# Finds work, or what changed, in all projects at once: few rows, by partial indexes.
DUE = "looks through all projects for what is due"
# A task knows an id; the row that it finds tells the project to all that comes after.
BY_ID = "finds the project of an id"
# A command of whoever runs the server, that names no project unless it is given one.
COMMAND = "goes through all projects for a command"
# Not of recall, though its evaluation does it: with a project or a user, all goes that is theirs.
GOES = "deletes a project or a user, along every key that leads to them"

KNOWN: dict[str, str] = {
    "memory/layers/cycle.py:due": DUE,
    "memory/recall/fulltext.py:recount_due": DUE,
    "memory/recall/indexing.py:claim_sessions": DUE,
    "memory/recall/indexing.py:is_behind": DUE,
    "memory/recall/summaries.py:catch_up": DUE,
    "memory/recall/vector_index.py:projects_behind": DUE,
    "memory/recall/vector_index.py:has_large_project": DUE,
    "memory/recall/vector_index.py:add_all": DUE,
    "chat/attachments/file_removal.py:retry_due_removals": DUE,
    "memory/leases.py:claim": BY_ID,
    "memory/layers/conversations.py:rewrite": BY_ID,
    "memory/recall/reindexing.py:index_until_done": COMMAND,
    "memory/recall/reindexing.py:_id_pages": COMMAND,
    "memory/recall/reindexing.py:replace_vectors": COMMAND,
    "memory/recall/evaluation/measures.py:temporary_project": GOES,
    "projects/services.py:delete_project": GOES,
}
