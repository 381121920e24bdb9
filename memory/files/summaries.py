"""Entries of files: a summary of each file, as part of the memory of its project.

A file has at most one entry, which summarises its latest version that was read. Its lines name the
passages that they are based on. The cycle writes it like a conversation entry whose sources have
changed, and digests are written from it like from others.
"""

from collections.abc import Sequence
from datetime import datetime
from uuid import UUID

from django.db import transaction
from django.db.models import Avg
from django.db.models.functions import Length

from chat.models import Session
from memory import leases
from memory.files.passages import HEADING_SEPARATOR, chunk_text, place
from memory.layers import conversations, summarising
from memory.layers.lines import Line, as_text, rank_score
from memory.layers.model_calls import CallRecorder
from memory.layers.periods import Granularity, day_key
from memory.layers.summarising.transcript import TranscriptLine
from memory.leases import Lease
from memory.models import (
    ActivityVerb,
    Entry,
    EntryStatus,
    File,
    FilePassage,
    FileRevision,
    Tombstone,
    TombstoneKind,
)
from memory.models.activity import record_entry_activity
from memory.models.cursors import mark_layers_changed
from memory.models.entries import history_clock
from memory.moderation import entry_operations

# The maximum number of passages that the summariser reads from the beginning of a file, and in
# total. If passages are short, such as turns of a transcript, it reads more, up to the last limits.
FIRST_PASSAGES = 10
MAX_PASSAGES = 40
MAX_SHORT_PASSAGES = 200
MAX_SHORT_CHARS = 16_000
# The maximum length of the first line of an entry: the name of the file, its title and headings.
MAX_OVERVIEW_CHARS = 240


def request(revision: FileRevision) -> None:
    """Schedule the entry of the latest version of a file. Call this in a transaction that has
    locked the file.

    A file gets no entry if its chat is not remembered, or if its entry was forgotten.
    """
    document, project = revision.document, revision.project
    rows = Entry.objects.filter(project=project, file__document=document)
    entry = rows.select_for_update(of=("self",)).first()
    if entry is None:
        session = document.session
        forgotten = Tombstone.objects.filter(
            project=project, kind=TombstoneKind.UNKEPT, subject=str(document.pk)
        )
        if (session is not None and not session.remembered) or forgotten.exists():
            return
        Entry.objects.create(
            project=project,
            file=revision,
            session=session,
            granularity=Granularity.CONVERSATION,
            zone=project.timezone,
            period_key=day_key(revision.created_at, project.zone),
            tokens=0,
            message_count=0,
            first_source_at=revision.created_at,
            last_source_at=revision.created_at,
            state=EntryStatus.STALE,
            withheld=True,
        )
        mark_layers_changed(project.pk)
    elif entry.file_id != revision.pk:
        entry.file, entry.last_source_at = revision, revision.created_at
        entry.save(update_fields=["file", "last_source_at"])
        entry_operations.schedule_rewrite(entry)


def rewrite(entry_id: UUID, now: datetime) -> Entry | None:
    """Write a stale entry of a file from the current version.

    Returns None if nothing was written: the entry is not stale, its version is leased or waits for
    a retry, or the summariser failed.
    """
    entry = Entry.objects.filter(pk=entry_id, state=EntryStatus.STALE).first()
    if entry is None or entry.file_id is None:
        return None

    def work(lease: Lease) -> Entry | None:
        versions = FileRevision.objects.filter(project=lease.project)
        revision = versions.select_related("document", "project").get(pk=lease.pk)
        calls = CallRecorder(lease, revision.project_id, revision.document.session_id)
        # The sources of a restored chat have not changed.
        is_written = entry.summary and entry.sources_hash == str(revision.pk)
        written = None if is_written else summarise(revision, calls)
        return _commit(lease, revision, entry_id, written, calls, now)

    rows = FileRevision.objects.ready().filter(project=entry.project_id)
    return leases.run(rows, entry.file_id, "file", work)


