"""Who writes the summaries: a model, or the summariser that only quotes."""

from memory.layers.summarising.base import Digest, Summariser, Telling, Unusable, audited
from projects.models import Project

__all__ = ["EXTRACTIVE", "Digest", "Summariser", "Telling", "Unusable", "audited", "get"]

# The name under which the summariser that only quotes signs.
EXTRACTIVE = "extractive"


def get(project: Project) -> Summariser:
    """The summariser of `project`. No model is reached for yet."""
    if project.system_model_name == EXTRACTIVE:
        from memory.layers.summarising.extractive import Extractive

        return Extractive()
    from memory.layers.summarising.llm import ModelSummariser

    return ModelSummariser(project.system_model_name)
