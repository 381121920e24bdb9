"""Recall returns nothing that its reader may not see, for random users and queries."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import pytest
from django.contrib.auth import get_user_model
from rest_framework.test import APIClient

from chat.conversations.messages import draft, post_messages
from chat.models import Role, Session, SessionKind, Visibility
from chat.prompt.preview import preview
from memory.models import Chunk, SourceType
from memory.recall import indexing
from projects.core.models import new_id
from projects.models import Membership, Project, Token
from projects.services import create_project

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
TOPICS = ("the salary round", "the merger", "the layoffs", "the audit", "the lawsuit")
MESSAGE_TEMPLATE = (
    "About {topic}: {name} was told that {topic} is settled, and the code word is canary{n}x."
)
CANARY = re.compile(r"canary(\d+)x")


@dataclass(frozen=True)
class Secret:
    """One message: whose session it stands in, and who said it."""

    number: int
    session: Session
    author: Any


class Team:
    """Four people, in three projects of which two have the same name, who tell each other some
    things, write some down for all and keep others to themselves.
    """

    def __init__(self, chance) -> None:
        self.chance = chance
        users = get_user_model().objects
        self.people = [users.create_user(name) for name in ("ann", "bob", "cy", "dee")]
        self.projects = [
            create_project(self.people[0], name="Merger", slug="merger"),
            create_project(self.people[1], name="Merger", slug="merger-2"),
            create_project(self.people[2], name="Open", slug="open", share_raw_turns=True),
        ]
        self.secrets: dict[int, Secret] = {}
        self.clients = {user: client(user) for user in self.people}
        numbers = count(1)
        for project in self.projects:
            owner = project.memberships.get().user
            # Two more belong to it, and one does not.
            for user in chance.sample([person for person in self.people if person != owner], 2):
                Membership.objects.create(project=project, user=user, role="editor")
            for user in self.members(project):
                for visibility in Visibility.values * 2:
                    self.talk(project, user, visibility, numbers)
                for visibility in Visibility.values:
                    self.talk(project, user, visibility, numbers, SessionKind.NOTES)
        indexing.catch_up()

    def members(self, project: Project) -> list[Any]:
        return [membership.user for membership in project.memberships.select_related("user")]

    def talk(
        self,
        project: Project,
        user,
        visibility: str,
        numbers: Iterator[int],
        kind: str = SessionKind.CHAT,
    ) -> None:
        session = Session.objects.create(
            project=project, creator=user, visibility=visibility, title="Talk", kind=kind
        )
        alone = session.is_notes or visibility == Visibility.PRIVATE
        others = [user] if alone else self.members(project)
        drafts = []
        for place in range(6):
            author, number = self.chance.choice(others), next(numbers)
            is_reply = place % 2 == 1 and not session.is_notes
            text = MESSAGE_TEMPLATE.format(
                topic=self.chance.choice(TOPICS), name=user.username, n=number
            )
            drafts.append(
                draft(
                    text,
                    role=Role.ASSISTANT if is_reply else Role.USER,
                    author=None if is_reply else author,
                    created_at=AT + timedelta(days=self.chance.randrange(60), minutes=number),
                )
            )
            self.secrets[number] = Secret(number, session, None if is_reply else author)
        post_messages(session, sorted(drafts, key=lambda item: item.created_at))

    def readable(self, project: Project, user, shared_only: bool = False) -> set[int]:
        """By DESIGN's words, and not by the query's: what `user` may be quoted in `project`."""
        return {
            secret.number
            for secret in self.secrets.values()
            if secret.session.project_id == project.pk
            and self.may(user, project, secret, shared_only)
        }

    def may(self, user, project: Project, item: Secret, shared_only: bool) -> bool:
        is_shared = item.session.visibility == Visibility.PROJECT
        own = item.session.creator_id == user.pk
        if own and not shared_only:
            return True
        is_readable = project.share_raw_turns or own or item.author == user or item.session.is_notes
        return is_shared and is_readable


def client(user) -> APIClient:
    api_client = APIClient()
    token = Token.objects.create(user=user)[1]
    api_client.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return api_client


@pytest.fixture
def team(chance) -> Team:
    return Team(chance)


def canaries(text: str) -> set[int]:
    return set(map(int, CANARY.findall(text)))


def test_no_search_finds_what_is_anothers(team, chance, scale, tally):
    assert Chunk.objects.count() > 50
    answered_count = 0
    for _ in range(scale(10_000, 250)):
        user, project = chance.choice(team.people), chance.choice(team.projects)
        query = question(team, chance)
        answer = team.clients[user].get(f"/api/v1/projects/{project.slug}/recall/", query)
        if user not in team.members(project):
            assert answer.status_code == 404
            continue
        assert answer.status_code == 200, answer.json()
        results = answer.json()["results"]
        canaries_found = canaries(answer.content.decode())
        assert canaries_found <= team.readable(project, user), query
        # A filter names nothing that is not found without it.
        session = query.get("session")
        if session and not any(
            str(secret.session.pk) == session and secret.number in team.readable(project, user)
            for secret in team.secrets.values()
        ):
            assert results == []
        answered_count += bool(results)
        tally("questions with results" if results else "questions without")
    assert answered_count > 30


def question(team: Team, chance) -> dict[str, Any]:
    """Words, and any of the filters."""
    secret = chance.choice(list(team.secrets.values()))
    words = (
        f"canary{secret.number}x",
        f"What is the code word about {chance.choice(TOPICS)}?",
        f"What was {secret.session.creator.username} told?",
        "",
    )
    body: dict[str, Any] = {"q": chance.choice(words)}
    if chance.random() < 0.3:
        body["session"] = chance.choice((str(secret.session.pk), str(new_id())))
    if chance.random() < 0.2:
        body["exclude_session"] = str(secret.session.pk)
    if chance.random() < 0.3:
        body["author"] = chance.choice([*(person.username for person in team.people), "nobody"])
    if chance.random() < 0.2:
        body["since"] = (AT + timedelta(days=chance.randrange(60))).isoformat()
    if chance.random() < 0.2:
        body["until"] = (AT + timedelta(days=chance.randrange(90))).isoformat()
    if chance.random() < 0.2:
        body["source"] = chance.choice(SourceType.values)
    body |= chance.choice(({}, {"limit": chance.randint(1, 200)}, {"token_budget": 500}))
    return body


def test_no_prompt_recalls_what_is_anothers(team, chance, scale, tally):
    shown_count = 0
    for _ in range(scale(1_000, 40)):
        project = chance.choice(team.projects)
        user = chance.choice(team.members(project))
        visibility = chance.choice(Visibility.values)
        session = Session.objects.create(project=project, creator=user, visibility=visibility)
        secret = chance.choice(list(team.secrets.values()))
        question_text = (
            f"What is the code word about {chance.choice(TOPICS)}, canary{secret.number}x?"
        )
        built = preview(session, question_text, user)
        sections = {section.name: section for section in built.sections}
        canaries_found: set[int] = set()
        if "details" in sections:
            canaries_found = canaries(sections["details"].messages[0].text)
        shared_only = visibility == Visibility.PROJECT
        assert canaries_found <= team.readable(project, user, shared_only)
        shown_count += len(canaries_found)
        session.delete()
    assert shown_count > 10
    tally("excerpts in prompts", shown_count)


def test_a_reader_of_everything_would_be_noticed(team, chance, monkeypatch):
    monkeypatch.setattr(
        "memory.recall.search.RecallScope.visibility_condition", lambda self: "true"
    )
    with pytest.raises(AssertionError):
        test_no_search_finds_what_is_anothers(team, chance, lambda full, short: short, print)
