"""Metrics of recall. Labelled conversations are imported, indexed and searched like other chats.

- R@k: the mean share of a question's evidence that is in the k best messages.
- A@b: the share of questions whose evidence is completely in the excerpts that fit into b tokens,
  with date and speaker as in prompts. A long message counts as found if any part of it is packed.
- S@b: the same for sessions, in sets that name the sessions to find.
"""

import time
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from statistics import fmean, quantiles
from uuid import uuid4

import numpy as np
from django.contrib.auth import get_user_model
from django.db import transaction

from chat.importers.base import ImportResult
from chat.importers.writer import ImportWriter
from chat.models import Message, Role, Session
from memory.recall import ranking, reindexing
from memory.recall.evaluation import floor
from memory.recall.evaluation.labelled import LabelledConversation, LabelledQuestion
from memory.recall.ranking import Bools, Floats, Ints
from memory.recall.search import RecallScope
from memory.recall.service import find_ranked, pack_into_budget, pack_ranked, recall
from projects.models import Project
from projects.services import create_project, delete_project, unused_slug

RANKS = (5, 10)
# The budget, in tokens, for the figures by kind of question and for the assistant's share.
MAIN_BUDGET = 2_000
KINDS = f"A@{MAIN_BUDGET} by kind"
FORMAT = "evaluation"


@dataclass(frozen=True)
class RankedQuestion:
    """The candidates for a question: their signals, and which of them contain evidence.

    `messages` has the keys of the messages of each candidate, and `session_of` the number of its
    session. `evidence` and `sessions` have a row for each message or session to find, and a column
    for each candidate.
    """

    conversation: str
    kind: str
    messages: Sequence[tuple[str, ...]]
    signals: Mapping[str, Floats]
    tokens: Ints
    by_assistant: Bools
    evidence: Bools
    sessions: Bools
    session_of: Ints
    message_share: float = 0

    def scores(self, weights: Mapping[str, float]) -> Floats:
        if not self.messages:
            return np.zeros(0, np.float32)
        return ranking.total_scores(ranking.score_contributions(self.signals, weights))


@dataclass
class SetFigures:
    """The values of each figure for the questions of one set, each with its conversation."""

    values: dict[str, list[tuple[str, float]]] = field(default_factory=lambda: defaultdict(list))
    kinds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    questions: int = 0

    def add(self, figure: str, conversation: str, value: float) -> None:
        self.values[figure].append((conversation, value))

    def summary(self) -> dict[str, object]:
        """Return the means, A also by kind of question, and the lowest and highest mean of a
        conversation.
        """
        means: dict[str, object] = {"questions": self.questions}
        spread = {}
        for figure, values in self.values.items():
            means[figure] = round(fmean(value for _, value in values), 4)
            by_conversation = defaultdict(list)
            for conversation, value in values:
                by_conversation[conversation].append(value)
            of_each = [fmean(conversation) for conversation in by_conversation.values()]
            spread[figure] = [round(min(of_each), 4), round(max(of_each), 4)]
        kinds = {kind: round(fmean(values), 4) for kind, values in sorted(self.kinds.items())}
        return means | {KINDS: kinds, "spread": spread}


def measure(
    questions: Sequence[RankedQuestion], weights: Mapping[str, float], budgets: Sequence[int]
) -> SetFigures:
    """Return the figures of a set, ranked with `weights`."""
    figures = SetFigures()
    for question in questions:
        scores = question.scores(weights)
        packed = {
            budget: np.array(
                pack_ranked(
                    scores, question.tokens, question.session_of, question.message_share, budget
                ),
                np.int64,
            )
            for budget in budgets
        }
        measure_order(figures, question, np.argsort(-scores, kind="stable"), packed)
    return figures


def measure_order(
    figures: SetFigures, question: RankedQuestion, order: Ints, packed: Mapping[int, Ints]
) -> None:
    """Add the figures of one question. `order` are the candidates, best first. `packed` are the
    candidates that are packed into each budget.
    """
    figures.questions += 1
    if len(question.evidence):
        for k in RANKS:
            rows = best_messages(question, order, k)
            found = question.evidence[:, rows].any(axis=1)
            figures.add(f"R@{k}", question.conversation, float(found.mean()))
    for budget, rows in packed.items():
        for name, wanted in (("A", question.evidence), ("S", question.sessions)):
            if len(wanted):
                complete = float(wanted[:, rows].any(axis=1).all())
                figures.add(f"{name}@{budget}", question.conversation, complete)
                if name == "A" and budget == MAIN_BUDGET:
                    figures.kinds[question.kind].append(complete)
        if budget == MAIN_BUDGET and len(rows):
            size = question.tokens[rows]
            share = float(size[question.by_assistant[rows]].sum() / size.sum())
            figures.add("assistant_share", question.conversation, share)
            figures.add("tokens", question.conversation, float(size.sum()))


def best_messages(question: RankedQuestion, order: Ints, count: int) -> Ints:
    """Return as many of the first candidates in `order` as are needed for `count` messages."""
    messages: set[str] = set()
    for rank, row in enumerate(order):
        messages.update(question.messages[row])
        if len(messages) >= count:
            return order[: rank + 1]
    return order


@dataclass
class Evaluation:
    """The ranked questions of each set, the figures of the baseline, and search times in ms."""

    questions: dict[str, list[RankedQuestion]] = field(default_factory=lambda: defaultdict(list))
    floors: dict[str, dict[str, SetFigures]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)

    def time_percentiles(self) -> dict[str, float]:
        cuts = quantiles(self.times, n=100) if len(self.times) > 1 else [0.0] * 99
        return {"p50_ms": round(cuts[49], 2), "p95_ms": round(cuts[94], 2)}


