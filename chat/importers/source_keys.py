"""Identities of conversations and messages in the program that they were imported from."""

from hashlib import sha256

from projects.core.text import storable

MAX_KEY_CHARS = 300


def source_key_for(text: str) -> str:
    """Return the value for a column `source_key`: the text, or its digest if it is too long."""
    text = storable(text)
    return text if len(text) <= MAX_KEY_CHARS else sha256(text.encode()).hexdigest()


def source_digest(session_key: str, message_key: str = "") -> str:
    """Return a digest that identifies a session or message without revealing its key."""
    return sha256(f"{session_key}\n{message_key}".encode()).hexdigest()
