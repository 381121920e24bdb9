"""How large a request may be, at a real server: refused by its header, or cut off as it grows."""

import gzip
import json
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPResponse
from urllib.request import urlopen

import psutil
import pytest

from tests.scripted import ScriptedModel
from tests.server import Web, installed

pytestmark = pytest.mark.process

MB = 1_000_000
JSON = {"Content-Type": "application/json"}
FORM = {"Content-Type": "multipart/form-data; boundary=x"}
BROWSER = {"Content-Type": "application/x-www-form-urlencoded", "Accept": "text/html,*/*"}


@pytest.fixture(scope="module")
def web(tmp_path_factory) -> Iterator[Web]:
    data_dir = tmp_path_factory.mktemp("strata-bodies")
    with (
        ScriptedModel() as model,
        installed(data_dir, model) as strata,
        Web(strata, STRATA_MAX_UPLOAD_MB="1") as web,
    ):
        web.token = strata.token
        yield web


def ask(web: Web, path: str, headers: dict, body: object = None) -> HTTPResponse:
    """The answer to a POST; `body` may be an iterator, which is sent in chunks of no known sum."""
    connection = HTTPConnection("127.0.0.1", web.port, timeout=30)
    connection.request("POST", path, body, headers)
    return connection.getresponse()


def announce(web: Web, path: str, headers: dict, size: int) -> HTTPResponse:
    """The answer to a POST of which no more than the head is ever sent."""
    connection = HTTPConnection("127.0.0.1", web.port, timeout=10)
    connection.putrequest("POST", path)
    for name, value in ({"Content-Length": str(size)} | headers).items():
        connection.putheader(name, value)
    connection.endheaders()
    return connection.getresponse()


def chunks(megabytes: int) -> Iterator[bytes]:
    for _ in range(megabytes):
        yield b" " * MB


def detail(answer: HTTPResponse) -> str:
    return json.loads(answer.read())["detail"]


@pytest.mark.parametrize("path", ["/api/v1/projects/", "/api/nowhere/"])
def test_a_program_is_refused_by_the_header_in_json(web, path):
    answer = announce(web, path, JSON, 30 * MB + 1)
    assert (answer.status, answer.headers["Content-Type"]) == (413, "application/json")
    assert detail(answer) == "The request is too large. The limit is 30 MB."


def test_a_refusal_is_guarded_and_named_as_every_other_answer(web):
    refusal = announce(web, "/api/v1/projects/", JSON, 30 * MB + 1)
    other = ask(web, "/api/nowhere/", JSON, b"{}")
    names, others = ({name.lower() for name in response.headers} for response in (refusal, other))
    assert {"x-request-id", "content-security-policy"} <= names
    assert others - names <= {"vary"}


def test_an_openai_client_is_refused_in_its_own_shape(web):
    answer = announce(web, "/v1/chat/completions", JSON, 30 * MB + 1)
    assert answer.status == 413
    assert "30 MB" in json.loads(answer.read())["error"]["message"]


def test_a_form_may_be_larger_for_its_files_but_not_without_end(web):
    path, token = "/api/v1/projects/nowhere/imports/", {"Authorization": f"Bearer {web.token}"}
    answer = announce(web, path, FORM | token, 900 * MB)
    assert answer.status == 413
    assert "201 MB" in detail(answer)
    # However small the files are that it imports, ten images of 20 MB are let through to a view.
    answer = ask(web, path, FORM | token, b" " * 40 * MB)
    assert answer.status == 404


def test_a_form_without_a_session_or_token_is_not_as_large(web):
    path = "/api/v1/projects/nowhere/imports/"
    answer = announce(web, path, FORM, 31 * MB)
    assert answer.status == 413 and "30 MB" in detail(answer)


