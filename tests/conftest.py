"""Fixtures of every test: a real PostgreSQL in a temporary folder, and a fixed cast."""

import gc
import math
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Generator, Iterator
from contextlib import ExitStack
from fcntl import LOCK_EX, flock
from functools import cache
from pathlib import Path
from urllib.parse import quote

import psycopg
import pytest
from django.utils import translation
from hypothesis import settings as hypothesis_settings

from tests.bucket import Bucket
from tests.connector import Connector
from tests.receiver import Receiver
from tests.scripted import ScriptedModel
from tests.shape import parts
from tests.xdist_order import dealt

# Before Django reads its settings; also what each worker of a parallel run inherits.
OUR_OWN_DATA = "STRATA_TEST_DATA" not in os.environ
if OUR_OWN_DATA:
    os.environ["STRATA_DATA_DIR"] = os.environ["STRATA_TEST_DATA"] = tempfile.mkdtemp(
        prefix="strata-test-"
    )
if OUR_OWN_DATA or not parts.is_wanted():
    os.environ |= {"DATABASE_URL": "", "CELERY_BROKER_URL": ""}
for name in (
    "STRATA_CHAT_MODEL",
    "STRATA_SYSTEM_MODEL",
    "STRATA_OUTBOUND_ALLOW",
    "STRATA_SIGNUP",
    "STRATA_EMAIL_URL",
    "STRATA_OIDC_ISSUER",
    "STRATA_CACHE_URL",
    "STRATA_TRUSTED_PROXIES",
):
    os.environ[name] = ""
os.environ["OPENAI_API_KEY"] = "test"
# Tests ask more often than people; those of the rates set their own.
for name in ("READS", "WRITES", "REPLIES", "PAGES"):
    os.environ[f"STRATA_RATE_{name}"] = "off"
# Named here and not in pyproject.toml: pytest-django would read the settings before this file.
os.environ["DJANGO_SETTINGS_MODULE"] = "config.settings"

# The hundreds of processes that tests start need not compile Strata each for itself.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

# Speed is not measured beside other tests.
collect_ignore = [] if os.environ.get("STRATA_BENCH") else ["bench"]

TESTS = Path(__file__).parent

# In the tables that shards would have: tests/sharding.
SHARDED = os.environ.get("STRATA_SHARDED", "") not in ("", "0")

# `make test` passes --hypothesis-profile=thorough; a run by hand answers in seconds.
hypothesis_settings.register_profile("quick", max_examples=20, deadline=None)
hypothesis_settings.register_profile("thorough", max_examples=150, deadline=None)
hypothesis_settings.load_profile("quick")

# The last process of a parallel run to leave stops the server.
OPEN = ExitStack()
DATA_DIR = Path(os.environ["STRATA_DATA_DIR"])
TEMPLATE = "strata_template"


@pytest.hookimpl(tryfirst=True)
def pytest_configure(config) -> None:
    import django

    if config.option.basetemp is None:
        # The folder that all runs share is closed to others, such as the user as whom PostgreSQL
        # runs for root, whenever another run begins.
        config.option.basetemp = str(DATA_DIR / "tests")
    if OUR_OWN_DATA and parts.is_wanted():
        start_database()
        os.environ |= OPEN.enter_context(parts.in_front_of(DATA_DIR))
    django.setup()
    from tests import static_files, truncation

    truncation.quickly()
    static_files.once()


@cache
def start_database() -> None:
    """Start the embedded server, once for all processes of a run, and keep it until they end.

    Its database `strata_template` has all tables, and each process copies it.
    """
    from config.postgres import server
    from tests.server import migrated

    address = quote(str(server.socket_directory(DATA_DIR)), safe="")
    with (DATA_DIR / "template.lock").open("w") as lock_file:
        flock(lock_file, LOCK_EX)
        is_new = not server.database_folder(DATA_DIR).exists()
        if is_new:
            folder = server.database_folder(migrated())
            subprocess.run(["cp", "-a", folder, DATA_DIR], check=True)
        OPEN.enter_context(server.attached(DATA_DIR))
        if is_new:
            url = f"postgresql://postgres@/{{}}?host={address}"
            with psycopg.connect(url.format("template1"), autocommit=True) as connection:
                connection.execute(f"ALTER DATABASE postgres RENAME TO {TEMPLATE}")
                connection.execute("CREATE DATABASE postgres")
            with psycopg.connect(url.format(TEMPLATE)) as connection:
                connection.execute("TRUNCATE auth_user RESTART IDENTITY CASCADE")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    # Commands that a test starts find the data folder with its database, as in an installation.
    if {mark.name for mark in item.iter_markers()} & {"process", "docs"}:
        start_database()


# The marks of whole folders; single files set `pytestmark`.
MARKS = {
    "access": "schema",
    "bounds": "fault",
    "deploy": "docs",
    "docs": "docs",
    "e2e": "browser",
    "operations": "process",
    "torture": "fault",
}


@pytest.hookimpl(tryfirst=True)
def pytest_itemcollected(item: pytest.Item) -> None:
    if mark := MARKS.get(item.path.relative_to(TESTS).parts[0]):
        item.add_marker(mark)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items[:] = dealt(items, TESTS, int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1")))


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    # All that is imported and collected stays: a million objects that each collection of garbage
    # would look at in vain, a third of the time of collecting and a tenth of that of all tests.
    gc.disable()
    try:
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def pytest_unconfigure() -> None:
    OPEN.close()
    if OUR_OWN_DATA:
        shutil.rmtree(DATA_DIR, ignore_errors=True)


@pytest.fixture(scope="session")
def django_db_modify_db_settings(django_db_modify_db_settings_parallel_suffix) -> None:
    """Start the database for the first test that needs it."""
    from django.db import connection

    start_database()
    connection.settings_dict["TEST"]["TEMPLATE"] = TEMPLATE


@pytest.fixture(autouse=True)
def quick_passwords(settings) -> None:
    """Real password hashes take half a second each, on purpose."""
    settings.PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]


