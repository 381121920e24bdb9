"""Blocks: pinned text that people write themselves and that is part of every prompt."""

import re

from django.core.exceptions import ValidationError
from django.db import models
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from projects.models import IdModel, Membership, ProjectScopedModel
from projects.models.keys import optional_user_key, project_key

BLOCK_NAME = re.compile(r"[^\W_][\w-]{0,59}")
# The maximum length of a block, about 5,000 tokens of prose.
MAX_BLOCK_CHARS = 20_000


def validate_block_name(name: str) -> None:
    if not BLOCK_NAME.fullmatch(name):
        raise ValidationError(
            _("Use up to 60 letters, digits, hyphens and underscores, such as house-rules.")
        )


class BlockQuerySet(models.QuerySet["Block"]):
    def of(self, user) -> "BlockQuerySet":
        """Return the personal blocks of `user`, or for None the blocks of the project."""
        return self.filter(user=user)

    def visible_to(self, member: Membership) -> "BlockQuerySet":
        """Return the blocks of the member's project and the member's own blocks in it."""
        mine = Q(user=None) | Q(user=member.user_id)
        return self.filter(mine, project=member.project_id)

    def in_order(self) -> "BlockQuerySet":
        """Sort the blocks as in the prompt: first the project's blocks, then personal ones."""
        return self.order_by(models.F("user").asc(nulls_first=True), "position", "name")


class Block(IdModel, ProjectScopedModel):
    """A named text of a project, or of one user in it. `version` increases with every change."""

    project = project_key("blocks", db_index=False)
    user = optional_user_key(
        on_delete=models.CASCADE,
        help_text=_("The user of a personal block. Empty: a block of the project."),
    )
    name = models.CharField(_("name"), max_length=60, validators=[validate_block_name])
    content = models.TextField(_("text"), blank=True, max_length=MAX_BLOCK_CHARS)
    position = models.PositiveIntegerField(
        _("position"),
        default=0,
        help_text=_("The position among the blocks of the project or of the user, from 0."),
    )
    tokens = models.PositiveIntegerField(
        _("tokens"), help_text=_("Tokens of the block in prompts (cl100k_base).")
    )
    version = models.PositiveIntegerField(_("version"), default=1)
    written_by = optional_user_key(
        _("written by"),
        help_text=_("The only author. Empty: several authors, or a deleted account."),
    )
    created_at = models.DateTimeField(_("created at"), default=timezone.now)
    updated_at = models.DateTimeField(_("changed at"), default=timezone.now)

    objects = BlockQuerySet.as_manager()

    class Meta:
        verbose_name = _("pinned text")
        verbose_name_plural = _("pinned texts")
        constraints = [
            models.UniqueConstraint(
                fields=["project", "user", "name"], name="one_block_a_name", nulls_distinct=False
            )
        ]

    def __str__(self) -> str:
        return self.name
