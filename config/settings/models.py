"""Settings of models, prompts, recall, importers and exporters."""

import os
from typing import Annotated

from pydantic import BeforeValidator, Field

from config.settings.env import Http, Variables, address, load, model_name, number, read_secret, var


class ModelVariables(Variables):
    title = "Models"

    chat_model: Annotated[str, BeforeValidator(model_name("demo"))] = var(
        "STRATA_CHAT_MODEL",
        "demo",
        "`demo` or a model name such as openai-chat:gpt-5-mini",
        "The model that answers in chats (a pydantic-ai name).",
        example="openai-chat:gpt-5-mini",
        in_readme=True,
    )
    system_model: Annotated[str, BeforeValidator(model_name("demo", "extractive"))] = var(
        "STRATA_SYSTEM_MODEL",
        "",
        "`extractive`, `demo` or a model name such as openai-chat:gpt-5-mini",
        "The model that writes summaries. `extractive` is no model: summaries are made of quoted "
        "messages.",
        example="openai-chat:gpt-5-mini",
        shown_default="the chat model, or `extractive` with the demo",
        in_readme=True,
    )
    openai_api_key: str = var(
        "OPENAI_API_KEY",
        "",
        "a key",
        "OpenAI's key. Other providers have variables of their own: `ANTHROPIC_API_KEY`, "
        "`GOOGLE_API_KEY`, `MISTRAL_API_KEY`, `GROQ_API_KEY`, `OPENROUTER_API_KEY`, …",
        secret=True,
        in_readme=True,
    )
    openai_base_url: Http = var(
        "OPENAI_BASE_URL",
        "",
        "an http:// or https:// address",
        "An OpenAI-compatible server for `openai-chat:` models.",
        example="https://llm.example.org/v1",
        shown_default="OpenAI's",
        in_readme=True,
    )
    ollama_url: Http = var(
        "OLLAMA_BASE_URL",
        "http://127.0.0.1:11434/v1",
        "the address of an Ollama",
        "The server for `ollama:` models. The welcome page looks there for models.",
    )
    demo_model_url: Annotated[str, BeforeValidator(address("http"))] = var(
        "STRATA_DEMO_URL",
        "",
        "the demo model's http:// address",
        "The server of the demo model. `up` starts it and sets this.",
        example="http://127.0.0.1:8010",
        shown_default="set by `up`",
    )
    first_token_timeout: int = number(
        "STRATA_FIRST_TOKEN_TIMEOUT",
        60,
        (1, 3600),
        "Seconds until a model that sends nothing counts as failed.",
        "seconds",
    )
    model_timeout: int = number(
        "STRATA_MODEL_TIMEOUT",
        300,
        (1, 3600),
        "Seconds until an answer must be complete.",
        "seconds",
    )
    context_tokens: int = number(
        "STRATA_CONTEXT_TOKENS",
        32_000,
        (2_000, 2_000_000),
        "The maximum number of tokens of a prompt and its answer together.",
        "tokens",
    )
    close_after_days: int = number(
        "STRATA_CLOSE_AFTER_DAYS",
        30,
        (1, 36_500),
        "Days without activity after which a chat closes, unless its project sets hours.",
        "days",
    )


class RecallVariables(Variables):
    title = "Recall"

    embedder: Annotated[str, BeforeValidator(model_name("static"))] = var(
        "STRATA_EMBEDDER",
        "static",
        "`static` or an embedding model's name such as openai:text-embedding-3-small",
        "The embedding model of recall. After a change, run `reindex --embedder`.",
        example="openai:text-embedding-3-small",
        in_readme=True,
    )
    embedding_dimensions: int = var(
        "STRATA_EMBEDDING_DIMENSIONS",
        0,
        "the number of dimensions of the embedder's vectors, from 1 to 4000",
        "The number of dimensions of the embedder's vectors. Required for a model that is not "
        "built in.",
        example="1536",
        shown_default="the built-in model's",
        ge=0,
        le=4_000,
    )
    search_language: Annotated[str, Field(pattern=r"^[^\W]+$")] = var(
        "STRATA_SEARCH_LANGUAGE",
        "english",
        "a text search configuration of PostgreSQL such as english, german or simple",
        "PostgreSQL's text search configuration for projects that set none. After a change, run "
        "`reindex`.",
    )
    merge_turns: bool = var(
        "STRATA_MERGE_TURNS",
        True,
        "on or off",
        "Consecutive messages of one speaker are one excerpt.",
    )


