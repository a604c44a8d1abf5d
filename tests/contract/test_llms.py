"""What every language model must do, against real servers and programs of ours."""

import json
import multiprocessing
import os
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import (
    ConfigError,
    PromptTooLong,
    ProviderError,
    ProviderRefused,
    ProviderUnavailable,
    UnknownName,
    UnusableAnswer,
)
from backstory.providers.http import Clock
from backstory.providers.llms import LLMS, get_llm_row, load_llm
from backstory.providers.llms.anthropic import AnthropicLlm
from backstory.providers.llms.base import (
    THOUGHT_TOKENS,
    Answer,
    Llm,
    LlmOptions,
    LlmRow,
)
from backstory.providers.llms.gemini import GeminiLlm
from backstory.providers.llms.http import HttpLlm
from backstory.providers.llms.ollama import OllamaLlm
from backstory.providers.llms.openai import OpenAiLlm
from backstory.settings import SETTINGS
from backstory.text.tokens import estimate_tokens, most_tokens
from tests.chance import examples
from tests.faulty_server import Fault
from tests.grid import cases, in_one_test
from tests.llm_programs import FakeProgram, Play, claude_prints, codex_prints
from tests.llm_server import HUGE, LlmServer, Script, running_server
from tests.processes import comes_true

SERVED: dict[str, type[HttpLlm]] = {
    "openai": OpenAiLlm,
    "anthropic": AnthropicLlm,
    "gemini": GeminiLlm,
    "ollama": OllamaLlm,
}
AGENTS = ("claude", "codex")
KEY = "sk-very-secret-key-1234567890"
SYSTEM = "You keep a diary."
PROMPT = "What was eaten?"
CUT_OFF = "was cut off at the limit of tokens"
FILTERED = "was refused by a filter"
ODD_TEXTS = {
    "nul": "before\x00after",
    "half a surrogate pair": "broken \ud83d text",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈",
    "chinese": "我们上周决定了什么？",
    "long": "word " * 20_000,
    "special tokens": "<|endoftext|> [INST] <think> </s>",
    "an option": "--help",
}


@dataclass
class FakeClock:
    """Time that passes only by sleeping."""

    now_s: float = 0.0
    slept: list[float] = field(default_factory=list)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self.now_s += seconds

    def clock(self) -> Clock:
        return Clock(lambda: self.now_s, self.sleep)


@dataclass(frozen=True)
class Staged:
    """A model, and who plays it."""

    name: str
    llm: Llm
    player: LlmServer | FakeProgram


@pytest.fixture(scope="module")
def a_server() -> Iterator[LlmServer]:
    with running_server() as state:
        yield state


@pytest.fixture
def server(a_server: LlmServer) -> Iterator[LlmServer]:
    """The one server of this module, asked nothing yet and with no faults."""
    a_server.start_afresh()
    yield a_server
    a_server.start_afresh()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=[*SERVED, *AGENTS])
def staged(
    request: pytest.FixtureRequest, server: LlmServer, tmp_path: Path
) -> Iterator[Staged]:
    name = request.param
    if name in SERVED:
        made = load(name, url=server.url, environ={"A_KEY": KEY}, key="env:A_KEY")
        yield Staged(name, made, server)
    else:
        program = FakeProgram(name, tmp_path / "bin")
        made = load(name, environ={"PATH": str(program.folder)})
        yield Staged(name, made, program)
    made.close()


@pytest.fixture(params=SERVED)
def served(
    request: pytest.FixtureRequest, server: LlmServer, clock: FakeClock
) -> Iterator[HttpLlm]:
    made = make(request.param, server.url, clock)
    yield made
    made.close()


@pytest.fixture(params=AGENTS)
def program(request: pytest.FixtureRequest, tmp_path: Path) -> FakeProgram:
    return FakeProgram(request.param, tmp_path / "bin")


def load(
    name: str,
    *,
    environ: Mapping[str, str],
    url: str = "",
    key: str = "",
    timeout_s: float = 20.0,
    context_tokens: int = 400_000,
) -> Llm:
    made = load_llm(
        name,
        url=url,
        key=key,
        environ=environ,
        timeout_s=timeout_s,
        context_tokens=context_tokens,
    )
    assert made is not None
    return made


def run(program: FakeProgram, *, timeout_s: float = 20.0) -> Llm:
    return load(
        program.name, environ={"PATH": str(program.folder)}, timeout_s=timeout_s
    )


def make(
    name: str,
    url: str,
    clock: FakeClock,
    *,
    model: str = "",
    key: str = KEY,
    timeout_s: float = 120.0,
    context_tokens: int = 0,
) -> HttpLlm:
    options = LlmOptions(model, url, key, timeout_s, context_tokens)
    return SERVED[name](get_llm_row(name), options, clock.clock())


def ask(
    llm: Llm,
    prompt: str = PROMPT,
    *,
    system: str = SYSTEM,
    max_output_tokens: int = 500,
    wants_json: bool = False,
) -> Answer:
    return llm.complete(
        system=system,
        prompt=prompt,
        max_output_tokens=max_output_tokens,
        wants_json=wants_json,
    )


# -- every model ----------------------------------------------------------------------


def test_every_row_that_answers_is_in_this_suite() -> None:
    assert [row.name for row in LLMS if row.default_url] == list(SERVED)
    assert [row.name for row in LLMS if row.program] == list(AGENTS)


def test_a_prompt_is_answered_with_the_tokens_as_the_provider_counts_them(
    staged: Staged,
) -> None:
    assert ask(staged.llm) == Answer("Sushi was eaten.", 11, 7)


