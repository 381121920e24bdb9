"""Conversations that a program names by keys of its own, and goes on with request by request."""

from collections.abc import Sequence
from dataclasses import dataclass
from uuid import UUID

from django.db import transaction
from django.utils.translation import gettext as _

from chat import attachments
from chat.changes import Refused
from chat.continuing import Again, Line, Onward, Plan, plan
from chat.importers.sources import key, mark_of
from chat.models import Attachment, Message, Role, Session, SessionStatus
from chat.replies import Below, begin_reply, post_messages
from chat.requested import Loaded, Told, drafted
from chat.signals import import_planned
from projects.identifiers import new_id
from projects.models import Project

# What came in with requests is known by this beginning of its `source_key`.
DOOR = "v1:"
# Messages of a path that are read at least, to find where a request goes on.
LEAST = 200


@dataclass(frozen=True)
class Keyed:
    """The conversation that `user` calls by `name` in `project`."""

    project: Project
    user: object
    name: str

    @property
    def key(self) -> str:
        return key(f"{DOOR}{self.user.pk}:{self.name}")  # type: ignore[attr-defined]

    @property
    def deleted_key(self) -> str:
        """Of a conversation that was deleted, while another of that name is there."""
        return key(f"deleted:{self.key}")

    def session(self) -> Session | None:
        """As it stands, None before its first message and when it was deleted."""
        rows = Session.objects.standing().filter(project=self.project, source_key=self.key)
        return rows.filter(creator=self.user).select_related("project").first()  # type: ignore[misc]


def planned(session: Session | None, told: Sequence[Told], loaded: Loaded) -> Plan:
    """What a request means to a conversation, None when it stands apart from it.

    Its last message is a person's, or what tools answered.
    """
    asked = [_asked(one, loaded) for one in told]
    if asked[-1].role == Role.TOOL:
        return _answered(session, asked)
    path = [] if session is None else _path(session, len(told))
    return plan(path, asked, session is None or not session.last_seq)


@transaction.atomic
def go_on(keyed: Keyed, told: Sequence[Told], loaded: Loaded) -> Message | None:
    """Says what is new in a request in the conversation that it names, which begins with it if
    need be, and returns the pending reply; None when the request stands apart from it.

    What the record lacked of it is written along, but not remembered. Raises Refused when the
    conversation is closed.
    """
    session = keyed.session()
    if planned(session, told, loaded) is None:
        return None
    session = _locked(keyed)
    if session.status == SessionStatus.CLOSED:
        raise Refused(_("This chat is closed."))
    meant = planned(session, told, loaded)
    if meant is None:
        return None
    if isinstance(meant, Again):
        asked = session.messages.get(pk=meant.id)
        asked.session = session
        return begin_reply(asked)
    return begin_reply(_said(keyed, session, told, meant, loaded)[-1])


def _locked(keyed: Keyed) -> Session:
    """The session of that key, made if it is not there, and locked."""
    deleted = Session.objects.exclude(deleted_at=None).filter(project=keyed.project)
    if deleted.filter(source_key=keyed.key).exists():
        # It may still be brought back, beside the one that begins now.
        deleted.filter(source_key=keyed.deleted_key).update(source_key=None)
        deleted.filter(source_key=keyed.key).update(source_key=keyed.deleted_key)
    # In a project that came from another Strata, whose user of that number was somebody else.
    others = Session.objects.filter(project=keyed.project, source_key=keyed.key)
    others.exclude(creator=keyed.user).update(source_key=None)  # type: ignore[misc]
    made = Session(project=keyed.project, creator=keyed.user, source_key=keyed.key)  # type: ignore[misc]
    Session.objects.bulk_create([made], ignore_conflicts=True)
    rows = Session.objects.select_for_update(of=("self",)).select_related("project")
    return rows.get(project=keyed.project, source_key=keyed.key)


