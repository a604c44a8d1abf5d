"""Stand beside the function that calls a model: record what goes in and comes out.

It changes nothing but the messages, which it makes fit, and it stops nothing: what it
does not understand is sent as it is, and logged.
"""

import inspect
import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import Any, Protocol

from backstory.errors import BadQuery
from backstory.runs.trim import CountTokens
from backstory.values.history import Role
from backstory.values.runs import Fitted

logger = logging.getLogger(__name__)

# Where the ways of calling a model have the messages, and what says that those are
# only the new ones: the provider keeps the rest.
_MESSAGES = ("messages", "input")
_CONTINUED = ("previous_response_id", "conversation")


class Run(Protocol):
    """What is told what goes in and comes out."""

    def record(self, role: Role, text: object) -> object: ...

    def observe(self, messages: Sequence[object]) -> None: ...

    def fit(
        self, messages: Sequence[object], budget: int, *, count_tokens: CountTokens
    ) -> Fitted: ...

    def hear(self, answer: object) -> None: ...


@dataclass(frozen=True, slots=True)
class Listener:
    """Listens for one run; with a budget, what is sent is made to fit."""

    run: Run
    budget: int | None
    count_tokens: CountTokens

    # Any: whatever the API takes and answers.
    def wrap(self, create: Callable[..., Any]) -> Callable[..., Any]:
        # The clients of some providers hide coroutine functions in ordinary ones.
        if inspect.iscoroutinefunction(inspect.unwrap(create)):

            @wraps(create)
            async def call_async(*args: Any, **given: Any) -> Any:
                # Whoever awaits has loaded it; everybody else does without.
                from asyncio import to_thread

                args, given = await to_thread(self._listen, args, given)
                return await self._hear_later(create(*args, **given))

            return call_async

        @wraps(create)
        def call(*args: Any, **given: Any) -> Any:
            args, given = self._listen(args, given)
            answer = create(*args, **given)
            if inspect.isawaitable(answer):
                return self._hear_later(answer)
            self._hear(answer)
            return answer

        return call

    def _listen(
        self, args: tuple[Any, ...], given: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Record what a model is about to be given, and make it fit."""
        are_new = any(given.get(name) for name in _CONTINUED)
        named = {
            name: self._take_safely(value, are_new) if name in _MESSAGES else value
            for name, value in given.items()
        }
        if args and not any(name in given for name in _MESSAGES):
            args = (self._take_safely(args[0], are_new), *args[1:])
        return args, named

    def _take_safely(self, messages: Any, are_new: bool) -> Any:
        try:
            return self._take(messages, are_new)
        except Exception:
            logger.exception("messages are sent as they are, and not recorded")
            return messages

    def _take(self, messages: Any, are_new: bool) -> Any:
        if isinstance(messages, str):
            self.run.record(Role.USER, messages)
            return messages
        if isinstance(messages, Mapping) or not isinstance(messages, Iterable):
            logger.warning("no messages are recorded: %.60r is no list", messages)
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

    async def _hear_later(self, answer: Any) -> Any:
        heard = await answer
        # As above.
        from asyncio import to_thread

        await to_thread(self._hear, heard)
        return heard

    def _hear(self, answer: Any) -> None:
        try:
            self.run.hear(answer)
        except Exception:
            logger.exception("what a model answered is not recorded")
