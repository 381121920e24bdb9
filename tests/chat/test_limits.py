"""Limits of tokens and money hold for any number of replies at once, and open again."""

import asyncio
from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from asgiref.sync import async_to_sync
from django.contrib.auth.models import Group
from django.core.exceptions import ValidationError
from django.db import connection
from django.db.models.functions import Now
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.conversations import generation
from chat.conversations.messages import ask
from chat.models import Call, Message, ModelPrice, Session, Status
from chat.prompt.types import PromptMessage
from chat.providers import Failed, ReplyOptions, limits
from chat.providers.booking import CallAccount, Payer
from chat.providers.limits import SpendingLimitError
from chat.streaming import live_replies
from projects.models import SpendingLimit, Token

pytestmark = pytest.mark.django_db(transaction=True)

OPTIONS = ReplyOptions(settings={"max_tokens": 300})


@pytest.fixture
def session(project, owner):
    return Session.objects.create(project=project, creator=owner)


async def _events(reply, payer, options=OPTIONS):
    return [event async for event in generation.stream_reply(reply, options=options, payer=payer)]


def say(reply, payer, options=OPTIONS) -> list:
    return async_to_sync(_events)(reply, payer, options)


def used(project, tokens: int = 0, **fields) -> Call:
    usual = {"kind": "reply", "model": "m", "outcome": "answered", "input_tokens": tokens}
    return Call.objects.create(project=project, **usual | fields)


def test_concurrent_replies_never_exceed_the_limit(project, owner, scripted):
    """Twelve replies at once against a limit that allows three."""
    payer = Payer(owner.pk)
    limit = SpendingLimit.objects.create(project=project, tokens_per_day=10**9)
    sessions = [Session.objects.create(project=project, creator=owner) for _ in range(13)]
    replies = [ask(session, "Count, please.", owner)[1] for session in sessions]
    say(replies[0], payer)
    first = Call.objects.get()
    limit.tokens_per_day = first.input_tokens + first.output_tokens + 3 * first.reserved_tokens
    limit.save()
    permits = [scripted.dictate("One two three") for _ in range(12)]

    async def all_at_once() -> list:
        tasks = [asyncio.create_task(_events(reply, payer)) for reply in replies[1:]]
        async with asyncio.timeout(120):
            while sum(task.done() for task in tasks) < 9:
                await asyncio.sleep(0.02)
        for permit in permits:
            permit.release(3)
        return await asyncio.gather(*tasks)

    ends = [events[-1] for events in async_to_sync(all_at_once)()]
    refused = [end for end in ends if isinstance(end, Failed)]
    assert (len(scripted.requests), len(refused)) == (4, 9)
    assert all(isinstance(end.error, SpendingLimitError) for end in refused)
    assert not Call.objects.filter(outcome="").exists()
    [budget] = limits.all_budgets(project.pk, payer)
    assert budget.reserved == 0
    assert budget.used == sum(scripted.counted) - scripted.counted[1]
    # What the calls did not need of their reservations is free again.
    scripted.say("Four")
    _message, reply = ask(sessions[0], "Go on.", owner)
    assert not isinstance(say(reply, payer)[-1], Failed)


def test_the_model_may_write_no_more_than_is_left(session, owner, scripted):
    used(session.project, 700, user=owner)
    SpendingLimit.objects.create(user=owner, tokens_per_month=2_000)
    _message, reply = ask(session, "Count.", owner)
    say(reply, Payer(owner.pk))
    call = Call.objects.exclude(reserved_tokens=None).get()
    assert 700 + call.reserved_tokens <= 2_000
    [request] = scripted.requests
    most = request.get("max_tokens") or request["max_completion_tokens"]
    assert most == 300 == call.reserved_tokens - limits_input(call)


def limits_input(call: Call) -> int:
    return call.reserved_tokens - 300


