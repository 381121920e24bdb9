"""The sources of a reply: each with its place, and none that its reader may not see."""

from datetime import UTC, datetime

import pytest
from django.urls import reverse
from django.utils import timezone

from chat.conversations.messages import NewBranch, draft, post_messages
from chat.models import Message, Role, Visibility
from chat.prompt.builder import Turn, build
from chat.prompt.tools import all_tools
from chat.templatetags.meters import used_groups
from memory import blocks, facts
from memory.layers.bank_cache import rendered_bank
from memory.layers.lines import Line
from memory.models import Chunk, EntryStatus, Fact, FactStatus
from memory.moderation import entry_operations
from memory.prompt.receipt_sources import TITLES, readable_sections
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


def test_an_earlier_text_of_a_private_chat_is_shown_to_its_creator_only(
    member, with_receipt, entry, chat, editor
):
    reply = with_receipt(("bank", [item("conversation", entry, entry.revision)]))
    type(chat).objects.filter(pk=chat.pk).update(visibility=Visibility.PRIVATE)
    entry_operations.edit(entry, "- The replica stays", editor)
    creator = Membership.objects.get(project=chat.project, user=editor)
    for reader, text in (
        (member, "- The replica stays"),
        (creator, "- The replica stays seven days"),
    ):
        [bank] = readable_sections(reply.receipt, reader)
        assert (bank.sources[0].text, bank.sources[0].changed) == (text, True)


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


def test_each_section_and_tool_has_a_title(settings):
    names = [path.rpartition(".")[2] for path in settings.CHAT_PROMPT_SECTIONS]
    assert [name for name in (*names, *all_tools()) if name not in TITLES] == []


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
    [section] = api(owner).get(f"/api/v1/messages/{reply.pk}/sources/").json()
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


@pytest.fixture
def change(client, two_lines, with_receipt, owner):
    """Change the first line of an entry of which the prompt contained the second alone."""
    named = {"lines": [1], "of": 2}
    reply = with_receipt(("bank", [item("conversation", two_lines, two_lines.revision) | named]))

    def post(user=owner, part: str = "?part=drawer", **fields):
        client.force_login(user)
        url = reverse("reply-source-change", args=[reply.pk]) + part
        return client.post(url, {"source": f"entry:{two_lines.pk}"} | fields)

    return post


def test_the_forms_show_only_lines_that_the_model_received(client, owner, two_lines, with_receipt):
    third = Line("Ana decides.", two_lines.day)
    two_lines.set_lines([*two_lines.read_lines(), third])
    two_lines.save()
    named = {"lines": [1, 2], "of": 3}
    reply = with_receipt(("bank", [item("conversation", two_lines) | named]))
    client.force_login(owner)
    html = compact(client.get(reverse("reply-sources", args=[reply.pk])).content.decode())
    assert '<option value="0">Ben pays.</option><option value="1">Ana decides.</option>' in html
    assert "It stays for seven days." not in html


def test_a_line_is_corrected_and_the_others_stay(change, two_lines):
    answer = change(act="correct", text=" Carla  pays. ")
    html = answer.content.decode()
    assert (answer.status_code, "Corrected." in html) == (200, True)
    # What the model received.
    assert "Ben pays." in html
    assert "changed since then" in html
    assert "It stays for seven days." not in html
    two_lines.refresh_from_db()
    assert [line.text for line in two_lines.read_lines()] == [
        "It stays for seven days.",
        "Carla pays.",
    ]


def test_nul_characters_are_left_out(change, two_lines):
    assert change(act="correct", text="Carla\0 pays.").status_code == 200
    two_lines.refresh_from_db()
    assert two_lines.read_lines()[1].text == "Carla pays."


def test_an_outdated_line_is_taken_out_of_the_memory(change, two_lines):
    assert change(act="outdated").status_code == 200
    two_lines.refresh_from_db()
    assert [line.text for line in two_lines.read_lines()] == ["It stays for seven days."]


