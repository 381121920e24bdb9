"""`create_token` prints a token, and nothing else."""

from datetime import timedelta

import pytest
from django.contrib.auth import get_user_model
from django.core.management import CommandError, call_command
from django.utils import timezone
from rest_framework.test import APIClient

from projects.models import MemberRole, Token

pytestmark = pytest.mark.django_db


@pytest.fixture
def create_token(capsys):
    def run(*arguments: str) -> str:
        call_command("create_token", *arguments)
        return capsys.readouterr().out

    return run


def test_it_prints_a_token_that_opens_the_api(create_token, owner, project):
    printed = create_token("olive")
    token = printed.strip()
    assert printed == f"{token}\n"
    assert token.startswith("strata_")
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    assert client.get("/api/v1/projects/billing/").status_code == 200
    assert token not in str(Token.objects.values_list())


def test_without_options_it_has_all_scopes_and_no_expiry(create_token, owner):
    create_token("olive")
    token = Token.objects.get()
    assert (token.scopes, token.expiry, token.project) == (["read", "write", "admin"], None, None)


def test_options_limit_it(create_token, owner, project):
    create_token("olive", "--project", "billing", "--scope", "write,read", "--expires", "7")
    token = Token.objects.get()
    assert (token.project, token.scopes) == (project, ["read", "write"])
    left = token.expiry - timezone.now()
    assert timedelta(days=6, hours=23) < left <= timedelta(days=7)


def test_an_expired_token_is_refused(create_token, owner):
    token = create_token("olive", "--expires", "1").strip()
    Token.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    assert client.get("/api/v1/projects/").status_code == 401


def test_create_adds_a_missing_user(create_token):
    create_token("robot", "--create")
    robot = get_user_model().objects.get(username="robot")
    assert not robot.has_usable_password()
    create_token("robot", "--create")
    assert Token.objects.filter(user=robot).count() == 2


def test_a_user_made_for_a_project_is_an_editor_of_it(create_token, project):
    token = create_token("robot", "--create", "--project", "billing").strip()
    assert project.memberships.get(user__username="robot").role == MemberRole.EDITOR
    client = APIClient()
    client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    assert client.get("/api/v1/projects/billing/").status_code == 200


def test_somebody_who_is_there_is_made_no_member(create_token, stranger, project):
    with pytest.raises(CommandError, match="not a member"):
        create_token("stan", "--create", "--project", "billing")
    assert project.memberships.count() == 1


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nobody"], "no user “nobody”"),
        (["nobody", "--create", "--project", "nowhere"], "no project “nowhere”"),
        (["stan", "--project", "billing"], "not a member"),
        (["olive", "--scope", "read,fly"], "Unknown scope “fly”"),
        (["olive", "--scope", ""], "Unknown scope"),
        (["olive", "--expires", "0"], "from 1 to"),
        (["a" * 151, "--create"], "at most 150 characters"),
        (["Stan", "--create"], "already a user “stan”"),
        (["no body", "--create"], "“no body” is not a username"),
        (["", "--create"], "“” is not a username"),
    ],
)
def test_an_invalid_argument_prints_one_line_and_creates_nothing(
    create_token, owner, stranger, project, arguments, reason
):
    with pytest.raises(CommandError, match=reason) as error:
        create_token(*arguments)
    assert "\n" not in str(error.value)
    assert not Token.objects.exists()
    assert get_user_model().objects.count() == 2


def test_it_gets_a_name(create_token, owner):
    create_token("olive", "--name", "Editor on my laptop")
    assert Token.objects.get().name == "Editor on my laptop"
    with pytest.raises(CommandError, match="at most 120"):
        create_token("olive", "--name", "a" * 121)
