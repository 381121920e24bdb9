"""Transcripts in files: texts of turns that begin with the name of their speaker. Pure.

Recordings, minutes and exported chats contain such texts. Each turn becomes a passage, and recall
ranks it like a message. A text of another kind rarely meets the conditions. If it does, it is only
split into shorter passages.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import NamedTuple

# The speakers of a transcript each have as many turns, and there are as many of them.
MIN_TURNS = 3
MIN_SPEAKERS = 2
# The minimum share of lines with text that begin a turn, and the minimum mean length of a turn:
# records ("Name: …", "Email: …") have shorter lines, and notes ("Warning: …") are rarer.
MIN_TURN_SHARE = 0.3
MIN_MEAN_CHARS = 25
# A PDF breaks a turn into lines, of which only the first has the name. Then the mean length of a
# turn has a maximum, and these first lines have a minimum: "Type: …" and "Default: …" are shorter.
MAX_BROKEN_CHARS = 600
MIN_FIRST_LINE_CHARS = 40
MAX_NAME_WORDS = 4
NO_NAMES = frozenset("debug info note warn warning error critical fatal example tip".split())
# A shorter turn, such as “Ana: Yes.”, belongs to the passage of the turn after it.
MIN_TURN_CHARS = 30
# The beginning of a line that is searched for a name.
MAX_START_CHARS = 160

_TIME = r"[\[(]?\d{1,2}:\d\d(?::\d\d)?(?:[.,]\d{1,3})?[\])]?"
_NAME = r"(?P<name>[^\W\d_][\w .'’&/-]{0,59}?)"
_TURN = re.compile(
    # “Ana: …”, “**Ana:** …”, “[00:12] Ana: …”, “Ana (10:03): …”
    rf"[ >*-]{{0,4}}(?:{_TIME}[ \t]{{1,4}})?\*{{0,2}}{_NAME}\*{{0,2}}(?:[ \t]{{1,4}}{_TIME})?"
    r"[ \t]{0,2}:\*{0,2}[ \t]+\S"
    # “Ana   0:05” in a line of its own
    rf"|\*{{0,2}}{_NAME.replace('name', 'alone')}\*{{0,2}}[ \t]{{1,8}}{_TIME}[ \t]*$"
    # “<v Ana>…” in WebVTT: https://www.w3.org/TR/webvtt1/#webvtt-cue-voice-span
    rf"|<v {_NAME.replace('name', 'voice')}>"
)
# The number and the times of a subtitle. They belong to the turn that follows.
_CUE = re.compile(r"\d{1,6}\s*$|\d[\d:.,]{3,15} --> \d")


class TurnStart(NamedTuple):
    """The position in a text at which a turn begins, and its speaker."""

    position: int
    speaker: str


def find_speakers(texts: Iterable[str]) -> frozenset[str]:
    """Return the speakers of a transcript, or an empty set if `texts` are not one."""
    turns: Counter[str] = Counter()
    first_line_chars: Counter[str] = Counter()
    lines = chars = 0
    for text in texts:
        for line in text.splitlines():
            if line.strip() and not _CUE.match(line):
                lines += 1
                chars += len(line)
                if speaker := _speaker(line):
                    turns[speaker] += 1
                    first_line_chars[speaker] += len(line)
    speakers = frozenset(name for name, count in turns.items() if count >= MIN_TURNS)
    count = sum(turns[name] for name in speakers)
    if len(speakers) < MIN_SPEAKERS or chars < MIN_MEAN_CHARS * count:
        return frozenset()
    is_broken = chars <= MAX_BROKEN_CHARS * count and (
        sum(first_line_chars[name] for name in speakers) >= MIN_FIRST_LINE_CHARS * count
    )
    return speakers if is_broken or count >= MIN_TURN_SHARE * lines else frozenset()


def split_turns(text: str, speakers: frozenset[str]) -> Iterator[tuple[str, str]]:
    """Yield the speaker and the text of each turn. The text before the first turn has none."""
    begin, speaker = 0, ""
    for start in _turn_starts(text, speakers) if speakers else ():
        if start.position - begin >= MIN_TURN_CHARS or not speaker and start.position:
            yield speaker, text[begin : start.position]
            begin = start.position
        speaker = start.speaker
    if begin < len(text):
        yield speaker, text[begin:]


def begins_turn(text: str, speaker: str) -> bool:
    """Return whether one of the first lines of `text` begins a turn of `speaker`."""
    start = text[: 10 * MAX_START_CHARS]
    # Most passages are no turns. Without this check, a search in manuals took 26 ms instead of 11.
    if speaker not in start:
        return False
    return any(_speaker(line) == speaker for line in start.splitlines()[:4])


def _turn_starts(text: str, speakers: frozenset[str]) -> Iterator[TurnStart]:
    position, cue = 0, None
    for line in text.splitlines(keepends=True):
        if _speaker(line) in speakers:
            yield TurnStart(position if cue is None else cue, _speaker(line))
        if _CUE.match(line):
            cue = position if cue is None else cue
        elif line.strip():
            cue = None
        position += len(line)


def _speaker(line: str) -> str:
    """Return the name with which `line` begins a turn, or an empty text."""
    match = _TURN.match(line[:MAX_START_CHARS].rstrip())
    name = (match["name"] or match["alone"] or match["voice"]).strip() if match else ""
    is_name = len(name.split()) <= MAX_NAME_WORDS and name.lower() not in NO_NAMES
    return name if is_name else ""
