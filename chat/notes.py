"""Notes: texts that members write down for their project to remember.

A note is a message in a session of its own kind, so that everything that holds for what was said
holds for it: it is summarised, recalled, edited, forgotten, exported.
"""

from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Q, QuerySet
from django.http import Http404
from django.utils.translation import gettext as _

from chat import access, changes
from chat.changes import Refused
from chat.models import Message, Session, SessionKind, SessionStatus, name_of
from chat.models.messages import MessageQuerySet
from chat.models.sessions import SessionQuerySet
from chat.replies import LONGEST_MESSAGE, post_message
from chat.sessions import create_session
from chat.storable import storable
from projects.models import Project


@transaction.atomic
def add(project: Project, user, text: str, at: datetime | None = None) -> Message:
    """Writes down a note of `user`, as of the time `at` if one is given, and returns it.

    Raises Refused for a text that is empty or longer than LONGEST_MESSAGE characters.
    """
    text = checked(text)
    # Locked, so that it cannot be deleted while it gets the note.
    own = taking(project, user).select_for_update().first()
    time = {} if at is None else {"created_at": at}
    return post_message(own or _begun(project, user), text, author=user, **time)


def change(note: Message, text: str, by, version: int | None = None) -> Message:
    """Gives `note` another text. Raises Stale as `changes.edit` does, and Refused as `add` too."""
    return changes.edit(note, checked(text), by, version)


def checked(text: str) -> str:
    """`text` as it is kept. Raises Refused for what is no note."""
    text = storable(text)
    if not text.strip():
        raise Refused(_("Write something first."))
    if len(text) > LONGEST_MESSAGE:
        reason = _("This is too long: it has %(length)d characters, and a note takes %(most)d.")
        raise Refused(reason % {"length": len(text), "most": LONGEST_MESSAGE})
    return text


def taking(project: Project, user) -> SessionQuerySet:
    """The sessions that a new note of `user` may go to. What was imported stays as it came."""
    kept = Session.objects.standing().notes().filter(status=SessionStatus.ACTIVE, source_key=None)
    return kept.filter(project=project, creator=user).order_by("pk")


def _begun(project: Project, user) -> Session:
    """The session of the notes of `user`, made unless somebody else was quicker."""
    # As importers do, the project before its sessions.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    title = f"Notes of {name_of(user)}"[:200]
    own = taking(project, user).first()
    return own or create_session(project, user, kind=SessionKind.NOTES, title=title)


def notes_for(user, project: Project, token=None) -> MessageQuerySet:
    """The notes of `project` that `user`, or the project that `token` opens, may see, the newest
    first, with their authors and sessions.
    """
    return newest_first(places_for(user, project, token).filter(deleted_at=None))


def places_for(user, project: Project, token=None) -> MessageQuerySet:
    """As `notes_for`, in no order, with the empty places of deleted ones."""
    sessions = access.sessions_for(user, token).notes().filter(project=project)
    found = Message.objects.filter(project=project, session__in=sessions.order_by().values("pk"))
    return found.select_related("author", "session")


def newest_first(notes: MessageQuerySet) -> MessageQuerySet:
    """By the time they are of, and those of one time by when they were written down."""
    return notes.order_by("-created_at", "-id")


def newer_than(note: Message) -> Q:
    """The condition of standing before `note` in a list."""
    return Q(created_at__gt=note.created_at) | Q(created_at=note.created_at, pk__gt=note.pk)


def by_author(notes: QuerySet[Message], name: str) -> QuerySet[Message]:
    """Those of `notes` by the user `name`, or by whoever was called so where they came from."""
    return notes.filter(
        Q(author_name=name) | Q(author_name="", author__username=name),
    )


def author_of(note: Message) -> str:
    """The name by which `by_author` finds it."""
    return note.author_name or (note.author.get_username() if note.author else "")


def note_for_reading(user, project: Project, pk: UUID, token=None) -> Message:
    """The note `pk` of `project`, or Http404."""
    note = notes_for(user, project, token).filter(pk=pk).first()
    if note is None:
        raise Http404
    return note


def note_for_changing(user, project: Project, pk: UUID, token=None) -> Message:
    """As `note_for_reading`, for its author and the project's owners: raises PermissionDenied for
    other writers.
    """
    note_for_reading(user, project, pk, token)
    return access.message_for_changing(user, pk, token)
