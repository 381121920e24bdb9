"""Search among a million: in a project that holds half of it, and in one of the small ones."""

from collections.abc import Iterator

import numpy as np
import pytest
from django.db import connection, connections
from django.db.backends.postgresql.base import DatabaseWrapper
from numpy.typing import NDArray

from memory.models import Corpus
from memory.recall import RecallScope, recall, search
from memory.recall.embedders.static import get_static_embedder
from projects.models import Project
from tests.bench import bulk_projects, generated_text

pytestmark = [pytest.mark.timeout(7_200), pytest.mark.django_db(transaction=True)]

SMALL = [1_000] * 10
LARGE = [500_000, *[500] * 1_000]
BLOCK, BLOCKS = 40, 12
ASKED = 60
# Two vectors are as near as each other within what half precision tells apart.
ALIKE = 5e-4


@pytest.fixture
def small(owner) -> Iterator[tuple[DatabaseWrapper, Project]]:
    """A database beside this one that holds ten projects of 1,000, and one of these."""
    [project, *_] = bulk_projects.fill(owner, SMALL, seed=1)
    name = f"{connection.settings_dict['NAME']}_small"
    ours = connection.settings_dict["NAME"]
    beside = {**connection.settings_dict, "NAME": name, "OPTIONS": {}}
    connection.close()
    connection.close_pool()
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"CREATE DATABASE {name} TEMPLATE {ours}")
    wrapper = DatabaseWrapper(beside, "default")
    yield wrapper, project
    wrapper.close()
    with connection._nodb_cursor() as cursor:
        cursor.execute(f"DROP DATABASE {name}")


def questions(seed: int, texts: int) -> list[str]:
    """On texts from the beginning of what was made with this seed."""
    return [
        generated_text.question(text)
        for talk in generated_text.talks(seed, texts, 50)
        for text in talk[::5]
    ]


def searched(timed, project: Project, owner, request: list[str]) -> list[float]:
    return [
        timed(lambda item=message: recall(RecallScope(project, owner), item, limit=10))
        for message in request
    ]


def test_search_among_a_million_takes_at_most_twice_as_long(
    small, owner, timed, compare, report_figures, p95s
):
    beside, little = small
    ours = connections["default"]
    projects = bulk_projects.fill(owner, LARGE, seed=2)
    largest, smallest = projects[0], projects[-1]
    questions_by_project = {
        little: questions(1, 500),
        largest: questions(2, 500),
        smallest: questions(2, 500),
    }
    times: dict[Project, list[float]] = {project: [] for project in questions_by_project}
    for block in range(-1, BLOCKS):
        for project, texts in questions_by_project.items():
            connections["default"] = beside if project == little else ours
            took = searched(timed, project, owner, texts[:BLOCK])
            # The first time, what is on disk is read.
            times[project] += took if block >= 0 else []
    connections["default"] = ours
    exact = (
        shares(largest, owner, questions_by_project[largest]),
        shares(smallest, owner, questions_by_project[smallest]),
    )
    report_figures("exact top ten, largest and smallest of 1,001", *exact)
    base = p95s(times[little], BLOCK)
    of_largest = compare(
        "p95: search in 1 of 10,000, 500 of 1,000 thousand", base, p95s(times[largest], BLOCK), 2
    )
    of_smallest = compare(
        "p95: search in 1 of 10,000, 0.5 of 1,000 thousand", base, p95s(times[smallest], BLOCK), 2
    )
    assert min(exact) >= 0.99
    assert max(of_largest, of_smallest) <= 2


def shares(project: Project, owner, request: list[str]) -> float:
    """Of the ten vectors nearest to each question, how many search finds, or others as near."""
    vectors = get_static_embedder().embed_documents(request[:ASKED])
    tenth = np.sort(distances(project, vectors), axis=0)[9]
    size = Corpus.objects.get(pk=project.pk).chunks
    ranks = []
    for vector, most in zip(vectors, tenth, strict=True):
        rows = search.find_candidates(
            RecallScope(project, owner), [], size, get_static_embedder().name, vector
        )
        nearest = sorted(1 - (row.similarity or 0) for row in rows)[:10]
        ranks.append(sum(chunk <= most + ALIKE for chunk in nearest) / 10)
    return float(np.mean(ranks))


def distances(project: Project, request: NDArray[np.float32]) -> NDArray[np.float32]:
    """The cosine distance of each vector of the project (rows) and each question (columns)."""
    parts = []
    with connection.cursor() as cursor:
        rows = f"SELECT embedding FROM memory_vector WHERE project_id = '{project.pk}'"
        with cursor.copy(f"COPY ({rows}) TO STDOUT (FORMAT BINARY)") as stream:
            stream.set_types(["bytea"])
            batch: list[bytes] = []
            for (item,) in stream.rows():
                batch.append(item)
                if len(batch) == 50_000:
                    parts.append(bulk_projects.distances(batch, request))
                    batch = []
    return np.concatenate([*parts, bulk_projects.distances(batch, request)] if batch else parts)
