"""Labelled conversations: files with sessions, questions, and the messages that answer them.

Two formats are recognised by their content. A recall set is a JSON object, gzipped or not, with
`name` ("SET/CONVERSATION"), `sessions` and `questions`. A LoCoMo file has numbered sessions.
"""

import gzip
import json
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime
from io import BytesIO
from pathlib import Path
from typing import Any

from chat.importers import ImportRejectedError, locomo
from chat.importers.base import ImportedFile, ImportedMessage, ImportedSession, ImportResult
from chat.models import Role

MAX_FILE_BYTES = 256 * 2**20
GZIP_MAGIC = b"\x1f\x8b"
# LoCoMo's categories. Adversarial questions are left out, because they have no answer.
LOCOMO_KINDS = {1: "several_turns", 2: "time", 3: "open_ended", 4: "one_turn"}
ADVERSARIAL = 5
LOCOMO_SET = "locomo"
_TURN_KEY = re.compile(r"D\d{1,6}:\d{1,6}")


@dataclass(frozen=True)
class LabelledQuestion:
    """A question, the keys of the messages that answer it, and the keys of the sessions to find.

    If `until` is set, only messages that were written before it are searched.
    """

    text: str
    kind: str
    evidence: frozenset[str]
    evidence_sessions: frozenset[str] = frozenset()
    until: datetime | None = None


@dataclass(frozen=True)
class LabelledConversation:
    """The sessions of one file, as importers yield them, and the questions about them."""

    set_name: str
    name: str
    sessions: list[ImportedSession]
    questions: list[LabelledQuestion]


def read(path: Path) -> LabelledConversation:
    """Return the conversation in `path`. Raises `ImportRejectedError` and OSError."""
    content = _content(path)
    try:
        document = json.loads(content)
        if isinstance(document, dict) and isinstance(document.get("sessions"), list):
            return _recall_set(path, document)
        return _locomo(path, content, document)
    except ImportRejectedError as reason:
        raise ImportRejectedError(f"{path}: {reason}") from reason
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise ImportRejectedError(
            f"{path}: This is not a labelled conversation ({type(error).__name__})."
        ) from error


def _content(path: Path) -> bytes:
    with path.open("rb") as file:
        is_gzip = file.read(len(GZIP_MAGIC)) == GZIP_MAGIC
        file.seek(0)
        try:
            with gzip.open(file) if is_gzip else file as plain:
                content = plain.read(MAX_FILE_BYTES + 1)
        except (EOFError, gzip.BadGzipFile) as error:
            raise ImportRejectedError(f"{path}: This gzip file is damaged.") from error
    if len(content) > MAX_FILE_BYTES:
        raise ImportRejectedError(f"{path}: The file is longer than {MAX_FILE_BYTES // 2**20} MB.")
    return bytes(content)


def _recall_set(path: Path, document: Mapping[str, Any]) -> LabelledConversation:
    name = str(document.get("name") or path.name.partition(".")[0])
    sessions = [
        ImportedSession(
            key=session["id"],
            title=session.get("title") or "",
            messages=[
                ImportedMessage(
                    key=_string(message["id"]),
                    role=Role(message["role"]),
                    text=_string(message["text"]),
                    at=datetime.fromisoformat(message["at"]),
                    speaker=message.get("author") or "",
                )
                for message in session["messages"]
            ],
        )
        for session in document["sessions"]
    ]
    starts = {
        session["id"]: datetime.fromisoformat(session["started_at"])
        for session in document["sessions"]
    }
    questions = [
        LabelledQuestion(
            text=_string(question["text"]),
            kind=str(question.get("kind") or ""),
            evidence=frozenset(question.get("evidence") or ()),
            evidence_sessions=frozenset(question.get("evidence_sessions") or ()),
            until=starts[question["asked_in"]] if question.get("asked_in") else None,
        )
        for question in document["questions"]
    ]
    return LabelledConversation(name.partition("/")[0], name, sessions, questions)


def _string(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError
    return value


def _locomo(path: Path, content: bytes, document: Any) -> LabelledConversation:
    result = ImportResult()
    sessions = list(locomo.sessions(ImportedFile(path.name, lambda: BytesIO(content)), result))
    questions = list(_locomo_questions(document.get("qa") or [], sessions))
    return LabelledConversation(LOCOMO_SET, f"{LOCOMO_SET}/{path.stem}", sessions, questions)


def _locomo_questions(
    items: Iterable[Mapping[str, Any]], sessions: Iterable[ImportedSession]
) -> Iterator[LabelledQuestion]:
    """Yield the questions whose evidence names existing turns, such as "D8:6; D9:17"."""
    known = {message.key for session in sessions for message in session.messages}
    for item in items:
        keys = known.intersection(_TURN_KEY.findall(" ".join(item.get("evidence") or [])))
        category = item.get("category", 0)
        if keys and category != ADVERSARIAL:
            kind = LOCOMO_KINDS.get(category, "")
            yield LabelledQuestion(item["question"], kind, frozenset(keys))