def test_tokens_that_the_provider_does_not_count_are_estimated(staged: Staged) -> None:
    staged.player.follow(Script(counts_tokens=False))

    answer = ask(staged.llm)

    assert answer == Answer(
        "Sushi was eaten.",
        estimate_tokens(SYSTEM) + estimate_tokens(PROMPT),
        estimate_tokens("Sushi was eaten."),
    )


@in_one_test("text", ODD_TEXTS)
def test_any_text_reaches_the_model(staged: Staged, text: str) -> None:
    asked = len(staged.player.texts())
    ask(staged.llm, text, system=f"Sum up. {text[:100]}")

    (sent,) = staged.player.texts()[asked:]
    system = f"Sum up. {text[:100]}".replace("\ud83d", "\ufffd")
    prompt = text.replace("\ud83d", "\ufffd")
    together = ("", f"{system}\n\n{prompt}")
    assert sent == (together if staged.name == "codex" else (system, prompt))


@settings(max_examples=examples(20))
@given(prompt=st.text(st.characters(exclude_categories=()), max_size=50))
@pytest.mark.parametrize("name", SERVED)
def test_whatever_the_prompt_is_it_is_answered(
    a_server: LlmServer, name: str, prompt: str
) -> None:
    a_server.start_afresh()

    with closing(load(name, url=a_server.url, environ={})) as llm:
        answer = ask(llm, prompt)

    assert answer.text == "Sushi was eaten."


def test_a_model_can_do_without_a_system_prompt(staged: Staged) -> None:
    assert ask(staged.llm, system="").text == "Sushi was eaten."


def test_what_the_model_says_is_given_without_blanks_around_it(staged: Staged) -> None:
    staged.player.follow(Script("\n  Sushi — 寿司 🍣.\n\n"))

    assert ask(staged.llm).text == "Sushi — 寿司 🍣."


def test_thoughts_are_no_part_of_the_answer(staged: Staged) -> None:
    staged.player.follow(Script("<think>\nWhat was it?\n</think>\n\nSushi."))

    assert ask(staged.llm).text == "Sushi."


@pytest.mark.parametrize("text", ["", " \n ", "<think>Hm.</think>"])
def test_an_empty_answer_is_an_error(staged: Staged, text: str) -> None:
    staged.player.follow(Script(text))

    with pytest.raises(UnusableAnswer, match="was empty"):
        ask(staged.llm)


@pytest.mark.parametrize(
    ("staged", "ending", "said"),
    [
        *((name, "cut off", CUT_OFF) for name in (*SERVED, "claude")),
        *((name, "filtered", FILTERED) for name in ("openai", "anthropic", "gemini")),
        ("claude", "filtered", FILTERED),
    ],
    indirect=["staged"],
)
def test_an_answer_that_is_not_whole_is_an_error(
    staged: Staged, ending: str, said: str
) -> None:
    staged.player.follow(Script("Sushi was", ending))

    with pytest.raises(UnusableAnswer) as caught:
        ask(staged.llm)

    assert str(caught.value).startswith("the answer of the ")
    assert str(caught.value).endswith(said)
    assert not isinstance(caught.value, ProviderRefused | ProviderUnavailable)


@pytest.mark.parametrize(
    "text", ['{"a": 1}', '```json\n{"a": 1}\n```', '\n```\n{"a": 1}```\n']
)
def test_a_fence_around_json_is_taken_off(staged: Staged, text: str) -> None:
    staged.player.follow(Script(text))

    assert ask(staged.llm, wants_json=True).text == '{"a": 1}'


def test_a_fence_that_is_wanted_stays(staged: Staged) -> None:
    staged.player.follow(Script("```sh\nls\n```"))

    assert ask(staged.llm).text == "```sh\nls\n```"


@pytest.mark.parametrize(
    ("system", "sent"),
    [
        ("Sum up.", "Sum up.\n\nAnswer with one JSON object and nothing else."),
        ("", "Answer with one JSON object and nothing else."),
        ("Sum up as a JSON object.", "Sum up as a JSON object."),
    ],
)
def test_a_model_that_is_to_answer_in_json_is_told_so(
    staged: Staged, system: str, sent: str
) -> None:
    staged.player.follow(Script("{}"))

    ask(staged.llm, system=system, wants_json=True)

    (texts,) = staged.player.texts()
    assert "".join(texts).startswith(sent)


def test_what_may_not_fit_is_not_even_sent(staged: Staged, server: LlmServer) -> None:
    fits = most_tokens(SYSTEM) + most_tokens(PROMPT) + 500
    environ = {"PATH": os.environ["PATH"]}
    llm = load(staged.name, url=server.url, environ=environ, context_tokens=fits - 1)

    with pytest.raises(PromptTooLong) as caught:
        ask(llm)
    llm.close()

    assert staged.player.asked == []
    assert str(caught.value).endswith(
        f"can read and write {fits - 1:,} tokens in one call, and this one may need "
        f"{fits:,}"
    )
    assert caught.value.hint == (
        "set llm.context_tokens to what the model can read in one call"
    )


def test_a_closed_model_can_be_used_again(staged: Staged) -> None:
    before = ask(staged.llm)
    staged.llm.close()
    staged.llm.close()

    assert ask(staged.llm) == before


