"""The project: a team's workspace and its settings."""

from functools import cache
from importlib import import_module
from typing import Any
from zoneinfo import ZoneInfo, available_timezones

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.core.exceptions import ValidationError
from django.core.validators import MaxValueValidator, MinValueValidator
from django.db import DataError, models, transaction
from django.utils.translation import gettext_lazy as _

from projects import persona_template
from projects.core.database import fetch
from projects.core.models import IdModel
from projects.core.search_languages import validate_search_language
from projects.core.text import storable
from projects.models.server import EXTRACTIVE, default_chat_model, default_system_model

DEFAULT_MIN_INDEX_CHARS = 20
# The fields that contain the name of a model.
MODEL_FIELDS = {"chat_model", "fallback_model", "system_model"}
MAX_CONTEXT_PAIRS, MAX_CONTEXT_KEY_CHARS, MAX_CONTEXT_VALUE_CHARS = 50, 50, 1_000


class IndexedRole(models.TextChoices):
    """A role of messages that search can index."""

    USER = "user", _("People")
    ASSISTANT = "assistant", _("The assistant")


def default_indexed_roles() -> list[str]:
    return list(IndexedRole.values)


def validate_indexed_roles(roles: list[str]) -> None:
    if not roles or len(set(roles)) < len(roles):
        raise ValidationError(_("Choose at least one role, and each only once."))


def validate_custom_context(context: object) -> None:
    """Raise ValidationError unless `context` is a dict of strings with keys valid in templates."""
    if not isinstance(context, dict) or len(context) > MAX_CONTEXT_PAIRS:
        raise ValidationError(
            _("Give at most %(most)s keys with a text each.") % {"most": MAX_CONTEXT_PAIRS}
        )
    for key, value in context.items():
        if not str(key).isidentifier() or len(key) > MAX_CONTEXT_KEY_CHARS:
            raise ValidationError(
                _("“%(key)s” is not a key. Use letters, digits and underscores.")
                % {"key": str(key)[:MAX_CONTEXT_KEY_CHARS]}
            )
        is_text = isinstance(value, str) and value == storable(value)
        if not is_text or len(value) > MAX_CONTEXT_VALUE_CHARS:
            raise ValidationError(
                _("The value of “%(key)s” must be a text of at most %(most)s characters.")
                % {"key": key, "most": MAX_CONTEXT_VALUE_CHARS}
            )


@cache
def is_known_to_database(zone: str) -> bool:
    """Return whether the database knows the time zone, which Python knows.

    One query reads the due work of all projects, with their time zones. A name that only Python
    knows, such as `localtime` or a recent name, would make it fail for all of them.
    """
    try:
        with transaction.atomic():
            fetch("SELECT now() AT TIME ZONE %s", [zone])
    except DataError:
        return False
    return True


def validate_timezone(name: str) -> None:
    if name not in available_timezones() or not is_known_to_database(name):
        raise ValidationError(
            _("“%(name)s” is not a time zone. Use a name such as Europe/Berlin.") % {"name": name}
        )


def validate_model_name(name: str) -> None:
    """Accept `provider:model` as in pydantic-ai, `demo`, or "" for the server's default."""
    provider, colon, model = name.partition(":")
    if name not in ("", "demo") and not (colon and provider and model):
        raise ValidationError(
            _("“%(name)s” is not a model name. Use a name such as openai-chat:gpt-5-mini, or demo.")
            % {"name": name}
        )


def project_models() -> Any:
    """Return the module that lists the models that a project may use, and checks model names."""
    return import_module(settings.PROJECT_MODELS)


def validate_system_model_name(name: str) -> None:
    """Accept the names of chat models, and `extractive` for the summariser that only quotes."""
    if name != EXTRACTIVE:
        validate_model_name(name)


def validate_instructions(template: str) -> None:
    """Report an error in the instructions when they are saved, not in the next chat."""
    try:
        persona_template.check(template)
    except persona_template.PersonaTemplateError as error:
        raise ValidationError(str(error)) from error


class ProjectQuerySet(models.QuerySet["Project"]):
    def visible_to(self, user) -> "ProjectQuerySet":
        """Return the projects of which `user` is a member, including archived ones."""
        return self.filter(memberships__user=user)


