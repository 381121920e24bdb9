"""Large projects have a vector index; search is complete while it is built."""

import pytest
from django.db import connection

from memory.models import Corpus, Vector
from memory.recall import embedders, indexing, vector_index
from memory.tasks import run_indexing
from projects.services import create_project
from tests.memory.recall_helpers import recalled_texts, say, talk

pytestmark = pytest.mark.django_db

TEXTS = [f"My sister planted {flower} in her garden." for flower in ("tulips", "roses", "phlox")]
QUESTION = "Which flowers did her sibling grow?"


@pytest.fixture
def large(project, owner, monkeypatch):
    """A project that is large as soon as it has three chunks, in which none may wait."""
    monkeypatch.setattr(vector_index, "MAX_EXACT_CHUNKS", 2)
    monkeypatch.setattr(vector_index, "MAX_UNINDEXED_VECTORS", 0)
    monkeypatch.setattr(vector_index, "BATCH_SIZE", 1)
    for text in TEXTS:
        talk(project, owner, text)
    assert Corpus.objects.get().chunks == 3
    return project


def indexed() -> list[bool]:
    return list(Vector.objects.order_by("chunk__source").values_list("indexed", flat=True))


def test_new_vectors_wait_outside_the_index(large):
    assert indexed() == [False] * 3


def test_a_large_project_is_taken_in(large):
    assert vector_index.add_waiting(embedders.get()) is False
    assert indexed() == [True] * 3
    assert vector_index.projects_behind(embedders.get()) == []


def test_a_search_in_the_index_is_planned_for_its_embedder(large, owner):
    """A plan for any embedder cannot use the index, which is that of one."""
    modes = []

    def note_mode(execute, sql, params, many, context):
        if "memory_vector" in sql:
            with connection.connection.cursor() as cursor:
                modes.extend(cursor.execute("SHOW plan_cache_mode").fetchone())
        return execute(sql, params, many, context)

    vector_index.add_waiting(embedders.get())
    with connection.execute_wrapper(note_mode):
        assert recalled_texts(large, owner, QUESTION)
    assert modes == ["force_custom_plan"]


def test_a_small_project_never_is(large, owner):
    small = create_project(owner, name="Small", slug="small")
    talk(small, owner, TEXTS[0])
    vector_index.add_waiting(embedders.get())
    assert not Vector.objects.get(project=small).indexed


def test_a_few_may_wait(large, monkeypatch):
    monkeypatch.setattr(vector_index, "MAX_UNINDEXED_VECTORS", 3)
    vector_index.add_waiting(embedders.get())
    assert indexed() == [False] * 3


def test_it_stops_when_its_time_is_over_and_goes_on_later(large, woken):
    assert vector_index.add_waiting(embedders.get(), seconds=-1) is True
    assert indexed() == [False] * 3
    run_indexing()
    assert indexed() == [True] * 3
    assert woken == []


def test_indexing_comes_back_for_what_it_did_not_manage(large, woken, monkeypatch):
    monkeypatch.setattr("memory.tasks.VECTOR_INDEX_S", -1)
    run_indexing()
    assert len(woken) == 1


def test_all_is_found_wherever_its_vector_is(large, owner):
    everything = recalled_texts(large, owner, QUESTION)
    assert set(everything) == set(TEXTS)
    for vector in Vector.objects.all():
        Vector.objects.filter(pk=vector.pk).update(indexed=True)
        assert recalled_texts(large, owner, QUESTION) == everything


def test_a_turn_that_grows_leaves_the_index_until_it_is_taken_in_again(large, owner):
    vector_index.add_waiting(embedders.get())
    session = Vector.objects.order_by("chunk__source").last().chunk.session
    say(session, owner, "They are red and yellow.")
    assert indexed() == [True, True, False]
    assert "They are red and yellow." in "".join(recalled_texts(large, owner, QUESTION))


def test_one_that_the_index_cannot_hold_is_compared(large, owner, monkeypatch):
    monkeypatch.setattr(vector_index, "MAX_INDEXED_DIMENSIONS", 10)
    indexing.catch_up()
    assert vector_index.add_waiting(embedders.get()) is False
    assert indexed() == [False] * 3
    assert set(recalled_texts(large, owner, QUESTION)) == set(TEXTS)


INDEX = vector_index.BUILT_IN_INDEX


def index_state(name: str = INDEX) -> tuple[int, bool] | None:
    """Which index stands under that name, and whether it is whole."""
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT indexrelid, indisvalid FROM pg_index WHERE indexrelid = to_regclass(%s)", [name]
        )
        return cursor.fetchone()


@pytest.mark.django_db(transaction=True)
def test_the_index_is_rebuilt_if_most_vectors_wait(large, owner):
    before = index_state()
    vector_index.add_all(embedders.get())
    assert indexed() == [True] * 3
    after = index_state()
    assert after[0] != before[0]
    assert after[1]
    assert set(recalled_texts(large, owner, QUESTION)) == set(TEXTS)


def test_when_few_wait_they_are_put_into_the_index_that_is_there(large, owner):
    vector_index.add_waiting(embedders.get())
    before = index_state()
    talk(large, owner, "My sister planted asters, too.")
    vector_index.add_all(embedders.get())
    assert indexed() == [True] * 4
    assert index_state() == before


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize(
    "left",
    [
        f"DROP INDEX {INDEX}",
        f"UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{INDEX}'::regclass",
    ],
)
def test_an_index_that_a_killed_process_left_half_made_is_made(large, left):
    vector_index.add_waiting(embedders.get())
    with connection.cursor() as cursor:
        cursor.execute(left)
    vector_index.add_waiting(embedders.get())
    assert index_state()[1]
