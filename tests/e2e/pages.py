"""Every page of ours, in the demo project, by a name for its picture. The API's is Swagger's."""

from collections.abc import Mapping
from datetime import date, timedelta
from typing import Any

from tests.e2e.conftest import Server


def addresses(server: Server, slug: str) -> Mapping[str, str]:
    """The path of each page by its name. What is asked of the API is there in the demo."""

    def first(path: str) -> Any:
        return server.api("GET", f"projects/{slug}/{path}")["results"][0]

    chat = first("sessions/")["id"]
    digest = first("memory/entries/?granularity=week")["id"]
    fact = first("facts/?subject=billing")["id"]
    message_id = server.api("GET", f"sessions/{chat}/messages/")["results"][0]["id"]
    entry = first("memory/entries/?granularity=conversation&state=live")["id"]
    webhook = _webhook(server, slug)
    project = f"/projects/{slug}"
    memory = f"{project}/memory"
    return {
        "projects": "/",
        "tokens": "/account/tokens/",
        "account": "/account/",
        "account-mail": "/accounts/mail/",
        "account-password": "/accounts/password/",
        "account-factors": "/accounts/factors/",
        "account-passkeys": "/accounts/passkeys/",
        "account-browsers": "/accounts/sessions/",
        "account-confirm": "/accounts/factors/app/",
        "sign-out": "/accounts/logout/",
        "overview": f"{project}/overview/",
        "prompts": f"{project}/prompts/",
        "costs": f"{project}/costs/",
        "own-costs": "/costs/",
        "server-costs": "/costs/server/",
        "welcome": "/welcome/",
        "project": f"{project}/",
        "archived": f"{project}/?archived",
        "chats-found": f"{project}/?q=replica",
        "chat": f"{project}/chats/{chat}/",
        "chat-context": f"{project}/chats/{chat}/prompt/",
        "chat-model": f"{project}/chats/{chat}/model/",
        "chat-keep": f"{project}/chats/{chat}/keep/",
        "chat-delete": f"{project}/chats/{chat}/delete/",
        "message-edit": f"/messages/{message_id}/edit/",
        "message-delete": f"/messages/{message_id}/delete/",
        "message-revisions": f"/messages/{message_id}/revisions/",
        "notes": f"{project}/notes/",
        "search": f"{project}/search/?q=wheelchair+places",
        "memory": f"{memory}/",
        "memory-then": f"{memory}/?at={(date.today() - timedelta(days=30)).isoformat()}",
        "memory-tree": f"{memory}/?tree",
        "entry": f"{memory}/{digest}/",
        "entry-of-a-chat": f"{memory}/{entry}/",
        "review": f"{memory}/review/",
        "activity": f"{memory}/activity/",
        "facts": f"{memory}/facts/",
        "facts-timeline": f"{memory}/facts/?timeline",
        "fact": f"{memory}/facts/{fact}/",
        "blocks": f"{memory}/blocks/",
        "forget": f"{memory}/forget/",
        "me": f"{project}/me/",
        "files": f"{project}/files/",
        "imports": f"{project}/imports/",
        "settings": f"{project}/settings/",
        "webhooks": f"{project}/settings/webhooks/",
        "webhook": f"{project}/settings/webhooks/{webhook}/",
        "nothing-there": f"{project}/chats/nowhere/",
        "admin": "/admin/",
        "admin-entries": "/admin/memory/entry/",
        "admin-entry": f"/admin/memory/entry/{digest}/change/",
        "admin-activity": "/admin/memory/activity/",
        "admin-projects": "/admin/projects/project/",
        "admin-calls": "/admin/chat/call/",
        "chats-tagged": f"{project}/?tag=billing",
    }


def _webhook(server: Server, slug: str) -> str:
    """The id of a webhook that a test waits for."""
    webhooks = server.api("GET", f"projects/{slug}/webhooks/")["results"]
    if webhooks:
        return webhooks[0]["id"]
    wish = {"url": "http://127.0.0.1:8443/hook", "events": ["message.posted", "entry.written"]}
    webhook_id = server.api("POST", f"projects/{slug}/webhooks/", wish)["id"]
    server.api("POST", f"projects/{slug}/webhooks/{webhook_id}/test/")
    return webhook_id
