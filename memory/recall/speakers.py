"""Speaker filters of a search. A speaker is selected by username (members), by name, or by the name
that others call them (the speaker Emi is called *Kate*).
"""

import re
from collections import Counter
from dataclasses import replace
from typing import Any

from django.contrib.auth import get_user_model

from memory.models import SourceType
from memory.recall.search import RecallScope
from projects.core.database import fetch
from projects.core.text import storable

MAX_NAME_CHARS = 150
# Maximum number of chunks with the name that are read.
MAX_ADDRESSES = 500
MAX_ADDRESS_CHARS = 1_000
# Two answers of a speaker show that the name is theirs.
MIN_ANSWERS = 2
# "Hey Kate, …", "Thanks, Kate!", "Thanks for the report, Kate."; English and German.
ADDRESS = re.compile(
    r"\b(?:hey|hi|hello|dear|thanks|thank you|bye|sorry|congrats|good morning|good night"
    r"|hallo|moin|liebe|lieber|danke|entschuldige|guten morgen|gute nacht)\b"
    r"(?:[^\n.!?,]{0,60},|,)? ([^\W\d_]{2,30})(?=[,.!?\n]|$)",
    re.IGNORECASE,
)
# `IS TRUE` prevents the planner from reading all chunks of the project instead of the index.
_ADDRESSING = """
    SELECT c.text, c.source, c.last_seq + 1, c.speaker FROM memory_chunk c
    LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) IS TRUE
    WHERE c.terms && memory_terms(%(language)s::text, %(project)s, %(speaker)s::text)
        AND (c.project_id = %(project)s) IS TRUE AND {conditions} LIMIT %(limit)s
"""
_ANSWERS = """
    SELECT c.source, c.first_seq, c.speaker FROM memory_chunk c
    JOIN unnest(%(sources)s::uuid[], %(seqs)s::int[]) place (source, seq)
        ON c.source = place.source AND c.first_seq = place.seq AND c.part = 0
    LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) IS TRUE
    WHERE c.project_id = %(project)s AND c.source_type = 'turn' AND {conditions}
"""
_HAS_SPEAKER = """
    SELECT EXISTS (
        SELECT FROM memory_chunk c
        LEFT JOIN chat_session s ON s.id = c.session_id AND (s.project_id = %(project)s) IS TRUE
        WHERE c.project_id = %(project)s AND {conditions}
    )
"""


def speaker_filters(name: str) -> dict[str, Any]:
    """Return the filters of a RecallScope for the user or the speaker `name`.

    An empty name has none. A name without a user is the name of an imported speaker, or of nobody.
    """
    name = storable(name).strip()[:MAX_NAME_CHARS]
    if not name:
        return {}
    user = get_user_model().objects.filter(username=name).first()
    return {"author": user, "speaker": name}


def resolve_alias(scope: RecallScope) -> RecallScope:
    """If the name in `scope` is a nickname, return `scope` with its speaker as `alias_of`.

    This is the speaker who most often answers messages that address the nickname: at least twice,
    and more often than any other speaker. Only messages that the viewer may read are counted. If a
    speaker has this name, `scope` is returned unchanged.
    """
    if not scope.speaker.isalpha():
        return scope
    visible = RecallScope(
        scope.project, scope.viewer, scope.shared_only, source_types=(SourceType.TURN,)
    )
    best = _answers(visible, scope.speaker).most_common(2)
    (speaker, count), (_, second), *_rest = *best, ("", 0), ("", 0)
    if count < MIN_ANSWERS or count == second:
        return scope
    named = replace(visible, author=scope.author, speaker=scope.speaker)
    if _rows(_HAS_SPEAKER, named, {}) == [(True,)]:
        return scope
    return replace(scope, alias_of=speaker)


def _answers(scope: RecallScope, name: str) -> Counter[str]:
    """Return how often each speaker answers, in the next turn, a message that addresses `name`."""
    parameters = {
        "speaker": name,
        "language": scope.project.search_language_name,
        "limit": MAX_ADDRESSES,
    }
    addressing = {
        (source, seq): speaker
        for text, source, seq, speaker in _rows(_ADDRESSING, scope, parameters)
        if name.lower() in map(str.lower, ADDRESS.findall(text[:MAX_ADDRESS_CHARS]))
    }
    sources, seqs = [source for source, _ in addressing], [seq for _, seq in addressing]
    rows = _rows(_ANSWERS, scope, {"sources": sources, "seqs": seqs}) if addressing else []
    return Counter(speaker for source, seq, speaker in rows if speaker != addressing[source, seq])


def _rows(query: str, scope: RecallScope, parameters: dict[str, Any]) -> list[tuple]:
    return fetch(query.format(conditions=scope.conditions), scope.parameters | parameters)
