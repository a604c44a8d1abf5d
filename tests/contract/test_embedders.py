"""What every embedder must do: for real, or against a real server on loopback."""

import multiprocessing
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import (
    ConfigError,
    ProviderRefused,
    ProviderUnavailable,
    UnknownName,
)
from backstory.providers.embedders import EMBEDDERS, get_embedder_row, load_embedder
from backstory.providers.embedders.base import Embedder, EmbedderOptions, EmbedderRow
from backstory.providers.embedders.gemini import GeminiEmbedder
from backstory.providers.embedders.http import Clock, HttpEmbedder
from backstory.providers.embedders.ollama import OllamaEmbedder
from backstory.providers.embedders.openai import OpenAiEmbedder
from tests.chance import examples
from tests.embedding_server import EmbeddingServer, letter_counts, running_server
from tests.faulty_server import Fault
from tests.grid import cases, in_one_test
from tests.processes import comes_true

# 'auto' is one of the others.
EMBEDDING = [row.name for row in EMBEDDERS if row.target and row.name != "auto"]
SERVED: dict[str, type[HttpEmbedder]] = {
    "ollama": OllamaEmbedder,
    "openai": OpenAiEmbedder,
    "gemini": GeminiEmbedder,
}
KEY = "sk-very-secret-key"
ODD_TEXTS = {
    "empty": "",
    "blank": " \n\t ",
    "a megabyte": "word " * 200_000,
    "a megabyte without a space": "x" * 1_000_000,
    "nul": "before\x00after",
    "half a surrogate pair": "broken \ud83d text",
    "emoji": "👩‍👩‍👧‍👦🏳️‍🌈",
    "chinese": "我们上周决定了什么？",
    "special tokens": "[PAD] [CLS] [SEP] [MASK] [UNK]",
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


@pytest.fixture(scope="module")
def a_server() -> Iterator[EmbeddingServer]:
    with running_server() as state:
        yield state


@pytest.fixture
def server(a_server: EmbeddingServer) -> Iterator[EmbeddingServer]:
    """The one server of this module, asked nothing yet and with no faults."""
    a_server.start_afresh()
    yield a_server
    a_server.start_afresh()


@pytest.fixture(params=EMBEDDING)
def embedder(
    request: pytest.FixtureRequest, server: EmbeddingServer
) -> Iterator[Embedder]:
    made = load_embedder(
        request.param, url=server.url, key="env:KEY", environ={"KEY": KEY}
    )
    assert made is not None
    yield made
    made.close()


@pytest.fixture
def clock() -> FakeClock:
    return FakeClock()


@pytest.fixture(params=SERVED)
def served(
    request: pytest.FixtureRequest, server: EmbeddingServer, clock: FakeClock
) -> Iterator[HttpEmbedder]:
    made = make(request.param, server.url, clock)
    yield made
    made.close()


def make(
    name: str,
    url: str,
    clock: FakeClock,
    *,
    model: str = "",
    key: str = KEY,
    timeout_s: float = 5.0,
) -> HttpEmbedder:
    options = EmbedderOptions(model, url, key, timeout_s)
    return SERVED[name](get_embedder_row(name), options, clock.clock())


def unit(text: str) -> list[float]:
    counts = np.array(letter_counts(text))
    return [round(each, 5) for each in (counts / np.linalg.norm(counts)).tolist()]


def rounded(vectors: np.ndarray[tuple[int, ...], np.dtype[np.float32]]) -> list[object]:
    return [[round(each, 5) for each in row] for row in vectors.tolist()]


# -- every embedder -------------------------------------------------------------------


def test_every_row_that_asks_a_server_is_in_this_suite() -> None:
    assert [row.name for row in EMBEDDERS if row.default_url] == list(SERVED)


def test_there_is_one_row_a_text_of_length_one_in_single_precision(
    embedder: Embedder,
) -> None:
    vectors = embedder.embed_texts(["a cat", "a dog", "a cat"])

    assert vectors.dtype == np.float32
    assert vectors.shape[0] == 3
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)


def test_no_texts_have_no_vectors(embedder: Embedder) -> None:
    assert len(embedder.embed_texts([])) == 0


@in_one_test("text", ODD_TEXTS)
def test_any_text_has_a_vector(embedder: Embedder, text: str) -> None:
    vectors = embedder.embed_texts(["before", text, "after"])

    assert vectors.shape[0] == 3
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1, atol=1e-5)
    assert embedder.embed_query(text).shape == vectors[0].shape


