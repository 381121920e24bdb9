"""/mcp by the official client, over HTTP: every tool, from a fresh connection each time."""

import asyncio
import json
from base64 import b64encode
from collections.abc import Callable
from datetime import timedelta

import httpx2
import pytest
from django.test import Client as Browser
from django.utils import timezone
from mcp import Client
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.exceptions import MCPError

from chat.conversations.messages import NewBranch, draft, post_messages
from chat.conversations.sessions import create_session
from chat.models import Message, Session, Visibility
from config import __version__
from config.asgi import application
from memory.facts import Statement, create_fact
from memory.layers.conversations import summarise
from memory.models import Entry, Fact, FactStatus, File
from memory.recall import indexing
from projects.models import MemberRole, Membership, Token
from projects.services import create_project, set_archived
from tests.memory.file_helpers import add_read, read
from tests.memory.recall_helpers import recalled_texts, talk

pytestmark = pytest.mark.django_db(transaction=True)

HOST = "http://testserver"
TIDE = "The tide gauge at Husum is read at seven each morning."
EVERY = {
    "add_memory",
    "search_memories",
    "get_memories",
    "get_memory",
    "update_memory",
    "delete_memory",
    "get_context",
    "forget",
    "add_file",
    "search_files",
    "read_file",
}


def headers(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


@pytest.fixture(params=["auto", "legacy"])
def era(request) -> str:
    """Which revision of the protocol is spoken: the newest, or that with a handshake."""
    return request.param


@pytest.fixture
def ask(project):
    """Connects anew as `user` and does `work` with the client; keywords go to the token."""

    def run(user, work: Callable, mode: str = "auto", **fields):
        token = Token.objects.create(user=user, **{"project": project} | fields)[1]

        async def go():
            transport = httpx2.ASGITransport(app=application)
            async with httpx2.AsyncClient(transport=transport, headers=headers(token)) as http:
                connection = streamable_http_client(f"{HOST}/mcp", http_client=http)
                async with Client(connection, mode=mode) as client:
                    return await work(client)

        return asyncio.run(go())

    return run


@pytest.fixture
def call(ask):
    """What a tool answers, or in which words it refuses."""

    def run(user, tool: str, mode: str = "auto", token: dict | None = None, **arguments):
        answer = ask(user, lambda client: client.call_tool(tool, arguments), mode, **token or {})
        if answer.is_error:
            return answer.content[0].text
        assert json.loads(answer.content[0].text) == answer.structured_content
        return answer.structured_content

    return run


@pytest.fixture
def post():
    """A bare POST to /mcp, as far as its headers."""

    def send(body: object = None, method: str = "POST", **more: str):
        async def go():
            transport = httpx2.ASGITransport(app=application)
            async with httpx2.AsyncClient(transport=transport) as http:
                accept = {"Accept": "application/json, text/event-stream"}
                return await http.request(method, f"{HOST}/mcp", json=body, headers=accept | more)

        return asyncio.run(go())

    return send


LIST = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}


def test_the_server_has_a_name_and_a_version(ask, owner, era):
    async def read(client: Client):
        return client.server_info

    info = ask(owner, read, era)
    assert (info.name, info.version) == ("Strata", __version__)


def test_each_tool_is_listed_with_schemas_and_honest_hints(ask, owner, era):
    tools = {item.name: item for item in ask(owner, lambda client: client.list_tools(), era).tools}
    assert set(tools) == EVERY
    reading = {name for name, item in tools.items() if item.annotations.read_only_hint}
    assert reading == {
        *("search_memories", "get_memories", "get_memory", "get_context"),
        *("search_files", "read_file"),
    }
    destroying = {name for name, item in tools.items() if item.annotations.destructive_hint}
    assert destroying == {"update_memory", "delete_memory", "forget"}
    for tool in tools.values():
        assert tool.description and tool.input_schema["type"] == "object"
        assert tool.output_schema["type"] == "object"
        assert tool.annotations.open_world_hint is False


