"""/api/v1/projects/{slug}/memory/: the bank as it stands in every prompt."""

import pytest
from django.utils import timezone

from chat.conversations.messages import draft, post_messages
from chat.models import Session, Visibility
from memory.layers.bank import item_tokens
from memory.layers.bank_cache import rendered_bank
from memory.layers.lines import Line
from memory.models import Entry

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/memory/"


@pytest.fixture
def remember(project, owner):
    def make(summary: str, **fields) -> Entry:
        session = Session.objects.create(
            project=project, creator=owner, title="Cutover", visibility=Visibility.PROJECT
        )
        defaults = {
            "project": project,
            "session": session,
            "granularity": "conversation",
            "period_key": "2026-03-03",
            "zone": "UTC",
            "first_seq": 1,
            "last_seq": 4,
            "message_count": 4,
            "first_source_at": "2026-03-03T09:00Z",
            "last_source_at": "2026-03-03T09:10Z",
            "written_by": "extractive",
            "tokens": 0,
        }
        entry = Entry.objects.create(summary=summary, **defaults | fields)
        entry.refresh_from_db()
        entry.tokens = item_tokens(entry.as_item())
        entry.save()
        return entry

    return make


def test_an_empty_memory_is_empty(api, viewer):
    payload = api(viewer).get(URL).json()
    assert (payload["text"], payload["tokens"], payload["left_out"]) == ("", 0, [])
    assert payload["max_tokens"] == 2000


def test_it_is_the_text_with_its_tokens(api, viewer, remember):
    remember("The cutover is on 3 March.")
    payload = api(viewer).get(URL).json()
    assert "The cutover is on 3 March." in payload["text"]
    assert 0 < payload["tokens"] <= payload["max_tokens"]


def test_its_version_changes_with_the_text_only(api, viewer, remember):
    client = api(viewer)
    remember("The cutover is on 3 March.")
    first = client.get(URL).json()["version"]
    assert client.get(URL).json()["version"] == first
    remember("The replica stays for a week.")
    assert client.get(URL).json()["version"] != first


def test_entries_that_did_not_fit_are_listed_with_the_reason(api, viewer, remember):
    long = remember("Nothing but words. " * 600)
    [left] = api(viewer).get(URL).json()["left_out"]
    assert left["id"] == str(long.pk)
    assert left["reason"]


def test_a_stranger_gets_404(api, stranger, project):
    assert api(stranger).get(URL).status_code == 404


def test_many_entries_take_no_more_queries(api, viewer, remember, django_assert_max_num_queries):
    for number in range(20):
        remember(f"Fact {number}.")
    client = api(viewer)
    client.get(URL)
    with django_assert_max_num_queries(5):
        client.get(URL)


@pytest.fixture
def sourced(remember):
    """Return an entry with a line of message 1 of its session, and one of message 2."""

    def make(visibility: str = Visibility.PROJECT) -> Entry:
        entry = remember("")
        owner = entry.session.creator
        chat = Session.objects.create(
            project=entry.project, creator=owner, title="Source", visibility=visibility
        )
        posted = post_messages(chat, [draft(text, author=owner) for text in "ab"])
        texts = ("The cutover is on 3 March.", "Ben pays for the replica.")
        entry.set_lines(
            Line(text, entry.day, sources=(message.pk,))
            for text, message in zip(texts, posted, strict=True)
        )
        entry.save()
        return entry

    return make


def test_each_shown_line_names_its_messages(api, viewer, project, sourced):
    entry = sourced()
    first, second = entry.read_lines()
    [shown] = api(viewer).get(URL).json()["shown"]
    assert [line["messages"] for line in shown["shown_lines"]] == [
        [str(first.sources[0])],
        [str(second.sources[0])],
    ]
    project.bank_max_tokens = rendered_bank(project).tokens - 1
    project.save()
    for parameters in ({}, {"as_of": timezone.now().isoformat()}):
        [shown] = api(viewer).get(URL, parameters).json()["shown"]
        [line] = shown["shown_lines"]
        assert (shown["lines"], shown["of"], line["text"]) == (1, 2, first.text)
        assert line["messages"] == [str(first.sources[0])]


def test_messages_of_a_private_chat_are_only_counted(api, viewer, owner, sourced):
    sourced(Visibility.PRIVATE)
    for reader, expected in ((owner, 1), (viewer, 0)):
        [shown] = api(reader).get(URL).json()["shown"]
        assert [(len(line["messages"]), line["sources"]) for line in shown["shown_lines"]] == [
            (expected, 1)
        ] * 2


def test_the_messages_of_many_lines_take_no_more_queries(
    api, viewer, sourced, django_assert_max_num_queries
):
    for _ in range(5):
        sourced()
    client = api(viewer)
    client.get(URL)
    with django_assert_max_num_queries(6):
        shown = client.get(URL).json()["shown"]
    assert len([line for it in shown for line in it["shown_lines"] if line["messages"]]) > 1
