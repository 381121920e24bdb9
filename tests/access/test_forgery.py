"""A form of another site, sent by a browser in which its user is signed in, changes nothing."""

import re
from itertools import product

import pytest

from tests.access.access_rules import OPEN
from tests.access.routes import Route, admin_routes, routes
from tests.access.test_endpoints import METHODS, nothing_is_written
from tests.access.world import signed_in

pytestmark = pytest.mark.django_db

FORM = "application/x-www-form-urlencoded"
# Each answers all unknown addresses below one.
SKIPPED = {"^api/", "^v1/", "admin/(?P<url>.*)$"}
FORMS = [one for one in [*routes(), *admin_routes()] if not one.is_api and one.name not in SKIPPED]
API = [one for one in routes() if one.is_api and one.name not in OPEN]
# Values of parameters; CSRF is checked before a view looks for what they name.
VALUES = {"slug": "billing", "uuid": "0198c5a7-0000-7000-8000-000000000000", "int": "1"}
PARAMETER = re.compile(r"<(?:(\w+):)?\w+>")
# Patterns that are regular expressions, with an address that matches.
ADDRESSES = {
    "account_reset_password_from_key": "accounts/password/forgotten/1-key/",
    "openid_connect_login": "accounts/oidc/login/",
    "openid_connect_callback": "accounts/oidc/callback/",
    "app_list": "admin/chat/",
}


def address(route: Route) -> str:
    path = PARAMETER.sub(lambda match: VALUES.get(match[1], "x"), route.pattern)
    return f"/{ADDRESSES.get(route.name, path)}"


@pytest.fixture
def staff(world):
    """Return a browser of the owner, who may do everything here."""
    world.owner.is_staff = world.owner.is_superuser = True
    world.owner.save()
    return signed_in(world.owner, enforce_csrf_checks=True)


def test_no_page_takes_a_form_without_its_token(staff):
    for route, method in product(FORMS, METHODS - {"GET"}):
        with nothing_is_written():
            answer = staff.generic(method, address(route), "action=x", FORM)
        assert answer.status_code == 403, (method, route)
        # The address is of this route, and not of another before it.
        assert answer.resolver_match.func == route.view, route


def test_the_api_takes_no_cookie(staff):
    for route, method in product(API, METHODS):
        with nothing_is_written():
            answer = staff.generic(method, address(route), "{}", "application/json")
        assert answer.status_code == 401, (method, route)
