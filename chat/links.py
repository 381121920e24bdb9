"""URLs of sessions and messages."""

from django.shortcuts import resolve_url

from chat.models import Message, Session


def session_url(chat_session: Session) -> str:
    """Return the page of the chat, or the page of all notes for a session of notes."""
    slug = chat_session.project.slug
    if chat_session.is_notes:
        return resolve_url("notes", slug)
    return resolve_url("session", slug, chat_session.pk)


def latest_url(chat_session: Session) -> str:
    """Return the URL of the session's page at its latest message."""
    return f"{session_url(chat_session)}#latest"


def message_url(message: Message) -> str:
    """Return the URL of the session's page at this message."""
    url = session_url(message.session)
    if message.session.is_notes:
        return f"{url}?at={message.pk}#note-{message.pk}"
    return f"{url}#m{message.seq}"


def source_url(message: Message) -> str:
    """Return the URL of the session's page at this message, with the path that ends there. The
    active path may not contain the message.
    """
    if message.session.is_notes:
        return message_url(message)
    return f"{session_url(message.session)}?through={message.seq}#m{message.seq}"
