"""Messages and replies in the shape of each dialect, and what is to be read in them.

Shapes as in the types of the packages anthropic 2.8, openai 3.49, ollama 0.6,
langchain-core 1.7 and pydantic-ai 2.66.
"""

from dataclasses import dataclass

from backstory.runs.dialects.base import Part
from backstory.text.json_values import JsonObject
from backstory.values.history import Role

SHORT = "much shorter"


@dataclass(frozen=True)
class Sample:
    """A message, its parts, and the message when each of its results is ``SHORT``.

    Without ``trimmed`` there is nothing in it that may change.
    """

    dialect: str
    name: str
    message: JsonObject
    parts: list[Part]
    trimmed: JsonObject | None = None


def said(role: Role, text: str, media: int = 0) -> Part:
    return Part(role, text, media=media)


def call(text: str, name: str | None, call_id: str | None) -> Part:
    return Part(Role.TOOL_CALL, text, name, call_id)


def result(text: str, name: str | None, call_id: str | None, media: int = 0) -> Part:
    return Part(Role.TOOL_RESULT, text, name, call_id, media)


def fixed(text: str, name: str | None, call_id: str | None, media: int = 0) -> Part:
    return Part(Role.TOOL_RESULT, text, name, call_id, media, is_fixed=True)


PICTURE = {
    "type": "image",
    "source": {"type": "base64", "media_type": "image/png", "data": "iVBORw0"},
}
PICTURE_URL = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iV"}}
INPUT_IMAGE = {"type": "input_image", "detail": "auto", "image_url": "data:image/png,i"}

# What every dialect takes for its own.
SHARED: list[tuple[JsonObject, list[Part]]] = [
    ({"role": "user", "content": "Hi"}, [said(Role.USER, "Hi")]),
    ({"role": "assistant", "content": "Yes?"}, [said(Role.ASSISTANT, "Yes?")]),
    ({"role": "system", "content": "Be kind."}, [said(Role.SYSTEM, "Be kind.")]),
    ({"role": "user", "content": ""}, []),
    ({"role": "user", "content": []}, []),
    (
        {
            "role": "user",
            "content": [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}],
        },
        [said(Role.USER, "a\nb")],
    ),
    (
        {"role": "user", "content": "half \ud83d of a \x00 character"},
        [said(Role.USER, "half \ud83d of a \x00 character")],
    ),
]

# -- Anthropic ------------------------------------------------------------------------


def of_anthropic(*blocks: JsonObject, role: str = "user") -> JsonObject:
    return {"role": role, "content": list(blocks)}


def tool_result(content: object, **more: object) -> JsonObject:
    return {
        "type": "tool_result",
        "tool_use_id": "toolu_1",
        "content": content,
        **more,
    }


