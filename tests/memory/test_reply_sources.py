"""What a reply was told: each thing with its place, and nothing that its reader may not see."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse

from chat.models import Message, Role, Visibility
from chat.replies import draft, post_messages
from memory import blocks, facts
from memory.layers import review
from memory.models import Chunk
from memory.told import parts
from projects.models import Membership

pytestmark = pytest.mark.django_db
AT = datetime(2026, 3, 1, tzinfo=UTC)


def item(kind: str, row, revision: int = 1) -> dict[str, object]:
    return {"kind": kind, "id": str(row.pk), "revision": revision, "tokens": 7}


@pytest.fixture
def owns(project, owner) -> Membership:
    return Membership.objects.select_related("project", "user").get(project=project, user=owner)


@pytest.fixture
def reply(chat, owner):
    """A reply to be told things, in a chat of its own."""
    from chat.models import Session

    made = Session.objects.create(project=chat.project, creator=owner, title="Now")
    asked, answer = post_messages(
        made, [draft("Does it stay?", author=owner), draft("Yes.", role=Role.ASSISTANT)]
    )
    return answer


@pytest.fixture
def tell(reply):
    """Has the reply been told these sections: (name, items) each."""

    def told(*sections) -> Message:
        reply.receipt = {
            "budget": 1_000,
            "sections": [{"name": name, "tokens": 10, "items": items} for name, items in sections],
        }
        reply.save(update_fields=["receipt"])
        return reply

    return told


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


def test_each_thing_is_shown_with_its_date_and_leads_to_its_source(owns, tell, entry, chunk, owner):
    block = blocks.put(owns.project, None, "style", "Dates are ISO.", owner)
    fact, _ = facts.give(owns, facts.Statement("billing", "is owned by", "platform", AT))
    told = tell(
        ("persona", []),
        ("blocks", [item("block", block)]),
        ("facts", [item("fact", fact)]),
        ("bank", [item("conversation", entry)]),
        ("details", [item("chunk", chunk)]),
    )
    persona, kept, held, bank, details = parts(told.receipt, owns)
    assert (persona.things, persona.tokens) == ((), 10)
    assert kept.things[0].text == "Dates are ISO."
    assert held.things[0].text == "billing is owned by platform"
    assert held.things[0].when == "since 1 Mar 2026"
    assert "?add&subject=billing&predicate=is+owned+by" in held.things[0].outdated
    assert bank.things[0].text == "- The replica stays seven days"
    assert bank.things[0].when == "Thu 12 Mar 2026"
    assert bank.things[0].address == reverse("entry", args=["billing", entry.pk])
    assert bank.things[0].private.endswith(f"?entry={entry.pk}")
    excerpt = details.things[0]
    assert excerpt.text == "It stays for seven days."
    assert excerpt.address.endswith(f"/chats/{chunk.session_id}/?through=2#m2")
    said = Message.objects.get(session=chunk.session, seq=2)
    assert excerpt.wrong == reverse("message-edit", args=[said.pk])


def test_a_text_that_changed_since_is_shown_as_it_was_told(owns, tell, entry, owner):
    told = tell(("bank", [item("conversation", entry, entry.revision)]))
    review.edit(entry, "- The replica stays eight days", owner)
    [bank] = parts(told.receipt, owns)
    assert bank.things[0].changed
    assert bank.things[0].text == "- The replica stays seven days"


def test_what_is_gone_or_not_for_this_reader_is_only_counted(
    tell, entry, chunk, chat, project, viewer
):
    fact, _ = facts.give(
        Membership.objects.get(project=project, user=chat.creator),
        facts.Statement("Edgar", "likes", "tea", AT, user_id=chat.creator_id),
    )
    chat.visibility = Visibility.PRIVATE
    chat.save()
    told = tell(
        ("facts", [item("fact", fact)]),
        ("bank", [item("conversation", entry)]),
        ("details", [item("chunk", chunk)]),
    )
    entry.withheld = True
    entry.save()
    reads = Membership.objects.get(project=project, user=viewer)
    assert [(part.things, part.gone) for part in parts(told.receipt, reads)] == [([], 1)] * 3


def test_who_only_reads_is_offered_no_change(tell, entry, project, viewer):
    told = tell(("bank", [item("conversation", entry)]))
    [bank] = parts(told.receipt, Membership.objects.get(project=project, user=viewer))
    thing = bank.things[0]
    assert (thing.wrong, thing.outdated, thing.private) == ("", "", "")


def test_the_page_of_a_reply_costs_as_much_for_many_things(
    client, owner, tell, remember, chat, django_assert_max_num_queries
):
    days = [
        remember("- A day", granularity="day", period_key=f"2026-02-{number:02}")
        for number in range(1, 25)
    ]
    told = tell(("bank", [item("day", day) for day in days]))
    client.force_login(owner)
    with django_assert_max_num_queries(12):
        page = client.get(reverse("message-told", args=[told.pk]))
    assert page.content.decode().count("item-told c-day") == 24
    drawer = client.get(reverse("message-told", args=[told.pk]) + "?part=drawer")
    assert b"<html" not in drawer.content


def test_a_stranger_gets_404(client, tell, entry, stranger):
    told = tell(("bank", [item("conversation", entry)]))
    client.force_login(stranger)
    assert client.get(reverse("message-told", args=[told.pk])).status_code == 404


def test_a_message_that_was_told_nothing_has_no_such_page(client, reply, owner):
    client.force_login(owner)
    assert client.get(reverse("message-told", args=[reply.pk])).status_code == 404


def test_outdated_opens_a_new_fact_with_what_is_known(client, project, owner):
    client.force_login(owner)
    page = client.get(
        reverse("facts", args=["billing"]), {"add": "", "subject": "billing", "predicate": "is"}
    ).content.decode()
    assert '<details class="group text" id="add" open>' in page
    assert 'value="billing"' in page
