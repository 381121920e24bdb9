"""Texts as vectors: the built-in embedder, that of the tests, and models elsewhere at the wire."""

import base64
import json
import os
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import numpy as np
import pytest

from chat.providers import http_clients
from memory.models import Chunk
from memory.recall import chunk_writer, wordpieces
from memory.recall.embedders import EmbedderError, remote
from memory.recall.embedders.remote import RemoteEmbedder
from memory.recall.embedders.static import MODEL_DIR, get_static_embedder
from tests.memory.hash_embedder import HashEmbedder


class Server(ThreadingHTTPServer):
    """OpenAI's embeddings at the wire: vectors of three dimensions, once `failures` are over."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), Handler)
        self.requests: list[dict] = []
        self.failures: list[int] = []
        self.max_batch = self.max_chars = 1_000_000
        self.has_dimensions = True
        self.delay, self.error = 0.0, "no"
        self.value = 1.0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class Handler(BaseHTTPRequestHandler):
    server: Server

    def log_message(self, format: str, *args: object) -> None:
        pass

    def do_POST(self) -> None:
        payload = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(payload)
        time.sleep(self.server.delay)
        status = self.server.failures.pop(0) if self.server.failures else 200
        texts, error = payload["input"], self.server.error
        if "dimensions" in payload and not self.server.has_dimensions:
            status, error = 400, "It does not support changing output dimensions."
        elif len(texts) > self.server.max_batch:
            status, error = 422, f"batch size {len(texts)} > maximum allowed batch size"
        elif max(map(len, texts)) > self.server.max_chars:
            status, error = 413, "`inputs` must have less than 512 tokens."
        vectors = np.array([[len(text), self.server.value, 0] for text in texts], "<f4")
        data = [
            {"object": "embedding", "index": place, "embedding": _encoded(vector, payload)}
            for place, vector in enumerate(vectors)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        answer = {"object": "list", "model": "m", "data": data, "usage": usage}
        body = json.dumps(answer if status == 200 else {"error": {"message": error}}).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


def _encoded(vector, request) -> object:
    if request.get("encoding_format") == "base64":
        return base64.b64encode(vector.tobytes()).decode()
    return vector.tolist()


@pytest.fixture
def server(monkeypatch):
    with Server() as running:
        threading.Thread(target=running.serve_forever, args=(0.02,), daemon=True).start()
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setattr(remote, "RETRY_WAITS_S", (0.0, 0.0))
        yield running
        running.shutdown()


def test_the_built_in_embedder_gives_what_its_library_gives():
    from model2vec import StaticModel

    texts = ["The cutover is on the third of March.", "", "Ωmega 你好 😀", "a " * 400]
    theirs = StaticModel.from_pretrained(MODEL_DIR, force_download=False).encode(texts)
    lengths = np.maximum(np.linalg.norm(theirs, axis=1, keepdims=True), 1e-12)
    np.testing.assert_allclose(
        get_static_embedder().embed_documents(texts), theirs / lengths, atol=1e-5
    )


def test_it_can_be_used_by_many_threads_at_once():
    texts = [f"Message number {number} of many." for number in range(200)]
    alone = get_static_embedder().embed_documents(texts)
    with ThreadPoolExecutor(8) as pool:
        for rows in pool.map(get_static_embedder().embed_documents, [texts] * 16):
            np.testing.assert_array_equal(rows, alone)


@pytest.mark.parametrize(
    "embedder", [get_static_embedder(), HashEmbedder()], ids=lambda item: item.name
)
def test_vectors_have_length_one_and_the_same_text_the_same_vector(embedder):
    rows = embedder.embed_documents(["The cutover.", "A garden full of tulips."])
    assert rows.shape == (2, embedder.dimensions)
    np.testing.assert_allclose(np.linalg.norm(rows, axis=1), 1, atol=1e-5)
    np.testing.assert_array_equal(embedder.embed_query("The cutover."), rows[0])


def test_packed_vectors_can_be_unpacked():
    names, ids, sizes = wordpieces.unpack(wordpieces.pack(["We met Ana in Paris.", "", "no names"]))
    assert names.tolist() == [2, 0, 0]
    assert sizes.tolist() == [6, 0, 2]
    assert ids[:6].tolist() == get_static_embedder().piece_ids(["We met Ana in Paris."])[0].tolist()


def test_a_model_elsewhere_is_asked_in_batches(server, monkeypatch):
    monkeypatch.setattr(remote, "BATCH_SIZE", 2)
    embedder = RemoteEmbedder("openai:small", 3)
    rows = embedder.embed_documents(["a", "bb", "ccc"])
    assert rows.shape == (3, 3)
    np.testing.assert_allclose(rows[2], np.array([3, 1, 0]) / np.sqrt(10), atol=1e-6)
    assert [request["input"] for request in server.requests] == [["a", "bb"], ["ccc"]]
    assert server.requests[0]["dimensions"] == 3
    assert embedder.name == "openai:small@3"
    # Another event loop each time, as in a web process.
    np.testing.assert_allclose(embedder.embed_query("ccc"), rows[2])


@pytest.mark.django_db
def test_a_lease_is_renewed_before_each_request(server, project):
    renewals = []
    chunks = [Chunk(project_id=project.pk, text="text")] * 200
    rows = chunk_writer.embed(
        chunks, RemoteEmbedder("openai:small", 3), lambda: renewals.append(len(server.requests))
    )
    assert rows.shape == (200, 3)
    assert [len(request["input"]) for request in server.requests] == [96, 96, 8]
    assert renewals == [0, 1, 2]


def test_a_server_that_takes_fewer_texts_gets_smaller_batches(server):
    server.max_batch = 10
    embedder = RemoteEmbedder("openai:small", 3)
    texts = ["a" * length for length in range(1, 31)]
    rows = embedder.embed_documents(texts)
    assert rows.shape == (30, 3)
    np.testing.assert_allclose(rows[:, 0] / rows[:, 1], np.arange(1, 31), rtol=1e-5)
    server.requests.clear()
    embedder.embed_documents(texts[:20])
    assert [len(request["input"]) for request in server.requests] == [8, 8, 4]


def test_of_a_text_that_is_too_long_the_beginning_is_embedded(server):
    server.max_chars = 600
    embedder = RemoteEmbedder("openai:small", 3)
    rows = embedder.embed_documents(["a", "b" * 2_000, "cc"])
    np.testing.assert_allclose(rows[:, 0] / rows[:, 1], [1, 500, 2], rtol=1e-5)
    assert embedder.embed_query("b" * 2_000)[0] == rows[1][0]
    server.requests.clear()
    embedder.embed_documents(["a", "b", "c"])
    assert [len(request["input"]) for request in server.requests] == [3]


def test_dimensions_are_sent_again_after_a_request_that_failed_without_them_too(server):
    """Some servers quote the texts, which may contain the word, in any error."""
    embedder = RemoteEmbedder("openai:small", 3)
    server.has_dimensions, server.max_chars = False, 0
    with pytest.raises(EmbedderError):
        embedder.embed_query("a")
    server.has_dimensions, server.max_chars = True, 10
    embedder.embed_query("a")
    assert ["dimensions" in request for request in server.requests] == [True, False, True]


def test_texts_that_are_rejected_for_another_reason_are_an_error(server):
    server.max_chars = 0
    with pytest.raises(EmbedderError, match="too long"):
        RemoteEmbedder("openai:small", 3).embed_documents(["a", "b"])
    with pytest.raises(EmbedderError, match="too long"):
        RemoteEmbedder("openai:small", 3).embed_query("a")


def test_dimensions_are_not_sent_to_a_server_that_rejects_them(server):
    server.has_dimensions = False
    embedder = RemoteEmbedder("openai:small", 3)
    assert embedder.embed_query("a").shape == (3,)
    embedder.embed_documents(["a"])
    assert ["dimensions" in request for request in server.requests] == [True, False, False]
    with pytest.raises(EmbedderError, match="STRATA_EMBEDDING_DIMENSIONS"):
        RemoteEmbedder("openai:small", 4).embed_query("a")


def test_a_failure_that_passes_is_tried_again(server):
    server.failures += [500] * 3
    assert RemoteEmbedder("openai:small", 3).embed_documents(["a"]).shape == (1, 3)


def test_a_permanent_failure_has_a_readable_reason(server):
    server.failures += [401] * 20
    with pytest.raises(EmbedderError, match="rejected the API key"):
        RemoteEmbedder("openai:small", 3).embed_documents(["a"])


def test_a_server_that_hangs_does_not_keep_a_reader_waiting(server, monkeypatch):
    monkeypatch.setitem(remote.TIMEOUTS_S, "query", 0.05)
    server.delay = 0.5
    with pytest.raises(EmbedderError, match="in time"):
        RemoteEmbedder("openai:small", 3).embed_query("a")


def test_a_server_that_is_down_is_not_asked_again_at_once(server, monkeypatch):
    server.failures += [503] * 20
    embedder = RemoteEmbedder("openai:small", 3)
    with pytest.raises(EmbedderError):
        embedder.embed_query("a")
    server.failures.clear()
    asked = len(server.requests)
    for _ in range(3):
        with pytest.raises(EmbedderError):
            embedder.embed_query("a")
    assert len(server.requests) == asked
    monkeypatch.setattr(remote, "QUERY_RETRY_S", 0)
    assert embedder.embed_query("a").shape == (3,)


def test_after_a_query_that_is_filtered_the_server_is_asked_others(server):
    server.failures += [400]
    server.error = "content_filter"
    embedder = RemoteEmbedder("openai:small", 3)
    with pytest.raises(EmbedderError, match="block"):
        embedder.embed_query("a")
    assert embedder.embed_query("b").shape == (3,)


@pytest.mark.parametrize("provider", ["openai", "ollama"])
def test_a_response_that_is_too_large_is_refused(server, monkeypatch, provider):
    monkeypatch.setenv("OLLAMA_BASE_URL", server.url)
    monkeypatch.setattr(http_clients, "MAX_RESPONSE_BYTES", 100)
    with pytest.raises(EmbedderError):
        RemoteEmbedder(f"{provider}:small", 3).embed_query("a")


def test_other_dimensions_than_are_set_are_refused(server):
    with pytest.raises(EmbedderError, match="STRATA_EMBEDDING_DIMENSIONS"):
        RemoteEmbedder("openai:small", 4).embed_query("a")


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_numbers_that_are_not_finite_are_refused(server, value):
    server.value = value
    with pytest.raises(EmbedderError, match="not finite"):
        RemoteEmbedder("openai:small", 3).embed_query("a")


def test_an_unreachable_server_has_a_readable_reason(monkeypatch):
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    with pytest.raises(EmbedderError, match="connection to the model failed"):
        RemoteEmbedder("openai:small", 3).embed_query("a")


@pytest.mark.parametrize(
    ("variables", "named"),
    [
        ({"STRATA_EMBEDDER": "nothing"}, "STRATA_EMBEDDER takes `static`"),
        ({"STRATA_EMBEDDER": "openai:small"}, "STRATA_EMBEDDING_DIMENSIONS takes"),
        ({"STRATA_EMBEDDING_DIMENSIONS": "many"}, "STRATA_EMBEDDING_DIMENSIONS takes"),
        ({"STRATA_SEARCH_LANGUAGE": "no; such"}, "STRATA_SEARCH_LANGUAGE takes"),
    ],
)
def test_a_wrong_setting_ends_the_start_with_one_line(variables, named):
    ended = subprocess.run(
        [sys.executable, "manage.py", "check"],
        env=os.environ | variables,
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 1
    [line] = ended.stderr.strip().splitlines()
    assert named in line
