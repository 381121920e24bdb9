"""Quotations: parts of a message that can be understood without the rest of the chat. Pure.

Code, logs, tables, quoted messages and pasted e-mails are left out, fenced or not.
"""

import re
import tomllib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from memory.layers.entities.patterns import MONTH
from memory.layers.lines import content_words
from memory.layers.summarising.transcript import count_words, sentences

# The maximum number of characters of a message that are read, and of a line that is checked for
# code and e-mail headers.
MAX_READ_CHARS = 100_000
MAX_CLASSIFIED_CHARS = 400
# A line is code or a log if it has this number of words with symbols, and at least this number of
# them for each plain word.
MIN_CODE_WORDS = 2
CODE_WORDS_PER_WORD = 0.6
# A line that ends with a semicolon is prose if it has this number of plain words and no other
# symbols, as in French lists.
MIN_PROSE_WORDS = 6
# This number of consecutive header lines begins a pasted e-mail. One of them must be the subject or
# the time, or contain an address.
MIN_HEADERS = 2
# Sentences are cut to this length before patterns are applied. Quotations are shorter.
MAX_SENTENCE_CHARS = 1_000
# The minimum number of content words in a quotation.
MIN_CONTENT_WORDS = 4
# The minimum number of content words that remain in a quotation after its announcing phrases
# ("guess what", "big news") are removed.
MIN_NEWS_WORDS = 5
# The minimum number of words before a removed end of a sentence.
MIN_WORDS_BEFORE_END = 8
# The maximum length of a quotation of two sentences, in words.
MAX_PAIR_WORDS = 30

_WORDS = tomllib.loads(Path(__file__).with_name("quotations.toml").read_text(encoding="utf-8"))


