"""A project's rows, read once, and what is to be found where."""

from collections.abc import Iterable
from dataclasses import dataclass

from chat.conversations.branches import path_to
from chat.models import Message, MessageRevision
from memory.layers.bank_cache import ProjectBank, rendered_bank
from memory.layers.coverage import contributes
from memory.models import Cursor, Entry, EntryRevision, EntryStatus
from memory.moderation.entry_operations import OUTSIDE_LAYERS
from tests.torture.marking_summariser import words
from tests.torture.memory_acts import Team

# What waits for somebody, or for the next cycle.
UNSETTLED = (EntryStatus.STALE, *OUTSIDE_LAYERS)


def words_in(texts: Iterable[str], line: str = "") -> set[str]:
    return {word for text in texts for word in words(text, line)}


@dataclass
class Record:
    """All that there is in one project, read once."""

    bank: ProjectBank
    entries: list[Entry]
    messages: list[Message]
    cursors: list[Cursor]
    # Earlier texts of messages and of entries.
    were: list[MessageRevision]
    were_entries: list[str]

    @classmethod
    def read(cls, team: Team) -> "Record":
        return cls(
            rendered_bank(team.project),
            list(team.project.entries.select_related("session").order_by("session", "first_seq")),
            list(Message.objects.select_related("session").order_by("session", "seq")),
            list(Cursor.objects.select_related("session")),
            list(MessageRevision.objects.all()),
            list(EntryRevision.objects.values_list("summary", flat=True)),
        )

    def contributing(self, session_id) -> list[Message]:
        """What the summaries of a session are to be written from, as it is now."""
        own = [message for message in self.messages if message.session_id == session_id]
        head = own[0].session.head_id if own else None
        return [message for message in path_to(own, head) if contributes(message)]

    def words_of(self, messages: Iterable[Message]) -> set[str]:
        """In all texts that these messages have and had."""
        texts = {message.pk: message.text for message in messages}
        earlier = (message.text for message in self.were if message.message_id in texts)
        return words_in([*texts.values(), *earlier])