ANTHROPIC = [
    Sample(
        "anthropic",
        "a picture between words",
        of_anthropic(
            {"type": "text", "text": "What is"},
            PICTURE,
            {"type": "text", "text": "this?"},
        ),
        [said(Role.USER, "What is\n[image]\nthis?", 1)],
    ),
    Sample(
        "anthropic",
        "documents",
        of_anthropic(
            {
                "type": "document",
                "title": "Notes",
                "context": "of May",
                "source": {"type": "text", "media_type": "text/plain", "data": "Eggs"},
            },
            {
                "type": "document",
                "source": {
                    "type": "content",
                    "content": [{"type": "text", "text": "Milk"}],
                },
            },
            {
                "type": "document",
                "title": "Bill",
                "source": {"type": "url", "url": "https://example.org/bill.pdf"},
            },
            {
                "type": "search_result",
                "source": "https://example.org",
                "title": "Shops",
                "content": [{"type": "text", "text": "Open till nine"}],
            },
            {"type": "container_upload", "file_id": "file_1"},
        ),
        [
            said(
                Role.USER,
                "Notes\nof May\nEggs\nMilk\n[document: Bill]\n"
                "Shops\nhttps://example.org\nOpen till nine\n[file]",
                2,
            )
        ],
    ),
    Sample(
        "anthropic",
        "thinking, words and calls",
        of_anthropic(
            {"type": "thinking", "thinking": "First the files.", "signature": "EqQB"},
            {"type": "redacted_thinking", "data": "EmwK"},
            {"type": "text", "text": "I look.", "citations": None},
            {
                "type": "tool_use",
                "id": "toolu_1",
                "name": "ls",
                "input": {"path": "é", "all": None},
            },
            {"type": "tool_use", "id": "toolu_2", "name": "pwd", "input": {}},
            {
                "type": "mcp_tool_use",
                "id": "mcptoolu_1",
                "name": "echo",
                "server_name": "here",
                "input": {"text": "a"},
            },
            {"type": "text", "text": "Done."},
            role="assistant",
        ),
        [
            said(Role.SYSTEM, "First the files."),
            said(Role.ASSISTANT, "I look."),
            call('{"path":"é","all":null}', "ls", "toolu_1"),
            call("{}", "pwd", "toolu_2"),
            call('{"text":"a"}', "echo", "mcptoolu_1"),
            said(Role.ASSISTANT, "Done."),
        ],
    ),
    Sample(
        "anthropic",
        "results and a question",
        of_anthropic(
            tool_result("a.txt\nb.txt"),
            tool_result("No such file", is_error=True),
            {"type": "tool_result", "tool_use_id": "toolu_2"},
            {"type": "text", "text": "And now?"},
        ),
        [
            result("a.txt\nb.txt", None, "toolu_1"),
            result("No such file", None, "toolu_1"),
            result("", None, "toolu_2"),
            said(Role.USER, "And now?"),
        ],
        of_anthropic(
            tool_result(SHORT),
            tool_result(SHORT, is_error=True),
            {"type": "tool_result", "tool_use_id": "toolu_2", "content": SHORT},
            {"type": "text", "text": "And now?"},
        ),
    ),
    Sample(
        "anthropic",
        "a result of blocks",
        of_anthropic(
            tool_result(
                [
                    PICTURE,
                    {
                        "type": "text",
                        "text": "one",
                        "cache_control": {"type": "ephemeral"},
                    },
                    PICTURE,
                    {"type": "text", "text": "two"},
                    {"type": "tool_reference", "tool_name": "grep"},
                ],
                cache_control={"type": "ephemeral"},
            )
        ),
        [result("one\ntwo\ngrep\n[image]\n[image]", None, "toolu_1", 2)],
        of_anthropic(
            tool_result(
                [
                    PICTURE,
                    {
                        "type": "text",
                        "text": SHORT,
                        "cache_control": {"type": "ephemeral"},
                    },
                    PICTURE,
                ],
                cache_control={"type": "ephemeral"},
            )
        ),
    ),
    Sample(
        "anthropic",
        "a result that is a picture",
        of_anthropic(tool_result([PICTURE])),
        [result("[image]", None, "toolu_1", 1)],
        of_anthropic(tool_result([{"type": "text", "text": SHORT}, PICTURE])),
    ),
    Sample(
        "anthropic",
        "tools of the server",
        of_anthropic(
            {
                "type": "server_tool_use",
                "id": "srvtoolu_1",
                "name": "web_search",
                "input": {"query": "tea"},
            },
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": [
                    {
                        "type": "web_search_result",
                        "title": "On tea",
                        "url": "https://example.org/tea",
                        "encrypted_content": "EqgC",
                        "page_age": None,
                    }
                ],
            },
            {
                "type": "web_fetch_tool_result",
                "tool_use_id": "srvtoolu_2",
                "content": {
                    "type": "web_fetch_result",
                    "url": "https://example.org/tea",
                    "content": {
                        "type": "document",
                        "source": {
                            "type": "text",
                            "media_type": "text/plain",
                            "data": "Green",
                        },
                    },
                },
            },
            {
                "type": "web_search_tool_result",
                "tool_use_id": "srvtoolu_3",
                "content": {
                    "type": "web_search_tool_result_error",
                    "error_code": "max_uses_exceeded",
                },
            },
            {
                "type": "tool_search_tool_result",
                "tool_use_id": "srvtoolu_4",
                "content": {
                    "type": "tool_search_tool_search_result",
                    "tool_references": [
                        {"type": "tool_reference", "tool_name": "grep"}
                    ],
                },
            },
            role="assistant",
        ),
        [
            call('{"query":"tea"}', "web_search", "srvtoolu_1"),
            fixed("On tea\nhttps://example.org/tea", "web_search", "srvtoolu_1"),
            fixed("https://example.org/tea\nGreen", "web_fetch", "srvtoolu_2"),
            fixed("max_uses_exceeded", "web_search", "srvtoolu_3"),
            fixed("grep", "tool_search", "srvtoolu_4"),
        ],
    ),
    Sample(
        "anthropic",
        "what ran in a container, and what an MCP server returned",
        of_anthropic(
            {
                "type": "bash_code_execution_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": {
                    "type": "bash_code_execution_result",
                    "stdout": "out",
                    "stderr": "err",
                    "return_code": 0,
                    "content": [
                        {"type": "bash_code_execution_output", "file_id": "file_1"}
                    ],
                },
            },
            {
                "type": "mcp_tool_result",
                "tool_use_id": "mcptoolu_1",
                "is_error": False,
                "content": [{"type": "text", "text": "a"}],
            },
            role="assistant",
        ),
        [
            result("out\nerr\n[file]", "bash_code_execution", "srvtoolu_1", 1),
            result("a", None, "mcptoolu_1"),
        ],
        of_anthropic(
            {
                "type": "bash_code_execution_tool_result",
                "tool_use_id": "srvtoolu_1",
                "content": {
                    "type": "bash_code_execution_result",
                    "stdout": SHORT,
                    "stderr": "",
                    "return_code": 0,
                    "content": [
                        {"type": "bash_code_execution_output", "file_id": "file_1"}
                    ],
                },
            },
            {
                "type": "mcp_tool_result",
                "tool_use_id": "mcptoolu_1",
                "is_error": False,
                "content": [{"type": "text", "text": SHORT}],
            },
            role="assistant",
        ),
    ),
    Sample(
        "anthropic",
        "a summary, and blocks of tomorrow",
        of_anthropic(
            {"type": "compaction", "content": "They spoke of tea."},
            {"type": "hologram", "beams": "AAAA"},
            {"type": "riddle", "text": "What has roots?"},
            {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}},
            role="assistant",
        ),
        [
            said(Role.SUMMARY, "They spoke of tea."),
            said(Role.ASSISTANT, "[hologram]\nWhat has roots?", 1),
            call("{}", "ls", "toolu_1"),
        ],
    ),
]

