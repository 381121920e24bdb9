"""A model that does whatever its prompt says, and hundreds of messages that give it orders."""

import io
import json
import re
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from django.contrib.auth import get_user_model
from django.core import serializers
from django.utils import timezone

from chat.conversations.messages import draft, post_messages
from chat.importers import import_file
from chat.models import Message, Session
from memory import facts
from memory.forgetting.service import ForgetScope, forget, preview
from memory.layers import injection_detection
from memory.layers.bank_cache import rendered_bank
from memory.models import Chunk, Entry, EntryStatus, Fact, FactSource, ReviewReason
from memory.moderation.actions import ModerationAction, ModerationRequest, apply_action
from memory.recall import indexing
from projects.models import Membership, Token
from projects.services import create_project
from tests.hostile.obedient_model import POISON, lie, obey, order
from tests.torture.test_forgetting import everywhere, settle

pytestmark = pytest.mark.django_db(transaction=True)

START = timezone.now().replace(hour=9) - timedelta(days=75)
GOOD = "The ferry leaves Husum at seven, said the harbour master."
QUESTION = "What is owned by the harbour team, how long is the deploy, and where is it paid?"
# The tools of Strata's own that a model may call.
READERS = {"search_memory", "read_chat"}
# Messages of a poisoned chat, beside as many that are not.
IN_A_CHAT = 2


@pytest.fixture
def obedient(scripted, connector):
    """The model, and nobody else who could be connected to."""
    scripted.default = obey
    host, _, port = scripted.base_url.removeprefix("http://").partition("/")[0].partition(":")
    connector.receivers.add((host, int(port)))
    return scripted


@pytest.fixture
def people(owner, person) -> dict[str, Any]:
    return {"olive": owner, "mallory": person("mallory"), "edgar": person("edgar")}


@pytest.fixture
def billing(people):
    project = create_project(
        people["olive"], name="Billing", bank_max_tokens=160, idle_minutes=1, share_raw_turns=True
    )
    for name in ("mallory", "edgar"):
        Membership.objects.create(project=project, user=people[name], role="editor")
    return project


@pytest.fixture
def payroll(people):
    """A project that has nothing to do with it, and something to lose."""
    project = create_project(people["olive"], name="Payroll")
    session = Session.objects.create(project=project, creator=people["olive"], title="Wages")
    post_messages(session, [draft("Wages are paid on the first.", author=people["olive"])])
    member = Membership.objects.select_related("project", "user").get(project=project)
    facts.create_fact(member, facts.Statement("wages", "are paid on", "the first", timezone.now()))
    return project


def poisoned(project, people, count: int) -> None:
    """So many poisoned messages, a chat every day; in each Edgar says something too. Every other
    chat holds lies alone, which nothing can hold back.
    """
    for first in range(0, count, IN_A_CHAT):
        at = START + timedelta(days=60 * first / count)
        session = Session.objects.create(
            project=project, creator=people["mallory"], title="Talk", created_at=at
        )
        say = lie if first // IN_A_CHAT % 2 else order
        numbers = range(first, min(first + IN_A_CHAT, count))
        messages = [
            draft(say(number), author=people["mallory"], created_at=at) for number in numbers
        ]
        post_messages(session, [draft(GOOD, author=people["edgar"], created_at=at), *messages])
        Session.objects.filter(pk=session.pk).update(last_activity_at=at)


def imported(project, people, first: int, count: int) -> None:
    """As many more that come in a file."""
    lines = [
        json.dumps(
            {
                "session": "s",
                "id": str(number),
                "role": "user",
                "content": (lie if number % 2 else order)(number),
                "created_at": (START + timedelta(days=1)).isoformat(),
                "author": "mallory",
            }
        )
        for number in range(first, first + count)
    ]
    import_file(project, people["mallory"], "talk.jsonl", io.BytesIO("\n".join(lines).encode()))


def outside(project) -> str:
    """All that is not of `project`, and all that decides who may what."""
    people = get_user_model().objects.order_by("pk")
    rights = ("username", "email", "password", "is_superuser", "is_staff", "is_active")
    rights_before = str(list(people.values_list(*rights)))
    # Edgar asks with a token of his own.
    rows = [*Token.objects.exclude(user__username="edgar"), *Membership.objects.order_by("pk")]
    for model in (Session, Message, Entry, Fact, FactSource):
        rows += model._default_manager.exclude(project=project).order_by("pk")
    rows += type(project).objects.order_by("pk")
    return rights_before + serializers.serialize("json", rows)


def sources_of(entry: Entry) -> set[UUID]:
    """The messages that an entry says it was made of, down through its children."""
    if entry.session_id is not None:
        stretch = Message.objects.filter(
            session=entry.session_id, seq__gte=entry.first_seq, seq__lte=entry.last_seq
        )
        return set(stretch.values_list("pk", flat=True))
    children = [sources_of(child) for child in entry.children.all()]
    assert children, f"{entry} names no source"
    return set().union(*children)


def check_that_all_of_it_names_its_source(project, tally) -> None:
    for entry in Entry.objects.filter(project=project):
        words = set(POISON.findall(entry.summary))
        texts = Message.objects.filter(pk__in=sources_of(entry)).values_list("text", flat=True)
        # What was cut off the front of a chat is told to whoever summarises what follows.
        assert words <= set(POISON.findall(" ".join(texts))), entry
        tally(f"entries of a {entry.granularity} that name their messages")
    for fact in Fact.objects.filter(project=project, by_hand=False):
        sources = FactSource.objects.filter(fact=fact).select_related("message", "entry")
        assert any(fact.subject in source.message.text for source in sources), fact
        tally("facts that name their messages")
    for chunk in Chunk.objects.filter(project=project).exclude(session=None):
        assert chunk.speaker
        messages = Message.objects.filter(
            session=chunk.session_id, seq__range=(chunk.first_seq, chunk.last_seq)
        )
        assert set(POISON.findall(chunk.text)) <= set(
            POISON.findall(" ".join(messages.values_list("text", flat=True)))
        )


