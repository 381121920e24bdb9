"""Prose: the sentences of a message that its author wrote for people to read. Pure.

Code, logs, tables, quoted messages and pasted e-mails are left out, also without Markdown fences.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path

from memory.layers.summarising.transcript import sentences

# The maximum number of characters of a message that are read, and of a line that is classified.
MAX_READ_CHARS = 100_000
MAX_CLASSIFIED_CHARS = 400
# A line is code or a log if it has this number of words with symbols, and at least this number of
# them for each plain word.
MIN_CODE_WORDS = 2
CODE_WORDS_PER_WORD = 0.6
# The number of consecutive header lines that begin a pasted e-mail.
MIN_HEADERS = 2

_WORDS = tomllib.loads(Path(__file__).with_name("quotations.toml").read_text(encoding="utf-8"))

_FENCED = re.compile(r"```.*?(?:```|\Z)|~~~.*?(?:~~~|\Z)", re.DOTALL)
# Descriptions of images, which importers insert into the text, and Markdown images.
_IMAGE = re.compile(
    r"\[(?:shares|sends|photo|image|picture|video|gif|bild|foto|vidéo|imagen)\b[^\]\n]{0,500}\]"
    r"|!\[[^\]\n]{0,300}\]\([^)\s]{0,1000}\)",
    re.IGNORECASE,
)
# Markdown links, of which the text is kept, and emphasis.
_LINK = re.compile(r"(?<!!)\[([^\[\]\n]{1,300})\]\((?:https?://|mailto:|/)[^)\s]{0,1000}\)")
_EMPHASIS = re.compile(
    r"\*\*(?=\S)([^*\n]{1,500})(?<=\S)\*\*|(?<!\w)__(?=\S)([^_\n]{1,500})__(?!\w)"
)
# Markdown markers at the start of a line, and the box of a task.
_MARKS = re.compile(r"^(?:[#>*+\-•]+\s+|\d+[.)]\s+)+(?:\[[ xX]\]\s+)?")
# Table rows and horizontal rules; lines that quote another message.
_NO_PROSE = re.compile(r"^\s*(?:\||[-=*_]{3,}\s*$)")
_QUOTED = re.compile(r"^\s*>")
_CODE_LINE = re.compile(
    r"^\W{0,3}(?:[A-Z]{3,8}\W{1,3})?\d{4}-\d\d-\d\d[T ]\d\d:\d\d"
    r"|^\s*(?:File \"|Traceback \(|at [\w.$<>]{1,200} ?\(|\$ \S|//|/\*|@\w{1,40}\()"
    r"|[;{}]\s*$|^\s*[\[\]{}()]{1,10},?\s*$"
)
_CODE_WORD = re.compile(r"[=<>{}\[\]|\\;^~$]|\w\(\w*\)?|::|^--?[a-z]|^[!%&*+@#]{1,3}$")
_INLINE_CODE = re.compile(r"`[^`\n]{1,200}`|https?://\S{1,1000}")
_PUNCTUATION = ".,:;!?\"'”“„«»()…"
_HEADER = re.compile(rf"^\W{{0,4}}(?:{'|'.join(_WORDS['mail_headers']['words'])})\W{{0,2}}:", re.I)
_MAIL_BEGINNING = re.compile(
    rf"^\W{{0,12}}(?:{'|'.join(_WORDS['mail_beginnings']['words'])})", re.I
)


def prose_sentences(text: str, is_file: bool = False) -> Iterator[str]:
    """Yield the sentences in the prose of a message, without Markdown markers.

    In a passage of a file, quoted text and e-mails are prose too.
    """
    lines = _IMAGE.sub("", _FENCED.sub("\n", text[:MAX_READ_CHARS])).splitlines()
    for line in lines if is_file else _before_mail(lines):
        if _NO_PROSE.match(line) or not is_file and _QUOTED.match(line):
            continue
        line = _EMPHASIS.sub(r"\1\2", _LINK.sub(r"\1", _MARKS.sub("", line.strip())))
        if not _is_code(line):
            line = " ".join(line.split())
            yield from (part for sentence in sentences(line) if (part := sentence.strip()))


def _before_mail(lines: Sequence[str]) -> Sequence[str]:
    """Return the lines before a pasted e-mail, which somebody else may have written."""
    headers = 0
    for place, line in enumerate(lines):
        if _MAIL_BEGINNING.match(line[:MAX_CLASSIFIED_CHARS]):
            return lines[:place]
        if _HEADER.match(line[:MAX_CLASSIFIED_CHARS]):
            headers += 1
            if headers == MIN_HEADERS:
                return lines[: place - headers + 1]
        else:
            headers = 0
    return lines


def _is_code(line: str) -> bool:
    """Return whether a line is code, a command or a log, by the symbols in its words."""
    line = line[:MAX_CLASSIFIED_CHARS]
    if _CODE_LINE.search(line):
        return True
    words = [word.strip(_PUNCTUATION) for word in _INLINE_CODE.sub("code", line).split()]
    code = sum(bool(_CODE_WORD.search(word)) for word in words)
    plain = sum(word.replace("-", "").replace("’", "").replace("'", "").isalpha() for word in words)
    return code >= MIN_CODE_WORDS and code >= CODE_WORDS_PER_WORD * plain
