"""Links, e-mail addresses and identifiers. Forms: links without scheme, others case-folded."""

import re

from memory.layers.entities.patterns import WORDS, EntityKind, EntityPattern, Form

# Words in capitals that are not identifiers.
_COMMON = frozenset(WORDS["identifiers"]["common"].split())
_EXTENSIONS = (
    "py|js|mjs|ts|tsx|jsx|html|css|md|rst|txt|ya?ml|json|jsonl|toml|ini|cfg|conf|env|sql|sh|rs|java"
    "|kt|cpp|hpp|php|csv|tsv|xlsx?|docx?|pptx?|pdf|png|jpe?g|svg|zip|gz|log|lock|xml|ipynb|proto|tf"
)


def _folded(match: re.Match[str]) -> Form:
    return Form(match[0].casefold().strip("`.,;:"))


def _link(match: re.Match[str]) -> Form:
    bare = re.sub(r"^(?:https?://)?(?:www\.)?", "", match[0], flags=re.IGNORECASE)
    host, slash, path = bare.partition("/")
    return Form((host.casefold() + slash + path).rstrip("/.,;:!?'’*_"))


def _version(match: re.Match[str]) -> Form:
    return Form(match[0].casefold().removeprefix("v").rstrip("."))


def _capitals(match: re.Match[str]) -> Form:
    form = match[0].removesuffix("s").casefold()
    line = match.string
    # In a line written in capitals, they do not show that a word is an identifier.
    is_shouted = sum(map(str.isupper, line[:400])) > sum(map(str.islower, line[:400]))
    return Form(form, form not in _COMMON and not is_shouted)


def _identifier(pattern: str, form=_folded) -> EntityPattern:
    return EntityPattern(EntityKind.IDENTIFIER, re.compile(pattern), form)


# Matched first, since they contain numbers, dates and words.
ADDRESSES = (
    _identifier(r"`[^`\s][^`]{0,78}[^`\s]`"),
    EntityPattern(
        EntityKind.LINK,
        re.compile(r"\b(?:https?://|www\.)[^\s<>\"“”«»()\[\]{}]{2,2000}", re.IGNORECASE),
        _link,
    ),
    EntityPattern(
        EntityKind.EMAIL,
        re.compile(r"(?<![\w.+-])[\w.+-]{1,64}@[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63}){1,8}"),
        _folded,
    ),
    _identifier(r"\b[\da-fA-F]{8}(?:-[\da-fA-F]{4}){3}-[\da-fA-F]{12}\b"),
    _identifier(r"(?<![\w.])\d{1,3}(?:\.\d{1,3}){3}(?:/\d{1,2}|:\d{1,5})?(?![\w.]*\w)"),
    _identifier(
        r"(?<![\w:])(?=[\da-fA-F:]{0,39}::|(?:[\da-fA-F]{1,4}:){7})[\da-fA-F:]{2,39}(?![\w:])"
    ),
    _identifier(r"(?<![\w@./])@[A-Za-z]\w{1,38}\b"),
    _identifier(r"(?<![\w&#/])#\w{1,40}"),
    _identifier(r"\b[A-Z]:\\[^\s\"<>|]{1,250}"),
    _identifier(
        r"(?<![\w/.~-])(?:~|\.{1,2})?/[A-Za-z_.{][\w.@{}-]{0,100}(?:/[\w.@{}:*-]{0,100}){0,30}"
    ),
    _identifier(rf"(?<![\w/.-])[\w-]{{1,80}}(?:[/.][\w-]{{1,80}}){{0,30}}\.(?:{_EXTENSIONS})\b"),
)
CODES = (
    _identifier(r"\bv\d+(?:\.\d+){0,4}(?:-[\w.]{1,20})?\b", _version),
    _identifier(
        r"(?<![\w.])\d{1,6}(?:\.\d{1,6}){2,3}(?:-[A-Za-z][\w.]{0,20})?(?!\w|\.\d)", _version
    ),
    _identifier(r"\b(?=[a-f]{0,63}\d)(?=\d{0,63}[a-f])[\da-f]{7,64}\b"),
    _identifier(r"(?<!\w)_{0,2}[^\W_]{1,60}(?:_{1,2}[^\W_]{1,60}){1,20}(?!\w)"),
    # P-1005, JIRA-123, S3, k8s, gpt-5-mini, EU-West-1
    _identifier(
        r"(?<![\w-])[A-Za-z]{1,30}(?:-[A-Za-z]{1,30}){0,4}-?\d[A-Za-z\d]{0,30}(?:[-.][A-Za-z\d]{1,30}){0,6}(?![\w-])"
    ),
    _identifier(r"(?<![\w-])[a-z]{2,30}[A-Z][a-z]\w{0,60}\b"),
)
# Matched after numbers, because units and currencies are written in capitals too.
CAPITALS = _identifier(r"(?<![\w-])[A-ZÀ-ÖØ-ÞА-ЯΑ-Ω]{2,}s?(?![\w-])(?!['’][a-zA-Z]{2})", _capitals)
