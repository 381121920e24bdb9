"""The demo project: what is there to look at."""

from datetime import UTC, datetime, timedelta

import pytest
from asgiref.sync import async_to_sync

from chat.conversations import generation
from chat.conversations.messages import ask
from chat.models import Message, Session
from memory import demo
from memory.layers import cycle
from memory.layers.bank_cache import rendered_bank
from memory.layers.history import bank_as_of
from memory.layers.periods import Granularity
from memory.models import Call, Fact
from memory.prompt.receipt_sources import readable_sections
from memory.recall import indexing

pytestmark = pytest.mark.django_db

NOW = datetime(2026, 3, 9, 6, 30, tzinfo=UTC)


@pytest.fixture
def project(django_user_model):
    return demo.create_demo(django_user_model.objects.create(username="olive"), NOW)


def test_two_months_of_talk_are_remembered_in_all_layers(project):
    messages = Message.objects.order_by("created_at")
    assert messages.first().created_at < NOW - timedelta(days=60)
    assert NOW - timedelta(hours=2) < messages.last().created_at < NOW
    assert project.slug == demo.SLUG
    digests = project.entries.exclude(granularity=Granularity.CONVERSATION)
    assert {digest.granularity for digest in digests} == {*Granularity} - {"conversation"}
    assert all(digest.children.count() > 1 for digest in digests)
    bank = rendered_bank(project)
    assert 0.6 * demo.BANK_TOKENS < bank.tokens <= demo.BANK_TOKENS
    assert "MS Selkie" in bank.text
    assert "{+" not in "".join(messages.values_list("text", flat=True))
    assert not cycle.due(NOW, project)
    assert not Call.objects.exists()
    assert project.entries.filter(pinned=True).count() == 1

    # What it believed a month ago it no longer does.
    then = bank_as_of(project, NOW - timedelta(days=30))
    assert then.text and then.text != bank.text
    owners = Fact.objects.filter(subject="billing").with_validity().valid_at(NOW)
    assert [fact.object for fact in owners] == ["the payments team"]
    owners = (
        Fact.objects.filter(subject="billing").with_validity().valid_at(NOW - timedelta(days=40))
    )
    assert [fact.object for fact in owners] == ["the platform team"]


@pytest.mark.django_db(transaction=True)
def test_both_owners_of_billing_are_in_the_receipt(project, scripted):
    indexing.catch_up()
    member = project.memberships.select_related("project", "user").get()
    session = Session.objects.create(project=project, creator=member.user)
    _, reply = ask(session, "Who owned billing in January, and who owns it now?", member.user)

    async def read() -> list:
        return [event async for event in generation.stream_reply(reply)]

    async_to_sync(read)()
    reply.refresh_from_db()
    sent = "\n".join(message["content"] for message in scripted.requests[-1]["messages"])
    sources = {
        source.text: source.when
        for section in readable_sections(reply.receipt, member)
        for source in section.sources
        if source.kind == "fact" and source.text.startswith("billing")
    }
    assert sources == {
        "billing is owned by the platform team": "8 Jan 2026 – 20 Feb 2026",
        "billing is owned by the payments team": "since 20 Feb 2026",
    }
    for text in sources:
        assert text in sent
