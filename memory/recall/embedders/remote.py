"""Embedding models through pydantic-ai: OpenAI, Ollama, Voyage, and compatible servers."""

import asyncio
import logging
import math
import time
from collections.abc import Sequence
from inspect import signature
from typing import Any

import httpx2
import numpy as np
from django.utils.translation import gettext_noop as _
from pydantic_ai import exceptions
from pydantic_ai.embeddings import Embedder as Client
from pydantic_ai.embeddings import EmbeddingSettings, infer_embedding_model
from pydantic_ai.embeddings.result import EmbeddingResult, EmbedInputType
from pydantic_ai.providers import Provider, infer_provider, infer_provider_class

from chat.metrics import measure_call
from chat.providers import Finished, ProviderError, prices
from chat.providers.base import MAX_CALL_TOKENS
from chat.providers.booking import begin_embedding
from chat.providers.errors import MAX_BODY_CHARS, to_provider_error
from chat.providers.http_clients import new_http_client
from memory.recall.embedders.base import EmbedderError, Matrix, normalise
from projects.core.database import release_connections

log = logging.getLogger(__name__)

# The number of texts in one call. Providers accept between 96 (Cohere) and 2,048 (OpenAI).
BATCH_SIZE = 96
# Seconds between attempts to embed documents. Queries are not retried: recall can search by words.
RETRY_WAITS_S = (1.0, 4.0, 15.0)
# The codes of errors that smaller batches or shorter texts may avoid.
SIZE_CODES = ("request_refused", "context_length_exceeded")
# A text of at most this length is not cut further, even if it is too long for the model.
MIN_CUT_CHARS = 200
# After a failed query, the model is not asked for other queries for this time, in seconds. A reader
# would otherwise wait for each search of a prompt or page.
QUERY_RETRY_S = 10.0
# Short for queries, because a user is waiting.
TIMEOUTS_S = {"query": 4.0, "document": 60.0}


def _new_provider(name: str, http: httpx2.AsyncClient) -> Provider[Any]:
    """Return the provider. If it takes an HTTP client, it uses `http`, which limits the size of
    responses. Providers without one have an SDK of their own.
    """
    if not name.startswith("gateway/"):
        provider_class: Any = infer_provider_class(name)
        if "http_client" in signature(provider_class).parameters:
            return provider_class(http_client=http)
    return infer_provider(name)


class RejectedTextsError(EmbedderError):
    """The model rejected the texts. `is_too_long` is true if a text is longer than it accepts."""

    def __init__(self, message: str, is_too_long: bool) -> None:
        super().__init__(message)
        self.is_too_long = is_too_long