def test_an_added_note_is_found_shown_with_its_source_and_forgotten(call, owner, project, era):
    added = call(owner, "add_memory", era, text=TIDE)
    assert (added["kind"], added["text"], added["label"]) == ("note", TIDE, "olive")
    indexing.catch_up()

    [hit] = call(owner, "search_memories", era, query="When is the gauge read?")["results"]
    assert (hit["memory_id"], hit["text"], hit["speaker"]) == (added["memory_id"], TIDE, "olive")
    assert recalled_texts(project, owner, "gauge") == [TIDE]

    browser = Browser()
    browser.force_login(owner)
    path = hit["url"].removeprefix(HOST)
    page = browser.get(path.partition("#")[0]).content.decode()
    assert TIDE in page and f"note-{added['memory_id']}" in page

    assert TIDE in call(owner, "get_context", era, query="Husum tide gauge?")["text"]

    receipt = call(owner, "forget", era, memory_id=added["memory_id"])
    assert receipt["removed"]["messages"] == 1
    assert browser.get(receipt["url"].removeprefix(HOST)).status_code == 200
    assert call(owner, "search_memories", era, query="gauge")["results"] == []
    assert call(owner, "get_memory", memory_id=added["memory_id"]) == "There is no such memory."
    assert TIDE not in browser.get("/projects/billing/notes/").content.decode()
    assert not Message.objects.filter(text=TIDE).exists()


def test_a_note_is_read_rewritten_and_taken_out(call, editor, project):
    pk = call(editor, "add_memory", text=TIDE)["memory_id"]
    assert call(editor, "get_memory", memory_id=pk)["text"] == TIDE
    assert call(editor, "update_memory", memory_id=pk, text="Read at eight.")["text"] == (
        "Read at eight."
    )
    assert Message.objects.get().revisions.get().text == TIDE
    assert call(editor, "delete_memory", memory_id=pk) == {"memory_id": pk, "kind": "note"}
    assert call(editor, "get_memories")["memories"] == []
    assert call(editor, "delete_memory", memory_id=pk) == "There is no such memory."


def test_the_url_of_a_message_shows_the_branch_that_it_is_on(call, owner, project):
    session = talk(project, owner, TIDE)
    message = session.messages.get()
    post_messages(session, [draft("It is high tide.", author=owner)], at=NewBranch(None))
    url = call(owner, "get_memory", memory_id=str(message.pk))["url"].removeprefix(HOST)
    browser = Browser()
    browser.force_login(owner)
    path, _, query = url.partition("#")[0].partition("?")
    assert TIDE not in browser.get(path).content.decode()
    assert TIDE in browser.get(f"{path}?{query}").content.decode()


@pytest.fixture
def summary(project, owner) -> Entry:
    session = talk(project, owner, TIDE, "And the harbour master signs the log.")
    written = summarise(session.pk, timezone.now(), force=True)
    assert written is not None
    return written


@pytest.fixture
def fact(project, owner) -> Fact:
    member = Membership.objects.get(project=project, user=owner)
    return create_fact(member, Statement("Husum", "has", "a tide gauge", timezone.now()))[0]


def test_summaries_are_read_rewritten_hidden_and_forgotten(call, owner, summary):
    pk = str(summary.pk)
    read = call(owner, "get_memory", memory_id=pk)
    assert (read["kind"], read["text"]) == ("summary", summary.summary)
    assert call(owner, "update_memory", memory_id=pk, text="- Tides.")["text"] == "- Tides."
    assert call(owner, "delete_memory", memory_id=pk)["kind"] == "summary"
    assert call(owner, "get_memory", memory_id=pk) == "There is no such memory."
    summary.refresh_from_db()
    assert summary.state == "hidden"


def test_a_summary_is_forgotten_with_a_receipt(call, owner, summary):
    assert call(owner, "forget", memory_id=str(summary.pk))["removed"]["entries"] == 1
    assert not Entry.objects.exists()


def test_facts_are_read_hidden_and_forgotten_but_changed_elsewhere(call, owner, fact):
    pk = str(fact.pk)
    assert call(owner, "get_memory", memory_id=pk)["text"] == "Husum has a tide gauge"
    assert "REST API" in call(owner, "update_memory", memory_id=pk, text="Husum has two")
    assert call(owner, "delete_memory", memory_id=pk)["kind"] == "fact"
    assert call(owner, "get_memory", memory_id=pk) == "There is no such memory."


def test_a_fact_is_forgotten(call, owner, fact):
    assert call(owner, "forget", memory_id=str(fact.pk))["removed"]["facts"] == 1
    assert not Fact.objects.exists()


def test_a_viewer_does_not_take_out_a_fact_about_them(call, viewer, project):
    Membership.objects.filter(user=viewer).update(role=MemberRole.EDITOR)
    member = Membership.objects.get(project=project, user=viewer)
    statement = Statement("Vera", "has", "a boat", timezone.now(), user_id=viewer.pk)
    own, _ = create_fact(member, statement)
    Membership.objects.filter(user=viewer).update(role=MemberRole.VIEWER)
    assert "Only an owner" in call(viewer, "delete_memory", memory_id=str(own.pk))
    assert Fact.objects.get().state == FactStatus.LIVE


