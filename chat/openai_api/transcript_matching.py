"""Decides whether a request continues a stored session, and at which position. Pure.

With each request, clients send their copy of the conversation: all messages, the last messages, or
only the new ones. The copy differs from the stored messages: stopped replies may be shorter, white
space differs, and users may have edited messages. The stored messages are authoritative. The
request only determines the position.
"""

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from uuid import UUID

# The same as in `chat.models.Role`, which would require Django.
USER, ASSISTANT = "user", "assistant"
# The length of the excerpt of a message that is searched for in a prompt that may quote it.
QUOTE_CHARS = 80
# The maximum length of the text that is searched for patterns of clients' own prompts.
MAX_SEARCHED_CHARS = 100_000
# The maximum number of latest messages of a request that are looked up on the path, and of equal
# messages that are counted for a position. Comparing 2,000 messages would take seconds.
MAX_LOOKUPS = 64
# The minimum length of a quoted exchange. A shorter one may occur in a message by chance.
MIN_QUOTED_CHARS = 40

# The parts of a reply that Open WebUI shows folded: reasoning, tool calls.
_FOLDED = re.compile(r"<details type=.*?(?:</details>|\Z)", re.DOTALL)
# The beginnings of prompts with which Open WebUI and LibreChat request titles, tags and searches.
_TASK_PROMPT = re.compile(
    r"\A\s*(?:### Task:.*(?:<chat_history>|### Chat History)"
    r"|Analyze this conversation and provide:"
    r"|Provide a concise, 5-word-or-less title)",
    re.DOTALL,
)
_SPEAKER_LABELS = re.compile(
    r"^[^\w\n]{0,20}(?:user|human|assistant|ai)[^\w\n]{0,20}:", re.IGNORECASE | re.MULTILINE
)


@dataclass(frozen=True)
class ComparedMessage:
    """A message of a request or, with an `id`, a stored message.

    `calls` are the ids of its tool calls, and `images` are digests. The last two fields are for
    stored messages: `from_api` is true if the message was stored from a request to this API.
    """

    role: str
    text: str
    calls: frozenset[str] = frozenset()
    tool_call_id: str = ""
    images: tuple[str, ...] = ()
    id: UUID | None = None
    from_api: bool = False
    is_deleted: bool = False

    @cached_property
    def normalized_text(self) -> str:
        """The text to compare: without folded parts, and with white space collapsed."""
        return " ".join(unicodedata.normalize("NFC", _FOLDED.sub(" ", self.text)).split())


@dataclass(frozen=True)
class Continuation:
    """The request continues the active path or, if `below` is set, begins a branch below that
    message.

    The messages of the request from the index `start` on are not stored yet.
    """

    start: int
    below: UUID | None = None


@dataclass(frozen=True)
class Regeneration:
    """The request asks for another reply to a stored message."""

    id: UUID


Match = Continuation | Regeneration | None


def match_transcript(
    path: Sequence[ComparedMessage], request: Sequence[ComparedMessage], is_new: bool
) -> Match:
    """Return how `request` continues the session with the active path `path`, or None if it does
    not.

    The last message of the request must be of a user. Earlier messages of the request that are
    missing are stored too, if the session `is_new` or if they follow the end of its path. They
    never replace stored messages.
    """
    *earlier, new = request
    if _TASK_PROMPT.match(new.text[:MAX_SEARCHED_CHARS]) or _quotes_last_exchange(new, path):
        return None
    if not path:
        return Continuation(0 if is_new else len(earlier))
    if not earlier:
        latest = next((line for line in reversed(path) if line.role == USER), None)
        return _regeneration(latest, new) or Continuation(0)
    position = _find_position(path, earlier)
    if position is None:
        return None
    known, index = position
    following = path[index:]
    if not following:
        return Continuation(known)
    from_users = [line for line in following if line.role == USER]
    if known == len(earlier) and from_users:
        if regeneration := _regeneration(from_users[0], new):
            return regeneration
        # The client omits messages that it sent before, so the request replaces them. Messages that
        # were posted elsewhere stay on the path, because the client does not know them.
        if all(line.from_api for line in from_users):
            return Continuation(known, path[index - 1].id)
    return Continuation(len(earlier))


def _regeneration(stored: ComparedMessage | None, new: ComparedMessage) -> Regeneration | None:
    if stored is None or stored.id is None or stored.is_deleted:
        return None
    same_text = stored.normalized_text == new.normalized_text
    same = same_text and sorted(stored.images) == sorted(new.images)
    return Regeneration(stored.id) if same else None


def _quotes_last_exchange(new: ComparedMessage, path: Sequence[ComparedMessage]) -> bool:
    """Return True if `new` quotes the last exchange, like prompts for titles and tags.

    While a reply is being streamed, some of these prompts quote only the question.
    """
    turns = [it for it in path if it.normalized_text and it.role in (USER, ASSISTANT)]
    questions = [index for index, line in enumerate(turns) if line.role == USER]
    if not questions:
        return False
    question = turns[questions[-1]].normalized_text[:QUOTE_CHARS]
    answer = turns[-1].normalized_text[:QUOTE_CHARS] if turns[-1].role == ASSISTANT else ""
    _, quoted, rest = new.normalized_text.partition(question)
    if not quoted or answer not in rest:
        return False
    has_labels = bool(_SPEAKER_LABELS.search(new.text[:MAX_SEARCHED_CHARS]))
    return has_labels or bool(answer and len(question) + len(answer) >= MIN_QUOTED_CHARS)


def _find_position(
    path: Sequence[ComparedMessage], earlier: Sequence[ComparedMessage]
) -> tuple[int, int] | None:
    """Return how many of `earlier` are stored, and the index on the path after them."""
    for last in range(len(earlier) - 1, max(len(earlier) - MAX_LOOKUPS, 0) - 1, -1):
        candidates = [index for index, line in enumerate(path) if _is_same(earlier[last], line)]
        if candidates:
            best = max(candidates, key=lambda index: (_overlap(path, earlier, index, last), index))
            return _skip_edited_replies(path, earlier, best + 1, last + 1)
    return None


def _overlap(
    path: Sequence[ComparedMessage], earlier: Sequence[ComparedMessage], index: int, last: int
) -> int:
    """Return how many messages in a row, back from `index` and `last`, are equal."""
    back = 1
    while back <= min(index, last, MAX_LOOKUPS) and _is_same(
        earlier[last - back], path[index - back]
    ):
        back += 1
    return back


def _skip_edited_replies(
    path: Sequence[ComparedMessage], earlier: Sequence[ComparedMessage], index: int, known: int
) -> tuple[int, int]:
    """Advance past replies that differ because one was edited. The stored reply counts."""
    while (
        known < len(earlier)
        and index < len(path)
        and earlier[known].role == path[index].role != USER
    ):
        known, index = known + 1, index + 1
    return known, index


def _is_same(sent: ComparedMessage, stored: ComparedMessage) -> bool:
    if sent.role != stored.role:
        return False
    if sent.tool_call_id or sent.calls:
        return (sent.tool_call_id, sent.calls) == (stored.tool_call_id, stored.calls)
    if sent.normalized_text == stored.normalized_text:
        return True
    # If a reply was stopped, one copy is the beginning of the other.
    if sent.role != ASSISTANT or not (sent.normalized_text and stored.normalized_text):
        return False
    return stored.normalized_text.startswith(sent.normalized_text) or (
        sent.normalized_text.startswith(stored.normalized_text)
    )
