"""Call a language model within a daily budget of tokens, and record every call.

A call is recorded before it is made, with its maximum cost. So neither two processes
nor one that is killed can exceed the budget.
"""

import time
from collections.abc import Callable
from datetime import datetime

from backstory.errors import (
    BudgetSpent,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
)
from backstory.providers.llms.base import THOUGHT_TOKENS, Answer, Llm
from backstory.store.base.summaries import SummaryStore
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.text.tokens import most_tokens
from backstory.values.structs import FrozenStruct

_MAX_OUTCOME_CHARS = 300
# What a provider adds to the texts that are sent to it.
_FRAME_TOKENS = 50


class _Usage(FrozenStruct):
    input_tokens: int
    output_tokens: int


_NOTHING_USED = _Usage(0, 0)


class BudgetedLlm(FrozenStruct, kw_only=True):
    """A language model that is called within a daily budget."""

    llm: Llm
    store: SummaryStore
    clock: Callable[[], datetime]
    daily_tokens: int

    @property
    def context_tokens(self) -> int:
        """The maximum number of tokens that one call may read and write together."""
        return self.llm.context_tokens

    def ask(
        self, purpose: str, *, system: str, prompt: str, max_output_tokens: int
    ) -> str:
        """The model's answer, in JSON if it can. Raises ``ProviderError``."""
        most = _Usage(
            most_tokens(system) + most_tokens(prompt) + _FRAME_TOKENS,
            max_output_tokens + THOUGHT_TOKENS,
        )
        call_id = self._reserve(purpose, most)
        started_s = time.monotonic()
        # If it is not known what a call used, it counts as the most it could have used.
        used, outcome = most, "stopped"
        try:
            answer = self.llm.complete(
                system=system,
                prompt=prompt,
                max_output_tokens=max_output_tokens,
                wants_json=True,
            )
            used, outcome = _used_by(answer), "ok"
        except ProviderError as exc:
            outcome = one_line(neutralize(str(exc)), _MAX_OUTCOME_CHARS)
            used = _NOTHING_USED if _is_free(exc) else most
            raise
        finally:
            self.store.settle_call(
                call_id,
                input_tokens=used.input_tokens,
                output_tokens=used.output_tokens,
                took_ms=round((time.monotonic() - started_s) * 1000),
                outcome=outcome,
            )
        return answer.text

    def _reserve(self, purpose: str, most: _Usage) -> int:
        """Record a call before it is made. Raises ``BudgetSpent``."""
        call_id = self.store.reserve_call(
            purpose=purpose,
            model=self.llm.title,
            input_tokens=most.input_tokens,
            output_tokens=most.output_tokens,
            daily_tokens=self.daily_tokens,
            now=self.clock(),
        )
        if call_id is None:
            raise BudgetSpent(
                f"the daily budget of {self.daily_tokens:,} tokens leaves no room for "
                "another call"
            )
        return call_id


def _used_by(answer: Answer) -> _Usage:
    return _Usage(answer.input_tokens, answer.output_tokens)


def _is_free(error: ProviderError) -> bool:
    """Whether a call that failed in this way cannot have cost anything."""
    if isinstance(error, ProviderUnavailable):
        return not error.may_have_worked
    return isinstance(error, ProviderRefused)