@pytest.mark.parametrize(
    ("kind", "store"), [("note", "messages"), ("summary", "entries"), ("fact", "facts")]
)
def test_deleted_text_can_still_be_forgotten(call, owner, summary, fact, kind, store):
    ids = {"summary": summary.pk, "fact": fact.pk}
    pk = ids.get(kind) or call(owner, "add_memory", text=TIDE)["memory_id"]
    assert call(owner, "delete_memory", memory_id=str(pk))["kind"] == kind
    assert call(owner, "forget", memory_id=str(pk))["removed"][store] == 1
    assert call(owner, "forget", memory_id=str(pk)) == "There is no such memory."


def test_all_kinds_are_listed_by_pages_the_newest_first(call, owner, summary, fact, monkeypatch):
    monkeypatch.setattr("memory.api.mcp.tools.PAGE_SIZE", 2)
    for text in ("First.", "Second."):
        call(owner, "add_memory", text=text)
    first, second = (call(owner, "get_memories", page=page) for page in (1, 2))
    memories = [*first["memories"], *second["memories"]]
    assert [memory["text"] for memory in memories[:2]] == ["Second.", "First."]
    assert [memory["kind"] for memory in memories] == ["note", "note", "fact", "summary"]
    assert (first["next_page"], second["next_page"]) == (2, None)


def test_the_bank_is_a_resource(ask, owner, summary):
    listed = ask(owner, lambda client: client.list_resources()).resources
    assert [str(row.uri) for row in listed] == ["strata://memory"]
    read = ask(owner, lambda client: client.read_resource("strata://memory"))
    assert "tide gauge" in read.contents[0].text

    async def read_another(client):
        with pytest.raises(MCPError, match="no such resource"):
            await client.read_resource("strata://other")

    ask(owner, read_another)


def test_the_context_keeps_to_its_budget_and_quotes_what_it_tells(call, owner, summary, fact):
    payload = call(owner, "get_context", query="What of the tide gauge?", token_budget=2_000)
    assert {"facts", "bank"} <= set(payload["sections"])
    assert payload["tokens"] <= 2_000
    assert "<memory>" in payload["text"]
    small = call(owner, "get_context", query="What of the tide gauge?", token_budget=150)
    assert small["tokens"] <= 150


@pytest.mark.parametrize(
    ("tool", "arguments", "expected"),
    [
        ("add_memory", {}, "text"),
        ("add_memory", {"text": ""}, "text"),
        ("add_memory", {"text": "  \n "}, "Enter some text."),
        ("add_memory", {"text": "x" * 500_001}, "text"),
        ("add_memory", {"text": TIDE, "project": "other"}, "project"),
        ("search_memories", {"query": "x", "limit": 0}, "limit"),
        ("search_memories", {"query": ["x"]}, "query"),
        ("get_memories", {"page": 0}, "page"),
        ("get_memory", {"memory_id": "x"}, "memory_id"),
        ("get_memory", {"memory_id": "0198c5a7-0000-7000-8000-000000000000"}, "no such memory"),
        ("get_context", {"query": "x", "token_budget": 1}, "token_budget"),
        ("read_file", {"file_id": "0198c5a7-0000-7000-8000-000000000000"}, "no such file"),
    ],
)
def test_an_invalid_call_is_refused_in_words(call, owner, project, tool, arguments, expected):
    assert expected in call(owner, tool, **arguments)
    assert not Message.objects.exists()


def test_a_time_with_any_offset_is_accepted(call, owner, project):
    assert call(owner, "search_memories", query="x", valid_at="2026-03-01T00:00+23:00") == {
        "results": []
    }
    refusal = call(owner, "search_memories", query="x", valid_at="0001-01-01T00:00+14:00")
    assert "between the years 1 and 9999" in refusal


@pytest.mark.parametrize(
    ("text", "expected"), [("\x00", "Enter some text."), ("x" * 6_000, "at most 5000 characters")]
)
def test_a_summary_gets_no_empty_or_endless_text(call, owner, summary, text, expected):
    assert expected in call(owner, "update_memory", memory_id=str(summary.pk), text=text)


def test_nul_characters_are_left_out_of_a_summary(call, owner, summary):
    changed = call(owner, "update_memory", memory_id=str(summary.pk), text="- Tide\x00s.")
    assert changed["text"] == "- Tides."