def test_a_dead_process_leaves_no_reservation(session, owner, scripted):
    SpendingLimit.objects.create(project=session.project, tokens_per_day=10_000)
    _message, reply = ask(session, "Count.", owner)
    payer = Payer(owner.pk)
    call = Call(project=session.project, kind="reply", model="m", message_id=reply.pk, user=owner)
    limits.reserve(call, limits.limits_for(session.project_id, payer), payer, 100, 5_000)
    [budget] = limits.all_budgets(session.project_id, payer)
    assert (budget.used, budget.reserved) == (0, 5_100)
    Message.objects.filter(pk=reply.pk).update(
        text="One two", status=Status.STREAMING, heartbeat_at=Now() - timedelta(minutes=1)
    )
    live_replies.sweep_interrupted()
    [budget] = limits.all_budgets(session.project_id, payer)
    assert (budget.used, budget.reserved) == (102, 0)
    assert Call.objects.get().outcome == "interrupted"


def test_a_reservation_ends_with_its_lease(session, owner):
    SpendingLimit.objects.create(project=session.project, tokens_per_day=10_000)
    payer = Payer(owner.pk)
    call = Call(project=session.project, kind="title", model="m")
    limits.reserve(call, limits.limits_for(session.project_id, payer), payer, 100, 5_000)
    Call.objects.update(reserved_until=Now() - timedelta(seconds=1))
    [budget] = limits.all_budgets(session.project_id, payer)
    assert (budget.used, budget.reserved) == (100, 0)
    assert limits.end_expired() == 1
    assert Call.objects.get().outcome == "interrupted"


def test_a_stopped_reply_frees_its_reservation(session, owner, scripted):
    SpendingLimit.objects.create(project=session.project, tokens_per_day=100_000)
    permits = scripted.dictate("One two three four five")
    _message, reply = ask(session, "Count.", owner)

    async def stop() -> None:
        live = await live_replies.start(reply, Payer(owner.pk))
        permits.release(2)
        async with asyncio.timeout(120):
            while not live.text:
                await live.changed.wait()
        live.stop()
        await live_replies.wait_for_all()

    async_to_sync(stop)()
    [budget] = limits.all_budgets(session.project_id, Payer(owner.pk))
    assert budget.reserved == 0 < budget.used


def test_a_limit_in_money_counts_prices(session, owner, scripted):
    ModelPrice.objects.create(model="openai-chat:scripted", input_price=1, output_price=1_000)
    SpendingLimit.objects.create(project=session.project, dollars_per_day=Decimal("0.5"))
    payer = Payer(owner.pk)
    _message, reply = ask(session, "Count.", owner)
    say(reply, payer)
    call = Call.objects.get()
    assert Decimal("0.3") <= call.reserved_cost <= Decimal("0.31")
    assert 0 < call.cost < call.reserved_cost
    used(session.project, cost=Decimal("0.5"))
    _message, reply = ask(session, "Count.", owner)
    assert isinstance(say(reply, payer)[-1].error, SpendingLimitError)
    assert len(scripted.requests) == 1


def test_every_request_of_a_reply_is_reserved(session, owner, scripted):
    scripted.call(("1", "search_memories", '{"query": "x"}'))
    scripted.say("Nothing.")
    SpendingLimit.objects.create(project=session.project, tokens_per_day=100_000)
    _message, reply = ask(session, "What do you remember?", owner)
    say(reply, Payer(owner.pk))
    calls = Call.objects.filter(outcome="answered")
    assert calls.exclude(reserved_tokens=None).count() == 2 == len(scripted.requests)


@pytest.fixture
def used_up(project, owner) -> SpendingLimit:
    used(project, 500, user=owner)
    return SpendingLimit.objects.create(project=project, tokens_per_day=500)


