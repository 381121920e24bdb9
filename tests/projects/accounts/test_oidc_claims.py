"""Signing in through a provider whose claims, metadata or clock are odd."""

import json
import time
from typing import Any

import pytest
from allauth.account.models import EmailAddress
from allauth.socialaccount.models import SocialAccount
from django.contrib.auth.models import Group
from django.test import Client

from config.observability import logging as logs
from projects.models import SpendingLimit
from tests.projects.accounts.test_oidc import come, known, provider, refused, server

pytestmark = pytest.mark.django_db
__all__ = ["provider", "server"]
LOGIN = "/accounts/oidc/login/"
_line = logs.configuration("DEBUG", False)["formatters"]["line"]
FORMATTER = _line.pop("()")(**_line)


@pytest.mark.parametrize(
    "odd",
    [
        {"email": 5},
        {"email": ["nina@example.org"]},
        {"email": "nina\0@example.org"},
        {"name": 5},
        {"given_name": {"a": "b"}},
        {"given_name": "\ud800"},
        {"preferred_username": 12},
        {"preferred_username": "ni\0na"},
        {"address": {"street": "a\0b"}},
        {"picture": "x" * 200_000},
    ],
    ids=repr,
)
def test_claims_of_other_types_and_lengths_keep_nobody_out(client, provider, settings, odd, is_in):
    settings.OIDC_SIGNUP = True
    provider.person |= odd
    come(client)
    assert is_in(client)
    assert not EmailAddress.objects.filter(verified=True).exists()
    # Claims that are not used are not stored.
    assert len(json.dumps(SocialAccount.objects.get().extra_data)) < 1_000


@pytest.mark.parametrize(
    "subject", [None, "", 5, ["1"], "s" * 192, "a\0b", "\ud800"], ids=lambda it: repr(it)[:9]
)
def test_without_a_valid_subject_nobody_is_let_in(client, provider, settings, subject, is_in):
    settings.OIDC_SIGNUP = True
    provider.person |= {"sub": subject}
    refused(come(client), client, is_in)


@pytest.mark.parametrize("answer", [[], None, "text"])
@pytest.mark.parametrize("name", ["description", "keys", "userinfo", "token"])
def test_an_answer_that_is_no_object_is_reported(
    client, provider, monkeypatch, name, answer, is_in
):
    if name == "userinfo":
        monkeypatch.setattr(provider, "person_at_userinfo", lambda: answer)
    else:
        monkeypatch.setattr(provider, name, lambda *form: answer)
    refused(client.post(LOGIN) if name == "description" else come(client), client, is_in)


@pytest.mark.parametrize(("seconds", "lets_in"), [(50, True), (-50, True), (90, False)])
def test_the_clocks_may_differ_by_a_minute(client, provider, owner, seconds, lets_in, is_in):
    known(owner)
    issued = int(time.time()) + seconds
    provider.claims = {"iat": issued, "nbf": issued}
    if seconds < 0:
        provider.claims = {"iat": issued - 300, "exp": issued}
    come(client)
    assert is_in(client) is lets_in


def test_a_token_is_used_once_even_after_its_end(client, provider, owner, is_in):
    known(owner)
    ended = int(time.time()) - 30
    provider.claims = {"iat": ended - 300, "exp": ended, "jti": "1"}
    come(client)
    assert is_in(client)
    other = Client()
    refused(come(other), other, is_in)


def test_a_token_without_an_end_is_refused(client, provider, owner, is_in):
    known(owner)
    provider.left_out = {"exp"}
    refused(come(client), client, is_in)


@pytest.mark.parametrize(
    ("refusal", "reason"),
    [
        ({"error": "invalid_client", "hint": "secret-7"}, "invalid_client"),
        ({"access_token": "access", "id_token": "secret-7"}, "DecodeError"),
    ],
)
def test_the_log_has_the_reason_and_no_secret(
    client, provider, owner, monkeypatch, caplog, refusal, reason
):
    known(owner)
    monkeypatch.setattr(provider, "token", lambda form: refusal)
    come(client)
    [record] = [it for it in caplog.records if str(it.msg).startswith("oidc_failed")]
    line = FORMATTER.format(record)
    assert reason in line and "secret-7" not in line


@pytest.fixture
def limited(owner, settings) -> dict[str, Group]:
    """Two groups with limits, of which the owner is in the first."""
    settings.OIDC_GROUPS_CLAIM = "groups"
    known(owner)
    groups = {name: Group.objects.create(name=name) for name in ("interns", "sales")}
    for group in groups.values():
        SpendingLimit.objects.create(group=group, tokens_per_day=5)
    owner.groups.add(groups["interns"])
    return groups


def names_after(client, provider, owner, **claims: Any) -> set[str]:
    provider.person |= claims
    come(client)
    return set(owner.groups.values_list("name", flat=True))


def test_a_single_group_may_be_a_string(client, provider, owner, limited):
    assert names_after(client, provider, owner, groups="sales") == {"sales"}


def test_a_claim_that_was_too_long_to_send_changes_no_group(client, provider, owner, limited):
    """Its user would otherwise leave the groups, and have no limit."""
    elsewhere = {"_claim_names": {"groups": "src1"}}
    assert names_after(client, provider, owner, **elsewhere) == {"interns"}
    assert names_after(client, provider, owner, _claim_names={}) == set()
