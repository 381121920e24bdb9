"""The tests themselves are tested: a fault that is planted in the product must not pass them."""

import os
import re
import subprocess
import sys

from tests.faults.planted import FAULTS
from tests.server import ROOT

SITE = ROOT / "tests/faults/site"
# What takes two seconds, and needs no database.
QUICK = ("quoted_text_may_close_its_fence", "markup_is_sanitised_before_it_is_rendered")
# One in twenty may slip through.
SLIPPING = 20
PLANT_ALL = """
import django
django.setup()
from tests.faults.planted import FAULTS
for fault in FAULTS.values():
    fault.plant()
"""


def test_planted_faults_are_caught(scale, tally):
    missed = []
    for name in scale(tuple(FAULTS), QUICK):
        test = caught_by(name, FAULTS[name].tests) or scale(caught_by, lambda *_: None)(
            name, ("tests", "--ignore=tests/torture", "-n2")
        )
        tally(f"{FAULTS[name].kind} ({name}): {test or 'NOT CAUGHT'}")
        if test is None:
            missed.append(name)
    assert len(missed) <= len(FAULTS) // SLIPPING, missed


def test_each_of_them_can_be_planted():
    done = run([sys.executable, "-c", PLANT_ALL], {"DJANGO_SETTINGS_MODULE": "config.settings"})
    assert done.returncode == 0, done.stderr


def caught_by(name: str, tests: tuple[str, ...]) -> str | None:
    """The first test that fails with the fault `name`."""
    pytest = [sys.executable, "-m", "pytest", "-x", "-q", "--tb=no"]
    done = run([*pytest, *tests], {"STRATA_FAULT": name, "PYTHONPATH": str(SITE)})
    match = re.search(r"^FAILED (\S+)", done.stdout, re.MULTILINE)
    assert match or done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return match[1] if match else None


def run(command: list[str], variables: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs `command` as on a machine where no other test runs."""
    # With the last, pytest-django would read the settings before the tests say what they are.
    ours = ("STRATA_TEST_DATA", "STRATA_TORTURE", "STRATA_BENCH", "DJANGO_SETTINGS_MODULE")
    environment = {
        name: value
        for name, value in os.environ.items()
        if name not in ours and not name.startswith("PYTEST_")
    }
    return subprocess.run(
        command, cwd=ROOT, env=environment | variables, capture_output=True, text=True
    )
