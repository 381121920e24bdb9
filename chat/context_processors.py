"""What every page knows about the models without asking the database."""

from typing import NamedTuple

from django.http import HttpRequest


class DemoModel(NamedTuple):
    """The model that answers where none was chosen: its name in settings, and what it is."""

    setting: str
    name: str


DEMO_MODEL = DemoModel("demo", "SmolLM2-135M")


def demo_model(request: HttpRequest) -> dict[str, object]:
    """`demo_model` for the banner; pages show it where a project's chat model is `demo`."""
    return {"demo_model": DEMO_MODEL}
