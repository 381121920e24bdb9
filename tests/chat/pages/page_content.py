"""Read the content of a page as a browser receives it."""

from django.db import connection
from django.test.utils import CaptureQueriesContext


def page(client, user, url: str) -> str:
    client.force_login(user)
    return client.get(url).content.decode()


def queries(client, path: str) -> int:
    with CaptureQueriesContext(connection) as captured:
        assert client.get(path).status_code == 200
    return len(captured)


def events(text: str) -> list[tuple[str, str]]:
    """(event, data) of each event; the lines of a text are put together."""
    matches = []
    for block in text.split("\n\n"):
        if block.startswith("event: "):
            name, *lines = block.split("\n")
            data_lines = [line for line in lines if line.startswith("data: ")]
            data = "\n".join(line.removeprefix("data: ") for line in data_lines)
            matches.append((name.removeprefix("event: "), data))
    return matches
