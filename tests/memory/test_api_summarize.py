"""/api/v1/sessions/{id}/summarize/: a summary now."""

import pytest

from chat.models import Session, Visibility
from memory.tasks import summarise_session

pytestmark = pytest.mark.django_db(transaction=True)


@pytest.fixture
def session(project, owner) -> Session:
    return Session.objects.create(project=project, creator=owner, visibility=Visibility.PROJECT)


@pytest.fixture
def queued(monkeypatch) -> list[tuple]:
    calls: list[tuple] = []
    monkeypatch.setattr(summarise_session, "delay", lambda *args, **how: calls.append((args, how)))
    return calls


def url(pk) -> str:
    return f"/api/v1/sessions/{pk}/summarize/"


def test_a_writer_has_it_summarised_now(api, editor, session, queued):
    answer = api(editor).post(url(session.pk))
    assert (answer.status_code, answer.json()) == (202, {"queued": True})
    assert queued == [((str(session.pk),), {"force": True})]


def test_viewers_and_strangers_get_404(api, viewer, stranger, session, queued):
    assert api(viewer).post(url(session.pk)).status_code == 404
    assert api(stranger).post(url(session.pk)).status_code == 404
    assert queued == []


def test_a_session_that_is_not_there_is_404(api, owner, project, queued):
    assert api(owner).post(url("0190163d-8694-739b-aea5-966c26f8ad91")).status_code == 404
    assert api(owner).get(url("0190163d-8694-739b-aea5-966c26f8ad91")).status_code == 405
