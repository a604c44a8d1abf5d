"""The sets of questions that can be measured: one module and one row each."""

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from backstory.errors import BadQuery, SourceUnreadable, UnknownName, nearest_hint
from backstory.evals.questions import Case, add_strays
from backstory.evals.sets.beam import read_beam
from backstory.evals.sets.labelled import read_labelled
from backstory.evals.sets.locomo import read_locomo
from backstory.evals.sets.longmemeval import read_longmemeval
from backstory.evals.sets.memorybank import read_memorybank
from backstory.values.structs import FrozenStruct


class EvalSet(FrozenStruct):
    """A set of questions: how its files are found, and what is in them.

    ``files`` is a pattern for its files, by which its folder is recognized.
    ``has_strays``: each memory is also asked questions about another one.
    """

    name: str
    summary: str
    files: str
    read: Callable[[Sequence[Path]], Iterator[Case]]
    has_strays: bool = True


SETS = (
    EvalSet(
        "beam",
        "BEAM: long chats with an assistant",
        "*K/*/chat.json",
        read_beam,
    ),
    EvalSet(
        "labelled",
        "transcripts of agents with labelled questions and prompts",
        "labels.jsonl",
        read_labelled,
        has_strays=False,
    ),
    EvalSet(
        "locomo",
        "LoCoMo: chats of two people over many months",
        "locomo*.json",
        read_locomo,
    ),
    EvalSet(
        "longmemeval",
        "LongMemEval: questions, each with sessions of its own",
        "longmemeval*.json",
        read_longmemeval,
    ),
    EvalSet(
        "memorybank",
        "MemoryBank: people and a companion, in Chinese and English",
        "memory_bank_*.json",
        read_memorybank,
    ),
)

# Errors that reading a file of another shape may raise.
_WRONG_SHAPE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)


def get_set(name: str | None, data: Path) -> EvalSet:
    """The set of that name; without a name, the one that ``data`` holds.

    Raises ``UnknownName``, or ``BadQuery`` if that is ambiguous.
    """
    names = [row.name for row in SETS]
    if name is not None:
        if name in names:
            return SETS[names.index(name)]
        raise UnknownName(
            f"no set of questions is called '{name}'", hint=nearest_hint(name, names)
        )
    found = [row for row in SETS if _find_files(row, data)]
    if len(found) == 1:
        return found[0]
    listed = ", ".join(row.name for row in found or SETS)
    raise BadQuery(
        f"{data}: " + ("several sets are here" if found else "no known set is here"),
        hint=f"name the set: {listed}",
    )


def read_set(row: EvalSet, data: Path) -> list[Case]:
    """All cases of a set, from the file ``data`` or from all its files in that folder.

    Raises ``SourceUnreadable``.
    """
    files = [data] if data.is_file() else _find_files(row, data)
    if not files:
        raise SourceUnreadable(
            f"{data}: it has no {row.files}, the files of {row.name}",
            hint="download the set, and give the folder that holds it",
        )
    try:
        cases = list(row.read(files))
    except OSError as exc:
        raise SourceUnreadable(f"{exc.filename or data}: {exc.strerror}") from exc
    except _WRONG_SHAPE as exc:
        reason = f"{type(exc).__name__}: {exc}"
        raise SourceUnreadable(
            f"{data}: not in the format of {row.name} ({reason})"
        ) from exc
    if not any(case.questions for case in cases):
        raise SourceUnreadable(f"{data}: it has no question of {row.name}")
    return add_strays(cases) if row.has_strays else cases


def _find_files(row: EvalSet, data: Path) -> list[Path]:
    """The files of a set in this folder, or in a subfolder named after the set."""
    if data.is_file():
        return [data] if data.match(row.files) else []
    for folder in (data, data / row.name):
        # Not a pipe, for which reading would wait.
        files = [each for each in sorted(folder.glob(row.files)) if each.is_file()]
        if files:
            return files
    return []
