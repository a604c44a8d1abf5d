"""Wrap the function that calls a model: record what goes in and what comes out.

Only the messages are changed, to make them fit. The wrapper never prevents a call:
messages that it does not understand are sent as they are, which is logged.
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import wraps
from typing import Any, Protocol

from backstory.errors import BadQuery
from backstory.text.tokens import CountTokens
from backstory.values.history import Role
from backstory.values.runs import Fitted
from backstory.values.structs import FrozenStruct

logger = logging.getLogger(__name__)

# The arguments in which APIs take the messages, and those which say that the provider
# keeps the conversation, so that only new messages are sent.
_MESSAGES = ("messages", "input")
_CONTINUED = ("previous_response_id", "conversation")


class Run(Protocol):
    """The run in which model calls are recorded."""

    def record(self, role: Role, text: object) -> object: ...

    def observe(self, messages: Sequence[object]) -> None: ...

    def fit(
        self,
        messages: Sequence[object],
        budget: int,
        *,
        count_tokens: CountTokens | None,
    ) -> Fitted: ...

    def hear(self, answer: object) -> None: ...


class CallWrapper(FrozenStruct):
    """Records model calls in a run; with a budget, it also makes the messages fit."""

    run: Run
    budget: int | None
    count_tokens: CountTokens | None

    # Any: whatever the API takes and returns.
    def wrap(self, create: Callable[..., Any]) -> Callable[..., Any]:
        # Some providers' clients wrap coroutine functions in ordinary ones.
        if inspect.iscoroutinefunction(inspect.unwrap(create)):

            @wraps(create)
            async def call_async(*args: Any, **named: Any) -> Any:
                # An asynchronous program has already loaded it; others never need it.
                from asyncio import to_thread

                args, named = await to_thread(self._prepare, args, named)
                return await self._record_awaited(create(*args, **named))

            return call_async

        @wraps(create)
        def call(*args: Any, **named: Any) -> Any:
            args, named = self._prepare(args, named)
            answer = create(*args, **named)
            if inspect.isawaitable(answer):
                return self._record_awaited(answer)
            self._record_answer(answer)
            return answer

        return call

    # -- what goes in ---

    def _prepare(
        self, args: tuple[Any, ...], named: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Record the messages among a call's arguments, and make them fit."""
        are_new = any(named.get(name) for name in _CONTINUED)
        prepared = {
            name: self._prepare_safely(value, are_new) if name in _MESSAGES else value
            for name, value in named.items()
        }
        if args and not any(name in named for name in _MESSAGES):
            args = (self._prepare_safely(args[0], are_new), *args[1:])
        return args, prepared

    def _prepare_safely(self, messages: Any, are_new: bool) -> Any:
        try:
            return self._prepare_messages(messages, are_new)
        except Exception:
            logger.exception("messages are sent as they are, and not recorded")
            return messages

    def _prepare_messages(self, messages: Any, are_new: bool) -> Any:
        if isinstance(messages, str):
            self.run.record(Role.USER, messages)
            return messages
        if isinstance(messages, Mapping) or not isinstance(messages, Iterable):
            logger.warning("no messages are recorded: %.60r is not a list", messages)
            return messages
        listed = messages if isinstance(messages, list) else list(messages)
        if are_new:
            self.run.hear(listed)
        elif self.budget is None:
            try:
                self.run.observe(listed)
            except BadQuery as exc:
                logger.warning("a message is not recorded: %s", exc)
        return listed if self.budget is None else self._fit(listed, self.budget)

    def _fit(self, messages: list[object], budget: int) -> list[object]:
        fitted = self.run.fit(messages, budget, count_tokens=self.count_tokens)
        for notice in fitted.notices:
            logger.warning("%s", notice)
        return list(fitted.messages)

    # -- what comes out ---

    async def _record_awaited(self, awaitable: Any) -> Any:
        answer = await awaitable
        # An asynchronous program has already loaded it, as above.
        from asyncio import to_thread

        await to_thread(self._record_answer, answer)
        return answer

    def _record_answer(self, answer: Any) -> None:
        try:
            self.run.hear(answer)
        except Exception:
            logger.exception("the model's answer is not recorded")
