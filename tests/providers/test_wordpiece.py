"""Our tokenizer gives the same tokens as the one that the model was trained with."""

from itertools import chain
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer

from backstory.providers.embedders import minilm
from backstory.providers.embedders.minilm.wordpiece import WordPiece
from tests.chance import examples

FILE = Path(minilm.__file__).parent / "tokenizer.json"
MAX_TOKENS = 256
# What people write in; in others, characters are newer than the tables of tokenizers.
COMMON = (
    range(0x0, 0x590),
    range(0x1E00, 0x2C00),
    range(0x3000, 0x3100),
    range(0x3400, 0xA000),
    range(0xAC00, 0xD800),
    range(0xF900, 0xFB00),
    range(0xFE00, 0xFFF0),
    range(0x1F000, 0x1FB00),
    range(0x20000, 0x30000),
)
CHARACTERS = st.one_of(
    st.sampled_from("aB9 .,_-/\t\nÉéßΣσı̇的日\u200b\u0301\ufffd\U0001f600"),
    st.sampled_from(COMMON).flatmap(st.sampled_from).map(chr),
)


@pytest.fixture(scope="module")
def reference() -> Tokenizer:
    return Tokenizer.from_file(str(FILE))


@pytest.fixture(scope="module")
def own() -> WordPiece:
    return WordPiece(FILE, MAX_TOKENS)


def test_every_common_character_is_spelled_as_the_model_knows_it(
    reference: Tokenizer, own: WordPiece
) -> None:
    different = [
        hex(code)
        for code in chain.from_iterable(COMMON)
        if own.encode(text := f"a{chr(code)}B") != reference.encode(text).ids
    ]

    assert different == []


def test_every_token_of_the_vocabulary_is_found(
    reference: Tokenizer, own: WordPiece
) -> None:
    words = [token.removeprefix("##") for token in reference.get_vocab()]

    assert [own.encode(word) for word in words] == [
        each.ids for each in reference.encode_batch(words)
    ]


def test_a_token_is_found_in_a_vocabulary_of_which_nothing_was_read(
    reference: Tokenizer,
) -> None:
    words = [token.removeprefix("##") for token in sorted(reference.get_vocab())[::50]]
    words += ['"', "\\", "vocab", "model", "type", "x" * 100]

    assert [WordPiece(FILE, MAX_TOKENS).encode(word) for word in words] == [
        each.ids for each in reference.encode_batch(words)
    ]


@settings(max_examples=examples(200))
@given(text=st.text(CHARACTERS, max_size=400))
def test_any_text_gets_the_same_tokens(
    reference: Tokenizer, own: WordPiece, text: str
) -> None:
    assert own.encode(text) == reference.encode(text).ids


@pytest.mark.parametrize(
    "text",
    [
        "",
        " \t\n",
        "x" * 100,
        "x" * 101,
        "unbelievably " * 400,
        "ab " * 253 + "unbelievably",
        "[CLS] [SEP] [UNK] ##ing",
    ],
    ids=lambda text: f"{text[:12]!r} and so on" if len(text) > 30 else repr(text),
)
def test_the_ends_of_words_and_texts_are_the_same(
    text: str, reference: Tokenizer, own: WordPiece
) -> None:
    assert own.encode(text) == reference.encode(text).ids
