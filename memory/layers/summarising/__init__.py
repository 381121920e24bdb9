"""Who writes the summaries: a model, or the summariser that only quotes."""

from collections.abc import Callable, Sequence
from typing import Protocol

from memory.layers.summarising.parts import Line
from projects.models import Project

# The name under which the summariser that only quotes signs.
EXTRACTIVE = "extractive"
# Called before each model call, so that a lease is renewed while long work goes on.
Pulse = Callable[[], None]


class Unusable(Exception):
    """What the model wrote is no summary; the text says why, for people."""


class Summariser(Protocol):
    name: str

    def conversation(self, lines: Sequence[Line], previous: str, pulse: Pulse) -> str:
        """The summary of all of `lines`; `previous` is what the stretch before came to.

        Raises ProviderError or Unusable.
        """

    def digest(self, label: str, children: Sequence[tuple[str, str]], pulse: Pulse) -> str:
        """The digest of the period `label` from its children, as (label, summary) each.

        Raises ProviderError or Unusable.
        """


def get(project: Project) -> Summariser:
    """The summariser of `project`. Raises ProviderError when its model cannot be reached."""
    if project.system_model_name == EXTRACTIVE:
        from memory.layers.summarising.extractive import Extractive

        return Extractive()
    from memory.layers.summarising.llm import ModelSummariser

    return ModelSummariser(project.system_model_name)
