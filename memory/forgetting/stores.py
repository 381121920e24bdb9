"""The stores of user text, and how a forget request deletes text from each store.

This module lists the columns that may contain user text. A test fails for a text column that is
neither listed here nor in tests/memory/text_columns.py.
"""

from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Model, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from chat.conversations.titles import title_from_messages
from chat.importers.base import source_digest
from chat.models import (
    Attachment,
    Import,
    ImportedStretch,
    Message,
    MessageRevision,
    Reaction,
    SavedPrompt,
    Session,
    Status,
)
from chat.models.messages import UNFINISHED
from memory.forgetting.facts import delete_facts
from memory.forgetting.files import remove_versions
from memory.forgetting.scope import DeletionSet, id_batches
from memory.forgetting.trimming import remove_lines
from memory.layers import entry_text
from memory.layers.coverage import recount
from memory.models import (
    Block,
    Chunk,
    Cursor,
    Entry,
    EntryRevision,
    EntryState,
    EntryStatus,
    Fact,
    File,
    FilePassage,
    FileRevision,
    RenderedBank,
    SourceType,
)
from memory.models.cursors import mark_layers_changed
from memory.recall import indexing
from projects.models import Project


@dataclass(frozen=True)
class TextStore:
    """A store of user text. `texts` are its columns by model. `remove` deletes or empties the rows,
    and returns their number for the receipt.
    """

    name: str
    texts: dict[type[Model], tuple[str, ...]]
    remove: Callable[[Project, DeletionSet], int]


def delete(rows: QuerySet) -> int:
    """Delete `rows` and return their number, without rows of other models deleted with them."""
    return rows.delete()[1].get(rows.model._meta.label, 0)


def delete_of_messages(model, deletions: DeletionSet) -> int:
    batches = id_batches(deletions.messages)
    return sum(delete(model.objects.filter(message__in=batch)) for batch in batches)


def remove_attachments(project: Project, deletions: DeletionSet) -> int:
    removed = delete_of_messages(Attachment, deletions)
    others = Q(session__in=deletions.sessions)
    if deletions.user:
        unsent = Q(message=None, uploaded_by=deletions.user)
        others |= unsent & deletions.is_earlier("created_at")
    return removed + delete(Attachment.objects.filter(others, project=project))


def remove_reactions(project: Project, deletions: DeletionSet) -> int:
    removed = 0
    if deletions.user:
        rows = Reaction.objects.filter(project=project, user=deletions.user)
        removed = delete(rows.filter(deletions.is_earlier("created_at")))
    return removed + delete_of_messages(Reaction, deletions)


def remove_saved_prompts(project: Project, deletions: DeletionSet) -> int:
    """Delete the prompts of a forgotten user, and those of the project that the user wrote."""
    if not deletions.user:
        return 0
    own = Q(user=deletions.user) | Q(user=None, written_by=deletions.user)
    return delete(project.saved_prompts.filter(own, deletions.is_earlier("updated_at")))


def remove_messages(project: Project, deletions: DeletionSet) -> int:
    """Empty the messages. The empty rows stay, so that later messages keep their parent."""
    for batch in id_batches(deletions.messages):
        rows = Message.objects.filter(project=project, pk__in=batch)
        imported = list(
            rows.exclude(source_key=None)
            .select_related("session")
            .only("source_key", "session__source_key")
        )
        for message in imported:
            message.source_key = source_digest(
                message.session.source_key or "", message.source_key or ""
            )
        Message.objects.bulk_update(imported, ["source_key"], batch_size=500)
        # End a reply in progress, so that the process that writes it stores nothing more.
        rows.filter(status__in=UNFINISHED).update(status=Status.STOPPED, stop_requested=True)
        rows.update(
            text="",
            tokens=0,
            author=None,
            author_name="",
            error="",
            tool_calls=[],
            tool_call_id="",
            lookups=[],
            receipt={},
            copied_from=None,
            deleted_at=Coalesce("deleted_at", Now()),
            hidden_at=None,
            forgotten_at=Now(),
            version=F("version") + 1,
        )
    for batch in id_batches(deletions.unremembered):
        Message.objects.filter(project=project, pk__in=batch).update(remembered=False)
    return len(deletions.messages)


def rewrite_titles(project: Project, deletions: DeletionSet) -> int:
    """Create titles from the remaining messages where forgotten messages gave the old titles."""
    changed = 0
    for session in Session.objects.filter(pk__in=deletions.touched):
        session.version += 1
        lost = session.messages.filter(pk__in=deletions.messages)
        if not session.title_by_hand and lost.exists():
            title = title_from_messages(session)
            changed += title != session.title
            session.title = title
        session.save(update_fields=["title", "version"])
    return changed


def remove_entries(project: Project, deletions: DeletionSet) -> int:
    """Delete `deletions.entries`, and empty `deletions.withheld` until they are rewritten."""
    for session in Session.objects.filter(pk__in=deletions.touched):
        cursor = Cursor.objects.filter(pk=session.pk).first()
        if cursor is not None:
            recount(session, cursor.summarised_through)
    entry_text.erase_texts([project.pk], deletions.withheld)
    withheld = Entry.objects.filter(project=project, pk__in=deletions.withheld)
    withheld.exclude(state=EntryStatus.HIDDEN).update(state=EntryStatus.STALE)
    mark_layers_changed(project.pk)
    removed = delete(Entry.objects.filter(pk__in=deletions.entries))
    # A trigger has just recorded the state of each child of a deleted digest, even if deleted here.
    EntryState.objects.filter(project=project, entry__in=deletions.entries).delete()
    return removed


