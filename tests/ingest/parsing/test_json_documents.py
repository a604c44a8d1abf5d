"""JSON as other programs write it, which is not always JSON."""

import pytest

from backstory.ingest.parsing.json_documents import parse_json
from backstory.text.json_values import (
    compact_json,
)


def test_half_a_character_is_replaced_wherever_it_stands() -> None:
    value = parse_json(r'{"a\ud83d": ["b\ude00", {"c": "\ud83d"}], "n": 1}')

    assert value == {"a\ufffd": ["b\ufffd", {"c": "\ufffd"}], "n": 1}
    assert compact_json(value) == '{"a\ufffd":["b\ufffd",{"c":"\ufffd"}],"n":1}'


@pytest.mark.parametrize("text", ["", "{", "nothing", "[" * 100_000])
def test_other_text_is_refused_with_a_reason(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_json(text)
