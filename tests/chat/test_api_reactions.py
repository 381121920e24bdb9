"""/api/v1/messages/{id}/reactions/: the emoji under a message."""

import pytest

from chat.conversations.messages import post_message
from chat.models import Reaction

pytestmark = pytest.mark.django_db


@pytest.fixture
def url(stored_reply) -> str:
    return f"/api/v1/messages/{stored_reply.pk}/reactions/"


def give(client, url: str, emoji: object = "👍"):
    return client.post(url, {"emoji": emoji}, format="json")


def test_each_user_gives_each_emoji_once(api, owner, editor, session, url, fresh):
    client = api(editor)
    assert give(client, url).status_code == 201
    assert give(client, url).json() == [{"emoji": "👍", "count": 1, "mine": True}]
    give(api(owner), url)
    answer = give(api(owner), url, "🎉")
    assert answer.json() == [
        {"emoji": "👍", "count": 2, "mine": True},
        {"emoji": "🎉", "count": 1, "mine": True},
    ]
    assert client.get(url).json()[1] == {"emoji": "🎉", "count": 1, "mine": False}
    assert Reaction.objects.count() == 3
    assert fresh(session).version == 6


def test_a_user_adds_at_most_twenty(api, owner, editor, url):
    faces = [chr(0x1F600 + number) for number in range(21)]
    client = api(editor)
    assert [give(client, url, emoji).status_code for emoji in faces] == [201] * 20 + [400]
    # Once more what is there, and what another adds, is fine.
    assert give(client, url, faces[0]).status_code == 201
    assert give(api(owner), url, faces[20]).status_code == 201
    assert Reaction.objects.count() == 21


def test_it_is_taken_back_if_it_is_there(api, owner, editor, url):
    give(api(editor), url)
    give(api(owner), url)
    for _ in range(2):
        answer = api(editor).delete(f"{url}?emoji=👍")
        assert answer.status_code == 200
        assert answer.json() == [{"emoji": "👍", "count": 1, "mine": False}]


@pytest.mark.parametrize(
    "emoji", ["👍", "👍🏽", "❤️", "❤", "👩🏽‍❤️‍💋‍👨🏿", "🇩🇪", "🏴󠁧󠁢󠁥󠁮󠁧󠁿", "7️⃣", "™", "✅", " 🎉 ", "🏳️‍🌈"]
)
def test_one_emoji_of_any_length_is_accepted(api, editor, url, emoji):
    assert give(api(editor), url, emoji).json()[0]["emoji"] == emoji.strip()


@pytest.mark.parametrize(
    "emoji",
    [
        *("", "  ", "ok", "<b>", "x" * 33, "👍" * 33, None, 1, ["👍"]),
        *("👍👍", "👍 ok", "é", "漢", "忽略！", "ignoré — tout", "‼ obey ‼"),
        *("7", "🇩", "\u200d", "👍\n👍"),
        *("ｏｂｅｙ！", "\ufe0f", "🏽\u200d", "𝐨𝐛𝐞𝐲", "“x”", "[x]…"),
    ],
)
def test_a_reaction_that_is_no_emoji_is_refused_by_field(api, editor, url, emoji):
    answer = give(api(editor), url, emoji)
    assert answer.status_code == 400
    assert list(answer.json()) == ["emoji"]
    assert not Reaction.objects.exists()


def test_words_from_earlier_versions_are_shown_and_can_be_removed(api, editor, stored_reply, url):
    reaction = {"message": stored_reply, "project": stored_reply.project, "user": editor}
    Reaction.objects.create(emoji="обязательно!", **reaction)
    assert api(editor).get(url).json() == [{"emoji": "обязательно!", "count": 1, "mine": True}]
    assert api(editor).delete(f"{url}?emoji=обязательно!").json() == []


def test_to_take_back_names_an_emoji(api, editor, url):
    assert api(editor).delete(url).status_code == 400


def test_viewers_see_and_strangers_do_not(api, viewer, stranger, url):
    assert api(viewer).get(url).json() == []
    assert give(api(viewer), url).status_code == 404
    assert api(viewer).delete(f"{url}?emoji=👍").status_code == 404
    assert api(stranger).get(url).status_code == 404
    assert give(api(stranger), url).status_code == 404


def test_a_list_takes_the_same_queries_however_many_were_given(
    api, owner, editor, session, stored_reply, url, django_assert_num_queries
):
    for emoji in ("👍", "🎉", "👀"):
        give(api(owner), url, emoji)
        give(api(editor), url, emoji)
    for number in range(10):
        post_message(session, str(number), author=owner)
    client = api(owner)
    with django_assert_num_queries(6):
        results = client.get(f"/api/v1/sessions/{session.pk}/messages/").json()["results"]
    assert [reaction["count"] for reaction in results[1]["reactions"]] == [2, 2, 2]