def either(*names: str) -> str:
    """Return a pattern for the words of the sections `names` of quotations.toml."""
    return f"(?:{'|'.join(word for name in names for word in _WORDS[name]['words'])})"


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
# A number that belongs to the next word: 14. April, 2. Quartal. "1. May we …" is an item of a list.
ORDINAL = rf"\d{{1,2}}\.\s{{1,9}}(?i:(?!may\b){MONTH}|(?:quart(?:al|er)|halbjahr)\b)"
# Markdown markers at the start of a line, and the box of a task.
_MARKS = re.compile(rf"^(?:[#>*+\-•]+\s+|(?!{ORDINAL})\d+[.)]\s+)+(?:\[[ xX]\]\s+)?")
# Table rows and horizontal rules; lines that quote another message.
_NO_PROSE = re.compile(r"^\s*(?:\||[-=*_]{3,}\s*$)")
_QUOTED = re.compile(r"^\s*>(?!\s?\d)")
_CODE_LINE = re.compile(
    # A time without seconds is an appointment rather than a log.
    r"^\W{0,3}(?:[A-Z]{3,8}\W{1,3})?\d{4}-\d\d-\d\d(?:T\d\d:\d\d| \d\d:\d\d:\d\d)"
    r"|^\s*(?:File \"[^\"]{1,300}\", line|Traceback \(|\$ (?!\d)\S|//|/\*|@\w{1,40}\()"
    r"|^\s*at [\w.$<>]{1,200} ?\((?:[^\s()]{1,300}:\d|<|Native|Unknown)"
    r"|[{}]\s*$|^\s*[\[\]{}()]{1,10},?\s*$"
)
_CODE_WORD = re.compile(r"[=<>{}\[\]|\\;^~$]|\w\(\w*\)?|::|^--?[a-z]|^[!%&*+@#]{1,3}$")
# Amounts and comparisons: $620, <50%, ~30.
_FIGURE = re.compile(r"[<>~$]{0,2}\d[\d.,:/%$-]*")
_INLINE_CODE = re.compile(r"`[^`\n]{1,200}`|https?://\S{1,1000}")
_PUNCTUATION = ".,:;!?\"'”“„«»()…"
_HEADER = re.compile(rf"^\W{{0,4}}{either('mail_headers')}\W{{0,2}}:", re.I)
_MAIL_SIGN = re.compile(rf"^\W{{0,4}}{either('mail_signs')}\W{{0,2}}:|\w@\w", re.I)
_MAIL_BEGINNING = re.compile(rf"^\W{{0,12}}{either('mail_beginnings')}\W{{0,40}}$", re.I)
_OPENER = re.compile(
    rf"^{either('openers')}(?: {either('openers')}){{0,2}}\s?[,!:.–—-]+\s+", re.IGNORECASE
)
_CONJUNCTION = re.compile(rf"^{either('conjunctions')},?\s+(?=\w)", re.IGNORECASE)
_CLOSING_QUESTION = re.compile(
    rf"[,;] (?:and |but |so |und |aber |et |mais |y |pero )?¿?{either('questions')}", re.IGNORECASE
)
_REFERENCE = re.compile(rf"^\W{{0,5}}{either('references')}(?!\w)", re.IGNORECASE)
_TEASER = re.compile(rf"\b{either('teasers')}\b", re.IGNORECASE)
_HYPOTHETICAL = re.compile(rf"\b{either('hypotheticals')}", re.IGNORECASE)
_OPEN_QUESTION = re.compile(rf"\b{either('open_questions')}\b", re.IGNORECASE)
_QUESTION = re.compile(r"[?？؟][\"'”’»)\]]{0,5}\s*$")
_SENTENCE_END = re.compile(r"[.!?…。！？｡؟।॥۔][\"'”’»)\]]{0,5}(?:\s*[^\w\s])*$")
_LAST_CLAUSE = re.compile(r"[.,;–—] (?=[^.,;–—]{1,200}:$)")
_PLAIN_WORD = re.compile(r"[^\W\d_]+(?![\w.])", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Passage:
    """A part of a message. `original` is the original text, `text` the text to quote.

    `is_first` is true for the beginning of the message. `is_pair` is true for two sentences of
    which at least one cannot be quoted alone. `stands_alone` is true if the passage can be
    understood without the preceding sentences.
    """

    text: str
    original: str
    is_first: bool
    is_pair: bool
    stands_alone: bool


def passages(text: str, is_file: bool = False) -> Iterator[Passage]:
    """Yield the sentences of a message, and the pairs of consecutive sentences to quote together.

    A pair stands alone, although at least one of its sentences does not. Code, tables, Markdown
    markers and descriptions of images are left out. If no sentence is left, the whole text is one
    passage that does not stand alone.
    """
    previous: Passage | None = None
    for sentence in _prose(text, is_file):
        quoted = _shortened(sentence)
        passage = Passage(quoted, sentence, previous is None, False, stands_alone(quoted))
        yield passage
        if previous is not None and (pair := _pair(previous, passage)):
            yield pair
        previous = passage
    if previous is None and text.strip():
        # "…" gets no score: the text is code, a log or the mail of another person.
        yield Passage(" ".join(text.split()), "…", True, False, stands_alone=False)


def is_question(text: str) -> bool:
    return bool(_QUESTION.search(text[-20:]))


def is_open_question(text: str) -> bool:
    """Return whether `text` states that a question has no answer yet."""
    return bool(_OPEN_QUESTION.search(text[:MAX_SENTENCE_CHARS]))


def stands_alone(text: str) -> bool:
    """Return whether a reader understands the quotation `text` without the preceding sentences.

    The result is false if the text

    - is a question, unless it states that the question is open,
    - imagines something that is not the case,
    - ends with the announcement of a list, code or a table that is not quoted,
    - begins with a reference to a preceding sentence,
    - has fewer than MIN_CONTENT_WORDS content words, where numbers count twice, or
    - announces news and has fewer than MIN_NEWS_WORDS content words besides the announcement.
    """
    text = text[:MAX_SENTENCE_CHARS]
    if is_question(text) and not is_open_question(text):
        return False
    if text.endswith(":") or _HYPOTHETICAL.search(text):
        return False
    words = content_words(text)
    # "The cutover is on 3 March" has few words but as much content as a longer sentence.
    weight = len(words) + sum(word.isdigit() for word in words)
    if _REFERENCE.match(text) or weight < MIN_CONTENT_WORDS:
        return False
    rest = _TEASER.sub(" ", text)
    return rest == text or len(content_words(rest)) >= MIN_NEWS_WORDS


def _prose(text: str, is_file: bool = False) -> Iterator[str]:
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
    headers, is_mail = 0, False
    for place, line in enumerate(lines):
        line = line[:MAX_CLASSIFIED_CHARS]
        if _MAIL_BEGINNING.match(line):
            return lines[:place]
        if not _HEADER.match(line):
            headers, is_mail = 0, False
            continue
        headers += 1
        is_mail = is_mail or bool(_MAIL_SIGN.search(line))
        if is_mail and headers >= MIN_HEADERS:
            return lines[: place - headers + 1]
    return lines


def _is_code(line: str) -> bool:
    """Return whether a line is code, a command or a log, by the symbols in its words."""
    line = line[:MAX_CLASSIFIED_CHARS]
    if _CODE_LINE.search(line):
        return True
    words = [word.strip(_PUNCTUATION) for word in _INLINE_CODE.sub("code", line).split()]
    words = [word for word in words if not _FIGURE.fullmatch(word)]
    code = sum(bool(_CODE_WORD.search(word)) for word in words)
    plain = sum(word.replace("-", "").replace("’", "").replace("'", "").isalpha() for word in words)
    if line.rstrip().endswith(";") and (code or plain < MIN_PROSE_WORDS):
        return True
    return code >= MIN_CODE_WORDS and code >= CODE_WORDS_PER_WORD * plain


def _pair(first: Passage, second: Passage) -> Passage | None:
    """Return two sentences as one passage.

    Return None if both can be quoted alone, if one is a question, if the first is no complete
    sentence, if the second announces a list, if the pair is too long, or if the pair does not stand
    alone.
    """
    if first.stands_alone and second.stands_alone:
        return None
    if is_question(first.original) or is_question(second.original):
        return None
    # Lines of a list are no sentences that belong together.
    if second.original.endswith(":") or not _SENTENCE_END.search(first.original[-10:]):
        return None
    original = f"{first.original} {second.original}"
    if len(original) > MAX_SENTENCE_CHARS or count_words(original) > MAX_PAIR_WORDS:
        return None
    text = _shortened(original)
    if text in (first.text, second.text):
        return None
    return Passage(text, original, first.is_first, True, True) if stands_alone(text) else None


def _shortened(sentence: str) -> str:
    """Return a sentence without openers and a conjunction at its beginning, and without a question
    or the announcement of a list at its end.

    The end becomes "…", if at least MIN_WORDS_BEFORE_END words are before it.
    """
    text = sentence
    for pattern in (_OPENER, _OPENER, _CONJUNCTION, _OPENER):
        text = pattern.sub("", text, count=1)
    for end in (_CLOSING_QUESTION, _LAST_CLAUSE):
        cut = end.search(text[:MAX_SENTENCE_CHARS])
        if cut and count_words(text[: cut.start()]) >= MIN_WORDS_BEFORE_END:
            text = f"{text[: cut.start()]}…"
    # Identifiers such as pg_dump and iPhone keep their spelling.
    is_word = (word := _PLAIN_WORD.match(text)) is not None and word[0].islower()
    return text[:1].upper() + text[1:] if is_word else text or sentence
