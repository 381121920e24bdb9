"""The roles that may call each method of each route. Every new route needs a row here.

A route is listed by its name in the URL configuration, with the methods that it answers to and who
may use each. One that is not listed, or listed with other methods, fails the test.
"""

from dataclasses import dataclass, field
from enum import Enum


class Who(Enum):
    """Who may. Others get 404 from what is a project's, viewers and editors perhaps 403."""

    ANYBODY = "whether signed in or not"
    USERS = "who is signed in, each for themselves"
    MEMBERS = "the members of the project"
    WRITERS = "its editors and owners"
    OWNERS = "its owners"
    SELF_OR_OWNERS = "the member of whom the address is, and its owners"
    ADMINISTRATORS = "the server's administrators, whatever their projects"


ANYBODY, USERS, MEMBERS, WRITERS, OWNERS, SELF_OR_OWNERS, ADMINISTRATORS = Who


@dataclass(frozen=True)
class Door:
    """`methods` says who may; `values` are names of things in the cast's world that stand in for
    parameters of the path, where what comes before them in it does not tell.

    `shut` methods lead away whatever the address, and tell nothing. `sent` is what makes a wish of
    a request that changes something; without it there is nothing to be allowed. A route that
    `streams` is asked by nobody who may: its views give back the connection that the test uses.
    """

    methods: dict[str, Who]
    values: dict[str, str] = field(default_factory=dict)
    shut: tuple[str, ...] = ()
    sent: dict[str, object] = field(default_factory=dict)
    streams: bool = False


def read(**more) -> Door:
    return Door({"GET": MEMBERS}, **more)


def write(**more) -> Door:
    return Door({"POST": WRITERS}, **more)


def form(role: Who = WRITERS, **more) -> Door:
    """A page that asks before it does something."""
    return Door({"GET": role, "POST": role}, **more)


OPEN = {
    name: Door({"GET": ANYBODY})
    # Of metrics, who knows the server's own token: tests/config/test_metrics.py.
    for name in (
        "favicon.ico",
        "static-file",
        "healthz",
        "readyz",
        "metrics",
        "schema",
        "docs",
        "old-reply-sources",
        "old-api-reply-sources",
        "^api/",
        "^v1/",
    )
}

