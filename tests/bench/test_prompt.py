"""Measure the time between a message and its model request: prompt and search."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection

from chat.conversations.messages import draft, post_message, post_messages
from chat.models import Role, Session
from chat.prompt.builder import Turn, build
from chat.prompt.types import MESSAGE_OVERHEAD_TOKENS
from memory.layers import cycle
from memory.prompt.sections import DETAIL_TOKENS, GIST_TOKENS
from memory.recall import RecallScope, indexing, recall
from projects.models import Project
from projects.services import create_project
from tests.bench import generated_text

pytestmark = [pytest.mark.timeout(1_800), pytest.mark.django_db(transaction=True)]

AT = datetime(2026, 3, 2, 9, tzinfo=UTC)
LATER = AT + timedelta(days=90)
SESSIONS, EACH = 60, 20
ROUNDS, BLOCK = 400, 40
CHATS_OWN = ("persona", "history", "message")
SEARCH = (
    "memory.prompt.facts.matching_facts",
    "memory.prompt.sections.gists",
    "memory.prompt.sections.details",
)


@pytest.fixture
def project(owner, settings):
    """A project with a memory and conversations, all indexed, and a model with room for both."""
    settings.CHAT_MODEL = "openai-chat:scripted"
    project = create_project(owner, name="Billing", system_model="extractive")
    for number, talk in enumerate(generated_text.talks(1, SESSIONS * EACH, EACH)):
        create_chat(project, owner, talk, AT + timedelta(days=number))
    indexing.catch_up()
    cycle.run(LATER, project)
    return project


def create_chat(project: Project, owner, talk: list[str], at: datetime) -> Session:
    session = Session.objects.create(project=project, creator=owner, title="A chat", created_at=at)
    roles = (Role.USER, Role.ASSISTANT)
    drafts = [
        draft(text, author=owner, role=roles[place % 2], created_at=at + timedelta(minutes=place))
        for place, text in enumerate(talk)
    ]
    post_messages(session, drafts)
    return session


@pytest.fixture
def question_message(project, owner):
    """A question at the end of a chat that fills the window."""
    [talk] = generated_text.talks(2, 200, 200)
    session = create_chat(project, owner, talk, AT + timedelta(days=SESSIONS))
    question = post_message(session, generated_text.question(talk[3]), author=owner)
    # As PostgreSQL does by itself within a minute.
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return question


def assembled(request) -> None:
    build(Turn(request.session, request))


def eight_queries(project: Project) -> None:
    for _ in range(8):
        Project.objects.get(pk=project.pk)


def test_a_prompt_without_search_costs_little_more_than_eight_queries(
    project, question_message, settings, timed, compare, p95s
):
    settings.CHAT_PROMPT_SECTIONS = [
        path for path in settings.CHAT_PROMPT_SECTIONS if path not in SEARCH
    ]
    assembled(question_message)
    base, against = [], []
    for _ in range(ROUNDS):
        base.append(timed(lambda: eight_queries(project)))
        against.append(timed(lambda: assembled(question_message)))
    label = "p95: eight trivial queries, a prompt without search"
    assert compare(label, p95s(base, BLOCK), p95s(against, BLOCK), 1.5) <= 1.5


def test_search_is_reported_separately(project, question_message, owner, timed, compare, p95s):
    questions = [
        generated_text.question(text)
        for talk in generated_text.talks(1, SESSIONS * EACH, EACH)
        for text in talk
    ]
    base, against = [], []
    for question in questions[:ROUNDS]:
        base.append(timed(lambda: eight_queries(project)))
        against.append(
            timed(lambda question=question: recall(RecallScope(project, owner), question, limit=10))
        )
    compare("p95: eight trivial queries, a search", p95s(base, BLOCK), p95s(against, BLOCK))


def test_a_prompt_takes_at_most_eight_queries(question_message, django_assert_max_num_queries):
    assembled(question_message)
    with django_assert_max_num_queries(8):
        assembled(question_message)


def memory_tokens(request) -> dict[str, int]:
    """The tokens of each section that memory adds."""
    sections = build(Turn(request.session, request)).sections
    return {section.name: section.tokens for section in sections if section.name not in CHATS_OWN}


def test_memory_takes_no_more_of_a_prompt_however_long_the_history(
    owner, project, question_message, report_figures
):
    few = memory_tokens(question_message)
    for number, talk in enumerate(generated_text.talks(3, 9 * SESSIONS * EACH, EACH)):
        create_chat(project, owner, talk, AT - timedelta(days=number + 1))
    indexing.catch_up()
    cycle.run(LATER, project)
    many = memory_tokens(question_message)
    report_figures(
        "memory's tokens in a prompt: after 60 talks, 600", sum(few.values()), sum(many.values())
    )
    assert many["bank"] <= project.bank_max_tokens + MESSAGE_OVERHEAD_TOKENS
    assert sum(many.values()) <= project.bank_max_tokens + GIST_TOKENS + DETAIL_TOKENS + 600
