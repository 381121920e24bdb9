"""Sessions, and the read position of each user in them."""

from datetime import datetime

from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.models import IdModel, ProjectScopedModel, validate_model_name
from projects.models.keys import optional_user_key, parent_key, project_key, user_key

HISTORY_LIMITS = (50, 1_000)
UNTITLED = "Untitled chat"


class Visibility(models.TextChoices):
    PROJECT = "project", _("Everyone in the project")
    PRIVATE = "private", _("Only me")


class SessionStatus(models.TextChoices):
    ACTIVE = "active", _("Active")
    CLOSED = "closed", _("Closed")


class SessionKind(models.TextChoices):
    CHAT = "chat", _("Chat")
    NOTES = "notes", _("Notes")


class ReasoningEffort(models.TextChoices):
    LOW = "low", _("Low")
    MEDIUM = "medium", _("Medium")
    HIGH = "high", _("High")


def open_label(title: str, visibility: str) -> str:
    """Return a label that all members may read: without the title of a private session."""
    return title or UNTITLED if visibility == Visibility.PROJECT else "a private chat"


class SessionQuerySet(models.QuerySet["Session"]):
    def visible_to(self, user) -> "SessionQuerySet":
        """Return the sessions in the user's projects that are shared or that the user created."""
        return (
            self.not_deleted()
            .filter(project__memberships__user=user)
            .filter(Q(visibility=Visibility.PROJECT) | Q(creator=user))
        )

    def not_deleted(self) -> "SessionQuerySet":
        return self.filter(deleted_at=None)

    def chats(self) -> "SessionQuerySet":
        return self.filter(kind=SessionKind.CHAT)

    def notes(self) -> "SessionQuerySet":
        return self.filter(kind=SessionKind.NOTES)

    def newest_first(self) -> "SessionQuerySet":
        return self.order_by("-last_activity_at", "-id")


