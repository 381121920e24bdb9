"""Recall: what is found, for whom, and what each filter leaves."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest
from django.contrib.auth.models import AnonymousUser
from django.db import connection

from chat.models import Visibility
from memory.models import SourceType
from memory.recall import RecallScope, embedders, fulltext, recall, search, vector_index
from projects.services import create_project
from tests.memory.recall_helpers import AT, recalled_texts, say, talk

pytestmark = pytest.mark.django_db

CUTOVER = "The cutover to the new database is on the third of March."
BILLING = "The platform team owns billing from now on."
GARDEN = "My sister planted tulips in her garden last weekend."


@pytest.fixture
def conversations(project, owner):
    """Three conversations of the owner, a day apart."""
    return [
        talk(project, owner, text, at=AT + timedelta(days=number))
        for number, text in enumerate((CUTOVER, BILLING, GARDEN))
    ]


@pytest.mark.parametrize(
    ("question", "answer"),
    [
        ("When is the cutover?", CUTOVER),
        ("Who is responsible for billing?", BILLING),
        ("Which flowers did her sibling grow?", GARDEN),
    ],
)
def test_a_message_is_found_by_word_and_by_meaning(project, owner, conversations, question, answer):
    assert recalled_texts(project, owner, question)[0] == answer


def test_a_result_has_its_place_and_the_score_of_each_signal(project, owner, conversations):
    best = recall(RecallScope(project, owner), "When is the cutover?", limit=1)[0]
    assert (best.session, best.first_seq, best.last_seq) == (conversations[0].pk, 1, 1)
    assert (best.speaker, best.occurred_at) == ("olive", AT)
    assert best.signals["meaning"] > 0
    assert sum(best.signals.values()) == pytest.approx(best.score, abs=0.01)


def test_without_a_question_the_latest_come_first(project, owner, conversations):
    assert recalled_texts(project, owner, "  ") == [GARDEN, BILLING, CUTOVER]


def test_excerpts_are_packed_into_a_budget_in_time_order(project, owner, conversations):
    results = recall(
        RecallScope(project, owner), "Who owns billing since the cutover?", token_budget=50
    )
    assert 1 < len(results) < 3
    assert sum(result.tokens for result in results) <= 50
    times = [result.occurred_at for result in results]
    assert times == sorted(times)


def test_each_filter_is_kept(project, owner, editor, conversations):
    question = "cutover billing garden"
    say(conversations[1], editor, "Billing is a garden of its own, said the editor.", at=AT)
    cases = [
        ({"since": AT + timedelta(days=2)}, {GARDEN}),
        ({"until": AT + timedelta(minutes=1), "author": owner}, {CUTOVER}),
        ({"session": conversations[0].pk}, {CUTOVER}),
        ({"exclude_session": conversations[1].pk}, {CUTOVER, GARDEN}),
        ({"author": editor}, {"Billing is a garden of its own, said the editor."}),
        ({"source_types": [SourceType.NOTE]}, set()),
    ]
    for scope, expected in cases:
        assert set(recalled_texts(project, owner, question, **scope)) == expected
        assert set(recalled_texts(project, owner, "", **scope)) == expected


def test_a_filter_leaves_as_many_results_as_there_are(project, owner, monkeypatch):
    monkeypatch.setattr(search, "MAX_CANDIDATES", 3)
    talk(project, owner, *[f"{CUTOVER} {number}" for number in range(1)])
    for number in range(20):
        talk(project, owner, f"{CUTOVER} Really, number {number}.", at=AT + timedelta(days=30))
    until = AT + timedelta(days=1)
    assert recalled_texts(project, owner, "When is the cutover?", until=until) == [f"{CUTOVER} 0"]


def test_a_private_session_is_its_creators_alone(project, owner, editor):
    talk(project, editor, CUTOVER, visibility=Visibility.PRIVATE)
    project.share_raw_turns = True
    assert (
        recalled_texts(project, owner, "When is the cutover?")
        == recalled_texts(project, owner, "")
        == []
    )
    assert recalled_texts(project, editor, "When is the cutover?") == [CUTOVER]


def test_others_words_are_quoted_only_where_the_project_shares_them(project, owner, editor):
    session = talk(project, editor, CUTOVER)
    assert recalled_texts(project, owner, "When is the cutover?") == []
    project.share_raw_turns = True
    assert recalled_texts(project, owner, "When is the cutover?") == [CUTOVER]
    session.visibility = Visibility.PRIVATE
    session.save()
    assert recalled_texts(project, owner, "When is the cutover?") == []


def test_ones_own_words_in_anothers_session_are_found(project, owner, editor):
    session = talk(project, editor, CUTOVER)
    say(session, owner, BILLING)
    assert recalled_texts(project, owner, "When is the cutover, and who owns billing?") == [BILLING]


def test_for_all_readers_only_what_all_may_see_is_found(project, owner):
    talk(project, owner, CUTOVER, visibility=Visibility.PRIVATE)
    talk(project, owner, BILLING)
    assert recalled_texts(project, owner, "cutover and billing", shared_only=True) == [BILLING]
    assert recalled_texts(project, None, "cutover and billing", shared_only=True) == []


def test_another_project_is_never_searched(project, owner, stranger):
    other = create_project(stranger, name="Billing", share_raw_turns=True)
    talk(other, stranger, CUTOVER)
    assert recalled_texts(project, owner, "When is the cutover?") == []
    assert recalled_texts(project, stranger, "When is the cutover?") == []


def test_nobody_finds_nothing(project, owner, conversations):
    assert recalled_texts(project, AnonymousUser(), "When is the cutover?") == []


def test_words_alone_find_while_the_embedder_is_away(
    project, owner, conversations, monkeypatch, caplog
):
    def away(self, text):
        raise embedders.EmbedderError("It is away.")

    monkeypatch.setattr("memory.recall.embedders.static.StaticEmbedder.embed_query", away)
    assert CUTOVER in recalled_texts(project, owner, "When is the cutover?")
    assert "recall_without_vectors" in caplog.text


@pytest.mark.parametrize("question", ["?", "the of and", "'); --", "a\x00b", "😀", "%s %(x)s {0}"])
def test_any_question_can_be_asked(project, owner, conversations, question):
    recall(RecallScope(project, owner), question, token_budget=500)


def test_large_projects_are_searched_by_the_index_and_find_the_same(
    project, owner, conversations, monkeypatch
):
    question = "Which flowers did her sibling grow?"
    exact = recalled_texts(project, owner, question)
    monkeypatch.setattr(vector_index, "MAX_EXACT_CHUNKS", 0)
    assert recalled_texts(project, owner, question) == exact


def test_it_takes_two_queries(project, owner, conversations, django_assert_num_queries):
    with django_assert_num_queries(2):
        recall(RecallScope(project, owner), "When is the cutover?", token_budget=500)


def plan_nodes(plan: dict) -> Iterator[dict]:
    yield plan
    for child in plan.get("Plans", ()):
        yield from plan_nodes(child)


def remove_statistics(*tables: str) -> None:
    """Remove what an earlier ANALYZE wrote, which describes tables that were still empty."""
    relations = "(SELECT oid FROM pg_class WHERE relname = ANY(%(tables)s))"
    with connection.cursor() as cursor:
        cursor.execute(
            "UPDATE pg_class SET relpages = 0, reltuples = -1 WHERE oid IN ("
            f"SELECT indexrelid FROM pg_index WHERE indrelid IN {relations}"
            f") OR oid IN {relations}",
            {"tables": list(tables)},
        )
        cursor.execute(
            f"DELETE FROM pg_statistic WHERE starelid IN {relations}", {"tables": list(tables)}
        )


def test_a_search_reads_no_vector_or_session_for_each_row_that_it_drops(project, owner):
    """Without statistics too, as after an import."""
    for number in range(4):
        texts = [f"{CUTOVER} Step {number}, part {part}." for part in range(12)]
        talk(project, owner, *texts, at=AT + timedelta(days=number))
    remove_statistics("memory_chunk", "memory_vector", "chat_session")
    plans = []

    def explain(execute, sql, params, many, context):
        if "memory_vector" in sql:
            execute(f"EXPLAIN (ANALYZE, FORMAT JSON) {sql}", params, many, context)
            plans.extend(context["cursor"].fetchone()[0])
        return execute(sql, params, many, context)

    with connection.execute_wrapper(explain):
        assert recalled_texts(project, owner, "When is the cutover?")
    [plan] = plans
    dropped = [node.get("Rows Removed by Join Filter", 0) for node in plan_nodes(plan["Plan"])]
    assert sum(dropped) == 0


def test_questions_with_other_words_and_numbers_of_words_are_one_statement(
    project, owner, conversations
):
    for question in ("When is the cutover?", "Who owns billing, the platform or the garden team?"):
        assert recalled_texts(project, owner, question)
    with connection.cursor() as cursor:
        cursor.execute(
            "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%chunk_terms%'"
        )
        assert cursor.fetchone() == (1,)


def test_the_words_of_a_long_question_are_all_matched(project, owner, conversations):
    """More words than a prepared statement has places for, and the last one in place 20."""
    words = " ".join(f"word{number}" for number in range(fulltext.MAX_PREPARED_TERMS + 4))
    assert recalled_texts(project, owner, f"{words} tulips")[0] == GARDEN


def test_the_day_of_a_question_is_one_in_the_zone_of_the_project(project, owner):
    project.timezone = "Pacific/Auckland"
    project.save()
    late = datetime(2026, 3, 2, 12, tzinfo=UTC)
    talk(project, owner, "We fixed the pump.", at=late)
    talk(project, owner, "We checked the pump.", at=late - timedelta(hours=2))
    found = recall(RecallScope(project, owner), "What about the pump on 3 March 2026?")
    assert [result.text for result in found if "day" in result.signals] == ["We fixed the pump."]
