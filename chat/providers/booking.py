"""Bookings of model calls: who pays for a call, and its tokens, price and outcome."""

import asyncio
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from copy import copy
from dataclasses import dataclass, field
from uuid import UUID

from django.utils import timezone

from chat.models import ANSWERED, Call, CallKind, Message
from chat.prompt.types import PromptMessage
from chat.providers import limits, prices
from chat.providers.base import Finished, ProviderError
from chat.providers.limits import Payer
from projects.core import token_counting
from projects.core.errors import INTERNAL_FAILURE
from projects.models import SpendingLimit

CANCELLED = "cancelled"
INTERRUPTED = "interrupted"
# The columns that change after a call was inserted.
RESULTS = ("duration_ms", "input_tokens", "cached_tokens", "output_tokens", "cost", "outcome")


@dataclass
class CallAccount:
    """The calls of one piece of work, such as a reply with its lookups, and who pays for them.

    `MeasuredProvider` adds the calls. The code that creates the account must call `settle` at the
    end, which stores them. With `in_advance`, each call is also inserted before its request, so
    that it leaves a row without an outcome if the process dies.
    """

    project_id: UUID
    kind: CallKind | str
    payer: Payer = Payer()
    session_id: UUID | None = None
    message_id: UUID | None = None
    in_advance: bool = False
    calls: list[Call] = field(default_factory=list)
    # The limits that apply to the calls. If there are any, use `reserve` instead of `begin`.
    limits: list[SpendingLimit] = field(default_factory=list)

    def find_limits(self) -> None:
        """Read the limits that apply to the calls. If the server has no limits, usually takes no
        query.
        """
        self.limits = limits.limits_for(self.project_id, self.payer) if limits.any_limits() else []

    def begin(self, model: str) -> "Booking":
        """Add a call of `model` that begins now. With `in_advance` it writes to the database, so
        call it in a thread.
        """
        call = self._new_call(model)
        if self.in_advance:
            call.save(force_insert=True)
        self.calls.append(call)
        return Booking(call)

    def reserve(
        self, model: str, prompt: Sequence[PromptMessage], max_output: int, tool_tokens: int = 0
    ) -> "Booking":
        """Add a call of `model` that begins now, and reserve its tokens. Raises
        `SpendingLimitError`.

        It writes to the database, so call it in a thread.
        """
        # Calls that have ended do not need their reservation any more.
        ended = [call for call in self.calls if call.outcome]
        settle(ended)
        self.calls[:] = [call for call in self.calls if not call.outcome]
        call = self._new_call(model)
        tokens = sum(message.tokens for message in prompt) + tool_tokens
        output = limits.reserve(call, self.limits, self.payer, tokens, max_output)
        self.calls.append(call)
        return Booking(call, output)

    def _new_call(self, model: str) -> Call:
        return Call(
            project_id=self.project_id,
            user_id=self.payer.user_id,
            token_id=self.payer.token_id,
            kind=self.kind,
            model=model[:200],
            session_id=self.session_id,
            message_id=self.message_id,
            started_at=timezone.now(),
        )

    def settle(self) -> None:
        """Store the calls so far. Calling it again changes nothing."""
        settle(self.calls)
        self.calls.clear()


_embedding_account: ContextVar[CallAccount | None] = ContextVar("embedding_account", default=None)


@contextmanager
def embeddings_of(project_id: UUID, payer: Payer = Payer()) -> Iterator[None]:
    """Within the block, charge the embeddings of a remote model to the project and to `payer`."""
    account = CallAccount(project_id, CallKind.EMBEDDING, payer)
    token = _embedding_account.set(account)
    try:
        yield
    finally:
        _embedding_account.reset(token)
        account.settle()


def begin_embedding(model: str) -> "Booking | None":
    """Return the booking of a call of `model`; None outside of `embeddings_of`. It may read the
    database.
    """
    account = _embedding_account.get()
    if account is None:
        return None
    prices.load()
    return account.begin(model)