def test_several_threads_may_use_it_at_once(staged: Staged) -> None:
    prompts = [f"question number {number}" for number in range(8)]

    with ThreadPoolExecutor(4) as pool:
        answers = list(pool.map(lambda prompt: ask(staged.llm, prompt), prompts))

    assert {answer.text for answer in answers} == {"Sushi was eaten."}
    sent = sorted(text.rpartition("\n")[2] for _, text in staged.player.texts())
    assert sent == prompts


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_may_use_it(staged: Staged) -> None:
    ask(staged.llm)
    context = multiprocessing.get_context("fork")
    told = context.Queue()

    child = context.Process(target=lambda: told.put(ask(staged.llm).text))
    child.start()

    assert told.get(timeout=20) == "Sushi was eaten."
    child.join(20)
    assert child.exitcode == 0
    told.close()
    told.join_thread()


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_has_a_connection_of_its_own(
    served: HttpLlm, server: LlmServer
) -> None:
    ask(served)

    child = multiprocessing.get_context("fork").Process(target=ask, args=(served,))
    child.start()
    child.join(20)
    ask(served)

    first, of_child, again = server.ports
    assert first == again
    assert first != of_child


def test_no_error_shows_the_key_or_a_whole_prompt(staged: Staged) -> None:
    prompt = "a secret of mine " * 100
    staged.player.fail(f"with {KEY} there is no {prompt}")

    with pytest.raises(ProviderError) as caught:
        ask(staged.llm, prompt)

    assert KEY not in str(caught.value)
    assert len(str(caught.value)) < 320


# -- the table ------------------------------------------------------------------------


def test_none_answers_nothing() -> None:
    assert load_llm("none", environ={"OPENAI_API_KEY": KEY}) is None


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        load_llm("olama", environ={})

    assert str(caught.value) == "no language model is called 'olama'"
    assert caught.value.hint == "did you mean 'ollama'?"


def test_the_settings_offer_every_row() -> None:
    (setting,) = [row for row in SETTINGS if row.name == "llm.name"]

    assert setting.choices == tuple(row.name for row in LLMS)
    assert [name for name in setting.choices if name not in setting.summary] == []


@pytest.mark.parametrize(
    ("environ", "url", "title"),
    [
        ({}, "", None),
        ({"PATH": "/usr/bin", "OLLAMA_HOST": "127.0.0.1"}, "", None),
        ({"ANTHROPIC_API_KEY": ""}, "", None),
        ({"GEMINI_API_KEY": "k"}, "", "gemini gemini-3.5-flash-lite"),
        ({"GOOGLE_API_KEY": "k"}, "", "gemini gemini-3.5-flash-lite"),
        ({"GOOGLE_API_KEY": "k", "OPENAI_API_KEY": "k"}, "", "openai gpt-6-luna"),
        (
            {"OPENAI_API_KEY": "k", "ANTHROPIC_API_KEY": "k"},
            "",
            "anthropic claude-haiku-5-5",
        ),
        ({"ANTHROPIC_API_KEY": "k"}, "http://127.0.0.1:1/v1", "openai gpt-6-luna"),
    ],
)
def test_auto_takes_what_is_set_up_and_nothing_else(
    environ: dict[str, str], url: str, title: str | None
) -> None:
    found = load_llm("auto", url=url, environ=environ)

    assert (found and found.title) == title


def test_auto_does_not_give_a_key_to_whoever_comes_first() -> None:
    with pytest.raises(ConfigError) as caught:
        load_llm("auto", key="env:MINE", environ={"MINE": KEY, "OPENAI_API_KEY": "k"})

    assert str(caught.value) == (
        "llm.key is set, but neither llm.name nor llm.url says whose key it is"
    )


@pytest.mark.parametrize(
    ("name", "variable", "header"),
    [
        ("openai", "OPENAI_API_KEY", "authorization"),
        ("auto", "OPENAI_API_KEY", "authorization"),
        ("anthropic", "ANTHROPIC_API_KEY", "x-api-key"),
        ("gemini", "GEMINI_API_KEY", "x-goog-api-key"),
    ],
)
def test_a_key_from_the_environment_goes_to_no_other_address(
    server: LlmServer, name: str, variable: str, header: str
) -> None:
    llm = load(name, url=server.url, environ={variable: KEY})

    ask(llm)
    llm.close()

    (asked,) = server.asked
    assert header not in asked.headers
    assert KEY not in str(asked.headers)


@pytest.mark.parametrize("name", [*SERVED, *AGENTS])
def test_a_model_has_the_title_and_the_limit_of_its_row_or_of_the_settings(
    name: str,
) -> None:
    row, url = get_llm_row(name), "http://127.0.0.1:1"

    usual = load_llm(name, url=url, environ={})
    other = load_llm(name, url=url, model="m-2", context_tokens=9_999, environ={})

    assert usual is not None
    assert other is not None
    assert usual.title == f"{name} {row.default_model}".strip()
    assert usual.context_tokens == row.context_tokens
    assert (other.title, other.context_tokens) == (f"{name} m-2", 9_999)


def test_a_package_that_is_missing_makes_a_model_unavailable() -> None:
    row = LlmRow("odd", "backstory.providers.llms.absent:OddLlm", "")

    with pytest.raises(ProviderUnavailable) as caught:
        row.load(LlmOptions())

    assert str(caught.value) == (
        "the language model 'odd' needs a package that cannot be loaded "
        "(No module named 'backstory.providers.llms.absent')"
    )


