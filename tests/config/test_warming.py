"""What a process loads beside its first answer, so that its first reply need not."""

import asyncio
import json
import subprocess
import sys

import pytest

from config import asgi, warming
from memory.recall import embedders
from tests.commands import ROOT
from tests.scripted import MODEL, ScriptedModel

# Loads it, then hears a reply: which modules came with which.
REPLIES = f"""
import asyncio, json, sys

import config.asgi
from config import warming

warming._load()
loaded = set(sys.modules)

from chat import providers, tokens
from chat.prompt import Said
from memory.recall import embedders

async def hear():
    model = providers.get("openai-chat:{MODEL}", "reply")
    said = [Said("user", "Hello?")]
    return "".join([event.text async for event in model.stream(said) if hasattr(event, "text")])

embedders.get().query("Hello?")
tokens.count("Hello?")
print(json.dumps([asyncio.run(hear()), sorted(set(sys.modules) - loaded)]))
"""


def test_the_first_reply_finds_everything_loaded(tmp_path, monkeypatch):
    with ScriptedModel() as model:
        model.say("Here I am.")
        monkeypatch.setenv("STRATA_DATA_DIR", str(tmp_path))
        monkeypatch.setenv("OPENAI_BASE_URL", model.base_url)
        monkeypatch.setenv("OPENAI_API_KEY", "none")
        done = subprocess.run(
            [sys.executable, "-c", REPLIES], cwd=ROOT, capture_output=True, text=True, timeout=90
        )
    assert done.stderr == ""
    said, loaded_late = json.loads(done.stdout)
    assert said == "Here I am."
    # Modules of its own are quickly loaded.
    assert [name for name in loaded_late if not name.startswith(("chat.", "projects."))] == []


def test_it_is_loaded_once_however_much_is_asked(monkeypatch):
    loaded = []
    monkeypatch.setattr(warming, "_load", lambda: loaded.append(True))
    warming.warm.cache_clear()

    async def ask() -> None:
        # Django refuses it, which is an answer as well.
        with pytest.raises(ValueError, match="lifespan"):
            await asgi.dispatch({"type": "lifespan"}, asyncio.Queue().get, asyncio.Queue().put)

    for _ in range(3):
        asyncio.run(ask())
    assert loaded == [True]


def test_what_cannot_be_loaded_stops_nothing(monkeypatch, caplog):
    def broken():
        raise embedders.EmbedderError("No such model.")

    monkeypatch.setattr(embedders, "get", broken)
    warming._load()
    [record] = caplog.records
    assert record.getMessage() == "warming_failed"