def test_nul_characters_are_left_out(call, owner):
    assert call(owner, "add_memory", text="Tide\x00s")["text"] == "Tides"
    [latest] = call(owner, "search_memories", query="\x00")["results"]
    assert latest["text"] == "Tides"


def test_an_unknown_tool_is_an_error_of_the_protocol(ask, owner):
    async def drop(client):
        with pytest.raises(MCPError, match="no tool"):
            await client.call_tool("drop_tables", {})

    ask(owner, drop)


def test_a_failure_is_reported_without_the_query(call, owner, monkeypatch, caplog):
    def fail(*_, **__):
        raise RuntimeError("broken")

    monkeypatch.setattr("memory.api.mcp.tools.recall", fail)
    assert call(owner, "search_memories", query="my secret") == (
        "An internal error occurred in Strata."
    )
    assert "mcp_tool_failed" in caplog.text and "my secret" not in caplog.text


def test_a_memory_that_is_deleted_at_the_same_moment_is_no_internal_error(
    call, owner, summary, monkeypatch
):
    def delete_and_edit(entry: Entry, *_: object) -> None:
        Entry.objects.filter(pk=entry.pk).delete()
        entry.save(update_fields=["summary"])

    monkeypatch.setattr("memory.moderation.entry_operations.edit", delete_and_edit)
    changed = call(owner, "update_memory", memory_id=str(summary.pk), text="- Tides.")
    assert changed == "It was deleted in the meantime."


def test_others_private_talk_is_neither_found_nor_read(call, owner, editor, project):
    session = talk(project, editor, TIDE, visibility=Visibility.PRIVATE)
    message = str(session.messages.get().pk)
    for tool, arguments in (
        ("get_memory", {"memory_id": message}),
        ("forget", {"memory_id": message}),
        ("update_memory", {"memory_id": message, "text": "x"}),
        ("delete_memory", {"memory_id": message}),
    ):
        assert call(owner, tool, **arguments) == "There is no such memory."
    assert call(owner, "search_memories", query="tide gauge")["results"] == []
    assert TIDE not in call(owner, "get_context", query="tide gauge")["text"]


def test_the_token_says_which_project_and_no_argument_does(call, owner, project):
    other = create_project(owner, name="Other", slug="other")
    pk = call(owner, "add_memory", token={"project": other}, text=TIDE)["memory_id"]
    assert call(owner, "get_memory", memory_id=pk) == "There is no such memory."
    assert call(owner, "get_memories")["memories"] == []


def test_an_editor_writes_and_does_not_forget_the_words_of_others(call, owner, editor):
    pk = call(owner, "add_memory", text=TIDE)["memory_id"]
    assert "Only owners" in call(editor, "forget", memory_id=pk)
    assert "Only the author" in call(editor, "update_memory", memory_id=pk, text="x")
    assert call(owner, "get_memory", memory_id=pk)["text"] == TIDE


def test_a_viewer_reads_only(call, owner, viewer, summary):
    pk = call(owner, "add_memory", text=TIDE)["memory_id"]
    assert call(viewer, "get_memory", memory_id=pk)["text"] == TIDE
    for tool, arguments in (
        ("add_memory", {"text": "x"}),
        ("update_memory", {"memory_id": pk, "text": "x"}),
        ("delete_memory", {"memory_id": pk}),
        ("delete_memory", {"memory_id": str(summary.pk)}),
        ("forget", {"memory_id": pk}),
    ):
        assert isinstance(call(viewer, tool, **arguments), str)
    assert call(owner, "get_memory", memory_id=pk)["text"] == TIDE
    assert not Message.objects.filter(text="x").exists()


@pytest.mark.parametrize(
    ("scopes", "allowed"),
    [
        (
            ["read"],
            {
                *("search_memories", "get_memories", "get_memory", "get_context"),
                *("search_files", "read_file"),
            },
        ),
        (["write"], {"add_memory", "update_memory", "delete_memory", "add_file"}),
        (["admin"], {"forget"}),
    ],
)
def test_a_token_does_what_its_scopes_allow(ask, call, owner, scopes, allowed):
    token = {"scopes": scopes}
    tools = ask(owner, lambda client: client.list_tools(), **token).tools
    assert {item.name for item in tools} == allowed
    arguments = {"text": "x", "query": "x", "memory_id": "0198c5a7-0000-7000-8000-000000000000"}
    for tool in EVERY - allowed:
        payload = call(owner, tool, token=token, **arguments)
        assert payload == "The token's scopes do not allow this."
    assert not Message.objects.exists()


