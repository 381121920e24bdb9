"""Messages with their revisions and reactions."""

import re
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from django.contrib.postgres.indexes import GinIndex
from django.contrib.postgres.search import SearchVector
from django.db import models
from django.db.models import Func, Q, Value
from django.db.models.expressions import RawSQL
from django.db.models.functions import Left
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from chat.models.calls import cost_field
from chat.models.sessions import Session
from chat.prompt.types import Lookup, ToolCall, load_lookups, load_tool_calls
from projects.models import IdModel, ProjectScopedModel
from projects.models.keys import optional_user_key, parent_key, project_key, user_key

# The Unicode blocks that contain emoji, without letters and digits.
_SYMBOL = (
    "[©®‼⁉™ℹ\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff〰〽㊗㊙🅰🅱🅾🅿🆎🆑-🆚"
    "\U0001f000-\U0001f0ff\U0001f200-\U0001faff]"
)
# A symbol, followed by variation selectors, a skin tone, or the tags of a flag.
_PART = f"{_SYMBOL}[\ufe0e\ufe0f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]{{0,8}}"
_EMOJI = re.compile(
    f"[\U0001f1e6-\U0001f1ff]{{2}}|[0-9#*]\ufe0f?\u20e3|{_PART}(?:\u200d{_PART}){{0,6}}"
)


class Role(models.TextChoices):
    USER = "user", _("User")
    ASSISTANT = "assistant", _("Assistant")
    SYSTEM = "system", _("System")
    TOOL = "tool", _("Tool")


class Status(models.TextChoices):
    PENDING = "pending", _("Pending")
    STREAMING = "streaming", _("Streaming")
    COMPLETE = "complete", _("Complete")
    STOPPED = "stopped", _("Stopped")
    INTERRUPTED = "interrupted", _("Interrupted")
    FAILED = "failed", _("Failed")


# The maximum number of characters that are searched. A tsvector is limited to a megabyte, and a
# character takes up to 4 bytes.
# https://www.postgresql.org/docs/18/textsearch-limitations.html
MAX_SEARCHED_CHARS = 200_000
# The maximum length of a run of letters and signs, such as "A@1A@1". Longer runs are split, because
# PostgreSQL takes quadratic time to parse them: 14 s for 24,000 characters.
MAX_SEARCHED_RUN_CHARS = 100
SEARCHED_RUN = rf"[^\s,\"(){{}}\[\]]{{{MAX_SEARCHED_RUN_CHARS}}}"
TEXT_VECTOR = SearchVector(
    Func(
        Func(Left("text", MAX_SEARCHED_CHARS), Value("<"), Value(" "), function="translate"),
        Value(SEARCHED_RUN),
        Value(r"\& "),
        Value("g"),
        function="regexp_replace",
        output_field=models.TextField(),
    ),
    config="simple",
)

FINAL = (Status.COMPLETE, Status.STOPPED, Status.INTERRUPTED, Status.FAILED)
UNFINISHED = (Status.PENDING, Status.STREAMING)


# Selects a message and its ancestors, up to a maximum number of messages. `IS TRUE` makes the
# planner look up messages by id. Without statistics, as in a new project, it might otherwise read
# all messages of the project for each step.
_UPWARD = """
    WITH RECURSIVE up (id, parent_id, step) AS (
        SELECT id, parent_id, 1 FROM chat_message WHERE (project_id = %s) IS TRUE AND id = %s
        UNION ALL
        SELECT above.id, above.parent_id, up.step + 1
        FROM up JOIN chat_message above ON above.id = up.parent_id
            AND (above.project_id = %s) IS TRUE
        WHERE up.step < %s
    )
    SELECT id FROM up
"""