@settings(max_examples=examples(20))
@given(texts=st.lists(st.text(st.characters(exclude_categories=()), max_size=50)))
@pytest.mark.parametrize("name", EMBEDDING)
def test_whatever_the_texts_are_each_has_a_vector(
    a_server: EmbeddingServer, name: str, texts: list[str]
) -> None:
    embedder = load_embedder(
        name, url=a_server.url, key="env:KEY", environ={"KEY": KEY}
    )
    assert embedder is not None

    with closing(embedder):
        vectors = embedder.embed_texts(texts)

    assert len(vectors) == len(texts)
    assert np.isfinite(vectors).all()


def test_the_order_of_texts_is_kept_over_many_batches(embedder: Embedder) -> None:
    texts = [f"{'word ' * (number % 7)} number {number}" for number in range(230)]

    together = embedder.embed_texts(texts)

    picked = [0, 1, 99, 100, 101, 229]
    alone = np.stack([embedder.embed_texts([texts[place]])[0] for place in picked])
    nearest = (alone @ together[picked].T).argmax(axis=1)
    assert nearest.tolist() == list(range(len(picked)))


def test_a_vector_hardly_depends_on_the_texts_beside_it(embedder: Embedder) -> None:
    text = "The table is booked for Friday at seven."

    alone = embedder.embed_texts([text])[0]
    beside = embedder.embed_texts(["x", text, "long " * 300, "https://example.org"])[1]

    assert float(alone @ beside) > 0.98


def test_the_fingerprint_names_the_embedder_and_needs_no_server(
    embedder: Embedder, server: EmbeddingServer
) -> None:
    before = embedder.fingerprint
    embedder.embed_query("hello")

    assert embedder.fingerprint == before
    assert before.partition(":")[0] in (*SERVED, "minilm")
    assert KEY not in before
    assert "127.0.0.1" not in before


def test_a_closed_embedder_can_be_used_again(embedder: Embedder) -> None:
    before = embedder.embed_query("hello")
    embedder.close()
    embedder.close()

    after = embedder.embed_query("hello")

    np.testing.assert_array_equal(before, after)


def test_several_threads_may_use_it_at_once(embedder: Embedder) -> None:
    texts = [f"question number {number}" for number in range(24)]

    with ThreadPoolExecutor(6) as pool:
        found = list(pool.map(embedder.embed_query, texts))

    again = [embedder.embed_query(text) for text in texts]
    np.testing.assert_allclose(np.stack(found), np.stack(again), atol=1e-6)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_may_use_it(embedder: Embedder) -> None:
    before = embedder.embed_query("hello")
    context = multiprocessing.get_context("fork")
    told = context.Queue()

    child = context.Process(
        target=lambda: told.put(embedder.embed_texts(["hello"] * 40).shape)
    )
    child.start()

    assert told.get(timeout=20) == (40, len(before))
    child.join(20)
    assert child.exitcode == 0
    told.close()
    told.join_thread()


@pytest.mark.parametrize("text", ["plain words", "", "42", "naïve café"])
def test_every_embedder_reads_latin_text(embedder: Embedder, text: str) -> None:
    assert embedder.can_read(text)


# -- the table ------------------------------------------------------------------------


def test_none_embeds_nothing() -> None:
    assert load_embedder("none") is None


def test_auto_is_the_bundled_model() -> None:
    auto, minilm = load_embedder("auto"), load_embedder("minilm")

    assert auto is not None
    assert minilm is not None
    assert auto.fingerprint == minilm.fingerprint


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(UnknownName) as caught:
        load_embedder("olama")

    assert str(caught.value) == "no embedder is called 'olama'"
    assert caught.value.hint == "did you mean 'ollama'?"


def test_a_package_that_is_missing_makes_an_embedder_unavailable() -> None:
    row = EmbedderRow("odd", "backstory.providers.embedders.absent:OddEmbedder", "")

    with pytest.raises(ProviderUnavailable) as caught:
        row.load(EmbedderOptions())

    assert str(caught.value) == (
        "the embedder 'odd' needs a package that cannot be loaded "
        "(No module named 'backstory.providers.embedders.absent')"
    )