def test_a_request_without_a_token_gets_instructions(post):
    answer = post(LIST)
    assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")


def test_tokens_that_are_wrong_or_over_or_revoked_are_refused(post, owner, project):
    token, secret = Token.objects.create(user=owner, project=project)
    assert post(LIST, **headers(secret)).status_code == 200
    assert post(LIST, **headers("x" * 64)).status_code == 401
    token.expiry = timezone.now() - timedelta(minutes=1)
    token.save()
    assert post(LIST, **headers(secret)).status_code == 401
    token.delete()
    assert post(LIST, **headers(secret)).status_code == 401


def test_a_token_of_all_projects_is_refused_with_the_reason(post, owner, project):
    answer = post(LIST, **headers(Token.objects.create(user=owner)[1]))
    assert answer.status_code == 403
    assert "limited to one project" in answer.json()["detail"]


def test_a_former_member_gets_404(post, editor, project):
    secret = Token.objects.create(user=editor, project=project)[1]
    Membership.objects.filter(user=editor).delete()
    assert post(LIST, **headers(secret)).status_code == 404


def test_a_page_of_another_host_cannot_ask(post, owner, project):
    request_headers = headers(Token.objects.create(user=owner, project=project)[1])
    assert post(LIST, **request_headers, Origin=HOST).status_code == 200
    for origin in ("http://evil.example", "http://[", "null"):
        assert post(LIST, **request_headers, Origin=origin).status_code == 403
    assert post(LIST, **request_headers, Host="evil.example").status_code == 400


@pytest.mark.parametrize("method", ["GET", "DELETE", "PUT"])
def test_there_are_no_sessions_to_listen_to_or_end(post, owner, project, method):
    request_headers = headers(Token.objects.create(user=owner, project=project)[1])
    answer = post(method=method, **request_headers)
    assert (answer.status_code, answer.headers["allow"]) == (405, "POST")


@pytest.mark.parametrize("body", [None, [], {"id": 1}, "x", {"jsonrpc": "2.0", "method": 3}])
def test_a_malformed_request_is_a_400(post, owner, project, body):
    request_headers = headers(Token.objects.create(user=owner, project=project)[1])
    assert post(body, **request_headers).status_code in (400, 415)


def test_a_request_of_too_many_values_is_refused(post, owner, project):
    request_headers = headers(Token.objects.create(user=owner, project=project)[1])
    answer = post(LIST | {"params": {"a": [[]] * 200_000}}, **request_headers)
    assert (answer.status_code, answer.json()["detail"]) == (413, "The JSON has too many values.")


def test_a_limited_client_learns_when_to_retry(post, editor, project, settings):
    settings.RATES = {"reads": (2, 60), "writes": None, "replies": None}
    token = Token.issue(editor, project=project)[1]
    answers = [post(LIST, **headers(token)) for _ in range(3)]
    assert [answer.status_code for answer in answers] == [200, 200, 429]
    assert int(answers[-1].headers["Retry-After"]) <= 30
    assert "detail" in answers[-1].json()


def test_tools_that_change_memory_count_as_writes(ask, owner, project, settings):
    settings.RATES = {"reads": None, "writes": (1, 60), "replies": None}

    async def add_two(client: Client) -> list[bool]:
        notes = [{"text": TIDE}, {"text": "The gauge was moved."}]
        return [(await client.call_tool("add_memory", note)).is_error for note in notes]

    assert ask(owner, add_two) == [False, True]
    assert [note.text for note in Message.objects.all()] == [TIDE]


def test_an_archived_project_is_read_only(call, owner, project):
    call(owner, "add_memory", text=TIDE)
    found = call(owner, "get_memories")["memories"][0]["memory_id"]
    set_archived(project, True)
    assert call(owner, "get_memory", memory_id=found)["text"] == TIDE
    writes = {
        "add_memory": {"text": "The gauge was moved."},
        "update_memory": {"memory_id": found, "text": "The gauge was moved."},
        "delete_memory": {"memory_id": found},
        "forget": {"memory_id": found},
    }
    for tool, arguments in writes.items():
        assert "archived and read-only" in call(owner, tool, **arguments)
    assert call(owner, "get_memory", memory_id=found)["text"] == TIDE


