"""Memory listens to chat: what is said is counted, and what changes makes its summary stale. Who
comes into a project, and as what, goes on its record.

All in the transaction of the change, in which the session's row is locked.
"""

from collections.abc import Collection, Sequence
from functools import partial
from typing import Any
from uuid import UUID

from django.db import transaction
from django.db.models import Exists, F, OuterRef, QuerySet
from django.db.models.signals import post_delete, post_save
from django.dispatch import receiver

from chat.compiled import CompiledUpdate
from chat.models import Message, Session
from chat.signals import (
    import_planned,
    memories_imported,
    message_added,
    message_changed,
    private_text_opened,
    session_deleted,
    session_expired,
    session_made_private,
    session_restored,
)
from memory.forgetting import Scope, forget, graves
from memory.layers import gaps, imported, review
from memory.layers.coverage import contributes, recount
from memory.layers.summarising import EXTRACTIVE
from memory.models import Chunk, Cursor, Entry, Verb, Waiting
from memory.models.activity import note
from memory.models.cursors import nudge
from memory.recall import indexing
from memory.tasks import wake_indexing
from projects.models import Invitation, Membership, Project
from projects.signals import (
    invited,
    member_added,
    member_joined,
    member_removed,
    role_changed,
)


@receiver(message_added)
def count_added(session: Session, messages: list[Message], **kwargs: object) -> None:
    fresh = [message for message in messages if contributes(message)]
    count, tokens = len(fresh), sum(message.tokens for message in fresh)
    if not _counted(session.project_id, session.pk, count, tokens):
        Cursor.objects.create(
            session_id=session.pk,
            project_id=session.project_id,
            unsummarised_messages=count,
            unsummarised_tokens=tokens,
        )


def _counting(
    project: UUID, session: UUID, count: int, tokens: int
) -> tuple[QuerySet, dict[str, Any]]:
    more = {
        "unsummarised_messages": F("unsummarised_messages") + count,
        "unsummarised_tokens": F("unsummarised_tokens") + tokens,
    }
    return Cursor.objects.filter(project=project, pk=session), more


_counted = CompiledUpdate(_counting, UUID, UUID, int, int)


@receiver(message_changed)
def follow_the_change(session: Session, messages: list[Message], **kwargs: object) -> None:
    """Counts anew what no entry covers; entries that cover what changed are to be rewritten.

    One that covers what was deleted is withheld until then, and so is all that was made of it.
    """
    if not messages:
        # Nothing was ever said in an empty session, so that it has no cursor either.
        return
    cursor = Cursor.objects.get(project=session.project_id, pk=session.pk)
    recount(session, cursor.summarised_through)
    deleted = [message.seq for message in messages if message.deleted_at is not None]
    if deleted:
        review.withhold(covering(session, deleted))
    edited = [message.seq for message in messages if message.deleted_at is None]
    for entry in covering(session, edited):
        review.outdate(entry)
    gaps.cover_again(session, edited)


def covering(session: Session, seqs: Sequence[int]) -> QuerySet[Entry]:
    """The conversation entries that cover any of these places."""
    covered = Message.objects.filter(
        project=session.project_id,
        session=session,
        seq__in=seqs,
        seq__range=(OuterRef("first_seq"), OuterRef("last_seq")),
    )
    return _entries(session).filter(Exists(covered))


def _entries(session: Session) -> QuerySet[Entry]:
    return Entry.objects.filter(project=session.project_id, session=session)


@receiver(session_deleted)
def withhold_what_was_made_of_it(session: Session, **kwargs: object) -> None:
    """Nothing that was made of the session stands until it is restored or forgotten."""
    review.withhold(_entries(session), keep_earlier=True)


@receiver(session_restored)
def bring_back_what_was_made_of_it(session: Session, **kwargs: object) -> None:
    """Its entries wait to be looked at again: from unchanged sources they stand as they stood."""
    nudge(session.project_id)