@pytest.fixture(autouse=True)
def the_last_page_was_english(settings) -> None:
    """A page in German sets the language of its thread, also for the tests after it."""
    translation.activate(settings.LANGUAGE_CODE)


@pytest.fixture(autouse=True)
def limits_and_prices_are_known(monkeypatch) -> None:
    """There are none until a test saves one: reading that now and then would be a query more."""
    from chat.providers import limits, prices

    for module, name, empty in ((limits, "_any_limit", False), (prices, "_set_prices", {})):
        monkeypatch.setattr(module, "CACHE_S", math.inf)
        monkeypatch.setattr(module, name, (1.0, empty))


@pytest.fixture(autouse=True)
def visits_are_noted(monkeypatch) -> None:
    """They are not: the first page that a browser asks for would take more queries than others."""
    from projects.accounts import browser_sessions

    monkeypatch.setattr(browser_sessions, "VISIT_INTERVAL_S", math.inf)


@pytest.fixture(autouse=True)
def server_models_are_read(monkeypatch) -> None:
    """They are: the first page of a test would take more queries than others."""
    from projects.models import server

    monkeypatch.setattr(server, "CACHE_S", math.inf)
    monkeypatch.setattr(server, "_saved", (1.0, ("", "")))


@pytest.fixture(autouse=True)
def woken(monkeypatch) -> list[dict]:
    """How often, and with which options, the broker was asked to have something indexed: at once
    after each change.
    """
    from memory import wakeups
    from memory.tasks import run_indexing

    monkeypatch.setattr(wakeups, "_send_reading", lambda: None)
    calls: list[dict] = []
    monkeypatch.setattr(wakeups, "_send_indexing", lambda: wakeups.send(run_indexing))
    monkeypatch.setattr(run_indexing, "apply_async", lambda **options: calls.append(options))
    return calls


@pytest.fixture(scope="session")
def model_server() -> Iterator[ScriptedModel]:
    with ScriptedModel() as server:
        yield server


@pytest.fixture
def scripted(model_server, monkeypatch, settings) -> ScriptedModel:
    """A scripted model that answers wherever a project has no model of its own."""
    model_server.reset()
    monkeypatch.setenv("OPENAI_BASE_URL", model_server.base_url)
    settings.CHAT_MODEL = "openai-chat:scripted"
    settings.SYSTEM_MODEL = "openai-chat:scripted"
    return model_server


@pytest.fixture
def connector(monkeypatch) -> Connector:
    """Records who is connected to, and lets through what goes to receivers of the test's own."""
    return Connector(monkeypatch)


@pytest.fixture
def receiver() -> Iterator[Receiver]:
    with Receiver() as new_receiver:
        yield new_receiver


@pytest.fixture
def bucket(receiver: Receiver, settings, monkeypatch) -> Bucket:
    """Where files lie: a bucket in place of the data folder."""
    from config.settings.files import in_bucket

    monkeypatch.setenv("AWS_ACCESS_KEY_ID", "key")
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "secret")
    settings.S3_BUCKET = "strata"
    settings.STORAGES = settings.STORAGES | {
        "default": in_bucket("strata", receiver.url, "eu-central-1")
    }
    receiver.reply = new_bucket = Bucket()
    return new_bucket


@pytest.fixture
def empty_schedule(transactional_db) -> Iterator[None]:
    """No periodic tasks; what migrations wrote is back afterwards."""
    from django_celery_beat.models import PeriodicTask

    stored_tasks = list(PeriodicTask.objects.all())
    PeriodicTask.objects.all().delete()
    yield
    PeriodicTask.objects.all().delete()
    PeriodicTask.objects.bulk_create(stored_tasks)


@pytest.fixture
def person(db, django_user_model) -> Callable:
    def make(name: str):
        return django_user_model.objects.create_user(name, f"{name}@example.org", "pass-word-1")

    return make


@pytest.fixture
def owner(person):
    return person("olive")


@pytest.fixture
def editor(person, project):
    return _member(person("edgar"), project, "editor")


@pytest.fixture
def viewer(person, project):
    return _member(person("vera"), project, "viewer")


@pytest.fixture
def stranger(person):
    return person("stan")


@pytest.fixture
def project(owner):
    from projects.services import create_project

    return create_project(owner, name="Billing", slug="billing")


def _member(user, project, role: str):
    from projects.models import Membership

    Membership.objects.create(project=project, user=user, role=role)
    return user


@pytest.fixture
def api() -> Callable:
    """A REST client for a user, with a real token, used just now; keywords go to the token."""
    from django.utils import timezone
    from rest_framework.test import APIClient

    from projects.models import Token

    def client(user, **fields) -> APIClient:
        api_client = APIClient()
        _, token = Token.issue(user, **{"last_used_at": timezone.now()} | fields)
        api_client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
        return api_client

    return client


if SHARDED:

    @pytest.fixture(scope="session")
    def django_db_setup(django_db_setup, django_db_blocker) -> None:
        """The tables below Project in partitions by project, and a guard over who asks them."""
        from tests.sharding import rehearsal

        with django_db_blocker.unblock():
            rehearsal.begin()

    @pytest.fixture(autouse=True)
    def every_query_names_its_project() -> Iterator[None]:
        from tests.sharding import guard

        guard.refused.clear()
        yield
        assert guard.refused == []
