"""SETTINGS: one row per setting. Read from files, environment and flags, in that order.

Every value knows where it came from. An unknown name is an error with the nearest
match, because a setting that is silently ignored is worse than none.
"""

import difflib
import math
import tomllib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from backstory.errors import ConfigError, nearest_hint
from backstory.providers.embedders import EMBEDDERS
from backstory.providers.llms import LLMS
from backstory.search.weights import Weights
from backstory.system.machine import (
    CONFIG_VARIABLE,
    HOME_VARIABLE,
    Machine,
    find_user_file,
)
from backstory.values.runs import MIN_ANSWER_TOKENS, RunLimits
from backstory.values.tool_names import TOOL_NAMES, enabling_setting

Value = str | int | float | bool | tuple[str, ...]

ENVIRONMENT_PREFIX = "BACKSTORY_"
_BY_HAND = "--set"


@dataclass(frozen=True, slots=True)
class Setting:
    """One row: what it is called, what it is by default, and what it does."""

    name: str
    default: Value
    summary: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()

    @property
    def variable(self) -> str:
        """The environment variable that sets it."""
        return ENVIRONMENT_PREFIX + self.name.replace(".", "_").upper()

    @property
    def type_name(self) -> str:
        match self.default:
            case bool():
                return "true or false"
            case int():
                return "whole number"
            case float():
                return "number"
            case str():
                return "text"
            case tuple():
                return "list of texts"


def _either(names: Iterable[str]) -> str:
    *some, last = names
    return f"{', '.join(some)} or {last}"


_LIMITS = RunLimits()
_WEIGHTS = Weights()
SETTINGS = (
    Setting(
        "context.max_memories",
        5,
        "How many memories at most are added to a prompt, beside MEMORY.md.",
        minimum=0,
        maximum=50,
    ),
    Setting(
        "context.max_tokens",
        2000,
        "How many tokens at most are added to a prompt, MEMORY.md included.",
        minimum=0,
    ),
    Setting(
        "context.timeout_seconds",
        2.0,
        "How long a prompt may wait for its memories before it goes without them.",
        minimum=0.05,
    ),
    Setting(
        "embedder.in_background",
        True,
        "Make vectors in a process of their own after reading; otherwise only when "
        "asked for with 'backstory index --wait'.",
    ),
    Setting(
        "embedder.key",
        "",
        "The key of its server, as env:NAME for the environment variable NAME, or as "
        "file:/path for a file that only you may read.",
    ),
    Setting("embedder.model", "", "Which of its models; empty for the usual one."),
    Setting(
        "embedder.name",
        "auto",
        f"What turns texts into vectors: {_either(row.name for row in EMBEDDERS)}.",
        choices=tuple(row.name for row in EMBEDDERS),
    ),
    Setting(
        "embedder.timeout_seconds",
        30.0,
        "How long to wait for an answer of its server.",
        minimum=0.1,
    ),
    Setting("embedder.url", "", "Where its server is; empty for the usual place."),
    Setting(
        "exclude.folders",
        (),
        "Folders never to read: files in them, and sessions that ran in them.",
    ),
    Setting("exclude.hosts", (), "Agent programs never to read, such as codex."),
    Setting(
        "index.folders",
        (),
        "More folders or files to read every time, such as unpacked exports.",
    ),
    Setting(
        "index.max_tool_output_bytes",
        64 * 1024,
        "How much of one tool result is kept; the cut is marked with the true length.",
        minimum=0,
    ),
    Setting(
        "index.watch_seconds",
        1.0,
        "How often 'backstory index --watch' looks for changes.",
        minimum=0.05,
    ),
    Setting(
        "llm.context_tokens",
        0,
        "How many tokens it takes in one call, prompt and answer together; 0 for the "
        "usual number.",
        minimum=0,
    ),
    Setting(
        "llm.daily_tokens",
        200_000,
        "How many tokens it may use in a day, read and written; no call is made that "
        "could pass this.",
        minimum=0,
    ),
    Setting(
        "llm.key",
        "",
        "The key of its server, as env:NAME for the environment variable NAME, or as "
        "file:/path for a file that only you may read.",
    ),
    Setting("llm.model", "", "Which of its models; empty for the usual one."),
    Setting(
        "llm.name",
        "auto",
        f"The language model: {_either(row.name for row in LLMS)}.",
        choices=tuple(row.name for row in LLMS),
    ),
    Setting(
        "llm.timeout_seconds",
        120.0,
        "How long to wait for an answer, all tries together.",
        minimum=0.1,
    ),
    Setting("llm.url", "", "Where its server is; empty for the usual place."),
    Setting(
        "logs.curate_daily",
        True,
        "Tidy MEMORY.md with the language model once a day, after daily logs.",
    ),
    Setting(
        "logs.enabled",
        True,
        "Write daily logs with the language model when a session ends; false makes no "
        "call.",
    ),
    Setting(
        "logs.in_background",
        True,
        "Write them in a process of their own; otherwise only when asked for with "
        "'backstory logs --write'.",
    ),
    Setting(
        "ranking.decay_floor",
        _WEIGHTS.decay_floor,
        "What age leaves of a score at the least; 0 lets old things fade away.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "ranking.decay_per_day",
        _WEIGHTS.decay_per_day,
        "How fast scores fade with age; 0.01 halves them in 69 days, above the floor.",
        minimum=0,
    ),
    Setting(
        "ranking.memory_weight",
        _WEIGHTS.memory_weight,
        "What notes and daily logs count in search_history.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "ranking.memory_words",
        _WEIGHTS.memory_words,
        "For notes in search_history: the share of words in a score; the rest is "
        "meaning.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "ranking.message_weight",
        _WEIGHTS.message_weight,
        "What messages count in search_history.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "ranking.message_words",
        _WEIGHTS.message_words,
        "For messages, and for all of memory_search: the share of words in a score.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "ranking.profile",
        "tuned",
        "How hits are ranked: tuned, or spec for the formulas of the designs.",
        choices=("tuned", "spec"),
    ),
    Setting(
        "ranking.session_weight",
        _WEIGHTS.session_weight,
        "What titles of sessions count in search_history.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "run.answer_tokens",
        _LIMITS.answer_tokens,
        "How many tokens at most an answer from the run in progress has.",
        minimum=MIN_ANSWER_TOKENS,
    ),
    Setting(
        "run.max_bytes",
        _LIMITS.max_bytes,
        "How much of a run is held in memory; then the oldest tool results go.",
        minimum=1_024,
    ),
    Setting(
        "run.snippet_chars",
        _LIMITS.snippet_chars,
        "How many characters around a match in the run in progress are shown.",
        minimum=40,
    ),
    Setting(
        "run.ttl_minutes",
        60.0,
        "After so long without use, what is held of a run is forgotten.",
        minimum=1,
    ),
    Setting(
        "search.timeout_seconds",
        30.0,
        "After so long a search gives what has been found.",
        minimum=0.1,
    ),
    *(
        Setting(enabling_setting(name), True, f"Whether agents have the tool {name}.")
        for name in sorted(TOOL_NAMES)
    ),
)


