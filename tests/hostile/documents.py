"""Conversation files that attack their parser: (name, bytes) of each."""

import gzip
import json
from collections.abc import Iterator


def all_of_them() -> Iterator[tuple[str, bytes]]:
    for number, data in enumerate(_deep()):
        yield f"deep-{number}.json", data
    for number, data in enumerate(_long()):
        yield f"long-{number}.json", data
    for number, data in enumerate(_tangled()):
        yield f"tangled-{number}.json", data
    for number, data in enumerate(_lines()):
        yield f"lines-{number}.jsonl", data


def _deep() -> Iterator[bytes]:
    yield b"[" * 10**6
    yield b'[{"mapping": ' + b'{"a":' * 200_000
    yield b'[{"mapping": {"children": ' + b"[" * 10**5 + b"]" * 10**5 + b"}}]"


def _long() -> Iterator[bytes]:
    inside = b'[{"mapping": {"children": {}}, "title": %s}]'
    yield inside % (b"1" * 10**6)
    yield inside % b"1e999999999"
    yield inside % (b'"' + b"\\ud800" * 10**6 + b'"')
    yield inside % b"NaN"
    yield inside % (b'"' + b"\xff" * 1000 + b'"')
    yield b"[" + b'{"mapping": {}},' * 300_000 + b"]"
    yield b'[{"mapping": {"children": 1,' + b'"a": 1,' * 500_000 + b'"b": 1}}]'
    yield "[]".encode("utf-16")
    yield gzip.compress(bytes(10**8))


def _tangled() -> Iterator[bytes]:
    """Trees of messages that are none."""
    message = {"author": {"role": "user"}, "content": {"parts": ["x"]}, "create_time": 1.0}
    ring = {
        str(n): {"id": str(n), "parent": str((n + 1) % 50), "children": [str(n - 1)]}
        for n in range(50)
    }
    chain = {
        str(n): {"id": str(n), "parent": str(n - 1), "children": [str(n + 1)], "message": message}
        for n in range(50_000)
    }
    for mapping in (
        ring,
        chain,
        {"a": {"id": "a", "parent": "a", "children": ["a"] * 10**5, "message": message}},
        {"a": {"id": "a", "message": {**message, "content": {"parts": [[]] * 10**5}}}},
        {"a": {"id": "a", "message": {**message, "create_time": 1e308}}},
        {"a": None},
    ):
        talk = {"mapping": mapping, "title": "x", "current_node": "a", "create_time": -1e300}
        yield json.dumps([talk]).encode()


def _lines() -> Iterator[bytes]:
    yield b'{"session": "a", "role": "user", "content": "' + b"x" * 5 * 2**20 + b'"}\n'
    yield b"\n" * 10**6
    yield b'{"session": "a"}\n' * 10**5
    yield b'{"session": "a", "role": "user", "content": "x", "created_at": "99999-01-01"}\n'
    yield b'{"session": ' + b"[" * 10**5 + b"\n"
