"""Every call of a model is on the books, whatever becomes of it."""

from datetime import UTC, datetime, timedelta
from decimal import Decimal

import pytest
from django.db import connection
from django.db.models.functions import Now

from chat.conversations.messages import draft, post_messages
from chat.models import Session
from chat.prompt.types import PromptMessage
from chat.providers import Completion, ProviderError
from chat.providers.pydantic_ai import PydanticAIProvider
from memory import leases
from memory.layers.conversations import summarise
from memory.layers.model_calls import CallRecorder
from memory.layers.summarising.base import UnusableSummaryError
from memory.leases import LeaseLostError
from memory.models import Call, CallKind, Cursor, Entry

pytestmark = pytest.mark.django_db(transaction=True)

PROMPT = [PromptMessage("user", "one two three")]


@pytest.fixture
def session(project, owner):
    session = Session.objects.create(project=project, creator=owner, title="Cutover")
    post_messages(session, [draft("The cutover is on 3 March.")])
    return session


@pytest.fixture
def booking(session):
    return CallRecorder(
        leases.claim(Cursor.objects.all(), session.pk), session.project_id, session.pk
    )


def text_of(answer: Completion) -> str:
    return answer.text


def ask(booking: CallRecorder, model: str = "openai-chat:scripted", read=text_of) -> str:
    return booking.ask(model, CallKind.DIGEST, PROMPT, 100, read)


def test_a_call_is_booked_before_it_is_made_and_completed_afterwards(booking, session, scripted):
    observed_calls = []

    def look(request):
        observed_calls.append(Call.objects.get().outcome)
        # Another connection sees the row: no transaction is open.
        connection.close()
        return "four five"

    scripted.queue(look)
    assert ask(booking) == "four five"
    assert observed_calls == [""]
    call = Call.objects.get()
    assert (call.project_id, call.session_id) == (session.project_id, session.pk)
    assert (call.kind, call.model, call.outcome) == ("digest", "openai-chat:scripted", "answered")
    assert (call.input_tokens, call.output_tokens, call.cost) == (3, 2, None)
    assert call.duration_ms >= 0


def test_a_known_price_is_booked(booking, scripted):
    scripted.queue("four five", "six")
    for _ in range(2):
        ask(booking, "openai-chat:gpt-4o-mini")
    costs = list(Call.objects.values_list("cost", flat=True))
    assert all(cost > 0 for cost in costs)
    assert abs(booking.cost - sum(costs)) < Decimal("0.000002")


def test_the_sums_are_those_of_all_calls(booking, scripted):
    scripted.queue("four five", "six")
    ask(booking)
    ask(booking)
    sums = (booking.calls, booking.input_tokens, booking.output_tokens, booking.cost)
    assert sums == (2, 6, 3, None)
    assert booking.duration_ms == sum(Call.objects.values_list("duration_ms", flat=True))


def test_a_failure_is_booked_with_its_reason(booking, scripted):
    scripted.status(500)
    with pytest.raises(ProviderError):
        ask(booking)
    call = Call.objects.get()
    assert "returned an error" in call.outcome
    assert (call.input_tokens, call.cost) == (0, None)
    assert booking.calls == 1


def test_an_answer_that_nothing_could_be_made_of_is_paid_for_all_the_same(booking, scripted):
    def refuse(answer):
        raise UnusableSummaryError("The answer was empty.")

    scripted.queue("four five")
    with pytest.raises(UnusableSummaryError):
        ask(booking, read=refuse)
    call = Call.objects.get()
    assert (call.outcome, call.output_tokens) == ("The answer was empty.", 2)


def test_a_failure_of_our_own_is_booked_too(booking, scripted):
    with pytest.raises(ZeroDivisionError):
        ask(booking, read=lambda answer: 1 / 0)
    assert Call.objects.get().outcome == "Strata itself failed: ZeroDivisionError."


@pytest.mark.parametrize("death", [SystemExit, KeyboardInterrupt, GeneratorExit])
def test_a_worker_that_dies_in_the_middle_leaves_a_call_without_an_outcome(
    booking, monkeypatch, death
):
    def die(*_):
        raise death

    monkeypatch.setattr(PydanticAIProvider, "complete", die)
    with pytest.raises(death):
        ask(booking)
    call = Call.objects.get()
    assert (call.outcome, call.duration_ms) == ("", None)


def test_a_worker_without_the_lease_makes_no_request(booking, scripted):
    Cursor.objects.update(lease_until=Now() - timedelta(seconds=1))
    with pytest.raises(LeaseLostError):
        ask(booking)
    assert not Call.objects.exists()
    assert scripted.requests == []


def test_the_lease_is_renewed_before_each_call(booking, scripted):
    Cursor.objects.update(lease_until=Now() + timedelta(seconds=5))
    ask(booking)
    assert Cursor.objects.get().lease_until > datetime.now(UTC) + timedelta(seconds=30)


def test_all_parts_of_a_conversation_are_booked(session, scripted, settings):
    settings.CONTEXT_TOKENS = 2_000
    post_messages(session, [draft("And so on and on. " * 60) for _ in range(12)])
    scripted.default = "- On and on."
    assert summarise(session.pk, datetime.now(UTC) + timedelta(hours=1))
    assert set(Call.objects.values_list("kind", flat=True)) == {"conversation"}
    assert Call.objects.count() == len(scripted.requests) > 1
    assert set(Call.objects.values_list("session_id", flat=True)) == {session.pk}


def test_quoting_costs_nothing(session):
    assert summarise(session.pk, datetime.now(UTC) + timedelta(hours=1))
    assert Entry.objects.count() == 1
    assert not Call.objects.exists()
