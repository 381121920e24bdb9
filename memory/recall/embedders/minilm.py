"""The built-in embedder for facts: a sentence transformer that runs on the CPU, offline.

Facts are short, and questions often use other words than the fact. The built-in embedder with
static vectors ranks too few relevant facts first (docs/recall.md).
"""

import json
import math
from collections.abc import Sequence
from functools import lru_cache
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from memory.recall.embedders import Matrix, normalise

MODEL_DIR = Path(__file__).with_name("minilm_l6")
LAYERS, HEADS = 6, 12
# The maximum length of a text; longer texts are cut. Attention takes time quadratic in the length.
MAX_TEXT_CHARS = 2_000
MAX_TOKENS = 128
LAYER_NORM_EPSILON = 1e-12
# https://personal.math.ubc.ca/~cbm/aands/page_299.htm, formula 7.1.26; the error is below 2e-7.
ERF_COEFFICIENTS = (1.061405429, -1.453152027, 1.421413741, -0.284496736, 0.254829592)
ERF_P = 0.3275911


class MiniLmEmbedder:
    """The embedder of the bundled model all-MiniLM-L6-v2, with weights of 8 bits.

    The architecture is BERT (https://doi.org/10.48550/arXiv.1810.04805). The vector is the mean of
    the last layer.
    """

    name = "minilm-l6-384"
    dimensions = 384
    is_local = True

    def __init__(self) -> None:
        # Read as JSON, because the model's file sets padding to the maximum length.
        tokenizer = json.loads((MODEL_DIR / "tokenizer.json").read_text())
        self.tokenizer = Tokenizer.from_str(json.dumps(tokenizer | {"padding": None}))
        self.tokenizer.enable_truncation(MAX_TOKENS)
        stored = load_file(MODEL_DIR / "model.safetensors")
        # Word embeddings stay as integers, because a text needs only a few of them.
        self.words = stored.pop("embeddings.word_embeddings.weight")
        self.word_scales = stored.pop("embeddings.word_embeddings.weight.scale")
        self.weights = {
            name: _dequantise(values, stored.get(f"{name}.scale"))
            for name, values in stored.items()
            if not name.endswith(".scale")
        }

    def embed_documents(self, texts: Sequence[str]) -> Matrix:
        cut = [text[:MAX_TEXT_CHARS] for text in texts]
        rows = [self._embed(encoding.ids) for encoding in self.tokenizer.encode_batch_fast(cut)]
        return normalise(np.stack(rows)) if rows else np.zeros((0, self.dimensions), np.float32)

    def embed_query(self, text: str) -> Matrix:
        return self.embed_documents([text])[0]

    def _embed(self, ids: Sequence[int]) -> Matrix:
        """Return the mean of the last layer over all tokens."""
        words = self.words[ids].astype(np.float32) * self.word_scales[ids, None]
        positions = self.weights["embeddings.position_embeddings.weight"][: len(ids)]
        kind = self.weights["embeddings.token_type_embeddings.weight"][0]
        state = self._normalise(words + positions + kind, "embeddings.LayerNorm")
        for number in range(LAYERS):
            layer = f"encoder.layer.{number}"
            attended = self._linear(self._attend(state, layer), f"{layer}.attention.output.dense")
            state = self._normalise(state + attended, f"{layer}.attention.output.LayerNorm")
            hidden = gelu(self._linear(state, f"{layer}.intermediate.dense"))
            changed = self._linear(hidden, f"{layer}.output.dense")
            state = self._normalise(state + changed, f"{layer}.output.LayerNorm")
        return state.mean(axis=0)

    def _attend(self, state: Matrix, layer: str) -> Matrix:
        """Return the self-attention of all heads, concatenated."""
        query, key, value = (
            self._linear(state, f"{layer}.attention.self.{name}")
            .reshape(len(state), HEADS, -1)
            .transpose(1, 0, 2)
            for name in ("query", "key", "value")
        )
        scores = query @ key.transpose(0, 2, 1) / math.sqrt(query.shape[-1])
        shares = np.exp(scores - scores.max(axis=-1, keepdims=True))
        shares /= shares.sum(axis=-1, keepdims=True)
        return (shares @ value).transpose(1, 0, 2).reshape(len(state), -1)

    def _linear(self, rows: Matrix, name: str) -> Matrix:
        return rows @ self.weights[f"{name}.weight"].T + self.weights[f"{name}.bias"]

    def _normalise(self, rows: Matrix, name: str) -> Matrix:
        centred = rows - rows.mean(axis=-1, keepdims=True)
        deviation = np.sqrt((centred**2).mean(axis=-1, keepdims=True) + LAYER_NORM_EPSILON)
        return centred / deviation * self.weights[f"{name}.weight"] + self.weights[f"{name}.bias"]


def _dequantise(values: NDArray, scales: NDArray | None) -> Matrix:
    """Return the weights as floats. Weights of 8 bits have a scale for each row."""
    weights = values.astype(np.float32)
    return weights if scales is None else weights * scales[:, None]


def gelu(values: Matrix) -> Matrix:
    """Return GELU, x·Φ(x). https://doi.org/10.48550/arXiv.1606.08415"""
    size = np.abs(values) / np.float32(math.sqrt(2))
    steps = 1 / (1 + np.float32(ERF_P) * size)
    series: NDArray = np.zeros_like(values)
    for coefficient in ERF_COEFFICIENTS:
        series = (series + np.float32(coefficient)) * steps
    erf = np.sign(values) * (1 - series * np.exp(-size * size))
    return (values * (1 + erf) / 2).astype(np.float32)


@lru_cache(maxsize=1)
def get_minilm_embedder() -> MiniLmEmbedder:
    """Return the embedder of this process, which is loaded on first use."""
    return MiniLmEmbedder()
