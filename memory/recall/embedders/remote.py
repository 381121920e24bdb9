"""Embedding models behind pydantic-ai: OpenAI, Ollama, Voyage, a compatible server."""

import asyncio
import logging
import time
from collections.abc import Sequence

import numpy as np
from pydantic_ai import exceptions
from pydantic_ai.embeddings import Embedder as Client
from pydantic_ai.embeddings import EmbeddingSettings
from pydantic_ai.embeddings.result import EmbeddingResult, EmbedInputType

from chat.metrics import call
from chat.providers import ProviderError
from chat.providers.failures import explain
from memory.recall.embedders.base import EmbedderError, Matrix, unit

log = logging.getLogger(__name__)

# Texts in one call; providers take between 96 (Cohere) and 2,048 (OpenAI).
BATCH = 96
# Seconds before another try. A query has a reader waiting, who is shown what words alone find.
WAITS = (1.0, 4.0, 15.0)
# Seconds until a call counts as lost. Behind a query waits a reader.
PATIENCE = {"query": 4.0, "document": 60.0}


class RemoteEmbedder:
    """A model by its pydantic-ai name, such as `openai:text-embedding-3-small`.

    Its vectors are kept under a name with the dimensions, since others would not compare.
    """

    is_here = False

    def __init__(self, model: str, dimensions: int) -> None:
        self.model, self.dimensions = model, dimensions
        self.name = f"{model}@{dimensions}"[:200]

    def documents(self, texts: Sequence[str]) -> Matrix:
        rows = [
            self._with_retries(texts[start : start + BATCH])
            for start in range(0, len(texts), BATCH)
        ]
        return np.concatenate(rows) if rows else np.zeros((0, self.dimensions), np.float32)

    def query(self, text: str) -> Matrix:
        return self._embed([text], "query")[0]

    def _with_retries(self, texts: Sequence[str]) -> Matrix:
        for wait in WAITS:
            try:
                return self._embed(texts, "document")
            except EmbedderError as error:
                log.warning("embedding_failed embedder=%s reason=%s", self.name, error)
                time.sleep(wait)
        return self._embed(texts, "document")

    def _embed(self, texts: Sequence[str], input_type: EmbedInputType) -> Matrix:
        try:
            with call(self.model, "embedding") as made:
                result = self._asked(texts, input_type)
                made.embedded(result.usage.input_tokens)
        except ProviderError as error:
            raise EmbedderError(error.reason) from error
        except (ImportError, ValueError) as error:
            raise EmbedderError(f"The embedder “{self.model}” cannot be used.") from error
        rows = np.asarray(result.embeddings, np.float32)
        if rows.shape != (len(texts), self.dimensions):
            shape = "×".join(map(str, rows.shape))
            raise EmbedderError(
                f"“{self.model}” gave {shape} numbers, not {len(texts)}×{self.dimensions}: "
                "set STRATA_EMBEDDING_DIMENSIONS."
            )
        return unit(rows)

    def _asked(self, texts: Sequence[str], input_type: EmbedInputType) -> EmbeddingResult:
        """Raises ProviderError, and what the client does of a name that it does not know."""
        client = Client(self.model, settings=EmbeddingSettings(dimensions=self.dimensions))
        try:
            return asyncio.run(_in_time(client, texts, input_type))
        except TimeoutError as error:
            reason = f"“{self.model}” did not answer in time."
            raise ProviderError(reason, status=504, code="timeout") from error
        except (exceptions.AgentRunError, exceptions.UserError) as error:
            raise explain(error) from error


async def _in_time(
    client: Client, texts: Sequence[str], input_type: EmbedInputType
) -> EmbeddingResult:
    async with asyncio.timeout(PATIENCE[input_type]):
        return await client.embed(list(texts), input_type=input_type)
