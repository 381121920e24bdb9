"""Edit, pin, hide and approve an entry on its page and on the memory page."""

from datetime import UTC, datetime

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from chat.models import Session, Visibility
from memory.layers.bank import item_tokens
from memory.models import Entry, EntryRevision, EntryStatus
from memory.moderation import entry_operations

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 12, 10, tzinfo=UTC)
NOBODYS = "0190163d-8694-739b-aea5-966c26f8ad91"
MEMORY = "/projects/billing/memory/"
ACT = f"{MEMORY}act/"


@pytest.fixture
def session(project, editor) -> Session:
    return Session.objects.create(
        project=project, creator=editor, title="A chat", visibility=Visibility.PROJECT
    )


@pytest.fixture
def entry(session) -> Entry:
    return written(session)


def written(session: Session, first_seq: int = 1, **fields) -> Entry:
    entry = Entry.objects.create(
        project=session.project,
        session=session,
        granularity="conversation",
        first_seq=first_seq,
        last_seq=first_seq,
        summary="- It was decided.",
        period_key="2026-03-12",
        zone="UTC",
        tokens=0,
        message_count=1,
        first_source_at=AT,
        last_source_at=AT,
        written_by="scripted",
        **fields,
    )
    entry.tokens = item_tokens(entry.as_item())
    entry.save()
    return entry


@pytest.fixture
def propose(entry):
    """Has the entry wait for review, as one of a private session or a shared one."""

    def make(visibility: Visibility = Visibility.PROJECT) -> Entry:
        Session.objects.update(visibility=visibility)
        Entry.objects.update(state=EntryStatus.PROPOSED)
        return entry

    return make


@pytest.fixture
def change(client):
    """Does it at once, as the page that asks does when it is confirmed."""

    def run(user, entry: Entry, action: str, **fields):
        client.force_login(user)
        sent = {"entries": entry.pk, "action": action, "reason": "other", "confirmed": "yes"}
        return client.post(ACT, sent | fields, follow=True)

    return run


def text_of(response) -> str:
    return response.content.decode()


def page(client, user, entry: Entry) -> str:
    client.force_login(user)
    return text_of(client.get(f"{MEMORY}{entry.pk}/"))


def state(entry: Entry) -> str:
    return Entry.objects.get(pk=entry.pk).state


def test_an_edit_keeps_the_text_before_and_shows_it(change, editor, entry):
    response = change(editor, entry, "edit", text="- It was decided otherwise.\r\n- At last.")
    entry.refresh_from_db()
    assert entry.summary == "- It was decided otherwise.\n- At last."
    assert entry.written_by == "edgar"
    assert response.redirect_chain == [(f"{MEMORY}{entry.pk}/", 302)]
    earlier = text_of(response).partition("Earlier versions")[2]
    assert "It was <del>decided.</del>" in earlier


def test_the_same_text_sent_by_a_browser_is_no_edit(change, editor, entry):
    Entry.objects.update(summary="- One\n- Two")
    change(editor, entry, "edit", text="- One\r\n- Two\r\n")
    assert not EntryRevision.objects.exists()


@pytest.mark.parametrize(
    ("summary", "complaint"),
    [("", "This field is required."), ("x" * 5001, "at most 5000 characters")],
)
def test_a_bad_text_is_refused_beside_the_field_and_kept_there(
    change, editor, entry, summary, complaint
):
    response = change(editor, entry, "edit", text=summary)
    assert response.status_code == 400
    assert complaint in text_of(response)
    assert summary in text_of(response)
    assert not EntryRevision.objects.exists()


def test_a_pinned_text_that_grows_too_long_is_refused_beside_the_field(
    change, owner, project, entry
):
    project.bank_max_tokens = 100
    project.save()
    change(owner, entry, "pin")
    response = change(owner, entry, "edit", text="Many words were said about it. " * 20)
    assert response.status_code == 400
    assert "half of the budget" in text_of(response)


@pytest.mark.parametrize("fields", [{"withheld": True}, {"state": EntryStatus.HIDDEN}])
def test_an_entry_that_may_not_be_shown_is_not_edited(client, change, owner, entry, fields):
    Entry.objects.update(**fields)
    assert 'value="edit"' not in page(client, owner, entry)
    assert change(owner, entry, "edit", text="Mine.").status_code == 400
    entry.refresh_from_db()
    assert entry.summary == "- It was decided."


def test_an_entry_is_pinned_and_unpinned(change, editor, entry):
    assert 'value="unpin"' in text_of(change(editor, entry, "pin"))
    assert Entry.objects.get().pinned
    assert 'value="unpin"' not in text_of(change(editor, entry, "unpin"))
    assert not Entry.objects.get().pinned


def test_a_pin_beyond_the_budget_is_refused_with_the_reason(change, owner, project, entry):
    project.bank_max_tokens = 10
    project.save()
    assert "half of the budget" in text_of(change(owner, entry, "pin"))
    assert not Entry.objects.get().pinned


def test_an_editor_hides_and_an_owner_shows_again(client, change, owner, editor, entry):
    hidden = text_of(change(editor, entry, "hide"))
    assert state(entry) == "hidden"
    assert "An owner can show it again." in hidden
    assert "Only an owner can decide this." in text_of(change(editor, entry, "show"))
    assert state(entry) == "hidden"
    client.force_login(owner)
    listed = text_of(client.get(MEMORY)).partition(">Hidden<")[2]
    assert str(entry.pk) in listed
    assert "Hide" in text_of(change(owner, entry, "show"))
    assert state(entry) == "live"


