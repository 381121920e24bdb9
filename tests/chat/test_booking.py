"""Every call of a model is booked: by whom, how many tokens, at which price, with which outcome."""

import asyncio
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth import get_user_model
from django.db import OperationalError, connection
from django.test.utils import CaptureQueriesContext

from chat import metrics
from chat.conversations import generation
from chat.conversations.messages import ask
from chat.conversations.titles import write_title
from chat.models import Call, Message, ModelPrice, Session, Status
from chat.providers.booking import Payer
from chat.signals import reply_stored
from chat.streaming import live_replies
from memory.forgetting.service import ForgetScope, forget
from projects.core.database import in_thread
from projects.models import Project, Token
from projects.services import delete_project
from tests.scripted import Answer

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner):
    return Session.objects.create(project=project, creator=owner)


async def _events(reply, payer):
    return [event async for event in generation.stream_reply(reply, payer=payer)]


def say(reply, user) -> list:
    return async_to_sync(_events)(reply, Payer(user.pk))


def test_a_reply_is_booked_with_its_user_tokens_and_cache_hits(session, owner, scripted):
    scripted.queue(Answer("One two three.", cached=2))
    _message, reply = ask(session, "Count, please.", owner)
    say(reply, owner)
    call = Call.objects.get()
    assert (call.kind, call.model, call.outcome) == ("reply", "openai-chat:scripted", "answered")
    assert (call.user, call.message_id, call.session_id) == (owner, reply.pk, session.pk)
    assert (call.input_tokens, call.cached_tokens, call.output_tokens) == scripted.counted
    assert call.cached_tokens == 2 and call.duration_ms is not None


def test_each_request_of_a_reply_with_lookups_is_booked(session, owner, scripted):
    scripted.call(("1", "search_memories", '{"query": "x"}'))
    scripted.say("Nothing.")
    _message, reply = ask(session, "What do you remember?", owner)
    say(reply, owner)
    calls = Call.objects.filter(kind="reply")
    assert calls.count() == 2 == len(scripted.requests)
    assert sum(call.input_tokens for call in calls) == scripted.counted[0]
    reply.refresh_from_db()
    assert reply.input_tokens == scripted.counted[0]


def test_a_price_of_the_administrator_replaces_the_listed_one(session, owner, scripted):
    ModelPrice.objects.create(
        model="openai-chat:scripted", input_price=10, cached_price=1, output_price=100
    )
    scripted.queue(Answer("One two three.", cached=2))
    _message, reply = ask(session, "Count, please.", owner)
    say(reply, owner)
    fresh, cached, written = scripted.counted
    expected = Decimal((fresh - cached) * 10 + cached + written * 100) / 1_000_000
    assert Call.objects.get().cost == expected
    assert Message.objects.get(pk=reply.pk).cost == expected


def test_a_refused_request_costs_nothing_and_shows_the_reason(session, owner, scripted):
    scripted.status(429)
    _message, reply = ask(session, "Count.", owner)
    say(reply, owner)
    call = Call.objects.get()
    assert (call.input_tokens, call.output_tokens, call.cost) == (0, 0, None)
    assert call.outcome not in ("", "answered")


def test_a_stream_that_breaks_is_booked_with_our_own_count(session, owner, scripted):
    scripted.half("One two three four")
    _message, reply = ask(session, "Count.", owner)
    say(reply, owner)
    call = Call.objects.get()
    assert call.input_tokens > 0 and call.output_tokens >= 3
    assert call.outcome not in ("", "answered")


def test_the_metrics_contain_a_stream_that_breaks(session, owner, scripted):
    ModelPrice.objects.create(
        model="openai-chat:scripted", input_price=10, cached_price=1, output_price=100
    )
    tokens, cost = total(metrics.TOKENS), total(metrics.COST)
    scripted.half("One two three four")
    _message, reply = ask(session, "Count.", owner)
    say(reply, owner)
    call = Call.objects.get()
    assert total(metrics.TOKENS) - tokens == call.input_tokens + call.output_tokens
    assert total(metrics.COST) - cost == pytest.approx(float(call.cost))