def test_the_table_loads_no_library() -> None:
    program = (
        "import sys\n"
        "from backstory.providers.llms import load_llm\n"
        "assert load_llm('auto', environ={}) is None\n"
        "heavy = {'httpx', 'orjson', 'numpy', 'subprocess', 'tempfile'}\n"
        "sys.exit(', '.join(heavy & set(sys.modules)) or None)\n"
    )

    ended = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )

    assert (ended.returncode, ended.stderr) == (0, "")


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        (
            "openai",
            {},
            "the language model 'openai' needs a key for api.openai.com",
        ),
        (
            "anthropic",
            {"url": "https://api.anthropic.com/"},
            "the language model 'anthropic' needs a key for api.anthropic.com",
        ),
        (
            "gemini",
            {},
            "the language model 'gemini' needs a key for "
            "generativelanguage.googleapis.com",
        ),
        (
            "ollama",
            {"url": "localhost:11434"},
            "'localhost:11434' is not an http or https address",
        ),
        (
            "openai",
            {"url": "ftp://me:hunter22@host"},
            "'ftp://me:[masked]@host' is not an http or https address",
        ),
        (
            "openai",
            {"key": "sk-mine"},
            "llm.key must say where the key is, not be the key itself",
        ),
        (
            "openai",
            {"key": "env:ODD"},
            "the key of the language model 'openai' contains characters that are not "
            "valid in a key",
        ),
    ],
)
def test_settings_that_cannot_work_are_said_at_once(
    name: str, options: dict[str, str], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_llm(name, environ={"ODD": "sk-\x1bbad"}, **options)  # type: ignore[arg-type]

    assert str(caught.value) == message


# -- the wire -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path", "body", "for_json"),
    [
        (
            "openai",
            "/chat/completions",
            {
                "model": "gpt-6-luna",
                "messages": [
                    {"role": "system", "content": "A JSON object."},
                    {"role": "user", "content": PROMPT},
                ],
                "stream": False,
                "max_tokens": 500 + THOUGHT_TOKENS,
            },
            {"response_format": {"type": "json_object"}},
        ),
        (
            "anthropic",
            "/v1/messages",
            {
                "model": "claude-haiku-5-5",
                "max_tokens": 500,
                "messages": [{"role": "user", "content": PROMPT}],
                "system": "A JSON object.",
                "thinking": {"type": "disabled"},
            },
            {},
        ),
        (
            "gemini",
            "/v1beta/models/gemini-3.5-flash-lite:generateContent",
            {
                "contents": [{"role": "user", "parts": [{"text": PROMPT}]}],
                "generationConfig": {"maxOutputTokens": 500 + THOUGHT_TOKENS},
                "systemInstruction": {"parts": [{"text": "A JSON object."}]},
            },
            {
                "generationConfig": {
                    "maxOutputTokens": 500 + THOUGHT_TOKENS,
                    "responseMimeType": "application/json",
                }
            },
        ),
        (
            "ollama",
            "/api/chat",
            {
                "model": "gemma4:e2b",
                "messages": [
                    {"role": "system", "content": "A JSON object."},
                    {"role": "user", "content": PROMPT},
                ],
                "stream": False,
                "think": False,
                "truncate": False,
                "options": {"num_ctx": 8_192, "num_predict": 500},
            },
            {"format": "json"},
        ),
    ],
)
def test_a_call_is_sent_in_the_form_that_the_server_knows(
    server: LlmServer,
    clock: FakeClock,
    name: str,
    path: str,
    body: dict[str, object],
    for_json: dict[str, object],
) -> None:
    llm = make(name, server.url + "/", clock)

    ask(llm, system="A JSON object.")
    ask(llm, system="A JSON object.", wants_json=True)
    llm.close()

    plain, in_json = server.asked
    assert (plain.path, plain.body) == (path, body)
    assert in_json.body == body | for_json
    assert plain.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("name", "key", "headers"),
    [
        ("openai", "", {"authorization": None}),
        ("openai", f" {KEY}\n", {"authorization": f"Bearer {KEY}"}),
        ("anthropic", "", {"x-api-key": None, "anthropic-version": "2023-06-01"}),
        ("anthropic", KEY, {"x-api-key": KEY, "anthropic-version": "2023-06-01"}),
        ("gemini", KEY, {"x-goog-api-key": KEY}),
        ("ollama", "", {"authorization": None}),
        ("ollama", KEY, {"authorization": f"Bearer {KEY}"}),
    ],
)
def test_a_key_goes_in_a_header_and_only_when_there_is_one(
    server: LlmServer,
    clock: FakeClock,
    name: str,
    key: str,
    headers: dict[str, str | None],
) -> None:
    llm = make(name, server.url, clock, key=key)

    ask(llm)
    llm.close()

    (asked,) = server.asked
    assert {each: asked.headers.get(each) for each in headers} == headers
    assert KEY not in asked.path


def test_thoughts_get_only_what_is_left_of_the_context(
    server: LlmServer, clock: FakeClock
) -> None:
    needed = most_tokens(SYSTEM) + most_tokens(PROMPT) + 500
    llm = make("openai", server.url, clock, context_tokens=needed + 10)

    ask(llm)
    llm.close()

    (asked,) = server.asked
    assert asked.body["max_tokens"] == 510


@pytest.mark.parametrize(
    "said",
    [
        b'{"error": {"message": "\'max_tokens\' is not supported with this model. Use '
        b"'max_completion_tokens' instead.\"}}",
        b'{"detail": [{"type": "extra_forbidden", "loc": ["body", "max_tokens"]}]}',
    ],
    ids=["openai", "a checking server"],
)
def test_a_limit_that_a_server_does_not_know_by_one_name_is_given_by_the_other(
    server: LlmServer, clock: FakeClock, said: bytes
) -> None:
    server.faults = [Fault(400, said)]
    llm = make("openai", server.url, clock)

    first, second = ask(llm), ask(llm)
    llm.close()

    limit = 500 + THOUGHT_TOKENS
    limits = [
        {name: value for name, value in asked.body.items() if name.startswith("max")}
        for asked in server.asked
    ]
    assert first == second
    assert limits == [
        {"max_tokens": limit},
        {"max_completion_tokens": limit},
        {"max_completion_tokens": limit},
    ]