def test_an_owner_approves_from_the_queue(client, change, owner, propose):
    entry = propose()
    client.force_login(owner)
    queue = text_of(client.get(MEMORY)).partition("Needs review")[2].partition("</section>")[0]
    assert "It was decided." in queue
    assert f'value="approve {entry.pk}"' in queue
    response = change(owner, entry, "approve", back=MEMORY)
    assert response.redirect_chain == [(MEMORY, 302)]
    assert "Needs review" not in text_of(response)
    assert state(entry) == "live"


def test_an_owner_rejects(change, owner, propose):
    entry = propose()
    change(owner, entry, "reject")
    entry.refresh_from_db()
    assert (entry.state, entry.withheld) == ("hidden", False)


@pytest.mark.parametrize("action", ["approve", "reject", "hide"])
def test_an_editor_decides_on_nothing_shared(client, change, editor, propose, action):
    entry = propose()
    assert 'value="approve"' not in page(client, editor, entry)
    client.force_login(editor)
    assert 'value="approve' not in text_of(client.get(MEMORY))
    change(editor, entry, action)
    assert state(entry) == "proposed"


def test_a_viewer_sees_no_queue_and_no_buttons(client, viewer, propose):
    entry = propose()
    assert "/memory/act/" not in page(client, viewer, entry)
    listed = text_of(client.get(MEMORY))
    assert "/memory/act/" not in listed
    assert 'id="review"' not in listed


def test_the_creator_of_a_private_chat_approves_its_proposals(client, change, editor, propose):
    entry = propose(Visibility.PRIVATE)
    assert "Once it is approved, all members can read it." in page(client, editor, entry)
    change(editor, entry, "approve")
    assert state(entry) == "live"


def test_nobody_else_decides_on_what_waits_from_a_private_chat(change, owner, propose):
    entry = propose(Visibility.PRIVATE)
    assert change(owner, entry, "approve").status_code == 404
    assert state(entry) == "proposed"


def test_a_rejected_proposal_of_a_private_chat_stays_unread(
    client, change, owner, editor, session, propose
):
    entry = propose(Visibility.PRIVATE)
    change(editor, entry, "edit", text="- Another secret.")
    change(editor, entry, "reject")
    assert state(entry) == "hidden"
    text = page(client, owner, entry)
    assert "Hidden until it is rewritten" in text
    assert "It was decided." not in text
    assert "secret" not in text
    # Shown again it is to be rewritten, and then waits for review anew.
    change(owner, entry, "show")
    assert state(entry) == "stale"


def test_text_removed_before_the_approval_is_read_by_nobody_else(
    client, change, owner, editor, propose
):
    entry = propose(Visibility.PRIVATE)
    change(editor, entry, "edit", text="- Less.")
    change(editor, entry, "approve")
    assert "was decided." in page(client, editor, entry)
    assert "was decided." not in page(client, owner, entry)


@pytest.mark.parametrize("action", ["approve", "reject", "show"])
def test_a_concurrent_decision_is_left_as_it_is(change, owner, entry, action):
    assert "already decided" in text_of(change(owner, entry, action))
    assert state(entry) == "live"


def test_an_unknown_action_is_refused(change, owner, entry):
    assert "This action does not exist." in text_of(change(owner, entry, "burn"))


@pytest.mark.parametrize("action", ["edit", "pin", "hide"])
def test_viewers_and_strangers_change_nothing(change, viewer, stranger, entry, action):
    for user in (viewer, stranger):
        assert change(user, entry, action, text="Mine.").status_code == 404
    entry.refresh_from_db()
    assert (entry.summary, entry.pinned, entry.state) == ("- It was decided.", False, "live")


def test_a_missing_entry_gets_404(client, owner, project):
    client.force_login(owner)
    assert client.post(ACT, {"action": "pin", "entries": NOBODYS}).status_code == 404


def test_a_reload_of_the_form_leads_to_the_queue(client, owner, entry):
    client.force_login(owner)
    assert client.get(ACT)["Location"] == f"{MEMORY}review/"


def test_an_anonymous_user_changes_nothing(client, entry):
    response = client.post(ACT, {"action": "hide", "entries": entry.pk})
    assert response["Location"].startswith("/accounts/login/")
    assert state(entry) == "live"


def test_the_pages_take_the_same_queries_however_much_waits(client, owner, session, propose):
    client.force_login(owner)
    entry = propose()
    entry_operations.edit(entry, "Another text.", owner)

    def queries() -> int:
        # The first look after a change renders the bank anew.
        client.get(MEMORY)
        with CaptureQueriesContext(connection) as captured:
            client.get(MEMORY)
            client.get(f"{MEMORY}{entry.pk}/")
        return len(captured)

    few = queries()
    for number in range(2, 8):
        written(session, number, state=EntryStatus.PROPOSED)
        written(session, number + 10, state=EntryStatus.HIDDEN)
        entry_operations.edit(entry, f"Text {number}", owner)
    assert queries() == few
