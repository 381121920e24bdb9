"""Indexing and re-embedding die at any instant: no chunk is missing, and none is there twice."""

import time
from collections import Counter
from collections.abc import Callable
from datetime import timedelta
from itertools import count

import pytest
from django.contrib.auth import get_user_model
from django.db.models import Count, Q, Sum
from django.db.models.functions import Now

from chat.conversations import edits
from chat.conversations.messages import draft, post_messages
from chat.models import Role, Session
from memory.models import Chunk, IndexCursor, Vector
from memory.recall import embedders, indexing, reindexing
from projects.services import create_project
from tests.memory.hash_embedder import HashEmbedder
from tests.torture import indexers
from tests.torture.test_memory_kills import wait_until_ended

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE_TEMPLATE = (
    "Build {} of the importer took {} minutes, which is {} more than the one before it, and the "
    "team that owns it wants to know by Friday whether the cache is to blame."
)


class Talk:
    """Two projects full of sessions, in which people go on talking and changing their minds."""

    def __init__(self, chance) -> None:
        self.chance = chance
        self.user = get_user_model().objects.create_user("olive")
        self.projects = [create_project(self.user, name=f"P{number}") for number in range(2)]
        self.numbers = count(1)

    def begin(self, sessions: int) -> None:
        for _ in range(sessions):
            project = self.chance.choice(self.projects)
            self.say(Session.objects.create(project=project, creator=self.user))

    def say(self, session: Session) -> None:
        drafts = [
            draft(
                MESSAGE_TEMPLATE.format(next(self.numbers), self.chance.randrange(90), place),
                role=self.chance.choice((Role.USER, Role.ASSISTANT)),
            )
            for place in range(self.chance.randint(1, 8))
        ]
        post_messages(session, drafts)

    def go_on(self, most: int) -> None:
        sessions = list(Session.objects.all())
        for session in self.chance.sample(sessions, min(most, len(sessions))):
            self.say(session)
            messages = list(session.messages.filter(deleted_at=None))
            changed = self.chance.choice(messages)
            match self.chance.randrange(4):
                case 0:
                    edits.edit(changed, f"{changed.text} Build {next(self.numbers)}.", self.user)
                case 1:
                    edits.delete(changed)
                case 2:
                    edits.fork(changed, self.user)


class Killer:
    """Has workers killed at random instants, most of them in the middle of what they do."""

    def __init__(self, crew, chance, tally) -> None:
        self.crew, self.chance, self.tally = crew, chance, tally
        # How long they live, at most. It follows from how far they come: machines differ.
        self.seconds = 0.6
        self.kills = self.at_work = 0

    def __call__(self, work: Callable, *args) -> None:
        name, begun = f"indexer-{self.chance.randrange(2**32)}", self.crew.Event()
        before = so_far()
        process = self.crew.Process(target=work, args=(name, begun, *args), name=name)
        process.start()
        assert begun.wait(60)
        time.sleep(self.chance.uniform(0, self.seconds))
        process.kill()
        process.join(30)
        wait_until_ended(name)
        lease_counts = IndexCursor.objects.filter(lease_until__gt=Now())
        if process.exitcode == 0:
            self.seconds *= 0.7
        else:
            self.count(lease_counts.exists(), so_far() != before)
        no_two_in_a_place()
        # As time passes: a lease ends by itself.
        lease_counts.update(lease_until=Now() - timedelta(seconds=1))

    def is_done(self, scale: Callable[[int, int], int]) -> bool:
        """Enough were killed, and enough of them at work: how many are depends on the machine."""
        return self.kills >= scale(30, 4) and self.at_work >= scale(10, 0)

    def count(self, is_held: bool, is_further: bool) -> None:
        self.kills += 1
        self.at_work += is_held or is_further
        if is_held:
            self.tally("killed while they held sessions")
        elif is_further:
            self.tally("killed between two batches")
        else:
            self.tally("killed before their first batch")
            self.seconds *= 1.3


@pytest.fixture
def killer(crew, chance, tally) -> Killer:
    return Killer(crew, chance, tally)


def test_indexing_may_die_anywhere(killer, chance, scale, tally):
    talk = Talk(chance)
    talk.begin(scale(60, 12))
    while not killer.is_done(scale):
        talk.go_on(scale(20, 8))
        killer(indexers.index)
    reindexing.index_until_done(None)
    stored_chunks = chunks()
    check(stored_chunks)
    tally("chunks", len(stored_chunks))
    Chunk.objects.all().delete()
    reindexing.reindex(None, None, lambda step: None)
    assert stored_chunks == chunks()
    check(stored_chunks)


def test_embedding_again_may_die_anywhere(killer, chance, scale, monkeypatch):
    talk = Talk(chance)
    talk.begin(scale(120, 25))
    reindexing.index_until_done(None)
    before, turns = chunks(), count()
    while not killer.is_done(scale):
        embedder = ("hash", "static")[next(turns) // 3 % 2]
        killer(indexers.embed, embedder)
    monkeypatch.setattr(embedders, "get", HashEmbedder)
    reindexing.replace_vectors(None, None, lambda step: None)
    assert chunks() == before
    assert set(Vector.objects.values_list("embedder", flat=True)) == {"hash-64"}
    check(before)


def so_far() -> tuple:
    """What changes whenever a batch is committed."""
    done = IndexCursor.objects.aggregate(Sum("done"))
    vectors = Vector.objects.values_list("embedder").annotate(Count("pk")).order_by("embedder")
    return done, Chunk.objects.count(), list(vectors)


def chunks() -> list[tuple]:
    columns = ("source", "first_seq", "last_seq", "part", "role", "speaker", "text", "tokens")
    return sorted(Chunk.objects.values_list(*columns))


def no_two_in_a_place() -> None:
    """What the tables forbid, and no overlap of what covers several messages."""
    lease_counts: Counter = Counter()
    for source, first, last in Chunk.objects.filter(part=0).values_list(
        "source", "first_seq", "last_seq"
    ):
        lease_counts.update((source, seq) for seq in range(first, last + 1))
    assert not lease_counts or max(lease_counts.values()) == 1


def check(stored_chunks: list[tuple]) -> None:
    """Whether nothing is behind, and each chunk has one vector of the embedder in use."""
    assert stored_chunks
    assert not indexing.is_behind()
    assert not IndexCursor.objects.filter(~Q(last_error="")).exists()
    counted = Chunk.objects.annotate(vectors_of_it=Count("vectors"))
    assert set(counted.values_list("vectors_of_it", flat=True)) == {1}
