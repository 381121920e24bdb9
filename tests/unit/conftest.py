"""Pure modules: these tests need neither the database nor the models."""

import pytest


@pytest.fixture(autouse=True)
def quick_passwords() -> None:
    """Nothing here hashes passwords; the fixture of all tests would load the settings."""


@pytest.fixture(autouse=True)
def visits_are_noted() -> None:
    """Nothing here serves pages."""


@pytest.fixture(autouse=True)
def woken() -> None:
    """Nothing here wakes a worker."""
