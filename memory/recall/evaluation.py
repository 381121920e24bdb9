"""How much of the evidence recall finds, on labelled conversations (LoCoMo): the measure.

The conversations are imported, indexed and asked as any others, in a project of their own.
R@k is the mean share of a question's evidence among the k best turns; A@b the share of questions
for which all evidence is among the best excerpts that fit into b tokens, each with its date and
speaker as it stands in prompts. Questions of category 5 ask for what was never said.
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

from chat.importers import Refused, import_file
from chat.models import Message
from memory.recall import reindexing
from memory.recall.recalling import Result, recall
from memory.recall.search import Scope
from projects.creation import create_project, free_slug
from projects.deletion import delete_project
from projects.models import Project

RANKS = (5, 10)
ADVERSARIAL = 5
_TURN = re.compile(r"D\d+:\d+")

# A turn by its session and its place there.
Place = tuple[UUID, int]


@dataclass(frozen=True)
class Labelled:
    """A question and the turns that hold its answer."""

    question: str
    category: int
    evidence: frozenset[Place]


@dataclass
class Figures:
    """What was measured, question by question; times in milliseconds."""

    ranked: dict[int, list[float]] = field(default_factory=dict)
    complete: dict[int, list[bool]] = field(default_factory=dict)
    times: list[float] = field(default_factory=list)

    @property
    def questions(self) -> int:
        return len(next(iter(self.ranked.values()), []))

    def told(self) -> dict[str, float]:
        """The figures by their names."""
        cuts = quantiles(self.times, n=100) if len(self.times) > 1 else [0.0] * 99
        return {
            "questions": self.questions,
            **{f"R@{k}": round(fmean(shares), 4) for k, shares in self.ranked.items()},
            **{f"A@{b}": round(fmean(found), 4) for b, found in self.complete.items()},
            "p50_ms": round(cuts[49], 2),
            "p95_ms": round(cuts[94], 2),
        }


@contextmanager
def imported(path: Path) -> Iterator[tuple[Project, object]]:
    """The conversation in `path` in a project of its own, indexed, and its owner; both go again.

    Raises chat.importers.Refused, and OSError.
    """
    name = f"evaluation-{uuid4().hex[:12]}"
    owner = get_user_model().objects.create_user(name, password=None, is_active=False)
    try:
        project = create_project(owner, name=name, slug=free_slug(name))
        try:
            with path.open("rb") as file:
                try:
                    import_file(project, owner, path.name, file, "locomo")
                except Refused as reason:
                    raise Refused(f"{path}: {reason}") from reason
            reindexing.settle(project)
            yield project, owner
        finally:
            delete_project(project)
    finally:
        owner.delete()


def labelled(path: Path, project: Project) -> list[Labelled]:
    """The questions of `path` that name at least one turn as evidence."""
    rows = Message.objects.filter(project=project)
    places = {
        key: (session, seq)
        for key, session, seq in rows.values_list("source_key", "session", "seq")
    }
    found = []
    for one in json.loads(path.read_text()).get("qa", []):
        evidence = _TURN.findall(" ".join(one.get("evidence", [])))
        turns = frozenset(places[key] for key in evidence if key in places)
        if turns and one.get("category") != ADVERSARIAL:
            found.append(Labelled(one["question"], one["category"], turns))
    return found


def evaluate(
    paths: Iterable[Path], budgets: Sequence[int], progress: Callable[[str], None] = lambda _: None
) -> Figures:
    """Asks every question of every conversation in `paths`, for the ranks and for each budget."""
    figures = Figures({k: [] for k in RANKS}, {budget: [] for budget in budgets})
    for path in paths:
        with imported(path) as (project, owner):
            scope = Scope(project, owner)
            for one in labelled(path, project):
                _ask(scope, one, figures)
            progress(f"{path.name}: {figures.questions} questions so far")
    return figures


def _ask(scope: Scope, one: Labelled, figures: Figures) -> None:
    best = _timed(figures, scope, one.question, limit=max(RANKS))
    turns = list(dict.fromkeys(place for result in best for place in _places(result)))
    for k, shares in figures.ranked.items():
        shares.append(len(one.evidence.intersection(turns[:k])) / len(one.evidence))
    for budget, complete in figures.complete.items():
        packed = _timed(figures, scope, one.question, token_budget=budget)
        complete.append(one.evidence <= {place for result in packed for place in _places(result)})


def _timed(figures: Figures, scope: Scope, question: str, **kwargs: int) -> list[Result]:
    began = time.perf_counter()
    results = recall(scope, question, **kwargs)
    figures.times.append(1_000 * (time.perf_counter() - began))
    return results


def _places(result: Result) -> Iterator[Place]:
    """The turns in an excerpt. One that was split counts as found with each of its parts."""
    if result.session is not None:
        for seq in range(result.first_seq, result.last_seq + 1):
            yield result.session, seq
