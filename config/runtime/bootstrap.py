"""What must be there before processes start: tables, the broker's schema, a first user."""

import secrets
import time
from collections.abc import Callable
from io import StringIO

import psycopg
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection

from config import embedded
from projects.languages import search_languages

# Seconds in which a server that is started beside Strata may come.
PATIENCE = 30.0

Say = Callable[[str], None]


def prepare(say: Say, with_demo: bool = False) -> None:
    """Brings tables and broker up to date, and makes the first user and the demo project.

    Raises CommandError for a setting that only the database can tell to be wrong.
    """
    if settings.HTTPS and not settings.ALLAUTH_TRUSTED_PROXY_COUNT:
        say(
            "STRATA_URL is https:// and STRATA_TRUSTED_PROXIES is 0: behind a proxy that ends TLS,"
            " every page leads to itself. Set it to the number of proxies."
        )
    if settings.DATABASE_URL:
        _check_database()
    _make_tables()
    _check_search_language()
    if settings.CELERY_BROKER_URL.startswith("pgmq"):
        embedded.install_broker(settings.CELERY_BROKER_URL)
    _create_first_user(say)
    if with_demo:
        _create_demo_project(say)
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL has it


def _check_database() -> None:
    """Waits for the server, and tells why nobody can connect: the pool would not."""
    end = time.monotonic() + PATIENCE
    while True:
        try:
            psycopg.connect(settings.DATABASE_URL, connect_timeout=round(PATIENCE)).close()
            return
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError) and time.monotonic() < end:
                time.sleep(1)
                continue
            reason = _first_line(error)
            raise CommandError(f"DATABASE_URL leads to no database: {reason}.") from error


def _make_tables() -> None:
    try:
        call_command("migrate", verbosity=0, interactive=False)
    except DatabaseError as error:
        reason = _first_line(error)
        advice = (
            " PostgreSQL needs pgvector, and a superuser who runs CREATE EXTENSION vector in this"
            " database."
            if "vector" in reason
            else ""
        )
        raise CommandError(f"The tables could not be made: {reason}.{advice}") from error


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def _check_search_language() -> None:
    known = search_languages()
    if settings.SEARCH_LANGUAGE not in known:
        raise CommandError(
            f"STRATA_SEARCH_LANGUAGE takes a text search configuration of PostgreSQL: "
            f"{', '.join(known)}"
        )


def _create_first_user(say: Say) -> None:
    users = get_user_model().objects
    if users.exists():
        return
    password = settings.ADMIN_PASSWORD or secrets.token_urlsafe(12)
    users.create_superuser("admin", password=password)
    shown = "the one in STRATA_ADMIN_PASSWORD" if settings.ADMIN_PASSWORD else password
    say(f"Sign in as admin. The password, shown only this once: {shown}")


def _create_demo_project(say: Say) -> None:
    """The demo project of the first administrator, unless there is one already."""
    from memory.demo import SLUG
    from projects.models import Project

    if Project.objects.filter(slug=SLUG).exists():
        return
    say("Making the demo project; this takes some seconds")
    call_command("make_demo", stdout=StringIO())
