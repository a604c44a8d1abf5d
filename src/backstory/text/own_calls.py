"""Know calls of Backstory's own tools and commands in what agent programs write.

What our tools return is a copy of a memory. Stored again, it would be found again, and
memory would feed on itself. But it is known by the call, never by its looks: a page, a
file or another program's tool may say the same words, and nothing of that may be lost.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

import orjson

from backstory.values.tool_names import TOOL_NAMES

# Hosts put the server's name before the tool's: mcp__backstory__search_history,
# backstory-search_history, backstory.search_history, backstory/search_history. Other
# servers have tools of these names too; what they find is not ours to leave out.
_OWN_TOOL_NAME = re.compile(
    r"(?:^|[^a-z0-9])backstory[^a-z0-9]+(?:" + "|".join(sorted(TOOL_NAMES)) + r")$",
    re.IGNORECASE,
)
# These tools are given text to write, which may mention a command without running it.
_WRITES = re.compile(r"write|edit|patch|create|replace|insert|todo", re.IGNORECASE)

# -- commands in a shell --------------------------------------------------------------

# Where hosts put the command of a tool that runs a shell.
_COMMAND_KEYS = ("command", "cmd", "script")
# A longer one is a program, not a question to our command.
_MAX_COMMAND_CHARS = 20_000
_RECALLING = {"search", "show", "call", "context", "logs"}
_RECALLING_MEMORY = {"show", "add", "forget"}
_OUR_OPTIONS = {"--home", "--set"}
_SHELLS = {"bash", "sh", "zsh", "dash", "fish"}
_PYTHON = re.compile(r"(?:python[0-9.]*|py)(?:\.exe)?")
# What may come before a command, and what prints nothing of its own.
_BEFORE = {"sudo", "env", "time", "nohup", "command", "exec", "do", "then", "{", "!"}
_SILENT = {"cd", "export", "set", "source", ".", "true", "pushd", "for", "done", "}"}
# What prints the words of the call itself.
_ECHOES = {"echo", "printf"}
# What shows a part of what our command printed.
_FILTERS = frozenset(
    "head tail grep rg less more cat jq sort uniq wc sed awk cut tr".split()  # noqa: SIM905
)
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_REDIRECTION = re.compile(r"\d?>&\d|[12&]?>>?\s*/dev/null")
_SEPARATORS = ";&|()\n"


def is_own_tool_call(tool_name: str | None, call_text: str = "") -> bool:
    """Whether a call is of one of our tools, by a host's name, or only of our command.

    A shell that also runs something else returns something else as well.
    """
    if tool_name and _OWN_TOOL_NAME.search(tool_name):
        return True
    if "backstory" not in call_text or (tool_name and _WRITES.search(tool_name)):
        return False
    return any(map(_is_own_script, _iter_scripts(call_text)))


def _iter_scripts(call_text: str) -> Iterator[list[list[str]]]:
    """The commands of a call, each as its words; ``|`` is a word before a filter."""
    given: object = call_text
    if call_text.lstrip()[:1] in ("{", "["):
        try:
            given = orjson.loads(call_text)
        except orjson.JSONDecodeError:
            return
    if isinstance(given, dict):
        given = next((given[key] for key in _COMMAND_KEYS if key in given), None)
    if isinstance(given, list) and given and all(isinstance(w, str) for w in given):
        is_shell = _base_name(given[0]) in _SHELLS and len(given) > 2
        given = given[-1] if is_shell else [given]
    if isinstance(given, str):
        given = _split_script(given)
    if isinstance(given, list):
        yield given


def _split_script(script: str) -> list[list[str]] | None:
    if len(script) > _MAX_COMMAND_CHARS:
        return None
    lexer = shlex.shlex(
        _REDIRECTION.sub(" ", script), posix=True, punctuation_chars=_SEPARATORS
    )
    # A Windows path has backslashes, and a line end separates commands.
    lexer.escape, lexer.commenters, lexer.whitespace = "", "", " \t\r"
    lexer.whitespace_split = True
    commands: list[list[str]] = [[]]
    try:
        for word in lexer:
            if set(word) <= set(_SEPARATORS):
                commands.append(["|"] if word == "|" else [])
            else:
                commands[-1].append(word)
    except ValueError:
        return None  # a quotation that is not closed
    return [command for command in commands if command]


def _is_own_script(commands: Sequence[Sequence[str]]) -> bool:
    """Whether nothing but our command can have printed anything."""
    has_own = False
    for command in commands:
        if command[0] == "|":
            is_harmless = has_own and _base_name("".join(command[1:2])) in _FILTERS
        elif _is_own_command(_without_prefix(command)):
            is_harmless = has_own = True
        else:
            is_harmless = _is_silent(command)
        if not is_harmless:
            return False
    return has_own


def _without_prefix(words: Sequence[str]) -> Sequence[str]:
    """A command without what is set for it, and without the program that starts it."""
    while words and (words[0] in _BEFORE or _ASSIGNMENT.fullmatch(words[0])):
        words = words[1:]
    if list(words[:2]) == ["uv", "run"] or words[:1] == ["uvx"]:
        words = words[2 if words[0] == "uv" else 1 :]
    if words and _PYTHON.fullmatch(_base_name(words[0])) and "-m" in words[:4]:
        words = words[list(words).index("-m") + 1 :]
    return words


def _is_own_command(words: Sequence[str]) -> bool:
    if not words or _base_name(words[0]).removesuffix(".exe") != "backstory":
        return False
    rest = list(words[1:])
    while rest and rest[0].partition("=")[0] in _OUR_OPTIONS:
        rest = rest[1 if "=" in rest[0] else 2 :]
    if rest[:1] == ["memory"]:
        return "".join(rest[1:2]) in _RECALLING_MEMORY
    return "".join(rest[:1]) in _RECALLING


def _is_silent(words: Sequence[str]) -> bool:
    words = _without_prefix(words)
    if not words or words[0] in _SILENT:
        return True
    # A command within it may print anything.
    return words[0] in _ECHOES and not any("$(" in w or "`" in w for w in words)


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].lower()