def test_the_api_answers_429_with_the_time_when_it_opens(api, owner, session, used_up):
    url = f"/api/v1/sessions/{session.pk}/messages/"
    response = api(owner).post(url, {"content": "Hello"}, format="json")
    assert response.status_code == 429
    assert response.json()["detail"].startswith(
        "The limit of this project is used up: 500 tokens a day. It resets on "
    )
    assert 0 < int(response.headers["Retry-After"]) <= 86_400
    assert not Message.objects.exists()
    # A message without a reply costs nothing.
    body = {"content": "Hello", "reply": False}
    assert api(owner).post(url, body, format="json").status_code == 201


def test_a_request_that_does_not_fit_gets_its_own_reason(session, owner, scripted):
    SpendingLimit.objects.create(project=session.project, tokens_per_day=500)
    used(session.project, 400)
    _message, reply = ask(session, "Count.", owner)
    error = say(reply, Payer(owner.pk))[-1].error
    assert "(500 tokens a day) is not enough for this request" in str(error)


@pytest.mark.parametrize("unit", ["tokens", "dollars"])
@pytest.mark.parametrize(
    ("already_used", "reason"),
    [(900, "is not enough for this request"), (0, "Replies in progress have reserved the rest")],
)
def test_only_a_reply_that_would_fit_later_is_told_to_wait(
    session, owner, scripted, unit, already_used, reason
):
    price = {"input_price": 500_000, "output_price": 500_000}
    ModelPrice.objects.create(model="openai-chat:scripted", **price)
    SpendingLimit.objects.create(project=session.project, **{f"{unit}_per_day": 1_000})
    used(session.project, already_used, cost=already_used)
    soon = timezone.now() + timedelta(minutes=1)
    reserved = {"outcome": "", "reserved_until": soon, "reserved_tokens": 950}
    used(session.project, reserved_cost=950, **reserved)
    _message, reply = ask(session, "Count.", owner)
    assert reason in str(say(reply, Payer(owner.pk))[-1].error)


def test_the_openai_endpoint_answers_429(api, owner, project, used_up, scripted):
    body = {"model": project.slug, "messages": [{"role": "user", "content": "Hello"}]}
    response = api(owner).post("/v1/chat/completions", body, format="json")
    assert response.status_code == 429 and "Retry-After" in response.headers
    error = response.json()["error"]
    assert (error["type"], error["code"]) == ("rate_limit_error", "spending_limit")
    assert scripted.requests == []


def test_the_page_shows_the_reason_and_keeps_the_chat(client, owner, session, used_up):
    client.force_login(owner)
    url = f"/projects/billing/chats/{session.pk}/messages/"
    accepts = {"headers": {"accept": "text/event-stream"}}
    response = client.post(url, {"content": "Hello"}, **accepts)
    assert response.status_code == 429
    assert "used up: 500 tokens a day" in response.json()["detail"]
    page = client.post(url, {"content": "Hello"}, headers={"accept": "text/html"})
    assert page.status_code == 429 and "500 tokens a day" in page.content.decode()
    assert not Message.objects.exists()


def test_a_limit_of_a_token_concerns_only_its_requests(api, owner, session, scripted):
    url = f"/api/v1/sessions/{session.pk}/messages/"
    limited, free = api(owner, name="limited"), api(owner, name="free")
    token = Token.objects.get(name="limited")
    SpendingLimit.objects.create(token=token, tokens_per_month=500)
    used(session.project, 500, user=owner, token_id=token.public_id)
    assert limited.post(url, {"content": "Hello"}, format="json").status_code == 429
    assert free.post(url, {"content": "Hello"}, format="json").status_code == 201


def test_a_users_own_limit_precedes_that_of_a_group(project, owner):
    group = Group.objects.create(name="interns")
    owner.groups.add(group)
    payer = Payer(owner.pk)
    SpendingLimit.objects.create(group=group, tokens_per_day=5)
    used(project, 7, user=owner)
    [budget] = limits.all_budgets(project.pk, payer)
    assert (budget.subject, budget.maximum, budget.is_used_up) == ("group", 5, True)
    SpendingLimit.objects.create(user=owner, tokens_per_day=50)
    [budget] = limits.all_budgets(project.pk, payer)
    assert (budget.subject, budget.maximum) == ("user", 50)


