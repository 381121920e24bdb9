"""Find and lock everything that a forget request affects. The lock of a session covers its
messages.
"""

from collections.abc import Iterable
from uuid import UUID

from django.contrib.auth import get_user_model
from django.db.models import BooleanField, Exists, OuterRef, Q, QuerySet
from django.db.models.expressions import RawSQL

from chat.models import ImportedStretch, Message, Role, Session
from chat.models.messages import UNFINISHED
from memory.forgetting.facts import find_facts, source_messages
from memory.forgetting.files import find_entries_of_versions, find_versions, lock_versions
from memory.forgetting.scope import DeletionSet, ForgetScope, id_batches, lock, pks
from memory.forgetting.trimming import find_trims
from memory.layers.coverage import CONTAINS_MESSAGE, CONTRIBUTING, IN_RANGE
from memory.layers.periods import Granularity
from memory.layers.summarising.base import EXTRACTIVE
from memory.models import Chunk, Entry, File, FilePassage, SourceType
from memory.models.entries import CONVERSATION
from projects.models import Project

# The roles of messages that belong to a reply: its text, and the tool results it is based on.
REPLY_ROLES = (Role.ASSISTANT, Role.TOOL)
RECEIPT = "chat_message.receipt"
RECEIPT_ITEMS = "$.sections[*].items[*]"
# Up to this number of ids, receipts are searched by index.
MAX_INDEXED_IDS = 10


def find_deletions(project: Project, scope: ForgetScope) -> DeletionSet:
    """Find and lock everything that `scope` deletes or changes.

    Rows are locked in the order of docs/architecture.md. Each search for further replies locks
    sessions again, out of this order, so the transaction may end in a deadlock.
    """
    deletions = _find(project, scope, set())
    # Read once. If replies that began meanwhile were added at each step, the search below might
    # never end.
    unfinished = unfinished_replies(project) if scope.replies else set()
    replies: set[UUID] = set()
    # A reply may itself have been in later prompts, so search again until none is found.
    while scope.replies and (
        more := exposed_replies(project, deletions, excerpts_of(project, deletions), unfinished)
    ):
        replies |= more
        deletions = _find(project, scope, replies)
    return deletions


def _find(project: Project, scope: ForgetScope, replies: set[UUID]) -> DeletionSet:
    """Return what `scope` deletes if `replies` are forgotten too."""
    user = None if scope.names_object else scope.user
    deletions = DeletionSet(
        user=user or scope.tombstones.user, before=scope.before or scope.tombstones.before
    )
    named = deletions.named_entries = named_entries(project, scope)
    deletions.sessions = named_sessions(project, scope)
    deletions.uploads = named_imports(project, scope)
    locked: set[UUID] = set()
    while True:
        deletions.messages = forgotten_messages(project, scope, named, replies)
        unremembered = unremembered_messages(project, scope, named)
        deletions.unremembered = unremembered - deletions.messages
        touched = sessions_of(project, deletions.messages | deletions.unremembered)
        touched |= deletions.sessions
        if touched <= locked:
            break
        locked |= lock(Session.objects.filter(project=project, pk__in=touched))
        # A session that could not be locked was deleted in the meantime, with its messages.
        deletions.sessions &= locked
    deletions.touched = touched - deletions.sessions
    if any(value is not None for value in (scope.user, scope.before, scope.upload)):
        add_empty_sessions(project, deletions, scope)
    deletions.files = forgotten_files(project, scope, deletions.sessions)
    if deletions.user is not None:
        find_versions(project, deletions)
    if deletions.files or deletions.versions:
        lock_versions(project, deletions)
    find_entries(project, deletions)
    deletions.blocks = forgotten_blocks(project, scope)
    find_facts(project, deletions, scope)
    return deletions


def named_sessions(project: Project, scope: ForgetScope) -> set[UUID]:
    """Return the sessions to delete because the request names them or their import."""
    if not scope.covers_whole_sessions:
        return set(scope.tombstones.sessions)
    if scope.session is not None:
        return {scope.session}
    created = ImportedStretch.objects.filter(project=project, upload=scope.upload).of_new_sessions()
    return set(created.values_list("session", flat=True))


def named_imports(project: Project, scope: ForgetScope) -> set[UUID]:
    named = scope.tombstones.uploads
    if scope.covers_whole_sessions and scope.upload:
        named = frozenset({scope.upload})
    return lock(project.imports.filter(pk__in=named)) if named else set()


