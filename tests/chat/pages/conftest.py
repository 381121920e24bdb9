"""A shared chat of the owner, and how forms are sent to it."""

import pytest
from asgiref.sync import async_to_sync


@pytest.fixture
def session(project, owner):
    from chat.models import Session, Visibility

    return Session.objects.create(
        project=project, creator=owner, title="The cutover", visibility=Visibility.PROJECT
    )


@pytest.fixture
def url(session) -> str:
    return f"/projects/billing/chats/{session.pk}/"


@pytest.fixture
def failed(session, owner):
    """A reply that failed."""
    from chat.conversations.generation import finalise
    from chat.conversations.messages import ask
    from chat.models import Status

    _, reply = ask(session, "When?", owner)
    finalise(reply, "", Status.FAILED, {"error": "The model did not answer in time."})
    return reply


@pytest.fixture
def send():
    """Posts a form as `user` in an event loop, as under ASGI, until every reply is said."""
    from django.test import AsyncClient

    from chat.streaming import live_replies

    def run(user, url: str, form: dict, accept: str = "text/html") -> tuple[object, str]:
        async def talk():
            client = AsyncClient()
            await client.aforce_login(user)
            response = await client.post(url, form, headers={"Accept": accept})
            body = ""
            if response.streaming:
                body = b"".join([part async for part in response.streaming_content]).decode()
            await live_replies.wait_for_all()
            return response, body

        return async_to_sync(talk)()

    return run