def test_the_default_loads_no_library_before_the_first_text() -> None:
    program = (
        "import sys\n"
        "from backstory.providers.embedders import load_embedder\n"
        "embedder = load_embedder('auto')\n"
        "embedder.fingerprint, embedder.can_read('\\u6211\\u4eec')\n"
        "heavy = {'numpy', 'onnxruntime', 'httpx'}\n"
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
            "the embedder 'openai' needs a key for api.openai.com",
        ),
        (
            "gemini",
            {},
            "the embedder 'gemini' needs a key for generativelanguage.googleapis.com",
        ),
        (
            "ollama",
            {"url": "localhost:11434"},
            "'localhost:11434' is not an http or https address",
        ),
        (
            "openai",
            {"url": "http://[bad"},
            "'http://[bad' is not an http or https address",
        ),
        (
            "openai",
            {"key": "env:KEY", "environ": {"KEY": "sk-\x1bbad"}},
            "the key of the embedder 'openai' contains characters that are not valid "
            "in a key",
        ),
    ],
)
def test_settings_that_cannot_work_are_said_at_once(
    name: str, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError) as caught:
        load_embedder(name, **options)

    assert str(caught.value) == message


# -- the wire -------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "path", "body"),
    [
        (
            "ollama",
            "/api/embed",
            {
                "model": "nomic-embed-text",
                "input": ["search_document: one", "search_document: two"],
                "truncate": True,
            },
        ),
        (
            "openai",
            "/embeddings",
            {
                "model": "text-embedding-3-small",
                "input": ["one", "two"],
                "encoding_format": "float",
            },
        ),
        (
            "gemini",
            "/v1beta/models/gemini-embedding-001:batchEmbedContents",
            {
                "requests": [
                    {
                        "model": "models/gemini-embedding-001",
                        "content": {"parts": [{"text": text}]},
                        "taskType": "RETRIEVAL_DOCUMENT",
                    }
                    for text in ("one", "two")
                ]
            },
        ),
    ],
)
def test_texts_are_sent_in_the_form_that_the_server_knows(
    server: EmbeddingServer, clock: FakeClock, name: str, path: str, body: object
) -> None:
    embedder = make(name, server.url + "/", clock)

    embedder.embed_texts(["one", "two"])
    embedder.close()

    (asked,) = server.asked
    assert (asked.path, asked.body) == (path, body)
    assert asked.headers["content-type"] == "application/json"


@pytest.mark.parametrize(
    ("name", "model", "sent"),
    [
        ("ollama", "", "search_query: one"),
        ("ollama", "nomic-embed-text:v1.5", "search_query: one"),
        ("ollama", "bge-m3", "one"),
        ("openai", "", "one"),
        ("gemini", "", "one"),
    ],
)
def test_a_query_is_marked_as_one_where_the_model_wants_it(
    server: EmbeddingServer, clock: FakeClock, name: str, model: str, sent: str
) -> None:
    embedder = make(name, server.url, clock, model=model)

    vector = embedder.embed_query("one")
    embedder.close()

    assert server.texts() == [[sent]]
    assert rounded(vector[None]) == [unit(sent)]


def test_gemini_is_told_that_a_query_is_one(
    server: EmbeddingServer, clock: FakeClock
) -> None:
    embedder = make("gemini", server.url, clock, model="models/other")

    embedder.embed_query("one")
    embedder.close()

    (asked,) = server.asked
    assert asked.path == "/v1beta/models/other:batchEmbedContents"
    assert [each["taskType"] for each in asked.body["requests"]] == ["RETRIEVAL_QUERY"]


@pytest.mark.parametrize(
    ("name", "key", "header", "value"),
    [
        ("ollama", "", "authorization", None),
        ("ollama", KEY, "authorization", f"Bearer {KEY}"),
        ("openai", "", "authorization", None),
        ("openai", f" {KEY}\n", "authorization", f"Bearer {KEY}"),
        ("gemini", KEY, "x-goog-api-key", KEY),
    ],
)
def test_a_key_goes_in_a_header_and_only_when_there_is_one(
    server: EmbeddingServer,
    clock: FakeClock,
    name: str,
    key: str,
    header: str,
    value: str | None,
) -> None:
    embedder = make(name, server.url, clock, key=key)

    embedder.embed_query("one")
    embedder.close()

    (asked,) = server.asked
    assert asked.headers.get(header) == value
    assert KEY not in asked.path


def test_each_text_gets_its_own_vector(
    served: HttpEmbedder, server: EmbeddingServer
) -> None:
    vectors = served.embed_texts(["apple", "banana", "cherry"])

    (sent,) = server.texts()
    assert rounded(vectors) == [unit(text) for text in sent]


