"""Which sessions ran in a project: a folder, given by its path or its name."""

from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from pathlib import Path, PurePath, PureWindowsPath

from backstory.errors import BadQuery, UnknownName, nearest_hint, show_value
from backstory.store.base.history import SessionFilter
from backstory.system.files import is_inside
from backstory.system.machine import both_names
from backstory.text.arguments import show_name
from backstory.text.patterns import lazy_pattern
from backstory.values.structs import replace

_SEPARATOR = lazy_pattern(r"[/\\]")


# A search compares the same few folders dozens of times.
@lru_cache(maxsize=4_096)
def is_same_project(one: str | Path, other: str | Path) -> bool:
    """Whether one of two folders is inside the other."""
    inner, outer = Path(one), Path(other)
    return is_inside(inner, outer) or is_inside(outer, inner)


def in_project(
    where: SessionFilter, project: str | Path, known: Sequence[str]
) -> list[SessionFilter]:
    """The filter, narrowed to each folder that ``project`` stands for.

    ``known`` are the folders of all sessions. A name is a folder's own name or the end
    of its path; if no folder has it as typed, case is ignored.
    """
    if not isinstance(project, str | PurePath):
        raise BadQuery(
            f"project is {show_value(project)}, not the path or name of a folder"
        )
    is_path = isinstance(project, PurePath) or PurePath(project).is_absolute()
    if is_path:
        folders = sorted(map(str, both_names(Path(project).absolute())))
        found = [
            replace(where, folder=folder)
            for folder in folders
            if any(_is_in(each, folder) for each in known)
        ]
        meant = f"in {show_name(project)} or below it"
    else:
        found = [
            replace(where, folder_name=name) for name in _find_ends(str(project), known)
        ]
        meant = f"in a folder called '{show_name(project)}'"
    if not found:
        hint = _folder_hint(show_name(project), known, is_path=is_path)
        raise UnknownName(f"no session ran {meant}", hint=hint)
    return found


def _is_in(folder: str, other: str) -> bool:
    bare = other.rstrip("/\\")
    return folder == other or folder.startswith((f"{bare}/", f"{bare}\\"))


def _find_ends(name: str, known: Iterable[str]) -> Iterator[str]:
    """The ends of known paths that a name stands for, spelled as in the path."""
    wanted = _SEPARATOR.split(name.strip("/\\").casefold())
    ends = set()
    for folder in known:
        pieces = _SEPARATOR.split(folder)[1:][-len(wanted) :]
        if [piece.casefold() for piece in pieces] == wanted:
            ends.add(folder[-len("/".join(pieces)) :])
    # If one is spelled as typed, only that one.
    yield from [end for end in ends if end == name] or sorted(ends)


def _folder_hint(typed: str, known: Sequence[str], *, is_path: bool) -> str:
    if not known:
        return "no conversation has been read yet; run 'backstory index'"
    # Windows' rules can split the paths of other systems as well.
    names = known if is_path else [PureWindowsPath(each).name for each in known]
    return nearest_hint(typed, dict.fromkeys(filter(None, names)))
