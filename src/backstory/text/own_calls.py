"""Recognize calls of Backstory's own tools and commands in what agent programs write.

What our tools return is a copy of a memory. If it were stored, it would be found again,
and memory would feed on itself. But it is recognized by the call, never by its looks: a
page, a file or another program's tool may say the same words, and none of that may be
lost.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

import orjson

from backstory.values.structs import FrozenStruct
from backstory.values.tool_names import TOOL_NAMES

# Hosts put the server's name before the tool's: mcp__backstory__search_history,
# backstory-search_history, backstory.search_history, backstory/search_history. Other
# servers have tools with these names, too; what they find is not ours to leave out.
_OWN_TOOL_NAME = re.compile(
    r"(?:^|[^a-z0-9])backstory[^a-z0-9]++(?:" + "|".join(sorted(TOOL_NAMES)) + r")$",
    re.IGNORECASE,
)
# These tools are given text to write, which may mention a command without running it.
_WRITES = re.compile(r"write|edit|patch|create|replace|insert|todo", re.IGNORECASE)

# -- commands in a shell --------------------------------------------------------------

# The arguments in which hosts pass the command of a tool that runs a shell.
_COMMAND_KEYS = ("command", "cmd", "script")
_COMMANDS_KEY = "commands"
# A longer one is a program, not just a call of our command.
_MAX_COMMAND_CHARS = 20_000
_RECALLING = {"search", "show", "call", "context", "logs"}
_RECALLING_MEMORY = {"show", "add", "forget"}
_OUR_OPTIONS = {"--home", "--set"}
_SHELLS = {"bash", "sh", "zsh", "dash", "fish"}
_PYTHON = re.compile(r"(?:python[0-9.]*|py)(?:\.exe)?")
# What may precede a command; the first ones print something if no command follows.
_PRINTING_BEFORE = {"sudo", "env"}
_BEFORE = _PRINTING_BEFORE | {
    "time",
    "nohup",
    "command",
    "exec",
    "do",
    "then",
    "{",
    "!",
}
# Commands that print nothing of their own.
_SILENT = {"true", "pushd", "for", "done", "}"}
# Commands that print only words of the call itself.
_ECHOES = {"echo", "printf"}


class _Filter(FrozenStruct):
    """A program that shows part of its input, if called with nothing but these.

    ``flags`` are the letters of its options, ``valued`` those that a value follows, and
    ``operands`` are words that name no file. If called otherwise, it may read files.
    """

    flags: str = ""
    valued: str = ""
    operands: int = 0
    script: re.Pattern[str] | None = None


# Scripts that only choose or replace text: neither can read a file or run a command.
_SED_SCRIPT = re.compile(
    r"(?:\d{1,9}|\$)?(?:,(?:\d{1,9}|\$))?[pdq]"
    r"|s/(?:[^\\/\n]|\\[^/\n])*/(?:[^\\/\n]|\\[^/\n])*/[gip\d]{0,9}"
)
_JQ_SCRIPT = re.compile(r"(?i:(?!env|import|include|input).)*", re.DOTALL)
# Commands that show a part of what ours printed. Not awk, which can run anything.
_FILTERS = {
    "head": _Filter("qv", "nc"),
    "tail": _Filter("qv", "nc"),
    "cat": _Filter("AbeEnstTuv"),
    "less": _Filter("EFRSX"),
    "more": _Filter(),
    "sort": _Filter("bdfghMnRruVz", "kt"),
    "uniq": _Filter("cduiz", "fsw"),
    "wc": _Filter("clmwL"),
    "cut": _Filter("sz", "bcdf"),
    "tr": _Filter("cCdst", operands=2),
    "grep": _Filter("aEFGPivwxcnohqsz", "ABCm", operands=1),
    "rg": _Filter("aFPivwxcnNosSU", "ABCm", operands=1),
    "sed": _Filter("nErsuz", operands=1, script=_SED_SCRIPT),
    "jq": _Filter("acCejMrsS", operands=1, script=_JQ_SCRIPT),
}
_SHELL_OPTION = re.compile(r"-[a-z]*c")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_REDIRECTION = re.compile(r"\d?>&\d|[12&]?>>?\s*/dev/null")
_SEPARATORS = ";&|()\n"


def is_own_tool_call(tool_name: str | None, call_text: str = "") -> bool:
    """Whether a call is of one of our tools, by a host's name, or of our command only.

    A shell that also runs something else returns other output as well.
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
        several = given.get(_COMMANDS_KEY)
        given = next((given[key] for key in _COMMAND_KEYS if key in given), None)
        if isinstance(several, list) and all(isinstance(each, str) for each in several):
            given = "\n".join(several)
    if isinstance(given, list) and given and all(isinstance(w, str) for w in given):
        # bash -lc SCRIPT; without -c, the words after a shell are a file's arguments.
        is_shell = _base_name(given[0]) in _SHELLS and len(given) > 2
        is_script = is_shell and _SHELL_OPTION.fullmatch(given[-2])
        given = given[-1] if is_script else [given]
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
        return None  # an unclosed quotation
    return [command for command in commands if command]


def _is_own_script(commands: Sequence[Sequence[str]]) -> bool:
    """Whether nothing but our command can have printed anything."""
    has_own = False
    for command in commands:
        if command[0] == "|":
            is_harmless = has_own and _is_filter(command[1:])
        elif _is_own_command(_without_prefix(command)):
            is_harmless = has_own = True
        else:
            is_harmless = _is_silent(command)
        if not is_harmless:
            return False
    return has_own


def _without_prefix(words: Sequence[str]) -> Sequence[str]:
    """A command without variables set for it, and without the program that runs it."""
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
    """Whether a command prints nothing, or only words of the call itself."""
    command = _without_prefix(words)
    name, given = "".join(command[:1]), command[1:]
    if name == "cd":
        # Commands within it only say where to go.
        return True
    if _has_substitution(words):
        return False
    match name:
        case "":
            return _PRINTING_BEFORE.isdisjoint(words)
        case "source" | ".":
            # Other scripts may print anything.
            return len(given) == 1 and _base_name(given[0]) == "activate"
        case "set":
            return bool(given) and given[-1] not in ("-o", "+o")
        case "export":
            return bool(given) and not given[0].startswith("-")
        case _:
            return name in _SILENT or name in _ECHOES


def _has_substitution(words: Sequence[str]) -> bool:
    """Whether another command runs within the words; that could print anything."""
    return any("$(" in word or "`" in word for word in words)


def _is_filter(words: Sequence[str]) -> bool:
    """Whether a command can print nothing but parts of what is piped into it."""
    known = _FILTERS.get(_base_name("".join(words[:1])))
    if known is None or _has_substitution(words):
        return False
    operands: list[str] = []
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            operands.append(word)
        elif word != "-" and not word[1:].isdigit():
            letters = word[1:].lstrip(known.flags)
            if letters and letters[0] not in known.valued:
                return False
            if len(letters) == 1:
                next(rest, None)
    if known.script is not None and not all(map(known.script.fullmatch, operands)):
        return False
    return len(operands) <= known.operands


def _base_name(path: str) -> str:
    return path.replace("\\", "/").rpartition("/")[2].lower()
