"""The work of one of many processes that write to the same session."""

import json
import os
import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from multiprocessing.synchronize import Barrier, Event
from pathlib import Path
from uuid import UUID

from tests.torture import django_setup  # noqa: F401

# isort: split
from django.contrib.auth import get_user_model

from chat.conversations import edits as changes
from chat.conversations import messages
from chat.models import Message, Session
from chat.prompt import builder

# Seconds until all processes have come together.
GATHERING = 240
# The first is never taken back.
EMOJI = ("🎉", "👍", "🙏")


@dataclass(frozen=True)
class Attempt:
    """An edit that was tried at the version that its writer knew; `after` is what it knew then."""

    seq: int
    writer: int
    text: str
    at: int
    after: int
    won: bool


@dataclass(frozen=True)
class Done:
    """A change to a message that was acknowledged: its version and text then, or the emoji that
    somebody gave to it for good.
    """

    seq: int
    version: int = 0
    text: str = ""
    emoji: str = ""


class Ledger:
    """What was acknowledged so far, by whichever process: whoever is in here has to be seen."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def add(self, done: Done) -> None:
        # So short a line is appended in one piece.
        line = json.dumps(asdict(done)).encode() + b"\n"
        handle = os.open(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            os.write(handle, line)
        finally:
            os.close(handle)

    def read(self) -> list[Done]:
        if not self._path.exists():
            return []
        return [Done(**json.loads(line)) for line in self._path.read_text().splitlines()]


_together: Barrier
_over: Event


def gather(together: Barrier, over: Event) -> None:
    """Where each process begins; the work waits until all are there."""
    global _together, _over
    _together, _over = together, over


def edit(session_id: UUID, writer: int, edits: int, seed: int) -> list[Attempt]:
    """Edits random messages of the session, each at the version that this process last read.

    Half of those who lose try again at once with what they have learnt, as people do.
    """
    chance = random.Random(seed)
    user = get_user_model().objects.get(username=f"writer{writer}")
    known = {message.seq: message for message in Message.objects.filter(session=session_id)}
    attempts: list[Attempt] = []
    _together.wait(GATHERING)
    while len(attempts) < edits:
        if not attempts or attempts[-1].won or chance.random() < 0.5:
            seq = chance.choice(list(known))
        read = known[seq]
        text = f"{len(attempts)} of {writer}"
        try:
            known[seq] = changes.edit(read, text, user, read.version)
            won = True
        except changes.StaleMessageError as stale:
            known[seq] = stale.current
            won = False
        attempts.append(Attempt(seq, writer, text, read.version, known[seq].version, won))
    return attempts


def append(session_id: UUID, writer: int, posts: int, ledger: Ledger) -> list[int]:
    """Posts to the session, which is read once; returns the places in it."""
    session = Session.objects.get(pk=session_id)
    user = get_user_model().objects.get(username=f"writer{writer}")
    places = []
    _together.wait(GATHERING)
    for number in range(posts):
        posted = messages.post_message(session, f"post {writer} {number}", author=user)
        ledger.add(Done(posted.seq, posted.version, posted.text))
        places.append(posted.seq)
    return places


def amend(session_id: UUID, writer: int, edits: int, seed: int, ledger: Ledger) -> int:
    """Edits whatever was posted, without a version; returns how many edits there were."""
    user = get_user_model().objects.get(username=f"writer{writer}")
    _together.wait(GATHERING)
    for message in _picks(session_id, edits, seed):
        edited = changes.edit(message, f"amended by {writer} after {message.version}", user)
        ledger.add(Done(edited.seq, edited.version, edited.text))
    return edits


def react(session_id: UUID, writer: int, reactions: int, seed: int, ledger: Ledger) -> int:
    """Gives emoji to whatever was posted and takes some back; returns how often it did."""
    chance = random.Random(seed)
    user = get_user_model().objects.get(username=f"writer{writer}")
    _together.wait(GATHERING)
    for message in _picks(session_id, reactions, seed):
        emoji = chance.choice(EMOJI)
        for_good = emoji == EMOJI[0]
        changes.react(message, user, emoji, for_good or chance.random() < 0.7)
        if for_good:
            ledger.add(Done(message.seq, emoji=emoji))
    return reactions


def _picks(session_id: UUID, number: int, seed: int) -> Iterator[Message]:
    """So many random messages of the session, as they are when their turn comes."""
    chance = random.Random(seed)
    for _ in range(number):
        last = Session.objects.values_list("last_seq", flat=True).get(pk=session_id)
        yield Message.objects.get(session=session_id, seq=chance.randint(1, last))


def read(session_id: UUID, least: int, ledger: Ledger) -> int:
    """Builds the next prompt again and again until the writers are done, and compares it with what
    was acknowledged before. Returns how many prompts were built.
    """
    _together.wait(GATHERING)
    prompts = 0
    while prompts < least or not _over.is_set():
        over = _over.is_set()
        acknowledged = ledger.read()
        session = Session.objects.select_related("project", "head").get(pk=session_id)
        built = builder.build(builder.Turn(session, session.head))
        check(built, session, acknowledged)
        prompts += 1
        if over and prompts >= least:
            break
    return prompts


def check(built: builder.Prompt, session: Session, acknowledged: list[Done]) -> None:
    """Whether the prompt shows the whole window, and in it every acknowledged change."""
    limit = session.window_limit
    head = session.head
    assert head is not None
    visible = [
        item for section in built.sections for item in section.items if item.kind == "message"
    ]
    rows = {row.pk: row for row in Message.objects.filter(pk__in=[item.id for item in visible])}
    places = [rows[item.id].seq for item in visible]
    first = max(1, head.seq - limit + 1)
    assert places == list(range(first, head.seq + 1)), (places[:3], places[-3:], first, head.seq)
    texts = [message.text for message in built.messages if message.role == "user"]
    assert len(texts) == len(visible)
    words = dict(zip(places, texts, strict=True))
    versions = dict(zip(places, (item.revision for item in visible), strict=True))
    for done in acknowledged:
        assert done.seq <= head.seq, f"{done} is not there yet"
        if done.seq >= first:
            assert versions[done.seq] >= done.version, f"{done} is shown as {versions[done.seq]}"
            if versions[done.seq] == done.version:
                assert words[done.seq].splitlines()[0].endswith(done.text), (done, words[done.seq])
            assert done.emoji in words[done.seq], (done, words[done.seq])
