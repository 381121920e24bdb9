"""What a conversation and its messages are called at their source."""

from hashlib import sha256

from chat.storable import storable

LONGEST_KEY = 300  # characters


def key(text: str) -> str:
    """An identity in its source as `source_key` holds it: a digest when it is too long."""
    text = storable(text)
    return text if len(text) <= LONGEST_KEY else sha256(text.encode()).hexdigest()


def mark_of(session_key: str, message_key: str = "") -> str:
    """A digest that tells one thing of a source from all others, and nothing else about it."""
    return sha256(f"{session_key}\n{message_key}".encode()).hexdigest()
