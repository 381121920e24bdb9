"""Reads JSON of other programs: a long document element by element, and fields of any type.

A document is an array of elements, or a single object, which is then the only element. Only one
element is in memory at a time. A field of a wrong type is treated as missing.
"""

import json
from collections.abc import Callable, Iterable, Iterator
from decimal import Decimal
from typing import Any, BinaryIO, TypeVar

import ijson
from django.utils.translation import gettext_noop as _

from chat.importers.base import ImportedSession, ImportRejectedError, ImportResult, InvalidItemError

# Also the maximum number of bytes without a parser event. The parser holds a complete string in
# memory, even if it is not used, so reading stops at this limit.
MAX_ELEMENT_BYTES = 64 * 2**20
BUFFER_BYTES = 64 * 2**10
# The parser scans a string from its start again after each read: 64 MB of escapes took 240 seconds
# in reads of BUFFER_BYTES. Reads grow with the string to this limit; they do not grow further
# because the events of a read (up to 50 times its size) are in memory at once.
MAX_READ_BYTES = 2 * 2**20
MAX_DEPTH = 1_000
# If none of the first elements, up to this number, is a conversation, reading stops.
MAX_LEADING_ERRORS = 1_000

JSONObject = dict[str, Any]
ParserEvents = Iterator[tuple[str, Any]]
T = TypeVar("T")


