"""`manage.py reindex` rebuilds the index and may run repeatedly."""

import pytest
from django.core.management import CommandError, call_command
from django.db import connection

from chat.conversations.messages import post_message
from chat.models import Session
from memory.models import Chunk, Vector
from memory.recall import embedders, vector_index
from tests.memory.hash_embedder import HashEmbedder
from tests.memory.recall_helpers import recalled_texts, talk

pytestmark = pytest.mark.django_db

CUTOVER = "The cutover to the new database is on the third of March."


def rows() -> list[tuple]:
    chunks = Chunk.objects.order_by("source", "first_seq", "part")
    return list(chunks.values_list("source", "first_seq", "last_seq", "part", "text", "tokens"))


def vectors() -> set[str]:
    return set(Vector.objects.values_list("embedder", flat=True))


@pytest.fixture
def hashing(monkeypatch):
    embedder = HashEmbedder()
    monkeypatch.setattr(embedders, "get", lambda: embedder)
    # An index cannot be made inside a test's transaction.
    monkeypatch.setattr("memory.recall.reindexing.vector_index.ensure_index", lambda embedder: None)
    return embedder


def test_it_changes_nothing_that_is_right(project, owner, capsys):
    talk(project, owner, CUTOVER)
    before = (rows(), Vector.objects.get().pk)
    call_command("reindex")
    assert (rows(), Vector.objects.get().pk) == before
    assert "1 sessions indexed, 0 chunks written, 0 failed" in capsys.readouterr().out


def test_it_brings_back_what_is_missing_and_takes_away_what_is_left_over(project, owner):
    session = talk(project, owner, CUTOVER)
    talk(project, owner, "Another conversation, which lost its chunk.")
    clean = rows()
    Chunk.objects.exclude(source=session.pk).delete()
    chunk = Chunk.objects.get()
    chunk.pk, chunk.first_seq, chunk.last_seq = None, 7, 9
    chunk.pk = Session.objects.create(project=project).pk
    chunk.save(force_insert=True)
    Vector.objects.all().delete()
    call_command("reindex")
    assert rows() == clean
    assert Vector.objects.count() == len(clean)


def test_it_takes_sessions_from_before_there_was_recall(project, owner):
    session = Session.objects.create(project=project, creator=owner)
    post_message(session, CUTOVER, author=owner)
    session.index_cursor.delete()
    call_command("reindex", project="billing", user="olive")
    assert [row[4] for row in rows()] == [CUTOVER]


def test_another_embedder_is_added_beside_the_first_and_then_takes_its_place(
    project, owner, hashing
):
    talk(project, owner, CUTOVER)
    assert vectors() == {"hash-64"}
    Vector.objects.update(embedder="of old")
    assert recalled_texts(project, owner, "When is the cutover?") == [CUTOVER]
    call_command("reindex", "--embedder")
    assert vectors() == {"hash-64"}
    assert Vector.objects.count() == 1


def test_a_stopped_change_of_embedders_goes_on_where_it_was(project, owner, monkeypatch, hashing):
    for number in range(3):
        talk(project, owner, f"{CUTOVER} {number}")
    Vector.objects.update(embedder="of old")
    monkeypatch.setattr("memory.recall.reindexing.BATCH_SIZE", 1)
    real, calls = hashing.embed_documents, []

    def dying(texts):
        calls.append(texts)
        if len(calls) == 3:
            raise embedders.EmbedderError("The embedder is away.")
        return real(texts)

    monkeypatch.setattr(hashing, "embed_documents", dying)
    with pytest.raises(CommandError, match="is away"):
        call_command("reindex", "--embedder")
    assert sorted(Vector.objects.values_list("embedder", flat=True)) == [
        *["hash-64"] * 2,
        *["of old"] * 3,
    ]
    monkeypatch.setattr(hashing, "embed_documents", real)
    call_command("reindex", "--embedder")
    assert list(Vector.objects.values_list("embedder", flat=True)) == ["hash-64"] * 3


@pytest.mark.django_db(transaction=True)
def test_each_embedder_has_an_index_of_its_own():
    for _ in range(2):
        vector_index.ensure_index(HashEmbedder())
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexname FROM pg_indexes WHERE tablename = 'memory_vector' "
            "AND indexdef LIKE '%%hash-64%%'"
        )
        [[name]] = cursor.fetchall()
        cursor.execute(f"DROP INDEX {name}")


@pytest.mark.parametrize("options", [{"project": "nothing"}, {"user": "nobody"}])
def test_an_unknown_project_is_refused(project, options):
    with pytest.raises(CommandError, match="There is no"):
        call_command("reindex", **options)
