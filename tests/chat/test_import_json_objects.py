"""A long JSON document, element by element."""

import io
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from chat.importers.base import ImportRejectedError, InvalidItemError
from chat.importers.json_objects import iter_elements

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text('a"\\{}[],é\n'),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('a"]{'), inner, max_size=3),
    max_leaves=8,
)
CONTAINERS = st.lists(JSON, max_size=3) | st.dictionaries(st.text('a"\\'), JSON, max_size=3)


class Chunked(io.BytesIO):
    """A file that is read at most `size` bytes at a time."""

    def __init__(self, data: bytes, size: int) -> None:
        super().__init__(data)
        self.size = size

    def read(self, size: int | None = -1) -> bytes:
        return super().read(self.size if size is None or size < 0 else min(size, self.size))


def elements(written: bytes, size: int = 3, max_bytes: int = 1000) -> list:
    """The elements, read `size` bytes at a time; errors as their text."""
    matches = iter_elements(Chunked(written, size), max_bytes=max_bytes)
    return [str(it) if isinstance(it, InvalidItemError) else it for it in matches]


@given(st.lists(CONTAINERS, max_size=4), st.integers(1, 9), st.booleans(), st.booleans())
def test_elements_are_what_json_says_whatever_the_chunks(whole, size, ascii, indented):
    written = json.dumps(whole, ensure_ascii=ascii, indent=1 if indented else None).encode()
    assert elements(written, size, max_bytes=100_000) == whole


@given(st.dictionaries(st.text(), JSON, min_size=1, max_size=3), st.integers(1, 9))
def test_an_object_is_its_own_only_element(whole, size):
    assert elements(json.dumps(whole).encode(), size, max_bytes=100_000) == [whole]


@given(st.binary(max_size=60), st.integers(1, 5))
def test_nothing_makes_it_fail(written, size):
    elements(written, size)


def test_a_byte_order_mark_is_passed_over():
    assert elements(b'\xef\xbb\xbf[{"a": 1}]') == [{"a": 1}]


def test_scalars_are_read_too():
    assert elements(b'[null, {"a": 1}, "x", []]') == [None, {"a": 1}, "x", []]


def test_one_that_is_too_long_costs_only_itself():
    written = json.dumps([{"a": 1}, {"b": "x" * 2000}, {"c": 3}]).encode()
    assert elements(written, size=64) == [{"a": 1}, "It is longer than 0 MB.", {"c": 3}]


def test_spaces_take_no_room():
    assert elements(b"[" + b" " * 50_000 + b"{}" + b" " * 50_000 + b"]", size=100) == [{}]


@pytest.mark.parametrize("cut", [b'[{"a": 1}, {"b": "x', b'[{"a": 1}, {"b": [', b'[{"a": 1},'])
def test_a_document_that_breaks_off_says_so(cut):
    assert elements(cut) == [{"a": 1}, "The file breaks off here."]


def test_endless_nesting_is_refused():
    with pytest.raises(ImportRejectedError, match="nested"):
        elements(b"[" * 2000, size=100)


def test_an_endless_text_is_refused_after_few_reads():
    class Endless(io.BytesIO):
        sizes: list[int] = []

        def read(self, size: int | None = -1) -> bytes:
            self.sizes.append(size or 0)
            return super().read(3) or b"a" * (size or 0)

    # The parser begins anew after each read, so that many small ones take minutes.
    with pytest.raises(ImportRejectedError, match="longer than 64 MB"):
        list(iter_elements(Endless(b'["a')))
    assert len(Endless.sizes) < 50
    assert max(Endless.sizes) <= 2 * 2**20
