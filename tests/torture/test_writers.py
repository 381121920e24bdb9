"""Any number of processes write to one session, and none of them loses anything."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor, as_completed
from contextlib import contextmanager

import pytest
from django.contrib.auth import get_user_model

from chat.conversations.messages import draft, post_messages
from chat.models import Message, MessageRevision, Reaction, Session
from tests.torture import writers

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGES = 20


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(
        project=project, creator=owner, title="Shared", history_limit=1_000
    )


@contextmanager
def at_once(crew, number: int) -> Iterator[ProcessPoolExecutor]:
    """As many processes, which begin to work when all of them have something to do.

    Whoever waits for the writers' end (`writers.read`) is told at the end of the block.
    """
    over = crew.Event()
    arguments = (crew.Barrier(number), over)
    with ProcessPoolExecutor(
        number, mp_context=crew, initializer=writers.gather, initargs=arguments
    ) as pool:
        try:
            yield pool
        finally:
            over.set()


def results(futures: list[Future]) -> list:
    """What the processes returned; the first failure of one is raised at once."""
    for future in as_completed(futures):
        future.result()
    return [future.result() for future in futures]


def people(number: int) -> list:
    users = get_user_model().objects
    return [users.create_user(f"writer{index}") for index in range(number)]


def test_an_edit_succeeds_or_gets_412_and_none_is_lost(crew, session, scale, tally, chance):
    processes, edits = scale(50, 5), scale(200, 40)
    post_messages(session, [draft(f"Message {number}") for number in range(MESSAGES)])
    people(processes)
    before = session.version
    with at_once(crew, processes) as pool:
        futures = [
            pool.submit(writers.edit, session.pk, number, edits, chance.randrange(2**32))
            for number in range(processes)
        ]
        attempts = [attempt for result in results(futures) for attempt in result]
    won = [attempt for attempt in attempts if attempt.won]
    lost = [attempt for attempt in attempts if not attempt.won]
    tally("processes", processes)
    tally("edits won", len(won))
    tally("edits lost, and told so", len(lost))
    assert len(won) + len(lost) == processes * edits
    assert won and lost

    assert all(attempt.after == attempt.at + 1 for attempt in won)
    # Who lost was told of a version that somebody else had written since.
    assert all(attempt.after > attempt.at for attempt in lost)
    winners: dict[int, dict[int, writers.Attempt]] = defaultdict(dict)
    for attempt in won:
        assert attempt.after not in winners[attempt.seq], "Two won the same version."
        winners[attempt.seq][attempt.after] = attempt
    for message in session.messages.all():
        check_history(message, winners[message.seq])
    session.refresh_from_db()
    assert session.version - before == len(won)


def check_history(message: Message, winners: dict[int, writers.Attempt]) -> None:
    """Whether the text is the last winner's and the revisions are all that stood before."""
    last = message.version
    assert sorted(winners) == list(range(2, last + 1))
    texts = {1: f"Message {message.seq - 1}"}
    texts |= {version: attempt.text for version, attempt in winners.items()}
    assert message.text == texts.pop(last)
    revisions = list(MessageRevision.objects.filter(message=message).select_related("edited_by"))
    assert Counter(revision.version for revision in revisions) == Counter(range(1, last))
    assert {revision.version: revision.text for revision in revisions} == texts
    by = {revision.version: revision.edited_by.username for revision in revisions}
    assert by == {version - 1: f"writer{attempt.writer}" for version, attempt in winners.items()}


def test_every_message_gets_its_place_and_every_prompt_has_what_was_acknowledged(
    crew, session, scale, tally, chance, tmp_path
):
    appending, posts = scale(20, 4), scale(100, 25)
    helpers, rounds = scale(5, 1), scale(100, 10)
    post_messages(session, [draft("The beginning.")])
    people(appending + 2 * helpers)
    before = session.version
    ledger = writers.Ledger(tmp_path / "ledger")
    amending = range(appending, appending + helpers)
    reacting = range(appending + helpers, appending + 2 * helpers)

    def seed() -> int:
        return chance.randrange(2**32)

    with at_once(crew, appending + 3 * helpers) as pool:
        start: Callable[..., Future] = pool.submit
        reading = [start(writers.read, session.pk, rounds, ledger) for _ in range(helpers)]
        amended = [
            start(writers.amend, session.pk, writer, rounds, seed(), ledger) for writer in amending
        ]
        reacted = [
            start(writers.react, session.pk, writer, rounds, seed(), ledger) for writer in reacting
        ]
        appended = [
            start(writers.append, session.pk, number, posts, ledger) for number in range(appending)
        ]
        written = results([*appended, *amended, *reacted])
    places = written[:appending]
    edits, reactions = sum(written[appending : appending + helpers]), sum(written[-helpers:])
    tally("appends", sum(map(len, places)))
    tally("edits beside them", edits)
    tally("reactions beside them", reactions)
    tally("prompts compared with what was acknowledged", sum(results(reading)))

    total = 1 + appending * posts
    assert all(own == sorted(own) and len(own) == posts for own in places)
    assert sorted(place for own in places for place in own) == list(range(2, total + 1))
    messages = list(session.messages.order_by("seq"))
    assert [message.seq for message in messages] == list(range(1, total + 1))
    parents = [message.parent_id for message in messages]
    assert parents == [None, *(message.pk for message in messages[:-1])]
    session.refresh_from_db()
    assert (session.last_seq, session.head_id) == (total, messages[-1].pk)
    assert session.version - before == appending * posts + edits + reactions
    assert sum(message.version - 1 for message in messages) == edits
    assert MessageRevision.objects.filter(message__session=session).count() == edits
    written_last = {(done.seq, done.version): done.text for done in ledger.read() if done.version}
    for message in messages[1:]:
        assert message.text == written_last[message.seq, message.version]
    reaction_counts = Counter(Reaction.objects.values_list("message_id", "user_id", "emoji"))
    assert reaction_counts and max(reaction_counts.values()) == 1
