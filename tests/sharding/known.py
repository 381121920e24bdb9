"""Queries that ask all shards, by the function that puts them, and why they do."""

# Finds work, or what changed, in all projects at once: few rows, by partial indexes.
DUE = "looks through all projects for what is due"
# A task knows an id; the row that it finds tells the project to all that comes after.
BY_ID = "finds the project of an id"
# Rows of one project by their ids alone, which a query of one shard would have to tell beside them.
BY_IDS = "asks for rows of one project by ids alone"

KNOWN: dict[str, str] = {
    "memory/layers/cycle.py:due": DUE,
    "memory/recall/corpus.py:recount_changed": DUE,
    "memory/recall/indexing.py:_claim": DUE,
    "memory/recall/summaries.py:catch_up": DUE,
    "chat/files.py:sweep_removals": DUE,
    "memory/layers/leases.py:claim": BY_ID,
    "memory/layers/conversations.py:rewrite": BY_ID,
    "memory/facts/deriving.py:_lock": BY_IDS,
    "memory/facts/deriving.py:_settle": BY_IDS,
    "memory/facts/deriving.py:untell": BY_IDS,
    "memory/layers/review.py:_lock": BY_IDS,
    # Its candidates are found in the project; what is told of them is joined to those by ids.
    "memory/recall/search.py:ask": BY_IDS,
    # The last message of a session, along its key.
    "chat/prompt.py:preview": BY_IDS,
}
