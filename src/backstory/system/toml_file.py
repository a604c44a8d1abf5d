"""Read a TOML file that a person wrote, and change single values in it.

Values are read with their line numbers; a change keeps comments, order and line ends.
"""

from collections.abc import Callable, Iterator, Mapping, MutableMapping
from pathlib import Path
from typing import Any, NamedTuple

from backstory.errors import ConfigError
from backstory.system.files import make_private_folder, open_file, replace_file
from backstory.text.patterns import lazy_pattern

# Far more than anybody writes by hand.
_MAX_BYTES = 1_000_000
_HEADER = lazy_pattern(r"\s*\[{1,2}([^\[\]]+)\]{1,2}\s*(?:#.*)?\Z")
_KEY = lazy_pattern(r"([\w.\-\"'\s]++)=")
_QUOTES_AND_SPACES = lazy_pattern(r"[\"'\s]")
_BARE_NEWLINE = lazy_pattern(r"(?<!\r)\n")
# Python refuses to parse decimal numbers longer than this.
_LONG_NUMBER = lazy_pattern(r"[0-9_]{4301,}")


class TomlValue(NamedTuple):
    """A value, its full name, such as ``index.folders``, and where it is."""

    name: str
    value: object
    place: str


def read_toml(path: Path) -> list[TomlValue]:
    """Every value in a file; none if there is no file. Raises ``ConfigError``."""
    raw = _read(path)
    return [] if raw is None else _parse(path, _decode(path, raw))


def parse_text_list(text: str) -> list[str] | None:
    """Parse texts that are separated by commas, or a TOML list of them.

    None for a text that begins like such a list but is not one: if it were taken for
    the name of a folder, it would exclude nothing.
    """
    if not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    # Imported here because it is slow, and most runs need no TOML.
    import tomllib

    try:
        items = tomllib.loads(f"items = {text.strip()}")
    except (ValueError, RecursionError):
        return None
    # Any: whatever the list has in it.
    found: list[Any] = items.pop("items")
    return found if not items and all(isinstance(each, str) for each in found) else None


def set_toml_value(path: Path, name: str, value: object) -> None:
    """Set the value of that full name; creates the file if there is none.

    Raises ``ConfigError``, including for a file in which nothing can be set safely.
    """

    def change(table: MutableMapping[str, Any]) -> None:
        *outer, last = name.split(".")
        for key in outer:
            table = table.setdefault(key, {})
        table[last] = list(value) if isinstance(value, tuple) else value

    _change(path, change, f"write {name} there yourself")


def unset_toml_value(path: Path, name: str) -> bool:
    """Remove the value of that full name; False if there is none."""
    if name not in {found.name for found in read_toml(path)}:
        return False

    def change(table: MutableMapping[str, Any]) -> None:
        *outer, last = name.split(".")
        for key in outer:
            table = table[key]
        del table[last]

    _change(path, change, f"remove {name} there yourself")
    return True


def _change(
    path: Path, change: Callable[[MutableMapping[str, Any]], None], by_hand: str
) -> None:
    # Imported here because it is slow, and few commands change a setting.
    import tomllib

    # Slow to import, too.
    import tomlkit

    raw = _read(path)
    text = _decode(path, raw or b"")
    _parse(path, text)
    expected: dict[str, Any] = tomllib.loads(text)
    document = tomlkit.parse(text)
    try:
        change(expected)
        change(document)
        made = tomlkit.dumps(document)
        is_right = tomllib.loads(made) == expected
    # Raised for a value where a table is needed, and for whatever the library does not
    # expect.
    except (TypeError, AttributeError, ValueError, tomlkit.exceptions.TOMLKitError):
        is_right = False
    if not is_right:
        raise ConfigError(f"{path}: this file cannot be changed safely", hint=by_hand)
    if "\r\n" in text:
        made = _BARE_NEWLINE.sub("\r\n", made)
    mark = b"\xef\xbb\xbf" if (raw or b"").startswith(b"\xef\xbb\xbf") else b""
    make_private_folder(path.parent)
    try:
        replace_file(path, mark + made.encode(), instead_of=raw)
    except OSError as exc:
        raise ConfigError(f"{path}: cannot be written ({exc.strerror})") from exc


def _read(path: Path) -> bytes | None:
    try:
        with open_file(path) as file:
            raw = file.read(_MAX_BYTES + 1)
    except FileNotFoundError:
        return None
    # ValueError: a NUL in the path.
    except (OSError, ValueError) as exc:
        reason = getattr(exc, "strerror", None) or exc
        raise ConfigError(f"{path}: cannot be read ({reason})") from exc
    if len(raw) > _MAX_BYTES:
        raise ConfigError(f"{path}: it has more than {_MAX_BYTES:,} bytes")
    return raw


def _decode(path: Path, raw: bytes) -> str:
    try:
        return raw.decode("utf-8-sig")
    except UnicodeDecodeError as exc:
        line = raw.count(b"\n", 0, exc.start) + 1
        raise ConfigError(f"{path}:{line}: not valid UTF-8") from exc


def _parse(path: Path, text: str) -> list[TomlValue]:
    # Imported here because it is slow, and most runs have no file.
    import tomllib

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
    return _QUOTES_AND_SPACES.sub("", name)


def _place(path: Path, name: str, lines: Mapping[str, int]) -> str:
    # A value in braces is in the line of the name before the braces.
    while name and name not in lines:
        name = name.rpartition(".")[0]
    return f"{path}:{lines[name]}" if name else str(path)
