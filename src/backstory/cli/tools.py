"""call, tools: call the tools of an agent, and list them."""

import logging
import re
import sys
from pathlib import Path
from typing import Any

import click
import orjson
from click.core import ParameterSource

from backstory.cli.app import (
    FOUND_NOTHING,
    App,
    Command,
    commands,
    echo_lines,
    terminal_width,
)
from backstory.cli.parameters import TOOL
from backstory.errors import BackstoryError, BadQuery, UnknownName, nearest_hint
from backstory.memory import Memory
from backstory.render.layout import render_columns
from backstory.render.objects import to_json
from backstory.runs.history import RunHistory
from backstory.text.escape import neutralize
from backstory.tools import (
    ALL_TOOLS,
    RUN_TOOLS,
    SCHEMA_FORMATS,
    Tool,
    bind_tools,
    schemas,
)
from backstory.tools.base import VALIDATION_ERROR

logger = logging.getLogger(__name__)

# Claude Code sets it for the programs that it starts.
_SESSION_VARIABLE = "CLAUDE_CODE_SESSION_ID"
# Far more than any model writes into a call.
_MAX_INPUT_BYTES = 16 * 1024 * 1024

# Between the words of a class name.
_NEXT_WORD = re.compile(r"(?<=[a-z])(?=[A-Z])")


class CallCommand(Command):
    """A command that, with --json, prints a result whatever happens.

    Its caller is a program that reads a tool's result, and an error is one. It has the
    text, the exit code and the shape of any other error of a tool.
    """

    def make_context(
        self,
        info_name: str | None,
        args: list[str],
        parent: click.Context | None = None,
        # Any: click's own signature.
        **extra: Any,
    ) -> click.Context:
        is_json = "--json" in args
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as exc:
            if not is_json:
                raise
            _echo_failure(exc.format_message(), "usage_error")
            raise SystemExit(exc.exit_code) from exc

    def invoke(self, ctx: click.Context) -> object:
        if not ctx.params["as_json"]:
            return super().invoke(ctx)
        try:
            return super().invoke(ctx)
        except BackstoryError as exc:
            said = f"{exc}\nHint: {exc.hint}" if exc.hint else str(exc)
            _echo_failure(said, _to_code(type(exc).__name__))
            raise SystemExit(exc.exit_code) from exc
        except click.UsageError as exc:
            _echo_failure(exc.format_message(), "usage_error")
            raise SystemExit(exc.exit_code) from exc
        except (BrokenPipeError, click.exceptions.Exit):
            raise
        except Exception as exc:
            logger.exception("the tool could not be called")
            _echo_failure(f"{type(exc).__name__}: {exc}", "unexpected_error")
            raise SystemExit(BackstoryError.exit_code) from exc


def _to_code(name: str) -> str:
    """The name of an error as programs know it: ``store_damaged``."""
    return _NEXT_WORD.sub("_", name).lower()


def _echo_failure(text: str, code: str) -> None:
    failure = {"text": neutralize(text), "data": None, "error": code}
    click.echo(to_json(failure))


@commands.command(cls=CallCommand)
@click.argument("tool", type=TOOL, metavar="TOOL")
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option(
    "--session",
    metavar="ID",
    envvar=_SESSION_VARIABLE,
    help="Id of the calling session, as its agent program knows it.",
)
@click.option(
    "--transcript",
    type=click.Path(path_type=Path),
    help="The transcript of the calling session, instead of its id.",
)
@click.option(
    "--json", "as_json", is_flag=True, help="Print one JSON object, also for an error."
)
@click.pass_obj
def call(
    app: App,
    tool: str,
    arguments: str,
    session: str | None,
    transcript: Path | None,
    as_json: bool,
) -> None:
    """Call a tool as an agent would.

    JSON is an object with the arguments, or - to read it from standard input. The tools
    that search the run in progress need --session or --transcript. Exit code 1 means
    that nothing was found, 14 that an argument is wrong.
    """
    given = _parse_arguments(arguments)
    run = None
    if tool in {row.name for row in RUN_TOOLS}:
        run = _open_run(app.memory, session, transcript)
    result = _get_tool(app.memory, tool, session, run).call(given)
    if as_json:
        whole = {"text": result.text, "data": result.data, "error": result.error}
        click.echo(to_json(whole))
    else:
        click.echo(result.text, err=result.error is not None)
    if result.error is not None:
        is_bad = result.error == VALIDATION_ERROR
        raise SystemExit(BadQuery.exit_code if is_bad else BackstoryError.exit_code)
    if result.is_empty:
        raise SystemExit(FOUND_NOTHING)


@commands.command()
@click.option(
    "--format",
    type=click.Choice(SCHEMA_FORMATS),
    help="Print their JSON Schemas in the format of this API.",
)
@click.pass_obj
def tools(app: App, format: str | None) -> None:
    """List the tools that agents can be given."""
    bound = bind_tools(app.memory, run=app.memory.new_run())
    if format is not None:
        click.echo(to_json(schemas(bound, format)))
        return
    rows = [(tool.name, tool.description.partition(". ")[0]) for tool in bound]
    heads = ("NAME", "WHAT IT DOES")
    echo_lines(render_columns(heads, rows, width=terminal_width(), is_whole=True))


def _parse_arguments(text: str) -> dict[str, object]:
    try:
        given = orjson.loads(_read_input() if text == "-" else text)
    except orjson.JSONDecodeError as exc:
        raise click.UsageError(f"The arguments are not valid JSON: {exc}") from None
    if not isinstance(given, dict):
        raise click.UsageError("The arguments must be a JSON object, such as {}.")
    return given


def _read_input() -> bytes:
    # As bytes: what is not UTF-8 is not JSON either.
    raw = sys.stdin.buffer.read(_MAX_INPUT_BYTES + 1)
    if len(raw) > _MAX_INPUT_BYTES:
        raise click.UsageError(
            f"The arguments have more than {_MAX_INPUT_BYTES:,} bytes."
        )
    return raw


def _open_run(
    memory: Memory, session: str | None, transcript: Path | None
) -> RunHistory:
    """The run to search; reads it, so that a problem has its own exit code."""
    source = click.get_current_context().get_parameter_source("session")
    is_default = source is ParameterSource.ENVIRONMENT
    if is_default and transcript is not None:
        # A transcript that is named is of another session, or of a subagent.
        session = None
    try:
        run = memory.live_run(session, transcript=transcript)
        len(run)
    except UnknownName as exc:
        if is_default:
            message = f"{exc} (the id is from {_SESSION_VARIABLE})"
            raise UnknownName(message, hint=exc.hint) from exc
        raise
    return run


def _get_tool(
    memory: Memory, name: str, session: str | None, run: RunHistory | None
) -> Tool:
    bound = {tool.name: tool for tool in bind_tools(memory, session=session, run=run)}
    if name in bound:
        return bound[name]
    for row in ALL_TOOLS:
        if row.name == name:
            raise UnknownName(
                f"the tool '{name}' is turned off",
                hint=f"the setting {row.setting} turns it on",
            )
    known = [*bound, *(row.name for row in RUN_TOOLS)]
    hint = nearest_hint(name, known) if bound else "every tool is turned off"
    raise UnknownName(f"no tool is called '{name}'", hint=hint)
