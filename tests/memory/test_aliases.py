"""The filter by author finds a speaker by a form of address: Kate for Emi."""

from uuid import UUID

import pytest

from chat.conversations.messages import draft, post_messages
from chat.models import Session, Visibility
from memory.forgetting.service import ForgetScope, forget
from memory.recall import RecallScope, indexing, recall
from memory.recall.speakers import ADDRESS, speaker_filters
from tests.memory.recall_helpers import AT

pytestmark = pytest.mark.django_db

TALK = [
    ("Dan", "Hey Kate, how was the trip to the lake with your sister?"),
    ("Emi Sato", "It was great, we swam every day and hiked up the ridge."),
    ("Dan", "That sounds lovely. Thanks for sending the pictures, Kate!"),
    ("Emi Sato", "You are welcome, the one with the heron is my favourite."),
]


def converse(project, creator, *turns, visibility=Visibility.PROJECT) -> Session:
    session = Session.objects.create(project=project, creator=creator, visibility=visibility)
    post_messages(session, [draft(text, author_name=name, created_at=AT) for name, text in turns])
    indexing.catch_up()
    return session


def speakers_by(project, viewer, name: str, query: str = "the lake, pictures, heron") -> set[str]:
    scope = RecallScope(project, viewer, **speaker_filters(name))
    return {result.speaker for result in recall(scope, query, limit=50)}


@pytest.fixture(autouse=True)
def quotable(project):
    project.share_raw_turns = True
    project.save()


def test_a_speaker_is_found_by_a_form_of_address(project, owner, editor):
    converse(project, owner, *TALK)
    assert speakers_by(project, editor, "kate") == {"Emi Sato"}
    assert speakers_by(project, editor, "Kate", query="") == {"Emi Sato"}
    assert speakers_by(project, editor, "Emi") == {"Emi Sato"}
    # Nobody is addressed by these words of the talk.
    assert speakers_by(project, editor, "sister") == speakers_by(project, editor, "Kat") == set()


def test_the_api_and_the_search_page_find_it(api, client, project, owner):
    converse(project, owner, *TALK)
    answer = api(owner).get(f"/api/v1/projects/{project.slug}/recall/?q=heron&author=Kate")
    assert {result["speaker"] for result in answer.json()["results"]} == {"Emi Sato"}
    client.force_login(owner)
    page = client.get(f"/projects/{project.slug}/search/?q=heron&author=Kate")
    assert "is my favourite" in page.content.decode()


def test_one_answer_is_not_enough(project, owner):
    converse(project, owner, *TALK[:2], ("Dan", "The lake is far."))
    assert speakers_by(project, owner, "Kate") == set()


def test_two_speakers_with_as_many_answers_are_nobody(project, owner):
    other = [(name.replace("Emi Sato", "Olive"), text) for name, text in TALK]
    converse(project, owner, *TALK)
    converse(project, owner, *other)
    assert speakers_by(project, owner, "Kate") == set()


def test_only_the_next_turn_is_an_answer(project, owner):
    between = ("Olive", "I was at the lake last summer as well, it rained.")
    converse(project, owner, TALK[0], between, *TALK[1:])
    assert speakers_by(project, owner, "Kate") == set()


def test_the_name_of_a_speaker_is_no_form_of_address(project, owner):
    kate = ("Kate", "I never saw the pictures from the lake that you mention.")
    converse(project, owner, *TALK, kate)
    assert speakers_by(project, owner, "Kate") == {"Kate"}


def test_unreadable_messages_show_no_form_of_address(project, owner, editor):
    session = converse(project, owner, *TALK, visibility=Visibility.PRIVATE)
    converse(project, owner, ("Emi Sato", "The lake has herons, here are the pictures of them."))
    assert speakers_by(project, owner, "Kate") == {"Emi Sato"}
    assert speakers_by(project, editor, "Kate") == set()
    Session.objects.filter(pk=session.pk).update(visibility=Visibility.PROJECT)
    assert speakers_by(project, editor, "Kate") == {"Emi Sato"}


def test_forgetting_the_messages_forgets_the_form_of_address(project, owner):
    session = converse(project, owner, *TALK)
    assert speakers_by(project, owner, "Kate") == {"Emi Sato"}
    first: UUID = session.messages.get(seq=1).pk
    forget(project, ForgetScope(message=first), owner)
    assert speakers_by(project, owner, "Emi") == {"Emi Sato"}
    assert speakers_by(project, owner, "Kate") == set()


@pytest.mark.parametrize(
    ("text", "names"),
    [
        ("Hey Kate, how are you?", ["Kate"]),
        ("Thanks, Kate!", ["Kate"]),
        ("Well done. Thanks for all that, Kate. See you.", ["Kate"]),
        ("Danke dir, Käte!", ["Käte"]),
        ("We flew to Rome, Italy!", []),
        ("Hey, Kate told me about it.", []),
        ("They, Kate!", []),
    ],
)
def test_which_words_are_forms_of_address(text, names):
    assert ADDRESS.findall(text) == names
