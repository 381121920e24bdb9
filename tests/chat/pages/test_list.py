"""The page of a project: its chats, and where one begins."""

from datetime import UTC, datetime, timedelta

import pytest
from django.utils import timezone

from chat.conversations.messages import post_message
from chat.conversations.sessions import update_session
from chat.models import Session, Visibility
from tests.chat.pages.page_content import page, queries

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_project_shows_its_chats_and_where_to_begin(client, owner, session):
    text = page(client, owner, "/projects/billing/")
    assert "The cutover" in text
    assert 'name="content"' in text


def test_the_first_message_begins_a_chat(send, owner, project, scripted):
    scripted.say("It stays.")
    form = {"content": "Does the replica stay?", "visibility": "project"}
    response, _ = send(owner, "/projects/billing/chats/", form)
    chat_session = Session.objects.get()
    assert response["Location"] == f"/projects/billing/chats/{chat_session.pk}/#latest"
    assert (chat_session.title, chat_session.visibility) == (
        "Does the replica stay?",
        Visibility.PROJECT,
    )
    assert list(chat_session.messages.values_list("text", flat=True)) == [
        "Does the replica stay?",
        "It stays.",
    ]


def test_a_chat_is_shared_with_the_project_by_default(send, owner, project, scripted):
    send(owner, "/projects/billing/chats/", {"content": "Hello"})
    assert Session.objects.get().visibility == Visibility.PROJECT


def test_pinned_chats_come_first_and_archived_ones_behind_a_link(client, owner, project, session):
    pinned = Session.objects.create(project=project, creator=owner, title="Old", pinned=True)
    Session.objects.filter(pk=pinned.pk).update(last_activity_at=datetime(2020, 1, 1, tzinfo=UTC))
    text = page(client, owner, "/projects/billing/")
    assert text.index("Old") < text.index("The cutover")
    assert "1 Jan 2020, 00:00" in text
    assert "Archived chats" not in text
    update_session(session, archived=True)
    text = page(client, owner, "/projects/billing/")
    assert "The cutover" not in text
    assert 'href="?archived"' in text
    text = page(client, owner, "/projects/billing/?archived")
    assert "The cutover" in text
    assert "New chat" in text


def test_a_chat_of_five_days_ago_is_not_listed_under_this_week(client, owner, session):
    """It may be of the last calendar week."""
    Session.objects.update(last_activity_at=timezone.now() - timedelta(days=5))
    text = page(client, owner, "/projects/billing/")
    assert "Last 7 days" in text and "This week" not in text


def test_chats_are_found_and_the_words_marked(client, owner, editor, project, session):
    post_message(session, "The **exports** run at four.", author=owner)
    private = Session.objects.create(
        project=project, creator=owner, title="Secret exports", visibility=Visibility.PRIVATE
    )
    text = page(client, owner, "/projects/billing/?q=exp")
    assert "The <mark>exports</mark> run at four." in text
    assert f"/projects/billing/chats/{session.pk}/?through=1#m1" in text
    assert str(private.pk) in text
    text = page(client, editor, "/projects/billing/?q=exp")
    assert "Secret" not in text
    assert "<mark>exports</mark>" in text
    text = page(client, owner, "/projects/billing/?q=<script>")
    assert "No chats found." in text
    assert "<script>" not in text


def test_the_project_page_takes_the_same_queries_however_many_chats(
    client, owner, editor, project, session
):
    client.force_login(owner)
    few = queries(client, "/projects/billing/")
    for number in range(20):
        Session.objects.create(
            project=project,
            creator=[owner, editor][number % 2],
            title=f"Chat {number}",
            visibility=Visibility.PROJECT,
        )
    assert queries(client, "/projects/billing/") == few


def test_searching_takes_the_same_queries_however_much_is_found(client, owner, project, session):
    client.force_login(owner)
    post_message(session, "The exports", author=owner)
    few = queries(client, "/projects/billing/?q=exports")
    for number in range(10):
        more = Session.objects.create(project=project, creator=owner, title=str(number))
        post_message(more, "The exports", author=owner)
    assert queries(client, "/projects/billing/?q=exports") == few


def test_a_chat_is_begun_that_is_not_remembered(client, owner, project):
    client.force_login(owner)
    page = client.get("/projects/billing/").content.decode()
    assert 'name="unremembered"' in page
    client.post("/projects/billing/chats/", {"content": "Between us.", "unremembered": "on"})
    assert not Session.objects.get().remembered
