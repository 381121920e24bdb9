"""Signal handlers that update memory after changes to chats and projects.

They run in the transaction of the change, if there is one (chat/signals.py). When messages change,
the sender of the signal has already locked the session's row.
"""

from collections.abc import Collection, Sequence
from datetime import datetime
from functools import partial
from typing import Any

from django.conf import settings
from django.db import transaction
from django.db.models import Exists, F, Q, QuerySet
from django.db.models.functions import Coalesce
from django.db.models.signals import post_delete, post_save, pre_delete, pre_save
from django.dispatch import receiver

from chat.models import Import, Message, Session, Visibility
from chat.signals import (
    import_finished,
    import_planned,
    memories_imported,
    message_added,
    message_changed,
    private_text_opened,
    reply_stored,
    session_archived,
    session_deleted,
    session_expired,
    session_made_private,
    session_restored,
)
from memory.files import adding as files
from memory.forgetting import tombstones
from memory.forgetting.service import ForgetScope, forget
from memory.forgetting.users import DELETED, rename_writer
from memory.layers import conversations, coverage, losses
from memory.layers.summarising.base import EXTRACTIVE
from memory.models import (
    ActivityVerb,
    Chunk,
    Cursor,
    EntriesChanged,
    Entry,
    Fact,
    File,
    FilePassage,
    IndexCursor,
    ReviewReason,
)
from memory.models.activity import record_activity
from memory.models.cursors import mark_layers_changed
from memory.moderation import entry_operations
from memory.recall import fact_chunks, indexing
from memory.wakeups import wake_indexing
from projects.core.database import server_cursor
from projects.models import Invitation, Membership, Project
from projects.signals import (
    invitation_created,
    member_added,
    member_joined,
    member_removed,
    project_archived,
    role_changed,
)

INDEX_SETTINGS = {"indexed_roles", "min_index_chars"}


def annotate_unsummarised(sessions: QuerySet[Session]) -> QuerySet[Session]:
    """Annotate `unsummarized_count`, the number of messages that no summary covers yet."""
    return sessions.annotate(unsummarized_count=Coalesce(F("cursor__unsummarised_messages"), 0))


# Plain SQL for speed, because it runs for every message and every reply.
_COUNT_ADDED = """
    UPDATE memory_cursor SET unsummarised_messages = unsummarised_messages + %s,
        unsummarised_tokens = unsummarised_tokens + %s
    WHERE project_id = %s AND session_id = %s
"""


@receiver(message_added)
def count_added(session: Session, messages: list[Message], **kwargs: object) -> None:
    """Add new messages to the counts of the session's cursor. A reply is counted when it is
    finished.
    """
    fresh = [message for message in messages if coverage.contributes(message)]
    count, tokens = len(fresh), sum(message.tokens for message in fresh)
    with server_cursor() as cursor:
        cursor.execute(_COUNT_ADDED, [count, tokens, session.project_id, session.pk])
        is_known = cursor.rowcount
    if not is_known:
        Cursor.objects.create(
            session_id=session.pk,
            project_id=session.project_id,
            unsummarised_messages=count,
            unsummarised_tokens=tokens,
        )


@receiver(message_changed)
def update_coverage(session: Session, messages: list[Message], **kwargs: object) -> None:
    """Recount the messages without a summary. Schedule a rewrite of the entries that cover
    `messages`.

    Entries that cover deleted messages, and all digests above them, are withheld until the rewrite.
    """
    if not messages:
        # An empty chat was cleared. It has no cursor if it never had messages.
        return
    cursor = Cursor.objects.get(project=session.project_id, pk=session.pk)
    coverage.recount(session, cursor.summarised_through)
    entry_operations.lock(entries_covering(session, [message.seq for message in messages]))
    deleted = [message.seq for message in messages if message.deleted_at is not None]
    if deleted:
        entry_operations.withhold(entries_covering(session, deleted))
    edited = [message.seq for message in messages if message.deleted_at is None]
    for entry in entries_covering(session, edited):
        entry_operations.schedule_rewrite(entry)
    coverage.cover_gaps(session, edited)


def entries_of(session: Session) -> QuerySet[Entry]:
    return Entry.objects.filter(project=session.project_id, session=session)


def entries_covering(session: Session, seqs: Sequence[int]) -> QuerySet[Entry]:
    """Return the conversation entries that cover any of `seqs`."""
    covered = Message.objects.filter(
        coverage.IN_RANGE, project=session.project_id, session=session, seq__in=seqs
    )
    return entries_of(session).filter(Exists(covered))


@receiver(session_deleted)
def withhold_entries(session: Session, **kwargs: object) -> None:
    """Withhold the session's entries until it is restored, and the digests above them until they
    are rewritten.
    """
    entry_operations.withhold(entries_of(session), keep_earlier=True)


@receiver(session_restored)
def restore_entries(session: Session, **kwargs: object) -> None:
    """Schedule an update of the layers. The next cycle restores the entries of the session."""
    mark_layers_changed(session.project_id)


