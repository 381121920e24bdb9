"""Three years of conversations: how long the bank is filled, and what a day's cycle costs."""

import random
import statistics
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial

import psutil
import pytest
from django.db import connection

from memory.layers import bank, cycle
from memory.layers.bank_cache import bank_entries, bank_items
from projects.models import Project
from projects.services import create_project
from tests.torture import daily_talks

# Not in one transaction: what is claimed, written and committed is measured too.
pytestmark = [pytest.mark.timeout(3_600), pytest.mark.django_db(transaction=True)]

END = datetime(2026, 11, 22, tzinfo=UTC)
YEARS, LONG, SHORT = 3, 3_000, 300
BUDGET, FILLING_S = 2_000, 0.05
TURNS, TALKS_A_DAY = 12, 3
FILLINGS, DAYS, BLOCK = 20, 42, 7


def with_history(owner, conversations: int, days: int) -> Project:
    """A project with so many conversations over the last days before END, and their layers."""
    project = create_project(
        owner, name=f"After {conversations}", bank_max_tokens=BUDGET, system_model="extractive"
    )
    talks = daily_talks.generate_talks(random.Random(1), conversations, TURNS)
    for number, talk in enumerate(talks):
        age = timedelta(days=1 + number * days / conversations)
        daily_talks.post(project, talk, END - age)
    while cycle.due(END, project):
        cycle.run(END, project)
    with connection.cursor() as cursor:
        cursor.execute("ANALYZE")
    return project


def processor_s(call: Callable[[], object]) -> float:
    """The processor time of a call, here and in PostgreSQL."""
    with connection.cursor() as cursor:
        cursor.execute("SELECT pg_backend_pid()")
        backend = psutil.Process(cursor.fetchone()[0])
    before, began = sum(backend.cpu_times()[:2]), time.process_time()
    call()
    return time.process_time() - began + sum(backend.cpu_times()[:2]) - before


def fill(project: Project) -> bank.Bank:
    """The bank as it is rendered after a change, with the reading of its entries."""
    items = bank_items(project, bank_entries(project))
    return bank.render(items, project.bank_max_tokens)


def test_three_years_fill_in_50_ms_and_continue_as_fast_as_four_months(owner, compare):
    days = 365 * YEARS
    projects = [
        with_history(owner, SHORT, days * SHORT // LONG),
        with_history(owner, LONG, days),
    ]
    check_years(fill(projects[1]).text)

    filling: list[list[float]] = [[], []]
    for _ in range(FILLINGS):
        for project, times in zip(projects, filling, strict=True):
            times.append(processor_s(partial(fill, project)))
    compare(f"the bank is filled: after {SHORT} conversations, {LONG:,}", *filling)
    assert statistics.median(filling[1]) < FILLING_S

    chance = random.Random(2)
    cycles: list[list[float]] = [[], []]
    for day in range(DAYS):
        talks = list(daily_talks.generate_talks(chance, TALKS_A_DAY, TURNS))
        now = END + timedelta(days=day + 1)
        for project, times in zip(projects, cycles, strict=True):
            for number, talk in enumerate(talks):
                daily_talks.post(project, talk, now - timedelta(hours=9 + number))
            times.append(processor_s(partial(cycle.run, now, project)))
    weeks = [
        [sum(times[start : start + BLOCK]) for start in range(0, DAYS, BLOCK)] for times in cycles
    ]
    ratio = compare(f"a week of cycles: after {SHORT} conversations, {LONG:,}", *weeks, 1.3)
    assert ratio <= 1.3


def check_years(text: str) -> None:
    """Whether each year, and each of the last twelve months, has a heading in the bank."""
    months = [END - timedelta(days=30 * back) for back in range(12)]
    for month in months:
        assert f"[{month:%B %Y}]" in text
    for years in range(YEARS + 1):
        assert f" {END.year - years}]" in text
