"""Tool-call loop of a reply: runs the model's calls of Strata's tools and sends the results back to
the model. If the model is out of credit or unavailable, the project's second model answers.
"""

import logging
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import aclosing, suppress
from dataclasses import dataclass, field, replace
from typing import Any

from django.conf import settings
from django.utils.translation import gettext_noop as _

from chat import providers
from chat.conversations.messages import MAX_MESSAGE_CHARS
from chat.models import Session
from chat.prompt import builder, tools
from chat.prompt.builder import REPLY_SHARE, Turn, context_tokens
from chat.prompt.tools import ModelTool, ToolResult
from chat.prompt.types import Lookup, Prompt, PromptMessage, PromptSection, ToolCall
from chat.providers import Delta, Finished, Provider, ProviderError, ReplyOptions, Thought
from chat.providers.booking import CallAccount
from projects.core.database import in_thread
from projects.core.errors import DomainError, NotFoundError
from projects.core.text import storable

log = logging.getLogger(__name__)

# With less room than this, no further call is run: a shorter result would be useless.
MIN_RESULT_TOKENS = 150
# Maximum length of the stored arguments of a lookup, and of its stored error.
MAX_STORED_CHARS = 1_000
LIMIT_REACHED = (
    f"At most {tools.MAX_CALLS} calls of tools are possible in a reply. Answer now with what you "
    "have."
)
NO_ROOM = "There is no room for more results. Answer now with what you have."
NO_TIME = "There is no time for more calls. Answer now with what you have."
TRUNCATED = _("The reply reached its maximum length.")
ONLY_CALLS = _("The model reached the limit of tool calls without an answer.")


@dataclass(frozen=True)
class LookupsChanged:
    """The lookups of a reply so far. The last one may still be running."""

    lookups: tuple[Lookup, ...]


