"""What a home has, and what to try next: what 'backstory' alone prints."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from textwrap import wrap

from backstory.render.format import render_count, render_local, render_path
from backstory.text.escape import neutralize
from backstory.values.reports import Overview

_INDENT = "  "
_DEFAULT_WIDTH = 80
_MIN_WIDTH = 40
_MIN_TEXT_WIDTH = 20
# What to try, and why.
_Try = tuple[str, str]
_HELP: _Try = ("backstory --help", "all commands")
_DEMO: _Try = ("backstory demo", "a tour, on sample conversations")


def render_overview(
    overview: Overview, *, home: Path, width: int | None, vectors: str
) -> Iterator[str]:
    """A few lines; ``vectors`` says how many texts have them."""
    width = max(_MIN_WIDTH, width or _DEFAULT_WIDTH)
    if overview.sessions:
        yield from _render_contents(overview, home, width, vectors)
        yield from _render_problems(overview, home, width)
        yield from _render_tries("Try:", _tries_with_sessions(overview), width)
    elif overview.problems:
        yield from _fold("The memory cannot be read now.", width)
        yield from _render_problems(overview, home, width)
        check = ("backstory check", "look for damage, and say what to do")
        yield from _render_tries("Try:", [check, _HELP], width)
    else:
        yield from _render_beginning(overview, home, width)


def _render_contents(
    overview: Overview, home: Path, width: int, vectors: str
) -> Iterator[str]:
    agents = render_count(len(overview.sessions_by_host), "agent program")
    yield from _fold(
        f"Backstory remembers {render_count(overview.sessions, 'session')} "
        f"({render_count(overview.messages, 'message')}) of {agents}.",
        width,
    )
    yield ""
    yield from _fold_fact("Agents", _list_hosts(overview), width)
    last = overview.last_read_at
    yield from _fold_fact("Last read", render_local(last) if last else "never", width)
    yield from _fold_fact("Vectors", vectors, width)
    yield from _fold_fact("Notes", _describe_notes(overview), width)
    yield from _fold_fact("Home", render_path(overview.home, home), width)


def _list_hosts(overview: Overview) -> str:
    by_number = sorted(
        overview.sessions_by_host.items(), key=lambda each: (-each[1], each[0])
    )
    return ", ".join(f"{host} {number:,}" for host, number in by_number)


def _describe_notes(overview: Overview) -> str:
    parts = []
    if overview.facts:
        parts.append(f"{render_count(overview.facts, 'fact')} in MEMORY.md")
    if overview.logs:
        parts.append(render_count(overview.logs, "daily log"))
    return ", ".join(parts) or "none yet; 'backstory memory add' adds a fact"


def _tries_with_sessions(overview: Overview) -> list[_Try]:
    return [
        ("backstory search 'flaky test'", "find what was said"),
        ("backstory sessions", "list the conversations"),
        ("backstory stats", "see when you worked on what"),
        ("backstory web", "browse it as a page"),
        ("backstory doctor", "check that your agents are connected"),
        _HELP,
    ]


def _render_problems(overview: Overview, home: Path, width: int) -> Iterator[str]:
    for problem in overview.problems:
        yield from _fold_fact("Problem", render_path(problem, home), width)


def _render_beginning(overview: Overview, home: Path, width: int) -> Iterator[str]:
    yield "Nothing has been read yet."
    yield ""
    if overview.found_hosts:
        hosts = ", ".join(overview.found_hosts)
        yield from _fold(f"Found conversations of {hosts}.", width)
        start = (
            "backstory install",
            "read their conversations, and let them search the memory",
        )
        yield from _render_tries("Start with:", [start], width)
        index = ("backstory index", "only read them, and change no settings")
        yield from _render_tries("Or:", [index, _DEMO, _HELP], width)
        return
    yield from _fold("No agent program has left conversations on this machine.", width)
    yield from _render_tries("Start with:", [_DEMO], width)
    index = ("backstory index --path FILE", "read a file or an export from elsewhere")
    yield from _render_tries("Or:", [index, _HELP], width)


# -- lines ---


def _render_tries(head: str, tries: Sequence[_Try], width: int) -> Iterator[str]:
    yield ""
    yield head
    widest = max(len(command) for command, _ in tries)
    fits = all(widest + 4 + len(why) <= width for _, why in tries)
    for command, why in tries:
        if fits:
            yield f"{_INDENT}{command:<{widest}}  {why}"
        else:
            yield _INDENT + command
            yield from _fold(why, width, indent=_INDENT * 3)


def _fold_fact(name: str, value: str, width: int) -> Iterator[str]:
    first = f"{_INDENT}{name:<9}  "
    for line in _fold(value, width - len(first)):
        yield first + line
        first = " " * len(first)


def _fold(text: str, width: int, *, indent: str = "") -> Iterator[str]:
    safe = neutralize(text).replace("\n", " ")
    # Nothing that a person may want to copy is broken, such as a path.
    lines = wrap(
        safe,
        max(_MIN_TEXT_WIDTH, width - len(indent)),
        break_long_words=False,
        break_on_hyphens=False,
    )
    yield from (indent + line for line in lines or [""])
