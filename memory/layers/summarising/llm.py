"""Summaries written by a model."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from chat import providers
from chat.prompt import Said, context_tokens
from chat.providers import Completion, ProviderError, ShapeRefused
from chat.storable import storable
from memory.layers import losses
from memory.layers.summarising import answers, parts, prompts, scripts
from memory.layers.summarising.answers import Answer
from memory.layers.summarising.base import Asks, Digest, Telling, Unusable, audited
from memory.layers.summarising.parts import Line
from memory.models import CallKind

# Tokens that the instructions take, at most; their lengths are tested.
INSTRUCTIONS = 500
# The share of what is left of the model's context that one part of a transcript may take: the
# numbers of its lines, the summary before and the answer need the rest.
PART_SHARE = 0.5
# Tokens. Longer parts are read less carefully (Liu et al., “Lost in the Middle”, 2023).
LONGEST_PART = 12_000
# Three bullets of 80 words are some 150 tokens; a model that thinks aloud needs more.
MAX_ANSWER_TOKENS = 2_000
# A dozen facts beside it.
MAX_FACT_TOKENS = 1_500
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
        return self.text(answer.text)

    def text(self, written: str) -> str:
        """Raises Unusable."""
        if len(written) > LONGEST_ANSWER:
            raise Unusable("The model's answer is far too long for a summary.")
        try:
            text = prompts.tidy(storable(written), self.limits.bullets, self.limits.words)
        except ValueError as error:
            raise Unusable(f"The model's summary could not be used: {error}") from error
        if script := scripts.strange(text, self.scripts):
            raise Unusable(f"The model's summary is in {script} script, its material is not.")
        return text


@dataclass(frozen=True)
class _TellingOf:
    """How an answer becomes a summary and claims; one that broke off among these is used, too."""

    reading: _Reading

    def __call__(self, answer: Completion) -> Answer:
        """Raises Unusable."""
        cut_off = answer.finished.cut_off
        if len(answer.text) > LONGEST_ANSWER:
            raise Unusable("The model's answer is far too long for a summary.")
        told = answers.taken_apart(storable(answer.text), cut_off)
        if cut_off and not told.is_complete:
            raise Unusable("The model's summary broke off in the middle.")
        return Answer(self.reading.text(told.summary), told.claims, told.is_complete)


class ModelSummariser:
    def __init__(self, name: str) -> None:
        self.name = name
        self._part_tokens = min(
            LONGEST_PART, int((context_tokens(name) - INSTRUCTIONS) * PART_SHARE)
        )

    def conversation(self, lines: Sequence[Line], previous: str, booking: Asks) -> Telling:
        """Every line is read: in parts, whose summaries are merged until one is left. The facts
        are those of the parts.
        """
        read = _reading(prompts.CONVERSATION, (line.text for line in lines))
        told = [
            self._tell(prompts.numbered(part), previous, booking, _TellingOf(read))
            for part in parts.placed(lines, self._part_tokens)
        ]
        summaries = [one.summary for one in told]
        while len(summaries) > 1:
            summaries = [
                self._ask(booking, CallKind.MERGE, prompts.merge(notes, previous), read)
                for notes in parts.split_texts(summaries, self._part_tokens)
            ]
        claims = tuple(claim for one in told for claim in one.claims or ())
        return Telling(summaries[0], claims, all(one.claims is not None for one in told))

    def _tell(self, part: str, previous: str, booking: Asks, read: _TellingOf) -> Answer:
        """What a part comes to, in one call: in JSON from a model that can, else as a text.

        Only where a server turns out to take no schema, which costs nothing, it is asked again.
        """
        kind, room = CallKind.CONVERSATION, MAX_ANSWER_TOKENS + MAX_FACT_TOKENS
        if providers.can_shape(self.name):
            said = prompts.conversation(part, previous, in_json=True)
            try:
                return booking.ask(self.name, kind, said, room, read, prompts.SHAPE)
            except ShapeRefused:
                # Booked with its reason; the model is not offered a schema again.
                pass
        return booking.ask(self.name, kind, prompts.conversation(part, previous), room, read)

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
