"""Passages: parts of the sections of a document, each as long as one chunk. Pure."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.files.parsers.documents import Section
from memory.recall.chunking import MAX_CHUNK_TOKENS
from memory.recall.transcripts import begins_turn, find_speakers, split_turns
from projects.core import token_counting
from projects.core.text import storable

# The maximum number of innermost headings that a passage stores and that its chunk repeats, and the
# maximum length of a heading in characters.
MAX_PATH = 4
MAX_HEADINGS = 2
MAX_HEADING_CHARS = 200
MAX_LABEL_CHARS = 200
# Almost no token has more characters than this.
MAX_TOKEN_CHARS = 10
HEADING_SEPARATOR = " › "
# A piece ends after a line, or after a sentence in a long line.
_PIECE_END = re.compile(r"\n+|(?<=[.!?…。！？])[ \t]+")


@dataclass(frozen=True)
class PassageText:
    """A passage before it is stored. Its fields are named like the columns."""

    section: int
    page: int | None
    label: str
    headings: str
    text: str


def split_sections(sections: Sequence[Section]) -> Iterator[PassageText]:
    """Yield the passages of a document. Sections without text have none.

    In a transcript, each turn is at least one passage, and the last of its headings is the speaker.
    """
    speakers = find_speakers(section.text for section in sections)
    for number, section in enumerate(sections, start=1):
        path = [
            " ".join(storable(heading).split())[:MAX_HEADING_CHARS] for heading in section.headings
        ]
        label = " ".join(storable(section.label).split())[:MAX_LABEL_CHARS]
        for speaker, turn in split_turns(storable(section.text), speakers):
            headings = HEADING_SEPARATOR.join(filter(None, [*path, speaker][-MAX_PATH:]))
            for text in split_text(turn, MAX_CHUNK_TOKENS):
                yield PassageText(number, section.page, label, headings, text)


def split_text(text: str, max_tokens: int) -> Iterator[str]:
    """Split `text` after lines or sentences into parts of at most `max_tokens` tokens.

    Joined, the parts are the whole text. White space belongs to the part before it.
    """
    part, size = "", 0
    for piece in _pieces(text, max_tokens):
        tokens = token_counting.count(piece)
        if part.strip() and piece.strip() and size + tokens > max_tokens:
            yield part
            part, size = "", 0
        part += piece
        size += tokens
    if part.strip():
        yield part


def _pieces(text: str, max_tokens: int) -> Iterator[str]:
    """Yield lines and sentences. If one is too long, it is cut, at a space if possible."""
    start = 0
    for end in [*(match.end() for match in _PIECE_END.finditer(text)), len(text)]:
        piece, start = text[start:end], end
        # Count tokens only in a window, because a line may have millions of characters.
        while (window := piece[: max_tokens * MAX_TOKEN_CHARS]) and (
            len(window) < len(piece) or token_counting.count(window) > max_tokens
        ):
            head = token_counting.truncate(window, max_tokens) or window[:1]
            space = head.rfind(" ") + 1
            # Do not cut at a space in the first half, because the part would be too short.
            head = head[:space] if space > len(head) // 2 else head
            yield head
            piece = piece[len(head) :]
        if piece:
            yield piece


def place(name: str, label: str, speaker: str = "") -> str:
    """Return the place of a passage for citations, such as `manual.pdf, p. 3`. In a transcript, it
    contains the speaker: `call.pdf, Ana, p. 3`.
    """
    return ", ".join(filter(None, (name, speaker, label)))[:300]


def speaker_of(headings: str, text: str) -> str:
    """Return the speaker of a passage that begins a turn of a transcript, or an empty text."""
    last = headings.rpartition(HEADING_SEPARATOR)[2]
    return last if last and begins_turn(text, last) else ""


def chunk_text(headings: str, text: str) -> str:
    """Return the text of a passage's chunk: its headings, unless the text begins with them, and its
    text.
    """
    text = text.strip()
    path = headings.split(HEADING_SEPARATOR)[-MAX_HEADINGS:] if headings else []
    shown = [heading for heading in path if not text.startswith(heading)]
    return f"{HEADING_SEPARATOR.join(shown)}\n{text}" if shown else text
