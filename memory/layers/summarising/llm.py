"""The summariser that calls a model."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import date
from functools import partial
from itertools import zip_longest

from django.utils.translation import gettext_noop as _

from chat import providers
from chat.prompt.builder import context_tokens
from chat.prompt.types import PromptMessage
from chat.providers import Completion, OutputSchemaRejectedError, ProviderError
from memory.layers.lines import Line, rank_score, roll_up
from memory.layers.model_calls import CallRecorder
from memory.layers.summarising import answers, prompts, transcript
from memory.layers.summarising.answers import Bullet, FactClaim
from memory.layers.summarising.base import (
    MAX_LINES,
    ConversationSummary,
    Digest,
    DigestChild,
    UnusableSummaryError,
)
from memory.layers.summarising.transcript import TranscriptLine
from memory.models import CallKind
from projects.core import token_counting
from projects.core.text import storable

# The maximum length of the instructions, in tokens. A test checks it.
MAX_INSTRUCTION_TOKENS = 500
# The maximum share of the model's context, without instructions, for one part of a transcript. The
# other half is for line numbers, the previous summary and the answer. The same share is for the
# lines of a digest.
PART_SHARE = 0.5
# The maximum length of a part in tokens, because models read longer texts less carefully (Liu et
# al., "Lost in the Middle", 2023).
MAX_PART_TOKENS = 12_000
# Three bullets of 80 words need about 150 tokens. A model that reasons first needs more.
MAX_ANSWER_TOKENS = 2_000
# Additional tokens for a dozen facts.
MAX_FACT_TOKENS = 1_500
# The number, the day and the punctuation of a row in the prompt of a digest.
ROW_TOKENS = 12
# A longer answer is rejected, because its model does not respect limits.
MAX_ANSWER_CHARS = 50_000

# A function that returns the bullets of an answer, or raises UnusableSummaryError.
Cleaner = Callable[[str], list[Bullet]]

BROKE_OFF = _("The model's summary broke off in the middle.")
TOO_LONG = _("The model's answer is far too long for a summary.")
UNUSABLE = _("The model's summary could not be used")
OTHER_SCRIPT = _("The model's summary is in another script than its material")


class ModelSummariser:
    def __init__(self, name: str, is_allowed: bool = True) -> None:
        self.name = name
        self.is_allowed = is_allowed
        self._digest_tokens = int((context_tokens(name) - MAX_INSTRUCTION_TOKENS) * PART_SHARE)
        self._part_tokens = min(MAX_PART_TOKENS, self._digest_tokens)

    def conversation(
        self, lines: Sequence[TranscriptLine], previous: str, recorder: CallRecorder
    ) -> ConversationSummary:
        """Summarise every line, in parts that fit into the model's context. The summary contains
        the first bullet of each part, then the second of each, and so on. The facts of all parts
        are joined.
        """
        self._require_allowed()
        clean = _cleaner(prompts.CONVERSATION, (line.text for line in lines))
        summaries: list[list[Line]] = []
        claims: list[FactClaim] = []
        is_whole = True
        for part in transcript.split_lines(lines, self._part_tokens):
            bullets, found = self._summarise_part(prompts.numbered(part), previous, recorder, clean)
            read = {place + 1: _material(lines[place]) for place, _ in part}
            summaries.append(_with_sources(bullets, read))
            claims += found or ()
            is_whole = is_whole and found is not None
        return ConversationSummary(roll_up(summaries, MAX_LINES), tuple(claims), is_whole)

    def _summarise_part(
        self, part: str, previous: str, recorder: CallRecorder, clean: Cleaner
    ) -> tuple[list[Bullet], tuple[FactClaim, ...] | None]:
        """Request the summary and the facts of a part in one call, as JSON if the model supports
        schemas.

        If the server rejects the schema, the request is repeated without a schema. A rejected
        request costs nothing.
        """
        kind, max_tokens = CallKind.CONVERSATION, MAX_ANSWER_TOKENS + MAX_FACT_TOKENS
        read = partial(_read_with_facts, clean)
        if providers.supports_output_schema(self.name):
            messages = prompts.conversation(part, previous, in_json=True)
            try:
                return recorder.ask(self.name, kind, messages, max_tokens, read, prompts.SCHEMA)
            except OutputSchemaRejectedError:
                # The call is recorded with the reason. Later calls to this model have no schema.
                pass
        messages = prompts.conversation(part, previous)
        return recorder.ask(self.name, kind, messages, max_tokens, read)

    def digest(self, label: str, children: Sequence[DigestChild], recorder: CallRecorder) -> Digest:
        """Request a digest. If it omits particulars, request a second one, and return the digest
        with fewer losses. If both are equal, return the first.

        If not all lines of the children fit into the model's context, the best lines are sent. The
        particulars of all children are compared with the digest.
        """
        self._require_allowed()
        sent = _fitting(children, self._digest_tokens)
        notes = dict(enumerate((line for child in sent for line in child.lines), 1))
        clean = _cleaner(prompts.DIGEST, (child.text for child in children))
        messages = prompts.digest(label, [(child.label, child.lines) for child in sent])
        bullets = self._ask(recorder, CallKind.DIGEST, messages, clean)
        first = Digest.audited(_with_sources(bullets, notes), children)
        if not first.audit.missing:
            return first
        try:
            answer = "\n".join(map(str, bullets))
            missing = [loss.text for loss in first.audit.missing]
            retry = prompts.retry_digest(messages, answer, missing)
            bullets = self._ask(recorder, CallKind.DIGEST_RETRY, retry, clean)
        except (ProviderError, UnusableSummaryError):
            # The failed call is recorded with the reason. The first answer is good enough.
            return first
        second = Digest.audited(_with_sources(bullets, notes), children)
        return min(first, second, key=lambda digest: len(digest.audit.missing))

    def _require_allowed(self) -> None:
        """Raise `ProviderError` if administrators do not allow the model in this project."""
        if not self.is_allowed:
            raise ProviderError(providers.NOT_ALLOWED, status=400, code="model_not_allowed")

    def _ask(
        self,
        recorder: CallRecorder,
        kind: CallKind,
        messages: Sequence[PromptMessage],
        clean: Cleaner,
    ) -> list[Bullet]:
        def read(answer: Completion) -> list[Bullet]:
            return _read_with_facts(clean, answer)[0]

        return recorder.ask(self.name, kind, messages, MAX_ANSWER_TOKENS, read)


def _fitting(children: Sequence[DigestChild], max_tokens: int) -> list[DigestChild]:
    """Return `children` with the lines that fit into `max_tokens`, but at least one line.

    The best line of each child comes first, then the second best of each, and so on. Children
    without such a line are left out.
    """
    ranked = [sorted(child.lines, key=lambda line: -line.score) for child in children]
    chosen: list[list[Line]] = [[] for _ in children]
    used = 0
    for tier in zip_longest(*ranked):
        for child, lines, line in zip(children, chosen, tier, strict=True):
            if line is None:
                continue
            rows = [line.quoted] if lines else [child.label, line.quoted]
            size = sum(map(token_counting.count, rows)) + len(rows) * ROW_TOKENS
            if not used or used + size <= max_tokens:
                lines.append(line)
                used += size
    return [
        replace(child, lines=[line for line in child.lines if line in lines])
        for child, lines in zip(children, chosen, strict=True)
        if lines
    ]


def _material(line: TranscriptLine) -> Line:
    """Return a message as a source line for a summary."""
    return Line(line.text, line.at.date(), sources=() if line.id is None else (line.id,))


def _with_sources(bullets: Sequence[Bullet], material: Mapping[int, Line]) -> list[Line]:
    """Return `bullets` as lines. The sources of a line are the sources of the numbers that it
    cites.

    Numbers that are not in `material` are ignored. A line without a valid number has no sources: it
    may be based on all of the material.
    """
    first_day = min((line.day for line in material.values()), default=date.min)
    lines = []
    for place, bullet in enumerate(bullets):
        cited = [material[number] for number in bullet.cited if number in material]
        sources = dict.fromkeys(source for line in cited for source in line.sources)
        if not all(line.sources for line in cited):
            # A cited line has unknown sources, so the sources of the bullet are not known either.
            sources.clear()
        day = min((line.day for line in cited), default=first_day)
        lines.append(Line(bullet.text, day, "", tuple(sources), rank_score(place)))
    return lines


def _cleaner(limits: prompts.SummaryLimits, material: Iterable[str]) -> Cleaner:
    """Return a function that cleans a summary of `material` or raises UnusableSummaryError."""
    known = answers.scripts_in("\n".join(material))

    def clean(written: str) -> list[Bullet]:
        if len(written) > MAX_ANSWER_CHARS:
            raise UnusableSummaryError(TOO_LONG)
        try:
            bullets = answers.clean_summary(storable(written), limits.bullets, limits.words)
        except ValueError as error:
            raise UnusableSummaryError(f"{UNUSABLE}: {error}") from error
        text = "\n".join(bullet.text for bullet in bullets)
        if script := answers.foreign_script(text, known):
            raise UnusableSummaryError(f"{OTHER_SCRIPT}: {script}.")
        return bullets

    return clean


def _read_with_facts(
    clean: Cleaner, answer: Completion
) -> tuple[list[Bullet], tuple[FactClaim, ...] | None]:
    """Return the summary and the claims. An answer that broke off within the claims is accepted."""
    cut_off = answer.finished.cut_off
    if len(answer.text) > MAX_ANSWER_CHARS:
        raise UnusableSummaryError(TOO_LONG)
    parsed = answers.parse_answer(storable(answer.text), cut_off)
    if cut_off and not parsed.is_complete:
        raise UnusableSummaryError(BROKE_OFF)
    return clean(parsed.summary), parsed.claims
