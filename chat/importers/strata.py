"""Strata's own export of a session, as `chat.exporters.json` writes it."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation
from uuid import UUID

from chat import tooling
from chat.exporters.json import FORMAT, VERSION
from chat.importers.base import (
    Document,
    ImportedImage,
    ImportedMessage,
    ImportedRevision,
    ImportedSession,
    ImportResult,
    Unusable,
)
from chat.importers.elements import LONGEST, conversations, gathered
from chat.importers.fields import (
    Fields,
    an_object,
    list_in,
    object_in,
    objects_in,
    readable,
    text_in,
    usable,
)
from chat.importers.images import Spool
from chat.importers.times import moment, nearest
from chat.models import FINAL, Role, SessionKind, SessionStatus, Status, Visibility
from chat.storable import storable

MOST = 2**31 - 1  # as much as a column of whole numbers holds
# Versions beyond this are made up; a column has room for all that are to come.
LAST_VERSION = 2**30
_OURS = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{\s*"format"\s*:\s*"' + FORMAT.encode() + b'"')

Images = list[ImportedImage | Unusable]


def recognises(name: str, head: bytes) -> bool:
    return bool(_OURS.match(head))


def sessions(document: Document, result: ImportResult) -> Iterator[ImportedSession]:
    """The session, as it was; a message that was still being said is interrupted.

    Its messages are in memory together, their images are not.
    """
    lighten = _Lightener()

    def read(fields: Fields, damaged: list[str]) -> ImportedSession:
        lighten.held = 0
        return _session(fields, damaged)

    return conversations(gathered(document.open(), "messages", lighten), result, read)


class _Lightener:
    """Takes the images out of messages, and refuses what is too much for memory without them."""

    def __init__(self) -> None:
        self.spool = Spool()
        self.held = 0

    def __call__(self, fields: Fields | Unusable) -> Fields | Unusable:
        if isinstance(fields, Unusable):
            return fields
        texts = [fields, *objects_in(fields, "revisions")]
        self.held += sum(len(text_in(text, "content")) for text in texts)
        if self.held > LONGEST:
            return Unusable(f"Those before it are longer than {LONGEST // 2**20} MB.")
        # Older exports have only what the images are called.
        images = [] if fields.get("deleted_at") else objects_in(fields, "images")
        return fields | {"images": [self._image(image) for image in images]}

    def _image(self, fields: Fields) -> ImportedImage | Unusable:
        name = text_in(fields, "name")
        try:
            if not text_in(fields, "data"):
                raise Unusable("It holds no data.")
            read = self.spool.data(fields["data"])
        except Unusable as reason:
            return Unusable(f"Image “{name}”: {reason}")
        return ImportedImage(
            name,
            text_in(fields, "description"),
            read,
            text_in(fields, "media_type"),
            _number(fields, "width") or 0,
            _number(fields, "height") or 0,
            text_in(fields, "seal"),
        )


def _session(fields: Fields, damaged: list[str]) -> ImportedSession:
    if fields.get("format") != FORMAT:
        raise Unusable("It is no export of Strata's.")
    if fields.get("version") != VERSION:
        raise Unusable(f"It is of version {fields.get('version')}; this Strata reads {VERSION}.")
    about = object_in(fields, "session")
    key = text_in(about, "id")
    if not key:
        raise Unusable("The session has no id.")
    messages: dict[str, ImportedMessage] = {}

    def read(value: Fields | Unusable) -> ImportedMessage:
        return _message(an_object(usable(value)), messages)

    listed = list_in(fields, "messages")
    for number, message in readable(enumerate(listed, 1), read, damaged):
        messages[message.key] = message
        images: Images = listed[number - 1]["images"]
        damaged += [f"Message {number}: {it}" for it in images if isinstance(it, Unusable)]
    head, created_at = text_in(about, "head"), moment(about.get("created_at"))
    return ImportedSession(
        key,
        text_in(about, "title"),
        list(messages.values()),
        is_tree=True,
        head=head if head in messages else None,
        id=_id(key),
        kind=_one_of(SessionKind.values, about, "kind", SessionKind.CHAT),
        visibility=_one_of(Visibility.values, about, "visibility", Visibility.PRIVATE),
        status=_one_of(SessionStatus.values, about, "status", SessionStatus.ACTIVE),
        remembered=about.get("remembered") is not False,
        created_at=created_at,
        title_by_hand=about.get("title_by_hand") is True,
        pinned=about.get("pinned") is True,
        archived_at=_time(about, "archived_at", created_at),
        history_limit=_number(about, "history_limit"),
    )


def _message(fields: Fields, earlier: Mapping[str, ImportedMessage]) -> ImportedMessage:
    key, parent = text_in(fields, "id"), text_in(fields, "parent")
    role, at = text_in(fields, "role"), moment(fields.get("created_at"))
    if not key or role not in Role.values or at is None:
        raise Unusable("It has no id, no role or no time.")
    images: Images = fields["images"]
    version = min(max(_number(fields, "version") or 1, 1), LAST_VERSION)
    deleted_at = _time(fields, "deleted_at", at)
    # Of what was deleted only the place is kept.
    stands = deleted_at is None
    return ImportedMessage(
        key,
        role,
        text_in(fields, "content") if stands else "",
        at,
        speaker=text_in(fields, "author"),
        parent=parent if parent in earlier else None,
        tool_calls=tooling.read(fields.get("tool_calls")) if stands else (),
        tool_call_id=text_in(fields, "tool_call_id"),
        model=text_in(fields, "model"),
        status=_one_of(FINAL, fields, "status", Status.INTERRUPTED),
        error=text_in(fields, "error"),
        remembered=fields.get("remembered") is not False,
        version=version,
        edited_at=_time(fields, "edited_at", at),
        deleted_at=deleted_at,
        images=tuple(it for it in images if isinstance(it, ImportedImage)),
        revisions=_revisions(fields, version, at) if stands else (),
        reactions=_reactions(fields) if stands else (),
        usage=_usage(fields),
    )


def _revisions(fields: Fields, version: int, at: datetime) -> tuple[ImportedRevision, ...]:
    """The texts before the present one, each version once."""
    found = {
        number: ImportedRevision(
            number,
            text_in(one, "content"),
            text_in(one, "edited_by"),
            nearest(moment(one.get("edited_at")), at),
        )
        for one in objects_in(fields, "revisions")
        if 0 < (number := _number(one, "version") or 0) < version
    }
    return tuple(found.values())


def _reactions(fields: Fields) -> tuple[tuple[str, str], ...]:
    """(user, emoji), each once."""
    given = objects_in(fields, "reactions")
    return tuple(
        dict.fromkeys((text_in(one, "user"), storable(text_in(one, "emoji"))) for one in given)
    )


def _usage(fields: Fields) -> dict[str, int | Decimal | None]:
    whole = ("input_tokens", "output_tokens", "first_token_ms")
    return {name: _number(fields, name) for name in whole} | {"cost": _cost(fields.get("cost"))}


def _cost(value: object) -> Decimal | None:
    """In US dollars; None for what is none, or more than any reply costs."""
    try:
        cost = Decimal(str(value))
        return cost.quantize(Decimal("0.000001")) if 0 <= cost < 10**6 else None
    except InvalidOperation:
        return None


def _number(fields: Fields, name: str) -> int | None:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MOST else None


def _time(fields: Fields, name: str, otherwise: datetime | None) -> datetime | None:
    """A time, `otherwise` if it cannot be trusted; None if there is none."""
    at = moment(fields.get(name))
    return at and nearest(at, otherwise)


def _one_of(values: list[str] | tuple[str, ...], fields: Fields, name: str, otherwise: str) -> str:
    value = text_in(fields, name)
    return value if value in values else otherwise


def _id(text: str) -> UUID | None:
    try:
        return UUID(text)
    except ValueError:
        return None
