"""Build the memory of each case, and ask it the questions."""

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.evals.ask import Answered, Examiner, SettableClock
from backstory.evals.questions import Case, Question, Turn
from backstory.memory import Memory
from backstory.system.machine import Machine, utc_now
from backstory.values.identity import content_id
from backstory.values.reports import OnCount

if TYPE_CHECKING:
    from backstory.settings import Settings

# How much later questions are asked: people ask when they have forgotten.
_LATER = timedelta(days=21)


def ask_cases(
    cases: Sequence[Case],
    settings: "Settings",
    *,
    keep: Path | None = None,
    on_asked: OnCount | None = None,
) -> list[Answered]:
    """Ask the questions of each case, in a memory of its own.

    The memories are built below ``keep`` and reused, or in a temporary folder.
    """
    total = sum(len(case.questions) for case in cases)
    answers: list[Answered] = []
    for case in cases:
        with _folder_for(case, keep) as folder:
            for answer in _ask_case(case, folder, settings):
                answers.append(answer)
                if on_asked is not None:
                    on_asked(len(answers), total)
    return answers


def ask_memory(
    memory: Memory,
    clock: SettableClock,
    questions: Sequence[Question],
    *,
    on_asked: OnCount | None = None,
) -> list[Answered]:
    """Ask a memory that exists; ``clock`` is the one that it was opened with."""
    examiner = Examiner(memory, clock)
    answers = []
    for question in questions:
        answers.append(examiner.ask(question))
        if on_asked is not None:
            on_asked(len(answers), len(questions))
    return answers


@contextmanager
def _folder_for(case: Case, keep: Path | None) -> Iterator[Path]:
    if keep is not None:
        # A hash, because a case may have a name that no folder can have.
        yield keep / content_id(case.name).rpartition(":")[2]
        return
    with tempfile.TemporaryDirectory(prefix="backstory-eval-") as folder:
        yield Path(folder)


def _ask_case(case: Case, folder: Path, settings: "Settings") -> Iterator[Answered]:
    clock = SettableClock(_always(case.asked_at) if case.asked_at else utc_now)
    # Neither the folders nor the environment of whoever runs this are used.
    home = case.content if isinstance(case.content, Path) else folder / "nobody"
    machine = Machine(sys.platform, home, {})
    with Memory(folder / "backstory", settings, machine, clock=clock) as memory:
        _fill(memory, case.content)
        last = _last_active(memory)
        if case.asked_at is None and last is not None:
            clock.usual = _always(last + _LATER)
        examiner = Examiner(memory, clock)
        for question in case.questions:
            yield examiner.ask(question)


def _fill(memory: Memory, content: tuple[Turn, ...] | Path) -> None:
    if isinstance(content, Path):
        memory.index()
    else:
        for turn in content:
            memory.record(
                turn.session,
                turn.role,
                turn.text,
                sent_at=turn.sent_at,
                message=turn.name,
            )
    memory.embed()


def _last_active(memory: Memory) -> datetime | None:
    latest = next(iter(memory.sessions(limit=1)), None)
    return latest.last_active.at if latest and latest.last_active else None


def _always(at: datetime) -> Callable[[], datetime]:
    return lambda: at
