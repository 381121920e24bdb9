"""The memory cycle: finds all due work with one query. It can also run in the foreground."""

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, Value

from memory.files import summaries
from memory.layers import conversations, digests
from memory.models import Cursor, Entry, EntryStatus, FileRevision, Ladder, Nudge
from memory.models.entries import CONVERSATION
from projects.models import Project

# The maximum number of tasks of each kind that one cycle starts. The next cycle, a minute later,
# starts the remaining tasks.
MAX_DUE = 500


@dataclass
class DueWork:
    """The due work: sessions to summarise, stale entries of conversations and files, and projects
    whose layers need an update, all by id.

    The sessions that have been idle longest and the oldest entries come first.
    """

    sessions: list[UUID] = field(default_factory=list)
    entries: list[UUID] = field(default_factory=list)
    projects: list[UUID] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.sessions or self.entries or self.projects)


def due(now: datetime, project: Project | None = None) -> DueWork:
    """Return the work that is due at `now`, in one project or in all; at most `MAX_DUE` ids of each
    kind.

    This is one query. Its cost depends on the amount of due work, not on the size of the database.
    """
    kinds: dict[str, QuerySet] = {
        "sessions": Cursor.objects.due(now).order_by("session__last_activity_at"),
        "entries": stale_entries(with_leased=False).order_by("pk"),
        "projects": projects_with_due_layers(now).order_by("pk"),
    }
    if project is not None:
        kinds["sessions"] = kinds["sessions"].filter(project=project)
        kinds["entries"] = kinds["entries"].filter(project=project)
        kinds["projects"] = kinds["projects"].filter(pk=project.pk)
    first, *others = (
        rows.annotate(kind=Value(kind, CharField())).values_list("kind", "pk")[:MAX_DUE]
        for kind, rows in kinds.items()
    )
    work = DueWork()
    for kind, pk in first.union(*others, all=True):
        getattr(work, kind).append(pk)
    return work


def layers_are_due(project_id: UUID, now: datetime) -> bool:
    """Return whether the layers of one project are due at `now`."""
    return projects_with_due_layers(now, project_id).filter(pk=project_id).exists()


def stale_entries(with_leased: bool = True) -> QuerySet[Entry]:
    """Return the stale entries of conversations and files, without those that wait for a retry or
    for the allowance of the next day. By default, entries that a worker is rewriting are included.
    """
    cursors = Cursor.objects.ready().within_allowance()
    versions = FileRevision.objects.ready().within_allowance()
    if not with_leased:
        cursors, versions = cursors.unleased(), versions.unleased()
    return Entry.objects.filter(
        Exists(versions.filter(project=OuterRef("project"), pk=OuterRef("file")))
        | Q(
            Exists(cursors.filter(project=OuterRef("project"), session=OuterRef("session"))),
            file=None,
        ),
        state=EntryStatus.STALE,
        granularity=CONVERSATION,
        project__memory_enabled=True,
        project__archived_at=None,
        session__deleted_at=None,
    )


def projects_with_due_layers(now: datetime, project: UUID | None = None) -> QuerySet[Project]:
    """Return the projects whose layers need an update: an entry changed or became old enough, or
    the last update failed. With `project`, only that project is queried, which is cheaper.

    A project is left out while its conversations are due or being summarised. Otherwise digests
    would be written twice, and the result would depend on the order of the workers.
    """
    ladders, nudges = Ladder.objects.all(), Nudge.objects.all()
    if project is not None:
        ladders, nudges = ladders.filter(pk=project), nudges.filter(project=project)
    free = ladders.unleased().ready().within_allowance()
    ripe = ladders.filter(Q(ripe_at__lte=now) | Q(failures__gt=0))
    return Project.objects.filter(
        Q(pk__in=nudges.values("project")) | Q(pk__in=ripe.values("pk")),
        # Without a ladder, the layers have never been updated.
        Q(ladder=None) | Q(pk__in=free.values("pk")),
        ~Exists(Cursor.objects.pending(now).filter(project=OuterRef("pk"))),
        ~Exists(stale_entries().filter(project=OuterRef("pk"))),
        memory_enabled=True,
        archived_at=None,
    )


def rewrite(entry_id: UUID, now: datetime) -> Entry | None:
    """Rewrite a stale entry of a conversation or of a file. Return None if it was neither rewritten
    nor restored.
    """
    return summaries.rewrite(entry_id, now) or conversations.rewrite(entry_id, now)


@dataclass
class CycleReport:
    """The numbers of entries and projects that a cycle in the foreground changed, and of the
    sessions that it did not summarise.
    """

    summarised: int = 0
    rewritten: int = 0
    rolled_up: int = 0
    skipped: int = 0


def run(
    now: datetime,
    project: Project | None = None,
    progress: Callable[[CycleReport], None] = lambda report: None,
) -> CycleReport:
    """Run one complete cycle in the foreground, with the work that is due at `now`."""
    report = CycleReport()
    work = due(now, project)
    while work.sessions:
        before = report.summarised
        for session_id in work.sessions:
            if conversations.summarise(session_id, now):
                report.summarised += 1
            else:
                report.skipped += 1
            progress(report)
        work = due(now, project)
        if report.summarised == before:
            break
    for entry_id in work.entries:
        report.rewritten += rewrite(entry_id, now) is not None
        progress(report)
    if work.entries:
        work = due(now, project)
    for project_id in work.projects:
        report.rolled_up += digests.update_layers(project_id, now)
        progress(report)
    return report
