"""FORMATS: one row and one file per transcript format."""

from backstory.errors import UnknownName, nearest_hint
from backstory.ingest.importers.base import FormatRow

_HERE = "backstory.ingest.importers"

FORMATS = (
    FormatRow(
        "claude-code",
        "claude-code",
        f"{_HERE}.claude_code:ClaudeCode",
        "Claude Code sessions and subagents, one JSONL file each.",
    ),
    FormatRow(
        "claude-code-agent-meta",
        "claude-code",
        f"{_HERE}.claude_code:ClaudeCodeAgentMeta",
        "What a Claude Code subagent was asked to do.",
        is_companion=True,
    ),
    FormatRow(
        "chatgpt",
        "chatgpt",
        f"{_HERE}.chatgpt:ChatGpt",
        "The export of a ChatGPT account: conversations.json, on its own or in the "
        "zip.",
    ),
    FormatRow(
        "claude-ai",
        "claude-ai",
        f"{_HERE}.claude_ai:ClaudeAi",
        "The export of a Claude.ai account: conversations.json, on its own or in the "
        "zip.",
    ),
    FormatRow(
        "aider",
        "aider",
        f"{_HERE}.aider:Aider",
        "Aider's chat history, .aider.chat.history.md in each project.",
    ),
    FormatRow(
        "backstory-jsonl",
        "jsonl",
        f"{_HERE}.backstory_jsonl:BackstoryJsonl",
        "Backstory's own format, to which any other log can be converted.",
    ),
    FormatRow(
        "oneclaw",
        "oneclaw",
        f"{_HERE}.oneclaw:OneClaw",
        "OneClaw conversations, in oneclaw.db.",
    ),
    FormatRow(
        "oneclaw-notes",
        "oneclaw",
        f"{_HERE}.markdown_notes:OneClawNotes",
        "OneClaw's long-term memory and daily logs, in Markdown.",
    ),
    FormatRow(
        "rockbot-log",
        "rockbot",
        f"{_HERE}.rockbot:RockBotLog",
        "RockBot's log of all turns, in turns.jsonl.",
    ),
    FormatRow(
        "rockbot-conversation",
        "rockbot",
        f"{_HERE}.rockbot:RockBotConversation",
        "RockBot conversations, one JSON file each.",
    ),
    FormatRow(
        "shelley",
        "shelley",
        f"{_HERE}.shelley:Shelley",
        "Shelley conversations and subagents, in shelley.db.",
    ),
    FormatRow(
        "squidbot",
        "squidbot",
        f"{_HERE}.squidbot:Squidbot",
        "squidbot sessions and its one history, in JSONL files.",
    ),
    FormatRow(
        "squidbot-notes",
        "squidbot",
        f"{_HERE}.markdown_notes:SquidbotNotes",
        "squidbot's memory, in Markdown.",
    ),
    FormatRow(
        "codex",
        "codex",
        f"{_HERE}.codex:Codex",
        "Codex rollouts of all versions, compressed or not.",
    ),
    FormatRow(
        "codex-threads",
        "codex",
        f"{_HERE}.codex:CodexThreads",
        "What Codex threads are called, from its database.",
        is_companion=True,
    ),
    FormatRow(
        "pi",
        "pi",
        f"{_HERE}.pi:Pi",
        "Pi sessions, one JSONL file each.",
    ),
    FormatRow(
        "openclaw",
        "openclaw",
        f"{_HERE}.openclaw:OpenClaw",
        "OpenClaw sessions, one database per agent.",
    ),
    FormatRow(
        "openclaw-file",
        "openclaw",
        f"{_HERE}.openclaw:OpenClawFile",
        "OpenClaw sessions from before it had a database, one JSONL file each.",
    ),
    FormatRow(
        "cursor",
        "cursor",
        f"{_HERE}.cursor:Cursor",
        "Cursor agent transcripts and subagents, one JSONL file each.",
    ),
    FormatRow(
        "cursor-chat",
        "cursor",
        f"{_HERE}.cursor:CursorChat",
        "What a chat of Cursor's command line is called, and when it was.",
        is_companion=True,
    ),
    FormatRow(
        "gemini-cli",
        "gemini-cli",
        f"{_HERE}.gemini_cli:GeminiCli",
        "Gemini CLI sessions and subagents, one JSONL event log each.",
    ),
    FormatRow(
        "gemini-cli-document",
        "gemini-cli",
        f"{_HERE}.gemini_cli:GeminiCliDocument",
        "Older Gemini CLI sessions, one JSON document each.",
    ),
    FormatRow(
        "copilot-cli",
        "copilot-cli",
        f"{_HERE}.copilot_cli:CopilotCli",
        "GitHub Copilot CLI sessions and their subagents, one JSONL event log each.",
    ),
    FormatRow(
        "copilot-cli-workspace",
        "copilot-cli",
        f"{_HERE}.copilot_cli:CopilotCliWorkspace",
        "What a GitHub Copilot CLI session is called.",
        is_companion=True,
    ),
    FormatRow(
        "opencode",
        "opencode",
        f"{_HERE}.opencode:Opencode",
        "opencode sessions, all in one SQLite database.",
    ),
    FormatRow(
        "cline",
        "cline",
        f"{_HERE}.cline:Cline",
        "Cline sessions and subagents, one JSON document each.",
    ),
    FormatRow(
        "cline-task",
        "cline",
        f"{_HERE}.cline:ClineTask",
        "Older Cline tasks, one list of messages each.",
    ),
    FormatRow(
        "roo-code",
        "roo-code",
        f"{_HERE}.roo_code:RooCode",
        "Roo Code tasks, one list of messages each.",
    ),
    FormatRow(
        "qwen-code",
        "qwen-code",
        f"{_HERE}.qwen_code:QwenCode",
        "Qwen Code sessions and subagents, one JSONL file each.",
    ),
    FormatRow(
        "qwen-code-agent-meta",
        "qwen-code",
        f"{_HERE}.qwen_code:QwenCodeAgentMeta",
        "What a Qwen Code subagent was asked to do.",
        is_companion=True,
    ),
    FormatRow(
        "qwen-code-document",
        "qwen-code",
        f"{_HERE}.qwen_code:QwenCodeDocument",
        "Older Qwen Code sessions, one JSON document each.",
    ),
    FormatRow(
        "goose",
        "goose",
        f"{_HERE}.goose:Goose",
        "Goose sessions and subagents, all in one SQLite database.",
    ),
    FormatRow(
        "goose-file",
        "goose",
        f"{_HERE}.goose:GooseFile",
        "Goose sessions from before it had a database, one JSONL file each.",
    ),
    FormatRow(
        "continue",
        "continue",
        f"{_HERE}.continue_dev:Continue",
        "Continue sessions, one JSON document each.",
    ),
    FormatRow(
        "vscode",
        "vscode",
        f"{_HERE}.vscode:VsCode",
        "Chats in Visual Studio Code, one JSON document each.",
    ),
    FormatRow(
        "vscode-log",
        "vscode",
        f"{_HERE}.vscode:VsCodeLog",
        "Chats in Visual Studio Code since 2026, one log of changes each.",
    ),
    FormatRow(
        "zed",
        "zed",
        f"{_HERE}.zed:Zed",
        "Threads of Zed's agent, all in one SQLite database.",
    ),
    FormatRow(
        "amp",
        "amp",
        f"{_HERE}.amp:Amp",
        "Amp threads that are kept on the machine, one JSON document each.",
    ),
    FormatRow(
        "llm",
        "llm",
        f"{_HERE}.llm:LlmLogs",
        "Conversations with llm, all in one SQLite database.",
    ),
)


def get_format(name: str) -> FormatRow:
    """The row of that name. Raises ``UnknownName`` with all the names there are."""
    for row in FORMATS:
        if row.name == name:
            return row
    raise UnknownName(
        f"no format is called '{name}'",
        hint=nearest_hint(name, (row.name for row in FORMATS)),
    )
