"""What memory says of a project to a model that is asked something elsewhere."""

from dataclasses import dataclass
from typing import Any

from django.conf import settings
from django.utils.module_loading import import_string

from chat import tokens
from chat.models import Message, Role, Session, Visibility
from chat.prompt import Section, Turn, share_out
from chat.storable import storable
from projects.models import Project


@dataclass(frozen=True)
class Briefing:
    """The text, quoted as data inside fences, its tokens (cl100k_base), and of what it consists."""

    text: str
    tokens: int
    sections: tuple[Section, ...]


def brief(project: Project, user: Any, query: str, token_budget: int) -> Briefing:
    """What `user` is told by memory before an answer to `query`, within `token_budget` tokens: as
    in a private conversation of theirs that has just begun. Nothing is written.
    """
    session = Session(project=project, creator=user, visibility=Visibility.PRIVATE)
    text = storable(query).strip()
    asked = Message(session=session, seq=1, role=Role.USER, author=user, text=text)
    sections = share_out(Turn(session, asked), _memory_sections(), token_budget)
    told = "\n\n".join(said.text for section in sections for said in section.said)
    return Briefing(told, tokens.count(told), tuple(sections))


def _memory_sections() -> list[Any]:
    return [
        import_string(path) for path in settings.CHAT_PROMPT_SECTIONS if path.startswith("memory.")
    ]
