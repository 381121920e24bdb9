"""One thing said in a conversation."""

from django.conf import settings
from django.db import models
from django.db.models import Q
from django.utils import timezone

from chat.models.sessions import Session
from projects.identifiers import new_id
from projects.models import Project


class Role(models.TextChoices):
    USER = "user"
    ASSISTANT = "assistant"
    SYSTEM = "system"
    TOOL = "tool"


class Status(models.TextChoices):
    PENDING = "pending"
    STREAMING = "streaming"
    COMPLETE = "complete"
    STOPPED = "stopped"
    INTERRUPTED = "interrupted"
    FAILED = "failed"


FINAL = (Status.COMPLETE, Status.STOPPED, Status.INTERRUPTED, Status.FAILED)
UNFINISHED = (Status.PENDING, Status.STREAMING)


class MessageQuerySet(models.QuerySet["Message"]):
    def unfinished(self) -> "MessageQuerySet":
        """Replies that are still being said, or whose process died while it spoke."""
        return self.filter(status__in=UNFINISHED)

    def after(self, seq: int) -> "MessageQuerySet":
        return self.filter(seq__gt=seq).order_by("seq")


class Message(models.Model):
    """What was said is never rewritten: another answer is a sibling, by `parent`."""

    id = models.UUIDField(primary_key=True, default=new_id, editable=False)
    project = models.ForeignKey(Project, on_delete=models.CASCADE, related_name="+")
    session = models.ForeignKey(Session, on_delete=models.CASCADE, related_name="messages")
    seq = models.PositiveIntegerField()
    parent = models.ForeignKey(
        "self", null=True, blank=True, on_delete=models.SET_NULL, related_name="children"
    )
    role = models.CharField(max_length=10, choices=Role.choices)
    author = models.ForeignKey(
        settings.AUTH_USER_MODEL,
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="messages",
    )
    author_name = models.CharField(
        max_length=120, blank=True, help_text="Who said it elsewhere, when it was imported."
    )
    text = models.TextField(blank=True)
    tokens = models.PositiveIntegerField(default=0, help_text="Tokens of the text (cl100k_base).")
    status = models.CharField(max_length=12, choices=Status.choices, default=Status.COMPLETE)
    error = models.CharField(max_length=500, blank=True, help_text="Why it failed, for people.")
    version = models.PositiveIntegerField(default=1)
    remembered = models.BooleanField(default=True)
    model = models.CharField(max_length=200, blank=True)
    input_tokens = models.PositiveIntegerField(null=True, blank=True)
    output_tokens = models.PositiveIntegerField(null=True, blank=True)
    cost = models.DecimalField(
        max_digits=12, decimal_places=6, null=True, blank=True, help_text="US dollars."
    )
    first_token_ms = models.PositiveIntegerField(null=True, blank=True)
    receipt = models.JSONField(
        default=dict, blank=True, help_text="What stood in the prompt, by id and revision."
    )
    source_key = models.CharField(max_length=300, null=True, blank=True, editable=False)
    created_at = models.DateTimeField(default=timezone.now)
    heartbeat_at = models.DateTimeField(
        null=True, blank=True, help_text="When the process that says it was last seen at it."
    )

    objects = MessageQuerySet.as_manager()

    class Meta:
        ordering = ["session", "seq"]
        constraints = [
            models.UniqueConstraint(fields=["project", "session", "seq"], name="one_message_a_seq"),
            models.UniqueConstraint(
                fields=["project", "session", "source_key"], name="one_message_a_source_key"
            ),
            models.CheckConstraint(condition=Q(role__in=Role.values), name="message_role_is_known"),
            models.CheckConstraint(
                condition=Q(status__in=Status.values), name="message_status_is_known"
            ),
        ]
        indexes = [
            models.Index(
                fields=["heartbeat_at"],
                name="message_unfinished",
                condition=Q(status__in=UNFINISHED),
            )
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.seq} in {self.session_id}"

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def speaker(self) -> str:
        """The name under which it stands in pages, prompts and transcripts."""
        if self.author_name:
            return self.author_name
        if self.author is not None:
            return self.author.get_full_name() or self.author.get_username()
        return "Assistant" if self.role == Role.ASSISTANT else "Someone"
