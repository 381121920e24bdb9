"""Lists the models that this server can use, and tests models and servers."""

import json
import logging
from dataclasses import dataclass
from http.client import HTTPException
from typing import Any
from urllib.request import Request, urlopen

import httpx2
from django.conf import settings
from django.utils import timezone
from django.utils.translation import gettext as _

from chat import providers
from chat.models import ModelProvider, ProviderKind
from chat.prompt.types import PromptMessage
from chat.providers.base import ModelServer
from chat.providers.descriptions import chats, describe
from projects.core import outbound_http
from projects.core.database import release_connections
from projects.core.errors import InvalidInputError
from projects.core.outbound_http import OutboundFailure, trusted_certificates

log = logging.getLogger(__name__)

OLLAMA = "ollama"
# Ollama returns the context size under a key such as `llama.context_length`.
CONTEXT_SUFFIX = ".context_length"
# The time-out for Ollama. A local server answers at once, and a page must not wait if none runs.
OLLAMA_TIMEOUT_S = 1.0
MAX_OLLAMA_MODELS = 100
MAX_RESPONSE_BYTES = 2**20
MAX_LIST_BYTES = 8 * 2**20
TRUSTED_TIMEOUT_S = 10.0
MAX_MODELS = 1_000
MAX_NAME_CHARS = 150
TRIAL_PROMPT = "Say hello in one short sentence."
TRIAL_TOKENS = 400
MAX_ANSWER_CHARS = 300


@dataclass(frozen=True)
class TrialResult:
    """The answer of a model that was tested, or the error."""

    answer: str = ""
    error: str = ""


def list_ollama_models() -> list[str]:
    """Return the chat models of the Ollama server at `settings.OLLAMA_URL`; none if it does not
    run.
    """
    try:
        payload = _ask_ollama("/api/tags")
        names = [model["name"] for model in payload["models"]]
    except (OSError, HTTPException, ValueError, KeyError, TypeError):
        return []
    chat_models = (name for name in names if isinstance(name, str) and chats(name))
    return [f"ollama:{name}" for name in chat_models][:MAX_OLLAMA_MODELS]


def _ask_ollama(path: str, content: dict[str, str] | None = None) -> Any:
    url = f"{settings.OLLAMA_URL.removesuffix('/v1')}{path}"
    data = None if content is None else json.dumps(content).encode()
    request = Request(url, data, {"Content-Type": "application/json"})
    release_connections()
    with urlopen(request, timeout=OLLAMA_TIMEOUT_S) as response:
        return json.loads(response.read(MAX_RESPONSE_BYTES))


def refresh_ollama() -> None:
    """Store the models of the Ollama server. If it is not running, store no models."""
    names = [name.partition(":")[2] for name in list_ollama_models()]
    row = ModelProvider.objects.filter(name=OLLAMA).first()
    listed = row.catalogue if row else []
    # Earlier versions did not store whether a model chats.
    known = {item["name"]: item for item in listed if "chats" in item}
    if [*known] == names and len(known) == len(listed):
        return
    row = row or ModelProvider(name=OLLAMA, kind=ProviderKind.OLLAMA)
    _store_list(row, [known.get(name) or _describe_ollama(name) for name in names])


def _describe_ollama(name: str) -> dict[str, Any]:
    try:
        shown = _ask_ollama("/api/show", {"model": name})
        sizes = [size for key, size in shown["model_info"].items() if key.endswith(CONTEXT_SUFFIX)]
        item = {"capabilities": shown.get("capabilities"), "context_length": (*sizes, None)[0]}
    except (OSError, HTTPException, ValueError, KeyError, TypeError, AttributeError):
        # Older versions of Ollama do not return this.
        item = {}
    abilities = item.get("capabilities")
    can_chat = not isinstance(abilities, list) or "completion" in abilities
    return describe(OLLAMA, name, item) | {"chats": can_chat}


def refresh_lists() -> None:
    """Read all providers' model lists again. If a provider does not respond, keep its last list.
    Only the list of Ollama becomes empty instead.
    """
    refresh_ollama()
    rows = {row.name: row for row in ModelProvider.objects.exclude(kind=ProviderKind.OLLAMA)}
    for name, server in providers.environment_servers().items():
        row = rows.pop(name) if name in rows else ModelProvider(name=name, kind=name)
        _refresh(row, server, True)
    for row in rows.values():
        if row.encrypted_key and row.key is not None:
            _refresh(row, providers.saved_server(row, row.key))
        elif not row.encrypted_key:
            # Its key was in the environment and has been removed.
            ModelProvider.objects.filter(pk=row.pk, encrypted_key="").delete()