def test_openai_itself_is_asked_for_little_thinking_by_its_own_names(
    server: LlmServer, clock: FakeClock
) -> None:
    row = LlmRow("openai", "", "", "gpt-6-luna", server.url, context_tokens=50_000)
    llm = OpenAiLlm(row, LlmOptions(key=KEY), clock.clock())
    server.faults = [
        Fault(400, b'{"error": {"message": "unknown argument: reasoning_effort"}}')
    ]

    ask(llm)
    llm.close()

    limit = 500 + THOUGHT_TOKENS
    wanted, told = (
        {name: asked.body.get(name) for name in ("max_completion_tokens", "max_tokens")}
        | {"effort": asked.body.get("reasoning_effort")}
        for asked in server.asked
    )
    assert wanted == {
        "max_completion_tokens": limit,
        "max_tokens": None,
        "effort": "low",
    }
    assert told == wanted | {"effort": None}


@pytest.mark.parametrize(
    ("name", "part", "said"),
    [
        ("openai", "response_format", "'response_format.type' must be 'json_schema'"),
        ("anthropic", "thinking", "thinking: this model cannot do without"),
    ],
)
def test_a_part_that_a_server_refuses_is_left_out(
    server: LlmServer, clock: FakeClock, name: str, part: str, said: str
) -> None:
    server.faults = [Fault(400, json.dumps({"error": {"message": said}}).encode())]
    llm = make(name, server.url, clock)

    ask(llm, wants_json=True)
    llm.close()

    assert [part in asked.body for asked in server.asked] == [True, False]
    assert server.asked[-1].body["max_tokens"] == 500 + THOUGHT_TOKENS


def test_a_server_that_refuses_whatever_it_is_asked_is_not_asked_for_ever(
    served: HttpLlm, server: LlmServer
) -> None:
    said = (
        b'{"error": "max_tokens max_completion_tokens response_format thinking '
        b'reasoning_effort: no"}'
    )
    server.faults = [Fault(400, said, for_ever=True)]

    with pytest.raises(ProviderRefused, match="answered 400: max_tokens"):
        ask(served, wants_json=True)

    assert len(server.asked) <= 3


# -- a server that fails --------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "slept"),
    [
        (Fault(429, headers=(("Retry-After", "3"),)), [3.0]),
        (Fault(429, headers=(("Retry-After", "86400"),)), [60]),
        (
            Fault(
                429,
                headers=(
                    ("Date", "Mon, 16 Nov 2026 02:00:00 GMT"),
                    ("Retry-After", "Mon, 16 Nov 2026 02:00:07 GMT"),
                ),
            ),
            [7.0],
        ),
        (Fault(429, headers=(("Retry-After", "tomorrow"),)), [0.5]),
        (Fault(408), [0.5]),
        (Fault(500), [0.5]),
        (Fault(503, b"<html>busy</html>"), [0.5]),
        (Fault(529, b'{"error": {"message": "Overloaded"}}'), [0.5]),
        (Fault(body=b'{"choices"', cut_off=True), [0.5]),
    ],
    ids=[
        "429",
        "429 too long",
        "429 date",
        "429 odd",
        "408",
        "500",
        "503",
        "529",
        "cut off",
    ],
)
def test_a_failure_that_passes_is_waited_out(
    served: HttpLlm,
    server: LlmServer,
    clock: FakeClock,
    fault: Fault,
    slept: Sequence[float],
) -> None:
    server.faults = [fault]

    assert ask(served).text == "Sushi was eaten."
    assert clock.slept == slept


def test_a_server_that_stays_broken_is_given_up_after_a_few_tries(
    served: HttpLlm, server: LlmServer, clock: FakeClock
) -> None:
    server.faults = [Fault(500, b'{"error": "out of memory"}', for_ever=True)]

    with pytest.raises(ProviderUnavailable, match="answered 500: out of memory") as got:
        ask(served)

    assert clock.slept == [0.5, 2.0, 8.0]
    assert got.value.hint == "nothing is lost; it is asked again later"


@pytest.mark.parametrize("name", SERVED)
def test_all_tries_together_take_no_longer_than_the_timeout(
    server: LlmServer, clock: FakeClock, name: str
) -> None:
    server.faults = [Fault(429, headers=(("Retry-After", "9"),), for_ever=True)]
    llm = make(name, server.url, clock, timeout_s=20.0)

    with pytest.raises(ProviderUnavailable, match="answered 429"):
        ask(llm)
    llm.close()

    assert clock.slept == [9.0, 9.0]


def test_a_second_try_has_only_the_time_that_is_left(
    server: LlmServer, clock: FakeClock
) -> None:
    server.faults = [
        Fault(429, headers=(("Retry-After", "19.9"),)),
        Fault(is_held=True),
    ]
    llm = make("openai", server.url, clock, timeout_s=20.0)

    with pytest.raises(ProviderUnavailable, match=r"no answer within 0\.1 seconds"):
        ask(llm)
    llm.close()


def test_after_a_failure_the_next_call_tries_again(
    served: HttpLlm, server: LlmServer
) -> None:
    server.faults = [Fault(500)] * 4
    with pytest.raises(ProviderUnavailable):
        ask(served)

    assert ask(served).text == "Sushi was eaten."


