"""Access to the fields of untrusted JSON objects: a value of a wrong type counts as missing."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from chat.importers.base import InvalidItemError

JSONObject = dict[str, Any]
T = TypeVar("T")


def parse_object(element: bytes | InvalidItemError) -> JSONObject | InvalidItemError:
    """Return the JSON object, or an error if there is none."""
    if isinstance(element, InvalidItemError):
        return element
    try:
        fields = json.loads(element.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return InvalidItemError("It is not UTF-8.")
    except (ValueError, RecursionError):
        return InvalidItemError("It is not JSON.")
    return fields if isinstance(fields, dict) else InvalidItemError("It is not a JSON object.")


def raise_if_invalid(fields: JSONObject | InvalidItemError) -> JSONObject:
    """Return `fields`, or raise them if they are an error."""
    if isinstance(fields, InvalidItemError):
        raise fields
    return fields


def require_object(value: object) -> JSONObject:
    """Return `value` if it is an object. Raises `InvalidItemError`."""
    if not isinstance(value, dict):
        raise InvalidItemError("It is not a message.")
    return value


def parse_each(
    items: Iterable[tuple[object, Any]], read: Callable[[Any], T], errors: list[str]
) -> Iterator[tuple[Any, T]]:
    """Yield the name or number of each message with the result of `read`.

    A message for which `read` raises `InvalidItemError` is skipped and added to `errors`.
    """
    for name, value in items:
        try:
            yield name, read(value)
        except InvalidItemError as error:
            errors.append(f"Message {name}: {error}")


def get_object(fields: JSONObject, name: str) -> JSONObject:
    """Return the object `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def get_list(fields: JSONObject, name: str) -> list[Any]:
    """Return the list `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, list) else []


def get_objects(fields: JSONObject, name: str) -> list[JSONObject]:
    """Return the objects in the list `name`."""
    return [value for value in get_list(fields, name) if isinstance(value, dict)]


def get_text(fields: JSONObject, name: str) -> str:
    """Return the text `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""
