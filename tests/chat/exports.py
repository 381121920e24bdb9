"""Generate files in the export formats of other programs. All content is invented."""

import io
import json
import zipfile
from copy import deepcopy

from chat.importers.base import ImportedFile

BEGAN = 1_740_998_400.0  # 3 March 2025, 10:40 UTC


def node(parent: str | None, message: dict | None = None, children: tuple[str, ...] = ()) -> dict:
    return {"parent": parent, "message": message, "children": list(children)}


def chatgpt_message(role: str, *parts: object, at: float | None = BEGAN, **fields) -> dict:
    """A message as ChatGPT's export has it; `content` and `metadata` may be given too."""
    kind = "text" if all(isinstance(part, str) for part in parts) else "multimodal_text"
    message = {
        "author": {"role": role, "name": None, "metadata": {}},
        "create_time": at,
        "content": {"content_type": kind, "parts": list(parts)},
        "status": "finished_successfully",
        "recipient": "all",
        "metadata": {},
        "channel": None,
    }
    return message | fields


IMAGE = {
    "content_type": "image_asset_pointer",
    "asset_pointer": "file-service://file-Map1",
    "size_bytes": 12345,
    "width": 800,
    "height": 600,
}

# The page of it shows: Where is the cape? (2/2) / It lies in the south. (3/3) / the image's note
# with the question / the drawn lighthouse / And how high is it? / Forty metres.
BRANCHES = {
    "title": "Lighthouse",
    "create_time": BEGAN,
    "update_time": BEGAN + 900,
    "mapping": {
        "root": {"id": "root"} | node(None, None, ("sys",)),
        "void": None,
        "sys": node(
            "root",
            chatgpt_message(
                "system",
                "Never say so.",
                at=None,
                metadata={"is_visually_hidden_from_conversation": True},
            ),
            ("u1a", "u1b"),
        ),
        "u1a": node("sys", chatgpt_message("user", "Where is the cap?", at=BEGAN + 1), ("a1x",)),
        "a1x": node("u1a", chatgpt_message("assistant", "Which cap?", at=BEGAN + 2)),
        "u1b": node(
            "sys", chatgpt_message("user", "Where is the cape?", at=BEGAN + 60), ("a1", "t0")
        ),
        "a1": node("u1b", chatgpt_message("assistant", "In the north.", at=BEGAN + 61)),
        "a2": node("u1b", chatgpt_message("assistant", "Perhaps in the west.", at=BEGAN + 62)),
        # A thought, a call and its result stand between the question and what the page shows.
        "t0": node(
            "u1b",
            chatgpt_message(
                "assistant",
                at=BEGAN + 63,
                content={"content_type": "thoughts", "thoughts": [{"summary": "Hm"}]},
            ),
            ("t1",),
        ),
        "t1": node(
            "t0",
            chatgpt_message("assistant", "search('cape')", at=None, recipient="web.run"),
            ("t2",),
        ),
        "t2": node("t1", chatgpt_message("tool", "cape: south", at=BEGAN + 64), ("a3",)),
        "a3": node(
            "t2",
            chatgpt_message(
                "assistant",
                "It lies in the south\ue200cite\ue202turn0search0\ue201.",
                # Before the question: the clock ran backward.
                at=BEGAN - 50,
                metadata={"model_slug": "gpt-4o"},
            ),
            ("u2",),
        ),
        "u2": node(
            "a3",
            chatgpt_message(
                "user",
                IMAGE,
                "Draw its lighthouse on this.",
                at=None,
                metadata={
                    "attachments": [
                        {"id": "file-Map1", "name": "map.png", "mime_type": "image/png"},
                        {"id": "file-Doc2", "name": "notes.pdf"},
                    ]
                },
            ),
            ("d1",),
        ),
        "d1": node(
            "u2",
            chatgpt_message(
                "tool",
                IMAGE
                | {"asset_pointer": "sediment://x", "metadata": {"dalle": {"prompt": "A tower"}}},
                at=BEGAN + 70,
            ),
            ("u3",),
        ),
        "u3": node("d1", chatgpt_message("user", "And how high is it?", at=BEGAN + 80), ("a4",)),
        "a4": node("u3", chatgpt_message("assistant", "Forty metres.", at=BEGAN + 81)),
        # A circle beside the path, and a node whose parent is gone.
        "c1": node("c2", chatgpt_message("user", "Round", at=BEGAN + 90), ("c2",)),
        "c2": node("c1", chatgpt_message("assistant", "and round", at=BEGAN + 91), ("c1",)),
        "lost": node("nowhere", chatgpt_message("user", "Lost", at=None)),
    },
    "moderation_results": [],
    "current_node": "a4",
    "conversation_id": "6f000000-0000-4000-8000-000000000001",
    "id": "6f000000-0000-4000-8000-000000000001",
}