@pytest.mark.parametrize("name", SERVED)
def test_a_server_that_is_not_there_is_unavailable(clock: FakeClock, name: str) -> None:
    llm = make(name, "http://127.0.0.1:1", clock)

    with pytest.raises(ProviderUnavailable) as caught:
        ask(llm)
    llm.close()

    assert str(caught.value) == (
        f"the language model '{name}' at 127.0.0.1:1 cannot be reached"
    )


@pytest.mark.parametrize("name", SERVED)
def test_a_slow_server_is_asked_once_and_not_waited_for(
    server: LlmServer, name: str
) -> None:
    server.faults = [Fault(is_held=True, for_ever=True)]
    llm = load(name, url=server.url, environ={}, timeout_s=0.5)

    with pytest.raises(ProviderUnavailable, match=r"no answer within 0\.5 seconds"):
        ask(llm)
    llm.close()

    assert len(server.asked) == 1


def test_a_server_that_drips_is_not_waited_for_either(server: LlmServer) -> None:
    server.faults = [Fault(body=b" " * 100_000, drip=True, for_ever=True)]
    llm = load("openai", url=server.url, environ={}, timeout_s=0.2)

    with pytest.raises(ProviderUnavailable, match=r"no answer within 0\.2 seconds"):
        ask(llm)
    llm.close()


@cases(
    ("fault", "said"),
    [
        (Fault(401, b'{"error": {"message": "bad key"}}'), "answered 401: bad key"),
        (Fault(403, b"<html>" + b"x" * 9_000), "answered 403"),
        (
            Fault(404, b'{"error": "model \\"x\\" not found, try pulling it first"}'),
            'answered 404: model "x" not found, try pulling it first',
        ),
        (
            Fault(400, b'[{"error": {"message": "no such \\u001b[31mtask"}}]'),
            "answered 400: no such ␛[31mtask",
        ),
        (
            Fault(
                429,
                b'{"error": {"message": "no money", "code": "insufficient_quota"}}',
            ),
            "answered 429: no money",
        ),
        (
            Fault(
                401, b'{"error": {"message": "Incorrect key: ' + KEY.encode() + b'."}}'
            ),
            "answered 401: Incorrect key: [key].",
        ),
        (
            Fault(307, headers=(("Location", "http://127.0.0.2/v1"),)),
            "redirects (status 307)",
        ),
    ],
    ids=["key", "page", "model", "escape", "quota", "key repeated", "redirect"],
)
def test_a_refusal_is_told_in_the_servers_words_and_not_repeated(
    served: HttpLlm, server: LlmServer, clock: FakeClock, fault: Fault, said: str
) -> None:
    server.asked.clear()
    server.faults = [fault]

    with pytest.raises(ProviderRefused) as caught:
        ask(served)

    host, name = server.url.removeprefix("http://"), served.title.partition(" ")[0]
    assert str(caught.value) == f"the language model '{name}' at {host} {said}"
    assert caught.value.hint == (
        "check the settings that begin with llm: 'backstory settings' shows them"
    )
    assert not isinstance(caught.value, PromptTooLong)
    assert clock.slept == []
    assert len(server.asked) == 1


@cases(
    ("status", "said"),
    [
        (400, "This model's maximum context length is 128000 tokens."),
        (400, "Your input exceeds the context window of this model."),
        (400, "prompt is too long: 208310 tokens > 200000 maximum"),
        (400, "input length and `max_tokens` exceed context limit: 190000 + 16000"),
        (400, "The input token count (1200000) exceeds the maximum number (1048576)."),
        (400, '{"error":{"message":"request (8889 tokens) exceeds the available"}}'),
        (422, "inputs must have less than 4096 tokens: context size is 4096"),
        (500, "the input length exceeds the context length"),
        (413, "Request entity is big"),
    ],
)
def test_a_prompt_that_the_server_finds_too_long_is_told_apart(
    served: HttpLlm, server: LlmServer, clock: FakeClock, status: int, said: str
) -> None:
    server.faults = [Fault(status, json.dumps({"error": said}).encode())]

    with pytest.raises(PromptTooLong, match=f"answered {status}: "):
        ask(served)

    assert clock.slept == []


@cases(
    ("body", "said"),
    [
        (b"", "gave an answer that is not JSON"),
        (b'{"choices": [{"mess', "gave an answer that is not JSON"),
        (b"[" * 100_000, "gave an answer that is not JSON"),
        (b"{}", "gave an answer without a text"),
        (b"[]", "gave an answer without a text"),
        (b"null", "gave an answer without a text"),
        (b'"Sushi"', "gave an answer without a text"),
        (
            b'{"choices": [], "content": 1, "candidates": [], "message": "x"}',
            "gave an answer without a text",
        ),
        (
            b'{"choices": [{"message": {"content": 1}}], "content": [{"type": "text"}],'
            b' "candidates": [{"content": 1}], "message": {"content": null}}',
            "gave an answer without a text",
        ),
        (b" " * HUGE, "gave an answer longer than 16,000,000 bytes"),
    ],
    ids=[
        "empty",
        "half",
        "deep",
        "nothing",
        "list",
        "null",
        "text",
        "wrong",
        "wrong inside",
        "huge",
    ],
)
def test_an_answer_of_another_shape_is_not_taken(
    served: HttpLlm, server: LlmServer, body: bytes, said: str
) -> None:
    server.faults = [Fault(body=body)]

    with pytest.raises(ProviderUnavailable) as caught:
        ask(served)

    assert str(caught.value).endswith(said)


def test_a_gateway_whose_model_broke_off_has_not_answered(
    server: LlmServer, clock: FakeClock
) -> None:
    choice = {"message": {"content": "Sushi w"}, "finish_reason": "error"}
    server.faults = [Fault(body=json.dumps({"choices": [choice]}).encode())]
    llm = make("openai", server.url, clock)

    with pytest.raises(ProviderUnavailable, match="without a text"):
        ask(llm)
    llm.close()


