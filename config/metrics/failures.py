"""What goes wrong is logged, by one name for each kind: here it is counted by these names."""

import logging
import re

from prometheus_client import Counter

FAILURES = Counter("strata_failures", "What went wrong, by the names of its log lines.", ["kind"])
# Names are written in the code; this many are never there.
MOST_KINDS = 100
NAME = re.compile(r"[a-z]+(_[a-z]+)+")
# Wrong for somebody, if not for Strata.
ALSO = ("not_delivered",)
OTHER = "other"
_kinds: set[str] = set()


class Counting(logging.Handler):
    """Counts lines that warn."""

    def emit(self, record: logging.LogRecord) -> None:
        said = record.msg
        event = said.get("event") if isinstance(said, dict) else said
        kind = str(event).partition(" ")[0]
        if record.levelno >= logging.WARNING or kind in ALSO:
            FAILURES.labels(_known(kind)).inc()


def _known(kind: str) -> str:
    if NAME.fullmatch(kind) and len(_kinds) < MOST_KINDS:
        _kinds.add(kind)
    return kind if kind in _kinds else OTHER
