"""Names: capitalised words and runs of them that are no ordinary words; in Japanese, with さん.

A form is case-folded and without title and possessive, in Cyrillic and Greek without the vowels at
the end that change with the case. Where a sentence begins, every word has a capital, and in German
every noun has: there a word is a name only in company that ordinary words do not keep, such as
“Ana said” or “Frau Müller”.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from memory.layers.particulars import ordinary
from memory.layers.particulars.kinds import MOST_CHARACTERS

# Words of one name, at most.
_LONGEST = 5
_WORD = re.compile(r"[^\W\d_](?:\w|['’-](?=[^\W\d_])){0,60}")
_ELISION = re.compile(r"^(?:[ldjmnstc]|qu|(?:d|n|s)?ell|all|un)['’](?=\w)", re.IGNORECASE)
_POSSESSIVE = re.compile(r"['’]s?$")
# GitHub, PgBouncer, DuckDB.
_CAMEL = re.compile(r"^\w*[a-zà-ÿ]\w*[A-ZÀ-Þ]|^[A-Z]{2,}[a-z]{2}")
# In what stands between two words.
_STARTS = re.compile(r"[.!?…:;•|=]\s|[\"“”„«»‹›‘]|\s[–—-]\s")
_QUOTED = re.compile(r"\s?:\s[“\"«„]")
_JAPANESE = re.compile(
    r"([\u4e00-\u9fff々]{1,4}|[\u30a1-\u30fa\u30fc]{2,10})(?:さん|様|氏|くん|ちゃん)"
)
_EAST_ASIAN = re.compile(r"[\u4e00-\u9fff々]+|[\u30a1-\u30fa\u30fc]+")
# What people do, teams and companies, and few other things.
_DOES = re.compile(
    r"^(?:said|says|asks|told|tells|thinks|thought|wants|wanted|prefers|preferred|decides|agrees"
    r"|disagrees|suggests|proposes|promises|mentions|explains|confirms|reports|recommends|owns|owned"
    r"|joins|joined|leads|writes|wrote|lives|lived|hopes|hoped|likes|liked|loves|loved|feels|felt"
    r"|volunteers|volunteered|offers|sagt|sagte|fragt|fragte|möchte|meint|meinte|schlägt|schlug"
    r"|übernimmt|übernahm|entschied|entscheidet|bittet|bat|kümmert|prüft|leitet|arbeitet|wohnt"
    r"|bestätigt|bestätigte|dit|pense|veut|propose|préfère|dijo|dice|quiere|propuso|propone|prefiere"
    r"|decidió|trabaja|disse|quer|vuole|preferisce|decise|сказала?|говорит|предложила?|решила?"
    r"|хочет|просит|попросила?|считает|спросила?|отвечает|работает|подтвердила?)$"
)
# These may be said of things too (“Move agreed”), but not with what follows here.
_DID = re.compile(
    r"^(?:decided|agreed|promised|offered|asked|proposed|suggested|mentioned|explained|confirmed"
    r"|reported|recommended|plans|works|moved|will)"
    r" (?:to|that|whether|if|how|why|the|as|at|for|on)$"
    r"|^(?:a|ont|ha|han) (?:dit|confirmé|proposé|décidé|demandé|dicho|confirmado|propuesto|decidido"
    r"|pedido|detto|confermato|proposto|deciso|chiesto)$"
)
_AND = frozenset("and et y e и".split())

# Vowels, and with them the endings of cases. Two letters at least are left of a word.
_CYRILLIC = re.compile(r"(?<=..)[аеёиоуыэюяйь]+$")
_CYRILLIC_CASE = re.compile(r"(?<=..)[аеёиоуыэюяйь]*[аяоеёиы](?:м|х|ми)$")
_GREEK = re.compile(r"(?<=..)[αεηιουω]+[ςν]?$")


# Where scripts that write no spaces meet what is not theirs.
_UNSPACED = r"\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff々"
_EDGE = re.compile(
    rf"(?<=[{_UNSPACED}])(?=[^{_UNSPACED}\s])|(?<=[^{_UNSPACED}\s])(?=[{_UNSPACED}])"
)


@dataclass(frozen=True, slots=True)
class _Word:
    """`starts` says whether a sentence, a clause or a quotation begins with it, `owns` whether it
    stands with an apostrophe and an s.
    """

    text: str
    gap: str
    starts: bool
    owns: bool

    @property
    def plain(self) -> str:
        return self.text.casefold().replace("’", "'")

    @property
    def is_capitalised(self) -> bool:
        return self.text[0].isupper() and any(map(str.islower, self.text))


def spaced(text: str) -> str:
    """`text` with every letter and digit in its plain form, and spaces between Japanese or Chinese
    and what is not: “Slackは3件” becomes “Slack は 3 件”.
    """
    return _EDGE.sub(" ", unicodedata.normalize("NFKC", text))


def find(line: str) -> Iterator[str]:
    """The names in a line, as they are written there."""
    for match in _JAPANESE.finditer(line):
        if match[1] not in ordinary.NOBODY:
            yield match[1]
    words = list(_words(line))
    telling = not _is_headline(words)
    german = _is_german(words)
    for place, run in _runs(words):
        if len(run) == 1 and _CAMEL.match(run[0].text):
            yield run[0].text
        elif telling and (name := _name(words, place, run, german)):
            yield " ".join(word.text for word in name)


def form(name: str) -> str:
    return " ".join(stems(word)[0] for word in bearers(name))


def bearers(name: str) -> list[str]:
    """The words of a name that have to be there for it to be told."""
    return [word for word in name.split() if word.casefold() not in ordinary.BINDING]


def stems(word: str) -> list[str]:
    """What the word may be without the ending of its case; the first is its form."""
    folded = word.casefold()
    script = unicodedata.name(folded[0], "")
    if script.startswith("CYRILLIC"):
        return [_CYRILLIC.sub("", folded), _CYRILLIC_CASE.sub("", folded)]
    if script.startswith("GREEK"):
        bare = unicodedata.normalize("NFD", folded).replace("\u0301", "")
        return [_GREEK.sub("", bare)]
    return [folded]


def vocabulary(text: str) -> set[str]:
    """The stems of all words of a text, in which the words of a name are looked up."""
    found: set[str] = set()
    for match in _WORD.finditer(spaced(text[:MOST_CHARACTERS])):
        whole = _bare(match[0])
        for word in (whole, *re.split(r"['’-]", whole)):
            if word:
                found.update(stems(word))
        for run in _EAST_ASIAN.findall(whole):
            found.update(run[:end] for end in range(1, 11))
            found.update(run[-length:] for length in range(1, 11))
    return found


def _words(line: str) -> Iterator[_Word]:
    end = 0
    for match in _WORD.finditer(line):
        gap = line[end : match.start()]
        bare = _bare(match[0])
        if bare:
            owns = match[0].endswith(("'s", "’s"))
            yield _Word(bare, gap, end == 0 or bool(_STARTS.search(gap)), owns)
        end = match.end()


def _bare(word: str) -> str:
    return _POSSESSIVE.sub("", _ELISION.sub("", word))


def _is_headline(words: Sequence[_Word]) -> bool:
    """Whether capitals say nothing here, as In This Line; a list of names has commas."""
    capitals = sum(word.is_capitalised for word in words)
    return (
        len(words) >= 5
        and capitals > 0.8 * len(words)
        and not any("," in word.gap for word in words)
    )


def _is_german(words: Sequence[_Word]) -> bool:
    plain = [word.plain for word in words]
    german = sum(word in ordinary.GERMAN for word in plain)
    return german > sum(word in ordinary.ENGLISH for word in plain)


def _runs(words: Sequence[_Word]) -> Iterator[tuple[int, list[_Word]]]:
    """Capitalised words in a row, with the place of the first."""
    place = 0
    while place < len(words):
        if not (words[place].is_capitalised or _CAMEL.match(words[place].text)):
            place += 1
            continue
        end = place + 1
        while end - place < _LONGEST and (further := _further(words, end)):
            end += further
        yield place, list(words[place:end])
        place = end


def _further(words: Sequence[_Word], end: int) -> int:
    """By how many words the run that ends before `end` goes on: one, or two with “of”."""
    following = [word.gap == " " and not word.starts for word in words[end : end + 2]]
    if following[:1] == [True] and words[end].is_capitalised:
        return 1
    binds = following == [True, True] and words[end].plain in ordinary.BINDING
    return 2 if binds and words[end + 1].is_capitalised else 0


def _name(
    words: Sequence[_Word], place: int, run: list[_Word], german: bool
) -> Sequence[_Word] | None:
    """The part of a run that is a name, if any is."""
    after = words[place + len(run) : place + len(run) + 2]
    before = words[place - 1].plain if place else ""
    no_names = ordinary.STARTING if run[0].starts else ordinary.CAPITALISED | {"the", "a", "an"}
    doubtful = run[0].starts or german
    while run and run[0].plain in no_names | ordinary.TITLES | ordinary.BINDING:
        before, run = run[0].plain, run[1:]
        doubtful = german
    while run and run[-1].plain in ordinary.CAPITALISED:
        run = run[:-1]
    if not run:
        return None
    announced = before in ordinary.ANNOUNCING
    sure = len(run) > 1 or run[0].owns or announced or _acts(after)
    return run if sure or not doubtful else None


def _acts(after: Sequence[_Word]) -> bool:
    """Whether the words after a run show that it names someone."""
    if not after:
        return False
    if _QUOTED.match(after[0].gap):
        return True
    if after[0].gap != " ":
        return False
    if _DOES.match(after[0].plain):
        return True
    joined = " ".join(word.plain for word in after)
    return bool(_DID.match(joined)) or (
        after[0].plain in _AND and len(after) > 1 and after[1].is_capitalised
    )