def test_a_secret_at_the_cut_is_masked_before_the_text_is_cut(
    served: HttpEmbedder, server: EmbeddingServer
) -> None:
    # Only its first half is within the limit.
    text = "x " * 3_990 + "key sk-" + "proj4fQ8sT2vKx9LmN3bR7wZ"

    served.embed_texts([text])

    (sent,) = server.texts()
    assert "sk-p" in sent[0]
    assert "proj4" not in sent[0]


def test_requests_are_bounded_in_texts_and_in_characters(
    served: HttpEmbedder, server: EmbeddingServer
) -> None:
    served.embed_texts(["short"] * 101 + ["y" * 50_000] * 20)

    sent = server.texts()
    assert sum(map(len, sent)) == 121
    assert max(map(len, sent)) <= 100
    assert max(len(text) for texts in sent for text in texts) <= 8_100
    assert max(sum(map(len, texts)) for texts in sent) <= 102_000


# -- a server that fails --------------------------------------------------------------


@pytest.mark.parametrize(
    ("fault", "slept"),
    [
        (Fault(429, headers=(("Retry-After", "3"),)), [3.0]),
        (Fault(429, headers=(("Retry-After", "86400"),)), [20]),
        (Fault(429, headers=(("Retry-After", "tomorrow"),)), [0.5]),
        (Fault(500), [0.5]),
        (Fault(503, b"<html>busy</html>"), [0.5]),
        (Fault(body=b'{"embeddings"', cut_off=True), [0.5]),
    ],
    ids=["429", "429 too long", "429 odd", "500", "503", "cut off"],
)
def test_a_failure_that_passes_is_waited_out(
    served: HttpEmbedder,
    server: EmbeddingServer,
    clock: FakeClock,
    fault: Fault,
    slept: Sequence[float],
) -> None:
    server.faults = [fault]

    vectors = served.embed_texts(["apple"])

    assert rounded(vectors) == [unit(server.texts()[-1][0])]
    assert clock.slept == slept


def test_a_server_that_stays_broken_is_given_up_after_a_few_tries(
    served: HttpEmbedder, server: EmbeddingServer, clock: FakeClock
) -> None:
    server.faults = [Fault(500, b'{"error": "out of memory"}', for_ever=True)]

    with pytest.raises(ProviderUnavailable, match="answered 500: out of memory"):
        served.embed_texts(["apple"])

    assert clock.slept == [0.5, 2.0, 8.0]


def test_a_query_is_given_up_sooner_than_texts(
    served: HttpEmbedder, server: EmbeddingServer, clock: FakeClock
) -> None:
    server.faults = [Fault(429, headers=(("Retry-After", "60"),), for_ever=True)]

    with pytest.raises(ProviderUnavailable, match="answered 429"):
        served.embed_query("apple")

    assert clock.slept == [1]


def test_after_a_failure_the_next_call_tries_again(
    served: HttpEmbedder, server: EmbeddingServer
) -> None:
    server.faults = [Fault(500)] * 4
    with pytest.raises(ProviderUnavailable):
        served.embed_texts(["apple"])

    assert served.embed_texts(["apple"]).shape == (1, 37)


@pytest.mark.parametrize("name", SERVED)
def test_a_server_that_is_not_there_is_unavailable(clock: FakeClock, name: str) -> None:
    embedder = make(name, "http://127.0.0.1:1", clock)

    with pytest.raises(ProviderUnavailable) as caught:
        embedder.embed_texts(["apple"])
    embedder.close()

    assert str(caught.value) == (
        f"the embedder '{name}' at 127.0.0.1:1 cannot be reached"
    )


@pytest.mark.parametrize("name", SERVED)
def test_a_slow_server_is_not_waited_for_longer_than_the_timeout(
    server: EmbeddingServer, clock: FakeClock, name: str
) -> None:
    server.faults = [Fault(is_held=True, for_ever=True)]
    embedder = make(name, server.url, clock, timeout_s=0.05)

    with pytest.raises(ProviderUnavailable, match=r"no answer within 0\.05 seconds"):
        embedder.embed_query("apple")
    embedder.close()


def test_a_server_that_drips_is_not_waited_for_either(server: EmbeddingServer) -> None:
    server.faults = [Fault(body=b" " * 100_000, drip=True, for_ever=True)]
    options = EmbedderOptions(url=server.url, timeout_s=0.1)
    embedder = OpenAiEmbedder(
        get_embedder_row("openai"), options, Clock(sleep=lambda seconds: None)
    )

    with pytest.raises(ProviderUnavailable, match=r"no answer within 0\.1 seconds"):
        embedder.embed_query("apple")
    embedder.close()


