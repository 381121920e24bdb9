"""The memory sections of a prompt as one text, for models that other programs call (MCP)."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from chat.models import Message, Role, Session, Visibility
from chat.prompt.builder import Turn, run_sections
from chat.prompt.types import PromptSection
from chat.providers.booking import Payer
from projects.core import token_counting
from projects.core.text import storable
from projects.models import Project


@dataclass(frozen=True)
class ContextText:
    """The quoted text, its number of tokens (cl100k_base) and its sections."""

    text: str
    tokens: int
    sections: tuple[PromptSection, ...]


def build_context_text(
    project: Project, user: Any, query: str, token_budget: int, payer: Payer
) -> ContextText:
    """Return the memory sections of a prompt for `query`, in at most `token_budget` tokens. The
    search is booked on `payer`.

    The sections are those of a new private conversation of `user` that begins with `query`. Nothing
    is stored.
    """
    session = Session(project=project, creator=user, visibility=Visibility.PRIVATE)
    text = storable(query).strip()
    message = Message(session=session, seq=1, role=Role.USER, author=user, text=text)
    paths = [path for path in settings.CHAT_PROMPT_SECTIONS if path.startswith("memory.")]
    functions = [import_string(path) for path in paths]
    sections = run_sections(Turn(session, message, payer=payer), functions, token_budget)
    context = "\n\n".join(message.text for section in sections for message in section.messages)
    return ContextText(context, token_counting.count(context), tuple(sections))