# -- OpenAI's Chat Completions --------------------------------------------------------

CHAT = [
    Sample(
        "openai-chat",
        "a developer's word",
        {"role": "developer", "content": [{"type": "text", "text": "Be brief."}]},
        [said(Role.SYSTEM, "Be brief.")],
    ),
    Sample(
        "openai-chat",
        "words, a picture, a sound, a file",
        {
            "role": "user",
            "name": "ann",
            "content": [
                {"type": "text", "text": "See"},
                PICTURE_URL,
                {
                    "type": "input_audio",
                    "input_audio": {"data": "UklG", "format": "wav"},
                },
                {
                    "type": "file",
                    "file": {"filename": "bill.pdf", "file_data": "data:,JVBE"},
                },
            ],
        },
        [said(Role.USER, "See\n[image]\n[audio]\n[file: bill.pdf]", 3)],
    ),
    Sample(
        "openai-chat",
        "a refusal",
        {"role": "assistant", "content": None, "refusal": "I cannot."},
        [said(Role.ASSISTANT, "I cannot.")],
    ),
    Sample(
        "openai-chat",
        "a refusal among the words",
        {
            "role": "assistant",
            "content": [
                {"type": "text", "text": "Well,"},
                {"type": "refusal", "refusal": "no."},
            ],
        },
        [said(Role.ASSISTANT, "Well,\nno.")],
    ),
    Sample(
        "openai-chat",
        "a voice",
        {
            "role": "assistant",
            "content": None,
            "audio": {
                "id": "audio_1",
                "data": "UklG",
                "expires_at": 1,
                "transcript": "Hello",
            },
        },
        [said(Role.ASSISTANT, "[audio]\nHello", 1)],
    ),
    Sample(
        "openai-chat",
        "thoughts, words and calls",
        {
            "role": "assistant",
            "reasoning_content": "First the files.",
            "content": "I look.",
            "tool_calls": [
                {
                    "id": "call_1",
                    "type": "function",
                    "function": {"name": "ls", "arguments": '{"path": "."}'},
                },
                {
                    "id": "call_2",
                    "type": "custom",
                    "custom": {"name": "sh", "input": "ls -l"},
                },
            ],
        },
        [
            said(Role.SYSTEM, "First the files."),
            said(Role.ASSISTANT, "I look."),
            call('{"path": "."}', "ls", "call_1"),
            call("ls -l", "sh", "call_2"),
        ],
    ),
    Sample(
        "openai-chat",
        "a function of old",
        {
            "role": "assistant",
            "content": None,
            "function_call": {"name": "ls", "arguments": "{}"},
        },
        [call("{}", "ls", None)],
    ),
    Sample(
        "openai-chat",
        "what a function of old returned",
        {"role": "function", "name": "ls", "content": "a.txt"},
        [result("a.txt", "ls", None)],
        {"role": "function", "name": "ls", "content": SHORT},
    ),
    Sample(
        "openai-chat",
        "a result",
        {"role": "tool", "tool_call_id": "call_1", "content": "a.txt"},
        [result("a.txt", None, "call_1")],
        {"role": "tool", "tool_call_id": "call_1", "content": SHORT},
    ),
    Sample(
        "openai-chat",
        "a result of blocks",
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": [
                {"type": "text", "text": "one"},
                PICTURE_URL,
                {"type": "text", "text": "two"},
            ],
        },
        [result("one\ntwo\n[image]", None, "call_1", 1)],
        {
            "role": "tool",
            "tool_call_id": "call_1",
            "content": [{"type": "text", "text": SHORT}, PICTURE_URL],
        },
    ),
    Sample(
        "openai-chat",
        "a call in Ollama",
        {
            "role": "assistant",
            "content": "",
            "thinking": "Weather.",
            "tool_calls": [
                {"function": {"name": "weather", "arguments": {"city": "Graz"}}}
            ],
        },
        [said(Role.SYSTEM, "Weather."), call('{"city":"Graz"}', "weather", None)],
    ),
    Sample(
        "openai-chat",
        "a result in Ollama",
        {"role": "tool", "tool_name": "weather", "content": "rain"},
        [result("rain", "weather", None)],
        {"role": "tool", "tool_name": "weather", "content": SHORT},
    ),
    Sample(
        "openai-chat",
        "pictures in Ollama",
        {"role": "user", "content": "These?", "images": ["iVBORw0", "iVBORw1"]},
        [said(Role.USER, "[image]\n[image]\nThese?", 2)],
    ),
]

