"""A list of sessions, for people. All text is made safe to print.

Where a terminal is too narrow for columns, each session takes two lines: its title is
never pushed out of sight by what is before it.
"""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from backstory.render.format import render_count, render_path, render_time
from backstory.render.layout import (
    cell_len,
    cut_to_width,
    render_columns,
    to_cell,
    wrap_facts,
)
from backstory.render.people.hits import folder_name
from backstory.search.subagents import ListedConversation
from backstory.text.cut import one_line
from backstory.values.history import Session
from backstory.values.structs import FrozenStruct

# Ids of most sessions are shorter; that of a subagent may begin with its parent's.
_MAX_ID_WIDTH = 20
_MIN_FOLDER_WIDTH = 12
_MAX_FOLDER_WIDTH = 60
# So much of a folder's name is shown where room is short.
_NAME_WIDTH = 24
_MIN_TITLE_WIDTH = 36
# With less room beside a long id, a title stands below it.
_MIN_TITLE_WIDTH_BESIDE_ID = 20
_MAX_TITLE_CHARS = 200
_INDENT = "  "
_GAP = "  "
_BETWEEN = " · "
_SUBAGENT = "subagent: "
_NO_TITLE = "(no title)"


class _Row(FrozenStruct):
    """What is shown of one session."""

    session: Session
    time: str
    name: str
    folder: str
    title: str
    subagents: int = 0
    is_nested: bool = False

    @property
    def messages(self) -> int:
        return self.session.message_count


def render_sessions(
    listed: Sequence[ListedConversation],
    *,
    names: Mapping[int, str],
    resumes: Mapping[int, str] | None = None,
    home: Path,
    width: int | None,
    subagents: bool = False,
) -> Iterator[str]:
    """One row per session; ``names`` are their short ids.

    ``resumes`` are the commands that continue them, each shown below its session. With
    ``subagents``, they follow their parent; otherwise, its row says how many it has.
    """
    rows = list(_iter_rows(listed, names, home, subagents=subagents))
    if width is not None and _columns_width(rows) > width:
        shown = (list(_stack(row, width)) for row in rows)
    else:
        head, *lines = _render_table(rows, width)
        yield head
        shown = ([line] for line in lines)
    for row, lines in zip(rows, shown, strict=True):
        yield from lines
        # A subagent is continued by its parent.
        resume = (resumes or {}).get(row.session.session_id)
        if resume and not row.is_nested:
            yield _INDENT + resume


def _iter_rows(
    listed: Sequence[ListedConversation],
    names: Mapping[int, str],
    home: Path,
    *,
    subagents: bool,
) -> Iterator[_Row]:
    def to_row(session: Session, hidden: int = 0, *, is_nested: bool = False) -> _Row:
        title = one_line(to_cell(session.title), _MAX_TITLE_CHARS) or _NO_TITLE
        return _Row(
            session,
            render_time(session.last_active),
            to_cell(names.get(session.session_id, session.native_id)),
            to_cell(render_path(session.project or "", home)),
            # One whose parent is not listed is still no conversation with a person.
            _SUBAGENT + title if session.parent_id else title,
            hidden,
            is_nested,
        )

    for each in listed:
        yield to_row(each.session, 0 if subagents else len(each.subagents))
        for session in each.subagents if subagents else ():
            yield to_row(session, is_nested=True)


# -- columns --------------------------------------------------------------------------


def _to_table(rows: Sequence[_Row]) -> tuple[list[str], list[list[str]]]:
    """The heads and cells before project and title."""
    has_subagents = any(row.subagents for row in rows)
    heads = ["LAST ACTIVE", "HOST", "ID", "MESSAGES"]
    cells = [
        [row.time, to_cell(row.session.host), row.name, f"{row.messages:,}"]
        + ([f"{row.subagents:,}" if row.subagents else ""] if has_subagents else [])
        for row in rows
    ]
    return heads + (["SUBAGENTS"] if has_subagents else []), cells


def _columns_width(rows: Sequence[_Row]) -> int:
    """How wide a terminal must be for the title to have room in a table."""
    heads, cells = _to_table(rows)
    before = sum(
        max(map(cell_len, column)) + len(_GAP)
        for column in zip(heads, *cells, strict=True)
    )
    widest = max((cell_len(row.folder) for row in rows), default=0)
    folder = min(max(widest, len("PROJECT")), _MIN_FOLDER_WIDTH)
    return before + folder + len(_GAP) + _MIN_TITLE_WIDTH


def _render_table(rows: Sequence[_Row], width: int | None) -> Iterator[str]:
    # On a terminal, the title needs room; of a long path, the end says most.
    folder_width = None
    if width is not None:
        folder_width = min(max(_MIN_FOLDER_WIDTH, width // 6), _MAX_FOLDER_WIDTH)
    heads, cells = _to_table(rows)
    table = [
        [
            *before,
            _ending(row.folder, folder_width),
            (_INDENT if row.is_nested else "") + row.title,
        ]
        for row, before in zip(rows, cells, strict=True)
    ]
    return render_columns(
        [*heads, "PROJECT", "TITLE"],
        table,
        right=set(range(3, len(heads))),
        width=width,
        # One long id or path does not push all titles away from what they belong to.
        most={heads.index("ID"): _MAX_ID_WIDTH, len(heads): _MAX_FOLDER_WIDTH},
    )


def _ending(text: str, width: int | None) -> str:
    """The end of a text that is too long, after an ellipsis."""
    if width is None or cell_len(text) <= width:
        return text
    kept = text[-width:]
    while cell_len(kept) > width - 1:
        kept = kept[1:]
    return f"…{kept}"


# -- two lines ------------------------------------------------------------------------


def _stack(row: _Row, width: int) -> Iterator[str]:
    """Id and title, and below them the rest; a long id has a line of its own."""
    indent = _INDENT if row.is_nested else ""
    name = f"{indent}{row.name}"
    room = width - cell_len(name + _GAP)
    if room >= min(cell_len(row.title), _MIN_TITLE_WIDTH_BESIDE_ID):
        yield name + _GAP + cut_to_width(row.title, room)
    else:
        yield name
        yield cut_to_width(indent + _INDENT + row.title, width)
    facts = [row.time, to_cell(row.session.host), render_count(row.messages, "message")]
    if row.subagents:
        facts.append(render_count(row.subagents, "subagent"))
    facts = list(filter(None, facts))
    below = indent + _INDENT
    if row.folder:
        room = width - len(below) - cell_len(_BETWEEN.join(["", *facts]))
        facts.insert(0, _fit_folder(row.folder, room))
    for line in wrap_facts(facts, width - len(below), indent=""):
        yield below + line


def _fit_folder(folder: str, width: int) -> str:
    """The path if there is room, else the folder's name, which says most."""
    if cell_len(folder) <= width:
        return folder
    return _ending(folder_name(folder), max(width, _NAME_WIDTH))
