"""Evaluation of recall on labelled conversations (LoCoMo).

The conversations are imported, indexed and searched like any others, in a project of their own.
R@k is the mean share of a question's evidence among the k best turns. A@b is the share of questions
for which all evidence is in the best excerpts that fit into b tokens, each with its date and
speaker as in prompts. Questions of category 5 have no answer in the conversation and are left out.
"""

import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean, quantiles
from uuid import UUID, uuid4

from django.contrib.auth import get_user_model

from chat.importers import ImportRejectedError, import_file
from chat.models import Message
from memory.recall import reindexing
from memory.recall.search import RecallScope
from memory.recall.service import RecallResult, recall
from projects.models import Project
from projects.services import create_project, delete_project, unused_slug

RANKS = (5, 10)
ADVERSARIAL = 5
_TURN_KEY = re.compile(r"D\d+:\d+")

# A session and the `seq` of a message in it.
Position = tuple[UUID, int]


@dataclass(frozen=True)
class LabelledQuestion:
    """A question and the messages that answer it."""

    question: str
    category: int
    evidence: frozenset[Position]


@dataclass
class EvaluationResult:
    """Measurements for each question: evidence by rank, evidence by budget, times in ms."""

    recall_at: dict[int, list[float]] = field(default_factory=dict)
    all_found_at: dict[int, list[bool]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)

    @property
    def questions(self) -> int:
        return len(next(iter(self.recall_at.values()), []))

    def summary(self) -> dict[str, float]:
        """Return the means and the percentiles by name."""
        cuts = quantiles(self.times, n=100) if len(self.times) > 1 else [0.0] * 99
        return {
            "questions": self.questions,
            **{f"R@{k}": round(fmean(shares), 4) for k, shares in self.recall_at.items()},
            **{f"A@{b}": round(fmean(found), 4) for b, found in self.all_found_at.items()},
            "p50_ms": round(cuts[49], 2),
            "p95_ms": round(cuts[94], 2),
        }

    def time_recall(self, scope: RecallScope, query: str, **options: int) -> list[RecallResult]:
        """Return the results of a search and record its time."""
        start = time.perf_counter()
        results = recall(scope, query, **options)
        self.times.append(1_000 * (time.perf_counter() - start))
        return results

    def measure(self, scope: RecallScope, labelled: LabelledQuestion) -> None:
        """Search for one question, once for the ranks and once for each budget."""
        evidence = labelled.evidence
        best = self.time_recall(scope, labelled.question, limit=max(RANKS))
        turns = list(dict.fromkeys(position for result in best for position in positions(result)))
        for k, shares in self.recall_at.items():
            shares.append(len(evidence.intersection(turns[:k])) / len(evidence))
        for budget, all_found in self.all_found_at.items():
            packed = self.time_recall(scope, labelled.question, token_budget=budget)
            found = {position for result in packed for position in positions(result)}
            all_found.append(evidence <= found)


@contextmanager
def temporary_project(path: Path) -> Iterator[tuple[Project, object]]:
    """Import the conversation in `path` into a new project and index it.

    Return the project and its owner, and delete both at the end. Raises ImportRejectedError and
    OSError.
    """
    name = f"evaluation-{uuid4().hex[:12]}"
    owner = get_user_model().objects.create_user(name, password=None, is_active=False)
    try:
        project = create_project(owner, name=name, slug=unused_slug(name))
        try:
            with path.open("rb") as file:
                try:
                    import_file(project, owner, path.name, file, "locomo")
                except ImportRejectedError as reason:
                    raise ImportRejectedError(f"{path}: {reason}") from reason
            reindexing.index_until_done(project)
            yield project, owner
        finally:
            delete_project(project)
    finally:
        owner.delete()


def labelled_questions(path: Path, project: Project) -> list[LabelledQuestion]:
    """Return the questions in `path` that have at least one message as evidence."""
    rows = Message.objects.filter(project=project).values_list("source_key", "session", "seq")
    positions_by_key = {key: (session, seq) for key, session, seq in rows}
    questions = []
    for item in json.loads(path.read_text()).get("qa", []):
        keys = _TURN_KEY.findall(" ".join(item.get("evidence", [])))
        evidence = frozenset(positions_by_key[key] for key in keys if key in positions_by_key)
        if evidence and item.get("category") != ADVERSARIAL:
            questions.append(LabelledQuestion(item["question"], item["category"], evidence))
    return questions


def evaluate(
    paths: Iterable[Path], budgets: Sequence[int], report: Callable[[str], None] = lambda _: None
) -> EvaluationResult:
    """Measure recall for every question of every conversation in `paths`."""
    result = EvaluationResult({k: [] for k in RANKS}, {budget: [] for budget in budgets})
    for path in paths:
        with temporary_project(path) as (project, owner):
            scope = RecallScope(project, owner)
            for question in labelled_questions(path, project):
                result.measure(scope, question)
            report(f"{path.name}: {result.questions} questions so far")
    return result


def positions(result: RecallResult) -> Iterator[Position]:
    """Return the messages in an excerpt. A split message counts as found with each of its parts."""
    if result.session is not None:
        for seq in range(result.first_seq, result.last_seq + 1):
            yield result.session, seq
