"""A long JSON document piece by piece: the elements of its array one at a time.

Only the element at hand is in memory, and what is wrong with one costs only that one.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from chat.importers.base import ImportedSession, ImportResult, Refused, Unusable
from chat.importers.fields import Fields, decoded, usable

LONGEST = 64 * 2**20  # bytes of one element
AT_ONCE = 2**20  # bytes
DEEPEST = 1_000  # brackets in each other
# A file that begins with so many elements and no conversation among them is none of conversations.
ENOUGH = 1_000

# Possessive, so that no place to go back to is kept for each character.
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_REST_OF_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BETWEEN = b", \t\r\n\xef\xbb\xbf"


def conversations(
    objects: Iterable[Fields | Unusable],
    result: ImportResult,
    read: Callable[[Fields, list[str]], ImportedSession],
) -> Iterator[ImportedSession]:
    """What `read` makes of each of `objects`, as a file holds them.

    `read` raises Unusable, or adds what was wrong with single messages to the list it gets. Raises
    Refused when there is no conversation at all.
    """
    found = False
    for number, fields in enumerate(objects, 1):
        damaged: list[str] = []
        try:
            yield read(usable(fields), damaged)
            found = True
        except Unusable as reason:
            damaged.append(str(reason))
        for wrong in damaged:
            result.errors.append(f"Conversation {number}: {wrong}")
        if number == ENOUGH and not found:
            break
    if not found:
        raise Refused(f"It holds no conversation. {' '.join(result.errors[:1])}".strip())


def objects_of(file: BinaryIO) -> Iterator[Fields | Unusable]:
    """The JSON objects in `file`, an array of them or a single one; reasons in place of others."""
    return map(decoded, split(_chunks(file)))


def gathered(
    file: BinaryIO, name: str, keep: Callable[[Fields | Unusable], Any]
) -> Iterator[Fields | Unusable]:
    """As `objects_of`, for objects that are long by their array `name`: that is read element by
    element, and holds in the end what `keep` made of each.
    """
    kept: list[Any] = []
    for is_inner, element in pieces(_chunks(file), name):
        fields = decoded(element)
        if is_inner:
            kept.append(keep(fields))
        else:
            yield fields if isinstance(fields, Unusable) else fields | {name: kept}
            kept = []


def _chunks(file: BinaryIO) -> Iterator[bytes]:
    return iter(lambda: file.read(AT_ONCE), b"")


def split(chunks: Iterable[bytes], longest: int = LONGEST) -> Iterator[bytes | Unusable]:
    """The elements of the array that `chunks` spell, as they are written; of an object, itself.

    In place of one that is longer than `longest` bytes, or that is not there to its end, comes
    the reason. Raises Refused for what is nested deeper than any conversation.
    """
    return (element for _, element in pieces(chunks, longest=longest))


def pieces(
    chunks: Iterable[bytes], inner: str = "", longest: int = LONGEST
) -> Iterator[tuple[bool, bytes | Unusable]]:
    """As `split`, each with False; but of elements that have an array `inner` comes first what
    that holds, each with True, and then the element, in which it is empty.
    """
    reader = _Reader(inner, longest)
    for text, bracket in _brackets(chunks):
        reader.element.add(text)
        if bracket:
            yield from reader.opened(bracket) if bracket in b"[{" else reader.closed(bracket)
    yield from reader.ended()


class _Reader:
    """Where in the document one is: how deep, and in which element.

    `level` is the depth at which elements begin: 1 in an array, 0 for a single object, and two
    more in an inner array.
    """

    def __init__(self, inner: str, longest: int) -> None:
        self.inner = re.compile(rb'"%s"\s*:\s*\[\Z' % inner.encode()) if inner else None
        self.outer = self.element = _Element(longest)
        self.level = self.depth = 0
        self.begun = False

    def opened(self, bracket: bytes) -> Iterator[tuple[bool, bytes | Unusable]]:
        if not self.begun:
            self.begun, self.level = True, int(bracket == b"[")
        if self.depth <= self.level:
            yield from self.element.between()
        if self.depth >= self.level:
            self.element.add(bracket)
        self.depth += 1
        if self.depth > DEEPEST:
            raise Refused("It is nested too deeply.")
        if self.depth == self.level + 2 and self._opens_inner():
            self.element, self.level = _Element(self.outer.longest, is_inner=True), self.depth

    def closed(self, bracket: bytes) -> Iterator[tuple[bool, bytes | Unusable]]:
        self.depth = max(self.depth - 1, 0)
        if self.depth < self.level:
            yield from self.element.between()
            if self.element.is_inner:
                self.element, self.level = self.outer, self.level - 2
        if self.depth >= self.level:
            self.element.add(bracket)
        if self.depth == self.level:
            yield self.element.whole()

    def ended(self) -> Iterator[tuple[bool, bytes | Unusable]]:
        if self.depth:
            yield False, Unusable("The file breaks off here.")
        else:
            yield from self.element.between()

    def _opens_inner(self) -> bool:
        if self.inner is None or self.element.is_inner:
            return False
        return bool(self.inner.search(self.element.bytes[-200:]))


def _brackets(chunks: Iterable[bytes]) -> Iterator[tuple[bytes, bytes]]:
    """The document as pairs of what stands before a bracket and the bracket, which is empty where
    a chunk ends. What is a bracket in a text is none.
    """
    quoted = False
    rest = b""
    for chunk in chunks:
        data = rest + chunk
        start = at = 0
        while at < len(data):
            if quoted:
                at = _REST_OF_STRING.match(data, at).end()  # type: ignore[union-attr]
                if data[at : at + 1] != b'"':
                    break
                quoted = False
                at += 1
            at = _UP_TO_BRACKET.match(data, at).end()  # type: ignore[union-attr]
            mark = data[at : at + 1]
            quoted = mark == b'"'
            if mark and not quoted:
                yield data[start:at], mark
                start = at + 1
            at += len(mark)
        yield data[start:at], b""
        # A backslash belongs together with what the next chunk begins with.
        rest = data[at:]


class _Element:
    """The bytes of the element at hand; when there are too many of them, only that fact."""

    def __init__(self, longest: int, is_inner: bool = False) -> None:
        self.longest, self.is_inner = longest, is_inner
        self.bytes = bytearray()
        self.too_long = False

    def add(self, part: bytes) -> None:
        if self.too_long:
            return
        # The commas and spaces between two elements belong to none.
        self.bytes += part if self.bytes else part.lstrip(_BETWEEN)
        if len(self.bytes) > self.longest:
            self.bytes.clear()
            self.too_long = True

    def whole(self) -> tuple[bool, bytes | Unusable]:
        """The element, which ends here."""
        element, too_long = bytes(self.bytes), self.too_long
        self.bytes.clear()
        self.too_long = False
        if too_long:
            return self.is_inner, Unusable(f"It is longer than {self.longest // 2**20} MB.")
        return self.is_inner, element

    def between(self) -> Iterator[tuple[bool, bytes | Unusable]]:
        """What stands between two elements if it is more than a comma: numbers, texts, nulls."""
        self.bytes = self.bytes.strip(_BETWEEN)
        if self.bytes or self.too_long:
            yield self.whole()
