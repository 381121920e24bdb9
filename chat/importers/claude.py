"""Claude's export: conversations.json with `chat_messages`, separate or in a zip file.

The zip file may also contain memories.json and projects.json, or a folder for each. Their texts
about the user and about projects become proposed entries. Artifacts and files for the user are
arguments of tool calls. Claude's page shows them, as it shows the text of attached documents.
"""

import re
from collections.abc import Iterator, Sequence

from django.utils.translation import gettext_noop as _

from chat.importers.base import (
    MAX_NAME_CHARS,
    ImportedFile,
    ImportedSession,
    ImportRejectedError,
    ImportResult,
    InvalidItemError,
    parse_time,
    quoted_document,
)
from chat.importers.json_objects import (
    JSONObject,
    get_list,
    get_object,
    get_objects,
    get_text,
    iter_objects,
    parse_each,
    read_conversations,
    require_object,
)
from chat.importers.trees import TreeNode, order_messages
from chat.models import Role

NAME = "Claude"
ROLES = {"human": Role.USER, "assistant": Role.ASSISTANT}
PASTED = "pasted text"
# The folder of the files that Claude offers to the user.
OUTPUTS = "/mnt/user-data/outputs/"
IMAGES = (".png", ".jpg", ".jpeg", ".gif", ".webp")
_CONVERSATION = re.compile(rb'^[\s\[\xef\xbb\xbf]*\{.*?"chat_messages"\s*:', re.DOTALL)


def recognises(name: str, head: bytes) -> bool:
    return bool(_CONVERSATION.match(head))


def sessions(document: ImportedFile, result: ImportResult) -> Iterator[ImportedSession]:
    """Yield the conversations in the order of the file.

    The export of an organisation has the conversations of all its users. If users.json names
    several, none is the importing user. Without this file, the first user is.
    """
    users = _users(document.related)
    accounts: list[str] = []

    def read(fields: JSONObject, errors: list[str]) -> ImportedSession:
        account = get_text(get_object(fields, "account"), "uuid")
        accounts.append(account)
        is_own = len(users) < 2 and account == accounts[0]
        return _session(fields, errors, "" if is_own else _user_name(account, users))

    return read_conversations(iter_objects(document.open()), result, read)


def _users(documents: Sequence[ImportedFile]) -> dict[str, str]:
    """Return the names of the users in users.json, by id."""
    files = [it for it in documents if it.name.endswith("users.json")]
    objects = _objects(files, ImportResult())
    users = {get_text(it, "uuid"): get_text(it, "full_name") for it in objects}
    return {key: name.strip()[:MAX_NAME_CHARS] for key, name in users.items() if key}


def _user_name(account: str, users: dict[str, str]) -> str:
    return users.get(account) or f"User {account[:8]}".strip()


def _session(fields: JSONObject, errors: list[str], speaker: str) -> ImportedSession:
    items, key = fields.get("chat_messages"), get_text(fields, "uuid")
    if not isinstance(items, list) or not key:
        raise InvalidItemError(_("It is not a conversation."))
    # A damaged message becomes an empty node, so that its children are attached to its parent.
    blank = {
        name: TreeNode(parent=get_text(message, "parent_message_uuid"))
        for message in get_objects(fields, "chat_messages")
        if (name := get_text(message, "uuid"))
    }
    nodes: dict[str, TreeNode] = {}

    def read(message: object) -> tuple[str, TreeNode]:
        # In older exports without parents, each message follows the preceding one.
        return _node(message, speaker, before=next(reversed(nodes), None))

    for _number, (name, node) in parse_each(enumerate(items, 1), read, errors):
        nodes[name] = node
    current = get_text(fields, "current_leaf_message_uuid") or next(reversed(nodes), None)
    start = parse_time(fields.get("created_at"))
    messages, head = order_messages({**blank, **nodes}, current, start)
    return ImportedSession(key, get_text(fields, "name"), messages, is_tree=True, head=head)


