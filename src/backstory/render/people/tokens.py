"""Access tokens, for people."""

from collections.abc import Iterator, Sequence
from datetime import datetime

from backstory.render.layout import render_columns, to_cell
from backstory.values.access import AccessToken


def render_token(token: AccessToken) -> str:
    """A token in a sentence."""
    whose = f" of {to_cell(token.tenant)}" if token.tenant else ""
    name = to_cell(token.name)
    return f"token {token.token_id} ({name}, {token.scope.value}{whose})"


def render_tokens(tokens: Sequence[AccessToken], *, now: datetime) -> Iterator[str]:
    """A table of tokens."""
    heads = [
        "no.",
        "name",
        "tenant",
        "scope",
        "begins with",
        "made",
        "ends",
        "last used",
    ]
    rows = [
        [
            str(each.token_id),
            each.name,
            each.tenant or "-",
            each.scope.value,
            f"{each.beginning}…",
            f"{each.created_at.astimezone():%Y-%m-%d}",
            _render_end(each, now),
            str(each.last_used_on or "never"),
        ]
        for each in tokens
    ]
    return render_columns(heads, rows, right={0}, width=None)


def _render_end(token: AccessToken, now: datetime) -> str:
    if token.expires_at is None:
        return "never"
    if token.expires_at <= now:
        return "expired"
    return f"{token.expires_at.astimezone():%Y-%m-%d %H:%M}"
