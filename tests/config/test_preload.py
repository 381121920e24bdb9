"""The start-up costs of a process: modules that the first reply needs, and garbage collection."""

import asyncio
import gc
import json
import subprocess
import sys

import pytest

from config import asgi
from config.runtime import preload
from memory.recall import embedders
from tests.commands import ROOT
from tests.scripted import MODEL, ScriptedModel

pytestmark = pytest.mark.process

# Preloads, then streams a reply: prints it, and the modules that only the reply loaded.
REPLY = f"""
import asyncio, json, ssl, sys

import config.asgi
from config.runtime import preload

preload.load()
loaded = set(sys.modules)
# Reading the machine's certificates takes 30 ms each time.
ssl.create_default_context = None

from chat import providers
from chat.prompt.types import PromptMessage
from chat.providers import prices
from memory.recall import embedders, wordpieces
from projects.core import token_counting

# There is no database here.
prices.load = lambda: None

async def reply():
    model = providers.get_provider("openai-chat:{MODEL}", "reply")
    messages = [PromptMessage("user", "Hello?")]
    events = [event async for event in model.stream(messages)]
    return "".join(event.text for event in events if hasattr(event, "text"))

assert providers.accepts_own_tools("openai-chat:{MODEL}")
embedders.get().embed_query("Hello?")
assert wordpieces.vocabulary.cache_info().currsize == 1
wordpieces.query_pieces("Hello?")
token_counting.count("Hello?")
print(json.dumps([asyncio.run(reply()), sorted(set(sys.modules) - loaded)]))
"""
COLLECTOR_STATE = """
import gc, json
import config.asgi
print(json.dumps([gc.isenabled(), gc.get_freeze_count(), gc.get_threshold()[0]]))
"""
THREADS = """
import json, threading, django
django.setup()
from config.management.commands import up
up.load_application()
from django.db import connection
names = [thread.name for thread in threading.enumerate()]
print(json.dumps([names, connection.connection is not None]))
"""


def test_the_first_reply_loads_neither_modules_of_libraries_nor_certificates(tmp_path, monkeypatch):
    with ScriptedModel() as model:
        model.say("Here I am.")
        monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        monkeypatch.setenv("STRATA_CHAT_MODEL", f"openai-chat:{MODEL}")
        result = subprocess.run(
            [sys.executable, "-c", REPLY], cwd=ROOT, capture_output=True, text=True, timeout=90
        )
    assert result.stderr == ""
    reply, loaded_late = json.loads(result.stdout)
    assert reply == "Here I am."
    # Strata's own modules load quickly.
    assert [name for name in loaded_late if not name.startswith(("chat.", "projects."))] == []


def test_preloading_starts_once_for_many_requests(monkeypatch):
    calls = []
    monkeypatch.setattr(preload, "load", lambda: calls.append(True))
    preload.start.cache_clear()

    async def request() -> None:
        # Django rejects the scope, which is a response as well.
        with pytest.raises(ValueError, match="lifespan"):
            await asgi.dispatch({"type": "lifespan"}, asyncio.Queue().get, asyncio.Queue().put)

    for _ in range(3):
        asyncio.run(request())
    assert calls == [True]


def test_a_failure_to_preload_is_logged_and_not_raised(monkeypatch, caplog):
    def broken():
        raise embedders.EmbedderError("No such model.")

    monkeypatch.setattr(embedders, "get", broken)
    preload.load.cache_clear()
    preload.load()
    preload.load.cache_clear()
    [record] = caplog.records
    assert record.getMessage() == "preload_failed"


def test_a_web_process_excludes_loaded_objects_from_collection(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
    output = subprocess.check_output([sys.executable, "-c", COLLECTOR_STATE], cwd=ROOT, timeout=90)
    enabled, frozen, threshold = json.loads(output)
    assert (enabled, threshold) == (True, preload.GC_THRESHOLD)
    assert frozen > 100_000


def test_every_process_that_sets_django_up_uses_the_threshold():
    assert gc.isenabled()
    assert gc.get_threshold()[0] == preload.GC_THRESHOLD


def test_a_forking_process_has_no_threads_and_no_connections(tmp_path, monkeypatch):
    monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
    output = subprocess.check_output([sys.executable, "-c", THREADS], cwd=ROOT, timeout=90)
    assert json.loads(output) == [["MainThread"], False]