def test_a_private_memory_is_hidden(change, two_lines):
    assert change(act="private").status_code == 200
    two_lines.refresh_from_db()
    assert two_lines.state == EntryStatus.HIDDEN


def test_without_a_script_the_page_returns_to_the_sources(change, client, two_lines):
    response = change(part="", act="correct", text="Carla pays.")
    assert response.status_code == 302
    assert "Corrected." in client.get(response.url).content.decode()


@pytest.mark.parametrize(
    "fields",
    [
        {"act": "correct", "text": " "},
        {"act": "correct", "text": "\0"},
        {"act": "correct", "text": "x" * 6_000},
        {"act": "destroy", "text": "x"},
        {"act": "correct", "text": "x", "line": "1"},
        {"act": "correct", "text": "x", "line": "x"},
        {"act": "correct", "text": "x", "source": "entry:7"},
        {"act": "correct", "text": "x", "source": ""},
    ],
)
def test_a_wrong_change_is_refused(change, two_lines, fields):
    assert change(**fields).status_code == 400
    text = two_lines.summary
    two_lines.refresh_from_db()
    assert two_lines.summary == text


def test_a_refused_text_stays_in_its_open_form(change):
    answer = change(act="correct", text="Ben & Ana", line="1")
    assert answer.status_code == 400
    html = compact(answer.content.decode())
    assert html.count('value="Ben &amp; Ana"') == 1
    assert html.count(" open>") == 1


def test_a_refused_form_keeps_the_chosen_line(client, owner, two_lines, with_receipt):
    named = {"lines": [0, 1], "of": 2}
    reply = with_receipt(("bank", [item("conversation", two_lines) | named]))
    client.force_login(owner)
    url = f"/messages/{reply.pk}/sources/change/?part=drawer"
    fields = {"source": f"entry:{two_lines.pk}", "act": "correct", "line": "1"}
    page = compact(client.post(url, fields).content.decode())
    assert page.count(" selected>") == 1
    assert '<option value="1" selected>Ben pays.' in page


def test_only_sources_of_the_reply_are_changed(change, remember):
    other = remember("- Another", granularity="day", period_key="2026-02-01")
    answer = change(act="correct", text="x", source=f"entry:{other.pk}")
    assert answer.status_code == 400


def test_a_memory_that_changed_since_is_not_changed_by_its_old_lines(change, two_lines, owner):
    entry_operations.edit(two_lines, "- Something else", owner)
    assert change(act="correct", text="x").status_code == 400


def test_viewers_and_strangers_cannot_change_sources(change, viewer, stranger):
    for user in (viewer, stranger):
        assert change(user, act="correct", text="x").status_code == 404


@pytest.fixture
def change_fact(client, member, with_receipt, owner):
    statement = facts.Statement("billing", "is owned by", "platform", AT)
    fact, _ = facts.create_fact(member, statement)
    reply = with_receipt(("facts", [item("fact", fact, fact.version)]))

    def post(user=owner, **fields):
        client.force_login(user)
        url = reverse("reply-source-change", args=[reply.pk]) + "?part=drawer"
        return client.post(url, {"source": f"fact:{fact.pk}"} | fields)

    post.fact = fact
    return post


def test_a_fact_is_corrected(change_fact):
    assert change_fact(act="correct", text="the payments team").status_code == 200
    change_fact.fact.refresh_from_db()
    assert change_fact.fact.text == "billing is owned by the payments team"


def test_an_outdated_fact_ends(change_fact):
    assert change_fact(act="outdated").status_code == 200
    change_fact.fact.refresh_from_db()
    assert change_fact.fact.valid_until is not None


def test_an_outdated_fact_is_replaced_and_does_not_end_again(change_fact, project):
    assert change_fact(act="outdated", text="the payments team").status_code == 200
    rows = Fact.objects.filter(project=project).with_validity().valid_at(timezone.now())
    assert [fact.object for fact in rows] == ["the payments team"]
    assert change_fact(act="outdated").status_code == 200
    change_fact.fact.refresh_from_db()
    assert (change_fact.fact.version, change_fact.fact.valid_until) == (1, None)


