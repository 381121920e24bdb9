"""Prompts for the system model that writes the summaries. Pure."""

import tomllib
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from chat.prompt.types import PromptMessage
from chat.providers import OutputSchema
from memory.layers.lines import Line
from memory.layers.summarising.answers import MAX_CLAIMS
from memory.prompt import quoting


class SummaryLimits(NamedTuple):
    """The maximum numbers of bullets and of words of a summary."""

    bullets: int
    words: int


# DESIGN, "Summaries".
CONVERSATION = SummaryLimits(bullets=3, words=80)
DIGEST = SummaryLimits(bullets=4, words=120)


def _load_instructions() -> dict[str, str]:
    """Return the texts of prompts.toml, filled in."""
    path = Path(__file__).with_name("prompts.toml")
    texts = tomllib.loads(path.read_text(encoding="utf-8"))
    values = texts.pop("parts") | {
        "bullets_of_conversation": CONVERSATION.bullets,
        "words_of_conversation": CONVERSATION.words,
        "bullets_of_digest": DIGEST.bullets,
        "words_of_digest": DIGEST.words,
        "max_claims": MAX_CLAIMS,
    }
    # A text may contain a part, which may contain another part, which may contain limits.
    for _ in range(3):
        texts = {name: text.format(**values) for name, text in texts.items()}
    return texts


_INSTRUCTIONS = _load_instructions()

_FACT: dict[str, dict[str, object]] = {
    "subject": {"type": "string"},
    "predicate": {"type": "string"},
    "object": {"type": "string"},
    "line": {"type": "integer"},
    "since": {"type": ["string", "null"], "description": "YYYY-MM-DD"},
    "personal": {"type": "boolean"},
    "confidence": {"type": "number"},
}


def _object(properties: dict[str, Any]) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


_BULLET: dict[str, object] = {
    "text": {"type": "string"},
    "lines": {"type": "array", "items": {"type": "integer"}},
}

# The schema of `conversation` in JSON. The summary comes first, so that it is complete even if the
# answer breaks off.
SCHEMA = OutputSchema(
    "memory",
    _object(
        {
            "summary": {"type": "array", "items": _object(_BULLET)},
            "facts": {"type": "array", "items": _object(_FACT)},
        }
    ),
)

# Omitted entities that the second request lists.
_MAX_MISSING = 50


def numbered(pieces: Iterable[tuple[int, str]]) -> str:
    """Return a part from `transcript.split_lines` with its lines numbered from 1."""
    return "".join(f"{place + 1} {piece}" for place, piece in pieces)


def conversation(part: str, previous: str = "", in_json: bool = False) -> list[PromptMessage]:
    """Request the summary of one part of a transcript, and its facts, which cite the numbers of
    its lines; with `in_json` in the form of SCHEMA.

    `previous` is the summary of the range before: context, not to be repeated.
    """
    return [
        PromptMessage("system", _INSTRUCTIONS[f"conversation_in_{'json' if in_json else 'text'}"]),
        PromptMessage("user", _context(previous) + _tagged("transcript", part)),
    ]


def digest(label: str, children: Sequence[tuple[str, Sequence[Line]]]) -> list[PromptMessage]:
    """Request the digest of the period `label` from its children, each as (label, lines), in order
    of time. The bullets cite the numbers of the lines, from 1 through all children.
    """
    rows: list[str] = []
    number = 1
    for name, lines in children:
        rows += [f"[{quoting.quote_on_one_line(name)}]", *_numbered_notes(lines, number)]
        number += len(lines)
    quoted = "\n".join(rows)
    return [
        PromptMessage("system", _INSTRUCTIONS["digest"]),
        PromptMessage(
            "user", f"The period: {quoting.quote_on_one_line(label)}\n\n{_tagged('memory', quoted)}"
        ),
    ]


def retry_digest(
    messages: Sequence[PromptMessage], answer: str, missing: Iterable[str]
) -> list[PromptMessage]:
    """Request a digest again after `answer` to `messages`, in which `missing` was omitted."""
    listed = "\n".join(
        f"- {quoting.quote_on_one_line(text)}" for text in islice(missing, _MAX_MISSING)
    )
    return [
        *messages,
        PromptMessage("assistant", answer),
        PromptMessage("user", f"{_INSTRUCTIONS['digest_retry']}\n{_tagged('memory', listed)}"),
    ]


def _numbered_notes(notes: Iterable[Line], start: int) -> Iterator[str]:
    for number, note in enumerate(notes, start):
        yield f"{number} ({note.day}) {quoting.quote_on_one_line(note.shown)}"


def _context(previous: str) -> str:
    if not previous.strip():
        return ""
    return (
        "What was noted of this conversation before, to understand what follows; "
        f"do not repeat it:\n{_tagged('memory', quoting.quote(previous))}\n\n"
    )


def _tagged(tag: str, quoted: str) -> str:
    return f"<{tag}>\n{quoted.strip()}\n</{tag}>"
