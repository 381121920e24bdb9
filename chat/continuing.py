"""Whether a request goes on with a conversation that is kept, and where. Pure.

Programs send with each request what they know of the conversation: all of it, its end, or only what
is new. Replies that they stopped are shorter there, white space differs, and a person may have
edited what was said. The record stands: what the request tells of it only finds the place.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

from chat.models import Role

# Of a message, as much as a prompt that quotes it is searched for, in characters.
QUOTED = 80
# An exchange of fewer characters may stand in a message by chance.
TELLING = 40

# What Open WebUI folds away in an answer: thoughts, calls of tools.
_FOLDED = re.compile(r"<details type=.*?(?:</details>|\Z)", re.DOTALL)
# How it, and LibreChat, begin what they ask for themselves: titles, tags, search queries.
_TASK = re.compile(
    r"\s*(?:### Task:.*(?:<chat_history>|### Chat History)"
    r"|Analyze this conversation and provide:"
    r"|Provide a concise, 5-word-or-less title)",
    re.DOTALL,
)
_LABELS = re.compile(r"^\W*(?:user|human|assistant|ai)\W*:", re.IGNORECASE | re.MULTILINE)


@dataclass(frozen=True)
class Line:
    """A message of a request or, with an `id`, of the record.

    `calls` are the ids of what it asks of tools, `images` digests. Of the record, `ours` tells
    what came in with requests, and `stands` what nobody deleted.
    """

    role: str
    text: str
    calls: frozenset[str] = frozenset()
    answers: str = ""
    images: tuple[str, ...] = ()
    id: UUID | None = None
    ours: bool = False
    stands: bool = True

    @cached_property
    def words(self) -> str:
        """What is compared: without folds, every run of white space one space."""
        return " ".join(unicodedata.normalize("NFC", _FOLDED.sub(" ", self.text)).split())


@dataclass(frozen=True)
class Onward:
    """The request is said at the end of the path or, if there is one, `below` a message.

    Its messages from the place `start` on are not on the record yet.
    """

    start: int
    below: UUID | None = None


@dataclass(frozen=True)
class Again:
    """The message is on the record, and wants another reply."""

    id: UUID


Plan = Onward | Again | None


def plan(path: Sequence[Line], asked: Sequence[Line], is_new: bool) -> Plan:
    """What a request, whose last message is a person's, means to the conversation of that `path`.

    None when it does not go on with it. Earlier messages of the request are taken in where the
    record lacks them: in a conversation that is new here, and behind its end; never in place of
    what it holds.
    """
    *earlier, said = asked
    if _TASK.match(said.text) or _quotes(said, path):
        return None
    if not path:
        return Onward(0 if is_new else len(earlier))
    if not earlier:
        latest = next((one for one in reversed(path) if one.role == Role.USER), None)
        return _again(latest, said) or Onward(0)
    found = _met(path, earlier)
    if found is None:
        return None
    known, place = found
    following = path[place:]
    if not following:
        return Onward(known)
    people = [one for one in following if one.role == Role.USER]
    if known == len(earlier) and people:
        if again := _again(people[0], said):
            return again
        # What the program knew and leaves out now, it replaces. What was said elsewhere it never
        # knew: that stays on the path.
        if all(one.ours for one in people):
            return Onward(known, path[place - 1].id)
    return Onward(len(earlier))


def _again(kept: Line | None, said: Line) -> Again | None:
    if kept is None or kept.id is None or not kept.stands:
        return None
    same = kept.words == said.words and sorted(kept.images) == sorted(said.images)
    return Again(kept.id) if same else None


def _quotes(said: Line, path: Sequence[Line]) -> bool:
    """Whether it tells the last exchange itself: so do prompts for titles and tags. Where the
    answer is still being said, some tell the question alone.
    """
    spoken = [one for one in path if one.words and one.role in (Role.USER, Role.ASSISTANT)]
    asked = [place for place, one in enumerate(spoken) if one.role == Role.USER]
    if not asked:
        return False
    question = spoken[asked[-1]].words[:QUOTED]
    answer = spoken[-1].words[:QUOTED] if spoken[-1].role == Role.ASSISTANT else ""
    _, quoted, rest = said.words.partition(question)
    if not quoted or answer not in rest:
        return False
    labelled = bool(_LABELS.search(said.text))
    return labelled or bool(answer and len(question) + len(answer) >= TELLING)


def _met(path: Sequence[Line], earlier: Sequence[Line]) -> tuple[int, int] | None:
    """How many of `earlier` the path knows, and where on it what follows them begins."""
    for last in range(len(earlier) - 1, -1, -1):
        places = [at for at, kept in enumerate(path) if _same(earlier[last], kept)]
        if places:
            best = max(places, key=lambda at: (_agreement(path, earlier, at, last), at))
            return _with_answers(path, earlier, best + 1, last + 1)
    return None


def _agreement(path: Sequence[Line], earlier: Sequence[Line], at: int, last: int) -> int:
    """How many messages before the two are the same, too."""
    back = 1
    while back <= min(at, last) and _same(earlier[last - back], path[at - back]):
        back += 1
    return back


def _with_answers(
    path: Sequence[Line], earlier: Sequence[Line], place: int, known: int
) -> tuple[int, int]:
    """Passes over answers that were edited: where both have one, it is the record's."""
    while (
        known < len(earlier)
        and place < len(path)
        and earlier[known].role == path[place].role != Role.USER
    ):
        known, place = known + 1, place + 1
    return known, place


def _same(asked: Line, kept: Line) -> bool:
    if asked.role != kept.role:
        return False
    if asked.answers or asked.calls:
        return (asked.answers, asked.calls) == (kept.answers, kept.calls)
    if asked.words == kept.words:
        return True
    cut = bool(asked.words and kept.words) and asked.role == Role.ASSISTANT
    return cut and (kept.words.startswith(asked.words) or asked.words.startswith(kept.words))