def _refresh(row: ModelProvider, server: ModelServer, is_trusted: bool = False) -> None:
    try:
        _store_list(row, check_server(server, is_trusted))
    except ProviderCheckError as error:
        log.info("model_list_failed provider=%s reason=%s", row.name, error)


def _store_list(row: ModelProvider, catalogue: list[dict[str, Any]]) -> None:
    row.catalogue, row.checked_at = catalogue, timezone.now()
    if row._state.adding:
        # Another process may have just added it with the same list.
        ModelProvider.objects.bulk_create([row], ignore_conflicts=True)
        return
    # Staff may have deleted the provider, or changed its key, while its server was asked.
    same = ModelProvider.objects.filter(
        pk=row.pk, address=row.address, encrypted_key=row.encrypted_key
    )
    same.update(catalogue=catalogue, checked_at=row.checked_at)


def try_model(name: str) -> TrialResult:
    """Test the model `name`: request a greeting from it."""
    try:
        provider = providers.get_provider(name, "test")
        release_connections()
        completion = provider.complete([PromptMessage("user", TRIAL_PROMPT)], TRIAL_TOKENS)
    except providers.ProviderError as error:
        log.info("model_test_failed model=%s reason=%s", name, error)
        return TrialResult(error=str(error))
    return TrialResult(answer=completion.text.strip()[:MAX_ANSWER_CHARS])


class ProviderCheckError(InvalidInputError):
    """The provider is not reachable or rejected the key. The message contains advice."""


def check_server(server: ModelServer, is_trusted: bool = False) -> list[dict[str, Any]]:
    """Test the key. Return the known properties of the models that the server lists.

    `is_trusted` is true for a server from the environment: its address may be in the local network.
    Raises `ProviderCheckError`.
    """
    if server.kind == "openrouter":
        # Test the key separately, because this list is available without a key.
        _get(server, "/key", is_trusted)
    path = "/v1/models?limit=1000" if server.kind == "anthropic" else "/models"
    try:
        items = json.loads(_get(server, path, is_trusted))["data"]
        names = {str(item["id"]).removeprefix("models/"): item for item in items}
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
        raise ProviderCheckError(
            _("The server sent no list of models. The address usually ends in /v1.")
        ) from error
    return [
        describe(server.kind, name, item)
        for name, item in sorted(names.items())[:MAX_MODELS]
        if len(name) <= MAX_NAME_CHARS and name.isprintable() and chats(name)
    ]


def _get(server: ModelServer, path: str, is_trusted: bool) -> bytes:
    headers = {"Authorization": f"Bearer {server.key}"}
    if server.kind == "anthropic":
        headers = {"x-api-key": server.key, "anthropic-version": "2023-06-01"}
    url = f"{server.address.rstrip('/')}{path}"
    try:
        status, body = _fetch(url, headers, is_trusted)
    except outbound_http.OutboundError as error:
        raise ProviderCheckError(_advice(error)) from error
    # Google responds with 400.
    if status in (401, 403) or (status == 400 and b"API key not valid" in body):
        raise ProviderCheckError(_("The provider rejected the key. Copy it again."))
    if status == 404:
        raise ProviderCheckError(_("There is nothing at this address. It usually ends in /v1."))
    if status != 200:
        raise ProviderCheckError(
            _("The server answered with the status %(status)s. Try again later.")
            % {"status": status}
        )
    return body


def _fetch(url: str, headers: dict[str, str], is_trusted: bool) -> tuple[int, bytes]:
    """Return the status and the body of a response."""
    release_connections()
    if not is_trusted:
        response = outbound_http.request("GET", url, headers=headers, max_bytes=MAX_LIST_BYTES)
        return response.status, response.body
    try:
        with httpx2.Client(verify=trusted_certificates(), timeout=TRUSTED_TIMEOUT_S) as client:
            answer = client.get(url, headers=headers)
    except httpx2.HTTPError as error:
        raise outbound_http.UnreachableError(OutboundFailure.CONNECTION) from error
    return answer.status_code, answer.content[:MAX_LIST_BYTES]


def _advice(error: outbound_http.OutboundError) -> str:
    if error.reason == OutboundFailure.INSIDE:
        return _("%(reason)s To allow it, add it to STRATA_OUTBOUND_ALLOW and restart Strata.") % {
            "reason": error
        }
    return _("%(reason)s Check the address.") % {"reason": error}
