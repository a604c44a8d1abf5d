"""PROGRAMS: one row per agent program, with its package and how to prompt it."""

import json
from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Program:
    """An agent program. ``words`` and ``environ`` are for a prompt and a model's URL.

    ``reads`` is its name in the history, and ``files`` are files that its user already
    has. ``add_plugin`` is the command of its plugin manager that installs our plugin.
    """

    host: str
    reads: str
    package: str
    words: Callable[[str, str], list[str]]
    environ: Callable[[str], dict[str, str]]
    files: tuple[tuple[str, str], ...] = ()
    add_plugin: tuple[str, ...] = ()


def _claude(prompt: str, url: str) -> list[str]:
    servers = ["mcp__backstory", "mcp__plugin_backstory_backstory"]
    return ["claude", "-p", prompt, "--allowedTools", *servers]


def _codex(prompt: str, url: str) -> list[str]:
    provider = {"name": "fake", "base_url": f"{url}/v1", "wire_api": "responses"}
    written = ", ".join(f"{key}={json.dumps(value)}" for key, value in provider.items())
    return [
        "codex",
        "exec",
        "--skip-git-repo-check",
        # A person approves the hooks once, on the screen.
        "--dangerously-bypass-hook-trust",
        "-c",
        f"model_providers.fake={{{written}}}",
        "-c",
        "model_provider=fake",
        "-c",
        'mcp_servers.backstory.default_tools_approval_mode="approve"',
        # Otherwise, its only turn would not wait for the server to start.
        "-c",
        "mcp_servers.backstory.required=true",
        "-m",
        "fake-model",
        prompt,
    ]


def _gemini(prompt: str, url: str) -> list[str]:
    return ["gemini", "--skip-trust", "--yolo", "-m", "gemini-2.5-flash", "-p", prompt]


def _copilot(prompt: str, url: str) -> list[str]:
    return ["copilot", "--allow-all-tools", "--model", "fake-model", "-p", prompt]


def _opencode(prompt: str, url: str) -> list[str]:
    return ["opencode", "run", "--model", "fake/fake-model", prompt]


def _opencode_environ(url: str) -> dict[str, str]:
    provider = {
        "npm": "@ai-sdk/openai-compatible",
        "options": {"baseURL": f"{url}/v1", "apiKey": "k"},
        "models": {"fake-model": {"name": "Fake", "tool_call": True}},
    }
    config = {"provider": {"fake": provider}, "small_model": "fake/fake-model"}
    return {
        "OPENCODE_CONFIG_CONTENT": json.dumps(config),
        "OPENCODE_DISABLE_AUTOUPDATE": "1",
        "OPENCODE_DISABLE_MODELS_FETCH": "1",
    }


PROGRAMS = (
    Program(
        "claude-code",
        "claude-code",
        "@anthropic-ai/claude-code",
        _claude,
        lambda url: {
            "ANTHROPIC_BASE_URL": url,
            "ANTHROPIC_API_KEY": "k",
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        },
        add_plugin=("claude", "plugin", "install"),
    ),
    Program("codex", "codex", "@openai/codex", _codex, lambda url: {}),
    Program(
        "gemini",
        "gemini-cli",
        "@google/gemini-cli",
        _gemini,
        lambda url: {"GEMINI_API_KEY": "k", "GOOGLE_GEMINI_BASE_URL": url},
        files=(
            (
                ".gemini/settings.json",
                "{\n  // a key of my own\n"
                '  "security": {"auth": {"selectedType": "gemini-api-key"}}\n}\n',
            ),
        ),
    ),
    Program(
        "copilot",
        "copilot-cli",
        "@github/copilot",
        _copilot,
        lambda url: {
            "COPILOT_OFFLINE": "true",
            "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
            "COPILOT_PROVIDER_API_KEY": "k",
            "COPILOT_MODEL": "fake-model",
        },
        add_plugin=("copilot", "plugin", "install"),
    ),
    Program("opencode", "opencode", "opencode-ai", _opencode, _opencode_environ),
)