def test_use_before_the_day_and_the_month_does_not_count(project, owner):
    SpendingLimit.objects.create(project=project, tokens_per_day=100, tokens_per_month=1_000)
    call = used(project, 99)
    Call.objects.filter(pk=call.pk).update(started_at=Now() - timedelta(days=32))
    used(project, 80)
    day, month = limits.all_budgets(project.pk, Payer(owner.pk))
    assert (day.used, month.used) == (80, 80)
    assert day.is_nearly_used_up and not month.is_nearly_used_up
    assert [item.period for item in limits.warnings(project, Payer(owner.pk))] == ["day"]


def test_without_any_limit_nothing_is_asked(session, owner, scripted):
    assert not limits.any_limits()
    with CaptureQueriesContext(connection) as queries:
        limits.require_within_limits(session.project, Payer(owner.pk))
    assert len(queries) == 0
    _message, reply = ask(session, "Count.", owner)
    say(reply, Payer(owner.pk))
    assert Call.objects.get().reserved_tokens is None


def test_a_limit_has_one_subject(project, owner):
    with pytest.raises(ValidationError):
        SpendingLimit(project=project, user=owner).full_clean()
    with pytest.raises(ValidationError):
        SpendingLimit(tokens_per_day=1).full_clean()


def queries_of_budgets(project, payer) -> tuple[int, list[limits.Budget]]:
    with CaptureQueriesContext(connection) as queries:
        found = list(limits.all_budgets(project.pk, payer))
    return len(queries), found


def test_calls_that_ended_long_ago_are_summed_once(project, owner):
    SpendingLimit.objects.create(
        project=project, tokens_per_day=10_000, tokens_per_month=10_000, dollars_per_month=10
    )
    payer, now = Payer(owner.pk), timezone.now()
    for minutes in range(0, 33 * 24 * 60, 360):
        used(project, 10, cost=Decimal("0.25"), started_at=now - timedelta(minutes=minutes))
    spans = limits._spans(project.zone)
    first, day = (
        Call.objects.filter(started_at__gte=spans[period][0]).count() for period in ("month", "day")
    )
    expected = [10 * day, 10 * first, first / Decimal(4)]
    count, found = queries_of_budgets(project, payer)
    assert [budget.used for budget in found] == expected
    used(project, 7, cost=1)
    again, found = queries_of_budgets(project, payer)
    assert again == count - 1
    assert [budget.used for budget in found] == [10 * day + 7, 10 * first + 7, expected[2] + 1]


def test_settled_sums_move_on_with_time_and_end_with_their_period(project, owner, monkeypatch):
    SpendingLimit.objects.create(project=project, tokens_per_day=1_000, tokens_per_month=1_000)
    start = datetime(2026, 3, 10, 22, tzinfo=UTC)

    def amounts(now: datetime) -> list[Decimal]:
        monkeypatch.setattr(limits.timezone, "now", lambda: now)
        return [budget.used for budget in limits.all_budgets(project.pk, Payer(owner.pk))]

    used(project, 1, started_at=start - timedelta(hours=5))
    used(project, 10, started_at=start)
    assert amounts(start) == [11, 11]
    # Past the age at which calls are settled, and past the time for which sums are kept.
    for minutes in range(0, 120, 7):
        assert amounts(start + timedelta(minutes=minutes)) == [11, 11]
    # A clock that is set back.
    assert amounts(start - timedelta(hours=1)) == [11, 11]
    # The next day, and the next month.
    assert amounts(start + timedelta(hours=2)) == [0, 11]
    assert amounts(start + timedelta(days=22)) == [0, 0]