def total(counter) -> float:
    return sum(sample.value for sample in counter.collect()[0].samples)


def test_an_empty_answer_is_booked_with_its_tokens(session, owner, scripted):
    scripted.nothing()
    _message, reply = ask(session, "Count.", owner)
    say(reply, owner)
    call = Call.objects.get()
    assert (call.input_tokens, call.output_tokens) == (scripted.counted[0], 0)
    assert call.outcome.startswith("The model sent an empty")


def test_an_empty_answer_costs_the_price_of_the_administrator(session, owner, scripted):
    ModelPrice.objects.create(model="openai-chat:scripted", input_price=10, output_price=100)
    scripted.nothing()
    _message, reply = ask(session, "Count.", owner)
    say(reply, owner)
    assert Call.objects.get().cost == Decimal(scripted.counted[0] * 10) / 1_000_000


def test_a_stopped_reply_is_booked(session, owner, scripted):
    permits = scripted.dictate("One two three four five")
    _message, reply = ask(session, "Count.", owner)

    async def stop_after_two_words() -> None:
        live = await live_replies.start(reply, Payer(owner.pk))
        permits.release(2)
        while live.text.count(" ") < 1:
            await live.changed.wait()
        live.stop()
        await live_replies.wait_for_all()

    async_to_sync(stop_after_two_words)()
    call = Call.objects.get()
    assert call.outcome == "cancelled"
    assert call.input_tokens > 0 and call.output_tokens == 2


def test_a_reply_whose_process_died_is_booked_with_its_text_so_far(session, owner, scripted):
    # The process of the sweep has not read the price yet.
    ModelPrice.objects.create(model="openai-chat:scripted", input_price=10, output_price=100)
    _message, reply = ask(session, "Count.", owner)
    old = reply.created_at.replace(year=2020)
    Message.objects.filter(pk=reply.pk).update(
        text="One two three", status=Status.STREAMING, heartbeat_at=old
    )
    assert live_replies.sweep_interrupted() == 1
    call = Call.objects.get()
    assert (call.outcome, call.output_tokens, call.user) == ("interrupted", 3, owner)
    assert call.cost == Decimal(3 * 100) / 1_000_000
    # If the process was only slow, its own figures replace these.
    finished = Call(project_id=session.project_id, kind="reply", model="m", outcome="answered")
    fresh = Message.objects.select_related("session").get(pk=reply.pk)
    generation.finalise(fresh, "One two three", Status.COMPLETE, {}, [finished])
    assert [call.outcome for call in Call.objects.all()] == ["answered"]


def test_a_reply_whose_chat_is_forgotten_is_stopped_and_booked(session, owner, scripted):
    permits = scripted.dictate("One two three four five")
    _message, reply = ask(session, "Count.", owner)

    async def forget_after_two_words() -> None:
        live = await live_replies.start(reply, Payer(owner.pk))
        permits.release(2)
        async with asyncio.timeout(30):
            while live.text.count(" ") < 1:
                await live.changed.wait()
            await in_thread(forget, session.project, ForgetScope(session=session.pk))
            await live_replies.wait_for_all()
        assert live.stopped

    async_to_sync(forget_after_two_words)()
    call = Call.objects.get()
    assert (call.outcome, call.output_tokens, call.user) == ("cancelled", 2, owner)


def test_a_reply_whose_project_is_deleted_ends_without_an_error(session, owner):
    _message, reply = ask(session, "Count.", owner)
    call = Call(project_id=session.project_id, kind="reply", model="m", outcome="answered")
    delete_project(Project.objects.get())
    assert not generation.finalise(reply, "One two", Status.COMPLETE, {}, [call])
    assert not Call.objects.exists()


