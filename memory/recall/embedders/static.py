"""The built-in embedder: averages static vectors of word pieces, on the CPU and offline."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory.recall.embedders.base import Matrix, normalise

MODEL_DIR = Path(__file__).with_name("static_minilm_256")
# The maximum length of a text; longer texts are cut. Chunks are far shorter.
MAX_TEXT_CHARS = 8_000


class StaticEmbedder:
    """The embedder of the bundled model."""

    name = "static-minilm-256"
    dimensions = 256
    is_local = True

    def __init__(self) -> None:
        # Imported on demand, because the import is slow and most commands do not need it.
        from model2vec import StaticModel

        model = StaticModel.from_pretrained(MODEL_DIR, force_download=False)
        # Set here once, because model2vec's `encode` changes the tokenizer at every call, which is
        # not thread-safe.
        model.tokenizer.no_truncation()
        model.tokenizer.no_padding()
        self.tokenizer = model.tokenizer
        self.table = model.embedding
        self.unknown = model.unk_token_id

    @cached_property
    def vocabulary(self) -> list[str]:
        """Return all word pieces, ordered by id."""
        ids = self.tokenizer.get_vocab()
        return sorted(ids, key=lambda piece: ids[piece])

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, ids in enumerate(self.piece_ids(texts)):
            if len(ids):
                rows[row] = self.table[ids].mean(axis=0)
        return normalise(rows)

    def embed_query(self, text: str) -> Matrix:
        return self.embed_documents([text])[0]

    def piece_ids(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """Return the ids of the word pieces of each text, in order. Unknown pieces are left out."""
        cut = [text[:MAX_TEXT_CHARS] for text in texts]
        encodings = self.tokenizer.encode_batch_fast(cut, add_special_tokens=False)
        id_arrays = [np.asarray(encoding.ids, np.int64) for encoding in encodings]
        return [ids[ids != self.unknown] for ids in id_arrays]


@lru_cache(maxsize=1)
def get_static_embedder() -> StaticEmbedder:
    """Return the embedder of this process, which is loaded on first use."""
    return StaticEmbedder()
