"""The fields of a JSON object, which may hold anything: what is of no use is none, or refused."""

import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, TypeVar

from chat.importers.base import Unusable

Fields = dict[str, Any]
T = TypeVar("T")


def decoded(element: bytes | Unusable) -> Fields | Unusable:
    """The JSON object that `element` spells, or why it is none."""
    if isinstance(element, Unusable):
        return element
    try:
        fields = json.loads(element.decode("utf-8-sig"))
    except UnicodeDecodeError:
        return Unusable("It is not UTF-8.")
    except (ValueError, RecursionError):
        return Unusable("It is not JSON.")
    return fields if isinstance(fields, dict) else Unusable("It is not a JSON object.")


def usable(fields: Fields | Unusable) -> Fields:
    """`fields`, unless they are a reason: that is raised."""
    if isinstance(fields, Unusable):
        raise fields
    return fields


def an_object(value: object) -> Fields:
    """`value`, if it may be a message. Raises Unusable."""
    if not isinstance(value, dict):
        raise Unusable("It is no message.")
    return value


def readable(
    items: Iterable[tuple[object, Any]], read: Callable[[Any], T], damaged: list[str]
) -> Iterator[tuple[Any, T]]:
    """What `read` makes of each of the messages, which come with their names or numbers.

    Those for which it raises Unusable are left out, and told of in `damaged`.
    """
    for name, value in items:
        try:
            yield name, read(value)
        except Unusable as reason:
            damaged.append(f"Message {name}: {reason}")


def object_in(fields: Fields, name: str) -> Fields:
    """The object under `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, dict) else {}


def list_in(fields: Fields, name: str) -> list[Any]:
    """The list under `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, list) else []


def objects_in(fields: Fields, name: str) -> list[Fields]:
    """The objects in the list under `name`."""
    return [value for value in list_in(fields, name) if isinstance(value, dict)]


def text_in(fields: Fields, name: str) -> str:
    """The text under `name`, or an empty one."""
    value = fields.get(name)
    return value if isinstance(value, str) else ""
