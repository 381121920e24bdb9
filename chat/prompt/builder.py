"""Builds the prompt of a reply: sections in a fixed order within one token budget.

A section is a function that is listed in `CHAT_PROMPT_SECTIONS` in `config/settings/models.py`. Its
argument is a Turn. It returns a PromptSection, or None if it has nothing to add. Sections share
nothing but `Turn.shown_ids` and the results of `Turn.shared`.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar, cast
from uuid import UUID

from django.conf import settings
from django.utils.module_loading import import_string

from chat import attachments
from chat.models import Message, Role, Session
from chat.prompt import history
from chat.prompt.history import HistoryMessage
from chat.prompt.types import BudgetShare, Prompt, PromptImage, PromptSection
from chat.providers.limits import Payer

# The share of the model's context that is reserved for the answer.
REPLY_SHARE = 0.25

T = TypeVar("T")


@dataclass
class Turn:
    """The input of the prompt sections: a reply that is being prepared, and its session. `reply_to`
    is the message that it answers; None in a new chat.

    `reply_to` may be unsaved if its `seq` and parent are set. `budget` is the maximum number of
    tokens of the current section. `shown_ids` are the ids of the items that earlier sections
    contain completely. `system` is the system text from an API client. For a request that is not
    stored, `stateless_history` has the earlier messages, and `stateless_images` the images by
    message. If `chosen_model` is set, it answers instead of the session's model. Searches for the
    prompt are booked on `payer`.
    """

    session: Session
    reply_to: Message | None
    budget: int = 0
    shown_ids: set[UUID] = field(default_factory=set)
    system: str = ""
    stateless_history: Sequence[Message] | None = None
    stateless_images: Mapping[UUID, tuple[PromptImage, ...]] = field(default_factory=dict)
    chosen_model: str = ""
    payer: Payer = Payer()
    _shared: dict[str, object] = field(default_factory=dict)

    @property
    def project(self):
        return self.session.project

    @property
    def model(self) -> str:
        return self.chosen_model or self.session.chat_model_name

    def shared(self, name: str, compute: Callable[[], T]) -> T:
        """Return the result of `compute`. It is computed once for all sections that use `name`."""
        if name not in self._shared:
            self._shared[name] = compute()
        return cast(T, self._shared[name])

    @cached_property
    def path(self) -> list[HistoryMessage | Message]:
        """The latest messages up to `reply_to`, oldest first: at least those that the prompt may
        contain.
        """
        if self.reply_to is None:
            return []
        earlier = self.stored_path if self.stateless_history is None else self.stateless_history
        return [*(message for message in earlier if message.pk != self.reply_to.pk), self.reply_to]

    @property
    def window_limit(self) -> int:
        """The maximum number of messages in the prompt. Stateless requests have no limit."""
        return self.session.window_limit if self.stateless_history is None else len(self.path)

    @property
    def question(self) -> str:
        """The query for recall: the last user message, even if results of tools follow it."""
        if self.reply_to is None or self.reply_to.role == Role.USER:
            return self.reply_to.text if self.reply_to else ""
        texts = (
            message.text
            for message in reversed(self.path)
            if message.role == Role.USER and self.is_visible(message)
        )
        return next(texts, "")

    def is_visible(self, message: HistoryMessage | Message) -> bool:
        """Return False for a deleted message, unless the project has `keep_deleted` and no
        moderator hid the message.
        """
        if message.deleted_at is None:
            return True
        return self.project.keep_deleted and message.hidden_at is None

    @cached_property
    def stored_path(self) -> list[HistoryMessage]:
        """The stored messages of `path`."""
        last = self.reply_to
        if last is None:
            return []
        limit = self.session.window_limit
        head = last.parent_id if last.pk is None or last._state.adding else last.pk
        # Messages that do not count for the window, such as deleted messages, are usually few. If
        # they are many, a second query reads further back.
        reach = limit * 5 // 4
        messages = history.path_to(self.session, head, reach + 1)
        if len(messages) > reach and sum(message.counts for message in messages) < limit:
            messages = history.path_to(self.session, head, 2 * limit + 1)
        return messages

    @cached_property
    def images(self) -> dict[UUID, tuple[PromptImage, ...]]:
        """The images on the path, by message."""
        if self.stateless_history is not None:
            return dict(self.stateless_images)
        return attachments.prompt_images_by_message(
            message.pk for message in self.stored_path if message.has_images
        )

    @cached_property
    def reactions(self) -> dict[UUID, dict[str, int]]:
        """The reactions on the path: a count for each message and emoji."""
        if self.stateless_history is not None:
            return {}
        return {
            message.pk: message.reactions for message in self.stored_path if message.reaction_counts
        }


SectionFunction = Callable[[Turn], PromptSection | None]


def context_tokens(model: str) -> int:
    """Return the size of the model's context in tokens, for prompt and answer together."""
    return settings.DEMO_CONTEXT_TOKENS if model == "demo" else settings.CONTEXT_TOKENS


def build(turn: Turn, tool_tokens: int = 0) -> Prompt:
    """Run the sections and return the prompt, within the context of the turn's model.

    The declarations of offered tools take `tool_tokens` of the context. Room for the last section,
    the message itself, is reserved first.
    """
    model = turn.model
    budget = max(0, int(context_tokens(model) * (1 - REPLY_SHARE)) - tool_tokens)
    *earlier, last = [import_string(path) for path in settings.CHAT_PROMPT_SECTIONS]
    turn.budget = budget
    closing = last(turn)
    sections = run_sections(turn, earlier, budget, closing.tokens if closing else 0)
    if closing is not None:
        sections.append(closing)
    return Prompt(tuple(sections), budget, model)


def run_sections(
    turn: Turn, functions: Sequence[SectionFunction], budget: int, reserved: int = 0
) -> list[PromptSection]:
    """Return the sections of `functions`, in at most `budget` minus `reserved` tokens.

    A section may use at most its maximum share (`ceiling`), and must leave the tokens that are
    reserved for later sections (their `floor`). If too little is left for its own floor and theirs,
    it may still use its own. Tokens that it does not use are available to later sections.
    """
    left = budget - reserved
    sections: list[PromptSection] = []
    shares = [getattr(function, "share", BudgetShare()) for function in functions]
    for index, function in enumerate(functions):
        own = shares[index]
        floors = sum(int(later.floor * budget) for later in shares[index + 1 :])
        room = max(left - floors, min(left, int(own.floor * budget)))
        turn.budget = max(0, min(int(own.ceiling * budget), room))
        section = function(turn)
        if section is not None:
            sections.append(section)
            left -= section.tokens
            # If only some lines of an entry are shown, a later section may still contain the whole
            # entry.
            turn.shown_ids.update(it.id for it in section.items if len(it.lines) == it.of)
    return sections
