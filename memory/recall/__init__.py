"""Recall: search over messages, notes and summaries, by meaning and by word."""

from memory.recall.fact_search import relevant_facts
from memory.recall.search import TRANSCRIPT_SOURCES, RecallScope
from memory.recall.service import (
    RecallResult,
    filter_relevant,
    format_excerpt,
    in_time_order,
    is_small_talk,
    pack_into_budget,
    query_in_chat,
    recall,
)
