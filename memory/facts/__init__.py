"""Facts: recorded by hand and out of summaries, followed by one another, forgotten.

What ends a fact is the next of its topic (see memory.models.facts), so recording one touches no
other row.
"""

from memory.facts.access import contradictions, facts_for, history, may_decide
from memory.facts.changing import approve, at_version, close, edit, hide, show
from memory.facts.recording import Refused, Stale, Statement, give

__all__ = [
    "Refused",
    "Stale",
    "Statement",
    "approve",
    "at_version",
    "close",
    "contradictions",
    "edit",
    "facts_for",
    "give",
    "hide",
    "history",
    "may_decide",
    "show",
]
