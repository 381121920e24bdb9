"""A project in which there is something of everything, made through the doors that people use."""

import base64
from dataclasses import dataclass

from tests.chat.pictures import picture
from tests.membership import join
from tests.server import Installation
from tests.torture.clients import Api

# As in the schema.
PROJECT = "/api/v1/projects/{slug}/"
Values = dict[str, list[str]]

WEBHOOK = """
from memory.models import Webhook
from projects.models import Project
project = Project.objects.get(slug="%s")
print(Webhook.objects.create(project=project, url="https://example.org/", events=[]).pk)
"""


@dataclass(frozen=True)
class World:
    """`token` opens all of it. `ids` are values for the parameters in paths that begin so; `spare`
    are for operations, by method and path, after which little is left.
    """

    token: str
    ids: dict[str, Values]
    spare: dict[str, Values]

    def values(self, operation: str) -> Values:
        """What the parameters in the path of an operation, such as `GET /api/v1/…`, can be."""
        path = operation.partition(" ")[2]
        path_values: Values = {}
        for beginning in sorted(self.ids, key=len):
            if path.startswith(beginning):
                path_values |= self.ids[beginning]
        return path_values | self.spare.get(operation, {})


def build(installation: Installation, url: str) -> World:
    """Two months of talk, and what people add to it."""
    from config.postgres.server import broker_url, install_broker, socket_directory

    install_broker(broker_url(socket_directory(installation.data_dir)))
    token = installation.token
    builder = _Builder(Api(url, token), installation.manage("make_demo", "--owner=admin"))
    account = ("--noinput", "--verbosity=0", "--email=e@example.org")
    for name in ("edgar", "vera"):
        installation.manage("createsuperuser", f"--username={name}", *account)
        join(builder.api, builder.slug, name, installation.manage("create_token", name))
    builder.invite_back(Api(url, installation.manage("create_token", "edgar")))
    # Offline, no address can be registered.
    builder.webhook = installation.manage("shell", "--verbosity=0", "-c", WEBHOOK % builder.slug)
    return builder.world(token)


class _Builder:
    def __init__(self, api: Api, slug: str) -> None:
        self.api, self.slug = api, slug
        self.webhook = ""
        self.received: list[str] = []

    def add(self, what: str, body: object) -> dict:
        return self.api.call("POST", f"projects/{self.slug}/{what}/", body)

    def invite_back(self, other: Api) -> None:
        """Invitations by name of the token's user."""
        for number in range(3):
            slug = other.call("POST", "projects/", {"name": f"Guests {number}"})["slug"]
            invited = other.call("POST", f"projects/{slug}/members/", {"username": "admin"})
            self.received.append(invited["invitation"])

    def ids(self, what: str, name: str = "id") -> list[str]:
        payload = self.api.call("GET", f"projects/{self.slug}/{what}/")
        rows = payload if isinstance(payload, list) else payload["results"]
        return [row[name] for row in rows]

    def chat(self) -> tuple[str, list[str]]:
        """A chat with an image, an edited message and a reaction; its id and its messages'."""
        chat = self.add("sessions", {"title": "The cutover"})["id"]
        image = {"data": base64.b64encode(picture()).decode(), "name": "plan.png"}
        body = {"content": "When is the cutover?", "attachments": [image]}
        exchange = self.api.call("POST", f"sessions/{chat}/messages/", body)
        question_id, reply = exchange["message"]["id"], exchange["reply"]["id"]
        self.api.call(
            "PATCH", f"messages/{question_id}/", {"content": "When is the cutover exactly?"}
        )
        self.api.call("POST", f"messages/{reply}/reactions/", {"emoji": "👍"})
        self.image = exchange["message"]["attachments"][0]["id"]
        return chat, [question_id, reply]

    def world(self, token: str) -> World:
        chats = self.ids("sessions")
        chat, messages = self.chat()
        spare_chat, spare_messages = self.chat()
        cleared, _ = self.chat()
        fact = {"subject": "Billing", "predicate": "is owned by", "object": "the platform team"}
        facts = [self.add("facts", fact | {"object": f"team {n}"})["id"] for n in range(3)]
        notes = [self.add("notes", {"text": f"Room {n} is ours."})["id"] for n in range(3)]
        self.api.call("PUT", f"projects/{self.slug}/blocks/persona/", {"content": "Be brief."})
        self.api.call("PUT", f"projects/{self.slug}/blocks/gone/", {"content": "Be gone."})
        invited = [self.add("invitations", {"role": "viewer"})["id"] for _ in range(2)]
        entries = self.ids("memory/entries")
        spare_slugs = [
            self.api.call("POST", "projects/", {"name": f"Spare {n}"})["slug"] for n in range(2)
        ]
        ids = {
            PROJECT: {"slug": [self.slug]},
            f"{PROJECT}members/": {"username": ["admin", "edgar", "vera"]},
            f"{PROJECT}blocks/": {"name": ["persona"]},
            f"{PROJECT}facts/": {"id": facts[1:]},
            f"{PROJECT}notes/": {"id": notes[1:]},
            f"{PROJECT}memory/entries/": {"id": entries[1:4]},
            f"{PROJECT}webhooks/": {"id": [self.webhook]},
            f"{PROJECT}invitations/": {"id": invited[1:]},
            f"{PROJECT}activity/": {"id": self.ids("activity")[:3]},
            "/api/v1/invitations/": {"id": self.received[2:]},
            "/api/v1/sessions/": {"id": [chat, chats[0]]},
            "/api/v1/messages/": {"id": messages},
            "/api/v1/attachments/": {"id": [self.image]},
        }
        spare = {
            "DELETE /api/v1/sessions/{id}/": {"id": [spare_chat]},
            "POST /api/v1/sessions/{id}/clear/": {"id": [cleared]},
            "DELETE /api/v1/messages/{id}/": {"id": spare_messages},
            f"DELETE {PROJECT}": {"slug": spare_slugs[:1]},
            f"PATCH {PROJECT}": {"slug": spare_slugs[1:]},
            f"POST {PROJECT}forget/": {"slug": spare_slugs[1:]},
            f"DELETE {PROJECT}members/{{username}}/": {"username": ["vera"]},
            f"DELETE {PROJECT}invitations/{{id}}/": {"id": invited[:1]},
            "POST /api/v1/invitations/{id}/": {"id": self.received[:1]},
            "DELETE /api/v1/invitations/{id}/": {"id": self.received[1:2]},
            f"DELETE {PROJECT}blocks/{{name}}/": {"name": ["gone"]},
            f"DELETE {PROJECT}facts/{{id}}/": {"id": facts[:1]},
            f"DELETE {PROJECT}notes/{{id}}/": {"id": notes[:1]},
            f"DELETE {PROJECT}memory/entries/{{id}}/": {"id": entries[:1]},
        }
        return World(token, ids, spare)
