"""Read a TOML file that a person wrote, and say in which line each value stands."""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from backstory.errors import ConfigError
from backstory.system.files import open_file

# Far more than anybody writes by hand.
_MAX_BYTES = 1_000_000
_HEADER = re.compile(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?\Z")
_KEY = re.compile(r"\s*([\w.\-\"' ]+?)\s*=")
# Python computes no longer numbers from decimal digits.
_LONG_NUMBER = re.compile(r"[0-9_]{4301,}")


class TomlValue(NamedTuple):
    """A value, its full name, such as ``index.folders``, and where it stands."""

    name: str
    value: object
    place: str


def read_toml(path: Path) -> list[TomlValue]:
    """Every value in a file; none if there is no file. Raises ``ConfigError``."""
    try:
        with open_file(path) as file:
            raw = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return []
    # ValueError: a NUL in the path.
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise ConfigError(f"{path}: cannot be read ({reason})") from exc
    if len(raw) > _MAX_BYTES:
        raise ConfigError(f"{path}: it has more than {_MAX_BYTES:,} bytes")
    return _parse(path, _decode(path, raw))


def _decode(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise ConfigError(f"{path}:{line}: not valid UTF-8") from exc


def _parse(path: Path, text: str) -> list[TomlValue]:
    try:
        found = list(_flatten(tomllib.loads(text), ""))
    except tomllib.TOMLDecodeError as exc:
        raise ConfigError(f"{path}: not valid TOML ({exc})") from exc
    except RecursionError as exc:
        raise ConfigError(f"{path}: nested too deeply") from exc
    except ValueError as exc:
        number = _LONG_NUMBER.search(text)
        line = text.count("\n", 0, number.start()) + 1 if number else 1
        raise ConfigError(f"{path}:{line}: a number with too many digits") from exc
    lines = _find_lines(text)
    return [TomlValue(name, value, _place(path, name, lines)) for name, value in found]


def _flatten(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _find_lines(text: str) -> dict[str, int]:
    """The line in which each name is written, as far as one can tell."""
    lines: dict[str, int] = {}
    section = ""
    for number, line in enumerate(text.splitlines(), start=1):
        if header := _HEADER.match(line):
            lines.setdefault(_bare(header[1]), number)
            section = _bare(header[1]) + "."
        elif key := _KEY.match(line):
            lines.setdefault(section + _bare(key[1]), number)
    return lines


def _bare(name: str) -> str:
    return re.sub(r"[\"'\s]", "", name)


def _place(path: Path, name: str, lines: Mapping[str, int]) -> str:
    # A value in braces stands in the line of the name before the braces.
    while name and name not in lines:
        name = name.rpartition(".")[0]
    return f"{path}:{lines[name]}" if name else str(path)
