"""Daily talk between two people: from the files of LoCoMo, or made up in their shape."""

import json
import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

from chat.conversations.messages import draft, post_messages
from chat.importers import FileResult, locomo
from chat.importers.base import ImportedFile
from chat.models import Session, Visibility
from projects.models import Project
from tests.scripted import Request


@dataclass(frozen=True)
class Turn:
    speaker: str
    text: str


Talk = Sequence[Turn]

PEOPLE = ("Ana", "Ben Adler", "Chiara", "Daniel Osei", "Eva Lindqvist", "Farid")
PLACES = ("Vienna", "Graz", "Lisbon", "Tampere", "Porto", "Uppsala")
THINGS = ("cutover", "invoice", "rehearsal", "garden", "migration", "recipe", "interview")
TEMPLATES = (
    "I told {person} that the {thing} moves to {day} {month}, see {ticket}.",
    "{person} was in {place} on {day} {month} {year} and liked it a lot!",
    "The {thing} took {number} minutes and {person} paid {number} euros for it.",
    "Honestly, I was so tired after all that. How was your week?",
    "That sounds lovely! I am glad it went well in the end.",
    "We agreed that {person} owns the {thing} from {month} on, as {ticket} says.",
    "Write to {person} at {mail} about the {thing} in {place}.",
    "Did you hear from {person}? The {thing} was on my mind all day.",
)
MONTHS = "January February March April May June July August September October November".split()


def from_files(folder: Path) -> list[Talk]:
    """The sessions of all files in turn, so that neighbours are of different people."""
    talks_found = []
    for path in sorted(folder.glob("*.json")):
        document = ImportedFile(path.name, lambda path=path: path.open("rb"))
        result = FileResult()
        sessions = locomo.sessions(document, result)
        talks_found.append(
            [
                [Turn(message.speaker, message.text) for message in talk.messages]
                for talk in sessions
            ]
        )
        assert not result.errors
    longest = max(map(len, talks_found))
    return [talks[place] for place in range(longest) for talks in talks_found if place < len(talks)]


def generate_talks(chance: random.Random, talks: int, turns: int) -> Iterator[Talk]:
    for _ in range(talks):
        speakers = chance.sample(PEOPLE, 2)
        yield [Turn(speakers[turn % 2], _sentence(chance)) for turn in range(turns)]


def _sentence(chance: random.Random) -> str:
    return chance.choice(TEMPLATES).format(
        person=chance.choice(PEOPLE),
        place=chance.choice(PLACES),
        thing=chance.choice(THINGS),
        day=chance.randint(1, 28),
        month=chance.choice(MONTHS),
        year=chance.randint(2019, 2026),
        number=chance.randint(11, 990),
        ticket=f"{chance.choice(('OPS', 'INFRA', 'HOME'))}-{chance.randint(100, 9999)}",
        mail=f"{chance.choice('abcdef')}.{chance.randint(10, 99)}@example.org",
    )


def post(project: Project, talk: Talk, at: datetime) -> None:
    """Write a talk that began at a moment into a chat of its own, two messages a minute."""
    session = Session.objects.create(
        project=project, title="Talk", visibility=Visibility.PROJECT, created_at=at
    )
    turns = [
        draft(turn.text, author_name=turn.speaker, created_at=at + place * timedelta(seconds=30))
        for place, turn in enumerate(talk)
    ]
    post_messages(session, turns)
    Session.objects.filter(pk=session.pk).update(last_activity_at=turns[-1].created_at)


class Hasty:
    """A model, at the wire, whose summaries keep some of what was said and drop the rest.

    Told what it left out, it adds as much of that as finds room. Of each talk it tells one fact,
    which ends the one before of the same speaker.
    """

    def __call__(self, request: Request) -> str:
        messages = request["messages"]
        assert isinstance(messages, list)
        content, last = messages[1]["content"], messages[-1]["content"]
        if "response_format" in request:
            return self._conversation(content)
        if len(messages) > 2:
            kept_lines = messages[2]["content"].splitlines()[:3]
            missing = re.findall(r"^- (.+)$", last, re.MULTILINE)
            return "\n".join([*kept_lines, f"- Also: {_short(', '.join(missing), 35)}"])
        bullets = re.findall(r"^\d+ \([\d-]+\) (.+)$", content, re.MULTILINE)
        return "\n".join(f"- {_short(line, 24)}" for line in _spread(bullets, 4))

    def _conversation(self, text: str) -> str:
        lines = re.findall(r"^\d+ \[[^]]+\] (.+)$", text, re.MULTILINE)
        speaker, sentence = lines[-1].split(": ", 1)
        fact = {
            "subject": speaker,
            "predicate": "spoke last of",
            "object": max(sentence.split(), key=len),
            "line": len(lines),
            "since": None,
            "personal": False,
            "confidence": 0.9,
        }
        summary = [_short(line, 22) for line in _spread(lines, 3)]
        return json.dumps({"summary": summary, "facts": [fact]})


def _spread(lines: Sequence[str], most: int) -> Sequence[str]:
    """The longest ones, in their order: people say more where there is more to say."""
    chosen = sorted(range(len(lines)), key=lambda place: -len(lines[place]))[:most]
    return [lines[place] for place in sorted(chosen)]


def _short(text: str, words: int) -> str:
    return " ".join(text.split()[:words])
