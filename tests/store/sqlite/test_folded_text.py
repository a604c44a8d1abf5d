import random
import zlib
from pathlib import Path

import pytest

from backstory.errors import StoreDamaged
from backstory.store.sqlite.folded_text import (
    ChecksummedBlock,
    FoldedText,
    find_records,
)

_BLOCK_BYTES = 1_000
# So many that two threads check them.
_BLOCKS = 20


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "index.text"
    path.write_bytes(bytes(number % 251 for number in range(_BLOCKS * _BLOCK_BYTES)))
    return path


@pytest.fixture
def blocks(path: Path) -> list[ChecksummedBlock]:
    data = path.read_bytes()
    return [
        ChecksummedBlock(at, _BLOCK_BYTES, zlib.crc32(data[at : at + _BLOCK_BYTES]))
        for at in range(0, len(data), _BLOCK_BYTES)
    ]


@pytest.mark.parametrize("number", range(_BLOCKS))
def test_a_damaged_block_is_named_also_if_a_check_from_the_end_found_it_before(
    path: Path, blocks: list[ChecksummedBlock], number: int
) -> None:
    data = bytearray(path.read_bytes())
    data[number * _BLOCK_BYTES + 7] ^= 1
    path.write_bytes(data)
    file = FoldedText(path)
    first, last = number * _BLOCK_BYTES, (number + 1) * _BLOCK_BYTES - 1
    says = rf"its bytes {first} to {last} do not match their checksum$"

    with pytest.raises(StoreDamaged, match=says):
        file.check(blocks[::-1])
    with pytest.raises(StoreDamaged, match=says):
        file.check(blocks)


def test_what_a_check_from_the_end_has_read_is_not_read_again(
    path: Path, blocks: list[ChecksummedBlock]
) -> None:
    file = FoldedText(path)
    file.check(blocks[:1:-1])
    path.write_bytes(path.read_bytes()[: 2 * _BLOCK_BYTES])

    file.check(blocks)


# More than a search in one go, so that it is searched beside other threads.
_LARGE_BYTES = 9_000_000


@pytest.mark.parametrize(
    ("needle", "count"),
    [
        (b"x", 0),
        (b"x", 500),
        (b"needle", 0),
        (b"needle", 1),
        (b"needle", 3),
        (b"needle", 500),
        # Longer than what is searched before other threads are let in.
        (b"ab" * 150_000, 0),
        (b"ab" * 150_000, 3),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_large_text_is_searched_like_a_small_one(needle: bytes, count: int) -> None:
    chance = random.Random(count)
    texts = [b"." * (_LARGE_BYTES // 1_000) for _ in range(1_000)]
    having = sorted(chance.sample(range(1_000), count))
    for number in having:
        at = chance.randrange(len(texts[number]))
        # Twice in the same text, which counts once.
        texts[number] = texts[number][:at] + needle + b"-" + needle
    starts = [0]
    for text in texts:
        starts.append(starts[-1] + len(text) + 1)
    expected = [starts[number] + texts[number].index(needle) for number in having]
    view = memoryview(b"\0".join(texts) + b"\0")

    assert find_records(view, needle, 1_000) == expected
    assert find_records(view, needle, 2) == expected[:2]
