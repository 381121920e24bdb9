"""Writing of saved prompts, and their Markdown files with front matter."""

import re

from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from chat.models import SavedPrompt
from chat.models.saved_prompts import MAX_PROMPT_CHARS, MAX_VARIABLES, PROMPT_NAME, VARIABLE
from projects.core.errors import InvalidInputError, LimitError
from projects.core.text import storable
from projects.models import Project

# The maximum number of a project's prompts, and of each user's personal prompts in a project.
MAX_PROMPTS = 500
MAX_FRONT_MATTER_LINES = 20
_NOT_IN_A_NAME = re.compile(r"[^\w-]")


@transaction.atomic
def put(project: Project, user, name: str, text: str, by) -> SavedPrompt:
    """Set the prompt `name` to `text`, or add it. `user` owns a personal prompt. If it is None, the
    prompt is the project's.

    Raises `InvalidInputError`, or `LimitError` if there are MAX_PROMPTS already.
    """
    text = storable(text).replace("\r\n", "\n").strip()
    if not PROMPT_NAME.fullmatch(name):
        message = _("Use up to 60 letters, digits, hyphens and underscores, such as weekly-report.")
        raise InvalidInputError(message, field="name")
    if not text or len(text) > MAX_PROMPT_CHARS:
        message = _("A prompt has between 1 and %(most)s characters.") % {"most": MAX_PROMPT_CHARS}
        raise InvalidInputError(message, field="text")
    if len(set(VARIABLE.findall(text))) > MAX_VARIABLES:
        message = _("A prompt has at most %(most)s variables.") % {"most": MAX_VARIABLES}
        raise InvalidInputError(message, field="text")
    # One writer after the other, because the number is limited.
    Project.objects.select_for_update(no_key=True).get(pk=project.pk)
    prompts = project.saved_prompts.filter(user=user)
    prompt = prompts.filter(name=name).first() or SavedPrompt(project=project, user=user, name=name)
    if prompt._state.adding and prompts.count() >= MAX_PROMPTS:
        raise LimitError(_("There are %(most)s prompts already.") % {"most": MAX_PROMPTS})
    prompt.text, prompt.written_by, prompt.updated_at = text, by, timezone.now()
    prompt.save()
    return prompt


def to_markdown(prompt: SavedPrompt) -> str:
    """Return the prompt as a Markdown file: its name in the front matter, and the text."""
    return f"---\nname: {prompt.name}\n---\n\n{prompt.text}\n"


def from_markdown(content: str, file_name: str = "") -> tuple[str, str]:
    """Return the name and the text of a Markdown file. Without a `name` in its front matter, the
    name is that of the file.
    """
    content = content.removeprefix("\ufeff").replace("\r\n", "\n")
    name, text = "", content
    if content.startswith("---\n"):
        head, separator, body = content[4:].partition("\n---\n")
        lines = head.split("\n", MAX_FRONT_MATTER_LINES)
        if separator and len(lines) <= MAX_FRONT_MATTER_LINES:
            text = body
            fields = dict(line.partition(":")[::2] for line in lines)
            name = fields.get("name", "").strip().strip("\"'")
    if not name:
        stem = file_name.rsplit("/", 1)[-1].removesuffix(".md")[:60]
        name = _NOT_IN_A_NAME.sub("-", stem).strip("-_")
    return name, text.strip()