# -- OpenAI's Responses ---------------------------------------------------------------

RESPONSES = [
    Sample(
        "openai-responses",
        "words, a picture, a file",
        {
            "type": "message",
            "role": "user",
            "content": [
                {"type": "input_text", "text": "See"},
                INPUT_IMAGE,
                {"type": "input_file", "filename": "a.pdf", "file_id": "file_1"},
            ],
        },
        [said(Role.USER, "See\n[image]\n[file: a.pdf]", 2)],
    ),
    Sample(
        "openai-responses",
        "an answer",
        {
            "type": "message",
            "id": "msg_1",
            "status": "completed",
            "role": "assistant",
            "content": [
                {"type": "output_text", "text": "Well,", "annotations": []},
                {"type": "refusal", "refusal": "no."},
            ],
        },
        [said(Role.ASSISTANT, "Well,\nno.")],
    ),
    Sample(
        "openai-responses",
        "an easy message",
        {"role": "developer", "content": [{"type": "input_text", "text": "Be brief."}]},
        [said(Role.SYSTEM, "Be brief.")],
    ),
    Sample(
        "openai-responses",
        "reasoning",
        {
            "type": "reasoning",
            "id": "rs_1",
            "summary": [{"type": "summary_text", "text": "Files first"}],
            "content": [{"type": "reasoning_text", "text": "So, the files."}],
            "encrypted_content": "gAAA",
        },
        [said(Role.SYSTEM, "Files first\nSo, the files.")],
    ),
    Sample(
        "openai-responses",
        "reasoning that nobody can read",
        {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "gA"},
        [],
    ),
    Sample(
        "openai-responses",
        "a function call",
        {
            "type": "function_call",
            "id": "fc_1",
            "call_id": "call_1",
            "name": "ls",
            "arguments": '{"path": "."}',
            "status": "completed",
        },
        [call('{"path": "."}', "ls", "call_1")],
    ),
    Sample(
        "openai-responses",
        "what a function returned",
        {"type": "function_call_output", "call_id": "call_1", "output": "a.txt"},
        [result("a.txt", None, "call_1")],
        {"type": "function_call_output", "call_id": "call_1", "output": SHORT},
    ),
    Sample(
        "openai-responses",
        "a picture that a function returned",
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [INPUT_IMAGE],
        },
        [result("[image]", None, "call_1", 1)],
        {
            "type": "function_call_output",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": SHORT}, INPUT_IMAGE],
        },
    ),
    Sample(
        "openai-responses",
        "a custom call",
        {"type": "custom_tool_call", "call_id": "call_1", "name": "sh", "input": "ls"},
        [call("ls", "sh", "call_1")],
    ),
    Sample(
        "openai-responses",
        "what a custom tool returned",
        {
            "type": "custom_tool_call_output",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": "a"}, INPUT_IMAGE],
        },
        [result("a\n[image]", None, "call_1", 1)],
        {
            "type": "custom_tool_call_output",
            "call_id": "call_1",
            "output": [{"type": "input_text", "text": SHORT}, INPUT_IMAGE],
        },
    ),
    Sample(
        "openai-responses",
        "a search on the web",
        {
            "type": "web_search_call",
            "id": "ws_1",
            "status": "completed",
            "action": {"type": "search", "query": "tea"},
        },
        [call('{"type":"search","query":"tea"}', "web_search", "ws_1")],
    ),
    Sample(
        "openai-responses",
        "a search in files",
        {
            "type": "file_search_call",
            "id": "fs_1",
            "status": "completed",
            "queries": ["tea"],
            "results": [{"file_id": "file_1", "filename": "a.md", "text": "Green"}],
        },
        [
            call('["tea"]', "file_search", "fs_1"),
            fixed(
                '{"file_id":"file_1","filename":"a.md","text":"Green"}',
                "file_search",
                "fs_1",
            ),
        ],
    ),
    Sample(
        "openai-responses",
        "code and what it printed",
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "container_id": "cntr_1",
            "status": "completed",
            "code": "print(1)",
            "outputs": [
                {"type": "image", "url": "https://example.org/plot.png"},
                {"type": "logs", "logs": "1"},
                {"type": "logs", "logs": "2"},
            ],
        },
        [
            call("print(1)", "code_interpreter", "ci_1"),
            result("1\n2\n[image]", "code_interpreter", "ci_1", 1),
        ],
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "container_id": "cntr_1",
            "status": "completed",
            "code": "print(1)",
            "outputs": [
                {"type": "image", "url": "https://example.org/plot.png"},
                {"type": "logs", "logs": SHORT},
            ],
        },
    ),
    Sample(
        "openai-responses",
        "code that only drew",
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "container_id": "cntr_1",
            "status": "completed",
            "code": "plot(1)",
            "outputs": [{"type": "image", "url": "https://example.org/plot.png"}],
        },
        [
            call("plot(1)", "code_interpreter", "ci_1"),
            fixed("[image]", "code_interpreter", "ci_1", 1),
        ],
    ),
    Sample(
        "openai-responses",
        "code whose output was not asked for",
        {
            "type": "code_interpreter_call",
            "id": "ci_1",
            "container_id": "cntr_1",
            "status": "completed",
            "code": "print(1)",
            "outputs": None,
        },
        [call("print(1)", "code_interpreter", "ci_1")],
    ),
    Sample(
        "openai-responses",
        "a click",
        {
            "type": "computer_call",
            "id": "cu_1",
            "call_id": "call_1",
            "status": "completed",
            "pending_safety_checks": [],
            "action": {"type": "type", "text": "tea"},
        },
        [call('{"type":"type","text":"tea"}', "computer", "call_1")],
    ),
    Sample(
        "openai-responses",
        "a screenshot",
        {
            "type": "computer_call_output",
            "call_id": "call_1",
            "output": {"type": "computer_screenshot", "image_url": "data:image/png,i"},
        },
        [fixed("[image]", "computer", "call_1", 1)],
    ),
    Sample(
        "openai-responses",
        "a command of old",
        {
            "type": "local_shell_call",
            "id": "lsh_1",
            "call_id": "call_1",
            "status": "completed",
            "action": {"type": "exec", "command": ["ls"], "env": {}},
        },
        [call('{"type":"exec","command":["ls"],"env":{}}', "local_shell", "call_1")],
    ),
    Sample(
        "openai-responses",
        "what a command of old printed",
        {"type": "local_shell_call_output", "id": "call_1", "output": "a.txt"},
        [result("a.txt", "local_shell", "call_1")],
        {"type": "local_shell_call_output", "id": "call_1", "output": SHORT},
    ),
    Sample(
        "openai-responses",
        "commands",
        {
            "type": "shell_call",
            "call_id": "call_1",
            "action": {"commands": ["ls", "pwd"]},
        },
        [call('{"commands":["ls","pwd"]}', "shell", "call_1")],
    ),
    Sample(
        "openai-responses",
        "what commands printed",
        {
            "type": "shell_call_output",
            "call_id": "call_1",
            "output": [
                {
                    "stdout": "a.txt",
                    "stderr": "slow",
                    "outcome": {"type": "exit", "exit_code": 0},
                },
                {"stdout": "", "stderr": "", "outcome": {"type": "timeout"}},
            ],
        },
        [result("a.txt\nslow", "shell", "call_1")],
        {
            "type": "shell_call_output",
            "call_id": "call_1",
            "output": [
                {
                    "stdout": SHORT,
                    "stderr": "",
                    "outcome": {"type": "exit", "exit_code": 0},
                }
            ],
        },
    ),
    Sample(
        "openai-responses",
        "a patch",
        {
            "type": "apply_patch_call",
            "call_id": "call_1",
            "status": "completed",
            "operation": {"type": "create_file", "path": "a", "diff": "+tea"},
        },
        [
            call(
                '{"type":"create_file","path":"a","diff":"+tea"}',
                "apply_patch",
                "call_1",
            )
        ],
    ),
    Sample(
        "openai-responses",
        "what became of a patch",
        {"type": "apply_patch_call_output", "call_id": "call_1", "status": "completed"},
        [result("", "apply_patch", "call_1")],
        {
            "type": "apply_patch_call_output",
            "call_id": "call_1",
            "status": "completed",
            "output": SHORT,
        },
    ),
    Sample(
        "openai-responses",
        "a call of an MCP tool and what it returned",
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "here",
            "name": "echo",
            "arguments": "{}",
            "output": "a",
            "error": None,
        },
        [call("{}", "echo", "mcp_1"), result("a", "echo", "mcp_1")],
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "here",
            "name": "echo",
            "arguments": "{}",
            "output": SHORT,
            "error": None,
        },
    ),
    Sample(
        "openai-responses",
        "a call of an MCP tool that failed",
        {
            "type": "mcp_call",
            "id": "mcp_1",
            "server_label": "here",
            "name": "echo",
            "arguments": "{}",
            "error": {"type": "http_error", "code": 404, "message": "Not there"},
        },
        [call("{}", "echo", "mcp_1"), fixed("Not there", "echo", "mcp_1")],
    ),
    Sample(
        "openai-responses",
        "the tools of an MCP server",
        {
            "type": "mcp_list_tools",
            "id": "mcpl_1",
            "server_label": "here",
            "tools": [{"name": "echo", "input_schema": {"type": "object"}}],
        },
        [said(Role.SYSTEM, '[{"name":"echo","input_schema":{"type":"object"}}]')],
    ),
    Sample(
        "openai-responses",
        "may I?",
        {
            "type": "mcp_approval_request",
            "id": "mcpr_1",
            "server_label": "here",
            "name": "echo",
            "arguments": "{}",
        },
        [said(Role.SYSTEM, "echo\n{}")],
    ),
    Sample(
        "openai-responses",
        "tools that were looked for",
        {
            "type": "tool_search_output",
            "call_id": "call_1",
            "tools": [{"type": "local_shell"}],
        },
        [fixed('[{"type":"local_shell"}]', "tool_search", "call_1")],
    ),
    Sample(
        "openai-responses",
        "a picture that was made",
        {
            "type": "image_generation_call",
            "id": "ig_1",
            "status": "completed",
            "revised_prompt": "A cup of tea",
            "result": "iVBORw0",
        },
        [
            call("A cup of tea", "image_generation", "ig_1"),
            fixed("[image]", "image_generation", "ig_1", 1),
        ],
    ),
    Sample(
        "openai-responses",
        "a program",
        {
            "type": "program",
            "id": "prog_1",
            "call_id": "call_1",
            "code": "ls()",
            "fingerprint": "f",
        },
        [call("ls()", "program", "call_1")],
    ),
    Sample(
        "openai-responses",
        "what a program returned",
        {
            "type": "program_output",
            "id": "progo_1",
            "call_id": "call_1",
            "result": "a.txt",
            "status": "completed",
        },
        [fixed("a.txt", "program", "call_1")],
    ),
    Sample(
        "openai-responses", "a reference", {"type": "item_reference", "id": "msg_1"}, []
    ),
    Sample(
        "openai-responses",
        "a summary that nobody can read",
        {"type": "compaction", "id": "cmp_1", "encrypted_content": "gAAA"},
        [],
    ),
    Sample(
        "openai-responses",
        "a call of tomorrow",
        {"type": "telescope_call", "id": "tel_1", "query": "Mars"},
        [call("Mars", "telescope", "tel_1")],
    ),
]

