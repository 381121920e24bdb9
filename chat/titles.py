"""What a chat is called that nobody has named."""

import re

# What Markdown puts before a line: headings, quotes, bullets, numbers, fences.
_MARKS = re.compile(r"^(?:[#>*+\-\s]+|\d+[.)]\s+|`{3,}\w*)+")
LONGEST = 60


def title_from(text: str) -> str:
    """The beginning of `text` as a title of at most LONGEST characters, cut between words.

    The first line that says something stands for the whole; empty when there is none.
    """
    for line in text.splitlines():
        words = " ".join(_MARKS.sub("", line).split())
        if words:
            return _cut(words)
    return ""


def _cut(words: str) -> str:
    if len(words) <= LONGEST:
        return words
    head, space, _ = words[: LONGEST - 1].rpartition(" ")
    # A single word longer than half a title is cut inside rather than lost.
    if not space or len(head) < LONGEST // 2:
        head = words[: LONGEST - 1]
    return head.rstrip(" ,;:.–-") + "…"
