"""The sources of a reply: each with its place, and none that its reader may not see."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from chat.conversations.messages import NewBranch, draft, post_messages
from chat.models import Message, Role, Visibility
from chat.prompt.builder import Turn, build
from memory import blocks, facts
from memory.layers.bank_cache import rendered_bank
from memory.layers.lines import Line
from memory.models import Chunk
from memory.moderation import entry_operations
from memory.prompt.receipt_sources import readable_sections
from projects.models import Membership
from tests.html import compact

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 1, tzinfo=UTC)


def item(kind: str, row, revision: int = 1) -> dict[str, object]:
    return {"kind": kind, "id": str(row.pk), "revision": revision, "tokens": 7}


@pytest.fixture
def member(project, owner) -> Membership:
    return Membership.objects.select_related("project", "user").get(project=project, user=owner)


@pytest.fixture
def reply(chat, owner):
    """An assistant message in a chat of its own."""
    from chat.models import Session

    session = Session.objects.create(project=chat.project, creator=owner, title="Now")
    _, answer = post_messages(
        session, [draft("Does it stay?", author=owner), draft("Yes.", role=Role.ASSISTANT)]
    )
    return answer


@pytest.fixture
def with_receipt(reply):
    """Give the reply a receipt of these sections: (name, items) each."""

    def set_receipt(*sections) -> Message:
        reply.receipt = {
            "budget": 1_000,
            "sections": [{"name": name, "tokens": 10, "items": items} for name, items in sections],
        }
        reply.save(update_fields=["receipt"])
        return reply

    return set_receipt


@pytest.fixture
def chunk(chat) -> Chunk:
    return Chunk.objects.create(
        project=chat.project,
        source_type="turn",
        source=chat.pk,
        session=chat,
        first_seq=2,
        last_seq=2,
        role="assistant",
        speaker="Assistant",
        text="It stays for seven days.",
        tokens=7,
        occurred_at=AT,
        language="english",
        pieces=b"",
    )


def test_each_source_has_a_date_and_links(member, with_receipt, entry, chunk, owner):
    block = blocks.put(member.project, None, "style", "Dates are ISO.", owner)
    fact, _ = facts.create_fact(member, facts.Statement("billing", "is owned by", "platform", AT))
    reply = with_receipt(
        ("persona", []),
        ("blocks", [item("block", block)]),
        ("facts", [item("fact", fact)]),
        ("bank", [item("conversation", entry)]),
        ("details", [item("chunk", chunk)]),
    )
    persona, blocks_, facts_, bank, details = readable_sections(reply.receipt, member)
    assert (persona.sources, persona.tokens) == ([], 10)
    assert blocks_.sources[0].text == "Dates are ISO."
    assert facts_.sources[0].text == "billing is owned by platform"
    assert facts_.sources[0].when == "since 1 Mar 2026"
    assert "?add&subject=billing&predicate=is+owned+by" in facts_.sources[0].replace_url
    assert bank.sources[0].text == "- The replica stays seven days"
    assert bank.sources[0].when == "Thu 12 Mar 2026"
    assert bank.sources[0].address == reverse("entry", args=["billing", entry.pk])
    assert bank.sources[0].forget_url.endswith(f"?entry={entry.pk}")
    excerpt = details.sources[0]
    assert excerpt.text == "It stays for seven days."
    assert excerpt.address.endswith(f"/chats/{chunk.session_id}/?through=2#m2")
    message = Message.objects.get(session=chunk.session, seq=2)
    assert excerpt.correct_url == reverse("message-edit", args=[message.pk])


def test_a_changed_entry_is_shown_with_the_text_in_the_prompt(member, with_receipt, entry, owner):
    reply = with_receipt(("bank", [item("conversation", entry, entry.revision)]))
    entry_operations.edit(entry, "- The replica stays eight days", owner)
    [bank] = readable_sections(reply.receipt, member)
    assert bank.sources[0].changed
    assert bank.sources[0].text == "- The replica stays seven days"


def test_unavailable_sources_are_only_counted(with_receipt, entry, chunk, chat, project, viewer):
    fact, _ = facts.create_fact(
        Membership.objects.get(project=project, user=chat.creator),
        facts.Statement("Edgar", "likes", "tea", AT, user_id=chat.creator_id),
    )
    chat.visibility = Visibility.PRIVATE
    chat.save()
    reply = with_receipt(
        ("facts", [item("fact", fact)]),
        ("bank", [item("conversation", entry)]),
        ("details", [item("chunk", chunk)]),
    )
    entry.withheld = True
    entry.save()
    reads = Membership.objects.get(project=project, user=viewer)
    assert [
        (section.sources, section.unavailable)
        for section in readable_sections(reply.receipt, reads)
    ] == [([], 1)] * 3


def test_viewers_get_no_action_urls(with_receipt, entry, project, viewer):
    reply = with_receipt(("bank", [item("conversation", entry)]))
    [bank] = readable_sections(reply.receipt, Membership.objects.get(project=project, user=viewer))
    source = bank.sources[0]
    assert (source.correct_url, source.replace_url, source.forget_url) == ("", "", "")


def test_the_page_needs_the_same_queries_for_many_sources(
    client, owner, with_receipt, remember, chat, django_assert_max_num_queries
):
    days = [
        remember("- A day", granularity="day", period_key=f"2026-02-{number:02}")
        for number in range(1, 25)
    ]
    reply = with_receipt(("bank", [item("day", day) for day in days]))
    client.force_login(owner)
    with django_assert_max_num_queries(12):
        page = client.get(reverse("reply-sources", args=[reply.pk]))
    assert page.content.decode().count("memory-item c-day") == 24
    drawer = client.get(reverse("reply-sources", args=[reply.pk]) + "?part=drawer")
    assert b"<html" not in drawer.content


def test_a_stranger_gets_404(client, with_receipt, entry, stranger):
    reply = with_receipt(("bank", [item("conversation", entry)]))
    client.force_login(stranger)
    assert client.get(reverse("reply-sources", args=[reply.pk])).status_code == 404


def test_a_message_without_a_receipt_gets_404(client, reply, owner):
    client.force_login(owner)
    assert client.get(reverse("reply-sources", args=[reply.pk])).status_code == 404


def test_the_replace_link_opens_a_new_fact_with_known_values(client, project, owner):
    client.force_login(owner)
    page = client.get(
        reverse("facts", args=["billing"]), {"add": "", "subject": "billing", "predicate": "is"}
    ).content.decode()
    assert '<details class="group text" id="add" open>' in compact(page)
    assert 'value="billing"' in page


@pytest.fixture
def two_lines(entry):
    entry.set_lines([Line("It stays for seven days.", entry.day), Line("Ben pays.", entry.day)])
    entry.save()
    return entry


@pytest.mark.parametrize(
    "named, expected",
    [
        ({"lines": [1], "of": 2}, ["Ben pays."]),
        ({}, ["It stays for seven days.", "Ben pays."]),
        ({"lines": [1], "of": 3}, ["It stays for seven days.", "Ben pays."]),
        ({"lines": [7], "of": 2}, ["It stays for seven days.", "Ben pays."]),
        ({"lines": 1, "of": 2}, ["It stays for seven days.", "Ben pays."]),
        ({"lines": [1], "of": 2, "revision": 2}, ["It stays for seven days.", "Ben pays."]),
    ],
)
def test_the_lines_of_an_entry_are_those_in_the_prompt(
    api, client, owner, two_lines, with_receipt, named, expected
):
    reply = with_receipt(("bank", [item("conversation", two_lines) | named]))
    [section] = api(owner).get(f"/api/v1/messages/{reply.pk}/told/").json()
    [source] = section["things"]
    assert [line["text"] for line in source["lines"]] == expected
    assert source["text"] == "\n".join(f"- {text}" for text in expected)
    assert source["line_count"] == 2
    client.force_login(owner)
    page = client.get(reverse("reply-sources", args=[reply.pk])).content.decode()
    assert ("It stays for seven days." in page) == (len(expected) == 2)
    assert ("1 of 2 lines" in page) == (len(expected) == 1)


def test_a_receipt_names_the_lines_in_the_bank(project, two_lines, reply):
    project.bank_max_tokens = rendered_bank(project).tokens - 1
    project.save()
    receipt = build(Turn(reply.session, reply)).receipt()
    [section] = [section for section in receipt["sections"] if section["name"] == "bank"]
    [found] = section["items"]
    assert (found["lines"], found["of"]) == ([0], 2)


def test_a_line_links_to_its_message_on_a_path_that_was_left(
    client, owner, editor, chat, entry, with_receipt
):
    question, answer = chat.messages.order_by("seq")
    entry.set_lines([Line(answer.text, entry.day, "", (answer.pk,))])
    entry.save()
    other = draft("And the primary?", author=editor)
    post_messages(chat, [other], at=NewBranch(question.parent_id))
    reply = with_receipt(("bank", [item("conversation", entry)]))
    client.force_login(owner)
    page = client.get(reverse("reply-sources", args=[reply.pk])).content.decode()
    address = f"/projects/billing/chats/{chat.pk}/?through=2"
    assert f'href="{address}#m2"' in page
    assert 'id="m2"' not in client.get(address.partition("?")[0]).content.decode()
    assert 'id="m2"' in client.get(address).content.decode()