@receiver(session_archived)
def record_session_archived(session: Session, by: Any, **kwargs: object) -> None:
    """Log the change, unless the chat is private, because all members can read the log."""
    if session.visibility == Visibility.PROJECT:
        verb = _archive_verb(session.archived_at)
        record_activity(session.project_id, verb, by=by, session_id=session.pk)


@receiver(project_archived)
def record_project_archived(project: Project, by: Any, **kwargs: object) -> None:
    record_activity(project.pk, _archive_verb(project.archived_at), by=by)


def _archive_verb(archived_at: datetime | None) -> ActivityVerb:
    return ActivityVerb.ARCHIVED if archived_at else ActivityVerb.UNARCHIVED


@receiver(session_expired)
def forget_session(session: Session, **kwargs: object) -> None:
    """Forget the session with everything derived from it, so that no import restores it. If it is a
    fork, the chat from which it was forked stays.
    """
    forget(session.project, ForgetScope(session=session.pk, copies_only=True))


@receiver(import_planned)
def exclude_forgotten(project: Project, subjects: Collection[str], **kwargs: object) -> set[str]:
    return tombstones.forgotten_subjects(project, subjects)


@receiver(import_finished)
def record_import(upload: Import, **kwargs: object) -> None:
    """Log the user and the counts of an import. A failed import may have added messages too."""
    record_activity(
        upload.project_id,
        ActivityVerb.IMPORTED,
        by=upload.user,
        count=upload.imported,
        receipt={"sessions": upload.sessions, "refused": upload.refused},
    )


@receiver(private_text_opened)
def record_private_read(session: Session, by: Any, **kwargs: object) -> None:
    record_activity(session.project_id, ActivityVerb.READ, by=by, session_id=session.pk, count=1)


@receiver(post_save, sender=Project)
def check_layers(instance: Project, **kwargs: object) -> None:
    """Schedule an update of the layers, because the budget may have changed."""
    mark_layers_changed(instance.pk)


@receiver(post_save, sender=Project)
def reindex_in_new_language(
    instance: Project, created: bool, update_fields: Collection[str] | None, **kwargs: object
) -> None:
    """Index the project again if chunks were normalised for another language."""
    if created or (update_fields is not None and "search_language" not in update_fields):
        return
    chunks = Chunk.objects.filter(project=instance)
    if chunks.exclude(language=instance.search_language_name).exists():
        indexing.mark_project(instance)
        wake_indexing()
        files.index_again(instance.pk)


@receiver(pre_save, sender=Project)
def note_index_settings(
    instance: Project, update_fields: Collection[str] | None, **kwargs: object
) -> None:
    """Set `instance.changes_index`: whether the save changes which messages are indexed."""
    instance.changes_index = False
    if update_fields is None or not INDEX_SETTINGS.isdisjoint(update_fields):
        stored = Project.objects.filter(pk=instance.pk).values(*INDEX_SETTINGS).first()
        instance.changes_index = stored is not None and any(
            getattr(instance, name) != value for name, value in stored.items()
        )


@receiver(post_save, sender=Project)
def reindex_with_new_settings(instance: Project, **kwargs: object) -> None:
    if instance.changes_index:
        indexing.mark_project(instance)
        wake_indexing()


@receiver(post_delete, sender=Project)
def write_project_tombstone(instance: Project, **kwargs: object) -> None:
    """Write the tombstone only to the file, because all rows of the project are deleted."""
    tombstones.append_to_file([tombstones.project_record(instance.pk)])


@receiver(session_made_private)
def review_quotes(session: Session, **kwargs: object) -> None:
    """When a session becomes private, mark for review its entries that contain quotations. These
    are its extractive entries, and the entries of its files. Replace the losses of all its entries
    by the number of losses, because only the creator may read losses.
    """
    entry_operations.lock(entries_of(session))
    for entry in entries_of(session).exclude(losses=[]):
        entry.losses = losses.without_texts(entry.losses)
        entry.save(update_fields=["losses"])
    quoting = entries_of(session).filter(Q(written_by=EXTRACTIVE) | Q(file__isnull=False))
    entry_operations.send_to_review(quoting, ReviewReason.PRIVATE)


@receiver(memories_imported)
def propose_memories(
    session: Session, messages: list[Message], source: str, **kwargs: object
) -> None:
    conversations.propose_imported(session, messages, source)


@receiver(message_added)
def index_added(session: Session, messages: list[Message], **kwargs: object) -> None:
    """Index new messages. A question is indexed together with its reply, after `reply_stored`."""
    if messages and all(message.is_final for message in messages):
        indexing.mark_changed(session, min(message.seq for message in messages))
        start_indexing(session)


@receiver(reply_stored)
def remember_reply(session: Session, message: Message, **kwargs: object) -> None:
    """Count and index a finished reply. Unfinished messages are in no entry or chunk."""
    count_added(session, [message])
    index_added(session, [message])


