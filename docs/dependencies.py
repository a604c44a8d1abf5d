"""List what Backstory needs to run, and under which licences, for the reference.

What each package says about itself is read from what is installed, so this needs no
connection.
"""

from collections.abc import Iterator
from email.message import Message
from importlib.metadata import PackageNotFoundError, distribution, requires
from typing import cast

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

# The page is the same wherever it is made: what is needed on either of these.
_CPYTHON = {
    "implementation_name": "cpython",
    "platform_machine": "x86_64",
    "platform_python_implementation": "CPython",
    "python_full_version": "3.11.0",
    "python_version": "3.11",
}
_SYSTEMS = (
    {"os_name": "posix", "platform_system": "Linux", "sys_platform": "linux"},
    {"os_name": "nt", "platform_system": "Windows", "sys_platform": "win32"},
)
# Needed on Windows alone, so perhaps not installed.
_ELSEWHERE = {"colorama": "BSD-3-Clause", "pywin32": "PSF-2.0"}
# What these say in words, or in a form of their own, as SPDX does.
_SPDX = {
    "3-Clause BSD License": "BSD-3-Clause",
    "Apache 2.0": "Apache-2.0",
    "Apache License 2.0": "Apache-2.0",
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
    "Mozilla Public License 2.0 (MPL 2.0)": "MPL-2.0",
}


def licences() -> str:
    """A table of every package that Backstory needs, also through others."""
    lines = ["", "| package | licence | needed by |", "|---|---|---|"]
    for name, needed_by in sorted(_find_all("backstory").items()):
        shown = ", ".join(sorted(needed_by))
        lines.append(f"| {name} | {_licence_of(name)} | {shown} |")
    return "\n".join([*lines, ""])


def _find_all(root: str) -> dict[str, set[str]]:
    """The packages that one needs, each with those that name it."""
    found: dict[str, set[str]] = {}
    todo, done = [(root, "")], set[tuple[str, str]]()
    while todo:
        package, extra = todo.pop()
        if (package, extra) in done:
            continue
        done.add((package, extra))
        for each in _iter_needed(package, extra):
            name = canonicalize_name(each.name)
            if name != package:
                found.setdefault(name, set()).add(package)
            todo += [(name, wanted) for wanted in ("", *each.extras)]
    return found


def _iter_needed(package: str, extra: str) -> Iterator[Requirement]:
    try:
        needed = requires(package) or ()
    except PackageNotFoundError:
        return
    for each in map(Requirement, needed):
        systems = [{**_CPYTHON, **system, "extra": extra} for system in _SYSTEMS]
        if each.marker is None or any(map(each.marker.evaluate, systems)):
            yield each


def _licence_of(package: str) -> str:
    """The licence in a package's own words, or in those of SPDX where they differ."""
    try:
        # It is a message, whatever its type says.
        about = cast("Message", distribution(package).metadata)
    except PackageNotFoundError:
        return _ELSEWHERE[package]
    if about["License-Expression"]:
        return str(about["License-Expression"])
    classified = [
        each.rpartition(" :: ")[2]
        for each in about.get_all("Classifier", [])
        if each.startswith("License :: ") and not each.endswith("OSI Approved")
    ]
    named = classified or [str(about["License"]).strip().split("\n")[0]]
    return " OR ".join(_SPDX.get(each, each) for each in named)
