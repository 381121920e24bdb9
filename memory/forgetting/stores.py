"""Where people's words stand, and how they go from there.

Whoever adds a column that may hold such words adds it here; a test finds what is missing.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from uuid import UUID

from django.db.models import F, Model, Q, QuerySet
from django.db.models.functions import Coalesce, Now

from chat.importers.sources import mark_of
from chat.models import (
    Attachment,
    FileRemoval,
    Import,
    Message,
    MessageRevision,
    Reaction,
    Role,
    Session,
    Status,
)
from chat.models.messages import UNFINISHED
from chat.titles import title_from
from memory.forgetting import facts
from memory.forgetting.found import Found
from memory.layers import texts
from memory.layers.coverage import recount
from memory.models import (
    Activity,
    Block,
    Call,
    Chunk,
    Cursor,
    Delivery,
    Entry,
    EntryRevision,
    EntryState,
    Fact,
    IndexCursor,
    Ladder,
    RenderedBank,
    SourceType,
    State,
    Tombstone,
    Vector,
    Webhook,
)
from memory.models.cursors import nudge
from memory.recall import indexing
from projects.models import Bucket, IdempotencyKey, Invitation, Project, Token

AT_ONCE = 5_000


@dataclass(frozen=True)
class Store:
    """`texts` are the columns, by model, that `remove` empties; it returns how many things went."""

    name: str
    texts: dict[type[Model], tuple[str, ...]]
    remove: Callable[[Project, Found], int]


def _attachments(project: Project, found: Found) -> int:
    return sum(_deleted(rows) for rows in _of_messages(Attachment, found)) + _deleted(
        Attachment.objects.filter(Q(session__in=found.sessions) | _unsent_by(found))
    )


def _unsent_by(found: Found) -> Q:
    return Q(message=None, uploaded_by=found.user) if found.user else Q(pk__in=())


def _revisions(project: Project, found: Found) -> int:
    return sum(_deleted(rows) for rows in _of_messages(MessageRevision, found))


def _reactions(project: Project, found: Found) -> int:
    by_them = Reaction.objects.filter(project=project, user=found.user)
    given = _deleted(by_them) if found.user else 0
    return given + sum(_deleted(rows) for rows in _of_messages(Reaction, found))


def _of_messages(model, found: Found) -> Iterable[QuerySet]:
    return (model.objects.filter(message__in=some) for some in _batches(found.messages))


def _batches(ids: Iterable[UUID]) -> Iterable[list[UUID]]:
    ordered = sorted(ids)
    return (ordered[start : start + AT_ONCE] for start in range(0, len(ordered), AT_ONCE))


def _deleted(rows: QuerySet) -> int:
    return rows.delete()[1].get(rows.model._meta.label, 0)


def _messages(project: Project, found: Found) -> int:
    """Empties them. Their places stay, so that what follows still follows something."""
    for some in _batches(found.messages):
        rows = Message.objects.filter(project=project, pk__in=some)
        named = list(
            rows.exclude(source_key=None)
            .select_related("session")
            .only("source_key", "session__source_key")
        )
        for message in named:
            message.source_key = mark_of(message.session.source_key or "", message.source_key or "")
        Message.objects.bulk_update(named, ["source_key"], batch_size=500)
        # One that is still being said ends here: its process finds it final and keeps nothing.
        rows.filter(status__in=UNFINISHED).update(status=Status.STOPPED, stop_requested=True)
        rows.update(
            text="",
            tokens=0,
            author=None,
            author_name="",
            error="",
            tool_calls=[],
            tool_call_id="",
            receipt={},
            copied_from=None,
            deleted_at=Coalesce("deleted_at", Now()),
            forgotten_at=Now(),
            version=F("version") + 1,
        )
    for some in _batches(found.unremembered):
        Message.objects.filter(project=project, pk__in=some).update(remembered=False)
    return len(found.messages)


def _titles(project: Project, found: Found) -> int:
    """Titles that nobody chose were made of what was said: they are made anew, of what is left."""
    changed = 0
    for session in Session.objects.filter(pk__in=found.touched):
        session.version += 1
        if not session.title_by_hand and _lost_words(session, found):
            asked = session.messages.filter(role=Role.USER, deleted_at=None).exclude(text="")
            first = asked.order_by("seq").values_list("text", flat=True).first()
            title = title_from(first or "")
            changed += title != session.title
            session.title = title
        session.save(update_fields=["title", "version"])
    return changed


def _lost_words(session: Session, found: Found) -> bool:
    return session.messages.filter(pk__in=found.messages).exists()


def _entries(project: Project, found: Found) -> int:
    """Those made only of it go; the others are empty until they are written anew."""
    for session in Session.objects.filter(pk__in=found.touched):
        cursor = Cursor.objects.filter(pk=session.pk).first()
        if cursor is not None:
            recount(session, cursor.summarised_through)
    texts.blank([project.pk], found.withheld)
    withheld = Entry.objects.filter(project=project, pk__in=found.withheld)
    withheld.exclude(state=State.HIDDEN).update(state=State.STALE)
    nudge(project.pk)
    gone = _deleted(Entry.objects.filter(pk__in=found.entries))
    # A child that loses its digest in the same breath has that noted before it goes itself.
    EntryState.objects.filter(project=project, entry__in=found.entries).delete()
    return gone


def _entry_revisions(project: Project, found: Found) -> int:
    """Before the entries, whose earlier texts they are."""
    return _deleted(EntryRevision.objects.filter(entry__in=found.entries | found.withheld))


def _chunks(project: Project, found: Found) -> int:
    """What recall would quote. What is left of a session is indexed again."""
    gone = _deleted(Chunk.objects.filter(project=project, session__in=found.sessions))
    told = Chunk.objects.filter(project=project, source_type=SourceType.ENTRY)
    gone += _deleted(told.filter(source__in=found.entries | found.withheld))
    lost: dict[UUID, list[int]] = defaultdict(list)
    for some in _batches(found.messages | found.unremembered):
        rows = Message.objects.filter(project=project, pk__in=some, session__in=found.touched)
        for session_id, seq in rows.values_list("session", "seq"):
            lost[session_id].append(seq)
    for session in Session.objects.filter(pk__in=lost):
        gone += indexing.withdraw(session, lost[session.pk])
        indexing.mark(session, min(lost[session.pk]))
    return gone


def _sessions(project: Project, found: Found) -> int:
    """Last: what is left of them goes along."""
    return _deleted(Session.objects.filter(pk__in=found.sessions))


def _imports(project: Project, found: Found) -> int:
    """One that is at work ends with its next message."""
    return _deleted(Import.objects.filter(project=project, pk__in=found.uploads))


def _blocks(project: Project, found: Found) -> int:
    return _deleted(Block.objects.filter(project=project, pk__in=found.blocks))


def _bank(project: Project, found: Found) -> int:
    """The rendered text is rendered again when somebody asks; its version goes on rising."""
    rows = RenderedBank.objects.filter(project=project)
    return rows.update(text="", fingerprint="", tokens=0, included=[], left_out=[])


# In the order in which they are emptied.
STORES = (
    # Before the messages and entries that tell them.
    Store(
        "facts",
        {Fact: ("subject", "predicate", "object", "subject_key", "predicate_key")},
        facts.remove,
    ),
    Store("attachments", {Attachment: ("name", "description", "file")}, _attachments),
    Store("revisions", {MessageRevision: ("text",)}, _revisions),
    Store("reactions", {Reaction: ("emoji",)}, _reactions),
    Store(
        "messages",
        {
            Message: (
                *("text", "author_name", "error", "receipt", "source_key"),
                *("tool_calls", "tool_call_id"),
            )
        },
        _messages,
    ),
    Store("titles", {}, _titles),
    Store("entry_revisions", {EntryRevision: ("summary",)}, _entry_revisions),
    Store("entries", {Entry: ("summary", "note", "losses")}, _entries),
    Store("chunks", {Chunk: ("speaker", "text", "pieces", "terms")}, _chunks),
    Store("blocks", {Block: ("name", "content")}, _blocks),
    Store("sessions", {Session: ("title", "source_key")}, _sessions),
    Store("imports", {}, _imports),
    Store("rendered_bank", {RenderedBank: ("text", "included", "left_out")}, _bank),
)
# Columns of text that nothing said in a conversation gets into, by model: names, settings, digests,
# and what Strata says in words of its own.
NOT_SAID: dict[type[Model], tuple[str, ...]] = {
    Project: (
        "name",
        "slug",
        "instructions",
        "chat_model",
        "system_model",
        "timezone",
        "search_language",
    ),
    Token: ("digest", "token_key", "name", "scopes"),
    # Digests and ids; a name with a number.
    IdempotencyKey: ("key", "request", "made"),
    Bucket: ("subject",),
    Invitation: ("digest",),
    Message: ("model",),
    Attachment: ("media_type", "sha256"),
    # The file itself is gone as soon as the import is over.
    Import: ("name", "format", "file", "errors"),
    # Ids, and the name of a class.
    FileRemoval: ("path", "last_error"),
    Activity: (
        *("granularity", "period_key", "related", "reason", "receipt"),
        *("role_before", "role_after"),
    ),
    RenderedBank: ("text_hash", "fingerprint"),
    Call: ("model", "outcome"),
    Chunk: ("language",),
    # Numbers that whoever knows a word can compute, and nobody can read.
    Vector: ("embedder",),
    IndexCursor: ("last_error",),
    Cursor: ("last_error",),
    Ladder: ("last_error",),
    Entry: ("period_key", "zone", "sources_hash", "written_by"),
    EntryRevision: ("written_by",),
    EntryState: ("state",),
    # A digest, which whoever knows the words can compute, and nobody can read.
    Fact: ("topic", "written_by"),
    Tombstone: ("subject",),
    # Addresses that owners wrote down, and what Strata says of them.
    Webhook: ("url", "salt", "previous_salt", "last_error"),
    # Ids and numbers.
    Delivery: ("data", "error"),
}