# -- LangChain ------------------------------------------------------------------------

_OF_LANGCHAIN: JsonObject = {"additional_kwargs": {}, "response_metadata": {}}

LANGCHAIN = [
    Sample(
        "langchain",
        "a system prompt",
        {**_OF_LANGCHAIN, "type": "system", "content": "Be kind."},
        [said(Role.SYSTEM, "Be kind.")],
    ),
    Sample(
        "langchain",
        "words and a picture",
        {
            **_OF_LANGCHAIN,
            "type": "human",
            "content": [{"type": "text", "text": "See"}, PICTURE_URL],
        },
        [said(Role.USER, "See\n[image]", 1)],
    ),
    Sample(
        "langchain",
        "words and a call",
        {
            **_OF_LANGCHAIN,
            "type": "ai",
            "content": "I look.",
            "tool_calls": [
                {"name": "ls", "args": {"path": "."}, "id": "c1", "type": "tool_call"}
            ],
            "invalid_tool_calls": [],
        },
        [said(Role.ASSISTANT, "I look."), call('{"path":"."}', "ls", "c1")],
    ),
    Sample(
        "langchain",
        "a call that is also among the blocks, and reasoning",
        {
            **_OF_LANGCHAIN,
            "type": "AIMessageChunk",
            "content": [
                {"type": "reasoning", "reasoning": "First the files."},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "c1", "name": "ls", "input": {"path": "."}},
            ],
            "tool_calls": [{"name": "ls", "args": {"path": "."}, "id": "c1"}],
        },
        [
            said(Role.SYSTEM, "First the files."),
            said(Role.ASSISTANT, "I look."),
            call('{"path":"."}', "ls", "c1"),
        ],
    ),
    Sample(
        "langchain",
        "a result",
        {
            **_OF_LANGCHAIN,
            "type": "tool",
            "name": "ls",
            "content": "a.txt",
            "tool_call_id": "c1",
            "status": "success",
        },
        [result("a.txt", "ls", "c1")],
        {
            **_OF_LANGCHAIN,
            "type": "tool",
            "name": "ls",
            "content": SHORT,
            "tool_call_id": "c1",
            "status": "success",
        },
    ),
]

