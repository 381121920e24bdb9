"""A project with something of everything that an address can name, and who might ask for it."""

import io
import re
from datetime import timedelta
from types import SimpleNamespace

from django.contrib.auth import get_user_model
from django.test import Client
from django.utils import timezone

from chat import attachments
from chat.conversations import notes, saved_prompts
from chat.conversations.messages import post_message
from chat.models import Import, Session
from memory import blocks, facts
from memory.facts import Statement
from memory.files.adding import add_file
from memory.forgetting import service
from memory.forgetting.service import ForgetScope
from memory.models import Entry, File, FilePassage, Webhook
from projects.invitations import invite_user
from projects.models import Invitation, Token
from projects.services import create_project
from tests.access.routes import Route
from tests.chat.pictures import picture
from tests.memory.file_helpers import read
from tests.memory.files.samples import pdf

# What stands before a parameter in a pattern → what the world calls it.
NAMED_BEFORE = {
    "projects": "project",
    "sessions": "session",
    "chats": "session",
    "messages": "question",
    "attachments": "image",
    "images": "image",
    "imports": "upload",
    "notes": "note",
    "entries": "entry",
    "memory": "entry",
    "facts": "fact",
    "activity": "receipt",
    "receipts": "receipt",
    "blocks": "block",
    "files": "file",
    "members": "member",
    "tokens": "token",
    "prompts": "saved_prompt",
    "webhooks": "webhook",
    "invitations": "invitation",
}
# By which of their fields things are named in addresses; all others by their id.
KEYS = {"project": "slug", "block": "name", "member": "username", "token": "public_id"}


class World(SimpleNamespace):
    """The members `owner`, `editor` and `viewer` of `project`; a `stranger` and a `former` member;
    and things in the project, which are the editor's but for a fact, a file and an import of the
    owner.
    """

    def __init__(self) -> None:
        users = get_user_model().objects
        for name in ("owner", "editor", "viewer", "stranger", "former"):
            setattr(self, name, users.create_user(name))
        self.project = create_project(self.owner, name="Billing")
        self.other_project = create_project(self.owner, name="Support")
        for role in ("editor", "viewer"):
            self.project.memberships.create(user=getattr(self, role), role=role)
        self.project.memberships.create(user=self.former, role="owner").delete()
        self.member = self.viewer
        self.token = Token.objects.create(user=self.owner, name="kept")[0]
        self.invitation = Invitation.issue(
            self.project, created_by=self.owner, expires_at=timezone.now() + timedelta(days=7)
        )[0]
        guests = create_project(self.editor, name="Guests")
        self.received = invite_user(guests, self.owner.get_username(), "viewer", self.editor)
        self.webhook = Webhook.objects.create(
            project=self.project, url="https://example.org/", events=[], created_by=self.owner
        )
        self._talk()
        self._keep()

    def _talk(self) -> None:
        project, editor = self.project, self.editor
        self.session = Session.objects.create(
            project=project, creator=editor, title="Cutover", share_key="key-of-the-link"
        )
        self.link = SimpleNamespace(pk=self.session.share_key)
        self.deleted_session = Session.objects.create(
            project=project, creator=editor, deleted_at=timezone.now()
        )
        self.question = post_message(self.session, "When is the cutover?", author=editor)
        self.reply = post_message(self.session, "In May.", role="assistant")
        self.reply.receipt = {"budget": 1_000, "sections": []}
        self.reply.save(update_fields=["receipt"])
        self.image = attachments.upload_image(
            self.session, editor, "plan.png", io.BytesIO(picture())
        )
        attachments.claim_uploads(self.question, [self.image.pk], editor)
        forgotten = post_message(self.session, "Forget this.", author=editor)
        receipt = service.forget(project, ForgetScope(message=forgotten.pk), self.owner)
        self.receipt = SimpleNamespace(pk=receipt.id)
        self.note = notes.add_note(project, editor, "The door code is 4711.")
        self.upload = Import.objects.create(project=project, user=self.owner, name="talk.jsonl")

    def _keep(self) -> None:
        self.entry = Entry.objects.create(
            project=self.project,
            session=self.session,
            granularity="conversation",
            period_key="2026-03-12",
            zone="UTC",
            summary="- The cutover is in May.",
            tokens=10,
            message_count=2,
            first_seq=1,
            last_seq=2,
            first_source_at=self.question.created_at,
            last_source_at=self.reply.created_at,
            written_by="scripted",
            sources_hash="of its sources",
        )
        member = self.project.memberships.get(user=self.owner)
        statement = Statement("Billing", "is owned by", "the platform team", timezone.now())
        self.fact = facts.create_fact(member, statement)[0]
        self.file = self.add_pdf(self.owner)
        passage = FilePassage.objects.get(project=self.project, number=1)
        item = {"id": str(passage.pk), "kind": "file", "revision": 1, "tokens": 1}
        self.reply.receipt["sections"] = [{"name": "files", "tokens": 1, "items": [item]}]
        self.reply.save(update_fields=["receipt"])
        self.first = SimpleNamespace(pk=1)
        self.saved_prompt = saved_prompts.put(
            self.project, None, "weekly", "Report {{week}}.", self.owner
        )
        self.block = blocks.put(self.project, None, "persona", "Be brief.", self.owner)

    def add_pdf(self, user, session: Session | None = None) -> File:
        """Add a PDF of one page, of which there is also an image."""
        content = io.BytesIO(pdf("The door code is 4711."))
        document = add_file(self.project, user, "manual.pdf", content, session)
        read(document)
        return document

    def address(self, route: Route, values: dict[str, str]) -> str:
        """The path of `route`; `values` name things that stand in for its parameters.

        Raises KeyError for a parameter of which nothing tells what it is.
        """
        before, segments = "", []
        for segment in route.pattern.removeprefix("^").split("/"):
            parameter = re.fullmatch(r"<\w+:(\w+)>", segment)
            if parameter is None:
                before = segment
                segments.append(segment)
            else:
                name = values.get(parameter[1]) or NAMED_BEFORE[before]
                segments.append(str(getattr(getattr(self, name), KEYS.get(name, "pk"))))
        return "/" + "/".join(segments)

    def unknown(self, to_api: bool) -> dict[str, Client]:
        """Those of whom nobody knows who they are: at the API, or at the pages."""
        known = {"anonymous": Client()}
        if to_api:
            revoked = token_of(self.owner, name="revoked")
            Token.objects.get(name="revoked").delete()
            known |= {
                "revoked": revoked,
                "expired": token_of(self.owner, expiry=timedelta(seconds=-1)),
            }
        return known

    def outsiders(self, to_api: bool) -> dict[str, Client]:
        """Those who are known, and have no business in the project."""
        enter = token_of if to_api else signed_in
        known = {"stranger": enter(self.stranger), "former member": enter(self.former)}
        if to_api:
            known["token of another project"] = token_of(self.owner, project=self.other_project)
        return known

    def members(self, to_api: bool) -> dict[str, Client]:
        """By role."""
        enter = token_of if to_api else signed_in
        return {role: enter(getattr(self, role)) for role in ("viewer", "editor", "owner")}


def signed_in(user, **options) -> Client:
    client = Client(**options)
    client.force_login(user)
    return client


def token_of(user, **fields) -> Client:
    return Client(
        headers={"Authorization": f"Bearer {Token.objects.create(user=user, **fields)[1]}"}
    )