def _said(
    keyed: Keyed, session: Session, told: Sequence[Told], meant: Onward, loaded: Loaded
) -> list[Message]:
    """The messages of the request that are not on the record yet, written to it."""
    new = _begins(told)
    start = min(meant.start, new)
    if not session.last_seq and _was_forgotten(keyed):
        start = new
    drafts = [
        drafted(
            one,
            keyed.user,
            remembered=place >= new,
            source_key=f"{DOOR}{new_id()}",
        )
        for place, one in enumerate(told[start:], start)
    ]
    written = post_messages(session, drafts, at=Below(meant.below) if meant.below else None)
    for message, one in zip(written, told[start:], strict=True):
        shown = (loaded[name] for name in one.images if name in loaded)
        kept = [attachments.keep(session, keyed.user, "", image).pk for image in shown]
        attachments.claim(message, kept, keyed.user)
    return written


def _begins(told: Sequence[Told]) -> int:
    """Where what is new begins: with the last message, or what tools answered at the end."""
    new = len(told) - 1
    while new and told[new].role == told[new - 1].role == Role.TOOL:
        new -= 1
    return new


def _was_forgotten(keyed: Keyed) -> bool:
    """Whether a conversation of that key is forgotten, or about to be: then what a program still
    knows of it does not come back.
    """
    marks = {mark_of(keyed.key), mark_of(keyed.deleted_key)}
    told = import_planned.send(sender=Session, project=keyed.project, subjects=marks)
    deleted = Session.objects.filter(project=keyed.project, source_key=keyed.deleted_key)
    return any(found for _, found in told) or deleted.exists()


def _asked(told: Told, loaded: Loaded) -> Line:
    shown = tuple(loaded[name].sha256 for name in told.images if name in loaded)
    calls = frozenset(call.id for call in told.calls)
    return Line(told.role, told.text, calls, told.answers, shown)


def _path(session: Session, asked: int) -> list[Line]:
    """The end of the path that counts, as far back as a request of so many messages may reach."""
    rows = session.messages.path_to(session, session.head_id, max(2 * asked, LEAST))  # type: ignore[attr-defined]
    messages = list(rows)
    shown: dict[UUID | None, tuple[str, ...]] = {}
    images = Attachment.objects.filter(message__in=[one.pk for one in messages])
    for message, digest in images.values_list("message", "sha256"):
        shown[message] = (*shown.get(message, ()), digest)
    return [_kept(one, shown.get(one.pk, ())) for one in messages]


def _kept(message: Message, shown: tuple[str, ...] = ()) -> Line:
    return Line(
        message.role,
        message.text,
        frozenset(call.id for call in message.calls),
        message.tool_call_id,
        shown,
        message.pk,
        (message.source_key or "").startswith(DOOR),
        message.deleted_at is None,
    )


def _answered(session: Session | None, asked: Sequence[Line]) -> Plan:
    """Where what tools answered belongs: below the reply that asked them, wherever it is."""
    new = [one for one in asked if one.role == Role.TOOL][-1]
    if session is None or not session.last_seq:
        return Onward(0)
    replies = session.messages.filter(
        role=Role.ASSISTANT, tool_calls__contains=[{"id": new.answers}], deleted_at=None
    )
    called = replies.order_by("-seq").first()
    if called is None:
        return None
    tools = [one for one in asked if one.answers in {call.id for call in called.calls}]
    known = _answers_below(called)
    if known and [(one.answers, one.text) for one in known] == [
        (one.answers, one.text) for one in tools
    ]:
        assert known[-1].id is not None
        return Again(known[-1].id)
    return Onward(len(asked), called.pk)


def _answers_below(called: Message) -> list[Line]:
    """What tools answered to a reply before, the latest time."""
    answers: list[Line] = []
    parent: UUID | None = called.pk
    while parent is not None:
        below = Message.objects.filter(
            project=called.project_id, parent=parent, role=Role.TOOL, deleted_at=None
        )
        answer = below.order_by("-seq").first()
        parent = answer.pk if answer else None
        answers += [_kept(answer)] if answer else []
    return answers
