"""A wish to forget, in words."""

from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from memory.forgetting.buried import Buried


@dataclass(frozen=True)
class Scope:
    """What to forget in a project; conditions are AND-ed, and one at least is given.

    `message`, `session`, `entry`: ids. `upload`: that of an import; the sessions that it made go
    whole, with what was said in them since, and so does what it added to others. `user`: the id of
    whose words go, with the replies to them. `before`: everything said before that moment. An entry
    goes with what it was made of in memory, and the messages below it are remembered no more; with
    `sources` those are forgotten too. A `fact` goes alone, and is not found again in the sessions
    that told it; with `sources` the messages that tell it go too. With `replies`, those that were
    told any of it go too, and what was made of them. What tombstones name, `buried`, stands alone.
    """

    message: UUID | None = None
    session: UUID | None = None
    entry: UUID | None = None
    fact: UUID | None = None
    upload: UUID | None = None
    user: int | None = None
    before: datetime | None = None
    sources: bool = False
    replies: bool = False
    buried: Buried = Buried()

    @property
    def is_empty(self) -> bool:
        return not self._given and not self.buried

    @property
    def is_whole(self) -> bool:
        """Whether a session, or an import, goes with everything in it, not only messages of it."""
        named = self.session is not None or self.upload is not None
        return named and len(self._given) == 1

    @property
    def names_one(self) -> bool:
        """Whether one thing is named, in which the other conditions choose."""
        named = (self.message, self.session, self.entry, self.upload)
        return any(one is not None for one in named)

    @property
    def _given(self) -> list[object]:
        given = (self.message, self.session, self.entry, self.fact, self.upload)
        return [one for one in (*given, self.user, self.before) if one is not None]