@receiver(reply_stored)
def count_uses(session: Session, message: Message, **kwargs: object) -> None:
    """Increase `uses` of each file that has a passage in the prompt of the reply."""
    sections = message.receipt.get("sections", ())
    items = (item for section in sections for item in section.get("items", ()))
    if passages := [item["id"] for item in items if item.get("kind") == "file"]:
        used = FilePassage.objects.filter(project=session.project_id, pk__in=passages)
        documents = used.order_by().values("revision__document")
        rows = File.objects.filter(project=session.project_id, pk__in=documents)
        # Lock in the order of ids, because other replies may lock the same files at the same time.
        locked = rows.select_for_update(no_key=True).order_by("pk").values_list("pk", flat=True)
        rows.filter(pk__in=list(locked)).update(uses=F("uses") + 1)


@receiver(message_changed)
def index_changed(session: Session, messages: list[Message], **kwargs: object) -> None:
    """Remove the changed messages from recall at once, and schedule the indexing of the session."""
    if messages:
        seqs = [message.seq for message in messages]
        indexing.mark_changed(session, min(seqs))
        indexing.remove_chunks(session, seqs)
        start_indexing(session)


def start_indexing(session: Session) -> None:
    """Index the session soon. Notes that were not imported are indexed on commit, so that their
    author can find them at once.
    """
    wake_indexing()
    if session.is_notes and session.source_key is None:
        at_once = partial(indexing.index_session_now, session.project_id, session.pk)
        transaction.on_commit(at_once, robust=True)


@receiver(post_save, sender=Fact)
def index_fact(instance: Fact, update_fields: Collection[str] | None, **kwargs: object) -> None:
    """Index a fact on commit. If only some columns are saved, its indexed text has not changed."""
    if update_fields is not None:
        return
    EntriesChanged.objects.create(project_id=instance.project_id)
    wake_indexing()
    at_once = partial(fact_chunks.index_fact_now, instance.project, instance.pk)
    transaction.on_commit(at_once, robust=True)


@receiver(member_added)
def record_member_added(member: Membership, by: Any, **kwargs: object) -> None:
    record_membership(member, ActivityVerb.MEMBER_ADDED, by, role_after=member.role)


@receiver(member_joined)
def record_member_joined(member: Membership, **kwargs: object) -> None:
    record_membership(member, ActivityVerb.JOINED, member.user, role_after=member.role)


@receiver(member_removed)
def record_member_removed(member: Membership, by: Any, **kwargs: object) -> None:
    record_membership(member, ActivityVerb.MEMBER_REMOVED, by, role_before=member.role)


@receiver(role_changed)
def record_role_change(member: Membership, by: Any, was: str, **kwargs: object) -> None:
    roles = {"role_before": was, "role_after": member.role}
    record_membership(member, ActivityVerb.ROLE_CHANGED, by, **roles)


@receiver(invitation_created)
def record_invitation(invitation: Invitation, by: Any, **kwargs: object) -> None:
    record_activity(invitation.project_id, ActivityVerb.INVITED, by=by, role_after=invitation.role)


def record_membership(member: Membership, verb: ActivityVerb, by: Any, **roles: Any) -> None:
    record_activity(member.project_id, verb, by=by, whom_id=member.user_id, **roles)


@receiver(pre_save, sender=settings.AUTH_USER_MODEL)
def rename_writer_of_texts(instance: Any, update_fields: Any, **kwargs: object) -> None:
    # Skip the frequent saves of `last_login` at sign-in.
    if instance.pk is None or (update_fields is not None and "username" not in update_fields):
        return
    users = type(instance)._default_manager.filter(pk=instance.pk)
    previous = users.values_list("username", flat=True).first()
    if previous not in (None, instance.username):
        rename_writer(previous, instance.username)


@receiver(pre_delete, sender=settings.AUTH_USER_MODEL)
def index_without_name(instance: Any, **kwargs: object) -> None:
    """Index the messages of a deleted user again, because their chunks contain the user's name.

    Cursors are locked before the deletion changes chunks. Indexing also locks the cursor first, so
    it waits for the end of the deletion. Entries are locked by the next receiver, because they come
    after chats and cursors in the order of locks. The chats that the user created are locked too,
    because the deletion changes them.
    """
    chunks = Chunk.objects.filter(author=instance.pk).order_by()
    ids = list(chunks.values_list("session", flat=True).distinct())
    cursors = IndexCursor.objects.filter(pk__in=ids)
    sessions = Session.objects.filter(Q(pk__in=ids) | Q(creator=instance.pk))
    for rows in (sessions, cursors):
        list(rows.order_by("pk").select_for_update(no_key=True).values_list("pk"))
    cursors.mark_changed()
    wake_indexing()


@receiver(pre_delete, sender=settings.AUTH_USER_MODEL)
def mark_writer_as_deleted(instance: Any, **kwargs: object) -> None:
    rename_writer(instance.username, instance.username + DELETED)
