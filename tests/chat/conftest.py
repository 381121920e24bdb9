"""A shared chat with a question and its answer."""

import pytest


@pytest.fixture
def session(project, editor):
    from chat.models import Session

    return Session.objects.create(project=project, creator=editor, title="The cutover")


@pytest.fixture
def question(session, editor):
    from chat.conversations.messages import post_message

    return post_message(session, "When is the cutover?", author=editor)


@pytest.fixture
def stored_reply(session, question):
    from chat.conversations.messages import post_message

    return post_message(session, "In May.", role="assistant")


@pytest.fixture
def fresh():
    """The row as it is now."""
    return lambda row: type(row).objects.get(pk=row.pk)