@dataclass
class LookupLoop:
    """The requests to the model for one reply, and the lookups between them.

    `store` is called in a thread before and after each lookup. It saves `lookups` and the receipt,
    so that they are known even if the process dies during the reply.
    """

    turn: Turn
    prompt: Prompt
    options: ReplyOptions
    offered: Mapping[str, ModelTool]
    store: Callable[["LookupLoop"], None]
    lookups: list[Lookup] = field(default_factory=list)
    results: list[PromptSection] = field(default_factory=list)
    total: Finished | None = None
    # Set when the model has to answer without further calls.
    must_answer: bool = False
    # Set when the model has sent something.
    has_begun: bool = False
    # The name of the model that failed before this one, and the reason.
    failed_model: Mapping[str, str] | None = None

    def receipt(self) -> dict[str, object]:
        """Return the receipt of the prompt, with the results of the lookups."""
        prompt = replace(self.prompt, sections=(*self.prompt.sections, *self.results))
        failed = {"fallback": dict(self.failed_model)} if self.failed_model else {}
        return prompt.receipt() | failed

    async def stream(
        self, provider: Provider
    ) -> AsyncIterator[Delta | Thought | LookupsChanged | Finished]:
        """Yield the answer piece by piece, reasoning and lookups in between, and then `Finished`.

        The calls in `Finished` are those of the client's tools. No database connection is held
        while the model answers. Raises `ProviderError` if the model fails. Also raises it if the
        answer has more than MAX_MESSAGE_CHARS of text, or one request has more than
        MAX_MESSAGE_CHARS of reasoning or calls.
        """
        messages = list(self.prompt.messages)
        began, has_text, chars = time.monotonic(), False, Counter[type]()
        while True:
            chars[Thought] = 0
            pieces: list[str] = []
            stream: Any = provider.stream(messages, self._round_options())
            async with aclosing(stream) as events:
                async for event in events:
                    self.has_begun = True
                    if isinstance(event, Finished):
                        finished = event
                        continue
                    chars[type(event)] += len(event.text)
                    if chars[type(event)] > MAX_MESSAGE_CHARS:
                        raise ProviderError(TRUNCATED)
                    if isinstance(event, Thought):
                        yield event
                        continue
                    if has_text and not pieces:
                        yield Delta("\n\n")
                    pieces.append(event.text)
                    yield event
            # Some models write only white space before a call.
            has_text = has_text or bool("".join(pieces).strip())
            self.total = _add(self.total, finished)
            calls = self._own_calls(finished.calls)
            if not calls or self.must_answer:
                if not has_text and calls:
                    raise ProviderError(ONLY_CALLS)
                client_calls = tuple(
                    call for call in finished.calls if call.name not in self.offered
                )
                yield replace(self.total, calls=() if calls else client_calls)
                return
            text = "".join(pieces)
            messages.append(
                PromptMessage("assistant", text, calls=finished.calls, native=finished.native)
            )
            is_late = time.monotonic() - began > settings.MODEL_TIMEOUT
            for call in calls:
                if reason := self._refusal(is_late):
                    self.must_answer = True
                    messages.append(PromptMessage("tool", reason, tool_call_id=call.id))
                    continue
                arguments = storable(call.arguments)[:MAX_STORED_CHARS]
                self.lookups.append(Lookup(storable(call.name)[:100], arguments))
                yield LookupsChanged(tuple(self.lookups))
                result = await in_thread(self._run, call)
                messages.append(PromptMessage("tool", result, tool_call_id=call.id))
                yield LookupsChanged(tuple(self.lookups))

    def _round_options(self) -> ReplyOptions:
        """Return the options of the next request."""
        declarations = [tool.declaration for tool in self.offered.values()]
        if not self.must_answer or not declarations:
            return replace(self.options, own_tools=declarations)
        if self.options.openai_params.get("tools"):
            # The client's tools may still be called.
            return self.options
        # Some providers reject a request that has calls in its history but offers no tools.
        params = {**self.options.openai_params, "tool_choice": "none"}
        return replace(self.options, openai_params=params, own_tools=declarations)

    def _own_calls(self, calls: Sequence[ToolCall]) -> Sequence[ToolCall]:
        """Return the calls that Strata runs. If any call is for one of the client's tools, return
        none: the results of all calls must be sent together.

        Raises `ProviderError` if the calls together are longer than MAX_MESSAGE_CHARS.
        """
        if sum(len(call.id + call.name + call.arguments) for call in calls) > MAX_MESSAGE_CHARS:
            raise ProviderError(TRUNCATED)
        if not self.offered:
            return ()
        if not self.options.openai_params.get("tools"):
            return calls
        return calls if all(call.name in self.offered for call in calls) else ()

    def _refusal(self, is_late: bool) -> str:
        """Return why no further call is possible, or an empty text."""
        if len(self.lookups) >= tools.MAX_CALLS:
            return LIMIT_REACHED
        if self._room() < MIN_RESULT_TOKENS:
            return NO_ROOM
        return NO_TIME if is_late else ""

    def _room(self) -> int:
        """Return the tokens that are left for results: what the prompt did not use, and half of
        REPLY_SHARE. The other half stays reserved for the answer.
        """
        size = context_tokens(self.prompt.model) * (1 - REPLY_SHARE / 2)
        used = self.prompt.tokens + tools.count_tokens(self.offered)
        used += sum(section.tokens for section in self.results)
        return int(size) - used

    def _run(self, call: ToolCall) -> str:
        """Run the last lookup, and return the text for the model."""
        self.store(self)
        lookup = self.lookups[-1]
        budget = min(tools.MAX_RESULT_TOKENS, self._room())
        tool = self.offered.get(call.name)
        try:
            if tool is None:
                names = ", ".join(self.offered)
                raise NotFoundError(f"There is no such tool. The tools are: {names}.")
            result = tool.run(self.turn, call.arguments, budget)
            self.lookups[-1] = replace(lookup, result_count=len(result.items))
        except DomainError as error:
            result = ToolResult(f"Error: {error}")
            self.lookups[-1] = replace(lookup, error=storable(str(error))[:MAX_STORED_CHARS])
        name = call.name if tool else "tool"
        message = PromptMessage("tool", result.text, tool_call_id=call.id)
        self.results.append(PromptSection(name, (message,), result.items))
        self.store(self)
        return result.text