class RemoteEmbedder:
    """A model with a pydantic-ai name, such as `openai:text-embedding-3-small`.

    The name of its vectors contains the number of dimensions, because vectors with other dimensions
    are not comparable.
    """

    is_local = False

    def __init__(self, model: str, dimensions: int) -> None:
        self.model, self.dimensions = model, dimensions
        self.name = f"{model}@{dimensions}"[:200]
        # Smaller after the server rejected a batch.
        self._batch_size = BATCH_SIZE
        # False after the server accepted a request only without the parameter.
        self._sends_dimensions = True
        # The time and the reason of the last query that failed.
        self._query_failed_at, self._query_failure = -math.inf, ""

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        rows = []
        while texts:
            size = self._batch_size
            rows.append(self._embed_with_retries(texts[:size]))
            texts = texts[size:]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def embed_query(self, text: str) -> Matrix:
        if time.monotonic() - self._query_failed_at < QUERY_RETRY_S:
            raise EmbedderError(self._query_failure)
        try:
            return self._embed([text], "query")[0]
        except RejectedTextsError as error:
            if not error.is_too_long or len(text) <= MIN_CUT_CHARS:
                raise
        except EmbedderError as error:
            # A filter only concerns this text.
            if getattr(error.__cause__, "code", "") != "content_filter":
                self._query_failed_at, self._query_failure = time.monotonic(), str(error)
            raise
        return self.embed_query(text[: len(text) // 2])

    def _embed_with_retries(self, texts: Sequence[str]) -> Matrix:
        for wait in RETRY_WAITS_S:
            try:
                return self._embed(texts, "document")
            except RejectedTextsError as error:
                return self._embed_in_parts(texts, error)
            except EmbedderError as error:
                log.warning("embedding_failed embedder=%s reason=%s", self.name, error)
                time.sleep(wait)
        return self._embed(texts, "document")

    def _embed_in_parts(self, texts: Sequence[str], error: RejectedTextsError) -> Matrix:
        """Embed the two halves of a batch, because servers limit batches, some to 10 texts. Of a
        single text that is too long, embed the beginning.
        """
        if len(texts) > 1:
            half = (len(texts) + 1) // 2
            self._batch_size = min(self._batch_size, half)
            parts = (texts[:half], texts[half:])
            return np.concatenate([self._embed_with_retries(part) for part in parts])
        # The reason was this text, not the number of texts.
        self._batch_size = BATCH_SIZE
        if not error.is_too_long or len(texts[0]) <= MIN_CUT_CHARS:
            raise error
        return self._embed_with_retries([texts[0][: len(texts[0]) // 2]])

    def _embed(self, texts: Sequence[str], input_type: EmbedInputType) -> Matrix:
        booking = begin_embedding(self.model)
        if input_type == "query":
            release_connections()
        try:
            with measure_call(self.model, "embedding") as call:
                result = self._request(texts, input_type)
                tokens = min(result.usage.input_tokens, MAX_CALL_TOKENS)
                call.record_tokens(tokens)
                if booking is not None:
                    cost = prices.cost(self.model, tokens, 0, 0)
                    booking.succeed(Finished(self.model, tokens, 0, cost))
        except ProviderError as error:
            if booking is not None:
                booking.fail(error, ())
            if error.code in SIZE_CODES:
                is_too_long = error.code == "context_length_exceeded"
                raise RejectedTextsError(str(error), is_too_long) from error
            raise EmbedderError(error.message) from error
        rows = np.asarray(result.embeddings, np.float32)
        if rows.shape != (len(texts), self.dimensions):
            shape = "×".join(map(str, rows.shape))
            raise EmbedderError(
                f"“{self.model}” gave {shape} numbers, not {len(texts)}×{self.dimensions}: "
                "set STRATA_EMBEDDING_DIMENSIONS."
            )
        if not np.isfinite(rows).all():
            raise EmbedderError(f"“{self.model}” gave numbers that are not finite.")
        return normalise(rows)

    def _request(self, texts: Sequence[str], input_type: EmbedInputType) -> EmbeddingResult:
        """Call the model. Raises ProviderError, also if no provider has the name."""

        async def embed() -> EmbeddingResult:
            # A separate client, because this event loop ends after the request.
            async with asyncio.timeout(TIMEOUTS_S[input_type]), new_http_client() as http:
                model = infer_embedding_model(
                    self.model, provider_factory=lambda name: _new_provider(name, http)
                )
                if self._sends_dimensions:
                    settings = EmbeddingSettings(dimensions=self.dimensions)
                    try:
                        return await Client(model, settings=settings).embed(
                            list(texts), input_type=input_type
                        )
                    except exceptions.ModelHTTPError as error:
                        if not _rejects_dimensions(error):
                            raise
                result = await Client(model).embed(list(texts), input_type=input_type)
                # Not before this success: the error may only have quoted the word from a text.
                self._sends_dimensions = False
                return result

        try:
            return asyncio.run(embed())
        except TimeoutError as error:
            reason = _("%s did not answer in time.") % f"“{self.model}”"
            raise ProviderError(reason, status=504, code="timeout") from error
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise to_provider_error(error) from error
        except (ImportError, ValueError) as error:
            reason = _("The embedder %s cannot be used.") % f"“{self.model}”"
            raise ProviderError(reason) from error


def _rejects_dimensions(error: exceptions.ModelHTTPError) -> bool:
    """Return whether a server rejected the parameter `dimensions`. For models with a fixed number,
    vLLM rejects even this number.
    """
    text = str(error.body)[:MAX_BODY_CHARS].lower()
    return error.status_code in (400, 422) and ("dimension" in text or "matryoshka" in text)
