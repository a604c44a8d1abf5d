"""Files as users of agent programs have them: comments, odd line ends, marks."""

from pathlib import Path

HOSTS = ("claude-code", "codex", "gemini", "copilot", "opencode", "cursor", "vscode")

# What a program's user may have, by file; each is a version of one user's home.
USER_FILES: dict[str, dict[str, bytes]] = {
    "nothing": {},
    "usual": {
        ".claude.json": b'{\n  "numStartups": 3,\n  "mcpServers": {}\n}',
        ".claude/settings.json": b"""{
  "model": "opus",
  "hooks": {
    "SessionStart": [
      {
        "matcher": "startup",
        "hooks": [
          {
            "type": "command",
            "command": "echo hi"
          }
        ]
      }
    ]
  },
  "permissions": {
    "allow": ["Bash(ls:*)"]
  }
}
""",
        ".codex/config.toml": b"""# my settings
model = "gpt-5" # the good one

[mcp_servers.docs]
command = "npx"
args = ["-y", "docs"]

# projects
[projects."/home/me/x"]
trust_level = "trusted"
""",
        ".codex/hooks.json": b'{"hooks": {"Stop": [{"hooks": []}]}}',
        ".gemini/settings.json": b'{\n\t// look\n\t"ui": {"theme": "GitHub"},\n}\n',
        ".copilot/mcp-config.json": b'{"mcpServers":{"x":{"command":"x"}}}',
        ".config/opencode/opencode.jsonc": b'{ // mine\n  "theme": "nord" }\n',
        ".cursor/mcp.json": b'{\n    "mcpServers": {}\n}',
        ".cursor/hooks.json": b'{\n  "version": 1,\n  "hooks": {}\n}\n',
        ".config/Code/User/mcp.json": b'{\n\t"inputs": [],\n\t"servers": {}\n}',
    },
    "odd": {
        ".claude.json": b'{"projects":{"/x":{"mcpServers":{"a":{"command":"b"}}}}}',
        ".claude/settings.json": b'\xef\xbb\xbf{\r\n    "env": { },\r\n}\r\n\r\n',
        ".codex/config.toml": b'\xef\xbb\xbfmodel = "x"\r\n\r\n[tui]\r\nok = true',
        ".codex/hooks.json": b"{\n\n}",
        ".gemini/settings.json": (
            b'/* top */ {"hooks": {"BeforeAgent": [\r\n] /* none */ }, '
            b'"mcpServers": {\r\n\r\n}} // end'
        ),
        ".copilot/mcp-config.json": b"",
        ".config/opencode/opencode.json": b'{"mcp":{"b":{"enabled":false}}}',
        ".cursor/mcp.json": b"{}",
        ".cursor/hooks.json": b'{"hooks":{"stop":[{"command":"x"}]},"version":1}',
        ".config/Code/User/mcp.json": b'// servers\n{\n  "servers": {\n  },\n}\n',
    },
}


def write_files(home: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        path = home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)


def everything(home: Path) -> dict[str, bytes | None]:
    """Every file with its content, and every folder, apart from our own."""
    found = {
        str(path.relative_to(home)): path.read_bytes() if path.is_file() else None
        for path in sorted(home.rglob("*"))
    }
    return {
        name: content
        for name, content in found.items()
        if not name.startswith(".local")
    }
