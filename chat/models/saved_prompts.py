"""Saved prompts: texts that people insert into the composer, of a project or of one user in it."""

import re

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.models import IdModel, Membership, ProjectScopedModel
from projects.models.keys import optional_user_key, project_key

MAX_PROMPT_CHARS = 20_000
MAX_VARIABLES = 20
PROMPT_NAME = re.compile(r"[^\W_][\w-]{0,59}")
# Bounded in every part, so that a search is linear in the length of the text.
VARIABLE = re.compile(r"\{\{ {0,3}([^\W\d_]\w{0,39}) {0,3}\}\}")


def validate_prompt_name(name: str) -> None:
    if not PROMPT_NAME.fullmatch(name):
        raise ValidationError(
            _("Use up to 60 letters, digits, hyphens and underscores, such as weekly-report.")
        )


class SavedPromptQuerySet(models.QuerySet["SavedPrompt"]):
    def visible_to(self, member: Membership) -> "SavedPromptQuerySet":
        """Return the prompts of the member's project and the member's own, by name."""
        mine = Q(user=None) | Q(user=member.user_id)
        return self.filter(mine, project=member.project_id).order_by("name", "pk")


class SavedPrompt(IdModel, ProjectScopedModel):
    """A named text with variables such as `{{customer}}`, of a project or of one user in it."""

    project = project_key("saved_prompts", db_index=False)
    user = optional_user_key(
        on_delete=models.CASCADE,
        help_text=_("The user of a personal prompt. Empty: a prompt of the project."),
    )
    name = models.CharField(_("name"), max_length=60, validators=[validate_prompt_name])
    text = models.TextField(_("text"), max_length=MAX_PROMPT_CHARS)
    written_by = optional_user_key(_("written by"), help_text=_("Who wrote the text last."))
    updated_at = models.DateTimeField(_("changed at"), default=timezone.now)

    objects = SavedPromptQuerySet.as_manager()

    class Meta:
        verbose_name = _("saved prompt")
        verbose_name_plural = _("saved prompts")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "user", "name"],
                name="one_saved_prompt_a_name",
                nulls_distinct=False,
            )
        ]

    def __str__(self) -> str:
        return self.name

    @property
    def variables(self) -> list[str]:
        """The names of the variables, in the order of their first use."""
        return list(dict.fromkeys(VARIABLE.findall(self.text)))
