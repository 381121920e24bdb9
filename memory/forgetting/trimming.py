"""Remove from entries the lines that cite or expose forgotten texts, and keep the others.

This is possible only if every line of the entry names its messages. Other entries are withheld as a
whole until they are rewritten.
"""

from collections.abc import Collection, Iterable, Iterator
from functools import cached_property, lru_cache
from uuid import UUID

from django.db.models import Q

from chat.models import Message
from memory.forgetting.scope import DeletionSet, Trim
from memory.layers import entry_text, lines
from memory.layers.bank import item_tokens
from memory.layers.coverage import active_path
from memory.layers.entities import TextIndex, find_entities
from memory.layers.lines import Line
from memory.models import EntryRevision, EntryState, FilePassage
from memory.moderation import entry_operations
from projects.models import Project

# The maximum number of forgotten texts that are compared with the lines that a model wrote. If
# there are more, entries with such lines are withheld as a whole.
MAX_COMPARED_MESSAGES = 200


def find_trims(project: Project, deletions: DeletionSet, ids: Collection[UUID]) -> list[Trim]:
    """Return the entries among `ids` that can lose single lines and keep at least one."""
    rows = (
        project.entries.filter(pk__in=ids, withheld=False, note="")
        .exclude(lines=[])
        .select_related("session")
    )
    entries = {entry: lines.from_json(entry.lines) for entry in rows.order_by("pk")}
    sources = {source for found in entries.values() for line in found for source in line.sources}
    forgotten = _forgotten(project, deletions, sources)
    comparison = _Comparison(project, deletions)
    trims = []
    for entry, found in entries.items():
        lost = [line for line in found if not forgotten.isdisjoint(line.sources)]
        kept = [line for line in found if line not in lost]
        of_model = [line for line in kept if not line.speaker]
        if of_model:
            if comparison.forgotten is None:
                continue
            lost += (exposing := comparison.exposing(of_model))
            kept = [line for line in kept if line not in exposing]
        if kept and all(line.sources for line in found):
            trims.append(Trim(entry, lost, kept))
    return trims


def _forgotten(project: Project, deletions: DeletionSet, sources: Collection[UUID]) -> set[UUID]:
    """Return those of `sources` that are forgotten: messages, and passages of files whose entries
    or versions are deleted.
    """
    forgotten = (deletions.messages | deletions.unremembered) & set(sources)
    if deletions.sessions:
        messages = Message.objects.filter(project=project, session__in=deletions.sessions)
        forgotten |= set(messages.filter(pk__in=sources).values_list("pk", flat=True))
    if deletions.summarised_files or deletions.versions:
        of_entries = Q(revision__document__in=deletions.summarised_files)
        passages = FilePassage.objects.filter(
            of_entries | Q(revision__in=deletions.versions), project=project
        )
        forgotten |= set(passages.filter(pk__in=sources).values_list("pk", flat=True))
    return forgotten


class _Comparison:
    """Finds lines of a model that contain particulars (names, dates, numbers) of the forgotten
    text.

    A line may contain more than the messages that it names as sources, because the model reads the
    whole conversation. Forgotten texts are messages and the entries of files, because digests are
    written from these entries and not from the files.
    """

    def __init__(self, project: Project, deletions: DeletionSet) -> None:
        self.project = project
        self._deletions = deletions

    @cached_property
    def forgotten(self) -> list[TextIndex] | None:
        """The forgotten texts. None if they are more than MAX_COMPARED_MESSAGES."""
        deletions = self._deletions
        ids = deletions.messages | deletions.unremembered
        rows = Message.objects.filter(
            Q(pk__in=list(ids)[: MAX_COMPARED_MESSAGES + 1]) | Q(session__in=deletions.sessions),
            project=self.project,
        )
        texts = list(rows.values_list("text", flat=True)[: MAX_COMPARED_MESSAGES + 1])
        files = deletions.summarised_files | deletions.changed_files
        of_files = self.project.entries.filter(file__document__in=files)
        earlier = EntryRevision.objects.filter(
            project=self.project, entry__in=of_files.values("pk")
        )
        texts += [*of_files.values_list("summary", flat=True)]
        texts += [*earlier.values_list("summary", flat=True)]
        return None if len(texts) > MAX_COMPARED_MESSAGES else [*map(TextIndex, texts)]

    def exposing(self, found: Iterable[Line]) -> list[Line]:
        """Return the lines with a particular of the forgotten texts that their own sources lack."""
        exposing = []
        for line in found:
            suspicious = [
                particular
                for particular in find_entities(line.text)
                if any(particular in text for text in self.forgotten or ())
            ]
            if suspicious:
                own = TextIndex("\n".join(self._own_texts(line)))
                if not all(particular in own for particular in suspicious):
                    exposing.append(line)
        return exposing

    def _own_texts(self, line: Line) -> Iterator[str]:
        for model in (Message, FilePassage):
            rows = model.objects.filter(project=self.project, pk__in=line.sources)
            yield from rows.values_list("text", flat=True)


def remove_lines(project: Project, deletions: DeletionSet) -> int:
    """Remove the lost lines from the entries and their revisions. Return the number of lines that
    the entries lost.

    The other lines stay unchanged. If a lost line is based on several messages, some of them may
    remain. Then the entry is scheduled for a rewrite.
    """
    removed = 0
    trims = list(deletions.trims.values())
    _trim_revisions(project, deletions)
    for trim in trims:
        if trim.lost:
            removed += len(trim.lost)
            _remove(trim)
    # Children before the digests above them. The path of each chat is read once.
    trimmed = [trim.entry for trim in trims]
    read_path = lru_cache(maxsize=1)(active_path)
    for entry in sorted(trimmed, key=lambda it: (it.layer.depth, str(it.session_id))):
        entry_text.set_losses(entry, read_path)
        entry.save(update_fields=["losses", "particulars"])
    return removed


def _remove(trim: Trim) -> None:
    entry, revision = trim.entry, trim.entry.revision
    entry.set_lines(trim.kept)
    entry.revision += 1
    entry.tokens = item_tokens(entry.as_item())
    entry.save(update_fields=["summary", "lines", "revision", "tokens"])
    # Logged states of the old revision now refer to the new one, because the old text is gone.
    states = EntryState.objects.filter(project=entry.project_id, entry=entry)
    states.filter(revision=revision).update(revision=entry.revision)
    if trim.needs_rewrite:
        entry_operations.mark_stale(entry)


def _trim_revisions(project: Project, deletions: DeletionSet) -> None:
    """Remove forgotten quotations from earlier revisions. Delete a revision unless all its lines
    are quotations with sources and some remain.
    """
    rows = EntryRevision.objects.filter(project=project, entry__in=list(deletions.trims))
    earlier = {row: lines.from_json(row.lines) for row in rows}
    sources = {source for found in earlier.values() for line in found for source in line.sources}
    forgotten = _forgotten(project, deletions, sources)
    for row, found in earlier.items():
        kept = [line for line in found if forgotten.isdisjoint(line.sources)]
        if not kept or not all(line.speaker and line.sources for line in found):
            row.delete()
        elif len(kept) < len(found):
            row.lines, row.summary = lines.to_json(kept), lines.as_text(kept)
            row.save(update_fields=["lines", "summary"])
