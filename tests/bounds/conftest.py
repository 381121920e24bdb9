"""The autouse fixtures of all tests load the settings; these tests need none of them."""

from tests.unit.conftest import quick_passwords, visits_are_noted, woken

__all__ = ["quick_passwords", "visits_are_noted", "woken"]
