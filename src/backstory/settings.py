"""SETTINGS: one row per setting. Read from file, environment and flags, in that order.

Every value knows where it came from. An unknown name is an error that suggests the
nearest match, because a silently ignored setting is worse than none.
"""

import math
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from backstory.errors import ConfigError, nearest_hint, show_value
from backstory.providers.embedders import EMBEDDERS
from backstory.providers.keys import check_key_place, is_key_place
from backstory.providers.llms import LLMS
from backstory.search.weights import Weights
from backstory.system.machine import (
    CONFIG_VARIABLE,
    HOME_VARIABLE,
    Machine,
    find_user_file,
)
from backstory.system.toml_file import (
    parse_text_list,
    read_toml,
    set_toml_value,
    unset_toml_value,
)
from backstory.text.arguments import show_name
from backstory.text.escape import replace_surrogates
from backstory.text.passwords import has_password, hide_password
from backstory.values.runs import MIN_ANSWER_TOKENS, RunLimits
from backstory.values.structs import FrozenStruct
from backstory.values.tool_names import TOOL_NAMES, enabling_setting

Value = str | int | float | bool | tuple[str, ...]

ENVIRONMENT_PREFIX = "BACKSTORY_"
STORE_URL = "store.url"
_FLAG = "--set"
_SETTINGS = "settings"
# How the names of settings end that say where a key is.
_KEYS = (".key", ".token")
# In place of a key; it should not be there.
_HIDDEN_KEY = "(a key, which is not shown)"
_TRY_AGAIN = "'backstory settings' shows every setting and what it does"
# No wait, and no number in a database, can be much larger.
_MOST = 100_000_000
_MOST_WHOLE = 2**53


