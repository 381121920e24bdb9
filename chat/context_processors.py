"""Template context about the models that needs no query."""

from typing import NamedTuple

from django.http import HttpRequest


class DemoModel(NamedTuple):
    """The default chat model: its value in settings, and its name for people."""

    setting: str
    name: str


DEMO_MODEL = DemoModel("demo", "SmolLM2-135M")


def demo_model(request: HttpRequest) -> dict[str, object]:
    """Return `demo_model` for the banner of projects whose chat model is `demo`."""
    return {"demo_model": DEMO_MODEL}
