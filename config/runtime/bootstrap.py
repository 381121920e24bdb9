"""Preparation before processes start: tables, the broker's schema, the first user."""

import os
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from difflib import get_close_matches
from io import StringIO
from pathlib import Path
from pkgutil import iter_modules

import psycopg
from django.apps import apps
from django.conf import settings
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.db import DatabaseError, connection, transaction
from django.db.migrations.recorder import MigrationRecorder

from config import beat_schedule
from config.backup import restore_marker
from config.postgres import server
from config.settings import reference
from projects.core.database import PreparedQuery, own_connection
from projects.core.search_languages import search_languages

# A database server that starts together with Strata may take this long.
CONNECT_TIMEOUT_S = 30.0
# The key of an advisory lock, "STRATA" in ASCII and a number.
PREPARATION_LOCK = 0x5354524154410002
LOCK_RETRY_S = 0.2
# About 120 bits if the characters are random.
MIN_RANDOM_CHARS = 20
# A setting that pgvector has since version 0.8. Searches of large projects use it.
VECTOR_SETTING = "hnsw.iterative_scan"
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(%s)"

Print = Callable[[str], None]


def prepare(print_line: Print, with_demo: bool = False) -> None:
    """Update tables and broker, and create the first user and the demo project.

    Raises `CommandError`, also for settings that can only be checked against the database.
    """
    if settings.HTTPS and not settings.ALLAUTH_TRUSTED_PROXY_COUNT:
        print_line(
            "STRATA_URL begins with https://, but STRATA_TRUSTED_PROXIES is 0. Behind a proxy that"
            " terminates TLS, every page redirects to itself. Set STRATA_TRUSTED_PROXIES to the"
            " number of proxies."
        )
    declared = {name for group in reference.GROUPS for name, _, _ in reference.declared(group)}
    for name in sorted(os.environ.keys() - declared - {f"{name}_FILE" for name in declared}):
        # Other variables, such as those of the files in deploy/, may also begin with STRATA_.
        if name.startswith("STRATA_") and (similar := get_close_matches(name, declared, 1, 0.9)):
            print_line(f"{name} is not a setting and has no effect. Did you mean {similar[0]}?")
    for name, secret in (
        ("STRATA_SECRET_KEY", settings.SECRET_KEY),
        ("STRATA_METRICS_TOKEN", settings.METRICS_TOKEN),
    ):
        if len(secret) < MIN_RANDOM_CHARS:
            print_line(f"{name} is short enough to be guessed. Set it to a long random text.")
    if settings.DATABASE_URL:
        wait_for_database()
    with preparation_lock(print_line):
        _prepare_database(print_line, with_demo)
    # Otherwise each web process would compile them during its first reply.
    PreparedQuery.compile_all()
    connection.close()
    connection.close_pool()  # type: ignore[attr-defined]  # PostgreSQL has it


@contextmanager
def preparation_lock(print_line: Print) -> Iterator[None]:
    """Let one process at a time prepare the database. Others wait.

    A connection of its own holds the lock in a transaction, because with a pooler, the migrations
    use several server connections.
    """
    # Closed without a commit, which would fail if the connection was lost during long migrations.
    with closing(own_connection()) as guard:
        is_waiting = False
        # Try again in place of waiting in the query: CREATE INDEX CONCURRENTLY, in the process that
        # has the lock, would wait for the end of this query.
        while guard.execute(_TRY_LOCK, [PREPARATION_LOCK]).fetchone() != (True,):
            # Otherwise those who wait could use up a pooler's connections to the server.
            guard.rollback()
            if not is_waiting:
                print_line("Waiting for another process that prepares the database …")
            is_waiting = True
            time.sleep(LOCK_RETRY_S)
        for timeout in ("lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"):
            guard.execute(f"SET LOCAL {timeout} = 0")
        yield


def _prepare_database(print_line: Print, with_demo: bool) -> None:
    migrate()
    if not _has_vector_setting():
        raise CommandError(
            "The PostgreSQL of DATABASE_URL has an old pgvector. Install version 0.8 or later, and"
            " run ALTER EXTENSION vector UPDATE in this database."
        )
    if settings.SEARCH_LANGUAGE not in (known := search_languages()):
        raise CommandError(
            f"STRATA_SEARCH_LANGUAGE must be one of PostgreSQL's text search configurations: "
            f"{', '.join(known)}"
        )
    if settings.CELERY_BROKER_URL.startswith("pgmq"):
        server.install_broker(settings.CELERY_BROKER_URL)
    create_first_user(print_line)
    if with_demo:
        create_demo_project(print_line)


def _has_vector_setting() -> bool:
    # Without the transaction, a pooler could run the second query in another session, which has not
    # loaded the library and does not know its settings.
    with transaction.atomic(), connection.cursor() as cursor:
        cursor.execute("SELECT '[0]'::vector")
        cursor.execute("SELECT current_setting(%s, true) IS NOT NULL", [VECTOR_SETTING])
        return bool(cursor.fetchone()[0])


def wait_for_database() -> None:
    """Wait for the server. Unlike the pool, this reports why a connection fails."""
    deadline = time.monotonic() + CONNECT_TIMEOUT_S
    while True:
        try:
            psycopg.connect(settings.DATABASE_URL, connect_timeout=round(CONNECT_TIMEOUT_S)).close()
            return
        except psycopg.Error as error:
            if isinstance(error, psycopg.OperationalError) and time.monotonic() < deadline:
                time.sleep(1)
                continue
            reason = _first_line(error)
            raise CommandError(f"DATABASE_URL does not lead to a database: {reason}.") from error


def migrate() -> None:
    """Apply migrations, and add rows for new scheduled tasks. Raises `CommandError`."""
    try:
        restore_marker.block_migration("default")
        if unapplied_migrations():
            call_command("migrate", verbosity=0, interactive=False)
        else:
            beat_schedule.add_missing_tasks(apps)
    except DatabaseError as error:
        reason = _first_line(error)
        advice = (
            " PostgreSQL needs pgvector, and a superuser must run CREATE EXTENSION vector in this"
            " database."
            if "vector" in reason
            else ""
        )
        raise CommandError(f"The tables could not be created: {reason}.{advice}") from error


def unapplied_migrations() -> int:
    """Return the number of migrations that the database does not have.

    Only their names are compared. Django's own check loads all migrations, which takes a third of a
    second at each start.
    """
    applied = MigrationRecorder(connection).applied_migrations()
    return sum(
        (app.label, module.name) not in applied
        for app in apps.get_app_configs()
        if app.label not in settings.MIGRATION_MODULES
        for module in iter_modules([str(Path(app.path) / "migrations")])
    )


def _first_line(error: Exception) -> str:
    return str(error).strip().partition("\n")[0].rstrip(".")


def create_first_user(print_line: Print) -> None:
    users = get_user_model().objects
    if users.exists():
        return
    password = settings.ADMIN_PASSWORD or secrets.token_urlsafe(12)
    users.create_superuser("admin", password=password)
    if settings.ADMIN_PASSWORD:
        print_line("Sign in as admin with the password in STRATA_ADMIN_PASSWORD")
    else:
        print_line(f"Sign in as admin. The password, shown only this once: {password}")


def create_demo_project(print_line: Print) -> None:
    """Create the first administrator's demo project unless it exists."""
    from memory.demo import SLUG
    from projects.models import Project

    if Project.objects.filter(slug=SLUG).exists():
        return
    print_line("Creating the demo project; this takes some seconds")
    call_command("make_demo", stdout=StringIO())