class MessageQuerySet(models.QuerySet["Message"]):
    def path_to(self, session: Session, head: UUID | None, limit: int) -> "MessageQuerySet":
        """Return the last `limit` messages of the path that ends at `head`, oldest first."""
        if head is None:
            return self.none()
        project = session.project_id
        walk = RawSQL(_UPWARD, [project, head, project, limit])
        # Order by seq, because a message always has a higher seq than its parent.
        return self.filter(project_id=project, session=session, pk__in=walk).order_by("seq")

    def unfinished(self) -> "MessageQuerySet":
        """Return the replies that are in progress or whose process has died."""
        return self.filter(status__in=UNFINISHED)

    def spoken_by(self, user) -> "MessageQuerySet":
        """Return the user's own messages, without those recorded in another name."""
        names = ("", user.get_username(), display_name(user))
        return self.filter(author=user, author_name__in=names).exclude(role=Role.ASSISTANT)

    def after(self, seq: int) -> "MessageQuerySet":
        return self.filter(seq__gt=seq).order_by("seq")


def failed_model_note(failed: Mapping[str, Any]) -> str:
    """Return the note on a reply of the second model. `failed` is `fallback` of the receipt."""
    return f"{failed.get('model')} did not answer: {failed.get('reason')}"


class Message(IdModel, ProjectScopedModel):
    """One message. An alternative, such as another reply, is another row with the same `parent`."""

    project = project_key(db_index=False)
    session = parent_key(Session, _("chat"), "messages")
    seq = models.PositiveIntegerField(_("number"))
    parent = models.ForeignKey(
        "self",
        verbose_name=_("previous message"),
        null=True,
        blank=True,
        on_delete=models.SET_NULL,
        related_name="children",
    )
    copied_from = models.ForeignKey(
        "self",
        verbose_name=_("copied from"),
        null=True,
        blank=True,
        on_delete=models.CASCADE,
        related_name="copies",
        help_text=_(
            "In a fork: the original message. Memory covers only the original, and forgetting it "
            "also forgets the copy."
        ),
    )
    role = models.CharField(_("role"), max_length=10, choices=Role.choices)
    author = optional_user_key(_("author"), related_name="messages")
    author_name = models.CharField(
        _("author’s name"),
        max_length=120,
        blank=True,
        help_text=_("The speaker of an imported message."),
    )
    text = models.TextField(_("text"), blank=True)
    tokens = models.PositiveIntegerField(
        _("tokens"), default=0, help_text="Tokens of the text (cl100k_base)."
    )
    status = models.CharField(
        _("status"), max_length=12, choices=Status.choices, default=Status.COMPLETE
    )
    error = models.CharField(
        _("error"),
        max_length=500,
        blank=True,
        help_text=_("The reason of the failure, as shown to users."),
    )
    version = models.PositiveIntegerField(_("version"), default=1)
    remembered = models.BooleanField(_("remembered"), default=True)
    model = models.CharField(_("model"), max_length=200, blank=True)
    input_tokens = models.PositiveIntegerField(_("input tokens"), null=True, blank=True)
    output_tokens = models.PositiveIntegerField(_("output tokens"), null=True, blank=True)
    cost = cost_field(_("cost"), help_text=_("US dollars."))
    first_token_ms = models.PositiveIntegerField(_("first token (ms)"), null=True, blank=True)
    receipt = models.JSONField(
        _("receipt"),
        default=dict,
        blank=True,
        help_text=_("The items of the prompt, by id and revision."),
    )
    tool_calls = models.JSONField(
        _("tool calls"),
        default=list,
        blank=True,
        help_text=_(
            "The reply's calls of tools that the API client declared: id, name, arguments."
        ),
    )
    tool_call_id = models.TextField(
        _("tool call ID"), blank=True, help_text=_("In a tool's result: the id of the call.")
    )
    lookups = models.JSONField(
        _("lookups"),
        default=list,
        db_default=Value([], models.JSONField()),
        blank=True,
        help_text=_("The lookups of a reply: tool, arguments, result_count, error."),
    )
    source_key = models.CharField(
        _("ID at the source"), max_length=300, null=True, blank=True, editable=False
    )
    edited_at = models.DateTimeField(_("edited at"), null=True, blank=True)
    deleted_at = models.DateTimeField(_("deleted at"), null=True, blank=True)
    hidden_at = models.DateTimeField(
        _("hidden at"),
        null=True,
        blank=True,
        editable=False,
        help_text=_("When a moderator hid the message. It counts as deleted until it is shown."),
    )
    forgotten_at = models.DateTimeField(
        _("forgotten at"),
        null=True,
        blank=True,
        help_text=_("The text and everything derived from it are deleted since then."),
    )
    stop_requested = models.BooleanField(
        _("stop requested"), default=False, editable=False, help_text="A reader stopped the reply."
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    heartbeat_at = models.DateTimeField(
        _("heartbeat"),
        null=True,
        blank=True,
        help_text="The last heartbeat of the process that writes the reply.",
    )

    objects = MessageQuerySet.as_manager()

    class Meta:
        verbose_name = _("message")
        verbose_name_plural = _("messages")
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
            ),
            models.Index(fields=["project", "created_at"], name="message_by_time"),
            models.Index(fields=["project", "author"], name="message_by_author"),
            # Finds the replies whose prompt contained an item with a certain id.
            GinIndex(fields=["receipt"], name="message_receipt", opclasses=["jsonb_path_ops"]),
            # Only final messages, because an unfinished reply is written every second.
            GinIndex(TEXT_VECTOR, name="message_searched", condition=Q(status__in=FINAL)),
        ]

    def __str__(self) -> str:
        return f"{self.role} {self.seq} in {self.session_id}"

    @property
    def calls(self) -> tuple[ToolCall, ...]:
        return load_tool_calls(self.tool_calls)

    @property
    def loaded_lookups(self) -> tuple[Lookup, ...]:
        return load_lookups(self.lookups)

    @property
    def is_final(self) -> bool:
        return self.status in FINAL

    @property
    def speaker(self) -> str:
        """The author's name in pages, prompts and transcripts."""
        if self.author_name:
            return self.author_name
        if self.role == Role.ASSISTANT:
            return "Assistant"
        return display_name(self.author) if self.author is not None else "Someone"

    @property
    def notice(self) -> str:
        """The notes on a complete reply in `error`, without the one on the model that failed, which
        is also in the receipt.
        """
        failed = self.receipt.get("fallback")
        if not isinstance(failed, dict):
            return self.error
        return self.error.removeprefix(failed_model_note(failed)).strip()

    @property
    def recorded_by(self) -> str:
        """The username of the account that recorded the message in another name, or ""."""
        if self.author is None:
            return ""
        username = self.author.get_username()
        own = self.author_name in ("", username, display_name(self.author))
        return "" if own and self.role != Role.ASSISTANT else username