def named_entries(project: Project, scope: ForgetScope) -> set[UUID]:
    """Return the entries that the request names, with all their descendants."""
    named = scope.tombstones.entries if scope.entry is None else {scope.entry}
    level = pks(project.entries.filter(pk__in=named)) if named else set()
    entries: set[UUID] = set()
    while level:
        entries |= level
        level = pks(project.entries.filter(parent__in=level)) - entries
    return entries


def covered_messages(project: Project, entries: set[UUID]) -> set[UUID]:
    """Return the messages that `entries` were written from."""
    covering = Entry.objects.filter(CONTAINS_MESSAGE, pk__in=entries, granularity=CONVERSATION)
    sessions = Entry.objects.filter(pk__in=entries).exclude(session=None).values("session")
    rows = Message.objects.filter(CONTRIBUTING, project=project, session__in=sessions)
    return pks(rows.filter(Exists(covering)))


def unremembered_messages(project: Project, scope: ForgetScope, named: set[UUID]) -> set[UUID]:
    """Return the messages that stay in their chats but are no longer remembered."""
    if scope.tombstones:
        return existing_messages(project, scope.tombstones.unremembered)
    return set() if scope.sources or not named else covered_messages(project, named)


def existing_messages(project: Project, ids: Iterable[UUID]) -> set[UUID]:
    """Return the messages among `ids` that exist and are not forgotten."""
    rows = Message.objects.filter(project=project, pk__in=list(ids), forgotten_at=None)
    return pks(rows) if ids else set()


def forgotten_messages(
    project: Project, scope: ForgetScope, named: set[UUID], replies: set[UUID]
) -> set[UUID]:
    """Return the selected messages and `replies`, with their copies in forks, the originals that
    the scope includes, and all replies to any of these messages.
    """
    if scope.tombstones:
        new = existing_messages(project, scope.tombstones.messages)
    elif scope.file is not None:
        new = set()
    elif scope.fact is not None:
        new = source_messages(project, scope.fact) if scope.sources else set()
    elif scope.entry is not None:
        new = covered_messages(project, named) if scope.sources else set()
    else:
        new = pks(selected_messages(project, scope))
    new |= replies
    messages: set[UUID] = set()
    rows = Message.objects.filter(project=project)
    while new:
        messages |= new
        derived: set[UUID] = set()
        for batch in id_batches(new):
            copies = Q(copied_from__in=batch) & scope.reach
            answers = Q(parent__in=batch, role__in=REPLY_ROLES)
            derived |= pks(rows.filter(copies | answers, forgotten_at=None))
            if scope.originals is not None:
                derived |= pks(rows.filter(scope.originals, copies__in=batch))
        new = derived - messages
    return messages


def selected_messages(project: Project, scope: ForgetScope) -> QuerySet[Message]:
    """Return the messages that fulfil all conditions of `scope`."""
    rows = Message.objects.filter(project=project, forgotten_at=None)
    if scope.message is not None:
        rows = rows.filter(pk=scope.message)
    if scope.session is not None:
        rows = rows.filter(session=scope.session)
    if scope.upload is not None:
        # The import created the session, or added the message to it.
        stretches = ImportedStretch.objects.filter(
            Q(first_seq=1) | CONTAINS_MESSAGE,
            project=project,
            upload=scope.upload,
            session=OuterRef("session"),
        )
        rows = rows.filter(Exists(stretches))
    if scope.user is not None:
        rows = rows.filter(author=scope.user)
    if scope.before is not None:
        rows = rows.filter(created_at__lt=scope.before)
    return rows


def sessions_of(project: Project, messages: set[UUID]) -> set[UUID]:
    sessions: set[UUID] = set()
    for batch in id_batches(messages):
        rows = Message.objects.filter(project=project, pk__in=batch).order_by()
        sessions |= set(rows.values_list("session", flat=True).distinct())
    return sessions


def add_empty_sessions(project: Project, deletions: DeletionSet, scope: ForgetScope) -> None:
    """Move sessions without a remaining message or file from `touched` to `sessions`."""
    files = File.objects.filter(project=project, session=OuterRef("pk"))
    files = files.exclude(scope.named_files)
    for batch in id_batches(deletions.touched):
        remaining = Message.objects.filter(
            project=project, session=OuterRef("pk"), forgotten_at=None
        ).exclude(pk__in=deletions.messages)
        rows = Session.objects.filter(project=project, pk__in=batch)
        deletions.sessions |= pks(rows.filter(~Exists(remaining), ~Exists(files)))
    deletions.touched -= deletions.sessions


