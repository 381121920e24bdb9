"""Makes text storable in PostgreSQL, parses ids, and translates default names and reasons."""

import re
from uuid import UUID

from django.utils.translation import gettext, gettext_noop

# Default names of objects. They are stored, sent to models and exported in English, because their
# readers may use any language.
DEFAULT_NAMES = {
    gettext_noop("Untitled chat"),
    gettext_noop("a private chat"),
    gettext_noop("Assistant"),
    gettext_noop("Someone"),
}

_VALUES = re.compile(
    "“[^“”]{0,200}”|[0-9-]{10} [0-9:]{5}|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}|[0-9]+"
)

UNSTORABLE = re.compile("\0|[\ud800-\udfff]")


def storable(text: str) -> str:
    """Return `text` without NUL characters. Each unpaired surrogate is replaced by U+FFFD."""
    return UNSTORABLE.sub(lambda match: "" if match[0] == "\0" else "\ufffd", text)


def parse_uuid(value: object) -> UUID | None:
    """Return the UUID that `value` holds as text, else None."""
    try:
        return UUID(value) if isinstance(value, str) else None
    except ValueError:
        return None


def translate_name(name: str) -> str:
    """Return a default name translated for a page. Any other name is returned unchanged."""
    return gettext(name) if name in DEFAULT_NAMES else name


def translate_reason(reason: str, max_parts: int = 10) -> str:
    """Return a stored reason in the reader's language, or in English if it is not translated.

    Lines are translated one by one, and so are the first parts that a colon separates. For numbers,
    ids, times and quoted names, the catalogue has `%s`.
    """
    if "\n" in reason:
        return "\n".join(map(translate_reason, reason.splitlines()))
    if not reason or (translation := gettext(reason)) != reason:
        return translation if reason else ""
    pattern = _VALUES.sub("%s", reason)
    if (translation := gettext(pattern)) != pattern:
        return translation % tuple(_VALUES.findall(reason))
    place, colon, rest = reason.partition(": ")
    if not colon or not max_parts:
        return reason
    return f"{translate_reason(place)}: {translate_reason(rest, max_parts - 1)}"
