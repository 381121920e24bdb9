"""Recall finds facts by meaning, among those that the viewer may see on a day."""

from dataclasses import asdict, dataclass, replace
from datetime import UTC, date, datetime, time
from pathlib import Path

import pytest
from django.db import connection

from memory import facts
from memory.facts import Statement
from memory.forgetting.service import ForgetScope, forget
from memory.models import Chunk, Entry, Fact, FactSource, SourceType, Vector
from memory.models.cursors import mark_layers_changed
from memory.recall import RecallScope, indexing, recall, reindexing, service
from memory.recall.embedders import EmbedderError
from memory.recall.embedders.minilm import MiniLmEmbedder
from projects.models import Membership

pytestmark = pytest.mark.django_db

QUESTIONS = Path(__file__).parent / "data" / "fact_questions.txt"
# Recall was fitted on the questions of the other areas.
HELD_OUT = ("servers", "people", "design", "security", "home")


@dataclass(frozen=True)
class Question:
    area: str
    subject: str
    predicate: str
    object: str
    since: datetime
    day: datetime
    text: str

    @property
    def topic(self) -> str:
        return f"{self.subject} {self.predicate}"

    @property
    def statement(self) -> Statement:
        return Statement(self.subject, self.predicate, self.object, self.since)


def read_questions() -> list[Question]:
    questions, area = [], ""
    for line in QUESTIONS.read_text().splitlines():
        if line.startswith("["):
            area = line.strip("[]")
        elif line and not line.startswith("#"):
            subject, predicate, object, since, day, text = map(str.strip, line.split("|"))
            moments = (noon(since), noon(day))
            questions.append(Question(area, subject, predicate, object, *moments, text))
    return questions


def noon(day: str) -> datetime:
    return datetime.combine(date.fromisoformat(day), time(12), UTC)


@pytest.fixture
def member(project, owner):
    return Membership.objects.select_related("project", "user").get(project=project, user=owner)


@pytest.fixture
def known(project):
    """All facts of the questions, indexed."""
    questions = read_questions()
    rows = [
        Fact(project=project, **asdict(question.statement), by_hand=True, written_by="olive")
        for question in questions
    ]
    for fact in rows:
        fact.set_keys()
    Fact.objects.bulk_create(rows)
    mark_layers_changed(project.pk)
    indexing.catch_up()
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE memory_fact, memory_chunk, memory_vector")
    return questions


def test_no_question_shares_a_stem_with_its_fact(db):
    stems = "SELECT tsvector_to_array(to_tsvector('english', %s))"
    with connection.cursor() as cursor:
        for question in read_questions():
            cursor.execute(f"{stems} UNION ALL {stems}", [question.text, question.topic])
            (asked,), (stated,) = cursor.fetchall()
            assert not set(asked) & set(stated), question


def test_facts_are_found_by_other_words_on_the_asked_day(project, owner, known):
    assert len(known) == 300
    rows: dict[str, list[bool]] = {}
    for question in known:
        scope = RecallScope(project, owner, source_types=[SourceType.FACT], valid_at=question.day)
        best = recall(scope, question.text, limit=3)
        valid = Fact.objects.filter(project=project).with_validity().valid_at(question.day)
        assert valid.filter(pk__in=[result.source for result in best]).count() == 3
        found = question.statement.text in [result.text for result in best]
        rows.setdefault("held out" if question.area in HELD_OUT else "fitted", []).append(found)
    shares = {name: sum(found) / len(found) for name, found in rows.items()}
    # docs/recall.md has the exact figures, and what was tried.
    assert min(shares.values()) >= 0.72, shares


@pytest.fixture
def give(member):
    def create(object: str, since=noon("2026-03-01"), subject="Billing", **fields) -> Fact:
        statement = Statement(subject, "is owned by", object, since, **fields)
        fact, _is_new = facts.create_fact(member, statement)
        indexing.catch_up()
        return fact

    return create


def found(project, viewer, query="Which group is responsible for invoices?", **fields) -> list[str]:
    """The objects of the facts that `viewer` finds."""
    scope = RecallScope(project, viewer, source_types=[SourceType.FACT], **fields)
    texts = [result.text for result in recall(scope, query)]
    return [text.removeprefix("Billing is owned by ") for text in texts]


def test_a_fact_is_found_as_soon_as_it_is_written(
    member, viewer, django_capture_on_commit_callbacks
):
    with django_capture_on_commit_callbacks(execute=True):
        facts.create_fact(member, Statement("Billing", "is owned by", "Ana", noon("2026-03-01")))
    assert found(member.project, viewer) == ["Ana"]


def test_the_day_decides_which_fact_is_found(project, owner, give):
    give("Ana")
    give("Ben", noon("2026-06-01"))
    assert found(project, owner) == ["Ben"]
    assert found(project, owner, valid_at=noon("2026-05-01")) == ["Ana"]
    assert found(project, owner, valid_at=noon("2026-01-01")) == []
    assert found(project, owner, valid_at=noon("2026-07-01"), until=noon("2026-05-01")) == []


def test_an_edited_fact_is_found_by_its_new_text_alone(project, owner, give):
    fact = give("Ana")
    facts.edit(fact, replace(Statement.of(fact), object="Ben"), owner)
    # The index still holds the previous text.
    assert found(project, owner) == []
    indexing.catch_up()
    assert found(project, owner) == ["Ben"]


