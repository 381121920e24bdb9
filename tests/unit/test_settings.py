"""Environment variables: validation, secrets in files, and the documents written from them."""

from unittest.mock import Mock

import pytest

from config.settings import env, reference
from config.settings.api import LimitVariables
from config.settings.database import DatabaseVariables
from config.settings.env import load
from config.settings.files import FileVariables
from config.settings.models import ModelVariables, RecallVariables
from config.settings.observability import LogVariables
from config.settings.security import ServerVariables


@pytest.fixture
def secret_file(tmp_path):
    def write(text: str) -> str:
        path = tmp_path / "secret"
        path.write_text(text)
        return str(path)

    return write


@pytest.mark.parametrize(
    ("group", "name", "value", "takes"),
    [
        (ServerVariables, "PORT", "0", "a port number from 1 to 65535"),
        (ServerVariables, "PORT", "http", "a port number from 1 to 65535"),
        (ServerVariables, "STRATA_DEBUG", "perhaps", "on or off"),
        (ServerVariables, "STRATA_URL", "https://strata.example.org/chat", "an address without"),
        (ServerVariables, "STRATA_OUTBOUND_ALLOW", "10.0.0.0/99", "networks such as"),
        (ServerVariables, "STRATA_ALLOWED_HOSTS", "a.example b.example", "host names separated by"),
        (ServerVariables, "STRATA_ALLOWED_HOSTS", "https://a.example/chat", "host names separated"),
        (ServerVariables, "STRATA_ALLOWED_HOSTS", "a.example:port", "host names separated by"),
        (DatabaseVariables, "CELERY_BROKER_URL", "redis://db:port/0", "a pgmq://, redis:// or"),
        (DatabaseVariables, "STRATA_CACHE_URL", "redis://db:99999/0", "a redis:// address"),
        (DatabaseVariables, "STRATA_POOLER", "perhaps", "on or off"),
        (DatabaseVariables, "STRATA_REPLICA_URL", "mysql://x", "postgresql://USER"),
        (DatabaseVariables, "CELERY_BROKER_URL", "kafka://x", "a pgmq://, redis:// or amqp://"),
        (ModelVariables, "STRATA_CHAT_MODEL", "gpt-canary", "`demo` or a model name"),
        (ModelVariables, "OPENAI_BASE_URL", "llm.example.org/v1", "an http:// or https:// address"),
        (RecallVariables, "STRATA_EMBEDDER", "extractive", "`static` or an embedding model's name"),
        (RecallVariables, "STRATA_SEARCH_LANGUAGE", "a b", "a text search configuration"),
        (FileVariables, "STRATA_S3_BUCKET", "s3://canary", "the name of a bucket"),
        (LimitVariables, "STRATA_RATE_READS", "5/fortnight", "a rate such as 60/minute"),
        (LogVariables, "STRATA_LOG_LEVEL", "loud", "one of DEBUG"),
    ],
)
def test_a_wrong_value_names_the_variable_and_what_it_takes(monkeypatch, group, name, value, takes):
    monkeypatch.setenv(name, value)
    with pytest.raises(SystemExit) as stopped:
        load(group)
    assert str(stopped.value).startswith(f"strata: {name} takes {takes}")
    assert value not in str(stopped.value).removeprefix(f"strata: {name}")


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (PermissionError(13, "Permission denied"), ": Permission denied"),
        (UnicodeDecodeError("utf-8", b"\xfc", 0, 1, "invalid start byte"), " is not text in UTF-8"),
    ],
)
def test_an_unreadable_env_file_stops_the_start(monkeypatch, error, reason):
    monkeypatch.setattr(env, "load_dotenv", Mock(side_effect=error))
    with pytest.raises(SystemExit) as stopped:
        load(ServerVariables)
    assert str(stopped.value) == f"strata: {env.env_file()}{reason}"


@pytest.mark.parametrize(
    "value",
    [
        "mysql://ana:canary-7@db/strata",
        "postgresql://ana:canary-7@db:port/strata",
        "postgresql://ana:canary-7@x@db/strata",
        "postgresql://ana:p@canary-7/x@db/strata",
        "postgresql://ana:canary-7%zz@db/strata",
        "postgresql://ana:p@canary-7#x@db/strata",
        "postgresql://ana:canary-7@db",
        "canary-7",
    ],
)
def test_a_wrong_database_address_is_refused_without_showing_it(monkeypatch, value):
    monkeypatch.setenv("DATABASE_URL", value)
    with pytest.raises(SystemExit) as stopped:
        load(DatabaseVariables)
    assert "canary-7" not in str(stopped.value)
    assert stopped.value.__cause__ is None and stopped.value.__suppress_context__