API = {
    "api-tokens": Door({"GET": USERS, "POST": USERS}),
    # The owner's.
    "api-token": Door({"GET": OWNERS, "DELETE": OWNERS}),
    "api-projects": Door({"GET": USERS, "POST": USERS}),
    "api-project": Door({"GET": MEMBERS, "PATCH": OWNERS, "DELETE": OWNERS}),
    "api-members": Door({"GET": MEMBERS, "POST": OWNERS}),
    "api-member": Door({"GET": MEMBERS, "PATCH": OWNERS, "DELETE": SELF_OR_OWNERS}),
    "api-invitations": Door({"GET": OWNERS, "POST": OWNERS}),
    "api-invitation": Door({"GET": OWNERS, "DELETE": OWNERS}),
    "api-received-invitations": Door({"GET": USERS}),
    # The owner's.
    "api-received-invitation": Door({"POST": OWNERS, "DELETE": OWNERS}, values={"id": "received"}),
    "api-sessions": Door({"GET": MEMBERS, "POST": WRITERS}),
    "api-session": Door({"GET": MEMBERS, "PATCH": WRITERS, "DELETE": WRITERS}),
    "api-restore": write(values={"pk": "deleted_session"}),
    "api-close": write(),
    "api-clear": write(),
    "api-share": Door({"POST": WRITERS, "DELETE": WRITERS}),
    "api-fork": write(),
    "api-prompt": read(),
    "api-session-export": read(),
    "api-messages": Door({"GET": MEMBERS, "POST": WRITERS}),
    "api-message": Door({"GET": MEMBERS, "PATCH": WRITERS, "DELETE": WRITERS}),
    "api-reactions": Door({"GET": MEMBERS, "POST": WRITERS, "DELETE": WRITERS}),
    "api-regenerate": write(),
    "api-rerun": write(),
    "api-choose": write(),
    "api-stop": write(),
    "api-revisions": read(),
    "api-stream": read(streams=True),
    "api-receipt": read(values={"pk": "reply"}),
    "api-attachments": write(),
    "api-attachment": read(streams=True),
    "api-notes": Door({"GET": MEMBERS, "POST": WRITERS}),
    "api-note": Door({"GET": MEMBERS, "PATCH": WRITERS, "DELETE": WRITERS}),
    "api-imports": Door({"GET": WRITERS, "POST": WRITERS}),
    # Of the owner, and shown to nobody else.
    "api-import": Door({"GET": OWNERS}),
    "api-memory": read(),
    "api-entries": read(),
    "api-entry": Door({"GET": MEMBERS, "PATCH": WRITERS, "DELETE": OWNERS}),
    "api-entry-revisions": read(),
    "api-act": write(sent={"action": "pin"}),
    "api-reply-sources": read(values={"pk": "reply"}),
    "api-contradictions": read(),
    "api-activity-one": read(),
    "api-facts": Door({"GET": MEMBERS, "POST": WRITERS}),
    "api-fact": Door({"GET": MEMBERS, "PATCH": WRITERS, "DELETE": OWNERS}),
    "api-activity": read(),
    "api-usage": read(),
    "api-own-usage": Door({"GET": USERS}),
    "api-saved-prompts": Door(
        {"GET": MEMBERS, "POST": WRITERS}, sent={"name": "report", "text": "Report {{week}}."}
    ),
    "api-saved-prompt": Door({"GET": MEMBERS, "DELETE": WRITERS}),
    "api-limits": Door({"GET": MEMBERS, "PUT": OWNERS}, sent={"tokens_per_day": 1_000_000}),
    # Who writes has their own words forgotten here, too.
    "api-forget": Door({"POST": OWNERS}, sent={"before": "2020-01-01T00:00:00Z"}),
    "api-recall": read(),
    "api-profile": read(),
    "api-export": Door({"GET": OWNERS}, streams=True),
    "api-files": Door({"GET": MEMBERS, "POST": WRITERS}),
    # The owner's.
    "api-file": Door({"GET": MEMBERS, "DELETE": OWNERS}),
    "api-file-text": read(),
    "api-file-download": read(streams=True),
    "api-file-retry": Door({"POST": OWNERS}),
    "api-blocks": read(),
    "api-block": Door({"GET": MEMBERS, "PUT": WRITERS, "PATCH": WRITERS, "DELETE": WRITERS}),
    "api-summarize": write(),
    "api-webhooks": form(OWNERS),
    "api-webhook": Door({"GET": OWNERS, "PATCH": OWNERS, "DELETE": OWNERS}),
    "api-webhook-secret": Door({"POST": OWNERS}),
    "api-webhook-test": Door({"POST": OWNERS}),
    "api-deliveries": Door({"GET": OWNERS}),
}

# For OpenAI's clients, for whom a project is a model.
OPENAI = {
    "v1-models": Door({"GET": USERS}),
    "v1-model": read(values={"name": "project"}),
    "v1-completions": write(
        sent={"model": "billing", "messages": [{"role": "user", "content": "Hello."}]},
        streams=True,
    ),
}

# Of accounts: whoever comes, and who is signed in for themselves.
ACCOUNTS = {
    name: Door({"GET": ANYBODY, "POST": ANYBODY})
    for name in (
        "login",
        "account_login",
        "logout",
        "account_logout",
        "account_signup",
        "account_confirm_email",
        "account_reset_password",
        "account_reset_password_from_key",
        "mfa_authenticate",
        "mfa_login_webauthn",
        "socialaccount_signup",
        "openid_connect_login",
        "join",
    )
}
ACCOUNTS |= {
    name: Door({"GET": ANYBODY})
    for name in (
        "account_inactive",
        "account_reset_password_done",
        "account_reset_password_from_key_done",
        "socialaccount_login_cancelled",
        "socialaccount_login_error",
        "openid_connect_callback",
        "invitation",
    )
}
ACCOUNTS |= {
    name: Door({"GET": USERS, "POST": USERS})
    for name in (
        "account_reauthenticate",
        "account_email",
        "account_change_password",
        "account_set_password",
        "mfa_reauthenticate",
        "mfa_activate_totp",
        "mfa_deactivate_totp",
        "mfa_generate_recovery_codes",
        "mfa_add_webauthn",
        "mfa_reauthenticate_webauthn",
        "mfa_edit_webauthn",
        "mfa_remove_webauthn",
        "usersessions_list",
        "socialaccount_connections",
    )
}
ACCOUNTS |= {
    name: Door({"GET": USERS})
    for name in (
        "account",
        "mfa_index",
        "mfa_list_webauthn",
        "mfa_view_recovery_codes",
        "mfa_download_recovery_codes",
    )
}
ACCOUNTS |= {"session-end": Door({"POST": USERS})}