def test_a_private_fact_is_hidden_by_those_who_decide(change_fact, editor):
    assert change_fact(editor, act="private").status_code == 400
    assert change_fact(act="private").status_code == 200
    change_fact.fact.refresh_from_db()
    assert change_fact.fact.state == FactStatus.HIDDEN


def test_the_sources_that_the_answer_used_come_first_and_the_rest_folds(
    client, owner, reply, with_receipt, remember, django_assert_max_num_queries
):
    texts = ["Ana owns search.", "The replica in Oslo stays for nine days.", "Ben pays for lunch."]
    days = [
        remember(f"- {text}", granularity="day", period_key=f"2026-02-0{number}")
        for number, text in enumerate(texts, start=1)
    ]
    reply = with_receipt(("bank", [item("day", day) for day in days]))
    reply.text = "Yes, in Oslo, for nine days."
    reply.save()
    client.force_login(owner)
    with django_assert_max_num_queries(13):
        html = compact(client.get(reverse("reply-sources", args=[reply.pk])).content.decode())
    likely, folded = html.split("Everything in the prompt")
    assert "Likely used" in likely
    assert "The replica in Oslo" in likely
    assert "Ben pays" not in likely
    assert all(text in folded for text in texts)


def test_the_link_counts_by_kind():
    items = [("day", 2), ("gist", 1), ("fact", 1), ("chunk", 2), ("block", 0)]
    section = {"items": [{"kind": kind} for kind, count in items for _ in range(count)]}
    receipt = {"sections": [{"name": "bank"} | section, {"name": "history", "items": [{}]}]}
    assert used_groups(receipt) == [
        ("memory", "3 memories"),
        ("fact", "1 fact"),
        ("quote", "2 quotes"),
    ]
    assert used_groups({"sections": []}) == []


def test_the_sources_of_one_kind_are_shown_alone(client, with_receipt, remember, project, owner):
    day = remember("- The replica stays", granularity="day")
    pinned = blocks.put(project, None, "rules", "Be brief.", owner)
    reply = with_receipt(("blocks", [item("block", pinned)]), ("bank", [item("day", day)]))
    client.force_login(owner)
    url = reverse("reply-sources", args=[reply.pk])
    html = compact(client.get(url, {"kind": "memory", "part": "drawer"}).content.decode())
    assert "The replica stays" in html and "Be brief." not in html
    assert '<a class="chip num" href="' + url + '?kind=block"' in html
    assert (
        '<a class="chip num" href="' + url + '?kind=memory" data-drawer-link aria-current' in html
    )
    assert "Be brief." in client.get(url, {"kind": "anything"}).content.decode()
    fact = client.get(url, {"kind": "fact"}).content.decode()
    assert "These sources were forgotten, or you cannot see them." in fact


def test_the_former_addresses_lead_to_the_sources(client, api, reply, owner):
    client.force_login(owner)
    for base, user in (("", client), ("/api/v1", api(owner))):
        answer = user.get(f"{base}/messages/{reply.pk}/told/")
        assert (answer.status_code, answer["Location"]) == (
            301,
            f"{base}/messages/{reply.pk}/sources/",
        )


def test_an_entry_in_two_sections_has_the_lines_of_each(member, two_lines, with_receipt):
    part, whole = item("conversation", two_lines) | {"lines": [1], "of": 2}, item("gist", two_lines)
    sections = readable_sections(with_receipt(("bank", [part]), ("gists", [whole])).receipt, member)
    [bank], [gist] = (section.sources for section in sections)
    assert bank.texts == ["Ben pays."]
    assert gist.texts == ["It stays for seven days.", "Ben pays."]
    # A line is changed by its index, which is only valid for one of the rows.
    assert bank.key and not gist.key