@dataclass(frozen=True, slots=True)
class Chosen:
    """The value of a setting, and where it came from."""

    setting: Setting
    value: Value
    origin: str

    @property
    def is_for_this_run(self) -> bool:
        """Whether it was given by hand, and the next run does not know of it."""
        return self.origin == _BY_HAND


class Settings:
    """The value of every setting. Look one up by its full name."""

    def __init__(self, chosen: Mapping[str, Chosen]) -> None:
        self._chosen = chosen

    def __iter__(self) -> Iterator[Chosen]:
        return iter(self._chosen.values())

    def texts(self, name: str) -> tuple[str, ...]:
        value = self._chosen[name].value
        assert isinstance(value, tuple)
        return value

    def text(self, name: str) -> str:
        value = self._chosen[name].value
        assert isinstance(value, str)
        return value

    def flag(self, name: str) -> bool:
        value = self._chosen[name].value
        assert isinstance(value, bool)
        return value

    def whole(self, name: str) -> int:
        value = self._chosen[name].value
        assert isinstance(value, int)
        return value

    def number(self, name: str) -> float:
        value = self._chosen[name].value
        assert isinstance(value, int | float)
        return value


def read_settings(
    *,
    user_file: Path | None = None,
    environ: Mapping[str, str],
    flags: Sequence[str] = (),
    table: Sequence[Setting] = SETTINGS,
) -> Settings:
    """Work out every setting. Raises ``ConfigError`` with the place and the reason."""
    rows = {setting.name: setting for setting in table}
    chosen = {name: Chosen(row, row.default, "default") for name, row in rows.items()}
    for name, value in [] if user_file is None else _read_file(user_file):
        row = _find(rows, name, str(user_file))
        chosen[name] = Chosen(row, _check(row, value, str(user_file)), str(user_file))
    by_variable = {row.variable: row for row in table}
    for variable, text in sorted(environ.items()):
        if not variable.startswith(ENVIRONMENT_PREFIX):
            continue
        if variable in (HOME_VARIABLE, CONFIG_VARIABLE):
            continue
        if variable not in by_variable and not _is_typo(variable, by_variable):
            continue  # somebody else's variable
        row = _find(by_variable, variable, "environment")
        chosen[row.name] = Chosen(row, _parse(row, text, variable), variable)
    for flag in flags:
        name, separator, text = flag.partition("=")
        if not separator:
            raise ConfigError(f"--set {flag}: expected NAME=VALUE")
        row = _find(rows, name.strip(), _BY_HAND)
        chosen[row.name] = Chosen(row, _parse(row, text, f"--set {name}"), _BY_HAND)
    return Settings(chosen)


