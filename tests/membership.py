"""Members of a project on a running server: they are invited and accept, as people do."""

from tests.torture.clients import Api


def join(owner: Api, slug: str, username: str, token: str, role: str = "editor") -> None:
    """Have `owner` invite `username`, who accepts with their `token`."""
    invited = owner.call("POST", f"projects/{slug}/members/", {"username": username, "role": role})
    Api(owner.url, token).call("POST", f"invitations/{invited['invitation']}/")
