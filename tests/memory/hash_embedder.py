"""An embedder that hashes words into dimensions, beside the built-in one."""

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from memory.recall.embedders import Matrix, normalise


class HashEmbedder:
    """Texts that share words have similar vectors, which are the same on every machine."""

    is_local = True

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.name = f"hash-{dimensions}"

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                rows[row, crc32(word.encode()) % self.dimensions] += 1
        return normalise(rows)

    def embed_query(self, text: str) -> Matrix:
        return self.embed_documents([text])[0]