def test_a_reply_is_booked_once_if_the_database_restarts_while_it_is_stored(
    session, owner, scripted, monkeypatch
):
    attempts = []

    def fail_once(**_) -> None:
        attempts.append(Call.objects.count())
        if len(attempts) == 1:
            raise OperationalError

    monkeypatch.setattr(generation, "FINALISE_RETRIES_S", (0,))
    _message, reply = ask(session, "Count.", owner)
    reply_stored.connect(fail_once)
    try:
        say(reply, owner)
    finally:
        reply_stored.disconnect(fail_once)
    assert attempts == [1, 1]
    assert Call.objects.get().outcome == "answered"


def test_a_reply_whose_commit_was_not_confirmed_is_booked_once(
    session, owner, scripted, monkeypatch
):
    finalise, attempts = generation.finalise, []

    def lose_confirmation(*args) -> bool:
        result = finalise(*args)
        attempts.append(result)
        if len(attempts) == 1:
            raise OperationalError
        return result

    monkeypatch.setattr(generation, "FINALISE_RETRIES_S", (0,))
    monkeypatch.setattr(generation, "finalise", lose_confirmation)
    _message, reply = ask(session, "Count.", owner)
    say(reply, owner)
    assert attempts == [True, False]
    assert Call.objects.get().outcome == "answered"


def test_a_reply_whose_user_is_deleted_is_stored_and_booked_on_nobody(
    session, owner, editor, scripted, monkeypatch
):
    finalise = generation.finalise

    def finalise_without_user(*args) -> bool:
        get_user_model().objects.filter(pk=editor.pk).delete()
        return finalise(*args)

    monkeypatch.setattr(generation, "finalise", finalise_without_user)
    scripted.say("One two.")
    _message, reply = ask(session, "Count.", editor)
    say(reply, editor)
    stored = Message.objects.get(pk=reply.pk)
    assert (stored.status, stored.text) == (Status.COMPLETE, "One two.")
    assert Call.objects.get().user is None


def test_an_answer_that_is_not_stored_is_booked_with_its_token(api, owner, project, scripted):
    client = api(owner)
    body = {"model": project.slug, "messages": [{"role": "user", "content": "Hello"}]}
    payload = client.post("/v1/chat/completions", body, format="json").json()
    call = Call.objects.get()
    assert (call.kind, call.user, call.message_id) == ("reply", owner, None)
    assert call.token_id == Token.objects.get().public_id
    assert call.input_tokens == payload["usage"]["prompt_tokens"] == scripted.counted[0]


def test_a_reply_over_the_api_is_booked_with_its_token(api, owner, session, scripted):
    url = f"/api/v1/sessions/{session.pk}/messages/"
    api(owner).post(url, {"content": "Hello"}, format="json")
    assert Call.objects.get().token_id == Token.objects.get().public_id


def test_a_title_is_booked_on_who_requested_the_first_reply(api, session, owner, scripted):
    url = f"/api/v1/sessions/{session.pk}/messages/"
    api(owner).post(url, {"content": "Count, please."}, format="json")
    scripted.say("Counting")
    assert write_title(session.pk) == "Counting"
    call = Call.objects.get(kind="title")
    assert (call.session_id, call.outcome) == (session.pk, "answered")
    assert (call.user, call.token_id) == (owner, Token.objects.get().public_id)
    assert call.output_tokens == 1
    # Without the call of the reply, such as in an import: on the author of its message.
    Call.objects.all().delete()
    Session.objects.update(title="Count, please.")
    write_title(session.pk)
    call = Call.objects.get(kind="title")
    assert (call.user, call.token_id) == (owner, None)


def test_booking_takes_one_query_of_a_reply(session, owner, scripted):
    _message, reply = ask(session, "Count.", owner)
    call = Call(project_id=session.project_id, kind="reply", model="m", outcome="answered")
    fresh = Message.objects.select_related("session").get(pk=reply.pk)
    with CaptureQueriesContext(connection) as queries:
        generation.finalise(fresh, "One", Status.COMPLETE, {}, [call])
    assert sum("memory_call" in (query["sql"] or "") for query in queries) == 1