def settle(calls: Iterable[Call]) -> None:
    """Insert the calls. Update those that were inserted before their request.

    It can be repeated if the transaction failed or if its commit was not confirmed.
    """
    inserted = [call for call in calls if not call._state.adding]
    for call in inserted:
        rows = Call.objects.filter(project=call.project_id, pk=call.pk)
        rows.update(**{name: getattr(call, name) for name in RESULTS})
    if new := [call for call in calls if call._state.adding]:
        # Copies, because the calls themselves must still count as new after a rollback.
        Call.objects.bulk_create([copy(call) for call in new], ignore_conflicts=True)


def clear_payer(calls: Iterable[Call]) -> None:
    """Book the calls on nobody, because their user was deleted."""
    for call in calls:
        call.user_id = None


@dataclass
class Booking:
    """A call in progress, which `succeed` or `fail` ends. `max_output` is the number of tokens
    reserved for the answer.
    """

    call: Call
    max_output: int | None = None
    _began: float = field(default_factory=time.monotonic)

    def succeed(self, finished: Finished) -> None:
        self._end(ANSWERED)
        self._count(finished)

    def fail(self, error: BaseException, prompt: Sequence[PromptMessage], text: str = "") -> None:
        """Book a call that ended with `error`. `text` is the part of the answer that was received.

        If the provider reported no usage, Strata counts the tokens of calls that have text or were
        cancelled. Other calls have none.
        """
        if isinstance(error, ProviderError):
            self._end(str(error))
        elif isinstance(error, asyncio.CancelledError | GeneratorExit):
            self._end(CANCELLED)
        else:
            self._end(f"{INTERNAL_FAILURE}: {type(error).__name__}.")
        finished = getattr(error, "finished", None)
        self.call.input_tokens = 0
        if finished is not None:
            self._count(finished)
        elif text or self.call.outcome == CANCELLED:
            self.call.input_tokens = sum(message.tokens for message in prompt)
            self.call.output_tokens = token_counting.count(text)
            self.call.cost = prices.cost(
                self.call.model, self.call.input_tokens, 0, self.call.output_tokens
            )

    def _end(self, outcome: str) -> None:
        self.call.duration_ms = round((time.monotonic() - self._began) * 1000)
        self.call.outcome = outcome[:200]

    def _count(self, finished: Finished) -> None:
        self.call.input_tokens = finished.input_tokens
        self.call.cached_tokens = min(finished.cached_tokens, finished.input_tokens)
        self.call.output_tokens = finished.output_tokens
        self.call.cost = finished.cost


def payer_of(reply: Message) -> Payer:
    """Return the payer of the first call of `reply`. If none is stored, it is the author of the
    message.
    """
    # With the time, PostgreSQL can use an index.
    calls = Call.objects.filter(project=reply.project_id, started_at__gte=reply.created_at)
    row = calls.filter(message_id=reply.pk).order_by("started_at").values_list("user", "token_id")
    if found := row.first():
        return Payer(*found)
    return Payer(reply.parent.author_id if reply.parent else None)


def lost_calls(reply: Message) -> list[Call]:
    """Return the calls of a reply whose process has died. The stored text gives the output tokens.

    These are the calls that were inserted in advance. If there are none, a reply with text gets a
    new call with the id of the reply. A process that is alive after all finds it by this id, and
    replaces it.
    """
    prices.load()
    reserved = Call.objects.filter(project=reply.project_id, message_id=reply.pk, outcome="")
    if calls := list(reserved.order_by("started_at")):
        for call in calls:
            call.outcome = INTERRUPTED
        calls[-1].output_tokens = token_counting.count(reply.text)
        for call in calls:
            call.cost = prices.cost(call.model, call.input_tokens, 0, call.output_tokens)
        return calls
    if not reply.text:
        return []
    model = reply.model or reply.session.project.chat_model_name
    tokens = token_counting.count(reply.text)
    return [
        Call(
            pk=reply.pk,
            project_id=reply.project_id,
            user_id=reply.parent.author_id if reply.parent else None,
            kind=CallKind.REPLY,
            model=model[:200],
            session_id=reply.session_id,
            message_id=reply.pk,
            started_at=reply.created_at,
            output_tokens=tokens,
            cost=prices.cost(model, 0, 0, tokens),
            outcome=INTERRUPTED,
        )
    ]