# -- Pydantic AI ----------------------------------------------------------------------


def of_pydantic_ai(kind: str, *parts: JsonObject) -> JsonObject:
    return {"kind": kind, "parts": list(parts)}


PYDANTIC_AI = [
    Sample(
        "pydantic-ai",
        "a system prompt, instructions and a prompt",
        {
            "kind": "request",
            "parts": [
                {"part_kind": "system-prompt", "content": "Be kind."},
                {"part_kind": "user-prompt", "content": "Hi"},
            ],
            "timestamp": "2026-11-17T03:31:36Z",
            "state": "complete",
        },
        [said(Role.SYSTEM, "Be kind."), said(Role.USER, "Hi")],
    ),
    Sample(
        "pydantic-ai",
        "words with media among them",
        of_pydantic_ai(
            "request",
            {
                "part_kind": "user-prompt",
                "content": [
                    "See",
                    {"kind": "image-url", "url": "https://example.org/a.png"},
                    {"kind": "binary", "data": "JVBE", "media_type": "application/pdf"},
                    {"kind": "binary", "data": "UklG", "media_type": "audio/wav"},
                    {"kind": "text-content", "content": "and say"},
                    {"kind": "cache-point", "id": "5m"},
                ],
            },
        ),
        [said(Role.USER, "See\n[image]\n[file]\n[audio]\nand say", 3)],
    ),
    Sample(
        "pydantic-ai",
        "thoughts, words and calls",
        of_pydantic_ai(
            "response",
            {"part_kind": "thinking", "content": "First the files."},
            {"part_kind": "text", "content": "I look."},
            {
                "part_kind": "tool-call",
                "tool_name": "ls",
                "args": {"path": "."},
                "tool_call_id": "c1",
            },
            {
                "part_kind": "builtin-tool-call",
                "tool_name": "web_search",
                "args": '{"query": "tea"}',
                "tool_call_id": "c2",
            },
            {
                "part_kind": "builtin-tool-return",
                "tool_name": "web_search",
                "content": {"title": "On tea"},
                "tool_call_id": "c2",
            },
        ),
        [
            said(Role.SYSTEM, "First the files."),
            said(Role.ASSISTANT, "I look."),
            call('{"path":"."}', "ls", "c1"),
            call('{"query": "tea"}', "web_search", "c2"),
            fixed('{"title":"On tea"}', "web_search", "c2"),
        ],
    ),
    Sample(
        "pydantic-ai",
        "results, and what was wrong with a call or an answer",
        of_pydantic_ai(
            "request",
            {
                "part_kind": "tool-return",
                "tool_name": "ls",
                "content": ["a.txt", "b.txt"],
                "tool_call_id": "c1",
                "outcome": "success",
            },
            {
                "part_kind": "tool-return",
                "tool_name": "draw",
                "content": [
                    "A tree",
                    {"kind": "binary", "data": "iVBO", "media_type": "image/png"},
                ],
                "tool_call_id": "c2",
            },
            {
                "part_kind": "retry-prompt",
                "tool_name": "ls",
                "content": "No such folder",
                "tool_call_id": "c3",
            },
            {"part_kind": "retry-feedback", "content": "Give a number."},
        ),
        [
            fixed('["a.txt","b.txt"]', "ls", "c1"),
            fixed("A tree\n[image]", "draw", "c2", 1),
            fixed("No such folder", "ls", "c3"),
            said(Role.SYSTEM, "Give a number."),
        ],
    ),
    Sample(
        "pydantic-ai",
        "a summary, speech, a file, and parts of tomorrow",
        of_pydantic_ai(
            "response",
            {"part_kind": "compaction", "content": "They spoke of tea."},
            {"part_kind": "speech", "speaker": "assistant", "transcript": "Hello"},
            {
                "part_kind": "file",
                "content": {"kind": "binary", "data": "i", "media_type": "image/png"},
            },
            {"part_kind": "riddle", "content": "What has roots?"},
        ),
        [
            said(Role.SUMMARY, "They spoke of tea."),
            said(Role.ASSISTANT, "Hello\n[image]", 1),
            said(Role.SYSTEM, "What has roots?"),
        ],
    ),
]

