"""Summaries written by a model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chat.prompt import Said, context_tokens
from chat.providers import Completion, ProviderError
from chat.storable import storable
from memory.layers import losses
from memory.layers.summarising import Asks, Digest, Unusable, audited, parts, prompts, scripts
from memory.layers.summarising.parts import Line
from memory.models import CallKind

# The share of the model's context that one part of a transcript may take: the instructions, the
# summary before and the answer need the rest.
PART_SHARE = 0.5
# Tokens. Longer parts are read less carefully (Liu et al., “Lost in the Middle”, 2023).
LONGEST_PART = 12_000
# Three bullets of 80 words are some 150 tokens; a model that thinks aloud needs more.
MAX_ANSWER_TOKENS = 2_000
# Characters. What is longer comes from a model that knows no limits, and no summary is looked for
# in it.
LONGEST_ANSWER = 50_000


@dataclass(frozen=True)
class _Reading:
    """How an answer becomes a text: within `limits`, in no script that its material lacks."""

    limits: prompts.Limits
    scripts: frozenset[str]

    def __call__(self, answer: Completion) -> str:
        """Raises Unusable."""
        if answer.finished.cut_off:
            raise Unusable("The model's summary broke off in the middle.")
        if len(answer.text) > LONGEST_ANSWER:
            raise Unusable("The model's answer is far too long for a summary.")
        try:
            text = prompts.tidy(storable(answer.text), self.limits.bullets, self.limits.words)
        except ValueError as error:
            raise Unusable(f"The model's summary could not be used: {error}") from error
        if script := scripts.strange(text, self.scripts):
            raise Unusable(f"The model's summary is in {script} script, its material is not.")
        return text


class ModelSummariser:
    def __init__(self, name: str) -> None:
        self.name = name
        self._part_tokens = min(LONGEST_PART, int(context_tokens(name) * PART_SHARE))

    def conversation(self, lines: Sequence[Line], previous: str, booking: Asks) -> str:
        """Every line is read: in parts, whose summaries are merged until one is left."""
        read = _reading(prompts.CONVERSATION, (line.text for line in lines))
        summaries = [
            self._ask(booking, CallKind.CONVERSATION, prompts.conversation(part, previous), read)
            for part in parts.split(lines, self._part_tokens)
        ]
        while len(summaries) > 1:
            summaries = [
                self._ask(booking, CallKind.MERGE, prompts.merge(notes, previous), read)
                for notes in parts.split_texts(summaries, self._part_tokens)
            ]
        return summaries[0]

    def digest(self, label: str, children: Sequence[tuple[str, str]], booking: Asks) -> Digest:
        """What the first answer leaves out is asked for once more; the answer that keeps more is
        taken, and of two that keep as much the first.
        """
        read = _reading(prompts.DIGEST, (summary for _, summary in children))
        asked = prompts.digest(label, children)
        first = self._ask(booking, CallKind.DIGEST, asked, read)
        audit = losses.audit(children, first)
        if not audit.missing:
            return audited(first, audit)
        try:
            said = prompts.again(asked, first, [one.text for one in audit.missing])
            second = self._ask(booking, CallKind.AGAIN, said, read)
        except (ProviderError, Unusable):
            # Booked with its reason. The first answer is a digest, if not the best.
            return audited(first, audit)
        audit_of_second = losses.audit(children, second)
        if len(audit_of_second.missing) < len(audit.missing):
            return audited(second, audit_of_second)
        return audited(first, audit)

    def _ask(self, booking: Asks, kind: CallKind, said: Sequence[Said], read: _Reading) -> str:
        return booking.ask(self.name, kind, said, MAX_ANSWER_TOKENS, read)


def _reading(limits: prompts.Limits, material: Iterable[str]) -> _Reading:
    return _Reading(limits, scripts.used("\n".join(material)))