@receiver(session_expired)
def forget_what_was_said_in_it(session: Session, **kwargs: object) -> None:
    """With all that was made of it, and so that no import brings it back."""
    forget(session.project, Scope(session=session.pk))


@receiver(import_planned)
def keep_out_what_was_forgotten(
    project: Project, subjects: Collection[str], **kwargs: object
) -> set[str]:
    return graves.buried(project, subjects)


@receiver(private_text_opened)
def leave_a_trace(session: Session, by, **kwargs: object) -> None:
    note(session.project_id, Verb.READ, by=by, session_id=session.pk, count=1)


@receiver(post_save, sender=Project)
def look_through_its_layers(instance: Project, **kwargs: object) -> None:
    """Its budget or its thresholds may have changed."""
    nudge(instance.pk)


@receiver(post_save, sender=Project)
def cut_anew_in_its_language(
    instance: Project, created: bool, update_fields: Collection[str] | None, **kwargs: object
) -> None:
    """What was cut into words in another language is indexed again."""
    if created or (update_fields is not None and "search_language" not in update_fields):
        return
    chunks = Chunk.objects.filter(project=instance)
    if chunks.exclude(language=instance.search_language_name).exists():
        indexing.mark_all(instance)
        wake_indexing()


@receiver(post_delete, sender=Project)
def write_its_tombstone(instance: Project, **kwargs: object) -> None:
    """Outside of the database alone, from which everything of it goes."""
    graves.write_down([graves.stone_of_project(instance.pk)])


@receiver(session_made_private)
def have_quotes_reviewed(session: Session, **kwargs: object) -> None:
    """Extractive entries quote, and what is private now is not to be quoted to others unseen."""
    review.propose(_entries(session).filter(written_by=EXTRACTIVE), Waiting.PRIVATE)


@receiver(memories_imported)
def propose_memories(
    session: Session, messages: list[Message], source: str, **kwargs: object
) -> None:
    imported.propose(session, messages, source)


@receiver(message_added)
def index_added(session: Session, messages: list[Message], **kwargs: object) -> None:
    if messages:
        indexing.mark(session, min(message.seq for message in messages))
        _have_indexed(session)


@receiver(message_changed)
def index_changed(session: Session, messages: list[Message], **kwargs: object) -> None:
    """What was edited, deleted or left the path is out of recall before this is committed."""
    if messages:
        seqs = [message.seq for message in messages]
        indexing.mark(session, min(seqs))
        indexing.withdraw(session, seqs)
        _have_indexed(session)


def _have_indexed(session: Session) -> None:
    """Soon; what somebody notes down, and may look for in the next moment, at once."""
    wake_indexing()
    if session.is_notes and session.source_key is None:
        at_once = partial(indexing.index_at_once, session.project_id, session.pk)
        transaction.on_commit(at_once, robust=True)


@receiver(member_added)
def note_who_was_added(member: Membership, by: Any, **kwargs: object) -> None:
    _note_member(member, Verb.MEMBER_ADDED, by, role_after=member.role)


@receiver(member_joined)
def note_who_joined(member: Membership, **kwargs: object) -> None:
    _note_member(member, Verb.JOINED, member.user, role_after=member.role)


@receiver(member_removed)
def note_who_was_removed(member: Membership, by: Any, **kwargs: object) -> None:
    _note_member(member, Verb.MEMBER_GONE, by, role_before=member.role)


@receiver(role_changed)
def note_the_new_role(member: Membership, by: Any, was: str, **kwargs: object) -> None:
    _note_member(member, Verb.ROLE_CHANGED, by, role_before=was, role_after=member.role)


@receiver(invited)
def note_the_invitation(invitation: Invitation, by: Any, **kwargs: object) -> None:
    note(invitation.project_id, Verb.INVITED, by=by, role_after=invitation.role)


def _note_member(
    member: Membership, verb: Verb, by: Any, role_before: str = "", role_after: str = ""
) -> None:
    note(
        member.project_id,
        verb,
        by=by,
        whom_id=member.user_id,
        role_before=role_before,
        role_after=role_after,
    )
