"""An embedder for tests: words are hashed into directions. It knows nothing of meaning."""

import re
from collections.abc import Sequence
from zlib import crc32

import numpy as np

from memory.recall.embedders.base import Matrix, unit


class HashEmbedder:
    """Texts that share words are near each other, always and everywhere the same."""

    is_here = True

    def __init__(self, dimensions: int = 64) -> None:
        self.dimensions = dimensions
        self.name = f"hash-{dimensions}"

    def documents(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, text in enumerate(texts):
            for word in re.findall(r"\w+", text.lower()):
                rows[row, crc32(word.encode()) % self.dimensions] += 1
        return unit(rows)

    def query(self, text: str) -> Matrix:
        return self.documents([text])[0]