class Setting(FrozenStruct):
    """One row: a setting's name, its default and what it does."""

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
        3,
        "Maximum number of memories added to a prompt, besides MEMORY.md.",
        minimum=0,
        maximum=50,
    ),
    Setting(
        "context.max_tokens",
        2000,
        "Maximum number of tokens added to a prompt, including MEMORY.md.",
        minimum=0,
    ),
    Setting(
        "context.timeout_seconds",
        2.0,
        "How long to search for a prompt's memories before going without them.",
        minimum=0.05,
    ),
    Setting(
        "embedder.in_background",
        True,
        "Make vectors in a background process after reading; otherwise only with "
        "'backstory index --wait'.",
    ),
    Setting(
        "embedder.key",
        "",
        "API key: env:NAME for the environment variable NAME, or file:/path for a file "
        "that only you can read.",
    ),
    Setting("embedder.model", "", "Name of the model; empty for the default."),
    Setting(
        "embedder.name",
        "auto",
        f"What turns texts into vectors: {_either(row.name for row in EMBEDDERS)}.",
        choices=tuple(row.name for row in EMBEDDERS),
    ),
    Setting(
        "embedder.query_timeout_seconds",
        3.0,
        "How long a search waits for a server to embed its query, before it goes by "
        "words alone.",
        minimum=0.1,
    ),
    Setting(
        "embedder.timeout_seconds",
        30.0,
        "How long to wait for an answer from the server.",
        minimum=0.1,
    ),
    Setting("embedder.url", "", "URL of the server; empty for the default."),
    Setting(
        "exclude.folders",
        (),
        "Folders to exclude: files in them, and sessions that ran in them.",
    ),
    Setting("exclude.hosts", (), "Agent programs to exclude, such as codex."),
    Setting(
        "index.folders",
        (),
        "Additional folders or files to read, such as unpacked exports.",
    ),
    Setting(
        "index.guidance",
        True,
        "Index the files in which projects tell agents how to work, such as AGENTS.md "
        "and CLAUDE.md.",
    ),
    Setting(
        "index.max_tool_output_bytes",
        64 * 1024,
        "How much of each tool result is kept, half of it the end; a cut is marked "
        "with the full length.",
        minimum=0,
    ),
    Setting(
        "index.watch_seconds",
        1.0,
        "How often 'backstory index --watch' looks for changes.",
        minimum=0.05,
    ),
    Setting(
        "keep.days",
        0,
        "How many days conversations are kept; anything older is forgotten when "
        "sources are read. 0 keeps everything.",
        minimum=0,
    ),
    Setting(
        "keep.deleted_sessions",
        False,
        "Keep a session that its own program moved to the trash after it was read; if "
        "false, it is forgotten. Only OneClaw has a trash that can be read.",
    ),
    Setting(
        "keep.tool_output_days",
        0,
        "The same as keep.days, for tool results only.",
        minimum=0,
    ),
    Setting(
        "llm.context_tokens",
        0,
        "Context size in tokens, prompt and answer together; 0 for the default.",
        minimum=0,
    ),
    Setting(
        "llm.daily_tokens",
        200_000,
        "Maximum number of tokens per day, prompts and answers; a call that could "
        "exceed it is not made.",
        minimum=0,
    ),
    Setting(
        "llm.key",
        "",
        "API key: env:NAME for the environment variable NAME, or file:/path for a file "
        "that only you can read.",
    ),
    Setting("llm.model", "", "Name of the model; empty for the default."),
    Setting(
        "llm.name",
        "none",
        f"The language model: {_either(row.name for row in LLMS)}.",
        choices=tuple(row.name for row in LLMS),
    ),
    Setting(
        "llm.timeout_seconds",
        120.0,
        "How long to wait for an answer, including retries.",
        minimum=0.1,
    ),
    Setting("llm.url", "", "URL of the server; empty for the default."),
    Setting(
        "logs.curate_daily",
        True,
        "Tidy MEMORY.md with the language model once a day, after the daily logs.",
    ),
    Setting(
        "logs.enabled",
        True,
        "Write daily logs with the language model when a session ends; if false, it is "
        "never called.",
    ),
    Setting(
        "logs.in_background",
        True,
        "Write daily logs, and tidy MEMORY.md, in a background process; if false, no "
        "background process calls the language model, only 'backstory logs --write' "
        "and 'curate' do.",
    ),
    Setting(
        "logs.quiet_minutes",
        30.0,
        "How long a session must be silent before it is summarized automatically; 0 "
        "turns that off.",
        minimum=0,
    ),
    Setting(
        "mcp.structured_content",
        "auto",
        "Whether 'backstory mcp' returns data beside the text of an answer. auto: not "
        "with --host, as agent programs show their model the data instead of the text.",
        choices=("auto", "always", "never"),
    ),
    Setting(
        "push.mask_secrets",
        True,
        "Mask recognized secrets in what 'backstory push' sends.",
    ),
    Setting(
        "push.token",
        "",
        "The token for the server of push.url: env:NAME for the environment variable "
        "NAME, or file:/path for a file that only you can read.",
    ),
    Setting(
        "push.url",
        "",
        "Server that 'backstory push' and 'index --watch' send conversations to, such "
        "as https://memory.example.org; empty for none.",
    ),
    Setting(
        "ranking.decay_floor",
        _WEIGHTS.decay_floor,
        "The lowest factor for age; 0 lets old things fade away completely.",
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
        "Weight of notes and daily logs in search_history.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "ranking.memory_words",
        _WEIGHTS.memory_words,
        "Share of words in the score of notes in search_history; the rest is meaning.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "ranking.message_weight",
        _WEIGHTS.message_weight,
        "Weight of messages in search_history.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "ranking.message_words",
        _WEIGHTS.message_words,
        "Share of words in the score of messages, and of everything in memory_search.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "ranking.profile",
        "tuned",
        "Which formulas rank hits: tuned or spec.",
        choices=("tuned", "spec"),
    ),
    Setting(
        "ranking.session_weight",
        _WEIGHTS.session_weight,
        "Weight of session titles in search_history.",
        minimum=0,
        maximum=1,
    ),
    Setting(
        "run.answer_tokens",
        _LIMITS.answer_tokens,
        "Maximum number of tokens in an answer from the run in progress.",
        minimum=MIN_ANSWER_TOKENS,
    ),
    Setting(
        "run.max_bytes",
        _LIMITS.max_bytes,
        "How much of a run is held in memory; beyond it, the oldest tool results are "
        "dropped.",
        minimum=1_024,
    ),
    Setting(
        "run.snippet_chars",
        _LIMITS.snippet_chars,
        "Number of characters shown around a match in the run in progress.",
        minimum=40,
    ),
    Setting(
        "run.ttl_minutes",
        _LIMITS.ttl_s / 60,
        "How long a run is kept without being used.",
        minimum=1,
    ),
    Setting(
        "search.isolate_projects",
        False,
        "Keep projects apart: an agent is shown nothing that was said outside of the "
        "folder it works in, except for MEMORY.md. If false, what was said there only "
        "comes first.",
    ),
    Setting(
        "search.read_changed",
        True,
        "Before a search, read what agents have written since the last reading, if "
        "that takes no longer than 0.2 seconds; a notice says what is left. If false, "
        "only 'backstory index' reads.",
    ),
    Setting(
        "search.remote",
        False,
        "Have 'backstory search' ask the server of push.url as well, and rank the "
        "results together.",
    ),
    Setting(
        "search.remote_seconds",
        2.0,
        "How long to wait for the server; then only this machine is searched, and a "
        "notice says so.",
        minimum=0.1,
    ),
    Setting(
        "search.timeout_seconds",
        30.0,
        "How long a search may take before it returns what it has found.",
        minimum=0.1,
    ),
    Setting(
        "serve.idle_minutes",
        10.0,
        "After how many minutes 'backstory serve' closes a memory that nobody uses.",
        minimum=0.01,
    ),
    Setting(
        "serve.open_memories",
        100,
        "How many tenants' memories 'backstory serve' has open at once.",
        minimum=1,
    ),
    Setting(
        "serve.requests_at_once",
        16,
        "How many requests of one tenant a server process answers at once; more are "
        "refused.",
        minimum=1,
    ),
    Setting(
        "serve.requests_per_minute",
        600,
        "How many requests a minute a tenant may send to a server process; more are "
        "refused. 0 for no limit.",
        minimum=0,
    ),
    Setting(
        "serve.threads",
        8,
        "How many requests a server process works on at once; others wait.",
        minimum=1,
        maximum=256,
    ),
    Setting(
        "serve.workers",
        1,
        "How many threads of 'backstory serve' do the background work of a database's "
        "tenants; 0 leaves it to 'backstory work --tenants'.",
        minimum=0,
        maximum=64,
    ),
    Setting(
        "store.tenant",
        "default",
        "Whose memory it is, in a database that several share; used with store.url.",
    ),
    Setting(
        STORE_URL,
        "",
        "PostgreSQL database to keep everything in, such as "
        "postgresql://user@host/database, or env:NAME or file:/path for where its "
        "address is; empty for files in the home.",
    ),
    Setting(
        "tools.answer_tokens",
        4_000,
        "Maximum number of tokens in an answer of read_session.",
        minimum=MIN_ANSWER_TOKENS,
    ),
    Setting(
        "tools.search_tokens",
        25_000,
        "Maximum number of tokens in an answer of search_history or memory_search; "
        "results beyond it are left out.",
        minimum=MIN_ANSWER_TOKENS,
    ),
    *(
        Setting(enabling_setting(name), True, f"Give agents the tool {name}.")
        for name in sorted(TOOL_NAMES)
    ),
)