@pytest.mark.parametrize(
    ("name", "body"),
    [
        ("openai", {"choices": [{"message": {"refusal": "No.", "content": None}}]}),
        ("gemini", {"promptFeedback": {"blockReason": "SAFETY"}}),
        ("gemini", {"candidates": [{"finishReason": "PROHIBITED_CONTENT"}]}),
    ],
)
def test_a_refusal_without_a_text_is_one_by_a_filter(
    server: LlmServer, clock: FakeClock, name: str, body: object
) -> None:
    server.faults = [Fault(body=json.dumps(body).encode())]
    llm = make(name, server.url, clock)

    with pytest.raises(UnusableAnswer, match="was refused by a filter"):
        ask(llm)
    llm.close()


def test_an_answer_in_pieces_is_put_together(
    server: LlmServer, clock: FakeClock
) -> None:
    pieces = [
        {"type": "text", "text": "Su"},
        {"type": "x"},
        {"type": "text", "text": "shi"},
    ]
    message: dict[str, Any] = {"message": {"content": pieces}}
    server.faults = [Fault(body=json.dumps({"choices": [message]}).encode())]
    llm = make("openai", server.url, clock)

    assert ask(llm).text == "Sushi"
    llm.close()


def test_a_thread_that_waits_for_the_server_holds_up_no_other(
    server: LlmServer, clock: FakeClock
) -> None:
    server.faults = [Fault(is_held=True)]
    llm = make("openai", server.url, clock)
    slow = threading.Thread(target=ask, args=(llm, "slow"))
    slow.start()
    assert comes_true(lambda: bool(server.asked))

    answer = ask(llm, "quick")

    assert slow.is_alive()
    assert answer.text == "Sushi was eaten."
    server.let_go.set()
    slow.join()
    llm.close()


# -- programs -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "argv"),
    [
        (
            "claude",
            [
                "--print",
                "--model",
                "haiku",
                "--system-prompt-file",
                "CWD/system.txt",
                "--output-format",
                "json",
                "--no-session-persistence",
                "--tools",
                "",
                "--safe-mode",
                "--strict-mcp-config",
            ],
        ),
        (
            "codex",
            [
                "exec",
                "--ephemeral",
                "--skip-git-repo-check",
                "--sandbox",
                "read-only",
                "--disable",
                "hooks",
                "--disable",
                "shell_tool",
                "--config",
                "mcp_servers={}",
                "--json",
                "--output-last-message",
                "CWD/answer.txt",
                "-",
            ],
        ),
    ],
)
def test_a_program_is_run_without_tools_hooks_and_sessions(
    tmp_path: Path, name: str, argv: list[str]
) -> None:
    program = FakeProgram(name, tmp_path / "bin")

    ask(run(program))

    (asked,) = program.asked
    assert [each.replace(asked["cwd"], "CWD") for each in asked["argv"]] == argv


def test_no_text_stands_on_the_command_line_however_long_it_is(
    program: FakeProgram,
) -> None:
    prompt = "nobody else may read this " * 12_000

    ask(run(program), prompt, system="and neither this")

    (asked,) = program.asked
    assert asked["stdin"].endswith(prompt)
    assert "nobody" not in " ".join(asked["argv"])
    assert "neither" not in " ".join(asked["argv"])


def test_a_program_gets_a_private_folder_that_is_gone_afterwards(
    program: FakeProgram,
) -> None:
    ask(run(program))

    (asked,) = program.asked
    assert asked["mode"] == 0o700
    assert set(asked["files"]) <= {"system.txt"}
    assert not Path(asked["cwd"]).exists()


def test_a_program_sees_the_environment_but_not_what_is_ours(
    program: FakeProgram,
) -> None:
    environ = {
        "PATH": str(program.folder),
        "HOME": "/home/someone",
        "BACKSTORY_HOME": "/x",
        "BACKSTORY_LLM_NAME": "claude",
        "CLAUDECODE": "1",
    }

    ask(load(program.name, environ=environ))

    (asked,) = program.asked
    own = {"claude": {"CLAUDECODE"}, "codex": set()}[program.name]
    kept = {name: asked["environ"].get(name) for name in environ}
    assert kept == {
        name: None if name.startswith("BACKSTORY_") or name in own else value
        for name, value in environ.items()
    }


def test_claude_is_told_how_much_it_may_write(tmp_path: Path) -> None:
    program = FakeProgram("claude", tmp_path / "bin")

    ask(run(program))

    (asked,) = program.asked
    limit = asked["environ"]["CLAUDE_CODE_MAX_OUTPUT_TOKENS"]
    assert limit == str(500 + THOUGHT_TOKENS)


def test_a_program_is_told_which_model_to_take(program: FakeProgram) -> None:
    environ = {"PATH": str(program.folder)}
    llm = load_llm(program.name, model="big-one", environ=environ)
    assert llm is not None

    ask(llm)

    (asked,) = program.asked
    assert asked["argv"][asked["argv"].index("--model") + 1] == "big-one"


@pytest.mark.skipif(sys.platform == "win32", reason="reads /proc")
def test_a_program_that_hangs_is_ended_with_all_that_it_started(
    program: FakeProgram,
) -> None:
    program.hang()

    with pytest.raises(ProviderUnavailable) as caught:
        ask(run(program, timeout_s=0.5))

    child = int((program.folder / "child").read_text())
    assert str(caught.value) == (
        f"the program '{program.name}' gave no answer within 0.5 seconds"
    )
    assert comes_true(lambda: not is_running(child))


