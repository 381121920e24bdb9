"""How a page that is open is brought up to date."""

import re

import pytest
from asgiref.sync import async_to_sync, sync_to_async
from django.test import AsyncClient

from chat.conversations.edits import delete, edit, react
from chat.conversations.messages import draft, post_message, post_messages
from chat.conversations.sessions import update_session
from tests.html import compact

pytestmark = pytest.mark.django_db(transaction=True)


def test_the_turns_alone_bring_a_page_up_to_date(client, owner, session, url):
    post_messages(session, [draft(f"Number {n}.", author=owner) for n in range(1, 121)])
    client.force_login(owner)
    text = client.get(f"{url}?part=turns&since=15").content.decode()
    assert "<html" not in text
    assert f'data-version="{session.version}"' in text
    assert 'data-title="The cutover"' in text
    assert text.count("<article") == 106
    assert "Number 15." in text
    assert "Number 14." not in text
    assert "?through=14#latest" in text
    assert client.get(f"{url}?part=turns&since=x").status_code == 404


def test_a_turn_has_another_key_when_it_looks_different(client, owner, editor, session, url):
    posted = post_message(session, "When?", author=owner)
    client.force_login(owner)

    def key() -> str:
        text = client.get(f"{url}?part=turns").content.decode()
        return re.search(r'data-key="(\w+)"', text)[1]

    keys = [key()]
    react(posted, editor, "👍", True)
    keys.append(key())
    react(posted, owner, "👍", True)
    keys.append(key())
    edit(posted, "When, please?", owner)
    keys.append(key())
    delete(posted)
    keys.append(key())
    update_session(session, status="closed")
    keys.append(key())
    assert len(set(keys)) == len(keys)
    assert key() == keys[-1]


def test_the_parts_around_the_turns_are_updated_too(client, owner, editor, project, session, url):
    def parts(user) -> str:
        client.force_login(user)
        return client.get(f"{url}?part=turns").content.decode()

    text = parts(owner)
    assert 'data-foot="open"' in text
    assert f'aria-current="page" href="{url}">The cutover</a>' in compact(text)
    update_session(session, status="closed", title="Renamed", archived=True, remembered=False)
    text = parts(owner)
    assert 'data-foot="closed"' in text
    assert f'action="{url}reopen/"' in text
    assert 'name="content"' not in text
    assert 'name="title" value="Renamed"' in text
    assert ">archived<" in text and ">not remembered<" in text
    assert "aria-current" not in text
    text = parts(editor)
    assert 'data-foot="closed"' in text
    assert "reopen" not in text and "chat-settings" not in text
    update_session(session, visibility="private")
    client.force_login(editor)
    assert client.get(f"{url}?part=turns").status_code == 404
    assert client.get(f"{url}events/").status_code == 404


def test_a_page_receives_each_version(owner, editor, session, url):
    async def listen() -> list[str]:
        client = AsyncClient()
        await client.aforce_login(owner)
        response = await client.get(f"{url}events/?version={session.version}")
        assert response["Content-Type"] == "text/event-stream"
        received_items = []
        async for part in response.streaming_content:
            received_items.append(part.decode())
            if len(received_items) == 1:
                await sync_to_async(post_message)(session, "Hello", author=editor)
            elif received_items[-1].startswith("event"):
                return received_items
        return received_items

    received = async_to_sync(listen)()
    assert received[0] == ": ping\n\n"
    assert received[-1] == "event: version\ndata: 1\n\n"


def test_strangers_receive_no_version(client, stranger, owner, session, url):
    client.force_login(stranger)
    assert client.get(f"{url}events/").status_code == 404
    assert client.get(f"{url}?part=turns").status_code == 404
    client.force_login(owner)
    assert client.get(f"{url}events/?version=x").status_code == 404
