"""Colours, on a terminal that has them."""

import os

import click

from backstory.cli.app import terminal_width
from backstory.render.layout import Style, plain_style


def choose_style() -> Style:
    """Colours on a terminal, plain everywhere else."""
    # NO_COLOR may have any value: see no-color.org.
    wants_plain = os.environ.get("NO_COLOR") or is_dumb()
    return plain_style if wants_plain or not terminal_width() else _style_for_terminal


def _style_for_terminal(text: str, kind: str) -> str:
    match kind:
        case "head":
            return click.style(text, fg="cyan")
        case "added":
            return click.style(text, fg="green")
        case "removed":
            return click.style(text, fg="red")
        case "dim":
            return click.style(text, dim=True)
        case _:
            return click.style(text, bold=True)


def is_dumb() -> bool:
    return os.environ.get("TERM") == "dumb"
