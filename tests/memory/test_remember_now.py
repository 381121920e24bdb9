"""Remember now: a chat is summarised on request, and the page shows the summary."""

from datetime import UTC, datetime
from uuid import UUID

import pytest
from django.urls import reverse

from chat.conversations.messages import post_message
from chat.models import Session, Visibility
from memory import leases, summary_requests
from memory.layers.conversations import summarise
from memory.models import Cursor
from memory.tasks import summarise_session
from tests.chat.pages.page_content import page
from tests.html import compact

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE = "The cutover of billing is on 3 March, and Ana owns it."


@pytest.fixture
def session(project, owner) -> Session:
    chat_session = Session.objects.create(
        project=project, creator=owner, visibility=Visibility.PROJECT
    )
    post_message(chat_session, MESSAGE, author=owner)
    return chat_session


@pytest.fixture
def queued(monkeypatch) -> list[str]:
    """The sessions whose summary was queued and is not written."""
    calls: list[str] = []
    monkeypatch.setattr(summary_requests, "SUMMARY_WAIT_S", 0)
    monkeypatch.setattr(summarise_session, "delay", lambda pk, force: calls.append(pk))
    return calls


@pytest.fixture
def worker(monkeypatch) -> None:
    """A worker that does each task at once."""

    def write(pk: str, force: bool) -> None:
        summarise(UUID(pk), datetime.now(UTC), force=force)

    monkeypatch.setattr(summarise_session, "delay", write)


def url(session: Session, query: str = "") -> str:
    return reverse("session-remember", args=[session.project.slug, session.pk]) + query


def test_the_page_of_a_chat_has_the_button(client, editor, viewer, session):
    chat_url = reverse("session", args=[session.project.slug, session.pk])
    assert "Remember now" in page(client, editor, chat_url)
    assert "Remember now" not in page(client, viewer, chat_url)


def test_the_summary_is_the_response_to_a_script(client, editor, session, worker):
    client.force_login(editor)
    html = compact(client.post(url(session, "?part")).content.decode())
    [entry] = session.entries.all()
    assert "Ana owns it" in html
    assert reverse("entry", args=[session.project.slug, entry.pk]) in html
    assert "data-remember-poll" not in html
    assert "<html" not in html


def test_a_form_leads_to_the_summary(client, editor, session, worker):
    client.force_login(editor)
    response = client.post(url(session), follow=True)
    assert response.redirect_chain == [(url(session, "?after=0"), 302)]
    html = compact(response.content.decode())
    assert "Ana owns it" in html
    assert "Back to chat" in html
    assert "<meta" not in html.partition("<body")[0].partition("<noscript>")[2]


def test_until_it_is_written_the_page_waits(client, editor, session, queued):
    client.force_login(editor)
    html = client.post(url(session, "?part")).content.decode()
    assert queued == [str(session.pk)]
    assert f'data-remember-poll="{url(session)}?part&amp;after=0"' in html
    assert "Writing the summary…" in html
    # Without JavaScript, the page loads itself again.
    assert '<meta http-equiv="refresh"' in page(client, editor, url(session, "?after=0"))

    assert summarise(session.pk, datetime.now(UTC), force=True)
    html = page(client, editor, url(session, "?part&after=0"))
    assert "Ana owns it" in html
    assert "data-remember-poll" not in html


def test_a_second_request_queues_nothing_while_the_first_is_at_work(
    client, editor, session, queued
):
    lease = leases.claim(Cursor.objects.all(), session.pk)
    client.force_login(editor)
    assert "Writing the summary…" in client.post(url(session, "?part")).content.decode()
    assert queued == []
    lease.fail("The model did not answer in time.")
    html = page(client, editor, url(session, "?part&after=0"))
    assert "The model did not answer in time." in html
    assert "data-remember-poll" not in html


def test_another_try_forgets_the_error_of_the_last(client, editor, session, queued):
    leases.claim(Cursor.objects.all(), session.pk).fail("The model did not answer in time.")
    client.force_login(editor)
    html = client.post(url(session, "?part")).content.decode()
    assert "did not answer" not in html
    assert "data-remember-poll" in html


def test_when_all_is_remembered_the_last_summary_is_shown(client, editor, session, queued):
    assert summarise(session.pk, datetime.now(UTC), force=True)
    client.force_login(editor)
    html = client.post(url(session, "?part")).content.decode()
    assert "There is nothing new to summarise." in html
    assert "Ana owns it" in html
    assert queued == []
    assert client.post(url(session)).url == url(session)
    assert "Ana owns it" in page(client, editor, url(session))


def test_a_chat_that_is_not_remembered_says_so(client, owner, session, queued):
    session.remembered = False
    session.save()
    post = session.messages.get()
    post.remembered = False
    post.save()
    Cursor.objects.update(unsummarised_messages=0)
    client.force_login(owner)
    html = client.post(url(session, "?part")).content.decode()
    assert "New messages are not remembered here." in html
    assert queued == []


def test_the_quotes_of_a_private_chat_wait_for_review(client, owner, session, worker):
    Session.objects.update(visibility=Visibility.PRIVATE)
    client.force_login(owner)
    html = compact(client.post(url(session, "?part")).content.decode())
    assert "Needs review: Quotes a private chat" in html


def test_without_a_broker_the_page_says_when_it_is_summarised(client, editor, session, monkeypatch):
    def away(*_, **how):
        raise ConnectionError("away")

    monkeypatch.setattr(summarise_session, "delay", away)
    client.force_login(editor)
    for query in ("?part", ""):
        html = client.post(url(session, query)).content.decode()
        assert "It will be written when nobody has sent a message for a while." in html
        assert "There is nothing to summarise" not in html


@pytest.mark.parametrize("after", ["x", "", "9" * 12])
def test_a_wrong_place_shows_the_last_summary(client, editor, session, after):
    assert summarise(session.pk, datetime.now(UTC), force=True)
    assert "Ana owns it" in page(client, editor, url(session, f"?after={after}"))


def test_viewers_and_strangers_get_404(client, viewer, stranger, session, queued):
    for user in (viewer, stranger):
        client.force_login(user)
        assert client.post(url(session)).status_code == 404
        assert client.get(url(session)).status_code == 404
    assert queued == []
