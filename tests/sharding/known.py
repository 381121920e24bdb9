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
    "memory/recall/corpus.py:recount_changed": DUE,
    "memory/recall/indexing.py:_claim": DUE,
    "memory/recall/indexing.py:is_behind": DUE,
    "memory/recall/summaries.py:catch_up": DUE,
    "memory/recall/summaries.py:is_behind": DUE,
    "memory/recall/vector_index.py:behind": DUE,
    "memory/recall/vector_index.py:_has_large": DUE,
    "memory/recall/vector_index.py:_mostly_waits": DUE,
    "chat/files.py:sweep_removals": DUE,
    "memory/layers/leases.py:claim": BY_ID,
    "memory/layers/conversations.py:rewrite": BY_ID,
    "memory/recall/reindexing.py:settle": COMMAND,
    "memory/recall/reindexing.py:_mark": COMMAND,
    "memory/recall/reindexing.py:_add": COMMAND,
    "memory/recall/reindexing.py:embed": COMMAND,
    "memory/recall/evaluation.py:imported": GOES,
    "projects/deletion.py:delete_project": GOES,
}
