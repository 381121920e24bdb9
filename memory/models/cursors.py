"""The progress of memory per session (`Cursor`) and per project (`Ladder`), and the stored bank."""

from datetime import datetime
from uuid import UUID

from django.db import models
from django.db.models import Q
from django.utils.translation import gettext_lazy as _

from chat.models import Session
from memory.models import idle
from memory.models.leased import LeasedModel, LeasedQuerySet
from projects.models import Project, ProjectScopedModel
from projects.models.keys import parent_primary_key, project_key


class CursorQuerySet(LeasedQuerySet):
    def waiting(self) -> "CursorQuerySet":
        """Return cursors with messages that no entry covers, in projects that remember.

        Deleted sessions and archived projects are left out.
        """
        return self.filter(
            unsummarised_messages__gt=0,
            project__memory_enabled=True,
            project__archived_at=None,
            session__deleted_at=None,
        )

    def due(self, now: datetime) -> "CursorQuerySet":
        """Return the pending cursors that are not leased by a worker."""
        return self.pending(now).unleased()

    def pending(self, now: datetime) -> "CursorQuerySet":
        """Return the cursors whose session needs a summary at `now`, including leased ones.

        The session is closed, idle or full. Cursors that wait for a retry after a failure, and
        cursors of projects whose token allowance for today is used up, are left out. `now`
        determines which sessions are idle; leases, retries and allowances use the database clock.
        """
        return self.waiting().filter(idle.due_condition(now)).ready().within_allowance()


class Cursor(LeasedModel):
    """The progress of summarising one session.

    `summarised_through` is the last `seq` that an entry covers. The counts are those of later
    messages that contribute to a summary.
    """

    session = parent_primary_key(Session, _("chat"), "cursor")
    project = project_key()
    summarised_through = models.PositiveIntegerField(_("summarised up to message"), default=0)
    unsummarised_messages = models.PositiveIntegerField(_("messages without summary"), default=0)
    unsummarised_tokens = models.PositiveIntegerField(_("tokens without summary"), default=0)

    objects = CursorQuerySet.as_manager()

    class Meta:
        verbose_name = _("summary progress")
        verbose_name_plural = _("summary progress")
        indexes = [
            models.Index(
                fields=["project"], name="cursor_waiting", condition=Q(unsummarised_messages__gt=0)
            )
        ]

    @property
    def due_at(self) -> datetime | None:
        """Return the result of `idle.due_at`. The time is in the past if the session is idle."""
        return idle.due_at(self.session, self.project, self.unsummarised_tokens)

    def __str__(self) -> str:
        return f"cursor of {self.session_id} at {self.summarised_through}"


class Ladder(LeasedModel):
    """The state of the layers of a project. Its lease lets only one worker roll up and rewrite."""

    project = parent_primary_key(Project, _("project"), "ladder")
    ripe_at = models.DateTimeField(
        _("next merge"),
        null=True,
        blank=True,
        help_text=_("The next time at which entries are old enough to roll up."),
    )

    objects = LeasedQuerySet.as_manager()

    class Meta:
        verbose_name = _("layer progress")
        verbose_name_plural = _("layer progress")
        indexes = [models.Index(fields=["ripe_at"], name="ladder_ripe")]

    def __str__(self) -> str:
        return f"ladder of {self.project_id}"


class Nudge(ProjectScopedModel):
    """Marks that a project's layers have changed since they were last updated.

    Writers only insert rows, and only the worker deletes them. Therefore writers never wait for
    each other.
    """

    id = models.BigAutoField(primary_key=True)
    project = project_key()

    class Meta:
        verbose_name = _("pending layer update")
        verbose_name_plural = _("pending layer updates")

    def __str__(self) -> str:
        return f"nudge of {self.project_id}"


class EntriesChanged(ProjectScopedModel):
    """Marks that a project's entries or facts have changed since recall last indexed them."""

    id = models.BigAutoField(primary_key=True)
    project = project_key()

    class Meta:
        verbose_name = _("pending index update")
        verbose_name_plural = _("pending index updates")

    def __str__(self) -> str:
        return f"change of the entries of {self.project_id}"


def mark_layers_changed(project_id: UUID) -> None:
    """Schedule an update of the project's layers in the next cycle, and of recall's index."""
    Nudge.objects.create(project_id=project_id)
    EntriesChanged.objects.create(project_id=project_id)


class RenderedBank(ProjectScopedModel):
    """The rendered bank of a project.

    `version` increases only when the text changes. The text is used only while `fingerprint`
    matches the project's entries, facts and settings.
    """

    project = parent_primary_key(Project, _("project"), "rendered_bank")
    version = models.PositiveIntegerField(_("version"), default=0)
    text_hash = models.CharField(_("hash of the text"), max_length=64, blank=True)
    fingerprint = models.CharField(_("fingerprint"), max_length=64, blank=True)
    text = models.TextField(_("text"), blank=True)
    tokens = models.PositiveIntegerField(_("tokens"), default=0)
    included = models.JSONField(_("sent memories"), default=list)
    left_out = models.JSONField(_("memories not sent"), default=list)

    class Meta:
        verbose_name = _("memory text for prompts")
        verbose_name_plural = _("memory texts for prompts")

    def __str__(self) -> str:
        return f"version {self.version} of the bank of {self.project_id}"

    @classmethod
    def empty(cls, project_id: UUID) -> bool:
        """Delete the stored text, so that no backup contains it. Return whether there was any.

        The next read renders it again.
        """
        # Readers lock this row before they store a text, so that they wait for this transaction.
        bank, _ = cls.objects.get_or_create(project_id=project_id)
        rows = cls.objects.filter(project=project_id)
        rows.update(text="", fingerprint="", tokens=0, included=[], left_out=[])
        return bool(bank.fingerprint)
