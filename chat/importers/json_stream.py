"""Reads a long JSON document element by element, so that only one element is in memory.

The document is an array, whose items are the elements, or a single object.
"""

from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, BinaryIO

import ijson

from chat.importers.base import ImportedSession, ImportRejectedError, ImportResult, InvalidItemError
from chat.importers.json_fields import JSONObject, raise_if_invalid

MAX_ELEMENT_BYTES = 64 * 2**20
# The parser holds a whole string, even one that is not used. So many bytes without an event of the
# parser end the document.
MAX_TOKEN_BYTES = 2 * MAX_ELEMENT_BYTES
BUFFER_BYTES = 64 * 2**10
MAX_DEPTH = 1_000
# If none of the first elements is a conversation, the rest of the file is not read.
MAX_LEADING_ERRORS = 1_000

# True with the items of the inner array, see `iter_elements`.
Element = tuple[bool, Any]


def read_conversations(
    objects: Iterable[JSONObject | InvalidItemError],
    result: ImportResult,
    read: Callable[[JSONObject, list[str]], ImportedSession],
) -> Iterator[ImportedSession]:
    """Yield the result of `read` for each of `objects`.

    `read` raises `InvalidItemError`, or adds the errors of single messages to its second argument.
    Raises `ImportRejectedError` if there is no conversation at all.
    """
    found = False
    for number, fields in enumerate(objects, 1):
        errors: list[str] = []
        try:
            yield read(raise_if_invalid(fields), errors)
            found = True
        except InvalidItemError as error:
            errors.append(str(error))
        for message in errors:
            result.errors.append(f"Conversation {number}: {message}")
        if number == MAX_LEADING_ERRORS and not found:
            break
    if not found:
        first_error = " ".join(result.errors[:1])
        raise ImportRejectedError(f"It contains no conversation. {first_error}".strip())


def iter_objects(file: BinaryIO) -> Iterator[JSONObject | InvalidItemError]:
    """Yield the JSON objects in `file`, and an error in place of each other element."""
    return (as_object(element) for _, element in iter_elements(file))


def iter_objects_with_inner(
    file: BinaryIO, name: str, convert: Callable[[JSONObject | InvalidItemError], Any]
) -> Iterator[JSONObject | InvalidItemError]:
    """Like `iter_objects`, for objects with a long array `name`.

    The array is read item by item, and finally holds what `convert` returned for each.
    """
    items: list[Any] = []
    for is_inner, element in iter_elements(file, name):
        fields = as_object(element)
        if is_inner:
            items.append(convert(fields))
        else:
            yield fields if isinstance(fields, InvalidItemError) else fields | {name: items}
            items = []


def as_object(element: Any) -> JSONObject | InvalidItemError:
    if isinstance(element, dict | InvalidItemError):
        return element
    return InvalidItemError("It is not a JSON object.")


def iter_elements(
    file: BinaryIO, inner: str = "", max_bytes: int = MAX_ELEMENT_BYTES
) -> Iterator[Element]:
    """Yield the elements of `file`, each with False.

    An error takes the place of an element with more than `max_bytes` of content, and of the rest of
    a damaged file. With `inner`, the items of an element's array of that name are yielded first,
    each with True; the array of the element is then empty. Raises `ImportRejectedError` for too
    many levels of nesting.
    """
    source = _Source(file)
    reader = _ElementReader(inner, max_bytes)
    try:
        for event, value in ijson.basic_parse(source, buf_size=BUFFER_BYTES, multiple_values=True):
            source.bytes_since_event = 0
            yield from reader.handle(event, value)
    except (ijson.JSONError, ValueError, SystemError) as error:
        # The parser raises SystemError or ValueError for an integer of thousands of digits.
        incomplete = "premature EOF" in str(error) or "Incomplete" in str(error)
        yield (
            False,
            InvalidItemError(
                "The file breaks off here." if incomplete else "It is not JSON from here on."
            ),
        )


class _Source:
    """The file as the parser reads it: without a byte order mark, and with a limit per token."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self._at_start = True
        self.bytes_since_event = 0

    def read(self, size: int = -1) -> bytes:
        data = self._file.read(size)
        if self._at_start and size:
            while data and len(data) < 3 and (more := self._file.read(3 - len(data))):
                data += more
            data = data.removeprefix(b"\xef\xbb\xbf") or (data and self._file.read(size))
            self._at_start = False
        self.bytes_since_event += len(data)
        if self.bytes_since_event > MAX_TOKEN_BYTES:
            raise ImportRejectedError(f"A text in it is longer than {MAX_TOKEN_BYTES // 2**20} MB.")
        return data


class _ElementReader:
    """Builds elements from the parser's events.

    `level` is the depth at which elements begin: 1 in an array, 0 outside of one, and two more in
    an inner array.
    """

    def __init__(self, inner: str, max_bytes: int) -> None:
        self.inner, self.max_bytes = inner, max_bytes
        self.depth = self.level = 0
        self.builder, self.bytes = ijson.ObjectBuilder(), 0
        self.outer: tuple[ijson.ObjectBuilder, int] | None = None
        self.last_key = ""

    def handle(self, event: str, value: Any) -> Iterator[Element]:
        is_start = event in ("start_map", "start_array")
        is_end = event in ("end_map", "end_array")
        self.depth -= is_end
        if self.depth < self.level or (event == "start_array" and self.depth == 0):
            # The outermost array, or the inner one, begins or ends.
            if is_end and self.outer is not None:
                self._leave_inner(event)
            else:
                self.level = int(is_start)
            self.depth += is_start
            return
        self._add(event, value)
        self.depth += is_start
        if self.depth > MAX_DEPTH:
            raise ImportRejectedError("It is nested too deeply.")
        if event == "map_key":
            self.last_key = value
        elif event == "start_array" and self._starts_inner():
            self.outer = self.builder, self.bytes
            self.builder, self.bytes = ijson.ObjectBuilder(), 0
            self.level = self.depth
        elif self.depth == self.level:
            yield self.outer is not None, self._take()

    def _starts_inner(self) -> bool:
        is_member = self.outer is None and self.depth == self.level + 2
        return bool(self.inner) and is_member and self.last_key == self.inner

    def _leave_inner(self, event: str) -> None:
        assert self.outer is not None
        self.builder, self.bytes = self.outer
        self.outer = None
        self.level -= 2
        self._add(event, None)

    def _add(self, event: str, value: Any) -> None:
        # An event stands for at least three characters: brackets or a value, and a separator.
        self.bytes += 3 + (len(value) if isinstance(value, str) else 0)
        if self.bytes <= self.max_bytes:
            number = float(value) if isinstance(value, Decimal) else value
            self.builder.event(event, number)
        else:
            self.builder = ijson.ObjectBuilder()

    def _take(self) -> Any:
        element, size = self.builder.value, self.bytes
        self.builder, self.bytes, self.last_key = ijson.ObjectBuilder(), 0, ""
        if size > self.max_bytes:
            return InvalidItemError(f"It is longer than {self.max_bytes // 2**20} MB.")
        return element
