"""What a tool is: a row that describes it, and the tool that a memory makes from it.

A tool never raises into the program that calls it. An argument it cannot use is a
``validation_error``; anything else that goes wrong is a ``search_error`` or a
``save_error``. The text is always meant for the model that called.
"""

import copy
import logging
import math
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from enum import Enum
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

import orjson

from backstory.errors import BackstoryError, UnknownName, nearest_hint, show_value
from backstory.text.arguments import check_text
from backstory.text.cut import one_line
from backstory.text.envelope import echo_query, label
from backstory.values.notes import FactOrigin
from backstory.values.structs import FrozenStruct
from backstory.values.tool_names import enabling_setting

if TYPE_CHECKING:
    from backstory.memory import Memory

logger = logging.getLogger(__name__)

VALIDATION_ERROR = "validation_error"
SEARCH_ERROR = "search_error"
SAVE_ERROR = "save_error"
NOT_FOUND = "not_found"
EMPTY = "Parameter '{name}' is required and cannot be empty"
# How much of a wrong value is quoted in an error.
_MAX_QUOTED_CHARS = 100
# Long enough for the names of several sessions.
_MAX_SENTENCE_CHARS = 400
# The name of the list in a result that must be an object.
_LIST_NAME = "results"
FAILURES: Mapping[str | None, str] = {
    SEARCH_ERROR: "Search failed",
    SAVE_ERROR: "Saving failed",
}

JsonSchema = Mapping[str, object]
Arguments = Mapping[str, object]


class ToolResult(FrozenStruct):
    """What a tool answers: text for the model, data for a program, or an error.

    If there is an ``error``, ``text`` says what was wrong and ``data`` is None.
    """

    text: str
    data: object | None = None
    error: str | None = None

    @property
    def structured(self) -> Mapping[str, object] | None:
        """The data as one object, as MCP takes it: a list is put into ``results``."""
        if self.data is None or isinstance(self.data, Mapping):
            return self.data
        return {_LIST_NAME: self.data}

    @property
    def is_empty(self) -> bool:
        """Whether the tool searched and found nothing."""
        found = self.data
        if isinstance(found, Mapping):
            found = found.get("results")
        return isinstance(found, list) and not found


class BadArgument(Exception):
    """An argument that a tool cannot use; the message is meant for a model."""


class Changes(Enum):
    """What a call of a tool does to the memory."""

    NOTHING = "it only reads"
    ADDS = "it adds something, once however often it is called"
    REPLACES = "it replaces or removes something"


# What a tool works on.
Subject = TypeVar("Subject")


class Asker(FrozenStruct):
    """A memory, and the session that asks it, if known."""

    memory: "Memory"
    session: str | None = None

    @property
    def folder(self) -> Path:
        """The folder that the agent works in."""
        return self.memory.folder_of(self.session)

    @property
    def origin(self) -> FactOrigin:
        """The origin of a fact that the agent saves."""
        return self.memory.origin_of(self.session)


class ToolRow(FrozenStruct, Generic[Subject]):
    """One row: a tool's name, title, description, schemas and function.

    ``output`` is the schema of the data in a result. ``run`` gets what the tool works
    on and the arguments; it may raise ``BadArgument``. ``failure`` is the error for
    anything else that goes wrong. ``changes`` says what calling it does to the memory.
    """

    name: str
    title: str
    description: str
    parameters: JsonSchema
    output: JsonSchema
    run: Callable[[Subject, Arguments], ToolResult]
    failure: str = SEARCH_ERROR
    changes: Changes = Changes.NOTHING

    @property
    def setting(self) -> str:
        """The setting that turns the tool on or off."""
        return enabling_setting(self.name)


class Tool:
    """A tool of one memory or run, for an agent to call from any thread.

    ``on_answer`` is called with what the tool answers, so that it is recognized later.
    """

    def __init__(
        self,
        row: ToolRow[Subject],
        subject: Subject,
        on_answer: Callable[[str], None] = lambda text: None,
    ) -> None:
        self.name = row.name
        self.title = row.title
        self.description = row.description
        self.changes = row.changes
        self._parameters = row.parameters
        self._output = row.output
        self._failure = row.failure
        self._run = partial(row.run, subject)
        self._on_answer = on_answer

    @property
    def parameters(self) -> dict[str, object]:
        """The JSON Schema of the arguments; a copy, yours to change."""
        return copy.deepcopy(dict(self._parameters))

    @property
    def output(self) -> dict[str, object]:
        """The JSON Schema of ``ToolResult.structured``; a copy, yours to change."""
        schema = copy.deepcopy(dict(self._output))
        if schema["type"] == "object":
            return schema
        properties = {_LIST_NAME: schema}
        return {"type": "object", "properties": properties, "required": [_LIST_NAME]}

    def __repr__(self) -> str:
        return f"<Tool {self.name}>"

    def run(self, /, **arguments: object) -> ToolResult:
        """Call the tool with keyword arguments."""
        return self.call(arguments)

    def call(self, arguments: Arguments | str | None = None) -> ToolResult:
        """Call the tool with the arguments that a model gave. Never raises.

        They may also be the text of a JSON object, as in some APIs.
        """
        result = self._call(arguments)
        self._on_answer(result.text)
        return result

    def _call(self, arguments: Arguments | str | None) -> ToolResult:
        try:
            given = _parse_arguments(arguments)
            check_names(given, self._parameters)
            return self._run(given)
        except BadArgument as exc:
            return ToolResult(str(exc), error=VALIDATION_ERROR)
        except BackstoryError as exc:
            # The message says what is wrong; a traceback would not help anybody.
            logger.info("the tool %s failed: %s", self.name, exc)
            return self._say_failure(exc)
        except Exception as exc:
            logger.exception("the tool %s failed", self.name)
            return self._say_failure(exc)

    def _say_failure(self, exc: Exception) -> ToolResult:
        words = echo_query(str(exc)) or type(exc).__name__
        return ToolResult(f"{FAILURES[self._failure]}: {words}", error=self._failure)

    async def acall(self, arguments: Arguments | str | None = None) -> ToolResult:
        """Call the tool in a thread, for programs that must not block."""
        # Imported here: a program that awaits has loaded it already; others do not need
        # it.
        import asyncio

        return await asyncio.to_thread(self.call, arguments)


