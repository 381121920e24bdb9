"""The floor: a baseline ranker without fitted weights, which a fitted ranker must beat.

The score of a message is the sum of two standardised values: the BM25 score of the message with its
two neighbours, and the cosine of its vector. Messages are not split, and words are reduced to
English stems.
"""

from dataclasses import dataclass
from datetime import datetime
from itertools import pairwise

import numpy as np

from chat.models import Message, Role
from memory.recall.embedders.base import Matrix
from memory.recall.embedders.static import get_static_embedder
from memory.recall.evaluation.labelled import LabelledQuestion
from memory.recall.ranking import Bools, Floats, Ints, bm25
from memory.recall.service import format_excerpt
from projects.core import token_counting
from projects.core.database import fetch
from projects.models import Project


@dataclass(frozen=True)
class Turns:
    """The messages of a project in order: one column per field, and the start of each session."""

    keys: list[str]
    sessions: list[str]
    times: list[datetime]
    starts: dict[str, datetime]
    words: list[dict[str, int]]
    vectors: Matrix
    tokens: Ints
    by_assistant: Bools


def read_turns(project: Project) -> Turns:
    """Return the messages that have text."""
    rows = list(
        Message.objects.filter(project=project)
        .exclude(text="")
        .select_related("session", "author")
        .order_by("session__created_at", "session", "seq")
    )
    texts = [row.text for row in rows]
    sessions = [(row.session.source_key or "").partition(":")[2] for row in rows]
    starts: dict[str, datetime] = {}
    for session, row in zip(sessions, rows, strict=True):
        starts.setdefault(session, row.created_at)
    lines = (format_excerpt(row.created_at, row.speaker, row.text, project.zone) for row in rows)
    return Turns(
        keys=[row.source_key or "" for row in rows],
        sessions=sessions,
        times=[row.created_at for row in rows],
        starts=starts,
        words=[word_counts(text) for text in texts],
        vectors=get_static_embedder().embed_documents(texts),
        tokens=np.array([token_counting.count(line) for line in lines], np.int64),
        by_assistant=np.array([row.role == Role.ASSISTANT for row in rows], bool),
    )


def word_counts(text: str) -> dict[str, int]:
    """Return how often each English word stem occurs in `text`, as PostgreSQL counts them."""
    query = "SELECT lexeme, cardinality(positions) FROM unnest(to_tsvector('english', %s))"
    return dict(fetch(query, [text]))


def rank(turns: Turns, question: LabelledQuestion) -> tuple[Ints, Floats]:
    """Return the indexes of the turns that may be searched for the question, and their scores."""
    rows = np.array(
        [
            index
            for index, session in enumerate(turns.sessions)
            if question.until is None or turns.starts[session] < question.until
        ],
        np.int64,
    )
    if not len(rows):
        return rows, np.zeros(0, np.float32)
    terms = list(word_counts(question.text))
    counts = np.array([[turns.words[row].get(term, 0) for term in terms] for row in rows], float)
    length = np.array([sum(turns.words[row].values()) for row in rows], float) + 1
    document_count = (counts > 0).sum(axis=0)
    idf = np.log(1 + (len(rows) - document_count + 0.5) / (document_count + 0.5))
    is_same_session = [turns.sessions[a] == turns.sessions[b] for a, b in pairwise(rows.tolist())]
    window_counts, window_length = counts.copy(), length.copy()
    for index, joined in enumerate(is_same_session):
        if joined:
            window_counts[index] += counts[index + 1]
            window_counts[index + 1] += counts[index]
            window_length[index] += length[index + 1]
            window_length[index + 1] += length[index]
    words = bm25(window_counts, window_length, idf)
    cosine = turns.vectors[rows] @ get_static_embedder().embed_query(question.text)
    return rows, standardise(words) + standardise(cosine)


def standardise(values: Floats) -> Floats:
    return (values - values.mean()) / max(float(values.std()), 1e-9)
