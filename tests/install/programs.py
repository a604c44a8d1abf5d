"""Small programs that take the command lines of the real ones, for a PATH in tests."""

import json
import stat
import sys
from pathlib import Path

# As Claude Code 2.1.197 does: it keeps its state in the same file, and says so.
_CLAUDE = """\
#!{python}
import json, os, sys
from pathlib import Path

path = Path(os.environ["HOME"], ".claude.json")
state = json.loads(path.read_text()) if path.exists() else {{"firstStartTime": "now"}}
match sys.argv[1:]:
    case ["mcp", "add-json", "-s", scope, name, entry]:
        servers = state
        if scope == "local":
            servers = state.setdefault("projects", {{}}).setdefault(os.getcwd(), {{}})
        servers = servers.setdefault("mcpServers", {{}})
        if name in servers:
            sys.exit(f"MCP server {{name}} already exists in {{scope}} config")
        servers[name] = json.loads(entry)
        print(f"Added stdio MCP server {{name}} to {{scope}} config")
    case ["mcp", "remove", "-s", scope, name]:
        holder = state if scope == "user" else state["projects"][os.getcwd()]
        del holder["mcpServers"][name]
        print(f"Removed MCP server {{name}} from {{scope}} config")
    case _:
        sys.exit("error: unknown command")
path.write_text(json.dumps(state, indent=2))
"""


def install_claude(folder: Path) -> str:
    """Put Claude Code's command into a folder; return a PATH that finds it."""
    return _write(folder, "claude", _CLAUDE.format(python=sys.executable))


def install_failing(folder: Path, name: str, says: str) -> str:
    """A program that fails, and says why."""
    script = f"#!{sys.executable}\nimport sys\nsys.exit({json.dumps(says)})\n"
    return _write(folder, name, script)


def _write(folder: Path, name: str, script: str) -> str:
    folder.mkdir(exist_ok=True)
    program = folder / name
    program.write_text(script)
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    return str(folder)