@pytest.fixture
def second(project) -> str:
    """The name of the model that answers in place of the first one, which costs a thousandth."""
    project.fallback_model = "openai-chat:other"
    project.save()
    ModelPrice.objects.create(
        model="openai-chat:scripted", input_price=1_000, cached_price=500, output_price=10_000
    )
    ModelPrice.objects.create(model=project.fallback_model, input_price=1, output_price=10)
    return project.fallback_model


@pytest.mark.parametrize("is_stored", [True, False], ids=["reply", "openai"])
def test_the_second_model_reserves_once_and_costs_its_own_price(
    api, session, owner, scripted, second, is_stored
):
    """The limit has room for one reservation: that of the first model must end before."""
    SpendingLimit.objects.create(
        project=session.project, tokens_per_day=10_000, dollars_per_month=1_000
    )
    scripted.status(503)
    scripted.say("One two three")
    if is_stored:
        _message, reply = ask(session, "Count.", owner)
        assert not isinstance(say(reply, Payer(owner.pk), ReplyOptions())[-1], Failed)
    else:
        body = {"model": "billing", "messages": [{"role": "user", "content": "Count."}]}
        answer = api(owner).post("/v1/chat/completions", body, format="json").json()
        assert answer["choices"][0]["message"]["content"] == "One two three"
    failed, answered = Call.objects.order_by("started_at")
    assert failed.reserved_tokens == answered.reserved_tokens > 5_000
    assert (failed.input_tokens, failed.output_tokens, failed.cost) == (0, 0, None)
    assert (answered.model, answered.outcome) == (second, "answered")
    assert (answered.input_tokens, 0, answered.output_tokens) == scripted.counted
    expected = (answered.input_tokens + 10 * answered.output_tokens) / Decimal(1_000_000)
    assert answered.cost == expected
    assert failed.reserved_cost > 500 * answered.reserved_cost
    tokens, dollars = limits.all_budgets(session.project_id, Payer(owner.pk))
    assert (tokens.used, tokens.reserved) == (sum(scripted.counted), 0)
    assert (dollars.used, dollars.reserved) == (expected, 0)


def test_over_a_limit_the_second_model_is_not_tried(session, owner, scripted, second):
    SpendingLimit.objects.create(project=session.project, dollars_per_month=Decimal("0.5"))
    _message, reply = ask(session, "Count.", owner)
    assert isinstance(say(reply, Payer(owner.pk))[-1].error, SpendingLimitError)
    assert scripted.requests == [] and not Call.objects.exists()


def test_a_huge_maximum_can_be_reserved(session, owner, scripted):
    SpendingLimit.objects.create(project=session.project, dollars_per_day=Decimal("0.5"))
    _message, reply = ask(session, "Count.", owner)
    events = say(reply, Payer(owner.pk), ReplyOptions(settings={"max_tokens": 10**12}))
    assert not isinstance(events[-1], Failed)
    assert Call.objects.get().reserved_tokens >= limits.MAX_OUTPUT_TOKENS


def test_an_unexpected_error_is_no_empty_answer(api, owner, project, scripted, monkeypatch):
    def fail(*args, **kwargs):
        raise RuntimeError

    monkeypatch.setattr("chat.conversations.lookups.builder.build", fail)
    body = {"model": project.slug, "messages": [{"role": "user", "content": "Hello"}]}
    for options in ({}, {"stream": True}):
        response = api(owner).post("/v1/chat/completions", body | options, format="json")
        assert response.status_code == 500
        assert response.json()["error"]["code"] == "internal_error"


def test_a_reservation_has_the_tokens_of_the_prompt_and_of_the_answer(project, owner):
    limit = SpendingLimit.objects.create(project=project, tokens_per_day=10_000)
    prompt = [PromptMessage("user", "When is the cutover?")] * 10
    CallAccount(project.pk, "reply", Payer(owner.pk), limits=[limit]).reserve("m", prompt, 300)
    assert Call.objects.get().reserved_tokens == 10 * prompt[0].tokens + 300