def summarise(revision: FileRevision, calls: CallRecorder) -> tuple[list[Line], str]:
    """Return the summary of a version and the name of the summariser. The first line is about the
    file, the others are about its text.
    """
    project, document = revision.project, revision.document
    rows = FilePassage.objects.filter(project=project, revision=revision)
    mean_chars = rows.aggregate(chars=Avg(Length("text")))["chars"]
    numbers = sample(revision.passage_count, mean_chars)
    passages = list(rows.filter(number__in=numbers).order_by("number"))
    at = revision.created_at.astimezone(project.zone)
    lines = [
        TranscriptLine(
            place(document.name, passage.label),
            chunk_text(passage.headings, passage.text),
            at,
            id=passage.pk,
            is_file=True,
        )
        for passage in passages
    ]
    text, first = overview(revision, passages), passages[0].pk
    about = Line(text, at.date(), sources=(first,), score=rank_score(0))
    summariser = summarising.get_summariser(project)
    found = summariser.conversation(lines, text, calls)
    return [about, *found.lines], summariser.name


def sample(passage_count: int, mean_chars: float) -> list[int]:
    """Return the numbers of the passages that the summariser reads: the first ones, and others at
    equal distances.
    """
    short = min(MAX_SHORT_PASSAGES, int(MAX_SHORT_CHARS / max(mean_chars, 1)))
    first = min(passage_count, FIRST_PASSAGES)
    further, rest = max(MAX_PASSAGES, short) - FIRST_PASSAGES, passage_count - first
    step = max(1, -(-rest // further))
    return [*range(1, first + 1), *range(first + 1, passage_count + 1, step)]


def overview(revision: FileRevision, passages: Sequence[FilePassage]) -> str:
    """Return the name, title, number of pages and headings of a file in one line."""
    name, title = revision.document.name, revision.title
    paths = (passage.headings.split(HEADING_SEPARATOR) for passage in passages)
    headings = dict.fromkeys(heading for path in paths for heading in path if heading != title)
    parts = [
        f"{name} ({revision.page_count} pages)" if revision.page_count > 1 else name,
        title,
        "; ".join(filter(None, headings)),
    ]
    text = " – ".join(filter(None, parts))
    return text if len(text) <= MAX_OVERVIEW_CHARS else f"{text[: MAX_OVERVIEW_CHARS - 1]}…"


@transaction.atomic
def _commit(
    lease: Lease,
    revision: FileRevision,
    entry_id: UUID,
    written: tuple[list[Line], str] | None,
    calls: CallRecorder,
    now: datetime,
) -> Entry | None:
    """Store the `written` lines, or with None keep the current text. Return the entry, or None if
    it or its version changed meanwhile.
    """
    project, document = revision.project, revision.document
    # In the order in which forgetting locks them.
    sessions = Session.objects.filter(project=project, files=document)
    session = sessions.select_for_update(no_key=True, of=("self",)).first()
    list(File.objects.select_for_update().filter(project=project, pk=document.pk).values_list("pk"))
    lease.fence()
    rows = Entry.objects.select_for_update(of=("self",)).select_related("parent", "session")
    rows = rows.filter(project=project, pk=entry_id, file=revision, state=EntryStatus.STALE)
    entry = rows.first()
    lease.release()
    if entry is None or (session is not None and session.deleted_at is not None):
        return None
    if written is None:
        if entry.sources_hash != str(revision.pk):
            # Its text was erased meanwhile.
            return None
        conversations.store_reinstated(entry, now)
        return entry
    with history_clock(now):
        if entry.withheld:
            entry_operations.withhold(Entry.objects.parents_of([project.pk], [entry.pk]))
        else:
            entry_operations.schedule_rewrite(entry.parent)
    found, by = written
    # The first line quotes the name and the headings, even if a model wrote the others.
    text = as_text(found)
    reason = conversations.review_reason(project, session, text, True, entry.waits_because)
    sources, is_new = str(revision.pk), not entry.summary
    verb = conversations.store_rewritten(entry, found, by, reason, sources, now)
    if is_new and verb == ActivityVerb.REWRITTEN:
        verb = ActivityVerb.SUMMARISED
    mark_layers_changed(project.pk)
    details = {"session_id": entry.session_id, "reason": entry.waits_because}
    record_entry_activity(entry, verb, **details, **calls.totals())
    return entry
