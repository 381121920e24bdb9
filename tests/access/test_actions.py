"""Every action of the pages can be done by API."""

import pytest

from tests.access.access_rules import API, DOORS, PAGES
from tests.access.actions import ACTIONS, OF_THE_BROWSER
from tests.access.routes import routes

NAMES = {route.name: route for route in routes()}


@pytest.mark.parametrize("page", sorted({*PAGES} - OF_THE_BROWSER))
def test_each_action_of_a_page_has_a_route_in_the_api(page):
    """A page that is new, or has a new method, has to be put on the list."""
    assert {action.method for action in ACTIONS if action.page == page} == set(PAGES[page].methods)


@pytest.mark.parametrize("action", ACTIONS, ids=lambda item: f"{item.page} {item.action}".strip())
def test_the_route_is_there_and_open_to_the_same_people(action):
    assert action.by in API[action.api].methods
    assert NAMES[action.api].is_api
    assert action.method in DOORS[action.page].methods


def actions_of(page: str) -> set[str]:
    return {action.action for action in ACTIONS if action.page == page and action.method == "POST"}


def test_all_actions_that_share_a_page_are_listed():
    from memory.moderation.actions import ModerationAction
    from memory.views.facts import DECISIONS
    from memory.views.webhooks import ACTIONS as OF_WEBHOOKS
    from projects.views.invitations import ACTIONS as OF_INVITATIONS
    from projects.views.projects import ACTIONS as OF_MEMBERS

    assert actions_of("memory-act") == set(ModerationAction.values)
    assert actions_of("project-members") == set(OF_MEMBERS)
    assert actions_of("project-invitations") == set(OF_INVITATIONS)
    assert actions_of("webhook") == set(OF_WEBHOOKS)
    assert actions_of("fact-change") == {*DECISIONS, "edit", "close"}
    assert actions_of("memory-blocks") == {"write", "up", "down", "delete"}