PAGES = {
    "set_language": Door({"GET": ANYBODY, "POST": ANYBODY}),
    "tokens": Door({"GET": USERS, "POST": USERS}),
    "token-revoke": Door({"POST": OWNERS}),
    "projects": Door({"GET": USERS, "POST": USERS}),
    "models": form(ADMINISTRATORS),
    "project-models": form(ADMINISTRATORS),
    "model-remove": Door({"POST": ADMINISTRATORS}, values={"pk": "received"}),
    "welcome": Door({"GET": USERS, "POST": USERS}),
    "invitation-answer": Door({"POST": OWNERS}, values={"pk": "received"}),
    "project-settings": Door({"GET": MEMBERS, "POST": OWNERS}),
    "project-archive": Door({"POST": OWNERS}, shut=("GET",)),
    "project-delete": Door({"POST": OWNERS}, shut=("GET",)),
    # Every member leaves by it: tests/projects/test_pages.py.
    "project-members": Door({"POST": OWNERS}, shut=("GET",)),
    "project-invitations": Door({"POST": OWNERS}, shut=("GET",)),
    "project": read(),
    "session-new": write(shut=("GET",)),
    "session-bulk": write(shut=("GET",)),
    "session": read(),
    "session-post": write(shut=("GET",)),
    "session-images": write(),
    "session-image": read(streams=True),
    "session-prompt": read(),
    "session-edit": write(shut=("GET",)),
    "session-model": form(),
    "session-keep": form(),
    "session-reopen": write(),
    "session-events": read(streams=True),
    "session-remember": form(),
    "session-clear": form(),
    "session-delete": form(),
    "session-share": write(shut=("GET",)),
    "shared-chat": read(values={"key": "link"}),
    "session-restore": write(values={"pk": "deleted_session"}),
    "session-export": read(),
    "webhooks": form(OWNERS),
    "webhook": form(OWNERS, sent={"action": "off"}),
    "notes": Door({"GET": MEMBERS, "POST": WRITERS}),
    "imports": form(),
    "message-edit": form(),
    "message-rerun": write(),
    "message-delete": form(),
    "message-react": write(),
    "message-choose": write(),
    "message-fork": write(),
    "message-revisions": read(),
    "message-regenerate": form(),
    "message-stop": write(),
    "reply-stream": read(streams=True),
    "reply-sources": read(values={"pk": "reply"}),
    "reply-source-change": write(values={"pk": "reply"}),
    "memory": read(),
    "memory-review": read(),
    "memory-act": Door({"POST": WRITERS}, shut=("GET",)),
    "memory-activity": read(),
    "knowledge": write(),
    "overview": read(),
    "costs": Door({"GET": MEMBERS, "POST": OWNERS}),
    "saved-prompts": Door(
        {"GET": MEMBERS, "POST": WRITERS}, sent={"name": "report", "text": "Report {{week}}."}
    ),
    "saved-prompt-file": read(),
    "own-costs": Door({"GET": USERS}),
    "server-costs": Door({"GET": ADMINISTRATORS}),
    "jump": read(),
    "memory-search": read(),
    "memory-blocks": Door(
        {"GET": MEMBERS, "POST": WRITERS}, sent={"shelf": "project", "action": "write"}
    ),
    "about-me": read(),
    "project-export": Door({"GET": OWNERS}, streams=True),
    "files": Door({"GET": MEMBERS, "POST": WRITERS}),
    "file": read(),
    "file-download": read(streams=True),
    "file-page-image": read(values={"number": "first"}, streams=True),
    "file-retry": Door({"POST": OWNERS}),
    "reply-file": read(values={"pk": "reply", "number": "first"}),
    "memory-forget": form(OWNERS),
    "memory-receipt": read(),
    "facts": read(),
    "fact-add": write(shut=("GET",)),
    "fact": read(),
    "fact-change": write(sent={"action": "edit"}),
    "entry": read(),
}

DOORS: dict[str, Door] = OPEN | API | OPENAI | ACCOUNTS | PAGES
