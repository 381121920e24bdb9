"""The world of tests/access/world.py, built once for all that is asked in it."""

from collections.abc import Iterator

import pytest


@pytest.fixture(scope="module")
def world(django_db_setup, django_db_blocker, tmp_path_factory) -> Iterator:
    from django.db import connection, transaction
    from django.test import override_settings

    from tests.access.world import World

    usual = override_settings(MEDIA_ROOT=tmp_path_factory.mktemp("files"))
    with django_db_blocker.unblock(), usual, transaction.atomic():
        created_world = World()
        # What was forgotten in it has them checked at once from then on.
        connection.cursor().execute("SET CONSTRAINTS ALL DEFERRED")
        yield created_world
        transaction.set_rollback(True)


@pytest.fixture(autouse=True)
def broker(monkeypatch) -> None:
    """One that takes what is queued; there is none beside tests."""
    from memory.tasks import summarise_session

    monkeypatch.setattr(summarise_session, "delay", lambda *_, **how: None)