def find_entries(project: Project, deletions: DeletionSet) -> None:
    """Find and lock the entries to delete, to withhold and to trim, finest layer first."""
    named = deletions.named_entries
    handwritten = entries_written_by(project, deletions)
    gone = Q(session__in=deletions.sessions) | Q(file__document__in=deletions.files)
    deleted, untrimmed = named | pks(project.entries.filter(gone)), set(handwritten)
    if deletions.changed_files:
        of_changed_files, unreadable = find_entries_of_versions(project, deletions)
        deleted, untrimmed = deleted | unreadable, untrimmed | of_changed_files
    derived = untrimmed | entries_derived_from_messages(project, deletions)
    level = lock_layer(project, CONVERSATION, deleted | derived)
    deletions.entries = (level & deleted) | entries_without_sources(project, deletions, level)
    of_files = project.entries.filter(pk__in=deletions.entries, file__isnull=False)
    deletions.summarised_files = set(of_files.values_list("file__document", flat=True))
    trim_or_withhold(project, deletions, level - deletions.entries, untrimmed)
    # Digests of all layers above, because a digest may include an entry from any layer below it.
    above = named | handwritten
    for granularity in list(Granularity)[1:]:
        above |= pks(project.entries.parents_of([project.pk], level))
        level = lock_layer(project, granularity, above)
        children = Entry.objects.in_layers().filter(parent__in=level, pinned=False)
        children = children.exclude(pk__in=deletions.entries)
        with_children = set(children.values_list("parent", flat=True))
        deleted = (level & named) | (level - with_children)
        deletions.entries |= deleted
        trim_or_withhold(project, deletions, level - deleted, handwritten)


def trim_or_withhold(
    project: Project, deletions: DeletionSet, entries: set[UUID], untrimmed: set[UUID]
) -> None:
    """Plan which of `entries` lose single lines (`trims`) and which are withheld."""
    trims = find_trims(project, deletions, entries - untrimmed)
    deletions.trims |= {trim.entry.pk: trim for trim in trims}
    deletions.withheld |= entries - deletions.trims.keys()


def lock_layer(project: Project, granularity: str, ids: set[UUID]) -> set[UUID]:
    return lock(project.entries.filter(granularity=granularity, pk__in=ids))


def entries_derived_from_messages(project: Project, deletions: DeletionSet) -> set[UUID]:
    """Return the conversation entries that a forgotten message contributed to.

    A model writes a summary from the messages and from the preceding summary of the session.
    Therefore all later entries of the session are derived from the message too. The extractive
    summariser does not use the preceding summary.
    """
    entries: set[UUID] = set()
    for batch in id_batches(deletions.messages | deletions.unremembered):
        forgotten = Message.objects.filter(
            project=project,
            pk__in=batch,
            session=OuterRef("session"),
            seq__lte=OuterRef("last_seq"),
        )
        within = forgotten.filter(seq__gte=OuterRef("first_seq"))
        rows = project.entries.filter(session__in=deletions.touched)
        derived = Exists(within) | Q(Exists(forgotten), ~Q(written_by=EXTRACTIVE))
        entries |= pks(rows.filter(derived))
    return entries


def entries_written_by(project: Project, deletions: DeletionSet) -> set[UUID]:
    """Return the entries of which the forgotten user wrote a text by hand, even an earlier one."""
    if deletions.user is None:
        return set()
    name = get_user_model().objects.filter(pk=deletions.user).values("username")
    current = Q(written_by__in=name) & deletions.is_earlier("written_at")
    revisions = Q(revisions__written_by__in=name) & deletions.is_earlier("revisions__written_at")
    return pks(project.entries.filter(current | revisions))


def entries_without_sources(
    project: Project, deletions: DeletionSet, level: set[UUID]
) -> set[UUID]:
    """Return the conversation entries in `level` that have no source message left. Entries of files
    keep their sources.
    """
    remaining = Message.objects.filter(CONTRIBUTING, IN_RANGE, project=project).exclude(
        pk__in=deletions.messages | deletions.unremembered
    )
    return pks(project.entries.filter(~Exists(remaining), pk__in=level, file=None))