def _add(total: Finished | None, finished: Finished) -> Finished:
    """Return `finished`, with the tokens and the cost of the earlier requests added."""
    if total is None:
        return finished
    has_cost = total.cost is not None and finished.cost is not None
    return replace(
        finished,
        input_tokens=total.input_tokens + finished.input_tokens,
        output_tokens=total.output_tokens + finished.output_tokens,
        cost=total.cost + finished.cost if has_cost else None,  # type: ignore[operator]
        unseen=max(total.unseen, finished.unseen),
        cached_tokens=total.cached_tokens + finished.cached_tokens,
    )


@dataclass
class Answer:
    """The requests of one answer. If necessary, the project's second model answers.

    Call `prepare` in a thread, then `stream`. The model calls have the label `kind` in metrics, and
    are booked on `account`. `store` is passed to `loop`.
    """

    turn: Turn
    options: ReplyOptions
    kind: str
    account: CallAccount
    store: Callable[[LookupLoop], None] = lambda loop: None
    loop: LookupLoop = field(init=False)
    # None if the provider is not available. Then `stream` tries again.
    provider: Provider | None = field(init=False, default=None)

    def prepare(self) -> "Answer":
        """Build the prompt. Raises `ProviderError` if the project may not use the model."""
        self.turn.payer = self.account.payer
        providers.require_allowed(self.turn.project, self.turn.model)
        options = session_options(self.turn.session, self.options)
        offered = tools.tools_for(self.turn, options.openai_params)
        prompt = builder.build(self.turn, tools.count_tokens(offered))
        self.loop = LookupLoop(self.turn, prompt, options, offered, self.store)
        self.provider = None
        with suppress(ProviderError):
            self.provider = self._find_provider()
        return self

    def _find_provider(self) -> Provider:
        return providers.get_provider(self.loop.prompt.model, self.kind, self.account)

    async def stream(self) -> AsyncIterator[Delta | Thought | LookupsChanged | Finished]:
        """Yield the events of `LookupLoop.stream`. No database connection is held meanwhile.

        Raises the `ProviderError` of the model that was asked last.
        """
        try:
            async for event in self._events():
                yield event
            return
        except ProviderError as error:
            if not self._may_switch(error):
                raise
            failure = error
        await in_thread(self._switch, failure)
        async for event in self._events():
            yield event

    async def _events(self) -> AsyncIterator[Any]:
        if (provider := self.provider) is None:
            provider = await in_thread(self._find_provider)
        async for event in self.loop.stream(provider):
            yield event

    def _may_switch(self, error: ProviderError) -> bool:
        second = self.turn.project.fallback_model
        if not second or second == self.turn.model or not self.turn.project.allows_model(second):
            return False
        return error.is_outage and not self.loop.has_begun

    def _switch(self, error: ProviderError) -> None:
        """Build the prompt again for the second model, whose context may be smaller, and which may
        accept no images.
        """
        first = self.turn.model
        log.warning("model_switched model=%s reason=%s", first, error.message)
        second = self.turn.project.fallback_model
        message = self.turn.reply_to
        if message is not None and not message._state.adding:
            # It may have been changed or deleted while the first model was asked.
            changing = ["text", "tokens", "version", "deleted_at", "hidden_at"]
            message.refresh_from_db(fields=changing)
            self.turn.session.refresh_from_db(fields=["deleted_at"])
        self.turn = replace(self.turn, chosen_model=second, shown_ids=set(), _shared={})
        self.prepare()
        self.loop.failed_model = {"model": first, "reason": str(error.message)}


def session_options(session: Session, options: ReplyOptions) -> ReplyOptions:
    """Return `options`, completed with the settings of `session`."""
    settings: dict[str, Any] = {}
    if session.temperature is not None:
        settings["temperature"] = session.temperature
    if session.reasoning_effort:
        settings["thinking"] = session.reasoning_effort
    return replace(options, settings={**settings, **options.settings}) if settings else options
