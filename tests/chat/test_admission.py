"""Stream grants: each event that ends one, and no other event ends it."""

from datetime import timedelta

import pytest
from django.utils import timezone

from chat.models import Session
from chat.streaming.poller import StreamGrant, withdrawn_grants
from projects.models import Membership, Token
from projects.services import create_project

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(editor) -> Token:
    return Token.issue(editor)[0]


@pytest.fixture
def grants(editor, session, token) -> set[StreamGrant]:
    """As a program of the editor has it, and as a page of theirs."""
    grant = StreamGrant(editor.pk, session.project_id, session.pk, token.pk)
    return {grant, StreamGrant(editor.pk, session.project_id, session.pk)}


def test_valid_grants_are_not_withdrawn(grants):
    assert withdrawn_grants(grants) == frozenset()
    assert withdrawn_grants([]) == frozenset()


def test_a_revoked_token_ends_its_own(grants, token):
    revoked = token.pk
    token.delete()
    assert {grant.token for grant in withdrawn_grants(grants)} == {revoked}


def test_an_expired_token_ends_its_own(grants, token):
    Token.objects.update(expiry=timezone.now() - timedelta(seconds=1))
    assert {grant.token for grant in withdrawn_grants(grants)} == {token.pk}


def test_a_token_that_opens_another_project_now_ends_its_own(grants, token, owner):
    Token.objects.update(project=create_project(owner, name="Support"))
    assert {grant.token for grant in withdrawn_grants(grants)} == {token.pk}


def test_a_token_for_this_very_project_holds(grants, project):
    Token.objects.update(project=project, expiry=timezone.now() + timedelta(hours=1))
    assert withdrawn_grants(grants) == frozenset()


def test_a_user_who_may_not_sign_in_any_more_hears_nothing(grants, editor):
    editor.is_active = False
    editor.save()
    assert withdrawn_grants(grants) == grants


def test_streams_of_a_former_member_are_withdrawn(grants, editor):
    Membership.objects.filter(user=editor).delete()
    assert withdrawn_grants(grants) == grants


def test_a_session_made_private_is_its_creators_alone(grants, session, viewer):
    theirs = StreamGrant(viewer.pk, session.project_id, session.pk)
    assert withdrawn_grants({*grants, theirs}) == frozenset()
    Session.objects.update(visibility="private")
    assert withdrawn_grants({*grants, theirs}) == {theirs}


def test_a_private_session_without_a_creator_is_nobodys(grants, session):
    Session.objects.update(visibility="private", creator=None)
    assert withdrawn_grants(grants) == grants


def test_the_grants_of_a_deleted_session_are_withdrawn(grants):
    Session.objects.update(deleted_at=timezone.now())
    assert withdrawn_grants(grants) == grants


def test_where_a_project_alone_counts_no_session_is_asked_for(editor, project, token):
    whole = StreamGrant(editor.pk, project.pk, None, token.pk)
    assert withdrawn_grants([whole]) == frozenset()
    token.delete()
    assert withdrawn_grants([whole]) == {whole}


def test_any_number_takes_three_queries(person, project, django_assert_num_queries):
    many = set()
    for number in range(20):
        user = person(f"user{number}")
        Membership.objects.create(project=project, user=user, role="viewer")
        session = Session.objects.create(project=project, creator=user)
        token, _ = Token.issue(user)
        many.add(StreamGrant(user.pk, project.pk, session.pk, token.pk))
    with django_assert_num_queries(3):
        assert withdrawn_grants(many) == frozenset()