def remove_chunks(project: Project, deletions: DeletionSet) -> int:
    """Delete the chunks that quote forgotten text. The rest of the sessions is indexed again."""
    removed = delete(Chunk.objects.filter(project=project, session__in=deletions.sessions))
    summaries = Chunk.objects.filter(project=project, source_type=SourceType.ENTRY)
    removed += delete(summaries.filter(source__in=deletions.changed_entries))
    deleted = Q(document__in=deletions.files) | Q(pk__in=deletions.versions)
    revisions = FileRevision.objects.filter(deleted, project=project)
    passages = Chunk.objects.filter(project=project, source_type=SourceType.FILE)
    removed += delete(passages.filter(source__in=revisions.values("pk")))
    lost: dict[UUID, list[int]] = defaultdict(list)
    for batch in id_batches(deletions.messages | deletions.unremembered):
        rows = Message.objects.filter(project=project, pk__in=batch, session__in=deletions.touched)
        for session_id, seq in rows.values_list("session", "seq"):
            lost[session_id].append(seq)
    for session in Session.objects.filter(pk__in=lost):
        removed += indexing.remove_chunks(session, lost[session.pk])
        indexing.mark_changed(session, min(lost[session.pk]))
    return removed


def remove_files(project: Project, deletions: DeletionSet) -> int:
    """Delete the files, and the versions of the forgotten user in other files."""
    removed = delete(project.files.filter(pk__in=deletions.files))
    return removed + (remove_versions(project, deletions) if deletions.versions else 0)


def remove_imports(project: Project, deletions: DeletionSet) -> int:
    """Delete the imports. A running import stops at its next message.

    In other imports that added forgotten messages or that the forgotten user started, the file name
    and the errors are removed, because both may contain text of the file.
    """
    touched = list(deletions.sessions | deletions.touched)
    brought = ImportedStretch.objects.filter(project=project, session__in=touched)
    quoting = Q(pk__in=brought.values("upload"))
    if deletions.user:
        quoting |= Q(user=deletions.user) & deletions.is_earlier("created_at")
    Import.objects.filter(quoting, project=project).update(name="", errors=[])
    return delete(Import.objects.filter(project=project, pk__in=deletions.uploads))


# In the order of deletion: facts before the messages and entries that they come from, revisions
# before their entries, and sessions after their contents.
STORES = (
    TextStore(
        "facts",
        {Fact: ("subject", "predicate", "object", "subject_key", "predicate_key")},
        delete_facts,
    ),
    TextStore("attachments", {Attachment: ("name", "description", "file")}, remove_attachments),
    TextStore(
        "revisions",
        {MessageRevision: ("text",)},
        lambda project, deletions: delete_of_messages(MessageRevision, deletions),
    ),
    TextStore("reactions", {Reaction: ("emoji",)}, remove_reactions),
    TextStore(
        "messages",
        {
            Message: (
                *("text", "author_name", "error", "receipt", "source_key"),
                *("tool_calls", "tool_call_id", "lookups"),
            )
        },
        remove_messages,
    ),
    TextStore("titles", {}, rewrite_titles),
    TextStore(
        "entry_revisions",
        {EntryRevision: ("summary", "lines")},
        lambda project, deletions: delete(
            EntryRevision.objects.filter(entry__in=deletions.entries | deletions.withheld)
        ),
    ),
    TextStore("entries", {Entry: ("summary", "lines", "note", "losses")}, remove_entries),
    # After the withheld entries are emptied, because the check of the digests above reads them.
    TextStore("lines", {}, remove_lines),
    TextStore("chunks", {Chunk: ("speaker", "text", "pieces", "terms")}, remove_chunks),
    TextStore(
        "blocks",
        {Block: ("name", "content")},
        lambda project, deletions: delete(project.blocks.filter(pk__in=deletions.blocks)),
    ),
    TextStore("saved_prompts", {SavedPrompt: ("name", "text")}, remove_saved_prompts),
    # Deleting a version also deletes its chunks. They are already deleted above, to be counted.
    TextStore(
        "files",
        {
            File: ("name",),
            FileRevision: ("title", "reason", "warnings", "last_error", "file"),
            FilePassage: ("label", "headings", "text"),
        },
        remove_files,
    ),
    # Before the sessions, because deleting a session deletes its import records.
    TextStore("imports", {Import: ("name", "errors")}, remove_imports),
    TextStore(
        "sessions",
        {Session: ("title", "source_key")},
        lambda project, deletions: delete(Session.objects.filter(pk__in=deletions.sessions)),
    ),
    TextStore(
        "rendered_bank",
        {RenderedBank: ("text", "included", "left_out")},
        lambda project, deletions: int(RenderedBank.empty(project.pk)),
    ),
)
