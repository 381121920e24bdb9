"""The actions of the HTML pages and the API route that does the same."""

from dataclasses import dataclass


@dataclass(frozen=True)
class Action:
    """How a page does it: its route, its method, and the action where several share these; and how
    the API does: its route, and `by` which method.
    """

    page: str
    method: str
    api: str
    by: str
    action: str = ""


def see(page: str, api: str) -> Action:
    return Action(page, "GET", api, "GET")


def do(page: str, api: str, by: str = "POST", action: str = "") -> Action:
    return Action(page, "POST", api, by, action)


ACTIONS = [
    see("tokens", "api-tokens"),
    do("tokens", "api-tokens"),
    do("token-revoke", "api-token", "DELETE"),
    see("projects", "api-projects"),
    do("projects", "api-projects"),
    see("project-settings", "api-project"),
    do("project-settings", "api-project", "PATCH"),
    do("project-archive", "api-project", "PATCH", action="archive"),
    do("project-archive", "api-project", "PATCH", action="unarchive"),
    do("project-delete", "api-project", "DELETE"),
    do("project-members", "api-members", action="add"),
    do("project-members", "api-member", "PATCH", action="role"),
    do("project-members", "api-member", "DELETE", action="remove"),
    do("project-invitations", "api-invitations", action="make"),
    do("project-invitations", "api-invitation", "DELETE", action="revoke"),
    do("invitation-answer", "api-received-invitation", action="accept"),
    do("invitation-answer", "api-received-invitation", "DELETE", action="decline"),
    see("project", "api-sessions"),
    do("session-new", "api-sessions"),
    see("session", "api-messages"),
    do("session-post", "api-messages"),
    do("session-images", "api-attachments"),
    see("session-image", "api-attachment"),
    see("session-prompt", "api-prompt"),
    do("session-edit", "api-session", "PATCH"),
    see("session-model", "api-session"),
    do("session-model", "api-session", "PATCH"),
    see("session-keep", "api-session"),
    do("session-keep", "api-session", "PATCH"),
    do("session-reopen", "api-session", "PATCH"),
    do("session-bulk", "api-session", "PATCH", action="archive"),
    do("session-bulk", "api-session", "PATCH", action="unarchive"),
    do("session-bulk", "api-session", "DELETE", action="delete"),
    # What it tells of is the session's version, which is its entity tag, too.
    see("session-events", "api-session"),
    see("session-clear", "api-session"),
    do("session-clear", "api-clear"),
    see("session-delete", "api-session"),
    do("session-delete", "api-session", "DELETE"),
    do("session-restore", "api-restore"),
    see("session-export", "api-session-export"),
    see("notes", "api-notes"),
    do("notes", "api-notes"),
    see("imports", "api-imports"),
    do("imports", "api-imports"),
    see("message-edit", "api-message"),
    do("message-edit", "api-message", "PATCH"),
    do("message-rerun", "api-rerun"),
    see("message-delete", "api-message"),
    do("message-delete", "api-message", "DELETE"),
    do("message-react", "api-reactions"),
    do("message-choose", "api-choose"),
    do("message-fork", "api-fork"),
    do("session-share", "api-share"),
    see("message-revisions", "api-revisions"),
    see("message-regenerate", "api-message"),
    do("message-regenerate", "api-regenerate"),
    do("message-stop", "api-stop"),
    see("reply-stream", "api-stream"),
    see("reply-sources", "api-reply-sources"),
    do("reply-source-change", "api-entry", "PATCH"),
    do("reply-source-change", "api-fact", "PATCH"),
    do("session-remember", "api-summarize"),
    see("session-remember", "api-entries"),
    see("memory", "api-memory"),
    see("memory-review", "api-entries"),
    do("knowledge", "api-entry", "PATCH"),
    do("knowledge", "api-fact", "PATCH"),
    do("memory-act", "api-act", action="approve"),
    do("memory-act", "api-act", action="reject"),
    do("memory-act", "api-act", action="pin"),
    do("memory-act", "api-act", action="unpin"),
    do("memory-act", "api-act", action="hide"),
    do("memory-act", "api-act", action="show"),
    do("memory-act", "api-act", action="resummarise"),
    do("memory-act", "api-act", action="edit"),
    do("memory-act", "api-act", action="redact"),
    do("memory-act", "api-act", action="forget"),
    see("webhooks", "api-webhooks"),
    do("webhooks", "api-webhooks"),
    see("webhook", "api-deliveries"),
    do("webhook", "api-webhook", "PATCH", action="change"),
    do("webhook", "api-webhook", "PATCH", action="on"),
    do("webhook", "api-webhook", "PATCH", action="off"),
    do("webhook", "api-webhook-test", action="test"),
    do("webhook", "api-webhook-secret", action="secret"),
    do("webhook", "api-webhook", "DELETE", action="delete"),
    see("memory-activity", "api-activity"),
    see("overview", "api-usage"),
    see("costs", "api-usage"),
    see("saved-prompts", "api-saved-prompts"),
    do("saved-prompts", "api-saved-prompts", action="write"),
    do("saved-prompts", "api-saved-prompts", action="import"),
    do("saved-prompts", "api-saved-prompt", "DELETE", action="delete"),
    see("saved-prompt-file", "api-saved-prompt"),
    see("costs", "api-limits"),
    do("costs", "api-limits", "PUT"),
    see("own-costs", "api-own-usage"),
    see("jump", "api-sessions"),
    see("memory-search", "api-recall"),
    see("memory-blocks", "api-blocks"),
    do("memory-blocks", "api-block", "PUT", action="write"),
    do("memory-blocks", "api-block", "PATCH", action="up"),
    do("memory-blocks", "api-block", "PATCH", action="down"),
    do("memory-blocks", "api-block", "DELETE", action="delete"),
    see("files", "api-files"),
    do("files", "api-files"),
    see("file", "api-file-text"),
    see("file-download", "api-file-download"),
    see("file-page-image", "api-file-download"),
    do("file-retry", "api-file-retry"),
    see("reply-file", "api-receipt"),
    see("about-me", "api-profile"),
    see("project-export", "api-export"),
    # What would go is previewed.
    Action("memory-forget", "GET", "api-forget", "POST"),
    do("memory-forget", "api-forget"),
    see("memory-receipt", "api-activity-one"),
    see("facts", "api-facts"),
    see("facts", "api-contradictions"),
    do("fact-add", "api-facts"),
    see("fact", "api-fact"),
    do("fact-change", "api-fact", "PATCH", action="edit"),
    do("fact-change", "api-fact", "PATCH", action="close"),
    do("fact-change", "api-fact", "PATCH", action="approve"),
    do("fact-change", "api-fact", "PATCH", action="reject"),
    do("fact-change", "api-fact", "PATCH", action="hide"),
    do("fact-change", "api-fact", "PATCH", action="show"),
    see("entry", "api-entry"),
    see("entry", "api-entry-revisions"),
]

# Pages of the browser's own: what it begins with. So are those of accounts: who sits before it.
OF_THE_BROWSER = {
    "server-costs",
    "shared-chat",
    "set_language",
    "welcome",
    "models",
    "model-remove",
    "project-models",
}