# -- plain ----------------------------------------------------------------------------

PLAIN = [
    Sample(
        "plain",
        "a record of a user",
        {"role": "user", "text": "Hi"},
        [said(Role.USER, "Hi")],
    ),
    Sample(
        "plain",
        "a record of an agent",
        {"role": "ai", "content": "Yes?"},
        [said(Role.ASSISTANT, "Yes?")],
    ),
    Sample(
        "plain",
        "a summary",
        {"role": "summary", "text": "They met."},
        [said(Role.SUMMARY, "They met.")],
    ),
    Sample(
        "plain",
        "an error",
        {"role": "error", "content": {"code": 500}},
        [said(Role.ERROR, '{"code":500}')],
    ),
    Sample(
        "plain",
        "a call",
        {
            "role": "tool_call",
            "tool_name": "ls",
            "call_id": "1",
            "content": {"path": "."},
        },
        [call('{"path":"."}', "ls", "1")],
    ),
    Sample(
        "plain",
        "a call with arguments",
        {"role": "tool_call", "name": "ls", "id": 7, "arguments": {"path": "."}},
        [call('{"path":"."}', "ls", "7")],
    ),
    Sample(
        "plain",
        "an empty call",
        {"role": "tool_call", "text": ""},
        [call("", None, None)],
    ),
    Sample(
        "plain",
        "a result",
        {"role": "tool_result", "tool_name": "ls", "call_id": "1", "text": "a.txt"},
        [result("a.txt", "ls", "1")],
        {"role": "tool_result", "tool_name": "ls", "call_id": "1", "text": SHORT},
    ),
    Sample(
        "plain",
        "a result that is JSON",
        {
            "role": "tool_result",
            "tool_call_id": "1",
            "content": [{"type": "file", "path": "a.txt"}, {"type": "dir"}],
        },
        [result('[{"type":"file","path":"a.txt"},{"type":"dir"}]', None, "1")],
        {"role": "tool_result", "tool_call_id": "1", "content": SHORT},
    ),
    Sample(
        "plain",
        "a result as an MCP server gave it",
        {
            "role": "tool_result",
            "call_id": "1",
            "content": [
                {"type": "text", "text": "a"},
                {"type": "image", "data": "iVBORw0", "mimeType": "image/png"},
                {
                    "type": "resource",
                    "resource": {"uri": "file:///a", "text": "b"},
                },
            ],
        },
        [result('a\n{"uri":"file:///a","text":"b"}\n[image]', None, "1", 1)],
        {
            "role": "tool_result",
            "call_id": "1",
            "content": [
                {"type": "text", "text": SHORT},
                {"type": "image", "data": "iVBORw0", "mimeType": "image/png"},
            ],
        },
    ),
    Sample(
        "plain",
        "calls in squidbot",
        {
            "role": "assistant",
            "content": "I look.",
            "timestamp": "2026-02-01T10:00:00",
            "reasoning_content": "Files.",
            "tool_calls": [{"id": "c1", "name": "ls", "arguments": {"path": "."}}],
        },
        [
            said(Role.SYSTEM, "Files."),
            said(Role.ASSISTANT, "I look."),
            call('{"path":"."}', "ls", "c1"),
        ],
    ),
]

