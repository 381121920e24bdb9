"""/api/v1/projects/{slug}/activity/: what was done, as JSON."""

from decimal import Decimal

import pytest

from chat.models import Session, Visibility
from memory.models import ActivityVerb
from memory.models.activity import record_activity

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/activity/"
NOBODYS = "0190163d-8694-739b-aea5-966c26f8ad91"


def test_an_activity_has_all_its_numbers(api, owner, project, entry):
    act = record_activity(
        project.pk,
        ActivityVerb.REWRITTEN,
        by=owner,
        entry_id=entry.pk,
        session_id=entry.session_id,
        granularity="conversation",
        period_key="2026-03-12",
        reason="wrong",
        related=[entry.pk],
        calls=1,
        input_tokens=9,
        output_tokens=2,
        cost=Decimal("0.000123"),
        duration_ms=40,
    )
    [result] = api(owner).get(URL).json()["results"]
    assert result.pop("at")
    assert result == {
        "id": str(act.pk),
        "verb": "rewritten",
        "by": "olive",
        "whom": None,
        "role_before": "",
        "role_after": "",
        "entry": str(entry.pk),
        "fact": None,
        "session": str(entry.session_id),
        "message": None,
        "granularity": "conversation",
        "period_key": "2026-03-12",
        "related": [str(entry.pk)],
        "count": 1,
        "reason": "wrong",
        "receipt": {},
        "calls": 1,
        "input_tokens": 9,
        "output_tokens": 2,
        "cost": "0.000123",
        "duration_ms": 40,
    }


def test_the_newest_come_first_page_by_page(api, owner, project):
    created_ids = [
        str(record_activity(project.pk, ActivityVerb.PINNED, by=owner).pk) for _ in range(3)
    ]
    client = api(owner)
    first = client.get(URL, {"page_size": 2}).json()
    second = client.get(first["next"]).json()
    ids = [result["id"] for result in first["results"] + second["results"]]
    assert ids == created_ids[::-1]
    assert second["next"] is None


def test_it_is_filtered(api, owner, project, entry):
    record_activity(project.pk, ActivityVerb.PINNED, entry_id=entry.pk)
    record_activity(project.pk, ActivityVerb.HIDDEN, session_id=entry.session_id)
    client = api(owner)

    def verbs(**query) -> list[str]:
        return [result["verb"] for result in client.get(URL, query).json()["results"]]

    assert verbs(verb="pinned") == ["pinned"]
    assert verbs(entry=entry.pk) == ["pinned"]
    assert verbs(session=entry.session_id) == ["hidden"]
    assert verbs(entry=NOBODYS) == []


@pytest.mark.parametrize("query", [{"verb": "dreamt"}, {"entry": "x"}, {"session": "x"}])
def test_a_bad_filter_is_a_400(api, owner, project, query):
    response = api(owner).get(URL, query)
    assert response.status_code == 400
    assert set(response.json()) == set(query)


def test_only_the_creator_sees_which_private_chat_it_was(api, owner, editor, project, chat):
    Session.objects.update(visibility=Visibility.PRIVATE)
    message = chat.messages.first()
    record_activity(project.pk, ActivityVerb.READ, session_id=chat.pk, message_id=message.pk)
    [mine] = api(editor).get(URL).json()["results"]
    assert (mine["session"], mine["message"]) == (str(chat.pk), str(message.pk))
    [theirs] = api(owner).get(URL).json()["results"]
    assert (theirs["session"], theirs["message"]) == (None, None)
    assert api(owner).get(URL, {"session": chat.pk}).json()["results"] == []
    assert len(api(editor).get(URL, {"session": chat.pk}).json()["results"]) == 1


def test_a_message_of_a_private_chat_is_not_named(api, owner, editor, project, chat):
    Session.objects.update(visibility=Visibility.PRIVATE)
    message = chat.messages.first()
    record_activity(project.pk, ActivityVerb.FORGOTTEN, message_id=message.pk)
    [mine] = api(editor).get(URL).json()["results"]
    [theirs] = api(owner).get(URL).json()["results"]
    assert (mine["message"], theirs["message"]) == (str(message.pk), None)


def test_viewers_read_it_and_it_is_not_written(api, viewer, project):
    client = api(viewer)
    assert client.get(URL).status_code == 200
    for method in (client.post, client.patch, client.delete):
        assert method(URL, {}, format="json").status_code == 405


def test_strangers_and_tokens_of_other_projects_get_404(api, owner, stranger, project):
    from projects.services import create_project

    other = create_project(owner, name="Other")
    assert api(stranger).get(URL).status_code == 404
    assert api(owner, project=other).get(URL).status_code == 404


def test_it_takes_the_same_queries_for_many(api, owner, project, entry, django_assert_num_queries):
    from django.db import connection
    from django.test.utils import CaptureQueriesContext

    client = api(owner)
    record_activity(project.pk, ActivityVerb.PINNED, by=owner, session_id=entry.session_id)
    client.get(URL)
    with CaptureQueriesContext(connection) as few:
        client.get(URL)
    for _ in range(9):
        record_activity(project.pk, ActivityVerb.PINNED, by=owner, session_id=entry.session_id)
    with django_assert_num_queries(len(few)):
        client.get(URL)
