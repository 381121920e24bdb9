"""The memory bank as pages."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from chat.conversations.messages import draft, post_messages
from chat.models import Role, Session, Visibility
from chat.models.sessions import SessionStatus
from memory.models import Cursor, Entry, EntryStatus
from memory.models.idle import MAX_UNSUMMARISED_TOKENS
from memory.templatetags.layers import bullets
from tests.html import compact

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 12, 10, tzinfo=UTC)


@pytest.fixture
def session(project, owner) -> Session:
    chat_session = Session.objects.create(
        project=project, creator=owner, title="The cutover", visibility=Visibility.PROJECT
    )
    post_messages(
        chat_session,
        [
            draft("Does the replica stay?", author=owner, created_at=AT),
            draft("For **seven** days.", role=Role.ASSISTANT, created_at=AT),
            draft("Not covered yet.", author=owner, created_at=AT),
        ],
    )
    return chat_session


@pytest.fixture
def entry(session) -> Entry:
    return written(session, "- The replica stays seven days\n- until 10 March")


def written(session: Session, summary: str, first_seq: int = 1, **fields) -> Entry:
    return Entry.objects.create(
        project=session.project,
        session=session,
        granularity="conversation",
        first_seq=first_seq,
        last_seq=first_seq + 1,
        summary=summary,
        **DEFAULTS | {"period_key": "2026-03-12"} | fields,
    )


DEFAULTS = {
    "zone": "UTC",
    "tokens": 30,
    "message_count": 2,
    "first_source_at": AT,
    "last_source_at": AT,
    "written_by": "openai-chat:scripted",
}


def digest(project, granularity: str, key: str, summary: str, **fields) -> Entry:
    return Entry.objects.create(
        project=project,
        granularity=granularity,
        period_key=key,
        summary=summary,
        **DEFAULTS | {"sources_hash": "of its children"} | fields,
    )


def page(client, user, path: str) -> str:
    client.force_login(user)
    response = client.get(path)
    assert response.status_code == 200
    return response.content.decode()


def test_an_empty_bank_says_how_it_fills(client, owner, project):
    text = page(client, owner, "/projects/billing/memory/")
    assert "No memories yet" in text
    assert "0 of 2,000 tokens" in text


def test_entries_stand_by_layer_and_period_with_the_text_they_come_to(
    client, owner, entry, project
):
    digest(project, "week", "2026-W10", "- Cutover done")
    text = page(client, owner, "/projects/billing/memory/")
    assert text.index("Thu 12 Mar 2026") < text.index("Week 10, 2–8 Mar 2026")
    assert f'href="/projects/billing/memory/{entry.pk}/"' in text
    assert "[March 2026]" in text


def test_a_bar_is_as_long_as_its_tokens_without_a_style(client, owner, entry):
    text = compact(page(client, owner, "/projects/billing/memory/"))
    # 30 of the 180 tokens of a full bar.
    assert '<rect width="17" height="8"/></svg>30 tokens' in text
    assert "a full bar is 180 tokens" in text
    assert " style=" not in text and "<style" not in text


def test_one_token_is_in_the_singular(client, owner, entry):
    Entry.objects.update(tokens=1)
    text = compact(page(client, owner, "/projects/billing/memory/"))
    assert "</svg>1 token</span>" in text
    assert "<span>1 token</span>" in compact(
        page(client, owner, f"/projects/billing/memory/{entry.pk}/")
    )


@pytest.mark.parametrize(
    ("state", "expected"),
    [
        (EntryStatus.STALE, "Waiting to be rewritten"),
        (EntryStatus.FADED, "Not sent (no room)"),
    ],
)
def test_a_state_is_marked(client, owner, entry, state, expected):
    Entry.objects.update(state=state)
    text = page(client, owner, "/projects/billing/memory/")
    assert f'class="block conversation {state}"' in text
    assert f'<b class="chip">{expected}</b>' in text


@pytest.mark.parametrize("state", [EntryStatus.ABSORBED, EntryStatus.HIDDEN])
def test_absorbed_and_hidden_entries_are_not_drawn(client, owner, entry, state):
    Entry.objects.update(state=state)
    assert f'id="e-{entry.pk}"' not in page(client, owner, "/projects/billing/memory/")


def test_the_headings_and_the_legend_show_what_occurs(client, owner, project, entry):
    def text() -> str:
        return compact(page(client, owner, "/projects/billing/memory/"))

    assert "Chats<span" in text()
    for absent in ("Weeks<span", "◆ pinned", "Months<span"):
        assert absent not in text()
    digest(project, "week", "2026-W10", "- Cutover done", pinned=True)
    digest(project, "month", "2026-01", "- Before")
    for present in ("Weeks<span", "◆ pinned", "Months<span"):
        assert present in text()


def test_extractive_entries_are_marked(client, owner, entry):
    assert "exact quotes" not in page(client, owner, "/projects/billing/memory/")
    Entry.objects.update(written_by="extractive")
    assert '<i class="chip">exact quotes</i>' in page(client, owner, "/projects/billing/memory/")


def test_a_summary_is_a_list_of_its_points(client, owner, entry):
    path = f"/projects/billing/memory/{entry.pk}/"
    text = page(client, owner, path)
    assert "<li>The replica stays seven days</li><li>until 10 March</li>" in text
    Entry.objects.update(summary="No list - just words\n- and this")
    assert '<div class="message-text plain">No list - just words\n- and this</div>' in page(
        client, owner, path
    )


@pytest.mark.parametrize(
    ("summary", "expected"),
    [
        ("- one\n  goes on\n\n* two", ["one goes on", "two"]),
        ("• **bold** stays", ["**bold** stays"]),
        ("**bold** is no mark", []),
        ("-5 degrees", []),
        ("", []),
    ],
)
def test_points_are_what_has_a_mark(summary, expected):
    assert bullets(summary) == expected


def test_entries_that_do_not_fit_are_listed_with_the_reason(client, owner, project, entry):
    project.bank_max_tokens = 100
    project.save()
    long = digest(project, "month", "2026-01", "- " + "a long story " * 200)
    text = page(client, owner, "/projects/billing/memory/")
    section = text.partition("Not sent (no room)")[2].partition("</details>")[0]
    assert str(long.pk) in section
    assert "over budget" in section
    assert str(entry.pk) not in section


def test_waiting_sessions_are_listed_with_next_try_and_last_error(client, owner, session):
    Cursor.objects.update(
        failures=2, next_try_at=AT, last_error="The model did not answer in time."
    )
    text = page(client, owner, "/projects/billing/memory/")
    assert "The cutover" in text
    assert "failed 2 times, next try 12 Mar, 10:00" in text
    assert "The model did not answer in time." in text


def waiting(client, user) -> str:
    text = page(client, user, "/projects/billing/memory/")
    return text.partition("Waiting to be summarised")[2].partition("</section>")[0]


def test_a_chat_is_due_when_it_has_been_silent_long_enough(client, owner, session):
    Session.objects.update(last_activity_at=timezone.now() + timedelta(minutes=5))
    assert "starting soon" not in waiting(client, owner)
    assert "scheduled for " in waiting(client, owner)


@pytest.mark.parametrize(
    "change",
    [
        lambda: Cursor.objects.update(unsummarised_tokens=MAX_UNSUMMARISED_TOKENS),
        lambda: Session.objects.update(status=SessionStatus.CLOSED),
        lambda: Session.objects.update(last_activity_at=AT),
    ],
    ids=["full", "closed", "idle"],
)
def test_a_full_a_closed_and_an_idle_chat_are_due_now(client, owner, session, change):
    Session.objects.update(last_activity_at=timezone.now())
    change()
    assert "starting soon" in waiting(client, owner)


def test_the_title_of_a_private_chat_is_hidden_from_others(client, editor, session, entry):
    Session.objects.update(visibility=Visibility.PRIVATE)
    text = page(client, editor, "/projects/billing/memory/")
    assert "A private chat" in text
    assert "The cutover" not in text


def test_an_entry_leads_to_its_messages(client, editor, session, entry):
    text = page(client, editor, f"/projects/billing/memory/{entry.pk}/")
    assert "Does the replica stay?" in text
    assert "<strong>seven</strong>" in text
    assert "Not covered yet." not in text
    assert f"/projects/billing/chats/{session.pk}/?through=1#m1" in text


def test_the_messages_of_a_private_chat_are_for_its_creator(client, owner, editor, session, entry):
    Session.objects.update(visibility=Visibility.PRIVATE)
    path = f"/projects/billing/memory/{entry.pk}/"
    assert "Does the replica stay?" in page(client, owner, path)
    text = page(client, editor, path)
    assert "The replica stays seven days" in text
    assert "in a private chat" in text
    assert "Does the replica stay?" not in text
    assert "The cutover" not in text


def test_a_digest_leads_to_its_children_and_they_lead_back(client, owner, project, entry):
    day = digest(project, "day", "2026-03-12", "- A day")
    Entry.objects.filter(pk=entry.pk).update(parent=day, state=EntryStatus.ABSORBED)
    assert f"/memory/{entry.pk}/" in page(client, owner, f"/projects/billing/memory/{day.pk}/")
    text = page(client, owner, f"/projects/billing/memory/{entry.pk}/")
    assert "Merged into" in text
    assert f"/memory/{day.pk}/" in text


def test_a_proposal_that_may_quote_stays_with_its_speaker(client, owner, editor, session, entry):
    Session.objects.update(visibility=Visibility.PRIVATE)
    Entry.objects.update(state=EntryStatus.PROPOSED)
    path = f"/projects/billing/memory/{entry.pk}/"
    assert "The replica stays seven days" in page(client, owner, "/projects/billing/memory/")
    assert "The replica stays seven days" in page(client, owner, path)
    assert str(entry.pk) not in page(client, editor, "/projects/billing/memory/")
    assert client.get(path).status_code == 404


def test_a_digest_of_something_hidden_is_withheld(client, owner, project):
    day = digest(project, "day", "2026-03-12", "- Gone", state=EntryStatus.STALE, withheld=True)
    for path in ("/projects/billing/memory/", f"/projects/billing/memory/{day.pk}/"):
        text = page(client, owner, path)
        assert "Hidden until it is rewritten" in text
        assert "Gone" not in text


def test_hidden_entries_are_shown_to_editors(client, owner, viewer, project, entry):
    day = digest(project, "day", "2026-03-12", "- A day")
    Entry.objects.filter(pk=entry.pk).update(parent=day, state=EntryStatus.HIDDEN)
    path = f"/projects/billing/memory/{entry.pk}/"
    assert "Hidden" in page(client, owner, path)
    assert str(entry.pk) not in page(client, viewer, f"/projects/billing/memory/{day.pk}/")
    assert client.get(path).status_code == 404


def test_summaries_are_shown_as_text(client, owner, entry):
    Entry.objects.update(summary="- <script>alert(1)</script> **x**")
    for path in ("/projects/billing/memory/", f"/projects/billing/memory/{entry.pk}/"):
        text = page(client, owner, path)
        assert "<script>alert" not in text
        assert "&lt;script&gt;" in text
        assert "**x**" in text


def test_a_stranger_gets_404(client, stranger, entry):
    client.force_login(stranger)
    assert client.get("/projects/billing/memory/").status_code == 404
    assert client.get(f"/projects/billing/memory/{entry.pk}/").status_code == 404


def test_an_entry_is_found_in_its_own_project_only(client, owner, entry):
    from projects.services import create_project

    create_project(owner, name="Other", slug="other")
    client.force_login(owner)
    assert client.get(f"/projects/other/memory/{entry.pk}/").status_code == 404


def test_the_page_takes_the_same_queries_however_much_there_is(client, owner, session, entry):
    client.force_login(owner)

    def queries() -> int:
        # The first look after a change renders the bank anew.
        client.get("/projects/billing/memory/")
        with CaptureQueriesContext(connection) as captured:
            client.get("/projects/billing/memory/")
        return len(captured)

    few = queries()
    for number in range(10):
        other = Session.objects.create(project=session.project, creator=owner)
        post_messages(other, [draft("Something", author=owner)])
        written(other, "- More", period_key=(AT - timedelta(days=number)).date().isoformat())
    assert queries() == few
