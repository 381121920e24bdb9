"""What a reply is told: sections in a fixed order, inside one token budget.

A section is a function named in `settings.CHAT_PROMPT_SECTIONS`. It takes a Turn and returns a
Section, or None when it has nothing to say; like a context processor, it knows of no other.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TypeVar, cast
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from chat import attachments, spoken, tokens
from chat.models import Message, Role, Session
from chat.sight import Image
from chat.spoken import Spoken
from chat.tooling import ToolCall
from chat.window import PER_MESSAGE

# What is left for the answer itself, as a share of the model's context.
REPLY_SHARE = 0.25

T = TypeVar("T")


@dataclass(frozen=True)
class Said:
    """One message as the model reads it. `role` is system, user, assistant or tool.

    The bytes of `images` are loaded when the message is sent. `counted` are the tokens of `text`
    where they are known. `calls` are those that the assistant made of tools; what a tool said
    `answers` one of them, by its id.
    """

    role: str
    text: str
    images: tuple[Image, ...] = ()
    counted: int | None = None
    calls: tuple[ToolCall, ...] = ()
    answers: str = ""

    @cached_property
    def tokens(self) -> int:
        words = tokens.count(self.text) if self.counted is None else self.counted
        images = sum(image.tokens for image in self.images)
        return words + PER_MESSAGE + images + sum(call.tokens for call in self.calls)

    @property
    def written(self) -> str:
        """All of it in words, for whoever cannot see its images."""
        return "\n".join(filter(None, [self.text, *(image.note for image in self.images)]))


@dataclass(frozen=True)
class Item:
    """One thing that stands in a section, for receipts and for people: its kind, id, revision."""

    kind: str
    id: UUID
    revision: int
    tokens: int
    label: str


@dataclass(frozen=True)
class Section:
    name: str
    said: tuple[Said, ...]
    items: tuple[Item, ...] = ()

    @cached_property
    def tokens(self) -> int:
        return sum(said.tokens for said in self.said)


@dataclass
class Turn:
    """The reply being prepared: `reply_to` is the last message on its path, None before any.

    `reply_to` need not be written yet, as long as it has its `seq` and its parent.
    `budget` is what the section now running may take, in tokens; `shown` are the ids of what the
    sections before it show. `system` is what the program that asks tells the model itself. Where
    nothing is kept, what was said `before` is given, with the images of all by message.
    """

    session: Session
    reply_to: Message | None
    budget: int = 0
    shown: set[UUID] = field(default_factory=set)
    system: str = ""
    before: Sequence[Message] | None = None
    pictures: Mapping[UUID, tuple[Image, ...]] = field(default_factory=dict)
    _handed_on: dict[str, object] = field(default_factory=dict)

    @property
    def project(self):
        return self.session.project

    def once(self, name: str, make: Callable[[], T]) -> T:
        """What `make` gives, made once for all sections that ask for it by this name."""
        if name not in self._handed_on:
            self._handed_on[name] = make()
        return cast(T, self._handed_on[name])

    @cached_property
    def path(self) -> list[Spoken | Message]:
        """The messages down to `reply_to`, oldest first.

        Reads no further back than the window can reach: a long past costs nothing.
        """
        if self.reply_to is None:
            return []
        earlier = self._read if self.before is None else self.before
        return [*(one for one in earlier if one.pk != self.reply_to.pk), self.reply_to]

    @property
    def window_limit(self) -> int:
        """Messages that may stand in the prompt: all that a program brings along."""
        return self.session.window_limit if self.before is None else len(self.path)

    @property
    def question(self) -> str:
        """What recall goes by: what a person said last, though tools have answered since."""
        if self.reply_to is None or self.reply_to.role == Role.USER:
            return self.reply_to.text if self.reply_to else ""
        return next((one.text for one in reversed(self.path) if one.role == Role.USER), "")

    @cached_property
    def _read(self) -> list[Spoken]:
        """The path as it is written."""
        asked = self.reply_to
        if asked is None:
            return []
        limit = self.session.window_limit
        # One that is not written yet has no reactions, but a place.
        last = asked.parent_id if asked.pk is None or asked._state.adding else asked.pk
        # Few do not count; where many do not, as with tools, it is read once more.
        reach = limit * 5 // 4
        read = spoken.path_to(self.session, last, reach + 1)
        if len(read) > reach and sum(one.counts for one in read) < limit:
            read = spoken.path_to(self.session, last, 2 * limit + 1)
        return read

    @cached_property
    def images(self) -> dict[UUID, tuple[Image, ...]]:
        """The images of the messages on the path, by message."""
        if self.before is not None:
            return dict(self.pictures)
        return attachments.images_of(one.pk for one in self._read if one.pictured)

    @cached_property
    def reactions(self) -> dict[UUID, dict[str, int]]:
        """How the messages on the path were received: by message and emoji, how often."""
        if self.before is not None:
            return {}
        return {message.pk: message.reactions for message in self._read if message.given}


SectionFunction = Callable[[Turn], Section | None]


@dataclass(frozen=True)
class Share:
    """The least a section is sure of and the most it may take, as shares of the budget."""

    floor: float
    ceiling: float


def share(
    *, floor: float = 0.0, ceiling: float = 1.0
) -> Callable[[SectionFunction], SectionFunction]:
    """Marks a section function with its share of the budget."""

    def mark(function: SectionFunction) -> SectionFunction:
        function.share = Share(floor, ceiling)  # type: ignore[attr-defined]
        return function

    return mark


@dataclass(frozen=True)
class Prompt:
    sections: tuple[Section, ...]
    budget: int
    model: str = ""
    said: tuple[Said, ...] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "said", _in_one_front(self.sections))

    @property
    def tokens(self) -> int:
        return sum(section.tokens for section in self.sections)

    def receipt(self) -> dict[str, object]:
        """What stood in the prompt, by id and revision; no text."""
        return {
            "budget": self.budget,
            "sections": [
                {
                    "name": section.name,
                    "tokens": section.tokens,
                    "items": [
                        {
                            "kind": item.kind,
                            "id": str(item.id),
                            "revision": item.revision,
                            "tokens": item.tokens,
                        }
                        for item in section.items
                    ],
                }
                for section in self.sections
            ],
        }


def _in_one_front(sections: tuple[Section, ...]) -> tuple[Said, ...]:
    """All that is said, the system's opening words joined into one: many models take only one."""
    said = [said for section in sections for said in section.said]
    front: list[str] = []
    while said and said[0].role == "system":
        front.append(said.pop(0).text)
    if front:
        said.insert(0, Said("system", "\n\n".join(front)))
    return tuple(said)


