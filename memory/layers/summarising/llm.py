"""The summariser that uses a model."""

from collections.abc import Callable, Iterable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from chat import providers
from chat.prompt.builder import context_tokens
from chat.prompt.types import PromptMessage
from chat.providers import Completion, OutputSchemaRejectedError, ProviderError
from memory.layers.lines import from_text
from memory.layers.summarising import answers, prompts, transcript
from memory.layers.summarising.answers import SummaryAnswer
from memory.layers.summarising.base import (
    ConversationSummary,
    Digest,
    DigestChild,
    UnusableSummaryError,
)
from memory.layers.summarising.transcript import TranscriptLine
from memory.models import CallKind
from projects.core.text import storable

if TYPE_CHECKING:
    from memory.layers.model_calls import CallRecorder

# A test checks the lengths of the instructions.
MAX_INSTRUCTION_TOKENS = 500
# The share of the rest of the model's context that one part of a transcript may take: the numbers
# of its lines, the previous summary and the answer need the other half.
PART_SHARE = 0.5
# Longer parts are read less carefully (Liu et al., "Lost in the Middle", 2023).
MAX_PART_TOKENS = 12_000
# Three bullets of 80 words are about 150 tokens; a model that reasons first needs more.
MAX_ANSWER_TOKENS = 2_000
# Room for a dozen facts besides the summary.
MAX_FACT_TOKENS = 1_500
# A longer answer comes from a model that ignores limits. It is rejected.
MAX_ANSWER_CHARS = 50_000

BROKE_OFF = "The model's summary broke off in the middle."


class ModelSummariser:
    def __init__(self, name: str) -> None:
        self.name = name
        self._part_tokens = min(
            MAX_PART_TOKENS, int((context_tokens(name) - MAX_INSTRUCTION_TOKENS) * PART_SHARE)
        )

    def conversation(
        self, lines: Sequence[TranscriptLine], previous: str, recorder: "CallRecorder"
    ) -> ConversationSummary:
        """Read every line, in parts whose summaries are merged until one is left. The facts are
        those of all parts.
        """
        clean = _cleaner(prompts.CONVERSATION, (line.text for line in lines))
        parts = [
            self._summarise_part(prompts.numbered(part), previous, recorder, clean)
            for part in transcript.split_lines(lines, self._part_tokens)
        ]
        summaries = [part.summary for part in parts]
        while len(summaries) > 1:
            summaries = [
                self._ask(recorder, CallKind.MERGE, prompts.merge(notes, previous), clean)
                for notes in transcript.split_texts(summaries, self._part_tokens)
            ]
        claims = tuple(claim for part in parts for claim in part.claims or ())
        is_whole = all(part.claims is not None for part in parts)
        return ConversationSummary(from_text(summaries[0], lines[0].at.date()), claims, is_whole)

    def _summarise_part(
        self, part: str, previous: str, recorder: "CallRecorder", clean: Callable[[str], str]
    ) -> SummaryAnswer:
        """Request a part's summary and facts in one call, as JSON if the model supports a schema.

        If the server rejects the schema, the request is repeated without it; a rejection costs
        nothing.
        """
        kind, max_tokens = CallKind.CONVERSATION, MAX_ANSWER_TOKENS + MAX_FACT_TOKENS
        read = partial(_read_with_facts, clean)
        if providers.supports_output_schema(self.name):
            messages = prompts.conversation(part, previous, in_json=True)
            try:
                return recorder.ask(self.name, kind, messages, max_tokens, read, prompts.SCHEMA)
            except OutputSchemaRejectedError:
                # The rejection is recorded with its reason. Later calls send no schema to this
                # model.
                pass
        messages = prompts.conversation(part, previous)
        return recorder.ask(self.name, kind, messages, max_tokens, read)

    def digest(
        self, label: str, children: Sequence[DigestChild], recorder: "CallRecorder"
    ) -> Digest:
        """Request a digest. If it omits particulars, request it again, and return the answer with
        fewer losses, or the first one.
        """
        texts = [(child.label, child.text) for child in children]
        clean = _cleaner(prompts.DIGEST, (text for _, text in texts))
        messages = prompts.digest(label, texts)
        day = children[0].lines[0].day
        answer = self._ask(recorder, CallKind.DIGEST, messages, clean)
        first = Digest.audited(from_text(answer, day), children)
        if not first.audit.missing:
            return first
        try:
            missing = [loss.text for loss in first.audit.missing]
            retry = prompts.retry_digest(messages, answer, missing)
            answer = self._ask(recorder, CallKind.DIGEST_RETRY, retry, clean)
        except (ProviderError, UnusableSummaryError):
            # The failure is recorded with its reason. The first answer is good enough as a digest.
            return first
        second = Digest.audited(from_text(answer, day), children)
        return min(first, second, key=lambda digest: len(digest.audit.missing))

    def _ask(
        self,
        recorder: "CallRecorder",
        kind: CallKind,
        messages: Sequence[PromptMessage],
        clean: Callable[[str], str],
    ) -> str:
        return recorder.ask(self.name, kind, messages, MAX_ANSWER_TOKENS, partial(_read, clean))


def _cleaner(limits: prompts.SummaryLimits, material: Iterable[str]) -> Callable[[str], str]:
    """Return a function that cleans a summary of `material`, or raises UnusableSummaryError."""
    known = answers.scripts_in("\n".join(material))

    def clean(written: str) -> str:
        if len(written) > MAX_ANSWER_CHARS:
            raise UnusableSummaryError("The model's answer is far too long for a summary.")
        try:
            text = answers.clean_summary(storable(written), limits.bullets, limits.words)
        except ValueError as error:
            raise UnusableSummaryError(f"The model's summary could not be used: {error}") from error
        if script := answers.foreign_script(text, known):
            raise UnusableSummaryError(
                f"The model's summary is in {script} script, its material is not."
            )
        return text

    return clean


def _read(clean: Callable[[str], str], answer: Completion) -> str:
    if answer.finished.cut_off:
        raise UnusableSummaryError(BROKE_OFF)
    return clean(answer.text)


def _read_with_facts(clean: Callable[[str], str], answer: Completion) -> SummaryAnswer:
    """Return the summary and the claims; the answer may have broken off among the claims."""
    cut_off = answer.finished.cut_off
    if len(answer.text) > MAX_ANSWER_CHARS:
        raise UnusableSummaryError("The model's answer is far too long for a summary.")
    parsed = answers.parse_answer(storable(answer.text), cut_off)
    if cut_off and not parsed.is_complete:
        raise UnusableSummaryError(BROKE_OFF)
    return SummaryAnswer(clean(parsed.summary), parsed.claims, parsed.is_complete)