class Chosen(FrozenStruct):
    """The value of a setting, and where it came from."""

    setting: Setting
    value: Value
    origin: str

    @property
    def is_key(self) -> bool:
        """Whether it has a key or a password in it, which nobody is shown."""
        if is_key_place(str(self.value)):
            return False
        if self.setting.name == STORE_URL:
            return has_password(str(self.value))
        return self.setting.name.endswith(_KEYS)

    @property
    def shown(self) -> Value:
        """The value, as it may be shown."""
        if not self.is_key:
            return self.value
        if self.setting.name == STORE_URL:
            return hide_password(str(self.value))
        return _HIDDEN_KEY

    @property
    def is_for_this_run(self) -> bool:
        """Whether it was set by a flag, so that other processes do not know it."""
        return self.origin == _FLAG


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
    """The value of every setting. Raises ``ConfigError`` for one that is wrong."""
    rows = {setting.name: setting for setting in table}
    chosen = {name: Chosen(row, row.default, "default") for name, row in rows.items()}
    for name, value, place in [] if user_file is None else read_toml(user_file):
        row = _find(rows, name, place)
        chosen[name] = Chosen(row, _check(row, value, place), str(user_file))
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
    with _typed_now():
        for flag in flags:
            row, value = _parse_flag(rows, flag)
            chosen[row.name] = Chosen(row, value, _FLAG)
    return Settings(chosen)