def context_tokens(model: str) -> int:
    """How many tokens `model` is given for prompt and answer together."""
    return settings.DEMO_CONTEXT_TOKENS if model == "demo" else settings.CONTEXT_TOKENS


def build(turn: Turn) -> Prompt:
    """Runs the sections within the context of the project's chat model.

    Each section may take up to its ceiling, less what later ones are sure of; what one leaves
    unused passes on to those after it. The last section, the message itself, has what it needs
    put aside first.
    """
    model = turn.project.chat_model_name
    budget = int(context_tokens(model) * (1 - REPLY_SHARE))
    functions = [import_string(path) for path in settings.CHAT_PROMPT_SECTIONS]
    *earlier, last = functions
    turn.budget = budget
    closing = last(turn)
    sections = share_out(turn, earlier, budget, closing.tokens if closing else 0)
    if closing is not None:
        sections.append(closing)
    return Prompt(tuple(sections), budget, model)


def share_out(
    turn: Turn, functions: Sequence[SectionFunction], budget: int, taken: int = 0
) -> list[Section]:
    """The sections that `functions` give within `budget` tokens, of which so many are taken."""
    left = budget - taken
    sections: list[Section] = []
    shares = [getattr(function, "share", Share(0.0, 1.0)) for function in functions]
    for index, function in enumerate(functions):
        sure = sum(int(later.floor * budget) for later in shares[index + 1 :])
        turn.budget = max(0, min(int(shares[index].ceiling * budget), left - sure))
        section = function(turn)
        if section is not None:
            sections.append(section)
            left -= section.tokens
            turn.shown.update(item.id for item in section.items)
    return sections


def preview(session: Session, text: str, author) -> Prompt:
    """What the next reply would be told if `author` said `text`. Writes nothing.

    Without a text it is the answer to the message that waits for one, or else what would stand
    before the next message.
    """
    head = _head(session)
    waits = head is not None and head.role == Role.USER and head.deleted_at is None
    if not text and waits:
        return build(Turn(session, head))
    asked = Message(
        id=None,
        session=session,
        seq=session.last_seq + 1,
        parent=head,
        role=Role.USER,
        author=author,
        text=text,
        tokens=tokens.count(text),
    )
    built = build(Turn(session, asked))
    return built if text else replace(built, sections=built.sections[:-1])


def _head(session: Session) -> Message | None:
    if session.head_id is None:
        return None
    return Message.objects.get(project=session.project_id, pk=session.head_id)