class Project(IdModel):
    """A team's workspace: the settings of its assistant and of its memory."""

    name = models.CharField(_("name"), max_length=120)
    slug = models.SlugField(_("slug"), max_length=60, unique=True)
    instructions = models.TextField(
        _("instructions"),
        blank=True,
        max_length=20_000,
        validators=[validate_instructions],
        help_text=_(
            "How the assistant should answer. You can use a template with project.name, "
            "session.title, user.name, members, date, time and context."
        ),
    )
    chat_model = models.CharField(
        _("chat model"),
        max_length=200,
        blank=True,
        validators=[validate_model_name],
        help_text=_("For example openai-chat:gpt-5-mini. Leave empty for the server default."),
    )
    system_model = models.CharField(
        _("model for summaries"),
        max_length=200,
        blank=True,
        validators=[validate_system_model_name],
        help_text=_(
            "A model name, or extractive for summaries without a language model. Leave "
            "empty for the server default."
        ),
    )
    fallback_model = models.CharField(
        _("second chat model"),
        max_length=200,
        blank=True,
        default="",
        db_default="",
        validators=[validate_model_name],
        help_text=_("Answers when the chat model is out of credit or unavailable."),
    )
    allowed_models = ArrayField(
        models.CharField(max_length=200),
        verbose_name=_("allowed models"),
        default=list,
        db_default=[],
        blank=True,
        help_text=_("Set by the server’s administrators. Empty: all models."),
    )
    memory_enabled = models.BooleanField(_("remember chats"), default=True)
    bank_max_tokens = models.PositiveIntegerField(
        _("memory budget"),
        default=2_000,
        validators=[MinValueValidator(100), MaxValueValidator(100_000)],
        help_text=_("Maximum size of the memories in each prompt."),
    )
    blocks_max_tokens = models.PositiveIntegerField(
        _("pinned text budget"),
        default=1_000,
        validators=[MinValueValidator(100), MaxValueValidator(20_000)],
        help_text=_(
            "Maximum size of the project’s pinned text in each prompt. The same limit applies to "
            "each member’s own pinned text."
        ),
    )
    idle_minutes = models.PositiveIntegerField(
        _("summarise after (minutes)"),
        default=10,
        validators=[MinValueValidator(1), MaxValueValidator(10_080)],
        help_text=_("A chat is summarised when nobody has written for this long."),
    )
    review_memories = models.BooleanField(
        _("review new memories"),
        default=False,
        help_text=_("New memories are used only after an owner approves them."),
    )
    share_raw_turns = models.BooleanField(
        _("quote shared chats"),
        default=False,
        help_text=_("Search results and replies can quote shared chats to all members."),
    )
    keep_deleted = models.BooleanField(
        _("keep deleted messages"),
        default=False,
        help_text=_("The assistant still sees deleted messages, with the time of deletion."),
    )
    custom_context = models.JSONField(
        _("custom context"),
        default=dict,
        db_default={},
        blank=True,
        validators=[validate_custom_context],
        help_text=_("Texts that the instructions use as context.KEY."),
    )
    close_after_hours = models.PositiveIntegerField(
        _("close chats after (hours)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(876_000)],
        help_text=_("Hours without messages. Leave empty for the server default."),
    )
    indexed_roles = ArrayField(
        models.CharField(max_length=10, choices=IndexedRole.choices),
        verbose_name=_("messages in search"),
        default=default_indexed_roles,
        db_default=list(IndexedRole.values),
        validators=[validate_indexed_roles],
        help_text=_("Whose messages search finds."),
    )
    min_index_chars = models.PositiveIntegerField(
        _("minimum length in search"),
        default=DEFAULT_MIN_INDEX_CHARS,
        db_default=DEFAULT_MIN_INDEX_CHARS,
        validators=[MaxValueValidator(1_000)],
        help_text=_(
            "Characters. Search leaves out shorter messages, except questions and messages with a "
            "verb such as “buy” or “send”."
        ),
    )
    keep_days = models.PositiveIntegerField(
        _("delete chats after (days)"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1), MaxValueValidator(36_500)],
        help_text=_(
            "Days without messages. The chat and everything made from it are then deleted, unless "
            "the chat or one of its memories is pinned. Leave empty to keep chats forever."
        ),
    )
    # Former settings. Processes of an earlier version still read this column and the next three.
    # The API shows constants instead.
    roll_percent = models.PositiveIntegerField(
        _("merge threshold"),
        default=125,
        validators=[MinValueValidator(100), MaxValueValidator(1_000)],
        help_text=_(
            "Older memories are merged when all memories exceed this percentage of the budget."
        ),
    )
    day_after_days = models.PositiveIntegerField(
        _("days before chats are merged"),
        default=1,
        validators=[MinValueValidator(0), MaxValueValidator(3_650)],
        help_text=_("Chats can be merged into days after this many days."),
    )
    week_after_days = models.PositiveIntegerField(
        _("days before days are merged"),
        default=7,
        validators=[MinValueValidator(0), MaxValueValidator(3_650)],
        help_text=_("Days can be merged into weeks after this many days."),
    )
    month_after_days = models.PositiveIntegerField(
        _("days before weeks are merged"),
        default=30,
        validators=[MinValueValidator(0), MaxValueValidator(3_650)],
        help_text=_("Weeks can be merged into months after this many days."),
    )
    memory_daily_tokens = models.PositiveIntegerField(
        _("daily token limit"),
        null=True,
        blank=True,
        validators=[MinValueValidator(1_000)],
        help_text=_(
            "Tokens that models can use for memories per day. When they are used up, the work "
            "continues the next day. Leave empty for no limit."
        ),
    )
    history_limit = models.PositiveIntegerField(
        _("messages sent to the model"),
        default=100,
        validators=[MinValueValidator(50), MaxValueValidator(1_000)],
        help_text=_("How many messages of the current chat the model receives."),
    )
    timezone = models.CharField(
        _("time zone"), max_length=64, default="UTC", validators=[validate_timezone]
    )
    search_language = models.CharField(
        _("search language"),
        max_length=63,
        blank=True,
        validators=[validate_search_language],
        help_text=_(
            "Search finds other forms of a word, such as “builds” for “build”. Leave empty for "
            "the server default."
        ),
    )
    # The share of a demo project's chats that exist, in percent; None for other projects.
    demo_progress = models.PositiveSmallIntegerField(
        _("progress of the demo"), null=True, editable=False
    )
    # Whether a file was ever added. If not, replies need no query for files.
    has_files = models.BooleanField(_("has files"), default=False, db_default=False, editable=False)
    archived_at = models.DateTimeField(_("archived at"), null=True, blank=True)
    created_at = models.DateTimeField(_("created at"), auto_now_add=True)

    # Set by memory before saving: whether the search index must be updated afterwards.
    changes_index = False

    objects = ProjectQuerySet.as_manager()

    class Meta:
        verbose_name = _("project")
        verbose_name_plural = _("projects")
        ordering = ["name", "id"]

    def __str__(self) -> str:
        return self.name

    @property
    def is_archived(self) -> bool:
        """True if the project is read-only and left out of the normal lists."""
        return self.archived_at is not None

    @property
    def is_demo(self) -> bool:
        return self.demo_progress is not None

    @property
    def is_being_made(self) -> bool:
        """True for a demo project while its chats are being added."""
        return self.demo_progress is not None and self.demo_progress < 100

    @property
    def zone(self) -> ZoneInfo:
        return ZoneInfo(self.timezone)

    @property
    def search_language_name(self) -> str:
        """Return the name of PostgreSQL's text search configuration for this project."""
        return self.search_language or settings.SEARCH_LANGUAGE

    @property
    def chat_model_name(self) -> str:
        """Return the model that writes replies."""
        return self.chat_model or default_chat_model()

    @property
    def system_model_name(self) -> str:
        """Return the model that writes summaries, or `extractive`."""
        return self.system_model or default_system_model()

    def allows_model(self, name: str) -> bool:
        """Return whether administrators allow the model `name`. `extractive` is always allowed."""
        return not self.allowed_models or name in self.allowed_models or name == EXTRACTIVE
