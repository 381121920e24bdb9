"""Permissions on entries: who may see, review and forget them."""

from typing import Any

from django.db.models import Q

from chat.models import Session, Visibility
from memory.models import Entry, EntryState, EntryStatus
from memory.models.entries import EntryQuerySet
from projects.models import MemberRole, Membership

# A staff user with one of these permissions can forget text of any project in the admin.
MODERATOR_PERMISSIONS = (
    *("chat.delete_session", "chat.delete_message", "chat.delete_import"),
    *("memory.delete_entry", "memory.delete_fact", "memory.delete_file"),
)


def entries_for(member: Membership) -> EntryQuerySet:
    """Return the entries of the project that the member may see, with their sessions.

    Proposed entries of other members' private sessions are left out, because they may quote these
    sessions. Hidden entries are only visible to members who may write.
    """
    own_or_shared = (
        Q(session=None)
        | Q(session__visibility=Visibility.PROJECT)
        | Q(session__creator_id=member.user_id)
    )
    entries = member.project.entries.filter(~Q(state=EntryStatus.PROPOSED) | own_or_shared)
    if not member.is_writer:
        entries = entries.exclude(state=EntryStatus.HIDDEN)
    return entries.select_related("session", "file")


def may_read_past(member: Membership, entry: Entry, past: EntryState) -> bool:
    """Return whether `member`, who may see `entry`, may see its text at the state `past`.

    The rules of `entries_for` apply to the past state.
    """
    if past.state == EntryStatus.HIDDEN and not member.is_writer:
        return False
    is_current = past.state != EntryStatus.PROPOSED and past.revision == entry.revision
    return is_current or may_read_revisions(member, entry)


def may_read_revisions(member: Membership, entry: Entry) -> bool:
    """Return whether `member`, who may see `entry`, may see its earlier texts. Of a private
    session, only the creator may, because they may contain passages that were removed before
    approval.
    """
    if not is_private(entry):
        return True
    assert entry.session is not None
    return entry.session.creator_id == member.user_id


def is_private(entry: Entry) -> bool:
    """Return whether the entry summarises a private session."""
    return entry.session is not None and entry.session.visibility == Visibility.PRIVATE


def may_decide(member: Membership, entry: Entry) -> bool:
    """Return whether `member` may approve the proposed or hidden `entry`.

    Owners may. Only the session's creator may decide on a proposed entry of a private session,
    because nobody else has read it.
    """
    if entry.state == EntryStatus.PROPOSED and is_private(entry):
        assert entry.session is not None
        return member.may_write and entry.session.creator_id == member.user_id
    return member.role == MemberRole.OWNER


def is_moderator(user: Any) -> bool:
    """Return whether `user` may forget text of any project in the admin."""
    return user.is_staff and any(map(user.has_perm, MODERATOR_PERMISSIONS))


def may_forget(member: Membership, session: Session | None = None) -> bool:
    """Return whether `member` may forget entries. Owners may, and the creator of a private session
    may forget entries of that session.
    """
    own = (
        session is not None
        and session.visibility == Visibility.PRIVATE
        and session.creator_id == member.user_id
    )
    return member.role == MemberRole.OWNER or (member.may_write and own)