CLAUDE = {
    "uuid": "c0000000-0000-4000-8000-000000000001",
    "name": "Bread",
    "summary": "",
    "created_at": "2025-03-03T10:00:00.000000Z",
    "updated_at": "2025-03-03T10:09:00.000000Z",
    "account": {"uuid": "ac000000-0000-4000-8000-000000000001"},
    "chat_messages": [
        {
            "uuid": "m1",
            "text": "How long does dough rest?",
            "content": [{"type": "text", "text": "How long does dough rest?"}],
            "sender": "human",
            "created_at": "2025-03-03T10:00:01.000000Z",
            "attachments": [{"file_name": "recipe.txt", "file_size": 9, "extracted_content": "x"}],
            "files": [{"file_name": "dough.jpeg"}],
        },
        {
            "uuid": "m2",
            "text": "This block is not supported.\n\nTwo hours.",
            "content": [
                {"type": "thinking", "thinking": "Dough, dough."},
                {"type": "tool_use", "name": "search", "input": {}},
                {"type": "tool_result", "content": []},
                {"type": "text", "text": "Two hours."},
            ],
            "sender": "assistant",
            "created_at": "2025-03-03T10:00:09.000000Z",
            "attachments": [],
            "files": [],
        },
    ],
}

OPENWEBUI = {
    "id": "0e000000-0000-4000-8000-000000000001",
    "user_id": "05e00000-0000-4000-8000-000000000001",
    "title": "Stars",
    "chat": {
        "title": "Stars",
        "models": ["llama3.2:3b"],
        "history": {
            "messages": {
                "q": {
                    "id": "q",
                    "parentId": None,
                    "childrenIds": ["a", "b"],
                    "role": "user",
                    "content": "Name a star.",
                    "timestamp": 1740998400,
                    "files": [{"type": "image", "url": "data:image/png;base64,AA=="}],
                },
                "a": {
                    "id": "a",
                    "parentId": "q",
                    "childrenIds": [],
                    "role": "assistant",
                    "content": '<details type="reasoning" done="true">\n> Hm\n</details>\nVega.',
                    "model": "llama3.2:3b",
                    "timestamp": 1740998402,
                },
                "b": {
                    "id": "b",
                    "parentId": "q",
                    "childrenIds": [],
                    "role": "assistant",
                    "content": "Sirius.",
                    "model": "llama3.2:3b",
                    "timestamp": 1740998403,
                },
            },
            "currentId": "a",
        },
        "messages": [],
        "timestamp": 1740998400000,
    },
    "created_at": 1740998400,
    "updated_at": 1740998403,
    "archived": False,
}


def document(file: io.BytesIO, name: str = "conversations.json") -> ImportedFile:
    """The document that importers read, of a file that is read once."""
    return ImportedFile(name, lambda: file)


def file_of(*conversations: object) -> io.BytesIO:
    """A list of conversations as a file."""
    return io.BytesIO(json.dumps(deepcopy(conversations)).encode())


def zip_of(files: dict[str, bytes], **options) -> io.BytesIO:
    """A zip file of these."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED, **options) as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    buffer.seek(0)
    return buffer