@pytest.mark.parametrize(
    ("name", "value", "field", "parsed"),
    [
        ("STRATA_DEBUG", "on", "debug", True),
        (
            "STRATA_ALLOWED_HOSTS",
            "a.example, .B.example, [::1], *,",
            "allowed_hosts",
            ["a.example", ".b.example", "[::1]", "*"],
        ),
        (
            "STRATA_ALLOWED_HOSTS",
            "https://a.example/,a.example:8443,[::1]:8443",
            "allowed_hosts",
            ["a.example", "a.example:8443", "[::1]:8443"],
        ),
        ("STRATA_URL", "https://Strata.Example.org/", "url", "https://strata.example.org"),
        ("STRATA_URL", "", "url", ""),
        ("PORT", "", "port", 8000),
    ],
)
def test_a_value_is_parsed(monkeypatch, name, value, field, parsed):
    monkeypatch.setenv(name, value)
    assert getattr(load(ServerVariables), field) == parsed


@pytest.mark.parametrize(
    "value", ["amqp://a:5672;amqp://b:5672", "redis://:x;,y@a:6379/0;redis://:x;,y@b:6379/0"]
)
def test_a_broker_may_have_several_servers(monkeypatch, value):
    monkeypatch.setenv("CELERY_BROKER_URL", value)
    assert load(DatabaseVariables).broker_url == value
    monkeypatch.setenv("CELERY_BROKER_URL", value.replace(":5672", ":x").replace(":6379", ":x"))
    with pytest.raises(SystemExit, match="CELERY_BROKER_URL takes"):
        load(DatabaseVariables)


@pytest.mark.parametrize(
    ("value", "parsed"), [("60/minute", (60, 60)), ("off", None), ("3 / hour", (3, 3600))]
)
def test_a_rate_is_requests_in_seconds(value, parsed):
    assert env.rate(value) == parsed


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_an_unreadable_secret_file_stops_the_start(secret_file, tmp_path, monkeypatch, text):
    path = str(tmp_path / "nowhere") if text is None else secret_file(text)
    monkeypatch.setenv("SOME_KEY_FILE", path)
    with pytest.raises(SystemExit) as stopped:
        env.read_secret("SOME_KEY")
    takes = "the path of a readable file that is not empty"
    assert str(stopped.value) == f"strata: SOME_KEY_FILE takes {takes}"


def test_two_values_for_one_secret_stop_the_start(secret_file, monkeypatch):
    monkeypatch.setenv("SOME_KEY", "another-key")
    monkeypatch.setenv("SOME_KEY_FILE", secret_file("one-key"))
    with pytest.raises(SystemExit, match="SOME_KEY and SOME_KEY_FILE are both set"):
        env.read_secret("SOME_KEY")
    # A child process inherits the value that its parent read from the file.
    monkeypatch.setenv("SOME_KEY", "one-key")
    assert env.read_secret("SOME_KEY") == "one-key"


def test_secrets_and_passwords_in_addresses_are_hidden_in_logs(monkeypatch):
    monkeypatch.setattr(env, "SECRETS", set())
    env.keep_out_of_logs("postgresql://ana:sec%20ret/#1@db/strata")
    env.keep_out_of_logs("amqp://ana:canary-1@a;amqp://ana:canary-2@b")
    env.keep_out_of_logs("short")
    assert {"sec%20ret/#1", "sec ret/#1", "canary-1", "canary-2"} < env.SECRETS
    assert "short" not in env.SECRETS


@pytest.mark.parametrize("path", reference.documents())
def test_a_generated_document_is_up_to_date(path):
    expected = reference.documents()[path]
    assert (env.BASE_DIR / path).read_text() == expected, "run python -m config.settings.reference"


def test_every_variable_of_the_contract_is_declared():
    names = {name for group in reference.GROUPS for name, _, _ in reference.declared(group)}
    assert names >= {
        *("STRATA_DATA_DIR", "PORT", "DATABASE_URL", "CELERY_BROKER_URL", "STRATA_CHAT_MODEL"),
        *("STRATA_SYSTEM_MODEL", "OPENAI_API_KEY", "OPENAI_BASE_URL", "STRATA_EMBEDDER"),
        *("STRATA_EMBEDDING_DIMENSIONS", "STRATA_ADMIN_PASSWORD", "STRATA_SECRET_KEY"),
        *("STRATA_ALLOWED_HOSTS", "STRATA_DEBUG"),
    }


def test_a_folder_is_closed_to_other_accounts(tmp_path):
    folder = tmp_path / "open"
    folder.mkdir()
    folder.chmod(0o775)
    env.private_folder(folder)
    assert folder.stat().st_mode & 0o777 == 0o700
    new = env.private_folder(tmp_path / "new/data")
    assert new.stat().st_mode & 0o777 == 0o700


def test_a_folder_that_all_accounts_share_stays_open(tmp_path):
    tmp_path.chmod(0o1777)
    env.private_folder(tmp_path)
    assert tmp_path.stat().st_mode & 0o1777 == 0o1777