def collect(
    conversations: Iterator[LabelledConversation],
    budgets: Sequence[int],
    with_floor: bool = False,
    report: Callable[[str], None] = lambda line: None,
) -> Evaluation:
    """Search for every question of every conversation, and return the ranked questions."""
    evaluation = Evaluation()
    for conversation in conversations:
        with temporary_project(conversation) as (project, owner):
            keys = MessageKeys.of(project)
            for question in conversation.questions:
                scope = RecallScope(project, owner, until=question.until)
                began = time.perf_counter()
                recall(scope, question.text, token_budget=MAIN_BUDGET)
                evaluation.times.append(1_000 * (time.perf_counter() - began))
                evaluation.questions[conversation.set_name].append(
                    rank_question(scope, conversation.name, question, keys)
                )
            if with_floor:
                add_floor(evaluation, conversation, project, budgets)
        report(f"{conversation.name}: {len(conversation.questions)} questions")
    return evaluation


def add_floor(
    evaluation: Evaluation,
    conversation: LabelledConversation,
    project: Project,
    budgets: Sequence[int],
) -> None:
    """Measure the baseline over all turns and, in sets with an assistant, over those of people."""
    turns = floor.read_turns(project)
    figures = evaluation.floors.setdefault(conversation.set_name, {})
    for question in conversation.questions:
        rows, scores = floor.rank(turns, question)
        ranked = label_rows(
            conversation.name,
            question,
            [(turns.keys[row],) for row in rows],
            [turns.sessions[row] for row in rows],
            {},
            turns.tokens[rows],
            turns.by_assistant[rows],
        )
        best_first = np.argsort(-scores, kind="stable")
        orders = {"all turns": best_first}
        if any(turns.by_assistant):
            orders["people's turns"] = best_first[~ranked.by_assistant[best_first]]
        for name, order in orders.items():
            tokens = ranked.tokens[order].tolist()
            packed = {budget: order[pack_into_budget(tokens, budget)] for budget in budgets}
            measure_order(figures.setdefault(name, SetFigures()), ranked, order, packed)


@contextmanager
def temporary_project(conversation: LabelledConversation) -> Iterator[tuple[Project, object]]:
    """Import and index a conversation in a new project, and yield the project and its owner.

    The project is deleted at the end.
    """
    name = f"evaluation-{uuid4().hex[:12]}"
    owner = get_user_model().objects.create_user(name, password=None, is_active=False)
    try:
        project = create_project(owner, name=name, slug=unused_slug(name))
        try:
            with transaction.atomic():
                ImportWriter(project, owner).write(FORMAT, conversation.sessions, ImportResult())
            reindexing.index_until_done(project)
            yield project, owner
        finally:
            delete_project(project)
    finally:
        owner.delete()


@dataclass(frozen=True)
class MessageKeys:
    """The keys that the labelled file uses for messages (by session and `seq`) and sessions."""

    messages: Mapping[tuple[object, int], str]
    sessions: Mapping[object, str]

    @classmethod
    def of(cls, project: Project) -> "MessageKeys":
        rows = Message.objects.filter(project=project).values_list("session", "seq", "source_key")
        sessions = Session.objects.filter(project=project).values_list("pk", "source_key")
        return cls(
            {(session, seq): key or "" for session, seq, key in rows},
            {pk: (key or "").partition(":")[2] for pk, key in sessions},
        )


def rank_question(
    scope: RecallScope, conversation: str, question: LabelledQuestion, keys: MessageKeys
) -> RankedQuestion:
    """Return the candidates for one question, limited to the scope, with their signals."""
    ranked = find_ranked(scope, question.text)
    indexes = [index for index, row in enumerate(ranked.rows) if row.in_scope]
    rows = [ranked.rows[index] for index in indexes]
    labelled_rows = label_rows(
        conversation,
        question,
        [
            tuple(
                key
                for seq in range(row.first_seq, row.last_seq + 1)
                if (key := keys.messages.get((row.session, seq)))
            )
            for row in rows
        ],
        [keys.sessions.get(row.session, "") for row in rows],
        {name: values[indexes] for name, values in ranked.signals.items()},
        np.array([row.tokens for row in rows], np.int64),
        np.array([row.role == Role.ASSISTANT for row in rows], bool),
    )
    return replace(labelled_rows, message_share=ranked.message_share)


def label_rows(
    conversation: str,
    question: LabelledQuestion,
    messages: Sequence[tuple[str, ...]],
    sessions: Sequence[str],
    signals: Mapping[str, Floats],
    tokens: Ints,
    by_assistant: Bools,
) -> RankedQuestion:
    """Return the candidates with the evidence that each of them contains."""
    evidence = [[key in row for row in messages] for key in sorted(question.evidence)]
    wanted = [[key == row for row in sessions] for key in sorted(question.evidence_sessions)]
    _, session_of = np.unique(sessions, return_inverse=True)
    return RankedQuestion(
        conversation=conversation,
        kind=question.kind,
        messages=messages,
        signals=signals,
        tokens=tokens,
        by_assistant=by_assistant,
        evidence=np.array(evidence, bool).reshape(len(evidence), len(messages)),
        sessions=np.array(wanted, bool).reshape(len(wanted), len(messages)),
        session_of=session_of,
    )