def is_running(process_id: int) -> bool:
    """Whether it still runs; one that is dead may wait to be reaped."""
    try:
        status = Path(f"/proc/{process_id}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] != "Z"


def test_a_program_that_never_stops_writing_is_ended(program: FakeProgram) -> None:
    program.play(Play(floods=True))

    with pytest.raises(ProviderUnavailable, match="longer than 16,000,000 bytes"):
        ask(run(program))


def test_a_program_that_is_not_there_is_refused(tmp_path: Path) -> None:
    llm = load("claude", environ={"PATH": str(tmp_path)})

    with pytest.raises(ProviderRefused) as caught:
        ask(llm)

    assert str(caught.value) == "the program 'claude' is not on the PATH"
    assert caught.value.hint == "install it, or set llm.name to another model"


def test_a_model_whose_name_cannot_be_said_is_unavailable(
    program: FakeProgram,
) -> None:
    environ = {"PATH": str(program.folder)}
    llm = load_llm(program.name, model="a\x00b", environ=environ)
    assert llm is not None

    with pytest.raises(ProviderUnavailable, match=r"cannot be run \(embedded null"):
        ask(llm)


def test_a_program_that_cannot_be_run_is_unavailable(tmp_path: Path) -> None:
    program = FakeProgram("claude", tmp_path / "bin")
    (program.folder / "claude").write_text("#!/no/such/interpreter\n")

    with pytest.raises(ProviderUnavailable) as caught:
        ask(run(program))

    assert str(caught.value) == (
        "the program 'claude' cannot be run (No such file or directory)"
    )


@pytest.mark.parametrize(
    ("name", "play", "error", "said"),
    [
        (
            "claude",
            Play(claude_prints("Not logged in · Please run /login", is_error=True)),
            ProviderRefused,
            ": Not logged in · Please run /login",
        ),
        (
            "claude",
            Play(claude_prints("Invalid API key", is_error=True, status=401), code=1),
            ProviderRefused,
            ": Invalid API key",
        ),
        (
            "claude",
            Play(claude_prints("Overloaded, try 404", is_error=True, status=529)),
            ProviderUnavailable,
            ": Overloaded, try 404",
        ),
        (
            "claude",
            Play(claude_prints("API Error: Slow down", is_error=True, status=429)),
            ProviderUnavailable,
            ": API Error: Slow down",
        ),
        (
            "claude",
            Play(claude_prints("Prompt is too long · ~208310", is_error=True)),
            PromptTooLong,
            ": Prompt is too long · ~208310",
        ),
        (
            "claude",
            Play(stderr="error: unknown option '--safe-mode'\n", code=1),
            ProviderRefused,
            ": error: unknown option '--safe-mode'",
        ),
        ("claude", Play("rubbish \x1b[31m"), ProviderUnavailable, ": rubbish ␛[31m"),
        ("claude", Play("[]"), ProviderUnavailable, ": []"),
        ("claude", Play('{"result": 1}'), ProviderUnavailable, ': {"result": 1}'),
        ("claude", Play(code=1), ProviderUnavailable, ""),
        (
            "codex",
            Play(
                codex_prints(
                    {"type": "error", "message": "Reconnecting... 1/1"},
                    {
                        "type": "turn.failed",
                        "error": {"message": "unexpected status 401 Unauthorized"},
                    },
                ),
                code=1,
            ),
            ProviderRefused,
            ": unexpected status 401 Unauthorized",
        ),
        (
            "codex",
            Play(
                codex_prints(
                    {"type": "error", "message": "We’re experiencing high demand."}
                ),
                code=1,
            ),
            ProviderUnavailable,
            ": We’re experiencing high demand.",
        ),
        (
            "codex",
            Play(
                codex_prints(
                    {
                        "type": "turn.failed",
                        "error": {"message": "Your input exceeds the context window"},
                    }
                ),
                code=1,
            ),
            PromptTooLong,
            ": Your input exceeds the context window",
        ),
        (
            "codex",
            Play(stderr="WARNING: x\nError: Unknown feature flag: hooks\n", code=1),
            ProviderRefused,
            ": Error: Unknown feature flag: hooks",
        ),
        (
            "codex",
            Play("rubbish\n7\n", answer="Sushi", code=1),
            ProviderUnavailable,
            "",
        ),
        ("codex", Play("{}", stderr="bye"), ProviderUnavailable, ": bye"),
    ],
)
def test_a_program_that_gives_no_answer_is_told_in_its_words(
    tmp_path: Path, name: str, play: Play, error: type[ProviderError], said: str
) -> None:
    program = FakeProgram(name, tmp_path / "bin")
    program.play(play)

    with pytest.raises(ProviderError) as caught:
        ask(run(program))

    assert type(caught.value) is error
    assert str(caught.value) == f"the program '{name}' gave no answer{said}"


def test_a_model_of_ollama_is_looked_for_without_a_prompt(server: LlmServer) -> None:
    missing = Fault(404, b'{"error": "model \'gemma4:e2b\' not found"}')

    with closing(load("ollama", environ={}, url=server.url)) as llm:
        llm.check()
        server.faults = [missing]
        with pytest.raises(ProviderRefused) as caught:
            llm.check()

    asked = ("/api/show", {"model": "gemma4:e2b"})
    assert [(each.path, each.body) for each in server.asked] == [asked, asked]
    assert str(caught.value).endswith("answered 404: model 'gemma4:e2b' not found")
    assert caught.value.hint == (
        "run 'ollama pull gemma4:e2b', or set llm.model to one it has"
    )
