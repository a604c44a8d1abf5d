"""Progress bars, shown only on a terminal."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backstory.render.format import render_count
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.values.reports import OnCount, OnProgress, ReadingProgress

_MAX_NAME_CHARS = 30
# Below it there is no room for a bar; above it, there is some for the file's name.
_BAR_FROM_WIDTH = 70
_NAME_FROM_WIDTH = 120
_BAR_WIDTH = 20


class Bars:
    """The bars of one command, one at a time: the next takes the place of the last."""

    # Any: a module that is loaded late has no type, nor has what it draws.
    def __init__(self, drawn: Any) -> None:
        self._drawn = drawn
        self._task: Any = None

    def reading(self) -> OnProgress | None:
        """A bar for reading: what is new, how fast, and what is left."""
        if self._drawn is None:
            return None
        started = time.monotonic()
        task = self._add()

        def on_progress(progress: ReadingProgress) -> None:
            words = self._describe(progress, time.monotonic() - started)
            total = progress.total_bytes
            self._show(task, progress.done_bytes, total, words)

        return on_progress

    def _describe(self, progress: ReadingProgress, took_s: float) -> str:
        rate = round(progress.new_messages / max(took_s, 0.001))
        words = (
            f"{render_count(progress.new_sessions, 'session')}, "
            f"{render_count(progress.new_messages, 'message')} ({rate:,}/s), "
        )
        width = self._drawn.console.width
        if width < _BAR_FROM_WIDTH:
            return f"{words}{progress.sources_left:,} left"
        words += f"{render_count(progress.sources_left, 'source')} left"
        if width < _NAME_FROM_WIDTH:
            return words
        return f"{words}  {_shorten(progress.name)}"

    def counting(self, noun: str) -> OnCount | None:
        """A bar of things, named by ``noun``."""
        if self._drawn is None:
            return None
        task = self._add()
        return lambda done, total: self._show(
            task, done, total, f"{done:,} of {total:,} {noun}"
        )

    # Any: as above.
    def _add(self) -> Any:
        return self._drawn.add_task("", total=None, visible=False)

    def _show(self, task: Any, done: int, total: int, words: str) -> None:
        if task != self._task:
            if self._task is not None:
                self._drawn.update(self._task, visible=False)
            self._task = task
            # The time until now was taken by something else.
            self._drawn.reset(task)
        self._drawn.update(
            task, completed=done, total=total, description=words, visible=True
        )


@contextmanager
def bars() -> Iterator[Bars]:
    """Progress bars while a command works; none if there is no terminal."""
    if not sys.stderr.isatty():
        yield Bars(None)
        return
    # Slow to import, and only needed on a terminal.
    import rich.progress as rich
    from rich.console import Console

    console = Console(stderr=True)
    has_bar = console.width >= _BAR_FROM_WIDTH
    columns = (
        *([rich.BarColumn(_BAR_WIDTH)] if has_bar else []),
        rich.TaskProgressColumn(),
        rich.TextColumn("{task.description}", markup=False),
        rich.TimeRemainingColumn(compact=True),
    )
    with rich.Progress(*columns, console=console, transient=True) as drawn:
        yield Bars(drawn)


def _shorten(name: str) -> str:
    return one_line(neutralize(Path(name).name), _MAX_NAME_CHARS)
