"""Reports, problems, sources, status and settings, for people."""

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from backstory.render.format import render_count, render_local, render_path, render_size
from backstory.render.layout import render_columns, to_cell, wrap_to_width
from backstory.render.people.vectors import render_vectors
from backstory.settings import Chosen
from backstory.text.escape import neutralize
from backstory.values.forgetting import Forgetting
from backstory.values.history import Problem
from backstory.values.moving import MoveReport
from backstory.values.reports import (
    CheckedFile,
    IndexReport,
    IndexStatus,
    KeptExcluded,
    LogStatus,
    SalvagedHistory,
    SavedTexts,
    SourceSummary,
    Status,
)

MAX_PROBLEMS_SHOWN = 20


def render_report(
    report: IndexReport,
    *,
    home: Path,
    took_s: float,
    path: Path | None = None,
    index: IndexStatus | None = None,
) -> Iterator[str]:
    """What a reading did; ``path`` is the only place that was read, if one was.

    With the state of the ``index``, also that vectors are missing.
    """
    if report == IndexReport() and path is not None:
        yield f"Found nothing to read in {to_cell(render_path(str(path), home))}."
        return
    if report == IndexReport():
        yield (
            "Found nothing to read; 'backstory index --path' reads any file or folder."
        )
        return
    is_up_to_date = bool(report.unchanged) and not report.read
    if is_up_to_date:
        yield f"Nothing new in {render_count(report.unchanged, 'source')}."
    elif report.read:
        yield _describe_reading(report, took_s)
    others = [
        (0 if is_up_to_date else report.unchanged, "unchanged"),
        (report.excluded, "excluded by your settings"),
        (report.unknown, "of unknown format"),
    ]
    said = ", ".join(f"{number:,} {words}" for number, words in others if number)
    if said:
        yield f"Not read: {said}."
    if index is not None and index.embedded < index.with_meaning:
        yield f"Vectors: {_describe_vectors(index)}."
    yield from render_problems(report.problems, home=home)


def _describe_reading(report: IndexReport, took_s: float) -> str:
    return (
        f"Read {render_count(report.read, 'source')}: "
        f"{render_count(report.new_sessions, 'new session')}, "
        f"{render_count(report.new_messages, 'new message')}"
        + (f", {report.changed_messages:,} changed" if report.changed_messages else "")
        + f" ({render_size(report.read_bytes)} in {took_s:.1f} s)."
    )


def render_indexed(
    index: IndexStatus, problems: Sequence[Problem], *, home: Path
) -> Iterator[str]:
    """What is in an index that was just rebuilt."""
    yield (f"Indexed {render_count(index.units, 'unit')}: messages, titles and notes.")
    yield f"Vectors: {_describe_vectors(index)}."
    yield from render_problems(problems, home=home)


def render_problems(problems: Sequence[Problem], *, home: Path) -> Iterator[str]:
    """What could not be read, at most a screenful."""
    if problems:
        yield f"{render_count(len(problems), 'problem')}:"
        yield from _list_problems(problems, home)


def _list_problems(problems: Sequence[Problem], home: Path) -> Iterator[str]:
    # A file of a strange format has the same problem on every line.
    alike: dict[tuple[str, str], list[Problem]] = {}
    for problem in problems:
        alike.setdefault((problem.path, problem.reason), []).append(problem)
    for same in list(alike.values())[:MAX_PROBLEMS_SHOWN]:
        times = f" ({len(same):,} times)" if len(same) > 1 else ""
        yield "  " + to_cell(render_path(str(same[0]), home)) + times
    left = list(alike.values())[MAX_PROBLEMS_SHOWN:]
    if left:
        more = sum(map(len, left))
        yield f"  … and {more:,} more (--json lists them all)"


def render_checked(files: Sequence[CheckedFile], *, home: Path) -> Iterator[str]:
    """Each file of a home, and what is wrong with it."""
    for file in files:
        path = render_path(str(file.path), home)
        if file.not_checked:
            yield f"{path}: not checked"
            yield "  " + to_cell(render_path(file.not_checked, home))
            continue
        yield f"{path}: {'damaged' if file.problems else 'sound'}"
        for problem in file.problems[:MAX_PROBLEMS_SHOWN]:
            yield "  " + to_cell(render_path(problem, home))
        if (more := len(file.problems) - MAX_PROBLEMS_SHOWN) > 0:
            yield f"  … and {more:,} more (--json lists them all)"


def render_move(report: MoveReport, place: str, *, home: Path) -> Iterator[str]:
    """What was copied to another place, and compared there."""
    shown = to_cell(render_path(place, home))
    if report.was_there:
        yield f"Everything is already in {shown}."
    else:
        yield f"Copied everything to {shown}, and compared it."
    yield (
        f"  {render_count(report.count('sessions'), 'session')}, "
        f"{render_count(report.count('messages'), 'message')}, "
        f"{render_count(report.notes, 'note')}, "
        f"{render_count(report.vectors, 'vector')}"
    )


def render_salvaged(saved: SalvagedHistory, *, home: Path) -> Iterator[str]:
    """What a repair of the history could save."""
    lost = saved.lost_messages
    if saved.is_complete and not saved.mended_texts:
        yield "Repaired history.db; nothing is lost."
    elif saved.is_complete:
        yield "Repaired history.db; all that can be read is in it."
    elif lost:
        count = render_count(sum(lost.values()), "message")
        yield f"Saved what could be read of history.db. {count} could not:"
        yield from (f"  {to_cell(name)}: {number:,}" for name, number in lost.items())
        yield "'backstory index' reads again what the agent programs still have."
    else:
        yield "Saved what could be read of history.db: all messages that it counted."
    if saved.mended_texts:
        yield "What was not valid UTF-8 is now \ufffd:"
        yield from (f"  {to_cell(each)}" for each in saved.mended_texts)
    if saved.unproven_messages:
        count = render_count(saved.unproven_messages, "message")
        yield (
            f"{count} from damaged pages could not be compared with the index, or not "
            "entirely, and may have wrong characters."
        )
    if saved.may_lack_forgotten:
        yield (
            "What you had forgotten may return with the next reading: the list of it "
            "was damaged. Look with 'backstory sessions', and forget it again."
        )
    yield f"The damaged file is kept as {render_path(str(saved.kept_as), home)}."


