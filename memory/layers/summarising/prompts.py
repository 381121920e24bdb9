"""Prompts for the model that writes summaries (the system model). Pure."""

import tomllib
from collections.abc import Iterable, Sequence
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from chat.prompt import quoting
from chat.prompt.types import PromptMessage
from chat.providers import OutputSchema
from memory.layers.lines import Line
from memory.layers.summarising.answers import MAX_CLAIMS


class SummaryLimits(NamedTuple):
    """The maximum number of bullets and of words in a summary."""

    bullets: int
    words: int


CONVERSATION = SummaryLimits(bullets=3, words=80)
DIGEST = SummaryLimits(bullets=4, words=120)


def _load_instructions() -> dict[str, str]:
    """Return the texts of prompts.toml with their placeholders filled in."""
    path = Path(__file__).with_name("prompts.toml")
    texts = tomllib.loads(path.read_text(encoding="utf-8"))
    values = texts.pop("parts") | {
        "bullets_of_conversation": CONVERSATION.bullets,
        "words_of_conversation": CONVERSATION.words,
        "bullets_of_digest": DIGEST.bullets,
        "words_of_digest": DIGEST.words,
        "max_claims": MAX_CLAIMS,
    }
    # Three passes, because a text may contain parts, which contain parts, which contain limits.
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

# The JSON schema of the answer to `conversation`. The summary is the first field, so that it is
# complete even if the answer breaks off.
SCHEMA = OutputSchema(
    "memory",
    _object(
        {
            "summary": {"type": "array", "items": _object(_BULLET)},
            "facts": {"type": "array", "items": _object(_FACT)},
        }
    ),
)

# The maximum number of omitted entities that the second request lists.
_MAX_MISSING = 50


def numbered(pieces: Iterable[tuple[int, str]]) -> str:
    """Return a part from `transcript.split_lines`, with its line numbers in the transcript."""
    return "".join(f"{place + 1} {piece}" for place, piece in pieces)


def conversation(part: str, previous: str = "", in_json: bool = False) -> list[PromptMessage]:
    """Return a prompt that requests the summary and the facts of one part of a transcript.

    Facts cite the numbers of the lines. With `in_json`, the answer must match SCHEMA. `previous` is
    the summary of the preceding range, as context that must not be repeated.
    """
    return [
        PromptMessage("system", _INSTRUCTIONS[f"conversation_in_{'json' if in_json else 'text'}"]),
        PromptMessage("user", _context(previous) + _tagged("transcript", part)),
    ]


def digest(label: str, children: Sequence[tuple[str, Sequence[Line]]]) -> list[PromptMessage]:
    """Return a prompt that requests the digest of the period `label`. `children` are pairs (label,
    lines) in chronological order. Bullets cite the numbers of the lines, from 1 over all children.
    """
    rows: list[str] = []
    number = 0
    for name, lines in children:
        rows.append(f"[{quoting.quote_on_one_line(name)}]")
        for note in lines:
            number += 1
            rows.append(f"{number} ({note.day}) {note.quoted}")
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
    """Return a prompt that repeats the request `messages`, because `answer` omitted `missing`."""
    listed = "\n".join(
        f"- {quoting.quote_on_one_line(text)}" for text in islice(missing, _MAX_MISSING)
    )
    return [
        *messages,
        PromptMessage("assistant", answer),
        PromptMessage("user", f"{_INSTRUCTIONS['digest_retry']}\n{_tagged('memory', listed)}"),
    ]


def _context(previous: str) -> str:
    if not previous.strip():
        return ""
    return (
        "What was noted of this conversation before, to understand what follows; "
        f"do not repeat it:\n{_tagged('memory', quoting.quote(previous))}\n\n"
    )


def _tagged(tag: str, quoted: str) -> str:
    return f"<{tag}>\n{quoted.strip()}\n</{tag}>"