# -- schemas --------------------------------------------------------------------------

_SHAPES: Mapping[str, Callable[[Tool], dict[str, object]]] = {
    "openai": lambda tool: {
        "type": "function",
        "function": {
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        },
    },
    "openai-responses": lambda tool: {
        "type": "function",
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    },
    "anthropic": lambda tool: {
        "name": tool.name,
        "description": tool.description,
        "input_schema": tool.parameters,
    },
    "mcp": lambda tool: {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.parameters,
        "outputSchema": tool.output,
        "annotations": {
            "readOnlyHint": tool.changes is Changes.NOTHING,
            "destructiveHint": tool.changes is Changes.REPLACES,
            "idempotentHint": tool.changes is not Changes.REPLACES,
            "openWorldHint": False,
        },
    },
    "plain": lambda tool: {
        "name": tool.name,
        "description": tool.description,
        "parameters": tool.parameters,
    },
}
SCHEMA_FORMATS = tuple(_SHAPES)


def schemas(tools: Sequence[Tool], format: str = "plain") -> list[dict[str, object]]:
    """The tools as an API expects them; ``format`` is one of SCHEMA_FORMATS."""
    if check_text(format, "format") not in _SHAPES:
        raise UnknownName(
            f"no schema format is called '{format}'",
            hint=nearest_hint(format, _SHAPES),
        )
    return [_SHAPES[format](tool) for tool in tools]


# -- arguments ------------------------------------------------------------------------


def _parse_arguments(arguments: Arguments | str | None) -> Arguments:
    if not isinstance(arguments, str):
        return {} if arguments is None else arguments
    try:
        parsed: Arguments = orjson.loads(arguments or "{}")
    except orjson.JSONDecodeError as exc:
        raise BadArgument(f"Arguments must be a JSON object: {exc}") from exc
    return parsed


def check_names(arguments: object, parameters: JsonSchema) -> None:
    """Refuse arguments that are not an object, or that have an unknown name."""
    if not isinstance(arguments, Mapping):
        raise BadArgument(f"Arguments must be a JSON object: {say_value(arguments)}")
    properties = parameters["properties"]
    assert isinstance(properties, Mapping)
    for name in arguments:
        if name not in properties:
            known = ", ".join(properties)
            raise BadArgument(
                f"Unknown parameter '{say_value(name)}'. Must be one of: {known}"
            )


def read_query(arguments: Arguments) -> str:
    return read_text(arguments, "query")


def read_text(arguments: Arguments, name: str) -> str:
    text = read_optional_text(arguments, name)
    if text is None:
        raise BadArgument(EMPTY.format(name=name))
    return text


def read_choice(
    arguments: Arguments, name: str, choices: Collection[str], *, default: str
) -> str:
    value = arguments.get(name)
    if value is None:
        return default
    if not isinstance(value, str) or value not in choices:
        known = ", ".join(choices)
        raise BadArgument(
            f"Invalid {name} '{say_value(value)}'. Must be one of: {known}"
        )
    return value


def read_number(
    arguments: Arguments, name: str, *, default: int, maximum: int, minimum: int = 1
) -> int:
    """A whole number; the default if missing or too small. Models also write "5"."""
    value = arguments.get(name)
    if value is None:
        return default
    number = math.nan
    if isinstance(value, int) and not isinstance(value, bool):
        number = min(max(value, minimum - 1), maximum)
    elif isinstance(value, float | str):
        with suppress(ValueError):
            number = float(value)
    if not math.isfinite(number):
        raise BadArgument(f"Parameter '{name}' must be a number: {say_value(value)}")
    return min(int(number), maximum) if number >= minimum else default


def read_flag(arguments: Arguments, name: str) -> bool:
    """True or false, false if missing. Models also write "true"."""
    value = arguments.get(name)
    if value is None or isinstance(value, bool):
        return bool(value)
    if isinstance(value, str) and value.lower() in ("true", "false"):
        return value.lower() == "true"
    raise BadArgument(f"Parameter '{name}' must be true or false: {say_value(value)}")


def read_optional_text(arguments: Arguments, name: str) -> str | None:
    """A text; None if missing or blank, as models leave out what is optional."""
    value = arguments.get(name)
    if value is not None and not isinstance(value, str):
        raise BadArgument(f"Parameter '{name}' must be a string: {say_value(value)}")
    return value if value and value.strip() else None


def say_unknown(exc: BackstoryError, hint: str) -> str:
    """What does not exist, and what to do instead, as sentences."""
    sentences = [label(said, _MAX_SENTENCE_CHARS) for said in (str(exc), hint) if said]
    said = " ".join(f"{each[0].upper()}{each[1:]}." for each in sentences)
    return said.replace("?.", "?")


def say_value(value: object) -> str:
    """A value, as quoted in an answer."""
    if isinstance(value, bool):
        return str(value).lower()
    words = str(value) if isinstance(value, str | BackstoryError) else show_value(value)
    return one_line(echo_query(words), _MAX_QUOTED_CHARS)