def render_saved(saved: SavedTexts | None, *, home: Path) -> str:
    """What was saved of messages that only the index knew."""
    if saved is None:
        return "The index has no message that the history lacks."
    path = render_path(str(saved.path), home)
    return f"Saved {render_count(saved.messages, 'message')} to {path}."


def render_sources(
    sources: Sequence[SourceSummary], *, home: Path, width: int | None
) -> Iterator[str]:
    rows = [
        (
            source.host,
            f"{source.found:,}",
            render_size(source.found_bytes),
            "excluded"
            if source.excluded
            else f"{source.indexed:,} of {source.found:,}",
            f"{source.sessions:,}",
            f"{source.messages:,}",
            ", ".join(render_path(place, home) for place in source.places),
        )
        for source in sources
    ]
    heads = ("HOST", "FOUND", "SIZE", "INDEXED", "SESSIONS", "MESSAGES", "WHERE")
    yield from render_columns(
        heads, rows, right={1, 2, 3, 4, 5}, width=width, is_whole=True
    )


def render_status(
    status: Status, *, home: Path, width: int | None = None
) -> Iterator[str]:
    """What is kept; on a terminal of a ``width``, facts that do not fit go on below."""
    hosts = ", ".join(
        f"{host} {number:,}" for host, number in status.sessions_by_host.items()
    )
    last_read_at = status.last_read_at
    facts = (
        ("Home", render_path(status.home, home)),
        *([("Database", status.store)] if status.store else []),
        ("Sessions", f"{status.sessions:,}" + (f" ({hosts})" if hosts else "")),
        ("Messages", f"{status.messages:,}"),
        ("History", render_size(status.size_bytes)),
        ("Index", _index_state(status.index)),
        *_vector_state(status.index),
        ("Logs", _log_state(status.logs)),
        ("Last read", render_local(last_read_at) if last_read_at else "never"),
        *_last_forgetting(status.last_forgetting),
        ("Problems", f"{len(status.problems):,}" if status.problems else "none"),
    )
    for name, value in facts:
        label, text = f"{name + ':':<11}", to_cell(value)
        pieces = [text] if width is None else wrap_to_width(text, width - len(label))
        for piece in pieces:
            yield label + piece
            label = " " * len(label)
    yield from render_excluded(status.excluded)
    yield from _list_problems(status.problems, home)


def _last_forgetting(last: Forgetting | None) -> Iterator[tuple[str, str]]:
    if last is not None:
        messages = render_count(last.messages, "message")
        facts = f", {render_count(last.facts, 'fact')}" if last.facts else ""
        at = render_local(last.forgotten_at)
        yield "Forgotten", f"last {at}: {messages}{facts} ({last.reason})"


def render_excluded(excluded: Sequence[KeptExcluded]) -> Iterator[str]:
    """What is kept though the settings exclude it, and how to delete it."""
    for each in excluded:
        sessions = render_count(each.sessions, "session")
        messages = render_count(each.messages, "message")
        yield neutralize(
            f"{each.name} is excluded. Kept from before: {sessions} ({messages}); "
            f"to delete: '{each.command}'"
        )


def _index_state(index: IndexStatus) -> str:
    if index.problem and not index.units:
        return index.problem
    parts = [render_count(index.units, "unit"), render_size(index.size_bytes)]
    parts += ["not up to date"] * index.is_behind
    return ", ".join(parts) + (f" ({index.problem})" if index.problem else "")


def _vector_state(index: IndexStatus) -> Iterator[tuple[str, str]]:
    if index.units:
        yield "Vectors", _describe_vectors(index)


def _describe_vectors(index: IndexStatus) -> str:
    return render_vectors(
        index.embedded,
        index.with_meaning,
        embedder=index.embedder,
        in_background=index.in_background,
    )


def _log_state(logs: LogStatus) -> str:
    if not logs.is_enabled:
        return "switched off"
    parts = [logs.model or "no language model"]
    if logs.due:
        parts.append(f"{render_count(logs.due, 'session')} to be summarized")
    if logs.set_aside:
        parts.append(f"{render_count(logs.set_aside, 'part')} set aside")
    if logs.calls_today:
        tokens = f"{logs.tokens_today:,} of {logs.daily_tokens:,} tokens"
        parts.append(f"{render_count(logs.calls_today, 'call')} and {tokens} today")
    return ", ".join(parts) + (f" ({logs.problem})" if logs.problem else "")


def render_settings(
    settings: Iterable[Chosen], *, home: Path, width: int | None
) -> Iterator[str]:
    rows = [
        (
            chosen.setting.name,
            render_value(chosen.shown) or "(empty)",
            render_path(chosen.origin, home),
            chosen.setting.summary,
        )
        for chosen in settings
    ]
    yield from render_columns(
        ("NAME", "VALUE", "FROM", "WHAT IT DOES"), rows, width=width, is_whole=True
    )


def render_value(value: object) -> str:
    """A value of a setting."""
    match value:
        case tuple():
            return ", ".join(value) or "(none)"
        case bool():
            return str(value).lower()
        case _:
            return str(value)
