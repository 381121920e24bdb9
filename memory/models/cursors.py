"""How far memory has come: with each conversation, and with each project's layers."""

from datetime import datetime, timedelta
from uuid import UUID

from django.db import models
from django.db.models import ExpressionWrapper, F, Q, Value

from chat.models import Session
from chat.models.sessions import SessionStatus
from memory.models.leased import SLACK, Leased, LeasedQuerySet
from projects.models import OfProject, Project

# A conversation that never falls idle is summarised at so many tokens too.
FULL_TOKENS = 4_000


class CursorQuerySet(LeasedQuerySet):
    def waiting(self) -> "CursorQuerySet":
        """Those with something that no entry covers yet, in projects that remember."""
        return self.filter(
            unsummarised_messages__gt=0,
            project__memory_enabled=True,
            project__archived_at=None,
            session__deleted_at=None,
        )

    def due(self, now: datetime) -> "CursorQuerySet":
        """Those to summarise at `now`, that nobody works on."""
        return self.pending(now).unheld()

    def pending(self, now: datetime) -> "CursorQuerySet":
        """Those to summarise at `now`, or being summarised: closed, idle or full, and neither
        backing off, nor over their project's allowance of today.

        `now` decides what is idle; leases, retries and allowances go by the database's clock.
        """
        silence = ExpressionWrapper(
            F("project__idle_minutes") * Value(timedelta(minutes=1)),
            output_field=models.DurationField(),
        )
        idle = Q(session__last_activity_at__lte=Value(now) - silence)
        # As well as what is later than now: it was said before the clock was set back.
        idle |= Q(session__last_activity_at__gt=Value(now) + Value(SLACK))
        full = Q(unsummarised_tokens__gte=FULL_TOKENS)
        closed = Q(session__status=SessionStatus.CLOSED)
        return self.waiting().filter(idle | full | closed).ready().within_allowance()


class Cursor(Leased):
    """Memory's bookkeeping of one session; chat does not know it.

    `summarised_through` is the last `seq` that an entry covers. The counts are those of what is
    not covered yet and would contribute: a cursor whose counts are zero has nothing to do.
    """

    session = models.OneToOneField(
        Session, primary_key=True, on_delete=models.CASCADE, related_name="cursor"
    )
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    summarised_through = models.PositiveIntegerField(default=0)
    unsummarised_messages = models.PositiveIntegerField(default=0)
    unsummarised_tokens = models.PositiveIntegerField(default=0)

    objects = CursorQuerySet.as_manager()

    class Meta:
        indexes = [
            models.Index(
                fields=["project"], name="cursor_waiting", condition=Q(unsummarised_messages__gt=0)
            )
        ]

    @property
    def due_at(self) -> datetime | None:
        """When it will have been idle long enough; None when it is full or closed, and due now."""
        is_full = self.unsummarised_tokens >= FULL_TOKENS
        if is_full or self.session.status == SessionStatus.CLOSED:
            return None
        return self.session.last_activity_at + timedelta(minutes=self.project.idle_minutes)

    def __str__(self) -> str:
        return f"cursor of {self.session_id} at {self.summarised_through}"


class Ladder(Leased):
    """A project's layers as work: one worker at a time rolls, rewrites and fades."""

    project = models.OneToOneField(
        Project, primary_key=True, on_delete=models.CASCADE, related_name="ladder"
    )
    ripe_at = models.DateTimeField(
        null=True, blank=True, help_text="When time alone gives it something to do."
    )

    objects = LeasedQuerySet.as_manager()

    class Meta:
        indexes = [models.Index(fields=["ripe_at"], name="ladder_ripe")]

    def __str__(self) -> str:
        return f"ladder of {self.project_id}"


class Nudge(OfProject):
    """Something changed in a project's layers since they were last looked through.

    Rows are only added, and removed by who has looked, so that no two writers ever wait for each
    other here.
    """

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")

    def __str__(self) -> str:
        return f"nudge of {self.project_id}"


class EntriesChanged(OfProject):
    """Something changed in a project's entries since recall looked through them; as Nudge."""

    id = models.BigAutoField(primary_key=True)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")

    class Meta:
        verbose_name_plural = "entries changed"

    def __str__(self) -> str:
        return f"change of the entries of {self.project_id}"


def nudge(project_id: UUID) -> None:
    """Has the project's layers looked through at the next cycle, and its summaries by recall."""
    Nudge.objects.create(project_id=project_id)
    EntriesChanged.objects.create(project_id=project_id)
