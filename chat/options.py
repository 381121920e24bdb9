"""What a program asks of one reply beside its words."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Options:
    """Where nothing is asked, the model's own defaults hold.

    `system` is what the program tells the model itself; it stands beneath the project's own front.
    `settings` are pydantic-ai's ModelSettings, which every provider understands: temperature,
    top_p, max_tokens, stop_sequences, seed, presence_penalty, frequency_penalty. `wire` is in the
    form of OpenAI's chat completions (tools, tool_choice, response_format, …): it reaches servers
    that speak it untouched, and is translated for others.
    """

    system: str = ""
    settings: Mapping[str, Any] = field(default_factory=dict)
    wire: Mapping[str, Any] = field(default_factory=dict)
