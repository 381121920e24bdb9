"""Text that PostgreSQL can store, and translation of default names."""

import re

from django.utils.translation import gettext, gettext_noop

# Names for objects without a name. They are stored, sent to models and exported in English, for
# readers of any language.
DEFAULT_NAMES = {
    gettext_noop("Untitled chat"),
    gettext_noop("a private chat"),
    gettext_noop("Assistant"),
    gettext_noop("Someone"),
}

UNSTORABLE = re.compile("\0|[\ud800-\udfff]")


def storable(text: str) -> str:
    """Return `text` without NUL, and with U+FFFD for each half of a surrogate pair."""
    return UNSTORABLE.sub(lambda match: "" if match[0] == "\0" else "\ufffd", text)


def translate_name(name: str) -> str:
    """Return `name` for a page: a default name is translated, any other is returned unchanged."""
    return gettext(name) if name in DEFAULT_NAMES else name


def translate_reason(reason: str) -> str:
    """Return a stored reason in the reader's language, or in English if it has no translation."""
    return gettext(reason) if reason else ""
