"""Checks of a forget request: is the member permitted to do it, and does the named object exist?"""

from typing import Any

from django.db.models import Q

from chat.models import Import, Message, Session, Visibility
from memory.forgetting.scope import ForgetScope
from memory.models import Entry, Fact, File, Tombstone, TombstoneKind
from projects.models import MemberRole, Membership, Project

# For each condition of a scope: its name in messages, its model, and the kind of its tombstones.
NAMED_OBJECTS: dict[str, tuple[str, type[Any], TombstoneKind]] = {
    "session": ("session", Session, TombstoneKind.SESSION),
    "message": ("message", Message, TombstoneKind.MESSAGE),
    "entry": ("entry", Entry, TombstoneKind.ENTRY),
    "fact": ("fact", Fact, TombstoneKind.RECORD),
    "upload": ("import", Import, TombstoneKind.UPLOAD),
    "file": ("file", File, TombstoneKind.FILE),
}


def may_forget(member: Membership, scope: ForgetScope) -> bool:
    """Return whether `member` may forget `scope`.

    Owners may forget anything in their project. Editors may forget:

    - their own messages, files that they added, and facts that they wrote or that are only about
      them,
    - everything in their private sessions, and sessions that they created if nobody else wrote in
      them,
    - their own imports, if they may forget every session that the import created or extended.

    Editors may not forget replies to other members.
    """
    if member.role == MemberRole.OWNER:
        return True
    if not member.may_write or scope.replies:
        return False
    private = Q(session__creator=member.user_id, session__visibility=Visibility.PRIVATE)
    if scope.user is not None:
        return scope.user == member.user_id
    if scope.file is not None:
        files = File.objects.filter(project=member.project, pk=scope.file)
        return files.filter(private | Q(added_by=member.user_id)).exists()
    if scope.message is not None:
        messages = Message.objects.filter(project=member.project, pk=scope.message)
        return messages.filter(private | Q(author=member.user_id)).exists()
    if scope.fact is not None:
        own = Q(user=member.user_id) | Q(by_hand=True, written_by=member.user.get_username())
        facts = Fact.objects.filter(own, project=member.project, pk=scope.fact)
        return facts.exists() and not scope.sources
    if scope.entry is not None:
        return Entry.objects.filter(private, project=member.project, pk=scope.entry).exists()
    if scope.session is not None:
        created = Session.objects.filter(pk=scope.session, creator=member.user_id)
        written = Message.objects.filter(session=scope.session).exclude(author=None)
        return created.exists() and not written.exclude(author=member.user_id).exists()
    if scope.upload is not None:
        imports = Import.objects.filter(project=member.project, pk=scope.upload)
        return imports.only_by(member.user_id).exists()
    return False


def missing_object(project: Project, scope: ForgetScope) -> str:
    """Return an error message if `scope` names an id that `project` never had, otherwise "".

    An id that was forgotten earlier is no error. A mistyped id is reported instead of returning an
    empty receipt.
    """
    for condition, (name, model, kind) in NAMED_OBJECTS.items():
        pk = getattr(scope, condition)
        if pk is None or model.objects.filter(project=project, pk=pk).exists():
            continue
        tombstones = Tombstone.objects.filter(project=project, kind=kind, subject=str(pk))
        if not tombstones.exists():
            return f"There is no such {name} in this project."
    return ""