SAMPLES = [
    *(
        Sample(dialect, f"shared {number}", message, parts)
        for dialect in ("anthropic", "openai-chat", "openai-responses", "plain")
        for number, (message, parts) in enumerate(SHARED)
    ),
    *ANTHROPIC,
    *CHAT,
    *RESPONSES,
    *LANGCHAIN,
    *PYDANTIC_AI,
    *PLAIN,
]

# -- replies --------------------------------------------------------------------------


@dataclass(frozen=True)
class Reply:
    """What an API answers, and the messages in it."""

    name: str
    reply: JsonObject
    said: list[JsonObject]


_CHAT_ANSWER = {"role": "assistant", "content": "Yes?", "annotations": []}
_ANTHROPIC_BLOCKS = [
    {"type": "text", "text": "Yes?"},
    {"type": "tool_use", "id": "toolu_1", "name": "ls", "input": {}},
]
_ITEMS: list[JsonObject] = [
    {"type": "reasoning", "id": "rs_1", "summary": []},
    {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "status": "completed",
        "content": [{"type": "output_text", "text": "Yes?", "annotations": []}],
    },
    {"type": "function_call", "call_id": "call_1", "name": "ls", "arguments": "{}"},
]

REPLIES = [
    Reply(
        "chat completion",
        {
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1,
            "model": "gpt",
            "choices": [
                {"index": 0, "finish_reason": "stop", "message": _CHAT_ANSWER},
                {"index": 1, "finish_reason": "stop", "message": _CHAT_ANSWER},
            ],
        },
        [_CHAT_ANSWER],
    ),
    Reply(
        "Ollama",
        {
            "model": "gemma",
            "done": True,
            "message": {"role": "assistant", "content": "Yes?"},
        },
        [{"role": "assistant", "content": "Yes?"}],
    ),
    Reply(
        "Anthropic",
        {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": "claude",
            "content": _ANTHROPIC_BLOCKS,
            "stop_reason": "tool_use",
            "usage": {"input_tokens": 1, "output_tokens": 1},
        },
        [{"role": "assistant", "content": _ANTHROPIC_BLOCKS}],
    ),
    Reply(
        "Responses",
        {"id": "resp_1", "object": "response", "model": "gpt", "output": _ITEMS},
        _ITEMS,
    ),
    Reply(
        "Responses with an item of tomorrow",
        {"object": "response", "output": [{"type": "dream", "id": "d_1"}, *_ITEMS]},
        _ITEMS,
    ),
    *(
        Reply(f"the message itself: {sample.name}", sample.message, [sample.message])
        for sample in (ANTHROPIC[2], CHAT[5], RESPONSES[5], PLAIN[0])
    ),
]
