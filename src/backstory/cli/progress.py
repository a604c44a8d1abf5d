"""Progress bars, shown only on a terminal."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.values.reports import OnCount, OnProgress

_MAX_PATH_SHOWN = 40


@contextmanager
def reading() -> Iterator[OnProgress | None]:
    """A progress bar of bytes."""
    rich = _load_bars()
    if rich is None:
        yield None
        return
    columns = (
        rich.BarColumn(),
        rich.TaskProgressColumn(),
        rich.DownloadColumn(),
        rich.TimeRemainingColumn(),
        rich.TextColumn("{task.description}", markup=False),
    )
    console = rich.Console(stderr=True)
    with rich.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)

        def on_progress(done: int, total: int, name: str) -> None:
            shown = one_line(neutralize(Path(name).name), _MAX_PATH_SHOWN)
            bar.update(task, completed=done, total=total, description=shown)

        yield on_progress


@contextmanager
def counting(noun: str) -> Iterator[OnCount | None]:
    """A progress bar of things, named by ``noun``."""
    rich = _load_bars()
    if rich is None:
        yield None
        return
    columns = (rich.BarColumn(), rich.MofNCompleteColumn(), rich.TextColumn(noun))
    console = rich.Console(stderr=True)
    with rich.Progress(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)


# Any: a module that is loaded late has no type.
def _load_bars() -> Any:
    """The module that draws progress bars; None if there is no terminal."""
    if not sys.stderr.isatty():
        return None
    # Slow to import, and only needed on a terminal.
    import rich.progress

    return rich.progress
