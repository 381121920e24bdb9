"""Text that is missing from the messages is not a fact."""

import pytest

from memory.facts.grounding import is_grounded

EVIDENCE = ["Ana", "The platform team owns billing since 3 March 2026, invoices are sent weekly."]


@pytest.mark.parametrize(
    "words",
    [
        "billing",
        "Billing platform team",
        "the Platform Team",
        "invoice",
        "3 March",
        "Ana",
        "weekly",
    ],
)
def test_a_statement_is_grounded_in_any_inflection(words):
    assert is_grounded(words, EVIDENCE)


@pytest.mark.parametrize(
    "words", ["payments team", "30 March", "202", "bill gates", "in", "", "…", "the platform guild"]
)
def test_an_invented_statement_is_not_grounded(words):
    assert not is_grounded(words, EVIDENCE)


def test_scripts_without_spaces_are_looked_through():
    messages = ["請求はプラットフォームチームが担当します。"]
    assert is_grounded("プラットフォームチーム", messages)
    assert not is_grounded("決済チーム", messages)
