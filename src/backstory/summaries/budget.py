"""Call a model under the day's budget, and write every call down.

A call is written down before it is made, with the most it can cost, so that neither
two processes nor one that is killed can spend more than the day allows.
"""

import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime

from backstory.errors import ProviderError, ProviderRefused, ProviderUnavailable
from backstory.providers.llms.base import THOUGHT_TOKENS, Llm
from backstory.store.base.summaries import Journal
from backstory.text.cut import one_line
from backstory.text.escape import neutralise
from backstory.text.tokens import most_tokens

_MAX_OUTCOME_CHARS = 300
# What a provider adds around the texts that it is sent.
_FRAME_TOKENS = 50


class BudgetSpent(ProviderRefused):
    """The day's tokens are used up; nothing was sent."""

    hint = "it goes on tomorrow; llm.daily_tokens sets how many there are"


@dataclass(frozen=True, slots=True)
class ModelCalls:
    """A model that is called under a budget."""

    llm: Llm
    journal: Journal
    clock: Callable[[], datetime]
    daily_tokens: int

    def ask(
        self, purpose: str, *, system: str, prompt: str, max_output_tokens: int
    ) -> str:
        """The model's answer, in JSON if it can. Raises ``ProviderError``."""
        most_in = most_tokens(system) + most_tokens(prompt) + _FRAME_TOKENS
        most_out = max_output_tokens + THOUGHT_TOKENS
        call_id = self.journal.reserve_call(
            purpose=purpose,
            model=self.llm.title,
            input_tokens=most_in,
            output_tokens=most_out,
            daily_tokens=self.daily_tokens,
            now=self.clock(),
        )
        if call_id is None:
            raise BudgetSpent(
                f"no more than {self.daily_tokens:,} tokens a day may be used"
            )
        began = time.monotonic()
        # Where it is not known what a call used, it counts as the most it could.
        used = (most_in, most_out)
        outcome = "stopped"
        try:
            answer = self.llm.complete(
                system=system,
                prompt=prompt,
                max_output_tokens=max_output_tokens,
                wants_json=True,
            )
            used = (answer.input_tokens, answer.output_tokens)
            outcome = "ok"
        except ProviderError as exc:
            outcome = one_line(neutralise(str(exc)), _MAX_OUTCOME_CHARS)
            if isinstance(exc, ProviderRefused) or (
                isinstance(exc, ProviderUnavailable) and not exc.may_have_worked
            ):
                used = (0, 0)
            raise
        finally:
            self.journal.settle_call(
                call_id,
                input_tokens=used[0],
                output_tokens=used[1],
                took_ms=round((time.monotonic() - began) * 1000),
                outcome=outcome,
            )
        return answer.text