_env = load(ModelVariables)
# pydantic-ai reads the keys from the environment.
for _name in list(os.environ):
    if _name.endswith(("_API_KEY", "_API_KEY_FILE")):
        read_secret(_name.removesuffix("_FILE"))
CHAT_MODEL = _env.chat_model
# Whether the environment names the model. Otherwise it is set on the Models page.
HAS_CHAT_MODEL = bool(os.environ.get("STRATA_CHAT_MODEL", "").strip())
HAS_SYSTEM_MODEL = bool(_env.system_model)
SYSTEM_MODEL = _env.system_model or ("extractive" if CHAT_MODEL == "demo" else CHAT_MODEL)
MODEL_FIRST_TOKEN_TIMEOUT = _env.first_token_timeout
MODEL_TIMEOUT = _env.model_timeout
# The environment variables of the providers whose key is set.
MODEL_KEYS = {
    provider: variable
    for provider, variable in {
        "openai-chat": "OPENAI_API_KEY",
        "anthropic": "ANTHROPIC_API_KEY",
        "google": "GOOGLE_API_KEY",
        "mistral": "MISTRAL_API_KEY",
        "groq": "GROQ_API_KEY",
        "openrouter": "OPENROUTER_API_KEY",
    }.items()
    if os.environ.get(variable, "").strip()
}
MODEL_SECRETS = {provider: os.environ[variable] for provider, variable in MODEL_KEYS.items()}
OPENAI_URL = _env.openai_base_url
OLLAMA_URL = _env.ollama_url
# Required by pydantic-ai for `ollama:` models.
os.environ.setdefault("OLLAMA_BASE_URL", OLLAMA_URL)
DEMO_MODEL_URL = _env.demo_model_url
CONTEXT_TOKENS = _env.context_tokens
# The demo model reads 40 to 80 tokens a second on two busy cores, so a longer prompt would take a
# minute. The wait for its first token includes loading the model.
DEMO_CONTEXT_TOKENS = 2_048
DEMO_FIRST_TOKEN_TIMEOUT = max(MODEL_FIRST_TOKEN_TIMEOUT, 180)
CLOSE_AFTER_DAYS = _env.close_after_days

_recall = load(RecallVariables)
if ":" in _recall.embedder and not _recall.embedding_dimensions:
    raise SystemExit(
        "strata: STRATA_EMBEDDING_DIMENSIONS takes the number of dimensions of the vectors of "
        "STRATA_EMBEDDER, from 1 to 4000"
    )
EMBEDDER = _recall.embedder
# 0 means the embedder's own number of dimensions, which is unknown for a remote model.
EMBEDDING_DIMENSIONS = _recall.embedding_dimensions
SEARCH_LANGUAGE = _recall.search_language
MERGE_TURNS = _recall.merge_turns

# The sections of a prompt in order. Sections that change least come first, for prompt caches.
CHAT_PROMPT_SECTIONS = [
    "chat.prompt.sections.persona",
    "memory.prompt.sections.blocks",
    "memory.prompt.facts.facts",
    "memory.prompt.sections.bank",
    "chat.prompt.sections.program",
    "chat.prompt.sections.history",
    "memory.prompt.facts.matching_facts",
    "memory.prompt.sections.gists",
    "memory.prompt.sections.details",
    "memory.prompt.files.files",
    "chat.prompt.sections.message",
]
# Strata's own tools, which models may call while they answer.
CHAT_MODEL_TOOLS = [
    "memory.prompt.tools.search_memory",
    "memory.prompt.tools.read_chat",
    "memory.prompt.file_tools.search_files",
    "memory.prompt.file_tools.read_file",
]
# The module that lists the models that a project may use, and checks model names.
PROJECT_MODELS = "chat.providers.catalogue"
# Functions that annotate sessions with numbers for lists of sessions.
CHAT_SESSION_COUNTS = ["memory.signal_handlers.annotate_unsummarised"]
CHAT_IMPORTERS = {
    "jsonl": "chat.importers.jsonl",
    "locomo": "chat.importers.locomo",
    "chatgpt": "chat.importers.chatgpt",
    "claude": "chat.importers.claude",
    "openwebui": "chat.importers.openwebui",
    "strata": "chat.importers.strata",
}
# Modules that import a zip file as a whole.
CHAT_ARCHIVES = ["memory.portability.importing"]
CHAT_EXPORTERS = {"markdown": "chat.exporters.markdown", "json": "chat.exporters.json"}
