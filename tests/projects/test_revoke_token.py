"""`revoke_token` takes tokens back."""

import pytest
from django.core.management import CommandError, call_command

from projects.models import Token

pytestmark = pytest.mark.django_db


@pytest.fixture
def tokens(owner, stranger) -> dict[str, Token]:
    tokens = {name: Token.issue(owner, name=name)[0] for name in ("laptop", "robot", "old")}
    return tokens | {"theirs": Token.issue(stranger, name="laptop")[0]}


def left() -> set[str]:
    return {f"{token.user} {token.name}" for token in Token.objects.select_related("user")}


@pytest.mark.parametrize("by", ["name", "id"])
def test_one_goes_by_its_name_or_its_id(tokens, capsys, by):
    which = "laptop" if by == "name" else str(tokens["laptop"].public_id)
    call_command("revoke_token", "olive", f"--{by}", which)
    assert capsys.readouterr().out == "Revoked 1 token.\n"
    assert left() == {"olive robot", "olive old", "stan laptop"}


def test_all_of_a_user_go(tokens, capsys):
    call_command("revoke_token", "olive", "--all")
    assert capsys.readouterr().out == "Revoked 3 tokens.\n"
    assert left() == {"stan laptop"}


@pytest.mark.parametrize(
    ("arguments", "reason"),
    [
        (["nobody", "--all"], "no user “nobody”"),
        (["olive", "--name", "desktop"], "no such token"),
        (["olive", "--id", "0190163d-8694-739b-aea5-966c26f8ad91"], "no such token"),
        (["olive"], "required"),
        (["olive", "--all", "--name", "robot"], "not allowed"),
        (["olive", "--id", "seven"], "invalid"),
    ],
)
def test_an_invalid_argument_is_reported_and_revokes_nothing(tokens, arguments, reason):
    with pytest.raises(CommandError, match=reason):
        call_command("revoke_token", *arguments)
    assert Token.objects.count() == 4


def test_the_id_of_somebody_elses_takes_nothing(tokens):
    with pytest.raises(CommandError):
        call_command("revoke_token", "olive", "--id", str(tokens["theirs"].public_id))
    assert Token.objects.count() == 4