def _read_file(file: Path) -> Iterator[tuple[str, object]]:
    """The settings of a TOML file by their full names; nothing if there is no file."""
    try:
        with file.open("rb") as stream:
            content = tomllib.load(stream)
    except FileNotFoundError:
        return
    except OSError as exc:
        raise ConfigError(f"{file}: it cannot be read ({exc.strerror})") from exc
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as exc:
        raise ConfigError(f"{file}: not valid TOML ({exc})") from exc
    yield from _flatten(content, "")


def _flatten(table: Mapping[str, object], prefix: str) -> Iterator[tuple[str, object]]:
    for key, value in table.items():
        if isinstance(value, dict):
            yield from _flatten(value, f"{prefix}{key}.")
        else:
            yield prefix + key, value


def _is_typo(name: str, names: Iterable[str]) -> bool:
    return bool(difflib.get_close_matches(name, names, n=1, cutoff=0.8))


def _find(rows: Mapping[str, Setting], name: str, place: str) -> Setting:
    if name in rows:
        return rows[name]
    raise ConfigError(
        f"{place}: unknown setting '{name}'", hint=nearest_hint(name, rows)
    )


def _check(row: Setting, value: object, place: str) -> Value:
    """The value of a TOML file, if it is of the setting's type."""
    default = row.default
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(value)
    elif isinstance(default, bool) or isinstance(value, bool):
        if isinstance(default, bool) and isinstance(value, bool):
            return value
    elif isinstance(default, float) and isinstance(value, int | float):
        return _in_range(row, float(value), place)
    elif isinstance(default, int) and isinstance(value, int):
        return _in_range(row, value, place)
    elif isinstance(default, str) and isinstance(value, str):
        return _one_of(row, value, place)
    hint = f'write {row.name} = ["…", "…"]' if isinstance(default, tuple) else None
    raise ConfigError(
        f"{place}: '{row.name}' is {value!r}, not a {row.type_name}", hint=hint
    )


def _parse(row: Setting, text: str, place: str) -> Value:
    """The value written as text, in the environment or after --set."""
    match row.default:
        case bool():
            words = {"true": True, "1": True, "yes": True, "on": True}
            words |= {"false": False, "0": False, "no": False, "off": False}
            if text.strip().lower() in words:
                return words[text.strip().lower()]
        case int() | float() as default:
            try:
                number = int(text) if isinstance(default, int) else float(text)
            except ValueError:
                pass
            else:
                return _in_range(row, number, place)
        case str():
            return _one_of(row, text, place)
        case tuple():
            return tuple(part.strip() for part in text.split(",") if part.strip())
    raise ConfigError(f"{place}: '{row.name}' is {text!r}, not a {row.type_name}")


def _one_of(row: Setting, text: str, place: str) -> str:
    if row.choices and text not in row.choices:
        raise ConfigError(
            f"{place}: '{row.name}' cannot be '{text}'",
            hint=nearest_hint(text, row.choices),
        )
    return text


def _in_range(row: Setting, number: float, place: str) -> float | int:
    if not math.isfinite(number):
        raise ConfigError(f"{place}: '{row.name}' is {number}, not a {row.type_name}")
    if row.minimum is not None and not number >= row.minimum:
        raise ConfigError(
            f"{place}: '{row.name}' is {number}, less than {row.minimum:g}"
        )
    if row.maximum is not None and number > row.maximum:
        raise ConfigError(
            f"{place}: '{row.name}' is {number}, more than {row.maximum:g}"
        )
    return number


def load_settings(machine: Machine, flags: Sequence[str] = ()) -> Settings:
    """The settings of this person."""
    user_file = find_user_file(machine)
    if machine.environ.get(CONFIG_VARIABLE) and not user_file.exists():
        raise ConfigError(f"{CONFIG_VARIABLE}: there is no file {user_file}")
    return read_settings(user_file=user_file, environ=machine.environ, flags=flags)
