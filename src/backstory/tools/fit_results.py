"""Leave out the last results of a search if all of them are too much for a model."""

from bisect import bisect_right
from collections.abc import Callable

from backstory.render.format import render_count
from backstory.tools.base import Asker, ToolResult


def fit_results(
    asker: Asker, count: int, answer: Callable[[int, tuple[str, ...]], ToolResult]
) -> ToolResult:
    """The answer with as many of its results as may be, but one at least.

    ``answer`` makes it with that many results and these notices besides its own. The
    limit is far above what a search for ordinary text can return. It is for counters
    and scripts in which a character is several tokens.
    """
    whole = answer(count, ())
    memory = asker.memory
    max_tokens = memory.settings.whole("tools.search_tokens")
    if count < 2 or memory.count_tokens(whole.text) <= max_tokens:
        return whole

    def fewer(shown: int) -> ToolResult:
        left = render_count(count - shown, "result")
        return answer(shown, (f"{left} left out: the answer would be too long",))

    def tokens(shown: int) -> int:
        return memory.count_tokens(fewer(shown).text)

    # How many of 1, 2, 3, ... results fit is how many results fit.
    fitting = bisect_right(range(1, count), max_tokens, key=tokens)
    return fewer(max(fitting, 1))
