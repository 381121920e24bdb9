"""A long JSON document piece by piece: the elements of its array one at a time.

Only the element at hand is in memory, and what is wrong with one costs only that one.
"""

import json
import re
from collections.abc import Callable, Iterable, Iterator
from typing import Any, BinaryIO

from chat.importers.base import ImportedSession, ImportResult, Refused, Unusable

LONGEST = 64 * 2**20  # bytes of one element
AT_ONCE = 2**20  # bytes
DEEPEST = 1_000  # brackets in each other
# A file that begins with so many elements and no conversation among them is none of conversations.
ENOUGH = 1_000

# Possessive, so that no place to go back to is kept for each character.
_UP_TO_BRACKET = re.compile(rb'(?:[^"\[\]{}]++|"(?:[^"\\]++|\\.)*+")*+', re.DOTALL)
_REST_OF_STRING = re.compile(rb'(?:[^"\\]++|\\.)*+', re.DOTALL)
_BETWEEN = b", \t\r\n\xef\xbb\xbf"

Fields = dict[str, Any]


def conversations(
    file: BinaryIO, result: ImportResult, read: Callable[[Fields, list[str]], ImportedSession]
) -> Iterator[ImportedSession]:
    """What `read` makes of each conversation in `file`: an array of them, or a single one.

    `read` raises Unusable, or adds what was wrong with single messages to the list it gets. Raises
    Refused when there is no conversation at all.
    """
    found = False
    for number, element in enumerate(split(iter(lambda: file.read(AT_ONCE), b"")), 1):
        damaged: list[str] = []
        try:
            yield read(fields_of(element), damaged)
            found = True
        except Unusable as reason:
            damaged.append(str(reason))
        for wrong in damaged:
            result.errors.append(f"Conversation {number}: {wrong}")
        if number == ENOUGH and not found:
            break
    if not found:
        raise Refused(f"It holds no conversation. {' '.join(result.errors[:1])}".strip())


def fields_of(element: bytes | Unusable) -> Fields:
    """The JSON object of one element. Raises Unusable."""
    if isinstance(element, Unusable):
        raise element
    try:
        fields = json.loads(element.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise Unusable("It is not UTF-8.") from None
    except (ValueError, RecursionError):
        raise Unusable("It is not JSON.") from None
    if not isinstance(fields, dict):
        raise Unusable("It is not a JSON object.")
    return fields


def split(chunks: Iterable[bytes], longest: int = LONGEST) -> Iterator[bytes | Unusable]:
    """The elements of the array that `chunks` spell, as they are written; of an object, itself.

    In place of one that is longer than `longest` bytes, or that is not there to its end, comes
    the reason. Raises Refused for what is nested deeper than any conversation.
    """
    element = _Element(longest)
    # The depth at which elements begin: 1 in an array, 0 for a single object.
    level, depth = 0, 0
    begun = quoted = False
    rest = b""
    for chunk in chunks:
        data, rest = rest + chunk, b""
        kept = at = 0
        while at < len(data):
            if quoted:
                at = _REST_OF_STRING.match(data, at).end()  # type: ignore[union-attr]
                if data[at : at + 1] != b'"':
                    break
                quoted = False
                at += 1
            at = _UP_TO_BRACKET.match(data, at).end()  # type: ignore[union-attr]
            mark = data[at : at + 1]
            if mark == b'"':
                quoted = True
                at += 1
                continue
            if mark in (b"[", b"{"):
                if not begun:
                    begun, level = True, int(mark == b"[")
                    if level:
                        depth, kept = 1, at + 1
                        at += 1
                        continue
                if depth == level:
                    element.add(data[kept:at])
                    kept = at
                    yield from element.between()
                depth += 1
                if depth > DEEPEST:
                    raise Refused("It is nested too deeply.")
            elif mark:
                depth = max(depth - 1, 0)
                if depth == level:
                    element.add(data[kept : at + 1])
                    kept = at + 1
                    yield element.whole()
                elif depth < level:
                    element.add(data[kept:at])
                    kept = at + 1
                    yield from element.between()
            at += 1
        # A backslash belongs together with what the next chunk begins with.
        at = min(at, len(data))
        element.add(data[kept:at])
        rest = data[at:]
        if depth == level and not quoted:
            element.trim()
    if depth or quoted:
        yield Unusable("The file breaks off here.")
    else:
        yield from element.between()


class _Element:
    """The bytes of the element at hand; when there are too many of them, only that fact."""

    def __init__(self, longest: int) -> None:
        self.longest = longest
        self.bytes = bytearray()
        self.too_long = False

    def add(self, part: bytes) -> None:
        if self.too_long:
            return
        self.bytes += part
        if len(self.bytes) > self.longest:
            self.bytes.clear()
            self.too_long = True

    def trim(self) -> None:
        """Forgets the commas and spaces between two elements."""
        self.bytes = self.bytes.strip(_BETWEEN)

    def whole(self) -> bytes | Unusable:
        """The element, which ends here."""
        element, too_long = bytes(self.bytes), self.too_long
        self.bytes.clear()
        self.too_long = False
        if too_long:
            return Unusable(f"It is longer than {self.longest // 2**20} MB.")
        return element

    def between(self) -> Iterator[bytes | Unusable]:
        """What stands between two elements if it is more than a comma: numbers, texts, nulls."""
        self.trim()
        if self.bytes or self.too_long:
            yield self.whole()


def object_in(fields: Fields, name: str) -> Fields:
    """The object under `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def list_in(fields: Fields, name: str) -> list[Any]:
    """The list under `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, list) else []


def text_in(fields: Fields, name: str) -> str:
    """The text under `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""