def display_name(user) -> str:
    """Return a user's name for pages and prompts."""
    return user.get_full_name() or user.get_username()


class MessageRevision(IdModel, ProjectScopedModel):
    """An earlier text of an edited message."""

    project = project_key()
    message = parent_key(Message, _("message"), "revisions")
    version = models.PositiveIntegerField(
        _("version"), help_text=_("The version of the message that had this text.")
    )
    text = models.TextField(_("text"), blank=True)
    edited_by = optional_user_key(_("edited by"), blank=False)
    edited_at = models.DateTimeField(
        _("edited at"), help_text=_("The time at which another text replaced it.")
    )

    class Meta:
        verbose_name = _("earlier version of a message")
        verbose_name_plural = _("earlier versions of messages")
        ordering = ["-version"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "message", "version"], name="one_text_a_message_version"
            )
        ]

    def __str__(self) -> str:
        return f"version {self.version} of {self.message_id}"


# The maximum number of emojis that a user adds to a message. Each page of the chat shows all.
MAX_REACTIONS = 20


def is_emoji(text: str) -> bool:
    """Return whether `text` is a single emoji. Reactions therefore cannot contain words."""
    return bool(_EMOJI.fullmatch(text))


class Reaction(IdModel, ProjectScopedModel):
    """An emoji that a user added to a message. A user can add each emoji once."""

    project = project_key()
    message = parent_key(Message, _("message"), "reactions")
    user = user_key("reactions")
    emoji = models.CharField(_("emoji"), max_length=32)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    class Meta:
        verbose_name = _("reaction")
        verbose_name_plural = _("reactions")
        ordering = ["created_at", "id"]
        constraints = [
            models.UniqueConstraint(
                fields=["project", "message", "user", "emoji"], name="one_reaction_a_user_and_emoji"
            )
        ]

    def __str__(self) -> str:
        return self.emoji
