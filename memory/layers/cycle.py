"""What is due, in one query; and the loop that does it, behind the beat and the command."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from django.db.models import CharField, Exists, OuterRef, Q, QuerySet, Value

from chat.compiled import Replanned
from memory.layers import conversations, digests
from memory.models import Cursor, Entry, Ladder, Nudge, State
from memory.models.cursors import CursorQuerySet
from memory.models.entries import CONVERSATION
from projects.models import Project

# One cycle starts at most so much work of each kind; the next minute's takes up the rest.
FAN_OUT = 500


@dataclass
class Due:
    """Sessions to summarise, the longest idle first; conversation entries to write anew, the
    oldest first; projects whose layers are to be looked through.
    """

    sessions: list[UUID] = field(default_factory=list)
    entries: list[UUID] = field(default_factory=list)
    projects: list[UUID] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.sessions or self.entries or self.projects)


def due(now: datetime, project: Project | None = None) -> Due:
    """Everything that is due at `now`, in all projects or in one; at most FAN_OUT of each kind.

    One query, whose cost grows with what is due, not with what there is.
    """
    rows = _due(now) if project is None else _due_in_one(now, project.pk)
    found = Due()
    for kind, pk in rows:
        getattr(found, kind).append(pk)
    return found


def may_settle(project_id: UUID, now: datetime) -> bool:
    """Whether the project's layers are due at `now`, as `due` would find."""
    return _ladders(now, project_id).filter(pk=project_id).exists()


def _all(now: datetime, project: UUID | None = None) -> QuerySet:
    first, *others = (_some(kind, now, project) for kind in _FINDS)
    return first.union(*others, all=True)


def _some(kind: str, now: datetime, project: UUID | None) -> QuerySet:
    rows = _FINDS[kind](now)
    if project is not None:
        rows = rows.filter(**{"pk" if kind == "projects" else "project": project})
    return rows.annotate(kind=Value(kind, CharField())).values_list("kind", "pk")[:FAN_OUT]


def _rewrites(cursors: CursorQuerySet) -> QuerySet[Entry]:
    """Conversation entries, of the sessions of `cursors`, whose sources changed."""
    cursors = cursors.ready().within_allowance()
    return Entry.objects.filter(
        Exists(cursors.filter(project=OuterRef("project"), session=OuterRef("session"))),
        state=State.STALE,
        granularity=CONVERSATION,
        project__memory_enabled=True,
        project__archived_at=None,
        session__deleted_at=None,
    )


def _ladders(now: datetime, project: UUID | None = None) -> QuerySet[Project]:
    """Projects in which something changed, or grew old, since their layers were looked through, and
    those in which that failed. Where only one is asked about, it may be given.

    Not as long as conversations of theirs are to be written, or being written: a digest would only
    have to be written again, and what is rolled would hang on who comes first.
    """
    ladders, nudges = Ladder.objects.all(), Nudge.objects.all()
    if project is not None:
        ladders, nudges = ladders.filter(pk=project), nudges.filter(project=project)
    waiting = ladders.unheld().ready().within_allowance()
    changed = Q(pk__in=nudges.values("project"))
    ripe = Q(pk__in=ladders.filter(Q(ripe_at__lte=now) | Q(failures__gt=0)).values("pk"))
    # A project that nobody has looked through yet has no ladder.
    free = Q(ladder=None) | Q(pk__in=waiting.values("pk"))
    return Project.objects.filter(
        changed | ripe,
        free,
        ~Exists(Cursor.objects.pending(now).filter(project=OuterRef("pk"))),
        ~Exists(_rewrites(Cursor.objects.all()).filter(project=OuterRef("pk"))),
        memory_enabled=True,
        archived_at=None,
    )


# By kind, as `Due` has them.
_FINDS: Mapping[str, Callable[[datetime], QuerySet]] = {
    "sessions": lambda now: Cursor.objects.due(now).order_by("session__last_activity_at"),
    "entries": lambda now: _rewrites(Cursor.objects.unheld()).order_by("pk"),
    "projects": lambda now: _ladders(now).order_by("pk"),
}


_due = Replanned(_all, datetime)
_due_in_one = Replanned(_all, datetime, UUID)


@dataclass
class Report:
    """What one cycle did."""

    summarised: int = 0
    rewritten: int = 0
    settled: int = 0
    failed: int = 0


def run(
    now: datetime,
    project: Project | None = None,
    progress: Callable[[Report], None] = lambda report: None,
) -> Report:
    """One whole cycle in the foreground, as the beat would run it at `now`."""
    report = Report()
    found = due(now, project)
    while found.sessions:
        written = 0
        for session_id in found.sessions:
            entry = conversations.summarise(session_id, now)
            written += entry is not None
            report.failed += entry is None
            progress(report)
        report.summarised += written
        found = due(now, project)
        if not written:
            break
    for entry_id in found.entries:
        report.rewritten += conversations.rewrite(entry_id, now) is not None
        progress(report)
    if found.entries:
        found = due(now, project)
    for project_id in found.projects:
        report.settled += digests.settle(project_id, now)
        progress(report)
    return report
