"""What a wish to forget comes to, by ids."""

from dataclasses import dataclass, field
from uuid import UUID


@dataclass
class Found:
    """What goes. Rows of `messages` stay as empty places, those of `sessions` go.

    `unremembered` are messages that stay in their chats and settle into memory no more; `touched`
    are the sessions that lose or change something and stay.
    """

    messages: set[UUID] = field(default_factory=set)
    unremembered: set[UUID] = field(default_factory=set)
    sessions: set[UUID] = field(default_factory=set)
    touched: set[UUID] = field(default_factory=set)
    # Entries made only of it, which go; and those with other sources too, which are withheld.
    entries: set[UUID] = field(default_factory=set)
    withheld: set[UUID] = field(default_factory=set)
    blocks: set[UUID] = field(default_factory=set)
    uploads: set[UUID] = field(default_factory=set)
    # Facts that go whatever else tells them, and sources of facts.
    facts: set[UUID] = field(default_factory=set)
    told: set[UUID] = field(default_factory=set)
    # Entries and facts that were meant themselves, not only for what they rest on.
    named_entries: set[UUID] = field(default_factory=set)
    named_facts: set[UUID] = field(default_factory=set)
    # Whose words go, and what they left beside them: reactions, images not sent, writing by hand.
    user: int | None = None