class Session(IdModel, ProjectScopedModel):
    """A conversation. `last_seq` is its highest `seq`. `version` increases with every change of its
    messages and settings, but not of its share link.
    """

    project = project_key("sessions")
    creator = optional_user_key(_("started by"), related_name="sessions")
    kind = models.CharField(
        _("kind"),
        max_length=10,
        choices=SessionKind.choices,
        default=SessionKind.CHAT,
        editable=False,
        help_text=_("The assistant does not reply to notes."),
    )
    title = models.CharField(_("title"), max_length=200, blank=True)
    title_by_hand = models.BooleanField(
        _("title by hand"), default=False, editable=False, help_text="A person wrote the title."
    )
    pinned = models.BooleanField(_("pinned"), default=False)
    archived_at = models.DateTimeField(_("archived at"), null=True, blank=True)
    visibility = models.CharField(
        _("visibility"), max_length=10, choices=Visibility.choices, default=Visibility.PROJECT
    )
    remembered = models.BooleanField(
        _("remembered"),
        default=True,
        help_text=_("New messages are added to the project's memory."),
    )
    status = models.CharField(
        _("status"), max_length=10, choices=SessionStatus.choices, default=SessionStatus.ACTIVE
    )
    history_limit = models.PositiveIntegerField(
        _("messages sent to the model"),
        null=True,
        blank=True,
        validators=[MinValueValidator(HISTORY_LIMITS[0]), MaxValueValidator(HISTORY_LIMITS[1])],
        help_text=_("Messages that the model sees. Empty: the project's limit."),
    )
    chat_model = models.CharField(
        _("chat model"),
        max_length=200,
        blank=True,
        default="",
        db_default="",
        validators=[validate_model_name],
        help_text="The model that answers. Empty: the project's.",
    )
    temperature = models.FloatField(
        _("temperature"),
        null=True,
        blank=True,
        validators=[MinValueValidator(0), MaxValueValidator(2)],
    )
    reasoning_effort = models.CharField(
        _("reasoning effort"),
        max_length=10,
        blank=True,
        default="",
        db_default="",
        choices=ReasoningEffort.choices,
    )
    tags = models.JSONField(
        _("tags"),
        default=list,
        blank=True,
        db_default=models.Value([], models.JSONField()),
        help_text="Words by which people group chats.",
    )
    share_key = models.CharField(
        _("key of the link for members"),
        max_length=43,
        blank=True,
        default="",
        db_default="",
        editable=False,
        help_text="The key of the link by which all members may read the chat. Empty: no link.",
    )
    last_seq = models.PositiveIntegerField(_("last message"), default=0, editable=False)
    version = models.PositiveIntegerField(_("version"), default=0, editable=False)
    cleared_through = models.PositiveIntegerField(
        _("cleared up to message"),
        default=0,
        db_default=0,
        editable=False,
        help_text="The highest `seq` when the chat was cleared. Lists begin after it.",
    )
    head = models.ForeignKey(
        "chat.Message",
        verbose_name=_("last message of the active path"),
        null=True,
        blank=True,
        editable=False,
        on_delete=models.SET_NULL,
        related_name="+",
        help_text="The last message of the active path.",
    )
    source_key = models.CharField(
        _("ID at the source"),
        max_length=300,
        null=True,
        blank=True,
        editable=False,
        help_text=_("The id of the conversation at its source."),
    )
    deleted_at = models.DateTimeField(
        _("deleted at"),
        null=True,
        blank=True,
        editable=False,
        help_text="Withheld since then; forgotten after the undo window.",
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    last_activity_at = models.DateTimeField(_("last activity"), default=timezone.now)

    objects = SessionQuerySet.as_manager()

    class Meta:
        verbose_name = _("chat")
        verbose_name_plural = _("chats")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "source_key"], name="one_session_a_source_key"
            ),
            models.CheckConstraint(
                condition=Q(visibility__in=Visibility.values), name="session_visibility_is_known"
            ),
            models.CheckConstraint(
                condition=Q(status__in=SessionStatus.values), name="session_status_is_known"
            ),
            models.CheckConstraint(
                condition=Q(kind__in=SessionKind.values), name="session_kind_is_known"
            ),
        ]
        indexes = [
            models.Index(fields=["project", "-last_activity_at"], name="session_recent"),
            models.Index(
                fields=["deleted_at"], name="session_deleted", condition=Q(deleted_at__isnull=False)
            ),
            models.Index(
                fields=["project", "creator"],
                name="session_notes",
                condition=Q(kind=SessionKind.NOTES),
            ),
        ]

    def __str__(self) -> str:
        # Without the title, because logs cannot be redacted later.
        return f"chat of {self.created_at:%Y-%m-%d %H:%M}"

    @property
    def label(self) -> str:
        return self.title or UNTITLED

    @property
    def open_label(self) -> str:
        return open_label(self.title, self.visibility)

    @property
    def is_notes(self) -> bool:
        return self.kind == SessionKind.NOTES

    @property
    def chat_model_name(self) -> str:
        """The model that answers in this session."""
        return self.chat_model or self.project.chat_model_name

    @property
    def window_limit(self) -> int:
        """The maximum number of messages of this session in a prompt."""
        return self.history_limit or self.project.history_limit

    def touch(self, moment: datetime) -> None:
        """Record a change at `moment`, without saving. `last_activity_at` never decreases, even if
        an old message is imported.
        """
        self.version += 1
        self.last_activity_at = max(self.last_activity_at, moment)


class Seen(IdModel, ProjectScopedModel):
    """The `seq` of the last message that a user has read in a session."""

    project = project_key(db_index=False)
    session = parent_key(Session, _("chat"), "seen")
    user = user_key()
    seq = models.PositiveIntegerField(_("read up to message"))

    class Meta:
        verbose_name = _("read position")
        verbose_name_plural = _("read positions")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "session", "user"], name="one_place_a_session_and_reader"
            )
        ]

    def __str__(self) -> str:
        return f"{self.session_id} to {self.seq}"