def forgotten_blocks(project: Project, scope: ForgetScope) -> set[UUID]:
    """Return the blocks to delete, locked.

    A `user` in `scope` selects that user's own blocks, and shared blocks that only that user wrote.
    `before` selects the blocks whose last change was before that moment.
    """
    rows = project.blocks.all()
    if scope.tombstones:
        return lock(rows.filter(pk__in=scope.tombstones.blocks))
    if scope.names_object or (scope.user is None and scope.before is None):
        return set()
    if scope.user is not None:
        rows = rows.filter(Q(user=scope.user) | Q(user=None, written_by=scope.user))
    if scope.before is not None:
        rows = rows.filter(updated_at__lt=scope.before)
    return lock(rows)


def forgotten_files(project: Project, scope: ForgetScope, sessions: Iterable[UUID]) -> set[UUID]:
    """Find and lock the files to delete: those of `sessions`, and those that `scope` selects."""
    chosen = Q(session__in=sessions) | scope.named_files
    return lock(File.objects.filter(chosen, project=project))


def unfinished_replies(project: Project) -> set[UUID]:
    return pks(Message.objects.filter(project=project, status__in=UNFINISHED))


def exposed_replies(
    project: Project, deletions: DeletionSet, excerpts: set[UUID], unfinished: set[UUID]
) -> set[UUID]:
    """Return the replies that stay and whose receipts name a deleted or changed row: their text may
    be derived from it. `excerpts` are the result of `excerpts_of`.

    A message is named only in receipts of its own session, unless a model read the message with a
    tool. Entries, facts, blocks and excerpts may be in any prompt of the project. The receipt of an
    `unfinished` reply may not be stored yet. Such a reply counts if its prompt may contain such a
    row.
    """
    rows = Message.objects.filter(project=project, role=Role.ASSISTANT, forgotten_at=None)
    memories = deletions.changed_entries | deletions.facts | deletions.blocks
    replies: set[UUID] = set()
    for prompts, ids in (
        (rows.filter(session__in=deletions.touched), deletions.messages),
        (rows.exclude(lookups=[]), deletions.messages),
        (rows, memories | excerpts),
    ):
        replies |= replies_naming(prompts, ids)
        if ids and unfinished:
            replies |= pks(prompts.filter(pk__in=unfinished))
    deleted = Message.objects.filter(
        project=project, session__in=deletions.sessions, pk__in=replies
    )
    return replies - deletions.messages - pks(deleted)


def replies_naming(rows: QuerySet[Message], ids: Iterable[UUID]) -> set[UUID]:
    """Return the replies among `rows` whose receipts name one of `ids`.

    A few ids are found by an index. For more ids, each receipt is read once, which takes 14 µs per
    receipt for any number of ids. Comparing the ids one by one would take 2 µs per id and receipt.
    """
    named = [str(pk) for pk in ids]
    if not named:
        return set()
    condition: RawSQL
    if len(named) <= MAX_INDEXED_IDS:
        is_named = " || ".join(f'@.id == "{pk}"' for pk in named)
        path = f"{RECEIPT_ITEMS} ? ({is_named})"
        condition = RawSQL(f"{RECEIPT} @? %s::jsonpath", [path], BooleanField())
    else:
        items = f"jsonb_path_query({RECEIPT}, '{RECEIPT_ITEMS}.id') item"
        in_ids = f"EXISTS (SELECT FROM {items} WHERE item #>> '{{}}' = ANY (%s))"
        condition = RawSQL(in_ids, [named], BooleanField())
    return pks(rows.filter(condition))


def excerpts_of(project: Project, deletions: DeletionSet) -> set[UUID]:
    """Return the chunks and passages to delete. After the deletion, they cannot be found."""
    rows = Chunk.objects.filter(project=project).exclude(source_type=SourceType.FILE)
    chunks = pks(rows.filter(session__in=deletions.sessions))
    for batch in id_batches(deletions.messages | deletions.unremembered):
        quoted = Message.objects.filter(IN_RANGE, pk__in=batch)
        chunks |= pks(rows.filter(session__in=deletions.touched).filter(Exists(quoted)))
    return chunks | passages_of(project, deletions)


def passages_of(project: Project, deletions: DeletionSet) -> set[UUID]:
    """Return the ids of the passages of deleted files and versions."""
    deleted = Q(revision__document__in=deletions.files) | Q(revision__in=deletions.versions)
    rows = FilePassage.objects.filter(deleted, project=project)
    return pks(rows) if deletions.files or deletions.versions else set()
