"""The activity log: every change to memory and membership, with its actor, reason and cost."""

from collections.abc import Iterable
from typing import NoReturn
from uuid import UUID

from django.db import models
from django.utils.translation import gettext_lazy as _

from chat.models.calls import cost_field
from memory.models.entries import Entry
from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import optional_user_key, project_key

# The maximum number of ids in `Activity.related`. `Activity.count` is the number of all.
MAX_RELATED_IDS = 100


class ActivityVerb(models.TextChoices):
    SUMMARISED = "summarised", _("summarised")
    ROLLED_UP = "rolled_up", _("merged memories into")
    REWRITTEN = "rewritten", _("rewrote")
    DISSOLVED = "dissolved", _("removed because all sources were deleted")
    FADED = "faded", _("stopped sending memories (no room)")
    RETURNED = "returned", _("resumed sending memories")
    FAILED = "failed", _("failed")
    PROPOSED = "proposed", _("sent for review")
    APPROVED = "approved", _("approved")
    CHECKED = "checked", _("confirmed")
    REJECTED = "rejected", _("rejected")
    EDITED = "edited", _("edited")
    PINNED = "pinned", _("pinned")
    UNPINNED = "unpinned", _("unpinned")
    HIDDEN = "hidden", _("hid")
    SHOWN = "shown", _("showed again")
    DELETED = "deleted", _("deleted")
    CHAT_CLOSED = "chat_closed", _("closed")
    ARCHIVED = "archived", _("archived")
    UNARCHIVED = "unarchived", _("unarchived")
    REDACTED = "redacted", _("removed text from")
    REWRITE_REQUESTED = "asked_anew", _("requested a rewrite of")
    FORGOTTEN = "forgotten", _("forgot")
    BLOCK_WRITTEN = "block_kept", _("changed pinned text")
    BLOCK_DELETED = "block_gone", _("deleted pinned text")
    READ = "read", _("opened the private text of")
    RECORDED = "recorded", _("added")
    CLOSED = "closed", _("ended")
    MEMBER_ADDED = "member_added", _("added a member")
    MEMBER_REMOVED = "member_gone", _("removed a member")
    ROLE_CHANGED = "role_changed", _("changed a role")
    INVITED = "invited", _("created an invitation")
    IMPORTED = "imported", _("imported chats")
    JOINED = "joined", _("joined by invitation")
    FILE_ADDED = "file_added", _("added a file")


class ModerationReason(models.TextChoices):
    """The reason that a person gives for a change to memory."""

    WRONG = "wrong", _("Wrong")
    OUTDATED = "outdated", _("Outdated")
    PRIVATE = "private", _("Private")
    INSTRUCTIONS = "instructions", _("An instruction, not a memory")
    DUPLICATE = "duplicate", _("Duplicate")
    REQUESTED = "requested", _("Requested by the person it is about")
    CHECKED = "checked", _("Checked")
    OTHER = "other", _("Other")


class ActivityQuerySet(models.QuerySet["Activity"]):
    def newest_first(self) -> "ActivityQuerySet":
        return self.order_by("-id")

    def update(self, **changes: object) -> NoReturn:
        raise TypeError("The activity log is append-only.")

    def delete(self) -> NoReturn:
        raise TypeError("The activity log is append-only.")


class Activity(IdModel, ProjectScopedModel):
    """One action in the log: ids, verbs and numbers, but no text of people or models.

    The ids are not foreign keys, so that the row outlives the objects. It is deleted with its
    project.
    """

    project = project_key("activities")
    at = models.DateTimeField(_("time"), auto_now_add=True)
    verb = models.CharField(_("action"), max_length=12, choices=ActivityVerb.choices)
    by = optional_user_key(
        _("by"),
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        help_text=_("Empty: Strata itself."),
    )
    whom = optional_user_key(
        _("member"),
        on_delete=models.DO_NOTHING,
        db_constraint=False,
        db_index=False,
        help_text=_("The member, for acts on a membership."),
    )
    role_before = models.CharField(
        _("former role"), max_length=10, blank=True, default="", db_default=""
    )
    role_after = models.CharField(
        _("new role"), max_length=10, blank=True, default="", db_default=""
    )
    entry_id = models.UUIDField(_("memory ID"), null=True, blank=True)
    fact_id = models.UUIDField(_("fact ID"), null=True, blank=True)
    session_id = models.UUIDField(_("chat ID"), null=True, blank=True)
    message_id = models.UUIDField(_("message ID"), null=True, blank=True)
    granularity = models.CharField(_("layer"), max_length=12, blank=True)
    period_key = models.CharField(_("period"), max_length=10, blank=True)
    related = models.JSONField(
        _("other objects"), default=list, blank=True, help_text=_("Ids of other affected objects.")
    )
    count = models.PositiveIntegerField(
        _("affected objects"), default=0, help_text=_("The number of all affected objects.")
    )
    reason = models.CharField(
        _("reason"),
        max_length=200,
        blank=True,
        help_text=_("The reason that a moderator chose, or the reason of a failure."),
    )
    receipt = models.JSONField(
        _("receipt"),
        default=dict,
        blank=True,
        help_text=_("For a forget request: the removed objects, as numbers and ids."),
    )
    calls = models.PositiveIntegerField(_("model calls"), default=0)
    input_tokens = models.PositiveIntegerField(_("input tokens"), default=0)
    output_tokens = models.PositiveIntegerField(_("output tokens"), default=0)
    cost = cost_field(_("cost"), help_text=_("US dollars."))
    duration_ms = models.PositiveIntegerField(_("duration (ms)"), null=True, blank=True)

    objects = ActivityQuerySet.as_manager()

    class Meta:
        verbose_name = _("activity")
        verbose_name_plural = _("activity")
        indexes = [
            models.Index(fields=["project", "-id"], name="activity_recent"),
            models.Index(
                fields=["project", "entry_id"],
                name="activity_of_entry",
                condition=models.Q(entry_id__isnull=False),
            ),
            models.Index(
                fields=["project", "fact_id"],
                name="activity_of_fact",
                condition=models.Q(fact_id__isnull=False),
            ),
        ]

    def __str__(self) -> str:
        return f"{self.verb} at {self.at:%Y-%m-%d %H:%M}"

    def save(self, *args, **kwargs) -> None:
        """Insert the row. Raises TypeError if it already exists."""
        if not self._state.adding:
            raise TypeError("The activity log is append-only.")
        super().save(*args, **kwargs)


def record_activity(
    project_id: UUID, verb: ActivityVerb, *, related: Iterable[UUID] = (), **fields
) -> Activity:
    """Log an action, in its transaction. `fields` are fields of `Activity`."""
    ids = [str(pk) for pk in related]
    fields.setdefault("count", len(ids))
    return Activity.objects.create(
        project_id=project_id, verb=verb, related=ids[:MAX_RELATED_IDS], **fields
    )


def record_entry_activity(entry: Entry, verb: ActivityVerb, **fields) -> Activity:
    return record_activity(
        entry.project_id,
        verb,
        entry_id=entry.pk,
        granularity=entry.granularity,
        period_key=entry.period_key,
        **fields,
    )