def _node(value: object, speaker: str, before: str | None) -> tuple[str, TreeNode]:
    """Return the key and node of a message. Without a `speaker`, the importing user is the author.
    Raises `InvalidItemError`.
    """
    message = require_object(value)
    role = ROLES.get(get_text(message, "sender"))
    key = get_text(message, "uuid")
    if role is None or not key:
        raise InvalidItemError(_("It has no sender or no id."))
    parent = (
        get_text(message, "parent_message_uuid") if "parent_message_uuid" in message else before
    )
    return key, TreeNode(
        parent=parent,
        role=role,
        text=_text(message),
        at=parse_time(message.get("created_at")),
        own=role == Role.USER and not speaker,
        speaker=speaker if role == Role.USER else "",
    )


def _text(message: JSONObject) -> str:
    """Return the text and documents, without reasoning and other tool calls. Notes replace files
    whose text is not in the export.
    """
    texts = [_part_text(part) for part in get_objects(message, "content")]
    # `text` is used only without `content`: it has placeholders for parts that are not text.
    if not get_list(message, "content"):
        texts = [get_text(message, "text")]
    return "\n\n".join(filter(None, [*texts, *_files(message)]))


def _part_text(part: JSONObject) -> str:
    if part.get("type") == "text":
        return get_text(part, "text")
    if part.get("type") != "tool_use":
        return ""
    call = get_object(part, "input")
    if part.get("name") == "artifacts":
        # `new_str` is the new text of a passage.
        name = get_text(call, "title") or get_text(call, "id")
        text = get_text(call, "content") or get_text(call, "new_str")
    elif part.get("name") == "create_file" and get_text(call, "path").startswith(OUTPUTS):
        name, text = get_text(call, "path").removeprefix(OUTPUTS), get_text(call, "file_text")
    else:
        return ""
    return quoted_document(name, text, get_text(call, "language")) if text.strip() else ""


def _files(message: JSONObject) -> Iterator[str]:
    for file in (*get_objects(message, "attachments"), *get_objects(message, "files")):
        name, text = get_text(file, "file_name"), get_text(file, "extracted_content")
        if text.strip():
            # A long text that was pasted is an attachment, which may have no name.
            yield quoted_document(name or PASTED, text)
        elif name:
            yield f"[{'image' if name.lower().endswith(IMAGES) else 'file'}: {name}]"


def memories(documents: Sequence[ImportedFile], result: ImportResult) -> list[str]:
    """Return the texts in files of memories and projects.

    In the export of an organisation, each memory names its user.

    Memories are one object {conversations_memory, project_memories: {project: text}}. A project has
    a name, and may have a description and a prompt_template.
    """
    names = {
        get_text(fields, "uuid"): get_text(fields, "name")[:MAX_NAME_CHARS]
        for fields in _objects(documents, ImportResult())
    }
    users = _users(documents)
    texts: list[str] = []
    for fields in _objects(documents, result):
        memories = list(filter(None, map(str.strip, _memories(fields, names))))
        if len(users) > 1:
            # In the export of an organisation, they are about different users.
            user = _user_name(get_text(fields, "account_uuid"), users)
            memories = [f"About {user}: {text}" for text in memories]
        texts += [*memories, *_project(fields)]
    return list(filter(None, map(str.strip, texts)))


def _objects(documents: Sequence[ImportedFile], result: ImportResult) -> Iterator[JSONObject]:
    for document in documents:
        try:
            for fields in iter_objects(document.open()):
                if isinstance(fields, dict):
                    yield fields
        except ImportRejectedError as error:
            result.errors.append(f"{document.name}: {error}")


def _memories(fields: JSONObject, names: dict[str, str]) -> Iterator[str]:
    yield get_text(fields, "conversations_memory")
    of_projects = get_object(fields, "project_memories")
    for project in of_projects:
        text, name = get_text(of_projects, project).strip(), names.get(project)
        yield f"Of the project {name}: {text}" if text and name else text


def _project(fields: JSONObject) -> Iterator[str]:
    name = get_text(fields, "name")
    # Skip the example project, which is the same for every account.
    if name and not fields.get("is_starter_project"):
        if description := get_text(fields, "description"):
            yield f"The project {name}: {description}"
        if instructions := get_text(fields, "prompt_template"):
            yield f"Instructions of the project {name}: {instructions}"
