"""Embeddings of a remote model are booked on the person whose text or question caused them."""

from decimal import Decimal
from types import SimpleNamespace

import numpy as np
import pytest
from asgiref.sync import async_to_sync

from chat.conversations import generation
from chat.conversations.messages import ask, draft, post_messages
from chat.models import Call, CallKind, ModelPrice, Session, Visibility
from chat.providers import prices
from chat.providers.base import MAX_CALL_TOKENS
from chat.providers.booking import Payer, embeddings_of
from memory.api.mcp.tools import Caller, get_context
from memory.recall import indexing
from memory.recall.embedders.base import EmbedderError
from memory.recall.embedders.remote import RemoteEmbedder
from memory.recall.reindexing import replace_vectors
from projects.models import Membership, Project, Token

pytestmark = pytest.mark.django_db(transaction=True)
DIMENSIONS = 64


@pytest.fixture
def embedded(settings, monkeypatch) -> list[list[str]]:
    """The texts of each request to the remote model, which counts one token for each word."""
    settings.EMBEDDER = "openai:text-embedding-3-small"
    settings.EMBEDDING_DIMENSIONS = DIMENSIONS
    requests: list[list[str]] = []

    def request(self, texts, input_type):
        requests.append(list(texts))
        vectors = np.random.default_rng(1).normal(size=(len(texts), DIMENSIONS))
        tokens = sum(len(text.split()) for text in texts)
        return SimpleNamespace(usage=SimpleNamespace(input_tokens=tokens), embeddings=vectors)

    monkeypatch.setattr(RemoteEmbedder, "_request", request)
    return requests


def booked() -> dict:
    """The tokens of embeddings by user."""
    sums: dict = {}
    for call in Call.objects.filter(kind=CallKind.EMBEDDING):
        name = call.user.username if call.user else None
        sums[name] = sums.get(name, 0) + call.input_tokens
    return sums


def test_messages_are_booked_on_their_author_and_their_project(
    project, owner, editor, embedded, scripted
):
    other = Project.objects.create(name="Other", slug="other")
    for place, author, text in (
        (project, owner, "The cutover is on Monday."),
        (project, editor, "The invoice arrives in two days from now."),
        (other, owner, "The otter pond freezes."),
    ):
        session = Session.objects.create(project=place, creator=author)
        reply = draft("Noted, I will remember that.", role="assistant")
        post_messages(session, [draft(text, author=author), reply])
    imported = Session.objects.create(project=project, creator=owner)
    post_messages(imported, [draft("Somebody else said this.", author_name="Zoe")])
    indexing.catch_up()
    assert booked() == {"olive": 5 + 5 + 4 + 5, "edgar": 8 + 5, None: 4}
    assert sum(Call.objects.filter(project=other).values_list("input_tokens", flat=True)) == 9
    assert sum(booked().values()) == sum(len(t.split()) for request in embedded for t in request)


def test_a_new_index_is_booked_on_each_project(project, owner, embedded, settings):
    other = Project.objects.create(name="Other", slug="other")
    for place in (project, other):
        session = Session.objects.create(project=place, creator=owner)
        post_messages(session, [draft("The cutover is on Monday.", author=owner)])
    indexing.catch_up()
    Call.objects.all().delete()
    settings.EMBEDDER = "openai:text-embedding-3-large"
    replace_vectors(None, None, lambda progress: None)
    assert {call.project_id: (call.user, call.input_tokens) for call in Call.objects.all()} == {
        project.pk: (None, 5),
        other.pk: (None, 5),
    }


def test_the_search_for_a_reply_is_booked_with_the_reply(project, owner, embedded, scripted):
    session = Session.objects.create(project=project, creator=owner)
    _message, reply = ask(session, "When is the cutover of the billing system?", owner)
    token = Token.objects.create(user=owner, name="laptop")[0].public_id

    async def say() -> None:
        async for _event in generation.stream_reply(reply, payer=Payer(owner.pk, token)):
            pass

    async_to_sync(say)()
    assert embedded
    calls = Call.objects.all()
    assert {call.kind for call in calls} == {"reply", "embedding"}
    assert {(call.user, call.token_id) for call in calls} == {(owner, token)}


def test_previews_of_prompts_are_booked_on_their_user_and_token(
    client, api, owner, editor, project, embedded, scripted
):
    session = Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)
    content = {"content": "When is the cutover of the billing system?"}
    api(owner).get(f"/api/v1/sessions/{session.pk}/prompt/", content)
    call = Call.objects.get()
    assert (call.user, call.token_id) == (owner, Token.objects.get().public_id)
    post_messages(session, [draft(content["content"], author=owner)])
    call.delete()
    client.force_login(editor)
    client.get(f"/projects/billing/chats/{session.pk}/prompt/")
    assert {call.user for call in Call.objects.all()} == {editor}


def test_searches_are_booked_on_their_user_and_token(client, api, owner, project, embedded):
    api(owner).get("/api/v1/projects/billing/recall/", {"q": "When is the cutover?"})
    call = Call.objects.get()
    assert (call.user, call.token_id) == (owner, Token.objects.get().public_id)
    client.force_login(owner)
    client.get("/projects/billing/search/", {"q": "When is the cutover?"})
    assert Call.objects.count() > 1
    assert {call.user for call in Call.objects.all()} == {owner}


def test_the_context_for_another_program_is_booked_on_its_token(owner, project, embedded):
    token = Token.objects.create(user=owner, project=project)[0]
    member = Membership.objects.select_related("project", "user").get(user=owner)
    session = Session.objects.create(project=project, creator=owner)
    post_messages(session, [draft("The cutover is on Monday.", author=owner)])
    indexing.catch_up()
    Call.objects.all().delete()
    get_context(Caller(member, token, str), "When is the cutover of the billing system?")
    assert {(call.user, call.token_id) for call in Call.objects.all()} == {(owner, token.public_id)}


def test_a_price_set_by_an_administrator_counts_before_the_first_chat_call(
    api, owner, project, embedded, monkeypatch
):
    ModelPrice.objects.create(
        model="openai:text-embedding-3-small", input_price=Decimal(500_000), output_price=Decimal(0)
    )
    monkeypatch.setattr(prices, "_set_prices", (0.0, {}))
    api(owner).get("/api/v1/projects/billing/recall/", {"q": "When is the cutover?"})
    assert Call.objects.get().cost == 2


def test_an_absurd_number_of_tokens_does_not_stop_a_search(
    api, owner, project, monkeypatch, settings
):
    settings.EMBEDDER = "openai:text-embedding-3-small"
    settings.EMBEDDING_DIMENSIONS = DIMENSIONS
    usage = SimpleNamespace(input_tokens=10**30)
    result = SimpleNamespace(usage=usage, embeddings=np.ones((1, DIMENSIONS)))
    monkeypatch.setattr(RemoteEmbedder, "_request", lambda *request: result)
    api(owner).get("/api/v1/projects/billing/recall/", {"q": "When is the cutover?"})
    assert Call.objects.get().input_tokens == MAX_CALL_TOKENS


def test_a_model_without_a_provider_does_not_look_like_a_killed_process(project, owner):
    with pytest.raises(EmbedderError, match="cannot be used"), embeddings_of(project.pk):
        RemoteEmbedder("nobody:model", DIMENSIONS).embed_query("When?")
    assert Call.objects.get().outcome == "The embedder “nobody:model” cannot be used."
