"""Where in a stream a reader is: the ids of its events.

The id of an event is the position in the reply after it, in characters: what came up to it is not
sent again. Whoever heard the end has the id END, and a browser's EventSource that is answered 204
asks no more.
"""

from typing import Literal

from drf_spectacular.utils import OpenApiParameter
from rest_framework.exceptions import ParseError

END: Literal["end"] = "end"
LAST_EVENT_ID = OpenApiParameter(
    "Last-Event-ID",
    {"type": "string", "pattern": r"^(\d{1,9}|end)$"},
    OpenApiParameter.HEADER,
    description=(
        "The `id` of the last event that was read of this reply: its stream goes on from there, "
        "without the event `message`."
    ),
)


def last_event(request) -> int | Literal["end"] | None:
    """The position up to which the reader has the reply, END, or None. Raises ParseError."""
    given = request.headers.get("Last-Event-ID", "").strip()
    if given == END:
        return END
    if not given:
        return None
    if not (given.isascii() and given.isdecimal() and len(given) <= 9):
        raise ParseError("Last-Event-ID takes the id of an event of this reply, such as 120.")
    return int(given)