def test_a_file_is_added_searched_and_read(call, owner, project, era):
    text = "# Pump\n\nThe torque of the flange bolts is 24 newton metres.\n"
    added = call(owner, "add_file", era, name="manual.md", content=text)
    assert (added["name"], added["state"]) == ("manual.md", "waiting")
    read(File.objects.get())
    [hit, *_] = call(owner, "search_files", era, query="torque of the bolts")["results"]
    assert hit["file_id"] == added["file_id"] and "24 newton" in hit["text"]
    [page, *_] = call(owner, "read_file", era, file_id=added["file_id"])["pages"]
    assert "24 newton" in page["text"]
    at = {"file_id": added["file_id"], "passage": hit["passage"]}
    assert "24 newton" in call(owner, "read_file", era, **at)["pages"][0]["text"]
    assert "base64" in call(owner, "add_file", era, name="x", content="???", is_base64=True)


def test_a_file_of_many_megabytes_is_added(call, owner, project):
    text = "The torque of the flange bolts is 24 newton metres.\n" * 100_000
    content = b64encode(text.encode()).decode()
    assert call(owner, "add_file", name="log.txt", content=content, is_base64=True)["file_id"]
    assert File.objects.get().revisions.get().size == len(text)


@pytest.fixture
def manual(project, owner) -> File:
    return add_read(project, owner)


@pytest.mark.parametrize("name", ["owner", "editor", "viewer"])
def test_members_use_files_as_their_role_allows(request, call, manual, name):
    user = request.getfixturevalue(name)
    [hit, *_] = call(user, "search_files", query="torque of the bolts")["results"]
    assert hit["file_id"] == str(manual.pk)
    assert call(user, "read_file", file_id=str(manual.pk))["pages"]
    added = call(user, "add_file", name="notes.md", content="The pump is blue.")
    assert isinstance(added, str) == (name == "viewer")
    assert File.objects.filter(name="notes.md").exists() == (name != "viewer")


def test_only_its_owner_reaches_a_file_of_a_private_chat(call, project, owner, editor):
    chat = create_session(project, editor, visibility=Visibility.PRIVATE)
    secret = str(add_read(project, editor, session=chat).pk)

    def seen(user) -> tuple[bool, bool]:
        found = call(user, "search_files", query="torque of the bolts")["results"]
        return bool(found), not isinstance(call(user, "read_file", file_id=secret), str)

    assert (seen(editor), seen(owner)) == ((True, True), (False, False))
    Session.objects.filter(pk=chat.pk).update(visibility=Visibility.PROJECT)
    assert seen(owner) == (True, True)
    Session.objects.filter(pk=chat.pk).update(deleted_at=timezone.now())
    assert (seen(editor), seen(owner)) == ((False, False), (False, False))


def test_a_token_of_another_project_reaches_no_file_of_this_one(call, owner, manual):
    other = {"project": create_project(owner, name="Other")}
    assert call(owner, "search_files", token=other, query="torque of the bolts")["results"] == []
    assert isinstance(call(owner, "read_file", token=other, file_id=str(manual.pk)), str)
    added = call(owner, "add_file", token=other, name=manual.name, content="The pump is blue.")
    assert File.objects.get(pk=added["file_id"]).project == other["project"]
    assert manual.revisions.count() == 1


@pytest.mark.parametrize("who", ["stranger", "former member", "inactive member"])
def test_others_reach_no_file_with_a_token_of_the_project(
    post, project, editor, stranger, manual, who
):
    user = stranger if who == "stranger" else editor
    secret = Token.objects.create(user=user, project=project)[1]
    if who == "former member":
        Membership.objects.filter(user=user).delete()
    elif who == "inactive member":
        type(user).objects.filter(pk=user.pk).update(is_active=False)
    for tool, arguments in (
        ("search_files", {"query": "torque of the bolts"}),
        ("read_file", {"file_id": str(manual.pk)}),
        ("add_file", {"name": "notes.md", "content": "The pump is blue."}),
    ):
        body = LIST | {"method": "tools/call", "params": {"name": tool, "arguments": arguments}}
        answer = post(body, **headers(secret))
        assert answer.status_code == (401 if who == "inactive member" else 404)
        assert "newton" not in answer.text
    assert File.objects.get() == manual


def test_files_of_an_archived_project_are_read_only(call, owner, project, manual):
    set_archived(project, True)
    assert call(owner, "search_files", query="torque of the bolts")["results"]
    added = call(owner, "add_file", name="notes.md", content="The pump is blue.")
    assert "archived and read-only" in added
    assert File.objects.get() == manual
