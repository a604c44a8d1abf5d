"""HOSTS: one row per agent program, saying where its conversations are."""

from backstory.errors import UnknownName
from backstory.hosts.base import Folder, Host, Pattern

HOSTS = (
    Host(
        "claude-code",
        "Claude Code",
        (
            Folder(
                ("${CLAUDE_CONFIG_DIR}", "~/.claude"),
                (
                    Pattern("projects/*/*.jsonl", "claude-code"),
                    Pattern("projects/*/*/subagents/**/agent-*.jsonl", "claude-code"),
                    Pattern(
                        "projects/*/*/subagents/**/agent-*.meta.json",
                        "claude-code-agent-meta",
                    ),
                ),
            ),
        ),
    ),
)


def get_host(name: str) -> Host:
    """The row of that name. Raises ``UnknownName`` with all the names there are."""
    for host in HOSTS:
        if host.name == name:
            return host
    raise UnknownName(
        f"no agent program is called '{name}'",
        hint="the names are: " + ", ".join(host.name for host in HOSTS),
    )
