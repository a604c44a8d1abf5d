"""The bundled model: the files are those we built, and they say what MiniLM says."""

import hashlib
import json
import random
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import ProviderUnavailable
from backstory.providers.embedders import get_embedder_row, load_embedder, minilm
from backstory.providers.embedders.base import Embedder, EmbedderOptions
from backstory.providers.embedders.minilm import SHA256, MiniLmEmbedder
from tests.chance import examples

SHIPPED = Path(minilm.__file__).parent
REFERENCE = Path(__file__).parents[1] / "data" / "minilm" / "reference.json"


@pytest.fixture(scope="module")
def embedder() -> Embedder:
    made = load_embedder("minilm")
    assert made is not None
    return made


@pytest.mark.parametrize("name", SHA256)
def test_the_files_are_those_that_the_script_built(name: str) -> None:
    found = hashlib.sha256((SHIPPED / name).read_bytes()).hexdigest()

    assert found == SHA256[name]
    assert f"{found}  {name}" in (SHIPPED / "README.md").read_text(encoding="utf-8")


def test_the_model_ships_with_its_licence_and_its_notice() -> None:
    licence = (SHIPPED / "LICENSE").read_text(encoding="utf-8")
    notice = (SHIPPED / "NOTICE").read_text(encoding="utf-8")

    assert "Apache License\n                           Version 2.0" in licence
    assert "all-MiniLM-L6-v2" in notice


def test_the_model_stays_small() -> None:
    size = sum(path.stat().st_size for path in SHIPPED.iterdir() if path.is_file())

    assert size < 25_000_000


def test_the_vectors_are_near_those_of_the_full_weights(embedder: Embedder) -> None:
    entries = json.loads(REFERENCE.read_text(encoding="utf-8"))
    expected = np.array([entry["thousandths"] for entry in entries], np.float32)
    expected /= np.linalg.norm(expected, axis=1, keepdims=True)

    alone = np.stack([embedder.embed_query(entry["text"]) for entry in entries])
    together = embedder.embed_texts([entry["text"] for entry in entries])

    for found in (alone, together):
        cosines = (found * expected).sum(axis=1)
        assert cosines.min() >= 0.97
        assert cosines.mean() >= 0.985


@settings(max_examples=examples(6))
@given(
    texts=st.lists(
        st.text(max_size=60)
        | st.integers(1, 12).map(lambda count: "port 8080 is taken, so " * count),
        min_size=1,
        max_size=4,
    ),
    order=st.randoms(use_true_random=False),
)
def test_a_text_has_the_same_vector_alone_and_beside_any_others(
    embedder: Embedder, texts: list[str], order: random.Random
) -> None:
    alone = {text: embedder.embed_query(text) for text in texts}
    order.shuffle(texts)

    together = embedder.embed_texts(texts)

    np.testing.assert_array_equal(together, np.stack([alone[each] for each in texts]))


def test_texts_of_like_meaning_are_nearer_than_others(embedder: Embedder) -> None:
    question = embedder.embed_query("Which place did we book for dinner?")
    texts = embedder.embed_texts(
        [
            "kubectl rollout restart deployment/api",
            "The restaurant is reserved for Friday evening.",
            "The test suite takes nine minutes on the server.",
        ]
    )

    assert (texts @ question).argmax() == 1


def test_what_comes_after_256_tokens_is_not_read(embedder: Embedder) -> None:
    same = "word " * 300

    first, second = embedder.embed_texts([same + "apples", same + "rockets"])

    np.testing.assert_array_equal(first, second)


@pytest.mark.parametrize(
    ("text", "readable"),
    [
        ("", True),
        ("1234 --- !!!", True),
        ("Which database did we choose?", True),
        ("Quelle base de données avons-nous choisie, à Besançon ?", True),
        ("Chúng ta đã chọn cơ sở dữ liệu nào?", True),
        ("The word 数据库 means database.", True),
        ("我们上周决定了什么？", False),
        ("我们用 PostgreSQL 作为数据库，因为它可靠", False),
        ("昨日のレストランの名前は何ですか", False),
        ("지난주에 무엇을 결정했나요?", False),
        ("Какую базу данных мы выбрали?", False),
        ("ما الذي قررناه الأسبوع الماضي؟", False),
        ("Τι αποφασίσαμε;", False),
        ("हमने क्या तय किया?", False),
        ("🙂🙂🙂", True),
    ],
)
def test_it_reads_text_that_is_mostly_in_latin_letters(
    embedder: Embedder, text: str, readable: bool
) -> None:
    assert embedder.can_read(text) is readable


def test_a_model_that_cannot_be_loaded_is_unavailable_and_tried_again(
    tmp_path: Path,
) -> None:
    made = MiniLmEmbedder(get_embedder_row("minilm"), EmbedderOptions(), tmp_path)
    with pytest.raises(ProviderUnavailable, match="bundled model cannot be loaded"):
        made.embed_query("hello")

    for name in SHA256:
        (tmp_path / name).symlink_to(SHIPPED / name)

    assert made.embed_query("hello").shape == (384,)


@pytest.mark.parametrize("name", SHA256)
def test_a_file_that_did_not_come_with_the_package_is_refused(
    tmp_path: Path, name: str
) -> None:
    for each in SHA256:
        (tmp_path / each).symlink_to(SHIPPED / each)
    changed = bytearray((SHIPPED / name).read_bytes())
    changed[len(changed) // 2] ^= 1
    (tmp_path / name).unlink()
    (tmp_path / name).write_bytes(changed)
    row = get_embedder_row("minilm")

    with pytest.raises(ProviderUnavailable, match=f"{name} is not the one that"):
        MiniLmEmbedder(row, EmbedderOptions(), tmp_path).embed_query("hello")
