"""Whoever asks, however it is asked: nothing that is not theirs to read comes back."""

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
from chat.prompt.builder import preview
from memory.models import Chunk, SourceType
from memory.recall import indexing
from projects.core.models import new_id
from projects.models import Membership, Project, Token
from projects.services import create_project

pytestmark = pytest.mark.django_db

AT = datetime(2026, 3, 1, 9, tzinfo=UTC)
TOPICS = ("the salary round", "the merger", "the layoffs", "the audit", "the lawsuit")
TOLD = "About {topic}: {name} was told that {topic} is settled, and the code word is canary{n}x."
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
            for user in chance.sample([one for one in self.people if one != owner], 2):
                Membership.objects.create(project=project, user=user, role="editor")
            for user in self.members(project):
                for visibility in Visibility.values * 2:
                    self.talk(project, user, visibility, numbers)
                for visibility in Visibility.values:
                    self.talk(project, user, visibility, numbers, SessionKind.NOTES)
        indexing.catch_up()

    def members(self, project: Project) -> list[Any]:
        return [one.user for one in project.memberships.select_related("user")]

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
            text = TOLD.format(topic=self.chance.choice(TOPICS), name=user.username, n=number)
            drafts.append(
                draft(
                    text,
                    role=Role.ASSISTANT if is_reply else Role.USER,
                    author=None if is_reply else author,
                    created_at=AT + timedelta(days=self.chance.randrange(60), minutes=number),
                )
            )
            self.secrets[number] = Secret(number, session, None if is_reply else author)
        post_messages(session, sorted(drafts, key=lambda one: one.created_at))

    def readable(self, project: Project, user, shared_only: bool = False) -> set[int]:
        """By DESIGN's words, and not by the query's: what `user` may be quoted in `project`."""
        return {
            one.number
            for one in self.secrets.values()
            if one.session.project_id == project.pk and self.may(user, project, one, shared_only)
        }

    def may(self, user, project: Project, one: Secret, shared_only: bool) -> bool:
        is_shared = one.session.visibility == Visibility.PROJECT
        own = one.session.creator_id == user.pk
        if own and not shared_only:
            return True
        told = project.share_raw_turns or own or one.author == user or one.session.is_notes
        return is_shared and told


def client(user) -> APIClient:
    made = APIClient()
    token = Token.objects.create(user=user)[1]
    made.credentials(HTTP_AUTHORIZATION=f"Bearer {token}")
    return made


@pytest.fixture
def team(chance) -> Team:
    return Team(chance)


def canaries(text: str) -> set[int]:
    return set(map(int, CANARY.findall(text)))


def test_no_search_finds_what_is_anothers(team, chance, scale, tally):
    assert Chunk.objects.count() > 50
    answered = 0
    for _ in range(scale(10_000, 250)):
        user, project = chance.choice(team.people), chance.choice(team.projects)
        asked = question(team, chance)
        answer = team.clients[user].get(f"/api/v1/projects/{project.slug}/recall/", asked)
        if user not in team.members(project):
            assert answer.status_code == 404
            continue
        assert answer.status_code == 200, answer.json()
        results = answer.json()["results"]
        told = canaries(answer.content.decode())
        assert told <= team.readable(project, user), asked
        # A filter names nothing that is not found without it.
        session = asked.get("session")
        if session and not any(
            str(one.session.pk) == session and one.number in team.readable(project, user)
            for one in team.secrets.values()
        ):
            assert results == []
        answered += bool(results)
        tally("questions with results" if results else "questions without")
    assert answered > 30


def question(team: Team, chance) -> dict[str, Any]:
    """Words, and any of the filters."""
    secret = chance.choice(list(team.secrets.values()))
    words = (
        f"canary{secret.number}x",
        f"What is the code word about {chance.choice(TOPICS)}?",
        f"What was {secret.session.creator.username} told?",
        "",
    )
    asked: dict[str, Any] = {"q": chance.choice(words)}
    if chance.random() < 0.3:
        asked["session"] = chance.choice((str(secret.session.pk), str(new_id())))
    if chance.random() < 0.2:
        asked["exclude_session"] = str(secret.session.pk)
    if chance.random() < 0.3:
        asked["author"] = chance.choice([*(one.username for one in team.people), "nobody"])
    if chance.random() < 0.2:
        asked["since"] = (AT + timedelta(days=chance.randrange(60))).isoformat()
    if chance.random() < 0.2:
        asked["until"] = (AT + timedelta(days=chance.randrange(90))).isoformat()
    if chance.random() < 0.2:
        asked["source"] = chance.choice(SourceType.values)
    asked |= chance.choice(({}, {"limit": chance.randint(1, 200)}, {"token_budget": 500}))
    return asked


def test_no_prompt_recalls_what_is_anothers(team, chance, scale, tally):
    told = 0
    for _ in range(scale(1_000, 40)):
        project = chance.choice(team.projects)
        user = chance.choice(team.members(project))
        visibility = chance.choice(Visibility.values)
        session = Session.objects.create(project=project, creator=user, visibility=visibility)
        secret = chance.choice(list(team.secrets.values()))
        asked = f"What is the code word about {chance.choice(TOPICS)}, canary{secret.number}x?"
        built = preview(session, asked, user)
        sections = {one.name: one for one in built.sections}
        found: set[int] = set()
        if "details" in sections:
            found = canaries(sections["details"].messages[0].text)
        shared_only = visibility == Visibility.PROJECT
        assert found <= team.readable(project, user, shared_only)
        told += len(found)
        session.delete()
    assert told > 10
    tally("excerpts in prompts", told)


def test_who_could_read_all_would_be_noticed(team, chance, monkeypatch):
    monkeypatch.setattr(
        "memory.recall.search.RecallScope.visibility_condition", lambda self: "true"
    )
    with pytest.raises(AssertionError):
        test_no_search_finds_what_is_anothers(team, chance, lambda full, short: short, print)
