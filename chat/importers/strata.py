"""Strata's own export of a session, in the format that `chat.exporters.json` writes."""

import re
from collections.abc import Iterator, Mapping
from datetime import datetime
from decimal import Decimal, InvalidOperation

from django.core.exceptions import ValidationError
from django.utils.translation import gettext_noop as _

from chat.conversations.sessions import clean_tags
from chat.exporters.json import FORMAT, VERSION
from chat.importers.base import (
    ImportedFile,
    ImportedImage,
    ImportedMessage,
    ImportedRevision,
    ImportedSession,
    ImportResult,
    InvalidItemError,
    first_plausible,
    parse_time,
)
from chat.importers.images import ImageSpool
from chat.importers.json_objects import (
    MAX_ELEMENT_BYTES,
    JSONObject,
    get_list,
    get_object,
    get_objects,
    get_text,
    iter_objects,
    parse_each,
    raise_if_invalid,
    read_conversations,
    require_object,
)
from chat.models import FINAL, ReasoningEffort, Role, SessionKind, SessionStatus, Status, Visibility
from chat.prompt.types import load_lookups, load_tool_calls
from projects.core.errors import InvalidInputError
from projects.core.text import parse_uuid, storable
from projects.models import validate_model_name

# The largest value of an integer column.
MAX_INTEGER = 2**31 - 1
# The maximum version of a message. The column can store more, so that later edits are possible.
MAX_VERSION = 2**30
_FORMAT_HEAD = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{\s*"format"\s*:\s*"' + FORMAT.encode() + b'"')

Images = list[ImportedImage | InvalidItemError]


def recognises(name: str, head: bytes) -> bool:
    return bool(_FORMAT_HEAD.match(head))


def sessions(document: ImportedFile, result: ImportResult) -> Iterator[ImportedSession]:
    """Yield the session. A reply that was in progress when it was exported becomes interrupted.

    All messages of the session are held in memory, but not their images.
    """
    extract_images = _ImageExtractor()

    def read(fields: JSONObject, errors: list[str]) -> ImportedSession:
        extract_images.chars = 0
        return _session(fields, errors)

    return read_conversations(
        iter_objects(document.open(), "messages", extract_images), result, read
    )


class _ImageExtractor:
    """Moves the images of messages to disk. Rejects messages that are too large without images."""

    def __init__(self) -> None:
        self.spool = ImageSpool()
        self.chars = 0

    def __call__(self, fields: JSONObject | InvalidItemError) -> JSONObject | InvalidItemError:
        if isinstance(fields, InvalidItemError):
            return fields
        texts = [fields, *get_objects(fields, "revisions")]
        self.chars += sum(len(get_text(text, "content")) for text in texts)
        if self.chars > MAX_ELEMENT_BYTES:
            return InvalidItemError(
                _("The messages before it are longer than %s MB.") % (MAX_ELEMENT_BYTES // 2**20)
            )
        # Older exports contain only the names of images.
        images = [] if fields.get("deleted_at") else get_objects(fields, "images")
        return fields | {"images": [self._image(image) for image in images]}

    def _image(self, fields: JSONObject) -> ImportedImage | InvalidItemError:
        name = get_text(fields, "name")
        try:
            if not get_text(fields, "data"):
                raise InvalidItemError(_("It has no data."))
            read = self.spool.data(fields["data"])
        except InvalidItemError as error:
            return InvalidItemError(_("Image %s") % f"“{name}”" + f": {error}")
        return ImportedImage(
            name,
            get_text(fields, "description"),
            read,
            get_text(fields, "media_type"),
            _number(fields, "width") or 0,
            _number(fields, "height") or 0,
            get_text(fields, "seal"),
        )


def _session(fields: JSONObject, errors: list[str]) -> ImportedSession:
    if fields.get("format") != FORMAT:
        raise InvalidItemError(_("It is not an export of Strata."))
    if fields.get("version") != VERSION:
        raise InvalidItemError(_("Strata does not read its version, %s.") % fields.get("version"))
    session = get_object(fields, "session")
    key = get_text(session, "id")
    if not key:
        raise InvalidItemError(_("The session has no id."))
    messages: dict[str, ImportedMessage] = {}

    def read(value: JSONObject | InvalidItemError) -> ImportedMessage:
        return _message(require_object(raise_if_invalid(value)), messages)

    listed = get_list(fields, "messages")
    for number, message in parse_each(enumerate(listed, 1), read, errors):
        messages[message.key] = message
        images: Images = listed[number - 1]["images"]
        errors += [
            _("Message %s") % number + f": {it}"
            for it in images
            if isinstance(it, InvalidItemError)
        ]
    head, created_at = get_text(session, "head"), parse_time(session.get("created_at"))
    return ImportedSession(
        key,
        get_text(session, "title"),
        list(messages.values()),
        is_tree=True,
        head=head if head in messages else None,
        id=parse_uuid(key),
        kind=_one_of(SessionKind.values, session, "kind", SessionKind.CHAT),
        visibility=_one_of(Visibility.values, session, "visibility", Visibility.PRIVATE),
        status=_one_of(SessionStatus.values, session, "status", SessionStatus.ACTIVE),
        remembered=session.get("remembered") is not False,
        created_at=created_at,
        title_by_hand=session.get("title_by_hand") is True,
        pinned=session.get("pinned") is True,
        archived_at=_time(session, "archived_at", created_at),
        history_limit=_number(session, "history_limit"),
        chat_model=_model_name(session),
        temperature=_temperature(session),
        reasoning_effort=_one_of(ReasoningEffort.values, session, "reasoning_effort", ""),
        tags=_tags(session),
    )


def _tags(session: JSONObject) -> list[str]:
    value = session.get("tags")
    try:
        return clean_tags(filter(None, map(str, value if isinstance(value, list) else [])))
    except InvalidInputError:
        return []


def _model_name(session: JSONObject) -> str:
    name = storable(get_text(session, "chat_model"))[:200]
    try:
        validate_model_name(name)
    except ValidationError:
        return ""
    return name


def _temperature(session: JSONObject) -> float | None:
    value = session.get("temperature")
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    return float(value) if 0 <= value <= 2 else None


def _message(fields: JSONObject, earlier: Mapping[str, ImportedMessage]) -> ImportedMessage:
    key, parent = get_text(fields, "id"), get_text(fields, "parent")
    role, at = get_text(fields, "role"), parse_time(fields.get("created_at"))
    if not key or role not in Role.values or at is None:
        raise InvalidItemError(_("It has no id, no role or no time."))
    images: Images = fields["images"]
    version = min(max(_number(fields, "version") or 1, 1), MAX_VERSION)
    deleted_at = _time(fields, "deleted_at", at)
    # A deleted message has no content.
    exists = deleted_at is None
    return ImportedMessage(
        key,
        role,
        get_text(fields, "content") if exists else "",
        at,
        speaker=get_text(fields, "author"),
        parent=parent if parent in earlier else None,
        tool_calls=load_tool_calls(fields.get("tool_calls")) if exists else (),
        tool_call_id=get_text(fields, "tool_call_id"),
        lookups=load_lookups(fields.get("lookups")) if exists else (),
        model=get_text(fields, "model"),
        status=_one_of(FINAL, fields, "status", Status.INTERRUPTED),
        error=get_text(fields, "error"),
        remembered=fields.get("remembered") is not False,
        version=version,
        edited_at=_time(fields, "edited_at", at),
        deleted_at=deleted_at,
        images=tuple(it for it in images if isinstance(it, ImportedImage)),
        revisions=_revisions(fields, version, at) if exists else (),
        reactions=_reactions(fields) if exists else (),
        usage=_usage(fields),
    )


def _revisions(fields: JSONObject, version: int, at: datetime) -> tuple[ImportedRevision, ...]:
    """Return the earlier texts of a message, each version once."""
    revisions = {
        number: ImportedRevision(
            number,
            get_text(revision, "content"),
            get_text(revision, "edited_by"),
            first_plausible(parse_time(revision.get("edited_at")), at),
        )
        for revision in get_objects(fields, "revisions")
        if 0 < (number := _number(revision, "version") or 0) < version
    }
    return tuple(revisions.values())


def _reactions(fields: JSONObject) -> tuple[tuple[str, str], ...]:
    """Return pairs (user, emoji), each pair once."""
    pairs = (
        (get_text(reaction, "user"), storable(get_text(reaction, "emoji")))
        for reaction in get_objects(fields, "reactions")
    )
    return tuple(dict.fromkeys(pairs))


def _usage(fields: JSONObject) -> dict[str, int | Decimal | None]:
    integers = ("input_tokens", "output_tokens", "first_token_ms")
    return {name: _number(fields, name) for name in integers} | {"cost": _cost(fields.get("cost"))}


def _cost(value: object) -> Decimal | None:
    """Return the cost in US dollars; None if it is not a number or implausibly large."""
    try:
        cost = Decimal(str(value)).quantize(Decimal("0.000001"))
        return cost if 0 <= cost < 10**6 else None
    except InvalidOperation:
        return None


def _number(fields: JSONObject, name: str) -> int | None:
    value = fields.get(name)
    if not isinstance(value, int) or isinstance(value, bool):
        return None
    return value if 0 <= value <= MAX_INTEGER else None


def _time(fields: JSONObject, name: str, otherwise: datetime | None) -> datetime | None:
    """Return the time in the field `name`, None without one, `otherwise` if it is implausible."""
    at = parse_time(fields.get(name))
    return at and first_plausible(at, otherwise)


def _one_of(
    values: list[str] | tuple[str, ...], fields: JSONObject, name: str, otherwise: str
) -> str:
    value = get_text(fields, name)
    return value if value in values else otherwise
