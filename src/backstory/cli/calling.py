"""call, tools: what an agent would get."""

import sys

import click
import orjson

from backstory import render
from backstory.cli.app import (
    FOUND_NOTHING,
    Context,
    commands,
    echo_lines,
    terminal_width,
)
from backstory.errors import BackstoryError, BadQuery, UnknownName, nearest_hint
from backstory.memory import Memory
from backstory.tools import SCHEMA_FORMATS, TOOLS, Tool, bind_tools, schemas
from backstory.tools.base import VALIDATION_ERROR


@commands.command()
@click.argument("tool", metavar="TOOL")
@click.argument("arguments", metavar="[JSON]", default="{}")
@click.option("--json", "as_json", is_flag=True, help="Text, data and error.")
@click.pass_obj
def call(context: Context, tool: str, arguments: str, as_json: bool) -> None:
    """Call a tool as an agent would; JSON is an object, or - to read it.

    Exit code 1 says that nothing was found, 14 that an argument is wrong.
    """
    given = _parse_arguments(arguments)
    result = _get_tool(context.memory, tool).call(given)
    if as_json:
        whole = {"text": result.text, "data": result.data, "error": result.error}
        click.echo(render.to_json(whole))
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
    help="Their JSON Schemas, as this API wants them.",
)
@click.pass_obj
def tools(context: Context, format: str | None) -> None:
    """List the tools that an agent may be given."""
    bound = bind_tools(context.memory)
    if format is not None:
        click.echo(render.to_json(schemas(bound, format)))
        return
    rows = [(tool.name, tool.description.partition(". ")[0]) for tool in bound]
    heads = ("NAME", "WHAT IT DOES")
    echo_lines(render.render_columns(heads, rows, width=terminal_width()))


def _parse_arguments(text: str) -> dict[str, object]:
    if text == "-":
        text = sys.stdin.read()
    try:
        given = orjson.loads(text)
    except orjson.JSONDecodeError as exc:
        raise click.UsageError(f"The arguments are not valid JSON: {exc}") from None
    if not isinstance(given, dict):
        raise click.UsageError("The arguments are no JSON object, such as {}.")
    return given


def _get_tool(memory: Memory, name: str) -> Tool:
    bound = {tool.name: tool for tool in bind_tools(memory)}
    if name in bound:
        return bound[name]
    for row in TOOLS:
        if row.name == name:
            raise UnknownName(
                f"the tool '{name}' is turned off",
                hint=f"the setting {row.setting} turns it on",
            )
    hint = nearest_hint(name, bound) if bound else "every tool is turned off"
    raise UnknownName(f"no tool is called '{name}'", hint=hint)