def _parse_flag(rows: Mapping[str, Setting], flag: str) -> tuple[Setting, Value]:
    if not isinstance(flag, str) or "=" not in flag:
        shown = flag if isinstance(flag, str) else show_value(flag)
        raise ConfigError(f"{_FLAG} {shown}: expected NAME=VALUE")
    name, _, text = flag.partition("=")
    row = _find(rows, name.strip(), _FLAG)
    return row, _parse(row, text, f"{_FLAG} {name}")


@contextmanager
def _typed_now() -> Iterator[None]:
    """For a value that is typed now: there is no place to correct it in."""
    try:
        yield
    except ConfigError as exc:
        if exc.hint == ConfigError.hint:
            exc.hint = _TRY_AGAIN
        raise


def _is_typo(name: str, names: Iterable[str]) -> bool:
    # Rarely needed.
    import difflib

    return bool(difflib.get_close_matches(name, names, n=1, cutoff=0.8))


def _find(rows: Mapping[str, Setting], name: str, place: str) -> Setting:
    if name in rows:
        return rows[name]
    shown = show_name(name)
    raise ConfigError(
        f"{place}: unknown setting '{shown}'", hint=nearest_hint(shown, rows)
    )


def _check(row: Setting, value: object, place: str) -> Value:
    """A value from a TOML file, if it has the setting's type."""
    default = row.default
    if isinstance(default, tuple):
        if isinstance(value, list) and all(isinstance(item, str) for item in value):
            return tuple(_to_text(row, item, place) for item in value)
    elif isinstance(default, bool) or isinstance(value, bool):
        if isinstance(default, bool) and isinstance(value, bool):
            return value
    elif isinstance(default, int | float) and isinstance(value, int | float):
        if isinstance(default, float) or isinstance(value, int):
            return _in_range(row, value, place)
    elif isinstance(default, str) and isinstance(value, str):
        return _one_of(row, value, place)
    hint = f'write {row.name} = ["…", "…"]' if isinstance(default, tuple) else None
    raise ConfigError(
        f"{place}: '{row.name}' must be {_expected(row)}, got {show_value(value)}",
        hint=hint,
    )


def _parse(row: Setting, text: str, place: str) -> Value:
    """A value given as text, in the environment or with --set."""
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
            parts = parse_text_list(text)
            if parts is not None:
                return tuple(_to_text(row, part, place) for part in parts)
    raise ConfigError(
        f"{place}: '{row.name}' must be {_expected(row)}, got {show_value(text)}"
    )


def _expected(row: Setting) -> str:
    name = row.type_name
    return name if name in ("text", "true or false") else f"a {name}"


