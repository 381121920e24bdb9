"""Search in a project of ten thousand files, and in one of a hundred."""

import time
from collections.abc import Callable
from functools import partial

import pytest
from django.db import connection
from django.test import Client
from django.urls import reverse

from memory.recall import RecallScope
from memory.views.files import search_files
from projects.models import Membership, Project
from tests.bench import bulk_projects, generated_text

pytestmark = [pytest.mark.timeout(3_600), pytest.mark.django_db(transaction=True)]

FEW, MANY = 100, 10_000
BLOCK, BLOCKS = 40, 8
BOUND = 1.5
PARTS = ("Python", "PostgreSQL")


def processor_s(call: Callable[[], object]) -> tuple[float, float]:
    """The processor time of a call, here and in PostgreSQL. Linux counts it in nanoseconds."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        [backend] = cursor.fetchone()
    # The clock of another process: clock_getcpuclockid(3).
    clock = ~backend << 3 | 2
    before, began = time.clock_gettime(clock), time.process_time()
    call()
    return time.process_time() - began, time.clock_gettime(clock) - before


@pytest.mark.parametrize("passages", [1, 3])
def test_search_in_ten_thousand_files(owner, api, passages, compare, p95s):
    sizes = [FEW * passages, MANY * passages]
    projects = bulk_projects.fill(owner, sizes, seed=3, passages=passages)
    Membership.objects.bulk_create(
        Membership(project=project, user=owner, role="owner") for project in projects
    )
    browser, client = Client(), api(owner)
    browser.force_login(owner)

    def page(project: Project, text: str) -> None:
        response = browser.get(reverse("files", args=[project.slug]), {"q": text})
        assert b"<mark" in response.content

    def request(project: Project, text: str) -> None:
        query = {"q": text, "source": "file"}
        response = client.get(f"/api/v1/projects/{project.slug}/recall/", query)
        assert response.json()["results"]

    def alone(project: Project, text: str) -> None:
        assert search_files(RecallScope(project, owner), text)

    for what, search in ("page", page), ("API", request), ("alone", alone):
        times = measured(search, projects, passages)
        name = f"search, {what}: {FEW} and {MANY:,} files of {passages}"
        for number, part in enumerate(PARTS):
            compare(f"{name}, {part}", *([row[number] for row in rows] for rows in times))
        base, against = (p95s([sum(row) for row in rows], BLOCK) for rows in times)
        assert compare(f"p95: {name}", base, against, BOUND) <= BOUND


def measured(
    search: Callable[[Project, str], None], projects: list[Project], passages: int
) -> list[list[tuple[float, float]]]:
    """The processor time of searches in each project, in turns. They ask about texts of its own."""
    texts = generated_text.talks(3, 2 * FEW * passages, passages)
    questions = [generated_text.question(text) for talk in texts for text in talk]
    half = FEW * passages
    times: list[list[tuple[float, float]]] = [[] for _ in projects]
    for block in range(-1, BLOCKS):
        for project, rows, asked in zip(
            projects, times, (questions[:half], questions[half:]), strict=True
        ):
            took = [processor_s(partial(search, project, text)) for text in asked[:BLOCK]]
            # The first time, what is on disk is read, and statements are planned.
            rows += took if block >= 0 else []
    return times
