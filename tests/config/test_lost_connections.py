"""Responses while the database refuses connections or closes them, as during its restart."""

import asyncio
import socket
import struct
from collections.abc import Iterator
from threading import Thread

import httpx2
import psycopg
import pytest
from django.db import DatabaseError, OperationalError, connection, transaction

from config.asgi import application
from projects.core.database import fetch
from projects.core.outages import DatabaseUnavailableError, as_outage
from projects.models import Token

pytestmark = pytest.mark.django_db(transaction=True)

MESSAGE = "The database is not available right now. Try again in a moment."


@pytest.fixture(autouse=True)
def new_connection(transactional_db) -> Iterator[None]:
    """Connect again after a test, as Django does after a request."""
    yield
    connection.close()


def end_connection(*_: object, **__: object) -> None:
    """Fail as a query does while PostgreSQL shuts down."""
    fetch("SELECT pg_terminate_backend(pg_backend_pid())")


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/v1/projects/", {"detail": MESSAGE}),
        (
            "/v1/models",
            {"error": {"message": MESSAGE, "type": "server_error", "param": None, "code": None}},
        ),
    ],
)
def test_programs_get_503_without_the_database(api, owner, monkeypatch, path, body):
    client = api(owner)
    client.raise_request_exception = False
    monkeypatch.setattr("projects.permissions.Project.objects.visible_to", end_connection)
    response = client.get(path)
    assert (response.status_code, response.json()) == (503, body)
    assert response["Retry-After"] == "5"


@pytest.mark.parametrize(
    "place",
    ["django.contrib.sessions.backends.db.SessionStore.load", "projects.views.projects.membership"],
)
def test_a_page_is_503_without_the_database(client, owner, project, monkeypatch, place):
    client.force_login(owner)
    client.raise_request_exception = False
    monkeypatch.setattr(place, end_connection)
    page = client.get("/projects/billing/settings/", headers={"Accept": "text/html"})
    assert (page.status_code, page["Retry-After"]) == (503, "5")
    assert MESSAGE in page.content.decode()


def post_mcp(token: str, tool: str) -> httpx2.Response:
    body = {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "tools/call",
        "params": {"name": tool, "arguments": {"query": "tide"}},
    }
    headers = {
        "Authorization": f"Bearer {token}",
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }

    async def post() -> httpx2.Response:
        transport = httpx2.ASGITransport(app=application)
        async with httpx2.AsyncClient(transport=transport, headers=headers) as http:
            return await http.post("http://testserver/mcp", json=body)

    return asyncio.run(post())


def test_mcp_is_503_without_the_database(owner, project, monkeypatch):
    token = Token.objects.create(user=owner, project=project)[1]
    monkeypatch.setattr("memory.api.mcp.server.membership", end_connection)
    response = post_mcp(token, "search_memories")
    assert (response.status_code, response.json()) == (503, {"detail": MESSAGE})
    assert response.headers["Retry-After"] == "5"


def test_a_tool_that_loses_the_database_reports_it(owner, project, monkeypatch):
    token = Token.objects.create(user=owner, project=project)[1]
    monkeypatch.setattr("memory.api.mcp.server.require_active", end_connection)
    response = post_mcp(token, "forget")
    assert response.status_code == 200
    assert response.json()["result"]["content"][0]["text"] == MESSAGE


def test_a_refused_connection_is_lost():
    with pytest.raises(OperationalError) as caught, connection.wrap_database_errors:
        psycopg.connect(host="127.0.0.1", port=1)
    assert isinstance(as_outage(caught.value), DatabaseUnavailableError)


def answer_as_pgbouncer(listener: socket.socket) -> None:
    """Accept a client, and close its connection at the first query, as PgBouncer 1.18 does while
    it cannot reach the server.
    """
    client, _ = listener.accept()
    with client:
        client.recv(8192)
        client.sendall(b"R" + struct.pack("!ii", 8, 0) + b"Z" + struct.pack("!i", 5) + b"I")
        client.recv(8192)
        text = b"SFATAL\0C08P01\0Mserver login has been failing (server_login_retry)\0\0"
        client.sendall(b"E" + struct.pack("!i", 4 + len(text)) + text)


def test_a_pooler_without_its_server_is_a_lost_connection():
    with socket.create_server(("127.0.0.1", 0)) as listener:
        pooler = Thread(target=answer_as_pgbouncer, args=(listener,))
        pooler.start()
        port = listener.getsockname()[1]
        client = psycopg.connect(host="127.0.0.1", port=port, sslmode="disable")
        with pytest.raises(OperationalError) as caught, connection.wrap_database_errors:
            client.execute("SELECT 1")
        pooler.join()
    assert isinstance(as_outage(caught.value), DatabaseUnavailableError)


@pytest.mark.parametrize(
    "statement",
    ["SELECT 1 / 0", "SET LOCAL statement_timeout = 1; SELECT pg_sleep(1)"],
)
def test_a_failed_statement_is_no_lost_connection(statement):
    with pytest.raises(DatabaseError) as caught, transaction.atomic():
        fetch(statement)
    assert as_outage(caught.value) is None


def test_too_many_parameters_are_no_lost_connection():
    statement = f"SELECT {', '.join(['%s'] * 70_000)}"
    with pytest.raises(OperationalError) as caught, connection.wrap_database_errors:
        connection.ensure_connection()
        connection.connection.cursor().execute(statement, [1] * 70_000)
    assert as_outage(caught.value) is None