def _one_of(row: Setting, text: str, place: str) -> str:
    if row.choices and text not in row.choices:
        shown = show_name(text)
        raise ConfigError(
            f"{place}: '{row.name}' cannot be '{shown}'",
            hint=nearest_hint(shown, row.choices),
        )
    return _to_text(row, text, place)


def _to_text(row: Setting, text: str, place: str) -> str:
    """A text that can be a path, part of a request, or a name in a database."""
    if replace_surrogates(text) != text:
        raise ConfigError(f"{place}: '{row.name}' is not valid UTF-8")
    if "\0" in text:
        raise ConfigError(f"{place}: '{row.name}' has a NUL character in it")
    return text


def _in_range(row: Setting, number: float, place: str) -> float | int:
    is_whole = isinstance(row.default, int)
    most = row.maximum
    if most is None:
        most = _MOST_WHOLE if is_whole else _MOST
    if isinstance(number, float) and not math.isfinite(number):
        raise ConfigError(
            f"{place}: '{row.name}' must be {_expected(row)}, got {number}"
        )
    if row.minimum is not None and not number >= row.minimum:
        raise ConfigError(
            f"{place}: '{row.name}' must be at least {row.minimum:g}, "
            f"got {show_value(number)}"
        )
    if number > most:
        raise ConfigError(
            f"{place}: '{row.name}' must be at most {most:g}, got {show_value(number)}"
        )
    return number if is_whole else float(number)


def to_flags(settings: str | Iterable[str]) -> tuple[str, ...]:
    """The ``name=value`` texts that a caller passes. Raises ``ConfigError``."""
    given = (settings,) if isinstance(settings, str) else settings
    if isinstance(given, Iterable) and not isinstance(given, bytes):
        flags = tuple(given)
        if all(isinstance(flag, str) for flag in flags):
            return flags
    raise ConfigError(
        f"settings are {show_value(settings)}, not a list of texts",
        hint="write each as name=value, for example embedder.name=none",
    )


def load_settings(machine: Machine, flags: Sequence[str] = ()) -> Settings:
    """The settings of the user of this machine."""
    user_file = find_user_file(machine)
    if machine.environ.get(CONFIG_VARIABLE) and not os.path.lexists(user_file):
        raise ConfigError(f"{CONFIG_VARIABLE}: there is no file {user_file}")
    return read_settings(user_file=user_file, environ=machine.environ, flags=flags)


def get_setting(settings: Settings, name: str) -> Chosen:
    """A setting by a name that a person typed. Raises ``ConfigError``."""
    chosen = {each.setting.name: each for each in settings}
    rows = {key: each.setting for key, each in chosen.items()}
    return chosen[_find(rows, name, "settings").name]


def change_setting(machine: Machine, name: str, text: str) -> Chosen:
    """Set a value in the user's own file, which is made if there is none."""
    with _typed_now():
        row = _find({row.name: row for row in SETTINGS}, name, _SETTINGS)
        value = _parse(row, text, _SETTINGS)
        if row.name.endswith(_KEYS):
            check_key_place(text, row.name)
    user_file = find_user_file(machine)
    set_toml_value(user_file, row.name, value)
    return Chosen(row, value, str(user_file))


def add_to_setting(machine: Machine, name: str, item: str) -> Chosen:
    """Add an item to a list in the user's own file, unless it has it; it may be any."""
    row = _find({row.name: row for row in SETTINGS}, name, _SETTINGS)
    user_file = find_user_file(machine)
    own = read_settings(user_file=user_file, environ={}).texts(name)
    value = own if item in own else (*own, _to_text(row, item, _SETTINGS))
    set_toml_value(user_file, row.name, value)
    return Chosen(row, value, str(user_file))


def unset_setting(machine: Machine, name: str) -> bool:
    """Remove a value from the user's own file; False if it has none."""
    row = _find({row.name: row for row in SETTINGS}, name, _SETTINGS)
    return unset_toml_value(find_user_file(machine), row.name)