@cases(
    ("fault", "said"),
    [
        (Fault(401, b'{"error": {"message": "bad key"}}'), "answered 401: bad key"),
        (
            Fault(404, b'{"error": "model \\"x\\" not found, try pulling it first"}'),
            'answered 404: model "x" not found, try pulling it first',
        ),
        (Fault(403, b"<html>" + b"x" * 9_000), "answered 403"),
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
            Fault(401, b'{"error": {"message": "Incorrect key: sk-very-secret-key."}}'),
            "answered 401: Incorrect key: [key].",
        ),
        (
            Fault(307, headers=(("Location", "http://127.0.0.2/embeddings"),)),
            "redirects (status 307)",
        ),
    ],
    ids=["key", "model", "page", "escape", "quota", "key repeated", "redirect"],
)
def test_a_refusal_is_told_in_the_servers_words_and_not_repeated(
    served: HttpEmbedder,
    server: EmbeddingServer,
    clock: FakeClock,
    fault: Fault,
    said: str,
) -> None:
    server.asked.clear()
    server.faults = [fault]

    with pytest.raises(ProviderRefused) as caught:
        served.embed_texts(["apple", "pear"])

    host = server.url.removeprefix("http://")
    name = served.fingerprint.partition(":")[0]
    assert str(caught.value) == f"the embedder '{name}' at {host} {said}"
    assert clock.slept == []
    assert len(server.asked) == 1


@cases(
    ("spoil", "said"),
    [
        ("wrong count", "gave 1 vectors for 2 texts"),
        ("not finite", "gave a vector that has no direction"),
        ("zero", "gave a vector that has no direction"),
        ("not a number", "gave an answer without vectors in it"),
        ("different lengths", "gave an answer without vectors in it"),
        ("not a list", "gave vectors that are not lists of numbers"),
        ("empty", "gave vectors that are not lists of numbers"),
    ],
)
def test_vectors_that_are_none_are_not_taken(
    served: HttpEmbedder, server: EmbeddingServer, spoil: str, said: str
) -> None:
    server.spoil = spoil

    with pytest.raises(ProviderUnavailable) as caught:
        served.embed_texts(["apple", "pear"])

    assert str(caught.value).endswith(said)


@cases(
    ("body", "said"),
    [
        (b"", "gave an answer that is not JSON"),
        (b'{"embeddings": [[NaN]]}', "gave an answer that is not JSON"),
        (b"{}", "gave an answer without vectors in it"),
        (b"[]", "gave an answer without vectors in it"),
        (b"null", "gave an answer without vectors in it"),
        (
            b'{"embeddings": 1, "data": "text"}',
            "gave an answer without vectors in it",
        ),
    ],
)
def test_an_answer_of_another_shape_is_not_taken(
    served: HttpEmbedder, server: EmbeddingServer, body: bytes, said: str
) -> None:
    server.faults = [Fault(body=body)]

    with pytest.raises(ProviderUnavailable) as caught:
        served.embed_texts(["apple"])

    assert str(caught.value).endswith(said)


def test_one_text_that_is_too_long_costs_no_other_its_vector(
    served: HttpEmbedder, server: EmbeddingServer
) -> None:
    server.max_chars = 600
    texts = ["apple", "banana", "z" * 5_000, "cherry", "damson"]

    vectors = served.embed_texts(texts)

    assert vectors.shape == (5, 37)
    assert vectors.argmax(axis=1)[2] == ord("z") - ord("a")
    longest = [max(map(len, sent)) for sent in server.texts()]
    assert longest[0] >= 5_000
    assert min(each for each in longest if each > 300) <= 600


def test_a_text_that_is_refused_at_any_length_is_refused_in_the_end(
    served: HttpEmbedder, server: EmbeddingServer
) -> None:
    server.max_chars = 0

    with pytest.raises(ProviderRefused, match="exceeds the context length"):
        served.embed_texts(["z" * 5_000])

    assert len(server.asked) <= 8


def test_a_thread_that_waits_for_the_server_holds_up_no_other(
    server: EmbeddingServer, clock: FakeClock
) -> None:
    server.faults = [Fault(is_held=True)]
    embedder = make("openai", server.url, clock)
    slow = threading.Thread(target=embedder.embed_texts, args=(["slow"],))
    slow.start()
    assert comes_true(lambda: bool(server.asked))

    vector = embedder.embed_query("quick")

    assert slow.is_alive()
    assert rounded(vector[None]) == [unit("quick")]
    server.let_go.set()
    slow.join()
    embedder.close()
