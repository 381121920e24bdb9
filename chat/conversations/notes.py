"""Notes: texts that members write so that their project remembers them.

A note is a message in a session of the kind NOTES. Therefore it is summarised, recalled, edited,
forgotten and exported like any other message.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from chat import permissions
from chat.conversations import edits
from chat.conversations.messages import MAX_MESSAGE_CHARS, post_message
from chat.conversations.sessions import create_session
from chat.models import Message, Session, SessionKind, SessionStatus, display_name
from chat.models.messages import MessageQuerySet
from chat.models.sessions import SessionQuerySet
from projects.core.errors import InvalidInputError
from projects.core.text import storable
from projects.models import Project


@transaction.atomic
def add_note(project: Project, user, text: str, at: datetime | None = None) -> Message:
    """Add a note of `user`. Its time is `at`, by default now.

    Raises InvalidInputError if the text is empty or longer than MAX_MESSAGE_CHARS.
    """
    text = validate_note(text)
    # Locked, so that the session is not deleted before the note is added.
    session = open_note_sessions(project, user).select_for_update().first()
    if session is None:
        # Lock the project before its sessions, in the same order as importers.
        Project.objects.select_for_update(no_key=True).get(pk=project.pk)
        # Another request may have created the session in the meantime.
        session = open_note_sessions(project, user).first() or create_session(
            project, user, kind=SessionKind.NOTES, title=f"Notes of {display_name(user)}"[:200]
        )
    date = {} if at is None else {"created_at": at}
    return post_message(session, text, author=user, **date)


def edit_note(note: Message, text: str, by, version: int | None = None) -> Message:
    """Replace the text of `note`. Raises the errors of `edits.edit` and of `add_note`."""
    return edits.edit(note, validate_note(text), by, version)


def validate_note(text: str) -> str:
    """Return `text` in its stored form. Raises InvalidInputError if it is empty or too long."""
    text = storable(text)
    if not text.strip():
        raise InvalidInputError(_("Enter some text."), field="text")
    if len(text) > MAX_MESSAGE_CHARS:
        reason = _("This note is too long: %(length)d characters. The limit is %(most)d.")
        raise InvalidInputError(
            reason % {"length": len(text), "most": MAX_MESSAGE_CHARS}, field="text"
        )
    return text


def open_note_sessions(project: Project, user) -> SessionQuerySet:
    """Return the sessions to which new notes of `user` are added. Imported ones are left out."""
    sessions = Session.objects.not_deleted().notes()
    return sessions.filter(
        status=SessionStatus.ACTIVE, source_key=None, project=project, creator=user
    ).order_by("pk")


def notes_for(user, project: Project, token=None) -> MessageQuerySet:
    """Return the notes of `project` that the user or the token may read, newest first."""
    return newest_first(notes_with_deleted(user, project, token).filter(deleted_at=None))


def notes_with_deleted(user, project: Project, token=None) -> MessageQuerySet:
    """Return the same notes as `notes_for`, but unordered and including deleted notes."""
    sessions = permissions.sessions_for(user, token).notes().filter(project=project)
    notes = Message.objects.filter(project=project, session__in=sessions.order_by().values("pk"))
    return notes.select_related("author", "session")


def newest_first(notes: MessageQuerySet) -> MessageQuerySet:
    """Order by date. Notes with the same date are ordered by the time when they were added."""
    return notes.order_by("-created_at", "-id")


def newer_than(note: Message) -> Q:
    """Return the condition for notes that a list shows above `note`."""
    return Q(created_at__gt=note.created_at) | Q(created_at=note.created_at, pk__gt=note.pk)


def by_author(notes: QuerySet[Message], name: str) -> QuerySet[Message]:
    """Filter by the username `name`, or for imported notes by the author's name."""
    return notes.filter(Q(author_name=name) | Q(author_name="", author__username=name))


def author_name(note: Message) -> str:
    """Return the name with which `by_author` finds the note."""
    return note.author_name or (note.author.get_username() if note.author else "")


def note_for_reading(user, project: Project, pk: UUID, token=None) -> Message:
    """Return the note `pk` of `project`. Raises Http404 if the user may not read it."""
    note = notes_for(user, project, token).filter(pk=pk).first()
    if note is None:
        raise Http404
    return note


def note_for_changing(user, project: Project, pk: UUID, token=None) -> Message:
    """Return the note if the user is its author or an owner, else raise PermissionDenied."""
    note_for_reading(user, project, pk, token)
    return permissions.message_for_changing(user, pk, token)
