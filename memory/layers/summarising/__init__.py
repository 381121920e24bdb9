"""Summarisers: they write the summary of a conversation and the digest of a period.

There are two: a model, and the extractive summariser, which only quotes.
"""

from memory.layers.summarising.base import EXTRACTIVE, Summariser
from projects.models import Project


def get_summariser(project: Project) -> Summariser:
    """Return the summariser of `project`. Does not call the model."""
    if project.system_model_name == EXTRACTIVE:
        from memory.layers.summarising.extractive import ExtractiveSummariser

        return ExtractiveSummariser()
    from memory.layers.summarising.llm import ModelSummariser

    name = project.system_model_name
    return ModelSummariser(name, is_allowed=project.allows_model(name))