def test_a_closed_or_hidden_or_proposed_fact_is_not_found(project, owner, give):
    fact = give("Ana")
    facts.close(fact, noon("2026-04-01"), owner)
    indexing.catch_up()
    assert found(project, owner) == []
    assert found(project, owner, valid_at=noon("2026-03-15")) == ["Ana"]
    facts.hide(fact, owner)
    assert found(project, owner, valid_at=noon("2026-03-15")) == []
    Fact.objects.filter(pk=fact.pk).update(state="proposed")
    assert found(project, owner, valid_at=noon("2026-03-15")) == []


def test_a_fact_is_found_as_long_as_a_visible_summary_supports_it(project, owner, give, entry):
    fact = give("Ana")
    message = entry.session.messages.get(seq=1)
    FactSource.objects.create(
        project=project,
        fact=fact,
        session=entry.session,
        message=message,
        entry=entry,
        valid_from=fact.valid_from,
        confidence=1,
    )
    Fact.objects.filter(pk=fact.pk).update(by_hand=False)
    assert found(project, owner) == ["Ana"]
    Entry.objects.filter(pk=entry.pk).update(withheld=True)
    assert found(project, owner) == []


def test_personal_facts_are_found_by_their_user_alone(project, owner, editor, give):
    give("Ana", user_id=owner.pk)
    assert found(project, owner) == ["Ana"]
    assert found(project, owner, shared_only=True) == []
    assert found(project, editor) == []
    assert found(project, None) == []


def test_forgotten_facts_leave_no_text_behind(project, owner, give):
    fact = give("Ana")
    facts.edit(fact, replace(Statement.of(fact), object="Ben"), owner)
    indexing.catch_up()
    assert Chunk.objects.filter(source_type=SourceType.FACT).count() == 2
    forget(project, ForgetScope(fact=fact.pk), owner)
    assert not Chunk.objects.exists() and not Vector.objects.exists()


def test_the_facts_of_a_deleted_user_leave_no_text_behind(project, editor, give):
    give("Ana", user_id=editor.pk)
    editor.delete()
    assert not Chunk.objects.exists()


def test_facts_belong_to_no_chat_and_have_no_author(project, owner, give, chat):
    give("Ana")
    assert found(project, owner, session=chat.pk) == []
    assert found(project, owner, author=owner) == []


def test_without_vectors_facts_are_found_by_words(project, owner, give, monkeypatch):
    give("Ana")

    def fail(self, text):
        raise EmbedderError("It is away.")

    monkeypatch.setattr(MiniLmEmbedder, "embed_query", fail)
    assert found(project, owner, "Who has billing?") == ["Ana"]
    assert found(project, owner) == []


def test_without_a_query_the_facts_that_began_last_come_first(project, owner, give):
    give("Ana", subject="The door")
    give("Ben", noon("2026-06-01"))
    assert found(project, owner, "") == ["Ben", "The door is owned by Ana"]


def test_the_api_finds_facts(project, owner, viewer, stranger, give, api):
    fact = give("Ana")
    give("Ben", noon("2026-06-01"))
    url, query = "/api/v1/projects/billing/recall/", "Which group is responsible for invoices?"
    body = {"q": query, "source": "fact", "valid_at": "2026-04-01T00:00:00Z"}
    [result] = api(viewer).get(url, body).json()["results"]
    assert result["text"] == "Billing is owned by Ana"
    assert result["source_id"] == f"{fact.pk}:1-1"
    assert result["occurred_at"] == "2026-03-01T12:00:00Z"
    assert api(stranger).get(url, body).status_code == 404
    # Not among messages.
    assert api(viewer).get(url, {"q": query}).json()["results"] == []


def test_the_list_of_facts_is_searched_within_its_filters(project, owner, viewer, give, api):
    give("Ana")
    give("Ben", noon("2026-06-01"))
    give("Cleo", subject="The garden")
    give("olive alone", noon("2026-06-01"), user_id=owner.pk)
    url = "/api/v1/projects/billing/facts/"

    def objects(**filters) -> list[str]:
        body = {"q": "Which group is responsible for invoices?", **filters}
        answer = api(viewer).get(url, body).json()
        assert answer["next"] is None
        return sorted(fact["object"] for fact in answer["results"])

    assert objects() == ["Ana", "Ben"]
    assert objects(valid_at="2026-04-01") == ["Ana"]
    assert objects(subject="The garden") == []
    assert len(objects(page_size=1)) == 1
    assert objects(q="Cleo") == ["Cleo"]


def test_a_search_takes_as_many_queries_for_many_facts(
    project, owner, give, django_assert_num_queries
):
    give("Ana")
    for number in range(20):
        give("Ben", subject=f"Service {number}")
    with django_assert_num_queries(2):
        assert len(found(project, owner)) == 21


def test_a_search_with_facts_is_measured_once_and_resolves_a_name_once(
    project, owner, give, monkeypatch
):
    give("Ana")
    names: list[str] = []

    def resolve(scope: RecallScope) -> RecallScope:
        names.append(scope.speaker)
        return scope

    monkeypatch.setattr(service, "resolve_alias", resolve)
    before = searches_measured()
    scope = RecallScope(
        project, owner, source_types=[SourceType.TURN, SourceType.FACT], speaker="Kate"
    )
    recall(scope, "invoices")
    assert searches_measured() == before + 1
    assert names == ["Kate"]


def searches_measured() -> float:
    [metric] = service.RECALL_SECONDS.collect()
    return next(sample.value for sample in metric.samples if sample.name.endswith("_count"))


def test_a_new_embedder_indexes_facts_again(project, owner, give, settings):
    give("Ana")
    Vector.objects.update(embedder="other")
    reindexing.replace_vectors(project, None, lambda progress: None)
    assert [vector.embedder for vector in Vector.objects.all()] == ["minilm-l6-384"]
    assert found(project, owner) == ["Ana"]
