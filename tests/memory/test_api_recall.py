"""/api/v1/projects/{slug}/recall/."""

import pytest

from chat.conversations.messages import draft, post_messages
from chat.models import Visibility
from memory.recall import indexing
from tests.memory.recall_helpers import AT, talk

pytestmark = pytest.mark.django_db

URL = "/api/v1/projects/billing/recall/"
CUTOVER = "The cutover to the new database is on the third of March."
BILLING = "The platform team owns billing from now on."


def results(api, user, **params) -> list[dict]:
    answer = api(user).get(URL, params)
    assert answer.status_code == 200, answer.json()
    return answer.json()["results"]


def test_it_finds_messages(api, project, owner):
    session = talk(project, owner, CUTOVER)
    [result] = results(api, owner, q="When is the cutover?")
    assert result["text"] == CUTOVER
    assert result["session"] == str(session.pk)
    assert (result["first_seq"], result["last_seq"]) == (1, 1)
    assert result["speaker"] == "olive"
    assert result["occurred_at"] == AT.isoformat().replace("+00:00", "Z")
    assert result["tokens"] > 0 and result["score"] and result["signals"]
    assert result["source_id"] == f"{session.pk}:1-1"


def test_a_budget_and_a_limit_are_kept(api, project, owner):
    talk(project, owner, CUTOVER)
    talk(project, owner, BILLING)
    assert len(results(api, owner, q="cutover billing")) == 2
    assert len(results(api, owner, q="cutover billing", limit=1)) == 1
    assert sum(it["tokens"] for it in results(api, owner, q="cutover", token_budget=30)) <= 30
    assert results(api, owner, q="cutover", token_budget=1) == []


def test_filters_are_kept(api, project, owner):
    session = talk(project, owner, CUTOVER)
    assert results(api, owner, q="cutover", since="2026-03-02T00:00Z") == []
    assert results(api, owner, q="cutover", exclude_session=session.pk) == []
    assert results(api, owner, q="cutover", author="nobody") == []
    assert results(api, owner, q="cutover", source="note") == []
    filters = {"until": "2026-03-02T00:00Z", "session": session.pk, "author": "olive"}
    assert len(results(api, owner, q="cutover", source="turn", **filters)) == 1


def test_speakers_without_an_account_are_found_by_name(api, project, owner):
    session = talk(project, owner, "The gate is closed.")
    drafts = [
        draft("The cutover is in May.", author_name="Emi Sato", created_at=AT),
        draft("The cutover is in June.", author_name="Olive Oyl", created_at=AT),
    ]
    post_messages(session, drafts)
    indexing.catch_up()

    def speakers_found(name: str) -> list[str]:
        return [result["speaker"] for result in results(api, owner, q="cutover", author=name)]

    assert speakers_found("Emi Sato") == speakers_found("emi") == ["Emi Sato"]
    # A username that is also a name.
    assert set(speakers_found("olive")) == {"olive", "Olive Oyl"}
    assert speakers_found("Em") == speakers_found("nobody") == []
    assert results(api, owner, q="cutover", author="emi", source="fact") == []


def test_without_a_question_it_is_the_most_recent(api, project, owner):
    talk(project, owner, CUTOVER)
    assert [result["text"] for result in results(api, owner)] == [CUTOVER]


def test_a_member_does_not_find_what_is_private(api, project, owner, viewer):
    project.share_raw_turns = True
    project.save()
    talk(project, owner, CUTOVER, visibility=Visibility.PRIVATE)
    shared = talk(project, owner, BILLING)
    assert [it["session"] for it in results(api, viewer, q="cutover")] == [str(shared.pk)]


@pytest.mark.parametrize(
    "params",
    [
        {"token_budget": 0},
        {"token_budget": "many"},
        {"limit": 0},
        {"limit": 10_000},
        {"since": "yesterday"},
        {"session": "x"},
        {"source": "rumour"},
        {"q": "x" * 2_001},
    ],
)
def test_an_invalid_query_is_refused_by_field(api, owner, project, params):
    answer = api(owner).get(URL, params)
    assert answer.status_code == 400
    assert list(answer.json()) == list(params)


def test_a_stranger_gets_404(api, stranger, project):
    assert api(stranger).get(URL, {"q": "cutover"}).status_code == 404


def test_a_token_for_another_project_gets_404(api, owner, project):
    from projects.services import create_project

    other = create_project(owner, name="Other")
    assert api(owner, project=other).get(URL, {"q": "cutover"}).status_code == 404
