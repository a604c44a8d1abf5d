"""Leave out the last results of a search if all of them are too much for a model."""

from bisect import bisect_right
from collections.abc import Callable

from backstory.render.format import render_count
from backstory.render.models.hits import cut_answer
from backstory.text.tokens import is_within
from backstory.tools.base import Asker, ToolResult
from backstory.values.structs import replace


def fit_results(
    asker: Asker, count: int, answer: Callable[[int, tuple[str, ...]], ToolResult]
) -> ToolResult:
    """The answer with as many results as fit.

    ``answer`` makes an answer with that many results, and with these notices in
    addition to its own. If not even the first result fits, its end is cut off. The
    limit is far above what a search for ordinary text can return: it matters for token
    counters and scripts in which one character is several tokens.
    """
    whole = answer(count, ())
    memory = asker.memory
    max_tokens = memory.settings.whole("tools.search_tokens")
    if is_within(whole.text, max_tokens, memory.count_tokens):
        return whole

    def fewer(shown: int, *notices: str) -> ToolResult:
        left = render_count(count - shown, "result")
        say_left = (f"{left} left out: the answer would be too long",)
        return answer(shown, (*(say_left if shown < count else ()), *notices))

    def tokens(shown: int) -> int:
        return memory.count_tokens(fewer(shown).text)

    # The number of counts 1, 2, 3, ... that fit is also the largest count that fits.
    fitting = bisect_right(range(1, count), max_tokens, key=tokens)
    if fitting:
        return fewer(fitting)
    first = fewer(min(count, 1), "the end is cut off: the answer would be too long")
    return replace(first, text=cut_answer(first.text, max_tokens, memory.count_tokens))