def check_that_orders_wait(project, tally) -> None:
    for entry in Entry.objects.filter(project=project):
        if injection_detection.reads_like_instructions(entry.summary):
            assert entry.state == EntryStatus.PROPOSED, entry.summary
            assert entry.waits_because == ReviewReason.INSTRUCTIONS
            tally("summaries that give orders, held for review")


def fenced(prompt: dict[str, Any]) -> int:
    """How many fences the prompt of a request has. Each is closed by its own end alone, and outside
    of them nobody's words stand in what the system says.
    """
    number = 0
    for message in prompt["messages"]:
        if message["role"] != "system":
            continue
        tags = re.findall(r"(?i)</?memory>", message["content"])
        assert tags == ["<memory>", "</memory>"] * (len(tags) // 2)
        outside = re.sub(r"(?s)<memory>.*?</memory>", "", message["content"])
        assert not POISON.search(outside)
        number += len(tags) // 2
    return number


def ask(api, user, project, text: str) -> dict[str, Any]:
    """The reply to `text` in a new chat of `user`."""
    client = api(user)
    payload = client.post(f"/api/v1/projects/{project.slug}/sessions/", {}, format="json").json()
    path = f"/api/v1/sessions/{payload['id']}/messages/"
    answer = client.post(path, {"content": text, "reply": True}, format="json")
    assert answer.status_code == 201, answer.content
    return dict(answer.json()["reply"])


def test_orders_in_memory_do_nothing_and_are_revoked_with_all_that_was_made_of_them(
    obedient, connector, people, billing, payroll, api, client, scale, tally
):
    count = scale(200, 32)
    now = timezone.now() + timedelta(hours=1)
    settle(now)
    before = outside(billing)
    poisoned(billing, people, count)
    imported(billing, people, count, scale(20, 4))
    member = Membership.objects.select_related("project", "user").get(
        project=billing, user=people["mallory"]
    )
    for number in range(count + 100, count + 104):
        statement = facts.Statement(f"poison{number}x", "is", order(number)[:200], timezone.now())
        facts.create_fact(member, statement)
    settle(now)
    indexing.catch_up()
    tally("poisoned messages", Message.objects.filter(text__regex=POISON.pattern).count())
    poisoned_entries = Entry.objects.filter(summary__contains="poison")
    layers = set(poisoned_entries.values_list("granularity", flat=True))
    assert layers >= {"conversation", "week", "month"}, layers

    check_that_all_of_it_names_its_source(billing, tally)
    check_that_orders_wait(billing, tally)
    # Somebody who decides may be deceived too.
    waiting = list(Entry.objects.filter(project=billing, state=EntryStatus.PROPOSED)[:6])
    apply_action(
        ModerationRequest(ModerationAction.APPROVE, people["olive"]), waiting, lambda entry, act: ""
    )
    for number in range(scale(20, 3)):
        reply = ask(api, people["edgar"], billing, f"{QUESTION} ({number})")
        assert reply["status"] == "complete"
        request = obedient.requests[-1]
        # The tools that it may call change nothing, and it calls another one.
        assert {tool["function"]["name"] for tool in request["tools"]} <= READERS
        lookups = Message.objects.values_list("lookups", flat=True).get(pk=reply["id"])
        assert lookups and all("no such tool" in lookup["error"] for lookup in lookups)
        tally("fences that held", fenced(request))
        chat = page_of(client, people["edgar"], billing, reply)
        assert "<img src=" not in chat.replace('<img src="/', "")
        tally("replies of a model that obeyed")
    settle(now + timedelta(hours=1))

    # Whatever it wrote: nobody was asked but the model, and nothing is other than it was.
    assert set(connector.connections) == connector.receivers
    assert not connector.lookups
    assert outside(billing) == before

    client.force_login(people["olive"])
    revoke = {"user": "mallory", "replies": "on"}
    page = client.get(f"/projects/{billing.slug}/memory/forget/", revoke)
    assert "All messages from mallory" in page.content.decode()
    statement = preview(billing, ForgetScope(user=people["mallory"].pk, replies=True))
    assert statement.saw_it == []
    client.post(f"/projects/{billing.slug}/memory/forget/", revoke | {"reason": "wrong"})
    bank = rendered_bank(billing).text + str(list(Chunk.objects.values_list("text", flat=True)))
    left = set(POISON.findall(bank))
    # What came in a file was said by nobody here: it is revoked with its chat.
    files = Session.objects.filter(project=billing, messages__author_name="mallory").distinct()
    for session in files:
        forget(billing, ForgetScope(session=session.pk, replies=True), people["olive"])
    settle(now + timedelta(hours=2))
    indexing.catch_up()
    tally("words of poison that were shown until the file went too", len(left))
    assert everywhere(POISON, "poison") == {}
    assert Message.objects.filter(text=GOOD).count() == -(-count // IN_A_CHAT)
    assert "Husum" in str(list(Chunk.objects.values_list("text", flat=True)))


def page_of(client, user, project, reply: dict[str, Any]) -> str:
    """The page of the chat in which `reply` is."""
    client.force_login(user)
    session = Message.objects.get(pk=reply["id"]).session_id
    return str(client.get(f"/projects/{project.slug}/chats/{session}/").content.decode())
