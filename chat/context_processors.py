"""Template context about the demo model. Takes no query."""

from collections.abc import Sequence
from typing import NamedTuple

from django.http import HttpRequest


class DemoModel(NamedTuple):
    """The default chat model: its value in settings, its display name, and the questions that the
    demo project suggests, in the language of its chats.
    """

    setting: str
    name: str
    questions: Sequence[str]


DEMO_MODEL = DemoModel(
    "demo",
    "SmolLM2-135M",
    (
        "Who owns billing now, and since when?",
        "How many wheelchair places does the MS Aurelia have?",
        "Which payment provider did we choose, and why?",
    ),
)


def demo_model(request: HttpRequest) -> dict[str, object]:
    """Return `demo_model` for projects whose chat model is `demo`, and for the demo project."""
    return {"demo_model": DEMO_MODEL}
