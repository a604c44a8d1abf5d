"""Ask a model until its answer can be used, but only a few times."""

import logging
from collections.abc import Callable
from typing import TypeVar

from backstory.errors import UnusableAnswer
from backstory.summaries.answer import BadAnswer
from backstory.summaries.budget import BudgetedLlm

logger = logging.getLogger(__name__)

TRIES = 3
# Added to the prompt after an answer that could not be used.
RETRY = "\n\nYour last answer was not such a JSON object. Answer with it alone."

Parsed = TypeVar("Parsed")


def ask_until_usable(
    llm: BudgetedLlm,
    purpose: str,
    *,
    system: str,
    prompt: str,
    max_output_tokens: int,
    parse: Callable[[str], Parsed],
) -> Parsed:
    """Return what ``parse`` makes of the first answer that it accepts.

    Raises the ``BadAnswer`` or ``UnusableAnswer`` of the last attempt.
    """
    for attempt in range(TRIES):
        try:
            answer = llm.ask(
                purpose,
                system=system,
                prompt=prompt + RETRY * (attempt > 0),
                max_output_tokens=max_output_tokens,
            )
            return parse(answer)
        except (BadAnswer, UnusableAnswer) as exc:
            if attempt == TRIES - 1:
                raise
            logger.info("the model is asked again: %s", exc)
    raise AssertionError("there is at least one try")