def read_conversations(
    objects: Iterable[JSONObject | InvalidItemError],
    result: ImportResult,
    read: Callable[[JSONObject, list[str]], ImportedSession],
) -> Iterator[ImportedSession]:
    """Yield the conversations that `read` returns for each of `objects`.

    `read` may raise `InvalidItemError`, or add errors of single messages to its second argument.
    Raises `ImportRejectedError` if there is no conversation.
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
            result.errors.append(_("Conversation %s") % number + f": {message}")
        if number == MAX_LEADING_ERRORS and not found:
            break
    if not found:
        raise ImportRejectedError(
            "\n".join([_("It contains no conversation."), *result.errors[:1]])
        )


def iter_objects(
    file: BinaryIO,
    inner: str = "",
    convert: Callable[[JSONObject | InvalidItemError], Any] | None = None,
) -> Iterator[JSONObject | InvalidItemError]:
    """Yield the JSON objects in `file`. Any other element is replaced by an error.

    The array `inner` of an object may be longer than the limit of an element. It is read item by
    item, and each item is replaced by the result of `convert`.
    """
    return map(as_object, iter_elements(file, inner, convert))


def as_object(element: Any) -> JSONObject | InvalidItemError:
    if isinstance(element, dict | InvalidItemError):
        return element
    return InvalidItemError(_("It is not a JSON object."))


def iter_elements(
    file: BinaryIO,
    inner: str = "",
    convert: Callable[[Any], Any] | None = None,
    max_bytes: int = MAX_ELEMENT_BYTES,
) -> Iterator[Any]:
    """Yield the elements of `file`. `inner` and `convert` have the same meaning as in
    `iter_objects`.

    An element with more than `max_bytes` of content is replaced by an error, and so is the rest of
    a damaged file. Raises `ImportRejectedError` if the nesting is too deep.
    """
    events = _events(file)
    try:
        for event in events:
            if event[0] == "start_array":
                yield from _items(events, max_bytes, inner, convert)
            else:
                yield _build(event, events, max_bytes, inner, convert)
    except (ijson.JSONError, ValueError, SystemError) as error:
        # The parser raises SystemError or ValueError for an integer with thousands of digits.
        incomplete = "premature EOF" in str(error) or "Incomplete" in str(error)
        yield InvalidItemError(
            _("The file breaks off here.") if incomplete else _("It is not JSON from here on.")
        )


def _events(file: BinaryIO) -> ParserEvents:
    source = _Source(file)
    for event in ijson.basic_parse(source, buf_size=BUFFER_BYTES, multiple_values=True):
        source.bytes_since_event = 0
        yield event


class _Source:
    """The input of the parser: the file without a byte order mark, with a limit for each token."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        head = b""
        while len(head) < 3 and (more := file.read(3 - len(head))):
            head += more
        self._head = head.removeprefix(b"\xef\xbb\xbf")
        self.bytes_since_event = 0

    def read(self, size: int = -1) -> bytes:
        if not size:
            return b""
        size = max(size, min(self.bytes_since_event, MAX_READ_BYTES))
        data, self._head = self._head or self._file.read(size), b""
        self.bytes_since_event += len(data)
        if self.bytes_since_event > MAX_ELEMENT_BYTES:
            raise ImportRejectedError(
                _("A text in it is longer than %s MB.") % (MAX_ELEMENT_BYTES // 2**20)
            )
        return data


def _items(
    events: ParserEvents,
    max_bytes: int,
    inner: str = "",
    convert: Callable[[Any], Any] | None = None,
) -> Iterator[Any]:
    """Yield the items of the array whose start was the last event."""
    for event in events:
        if event[0] == "end_array":
            return
        yield _build(event, events, max_bytes, inner, convert)


def _build(
    first: tuple[str, Any],
    events: ParserEvents,
    max_bytes: int,
    inner: str,
    convert: Callable[[Any], Any] | None,
) -> Any:
    """Return the value that begins with the event `first`, or an error if the value is too long."""
    builder, items = ijson.ObjectBuilder(), []
    size, depth, key = 0, 0, ""
    event, value = first
    while True:
        depth += event in ("start_map", "start_array")
        depth -= event in ("end_map", "end_array")
        if depth > MAX_DEPTH:
            raise ImportRejectedError(_("It is nested too deeply."))
        # An event stands for at least three characters: brackets or a value, and a separator.
        size += 3 + (len(value) if isinstance(value, str) else 0)
        if size <= max_bytes:
            builder.event(event, float(value) if isinstance(value, Decimal) else value)
        else:
            builder = ijson.ObjectBuilder()
        if depth == 0:
            break
        if event == "map_key" and depth == 1:
            key = value
        if convert and event == "start_array" and depth == 2 and key == inner:
            items += [convert(as_object(item)) for item in _items(events, max_bytes)]
            event, value = "end_array", None
        else:
            event, value = next(events)
    if size > max_bytes:
        return InvalidItemError(_("It is longer than %s MB.") % (max_bytes // 2**20))
    element = builder.value
    return element | {inner: items} if convert and isinstance(element, dict) else element


def parse_object(text: bytes) -> JSONObject:
    """Return the JSON object in `text`. Raises `InvalidItemError`."""
    try:
        fields = json.loads(text.decode("utf-8-sig"))
    except UnicodeDecodeError:
        raise InvalidItemError(_("It is not UTF-8.")) from None
    except (ValueError, RecursionError):
        raise InvalidItemError(_("It is not JSON.")) from None
    return raise_if_invalid(as_object(fields))


def raise_if_invalid(fields: JSONObject | InvalidItemError) -> JSONObject:
    """Return `fields`, or raise it if it is an error."""
    if isinstance(fields, InvalidItemError):
        raise fields
    return fields


def require_object(value: object) -> JSONObject:
    """Return `value` if it is an object. Raises `InvalidItemError`."""
    if not isinstance(value, dict):
        raise InvalidItemError(_("It is not a message."))
    return value


def parse_each(
    items: Iterable[tuple[object, Any]], read: Callable[[Any], T], errors: list[str]
) -> Iterator[tuple[Any, T]]:
    """Yield (name or number, result of `read`) for each message.

    If `read` raises `InvalidItemError`, the message is skipped and the error is added to `errors`.
    """
    for name, value in items:
        try:
            yield name, read(value)
        except InvalidItemError as error:
            errors.append(_("Message %s") % name + f": {error}")


def get_object(fields: JSONObject, name: str) -> JSONObject:
    """Return the object in the field `name`, or an empty object."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def get_list(fields: JSONObject, name: str) -> list[Any]:
    """Return the list in the field `name`, or an empty list."""
    value = fields.get(name)
    return value if isinstance(value, list) else []


def get_objects(fields: JSONObject, name: str) -> list[JSONObject]:
    """Return the objects in the list `name`. Other items are left out."""
    return [value for value in get_list(fields, name) if isinstance(value, dict)]


def get_text(fields: JSONObject, name: str) -> str:
    """Return the text in the field `name`, or an empty text."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""