@pytest.mark.parametrize("path", ["/accounts/login/", "/api/v1/projects/", "/v1/models"])
def test_a_stranger_sends_at_most_one_megabyte(web, path):
    headers = JSON | {"Authorization": "Bearer made-up", "Cookie": "sessionid=made-up"}
    assert announce(web, path, headers, MB + 1).status == 401
    answer = ask(web, path, headers, chunks(2))
    assert answer.status == 413 and b"1 MB" in answer.read()
    assert ask(web, path, headers, iter([b"{}"])).status in (401, 403, 405)


def test_a_client_that_sends_the_whole_body_reads_the_response(web):
    answer = ask(web, "/api/v1/projects/", JSON, b" " * 31 * MB)
    assert (answer.status, detail(answer)) == (413, "The request is too large. The limit is 30 MB.")


def test_a_body_without_a_length_is_cut_off_and_not_kept(web):
    process = psutil.Process(web.pid)
    before = process.io_counters().write_bytes
    sent = {"Authorization": f"Bearer {web.token}"} | JSON
    answer = ask(web, "/api/v1/projects/", sent, chunks(120))
    assert (answer.status, detail(answer)) == (413, "The request is too large. The limit is 30 MB.")
    assert process.io_counters().write_bytes - before < 40 * MB


def test_a_body_in_chunks_is_read(web):
    token = {"Authorization": f"Bearer {web.token}"}
    created = ask(web, "/api/v1/projects/", JSON | token, iter([b'{"name": ', b'"Chunks"}']))
    assert json.loads(created.read())["slug"] == "chunks"
    part = b'--x\r\nContent-Disposition: form-data; name="file"; filename="a.txt"\r\n\r\n'
    body = iter([part, b"The pump is blue.", b"\r\n--x--\r\n"])
    added = ask(web, "/api/v1/projects/chunks/files/", FORM | token, body)
    assert json.loads(added.read())["files"][0]["versions"][0]["size"] == 17
    question = {"model": "chunks", "messages": [{"role": "user", "content": "Hello"}]}
    answer = ask(web, "/v1/chat/completions", JSON | token, iter([json.dumps(question).encode()]))
    assert json.loads(answer.read())["choices"]


@pytest.mark.parametrize("path", ["/api/v1/projects/", "/v1/chat/completions"])
def test_a_compressed_body_is_refused(web, path):
    headers = JSON | {"Authorization": f"Bearer {web.token}", "Content-Encoding": "gzip"}
    answer = ask(web, path, headers, gzip.compress(b'{"name": "Packed"}'))
    assert answer.status == 415 and b"Compressed requests" in answer.read()


def test_a_small_body_passes(web):
    sent = {"Authorization": f"Bearer {web.token}"} | JSON
    assert ask(web, "/api/v1/projects/", sent, b'{"name": "Billing"}').status == 201
    padded = b'{"name": "Padded"}' + b" " * (30 * MB - 18)
    assert ask(web, "/api/v1/projects/", sent, padded).status == 201
    assert ask(web, "/api/v1/projects/", sent, chunks(2)).status == 400


def test_people_read_a_page_and_scripts_of_pages_json(web):
    answer = ask(web, "/projects/billing/chats/", BROWSER, b"x" * 31 * MB)
    assert answer.status == 413
    assert "<h1>Too large</h1>" in answer.read().decode()
    script = BROWSER | {"Accept": "text/event-stream"}
    assert "30 MB" in detail(ask(web, "/projects/billing/chats/", script, b"x" * 31 * MB))


def test_a_german_reads_a_german_page(web):
    german = BROWSER | {"Accept-Language": "de"}
    page = ask(web, "/projects/billing/chats/", german, b"x" * 31 * MB).read().decode()
    assert '<html lang="de">' in page and "Die Anfrage ist zu groß." in page
    program = german | {"Accept": "application/json"}
    assert "The request is too large." in detail(ask(web, "/api/v1/", program, b"x" * 31 * MB))


def test_the_server_goes_on(web):
    assert ask(web, "/healthz", {}, chunks(40)).status == 413
    assert announce(web, "/healthz", {}, 31 * MB).status == 413
    with urlopen(f"{web.url}/healthz", timeout=5) as answer:
        assert answer.status == 200
