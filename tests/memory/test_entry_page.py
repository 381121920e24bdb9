"""One entry: its texts compared, its lineage, its losses, and what was done to it."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.conversations.messages import draft, post_messages
from chat.models import Session, Visibility
from memory.models import ActivityVerb, Entry, EntryStatus
from memory.models.activity import record_activity
from memory.moderation import entry_operations
from memory.views import lineage

pytestmark = pytest.mark.django_db


@pytest.fixture
def read(client):
    def get(user, entry: Entry, query: str = "") -> str:
        client.force_login(user)
        response = client.get(f"/projects/billing/memory/{entry.pk}/{query}")
        assert response.status_code == 200
        return " ".join(response.content.decode().split())

    return get


def test_the_last_two_texts_stand_side_by_side(read, owner, entry):
    entry_operations.edit(entry, "- The replica stays ten days", owner)
    text = read(owner, entry)
    assert "stays <del>seven </del>days" in text
    assert "stays <ins>ten </ins>days" in text


def test_any_two_texts_are_compared(read, owner, entry):
    for summary in ("- The replica stays ten days", "- The replica went"):
        entry_operations.edit(entry, summary, owner)
        entry.refresh_from_db()
    text = read(owner, entry, "?from=1&to=2")
    assert "<del>seven </del>" in text
    assert "<ins>ten </ins>" in text
    assert "<ins>went</ins>" not in text
    # What is no revision of it is as good as none.
    assert "<ins>went</ins>" in read(owner, entry, "?from=x&to=99")


def test_text_is_escaped_in_the_comparison(read, owner, entry):
    entry_operations.edit(entry, "- <script>alert(1)</script>", owner)
    text = read(owner, entry)
    assert "<ins>&lt;script&gt;alert(1)&lt;/script&gt;</ins>" in text
    assert "<script>alert" not in text


def test_earlier_texts_of_a_private_chat_are_for_its_creator(read, owner, editor, entry):
    entry_operations.edit(entry, "- Less", editor)
    Session.objects.update(visibility=Visibility.PRIVATE)
    assert "seven" in read(editor, entry)
    assert "seven" not in read(owner, entry, "?from=1&to=2")


def test_its_chain_of_digests_is_shown(read, owner, entry, day, remember):
    week = remember("- A week", granularity="week", period_key="2026-W11")
    Entry.objects.filter(pk=day.pk).update(parent=week, state=EntryStatus.ABSORBED)
    up = read(owner, entry).partition("Merged into")[2].partition("</p>")[0]
    assert up.index(str(day.pk)) < up.index(str(week.pk))


def test_a_digest_is_followed_down_to_the_very_message(read, owner, entry, day, remember):
    week = remember("- A week", granularity="week", period_key="2026-W11")
    Entry.objects.filter(pk=day.pk).update(parent=week, state=EntryStatus.ABSORBED)
    text = read(owner, week)
    assert text.index(f"/memory/{day.pk}/") < text.index(f"/memory/{entry.pk}/")
    assert f"/projects/billing/chats/{entry.session_id}/?through=2#m2" in text
    assert "Does the replica stay up after it?" in text


def test_a_cut_tree_says_where_sources_are_missing(read, owner, entry, day, remember, monkeypatch):
    week = remember("- A week", granularity="week", period_key="2026-W11")
    other = remember("- Another day", granularity="day", period_key="2026-03-14")
    Entry.objects.filter(pk__in=[day.pk, other.pk]).update(parent=week, state=EntryStatus.ABSORBED)
    assert "Open it to see all sources." not in read(owner, week)
    monkeypatch.setattr(lineage, "MAX_ENTRIES", 2)
    text = read(owner, week)
    assert text.count("Open it to see all sources.") == 2
    assert "newest sources are listed" not in text
    monkeypatch.setattr(lineage, "MAX_ENTRIES", 1)
    assert "Only the 1 newest sources are listed." in read(owner, week)
    assert "Only the 1 newest sources are listed." in read(owner, week, "?part=drawer")


def test_messages_of_a_private_chat_are_not_followed_to(read, owner, editor, entry, day):
    Session.objects.update(visibility=Visibility.PRIVATE)
    text = read(owner, day)
    assert "in a private chat" in text
    assert "Does the replica stay up" not in text
    assert str(entry.session_id) not in text
    assert "Does the replica stay up" in read(editor, day)


def test_the_page_shows_losses_and_the_share_that_was_kept(read, owner, day):
    assert "Missing:" not in read(owner, day)
    Entry.objects.filter(pk=day.pk).update(
        particulars=42,
        losses=[
            {"kind": "identifier", "text": "OPS-4419"},
            {"kind": "date", "text": "<b>3 March</b>"},
        ],
    )
    text = read(owner, day)
    assert "40 of 42 names, dates, numbers" in text
    assert "<code>OPS-4419</code>, <code>&lt;b&gt;3 March&lt;/b&gt;</code>" in text
    Entry.objects.filter(pk=day.pk).update(withheld=True)
    assert "OPS-4419" not in read(owner, day)


def test_why_it_waits(read, owner, entry):
    Entry.objects.update(state=EntryStatus.PROPOSED, waits_because="instructions")
    assert "Reason for review: Contains instructions to a model" in read(owner, entry)


def test_the_page_shows_its_activity(read, owner, entry):
    record_activity(entry.project_id, ActivityVerb.REWRITTEN, entry_id=entry.pk, duration_ms=65_000)
    entry_operations.pin(entry, True, owner, "checked")
    text = read(owner, entry).partition("Changes")[2]
    assert "<b>olive</b> pinned" in text
    assert "Checked" in text
    assert "1 min 5 s" in text


def test_how_it_stood(read, owner, entry):
    entry_operations.set_hidden(entry, True, owner)
    text = read(owner, entry).partition("Earlier states")[2]
    assert text.index("Hidden") < text.index("In use")


def test_the_page_takes_the_same_queries_however_much_is_below(
    client, owner, project, remember, day
):
    client.force_login(owner)

    def queries() -> int:
        with CaptureQueriesContext(connection) as captured:
            client.get(f"/projects/billing/memory/{day.pk}/")
        return len(captured)

    few = queries()
    for number in range(8):
        chat = Session.objects.create(project=project, creator=owner, title=f"Chat {number}")
        post_messages(chat, [draft(f"Word {number}", author=owner), draft("And.", author=owner)])
        remember(f"- {number}", chat, parent=day, state=EntryStatus.ABSORBED)
    assert queries() == few
