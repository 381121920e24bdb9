"""Text as PostgreSQL takes it."""

import re

UNSTORABLE = re.compile("\0|[\ud800-\udfff]")


def storable(text: str) -> str:
    """`text` without NUL, and without halves of a surrogate pair."""
    return UNSTORABLE.sub(lambda found: "" if found[0] == "\0" else "\ufffd", text)
