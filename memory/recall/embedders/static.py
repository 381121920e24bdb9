"""The built-in embedder: the mean of static vectors of word pieces, on the processor, offline."""

from collections.abc import Sequence
from functools import cached_property, lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from memory.recall.embedders.base import Matrix, unit

FOLDER = Path(__file__).with_name("static_minilm_256")
# Characters that are read of one text; a chunk has far fewer.
LONGEST = 8_000


class StaticEmbedder:
    name = "static-minilm-256"
    dimensions = 256
    is_here = True

    def __init__(self) -> None:
        # Takes a moment to import, which no command that recalls nothing should pay.
        from model2vec import StaticModel

        model = StaticModel.from_pretrained(FOLDER, force_download=False)
        # Set once here: model2vec's own `encode` changes the tokenizer at each call, which two
        # threads must not do at a time.
        model.tokenizer.no_truncation()
        model.tokenizer.no_padding()
        self.tokenizer = model.tokenizer
        self.table = model.embedding
        self.unknown = model.unk_token_id

    @cached_property
    def vocabulary(self) -> list[str]:
        """The word pieces by their ids."""
        known = self.tokenizer.get_vocab()
        return sorted(known, key=lambda piece: known[piece])

    @cached_property
    def units(self) -> Matrix:
        """The vectors of the pieces, scaled to length one."""
        return unit(self.table.astype(np.float32))

    def documents(self, texts: Sequence[str]) -> Matrix:
        rows = np.zeros((len(texts), self.dimensions), np.float32)
        for row, ids in enumerate(self.pieces(texts)):
            if len(ids):
                rows[row] = self.table[ids].mean(axis=0)
        return unit(rows)

    def query(self, text: str) -> Matrix:
        return self.documents([text])[0]

    def pieces(self, texts: Sequence[str]) -> list[NDArray[np.int64]]:
        """The ids of the word pieces of each text, in order, without unknown ones."""
        cut = [text[:LONGEST] for text in texts]
        encoded = self.tokenizer.encode_batch_fast(cut, add_special_tokens=False)
        found = [np.asarray(one.ids, np.int64) for one in encoded]
        return [ids[ids != self.unknown] for ids in found]


@lru_cache(maxsize=1)
def static() -> StaticEmbedder:
    """The one of this process."""
    return StaticEmbedder()
