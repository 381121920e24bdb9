"""Summaries written by a model."""

from collections.abc import Sequence

from chat import providers
from chat.prompt import Said, context_tokens
from memory.layers.summarising import Pulse, Unusable, parts, prompts
from memory.layers.summarising.parts import Line

# The share of the model's context that one part of a transcript may take: the instructions, the
# summary before and the answer need the rest.
PART_SHARE = 0.5
# Tokens. Longer parts are read less carefully (Liu et al., “Lost in the Middle”, 2023).
LONGEST_PART = 12_000
# Three bullets of 80 words are some 150 tokens; a model that thinks aloud needs more.
MAX_ANSWER_TOKENS = 2_000


class ModelSummariser:
    def __init__(self, name: str) -> None:
        self.name = name
        self._provider = providers.get(name)
        self._part_tokens = min(LONGEST_PART, int(context_tokens(name) * PART_SHARE))

    def conversation(self, lines: Sequence[Line], previous: str, pulse: Pulse) -> str:
        """Every line is read: in parts, whose summaries are merged until one is left."""
        transcript = parts.split(lines, self._part_tokens)
        summaries = [
            self._ask(prompts.conversation(part, previous), prompts.CONVERSATION, pulse)
            for part in transcript
        ]
        while len(summaries) > 1:
            summaries = [
                self._ask(prompts.merge(notes, previous), prompts.CONVERSATION, pulse)
                for notes in parts.split_texts(summaries, self._part_tokens)
            ]
        return summaries[0]

    def digest(self, label: str, children: Sequence[tuple[str, str]], pulse: Pulse) -> str:
        return self._ask(prompts.digest(label, children), prompts.DIGEST, pulse)

    def _ask(self, said: Sequence[Said], limits: prompts.Limits, pulse: Pulse) -> str:
        pulse()
        answer = self._provider.complete(said, MAX_ANSWER_TOKENS)
        if answer.finished.cut_off:
            raise Unusable("The model's summary broke off in the middle.")
        try:
            return prompts.tidy(answer.text, limits.bullets, limits.words)
        except ValueError as error:
            raise Unusable(f"The model's summary could not be used: {error}") from error
