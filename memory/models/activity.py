"""What was done to memory, by whom or by what: the live log and the audit trail in one."""

from collections.abc import Iterable
from typing import NoReturn
from uuid import UUID

from django.conf import settings
from django.db import models
from django.utils.translation import gettext_lazy as _

from projects.identifiers import new_id
from projects.models import OfProject, Project

# Of the ids of what else an act touched; `count` tells of all.
MOST_RELATED = 100


class Verb(models.TextChoices):
    SUMMARISED = "summarised", _("summarised a conversation")
    ROLLED_UP = "rolled_up", _("rolled up a period")
    REWRITTEN = "rewritten", _("wrote anew")
    DISSOLVED = "dissolved", _("removed, as nothing is left of its sources")
    FADED = "faded", _("faded")
    RETURNED = "returned", _("brought back into the budget")
    FAILED = "failed", _("failed")
    PROPOSED = "proposed", _("proposed")
    APPROVED = "approved", _("approved")
    REJECTED = "rejected", _("rejected")
    EDITED = "edited", _("edited")
    PINNED = "pinned", _("pinned")
    UNPINNED = "unpinned", _("unpinned")
    HIDDEN = "hidden", _("hid")
    SHOWN = "shown", _("took in again")
    REDACTED = "redacted", _("redacted")
    ASKED_ANEW = "asked_anew", _("asked to have written anew")
    FORGOTTEN = "forgotten", _("forgot")
    BLOCK_KEPT = "block_kept", _("wrote a block")
    BLOCK_GONE = "block_gone", _("deleted a block")
    READ = "read", _("opened the private text of")
    RECORDED = "recorded", _("recorded")
    CLOSED = "closed", _("closed")
    MEMBER_ADDED = "member_added", _("added a member")
    MEMBER_GONE = "member_gone", _("removed a member")
    ROLE_CHANGED = "role_changed", _("gave another role")
    INVITED = "invited", _("made an invitation")
    JOINED = "joined", _("came in by an invitation")


class Reason(models.TextChoices):
    """Why somebody changed what is remembered."""

    WRONG = "wrong", _("It is wrong")
    OUTDATED = "outdated", _("It is outdated")
    PRIVATE = "private", _("It is private")
    INSTRUCTIONS = "instructions", _("It is an instruction, not a memory")
    DUPLICATE = "duplicate", _("It is said elsewhere")
    REQUESTED = "requested", _("The person it is about asked for it")
    CHECKED = "checked", _("It was checked")
    OTHER = "other", _("Another reason")


class ActivityQuerySet(models.QuerySet["Activity"]):
    def newest_first(self) -> "ActivityQuerySet":
        return self.order_by("-id")

    def update(self, **changes: object) -> NoReturn:
        raise TypeError("What was done stays on the record.")

    def delete(self) -> NoReturn:
        raise TypeError("What was done stays on the record.")


class Activity(OfProject):
    """One act. Only ids, verbs and numbers, never a text of people or models.

    It points by bare ids, so that it outlives what it tells of; with its project it goes.
    """

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="activities")
    at = models.DateTimeField(auto_now_add=True)
    verb = models.CharField(max_length=12, choices=Verb.choices)
    by = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        related_name="+",
        help_text="Empty: Strata itself.",
    )
    whom = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        related_name="+",
        help_text="Of an act on a membership: whose it is.",
    )
    role_before = models.CharField(max_length=10, blank=True, default="", db_default="")
    role_after = models.CharField(max_length=10, blank=True, default="", db_default="")
    entry_id = models.UUIDField(null=True, blank=True)
    fact_id = models.UUIDField(null=True, blank=True)
    session_id = models.UUIDField(null=True, blank=True)
    message_id = models.UUIDField(null=True, blank=True)
    granularity = models.CharField(max_length=12, blank=True)
    period_key = models.CharField(max_length=10, blank=True)
    related = models.JSONField(default=list, blank=True, help_text="Ids of what else it touched.")
    count = models.PositiveIntegerField(default=0, help_text="How many that were in all.")
    reason = models.CharField(
        max_length=200, blank=True, help_text="One of Reason, or why it failed, in Strata's words."
    )
    receipt = models.JSONField(
        default=dict,
        blank=True,
        help_text="Of a forgetting: what went from where, in numbers and ids.",
    )
    calls = models.PositiveIntegerField(default=0)
    input_tokens = models.PositiveIntegerField(default=0)
    output_tokens = models.PositiveIntegerField(default=0)
    cost = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text="US dollars."
    )
    duration_ms = models.PositiveIntegerField(null=True, blank=True)

    objects = ActivityQuerySet.as_manager()

    class Meta:
        verbose_name_plural = "activity"
        indexes = [
            models.Index(fields=["project", "-id"], name="activity_recent"),
            models.Index(
                fields=["project", "entry_id"],
                name="activity_of_entry",
                condition=models.Q(entry_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verb} at {self.at:%Y-%m-%d %H:%M}"

    def save(self, *args, **kwargs) -> None:
        """Writes it once. Raises TypeError when it is there already."""
        if not self._state.adding:
            raise TypeError("What was done stays on the record.")
        super().save(*args, **kwargs)


def note(project_id: UUID, verb: Verb, *, related: Iterable[UUID] = (), **fields) -> Activity:
    """Puts an act on the record, in the transaction of the act. `fields` are those of Activity."""
    ids = [str(one) for one in related]
    fields.setdefault("count", len(ids))
    return Activity.objects.create(
        project_id=project_id, verb=verb, related=ids[:MOST_RELATED], **fields
    )
