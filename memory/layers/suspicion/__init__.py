"""What reads like an instruction to a model. Pure.

Memory stands in prompts as data, inside a fence; what tries to be more is not shown before
somebody has looked at it. A phrase counts where it commands: where a sentence begins, or after
“please” and the like. “We decided to ignore the old rules” tells what happened.
"""

import re
import unicodedata
from functools import cache

from memory.layers.suspicion import east_asian, english, european
from memory.layers.suspicion.marks import MARKS, SQUEEZED

# Of a text, so much is read. Summaries are ten times shorter.
MOST_CHARACTERS = 20_000

# Letters of other scripts that pass for Latin ones, and what is written for letters.
_LOOKALIKES = str.maketrans("аеорсухіјѕԁӏкмтвнαορικντυ", "aeopcyxijsdlkmtbhaopikvtu")
_LEET = str.maketrans("013457@$!|", "oieastasii")
_WORD = re.compile(r"\w{2,60}")
_LEET_WORD = re.compile(r"(?<![\w@$!|])[\w@$!|]{1,40}(?![@$!|])")
_SPACED_OUT = re.compile(r"(?<!\w)\w(?:[ .·|-]{1,3}\w(?!\w)){5,400}")
# What stands between words.
_SEPARATORS = re.compile(r"[\s_*~`·|—–-]+")
_UNSPACED = r"[\u3040-\u30ff\u3400-\u9fff]"
_BETWEEN_UNSPACED = re.compile(rf"(?<={_UNSPACED}) +(?={_UNSPACED})")


def found_in(text: str) -> frozenset[str]:
    """The phrases of `text` that read like instructions to a model, in a plain form."""
    visible = _visible(text[:MOST_CHARACTERS])
    found = {match[0].strip().casefold() for match in MARKS.finditer(visible)}
    plain = _plain(visible)
    for version in {plain, _LEET_WORD.sub(_unleeted, plain)}:
        for pattern in _phrases():
            found.update(match[0].strip() for match in pattern.finditer(version))
    for run in _SPACED_OUT.finditer(visible.casefold()):
        letters = "".join(filter(str.isalnum, run[0])).translate(_LEET)
        found.update(match[0] for match in SQUEEZED.finditer(letters))
    return frozenset(found)


def reads_like_instructions(text: str) -> bool:
    return bool(found_in(text))


@cache
def _phrases() -> list[re.Pattern[str]]:
    """Compiled when a text is looked through: that takes a quarter of a second, which most
    processes need not.
    """
    written = (*english.PHRASES, *european.PHRASES, *east_asian.PHRASES)
    return [re.compile(pattern, re.MULTILINE) for pattern in written]


def _visible(text: str) -> str:
    """`text` with full-width and mathematical letters in their plain form, and nothing unseen."""
    return "".join(
        char
        for char in unicodedata.normalize("NFKC", text)
        if char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cf", "Cs"}
    )


def _plain(visible: str) -> str:
    """The form in which phrases are looked for (see `suspicion.phrases`)."""
    bare = "".join(
        char
        for char in unicodedata.normalize("NFD", visible.casefold())
        if not "\u0300" <= char <= "\u036f"
    )
    bare = unicodedata.normalize("NFC", bare).replace("’", "'")
    lines = (" ".join(_SEPARATORS.sub(" ", line).split()) for line in bare.splitlines())
    return _BETWEEN_UNSPACED.sub("", _WORD.sub(_in_one_script, "\n".join(filter(None, lines))))


def _in_one_script(word: re.Match[str]) -> str:
    """A word in which letters of other scripts stand for Latin ones, in Latin ones."""
    if word[0].isascii() or not re.search("[a-z]", word[0]):
        return word[0]
    return word[0].translate(_LOOKALIKES)


def _unleeted(word: re.Match[str]) -> str:
    letters = sum(map(str.isalpha, word[0]))
    return word[0].translate(_LEET) if 2 * letters >= len(word[0]) else word[0]
