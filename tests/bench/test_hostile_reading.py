"""Requests while hostile files are read, beside the same requests without them."""

import time
from collections.abc import Iterator
from itertools import islice

import httpx2
import pytest

from tests.hostile import files
from tests.scripted import ScriptedModel
from tests.server import installed
from tests.torture.running_strata import Whole

pytestmark = pytest.mark.timeout(3_600)

# Every second of the hostile files.
STEP = 2
REQUESTS = 40


@pytest.fixture
def client(tmp_path) -> Iterator[httpx2.Client]:
    with (
        ScriptedModel() as model,
        installed(tmp_path, model) as installation,
        Whole(installation) as whole,
        httpx2.Client(
            base_url=f"{whole.url}/api/v1/",
            headers={"Authorization": f"Bearer {installation.token}"},
            timeout=60,
        ) as http,
    ):
        yield http


def test_requests_while_hostile_files_are_read(client, compare, report_figures):
    slug = client.post("projects/", json={"name": "Pumps"}).json()["slug"]
    chat = client.post(f"projects/{slug}/sessions/", json={}).json()["id"]
    requests = {
        "list of chats": ("GET", f"projects/{slug}/sessions/", {}),
        "recall": ("GET", f"projects/{slug}/recall/", {"params": {"q": "Which pump is blue?"}}),
        "message": (
            "POST",
            f"sessions/{chat}/messages/",
            {"json": {"content": "The pump is blue.", "reply": False}},
        ),
    }

    def seconds(method: str, path: str, more: dict) -> float:
        began = time.perf_counter()
        response = client.request(method, path, **more)
        assert response.is_success, response.text
        return time.perf_counter() - began

    def measured() -> dict[str, list[float]]:
        times: dict[str, list[float]] = {name: [] for name in requests}
        for _ in range(REQUESTS):
            for name, (method, path, more) in requests.items():
                times[name].append(seconds(method, path, more))
        return times

    measured()
    without = measured()
    uploads = []
    for name, data in islice(files.all_of_them(), 0, None, STEP):
        began = time.perf_counter()
        client.post(f"projects/{slug}/files/", files={"file": (name, data)})
        uploads.append(time.perf_counter() - began)
    waiting = unread(client, slug)
    during = measured()
    assert unread(client, slug), "The files were read before the end of the measurement."
    for name in requests:
        compare(f"{name}, while hostile files are read", without[name], during[name])
    report_figures("hostile files: added, waiting", len(uploads), waiting)


def unread(client: httpx2.Client, slug: str) -> int:
    """Return how many files wait to be read."""
    found = client.get(f"projects/{slug}/files/", params={"limit": 200}).json()["results"]
    states = [version["state"] for file in found for version in file["versions"]]
    return sum(state in ("waiting", "reading", "indexing") for state in states)
