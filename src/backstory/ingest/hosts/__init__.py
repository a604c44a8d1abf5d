"""HOSTS: one row per agent program, saying where its conversations are."""

from collections.abc import Iterable

from backstory.errors import UnknownName, nearest_hint
from backstory.ingest.hosts.base import Folder, Host, Pattern, Resume
from backstory.ingest.hosts.editors import in_editors
from backstory.text.arguments import show_name, to_text


def _moved_aside(name: str, format_name: str) -> tuple[Pattern, ...]:
    """Patterns for logs that were moved aside, ``*`` being their number: oldest first.

    Those with two digits are older than the rest, but in the order of their names.
    """
    numbers = ("[0-9][0-9]", *map(str, range(9, 0, -1)))
    return tuple(Pattern(name.replace("*", n), format_name) for n in numbers)


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
        resume=Resume("claude --resume {id}", in_project=True, is_of_parent=True),
    ),
    Host("aider", "Aider", in_projects=(Pattern(".aider.chat.history.md", "aider"),)),
    # These have no fixed place: they are read with --path.
    Host("chatgpt", "ChatGPT export"),
    Host("claude-ai", "Claude.ai export"),
    Host("jsonl", "Backstory's own format"),
    # An Android app: what is read is a copy pulled from the phone.
    Host(
        "oneclaw",
        "OneClaw",
        (
            Folder(
                ("${ONECLAW_HOME}", "~/.oneclaw"),
                (
                    Pattern("oneclaw.db", "oneclaw"),
                    Pattern("databases/oneclaw.db", "oneclaw"),
                    Pattern("memory/MEMORY.md", "oneclaw-notes"),
                    Pattern("memory/daily/*.md", "oneclaw-notes"),
                    Pattern("files/memory/MEMORY.md", "oneclaw-notes"),
                    Pattern("files/memory/daily/*.md", "oneclaw-notes"),
                ),
            ),
        ),
    ),
    # It keeps its data beside the program, or where its container mounts it.
    Host(
        "rockbot",
        "RockBot",
        (
            Folder(
                ("${AgentProfile__BasePath}", "linux:/data/agent"),
                (
                    Pattern("conversation-log/turns.jsonl.bak", "rockbot-log"),
                    *_moved_aside("conversation-log/turns.jsonl.*", "rockbot-log"),
                    Pattern("conversation-log/turns?*.jsonl", "rockbot-log"),
                    Pattern("conversation-log/turns.jsonl", "rockbot-log"),
                    Pattern("conversations/**/*.json", "rockbot-conversation"),
                ),
            ),
        ),
    ),
    Host(
        "shelley",
        "Shelley",
        (
            Folder(
                ("${XDG_CONFIG_HOME}/shelley", "~/.config/shelley"),
                (Pattern("shelley.db", "shelley"),),
            ),
        ),
    ),
    Host(
        "squidbot",
        "squidbot",
        (
            Folder(
                ("~/.squidbot",),
                (
                    Pattern("sessions/*.jsonl", "squidbot"),
                    Pattern("history[!.]*.jsonl", "squidbot"),
                    Pattern("history.[!0-9]*.jsonl", "squidbot"),
                    *_moved_aside("history.*.jsonl", "squidbot"),
                    Pattern("history.jsonl", "squidbot"),
                    Pattern("memory/*/memory.md", "squidbot-notes"),
                    Pattern("workspace/MEMORY.md", "squidbot-notes"),
                ),
            ),
        ),
    ),
    Host(
        "codex",
        "Codex",
        (
            Folder(
                ("${CODEX_HOME}", "~/.codex"),
                (
                    Pattern("sessions/**/rollout-*.jsonl", "codex"),
                    Pattern("sessions/**/rollout-*.jsonl.zst", "codex"),
                    Pattern("archived_sessions/**/rollout-*.jsonl", "codex"),
                    Pattern("archived_sessions/**/rollout-*.jsonl.zst", "codex"),
                    Pattern("state_*.sqlite", "codex-threads"),
                ),
            ),
            Folder(
                ("${CODEX_SQLITE_HOME}",),
                (Pattern("state_*.sqlite", "codex-threads"),),
            ),
        ),
        resume=Resume("codex resume {id}"),
    ),
    Host(
        "pi",
        "Pi",
        (
            Folder(
                ("${PI_CODING_AGENT_DIR}", "~/.pi/agent"),
                (
                    Pattern("sessions/*.jsonl", "pi"),
                    Pattern("sessions/*/*.jsonl", "pi"),
                ),
            ),
            Folder(
                ("${PI_CODING_AGENT_SESSION_DIR}",),
                (Pattern("*.jsonl", "pi"), Pattern("*/*.jsonl", "pi")),
            ),
        ),
        resume=Resume("pi --session {id}", in_project=True),
    ),
    Host(
        "openclaw",
        "OpenClaw",
        (
            Folder(
                (
                    "${OPENCLAW_STATE_DIR}",
                    "${OPENCLAW_HOME}/.openclaw",
                    "~/.openclaw",
                ),
                (
                    Pattern("agents/*/sessions/*.jsonl", "openclaw-file"),
                    Pattern("agents/*/agent/openclaw-agent.sqlite", "openclaw"),
                ),
            ),
        ),
    ),
    Host(
        "cursor",
        "Cursor",
        (
            Folder(
                ("~/.cursor",),
                (
                    Pattern("projects/*/agent-transcripts/**/*.jsonl", "cursor"),
                    Pattern("chats/*/*/meta.json", "cursor-chat"),
                ),
            ),
        ),
    ),
    Host(
        "gemini-cli",
        "Gemini CLI",
        (
            Folder(
                ("${GEMINI_CLI_HOME}/.gemini", "~/.gemini"),
                (
                    Pattern("tmp/*/chats/session-*.json", "gemini-cli-document"),
                    Pattern("tmp/*/chats/session-*.jsonl", "gemini-cli"),
                    Pattern("tmp/*/chats/*/*.jsonl", "gemini-cli"),
                ),
            ),
        ),
        resume=Resume("gemini --resume {id}", in_project=True, is_of_parent=True),
    ),
    Host(
        "copilot-cli",
        "GitHub Copilot CLI",
        (
            Folder(
                ("${COPILOT_HOME}", "~/.copilot"),
                (
                    Pattern("session-state/*.jsonl", "copilot-cli"),
                    Pattern("session-state/*/events.jsonl", "copilot-cli"),
                    Pattern("session-state/*/workspace.yaml", "copilot-cli-workspace"),
                ),
            ),
        ),
        resume=Resume("copilot --resume={id}", is_of_parent=True),
    ),
    Host(
        "opencode",
        "opencode",
        (
            Folder(
                # The same on every platform: opencode follows XDG everywhere.
                ("${XDG_DATA_HOME}/opencode", "~/.local/share/opencode"),
                (Pattern("opencode*.db", "opencode"),),
            ),
        ),
        resume=Resume("opencode --session {id}", in_project=True, is_of_parent=True),
    ),
    Host(
        "cline",
        "Cline",
        (
            Folder(
                ("${CLINE_DATA_DIR}", "${CLINE_DIR}/data", "~/.cline/data"),
                (
                    Pattern("tasks/*/ui_messages.json", "cline-task"),
                    Pattern("sessions/*/*.messages.json", "cline"),
                ),
            ),
            Folder(
                ("${CLINE_SESSION_DATA_DIR}",),
                (Pattern("*/*.messages.json", "cline"),),
            ),
            *in_editors(
                "globalStorage/saoudrizwan.claude-dev",
                Pattern("tasks/*/claude_messages.json", "cline-task"),
                Pattern("tasks/*/ui_messages.json", "cline-task"),
            ),
        ),
        resume=Resume(
            "cline --id {id}",
            in_project=True,
            is_of_parent=True,
            # Older tasks are continued in the editor.
            ending=".messages.json",
        ),
    ),
    Host(
        "roo-code",
        "Roo Code",
        in_editors(
            "globalStorage/rooveterinaryinc.roo-cline",
            Pattern("tasks/*/ui_messages.json", "roo-code"),
        ),
    ),
    Host(
        "qwen-code",
        "Qwen Code",
        (
            Folder(
                ("${QWEN_RUNTIME_DIR}", "${QWEN_HOME}", "~/.qwen"),
                (
                    Pattern("tmp/*/chats/session-*.json", "qwen-code-document"),
                    Pattern("projects/*/chats/*.jsonl", "qwen-code"),
                    Pattern("projects/*/subagents/*/agent-*.jsonl", "qwen-code"),
                    Pattern(
                        "projects/*/subagents/*/agent-*.meta.json",
                        "qwen-code-agent-meta",
                    ),
                ),
            ),
        ),
        resume=Resume("qwen --resume {id}", in_project=True, is_of_parent=True),
    ),
    Host(
        "goose",
        "Goose",
        (
            Folder(
                (
                    "${GOOSE_PATH_ROOT}/data/sessions",
                    "win32:${APPDATA}/Block/goose/data/sessions",
                    # On macOS too.
                    "${XDG_DATA_HOME}/goose/sessions",
                    "~/.local/share/goose/sessions",
                ),
                (Pattern("*.jsonl", "goose-file"), Pattern("sessions.db", "goose")),
            ),
        ),
        resume=Resume("goose session --resume --session-id {id}", is_of_parent=True),
    ),
    Host(
        "continue",
        "Continue",
        (
            Folder(
                ("${CONTINUE_GLOBAL_DIR}", "~/.continue"),
                # Not sessions.json, which lists them.
                (Pattern("sessions/*-*.json", "continue"),),
            ),
        ),
    ),
    Host(
        "vscode",
        "Copilot Chat",
        (
            *in_editors(
                "workspaceStorage",
                Pattern("*/chatSessions/*.json", "vscode"),
                Pattern("*/chatSessions/*.jsonl", "vscode-log"),
            ),
            *in_editors(
                "globalStorage",
                Pattern("emptyWindowChatSessions/*.json", "vscode"),
                Pattern("emptyWindowChatSessions/*.jsonl", "vscode-log"),
            ),
        ),
    ),
    Host(
        "zed",
        "Zed",
        (
            Folder(
                (
                    "darwin:~/Library/Application Support/Zed",
                    "win32:${LOCALAPPDATA}/Zed",
                    "${XDG_DATA_HOME}/zed",
                    "~/.local/share/zed",
                ),
                (Pattern("threads/threads.db", "zed"),),
            ),
            Folder(
                ("linux:~/.var/app/dev.zed.Zed/data/zed",),
                (Pattern("threads/threads.db", "zed"),),
            ),
        ),
    ),
    Host(
        "amp",
        "Amp",
        (
            Folder(
                # The same on every platform.
                ("${XDG_DATA_HOME}/amp", "~/.local/share/amp"),
                (Pattern("threads/T-*.json", "amp"),),
            ),
        ),
        resume=Resume("amp threads continue {id}", is_of_parent=True),
    ),
    Host(
        "llm",
        "llm",
        (
            Folder(
                (
                    "${LLM_USER_PATH}",
                    "darwin:~/Library/Application Support/io.datasette.llm",
                    "win32:${APPDATA}/io.datasette.llm",
                    "${XDG_CONFIG_HOME}/io.datasette.llm",
                    "~/.config/io.datasette.llm",
                ),
                (Pattern("logs.db", "llm"),),
            ),
        ),
    ),
)


def get_host(name: str, also: Iterable[str] = ()) -> Host:
    """The row of that name, ignoring case. Raises ``UnknownName`` with a hint.

    The first part of a name is enough if no other begins with it: ``gemini``. ``also``
    are more names that the hint may offer.
    """
    typed = show_name(to_text(name, "host"))
    named = [host for host in HOSTS if host.name == typed.lower()]
    begun = [host for host in HOSTS if host.name.startswith(f"{typed.lower()}-")]
    if named or len(begun) == 1:
        return (named or begun)[0]
    if begun:
        raise UnknownName(
            f"'{typed}' may be several agent programs",
            hint="say which: " + ", ".join(host.name for host in begun),
        )
    names = (host.name for host in HOSTS)
    raise UnknownName(
        f"no agent program is called '{typed}'",
        hint=nearest_hint(typed, dict.fromkeys([*names, *sorted(also)])),
    )
