"""Recall: what was said comes back, by meaning and by word. The package offers `recall`."""

from memory.recall.recalling import Result, in_time_order, recall
from memory.recall.search import SAID, Scope

__all__ = ["SAID", "Result", "Scope", "in_time_order", "recall"]
