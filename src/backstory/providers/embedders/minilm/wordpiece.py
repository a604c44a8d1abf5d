"""Split a text into the tokens that the model was trained with (BERT's WordPiece).

The package ``tokenizers`` does the same, but depends on others that download models. A
test compares the two.
"""

import unicodedata
from pathlib import Path

import stringzilla

_UNKNOWN, _START, _END = "[UNK]", "[CLS]", "[SEP]"
# The prefix of tokens that continue a word.
_WITHIN_WORD = "##"
_MAX_WORD_CHARS = 100
# Words that are remembered; most texts have few that others do not have.
_MAX_REMEMBERED = 20_000
_REPLACEMENT_CHARACTER = "\ufffd"
_CONTROLS = frozenset({"Cc", "Cf", "Co"})
# Where the tokens begin in the file.
_TOKENS = b'"vocab":'
# Up to this many tokens, as in a query, are searched for; each takes some 0.02 ms.
_MOST_SEARCHED = 200
# Every ideograph is a word of its own. BERT skips 2B820 to 2B91F, so we do too.
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2B73F),
    (0x2B740, 0x2B81F),
    (0x2B920, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)


class WordPiece:
    """Tokenizes texts with the vocabulary of a model; may be used by several threads.

    ``max_tokens`` are kept, including the two that mark the start and the end.
    """

    def __init__(self, path: Path, max_tokens: int) -> None:
        self._vocabulary = _Vocabulary(path.read_bytes())
        self._unknown, self._start, self._end = map(
            self._vocabulary.get, (_UNKNOWN, _START, _END)
        )
        self._max_tokens = max_tokens
        self._known: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """The numbers of the text's tokens."""
        tokens = [self._start]
        for word in text.translate(_SPELLINGS).split():
            tokens += self._encode_word(word)
            if len(tokens) >= self._max_tokens:
                del tokens[self._max_tokens - 1 :]
                break
        tokens.append(self._end)
        return tokens

    def _encode_word(self, word: str) -> list[int]:
        known = self._known.get(word)
        if known is None:
            if len(self._known) >= _MAX_REMEMBERED:
                self._known = {}
            known = self._known[word] = self._cut_word(word)
        return known

    def _cut_word(self, word: str) -> list[int]:
        """The longest known beginning of the word, then of the rest, and so on."""
        if len(word) > _MAX_WORD_CHARS:
            return [self._unknown]
        tokens: list[int] = []
        start, prefix = 0, ""
        while start < len(word):
            for end in range(len(word), start, -1):
                token = self._vocabulary.find(prefix + word[start:end])
                if token is not None:
                    break
            else:
                return [self._unknown]
            tokens.append(token)
            start, prefix = end, _WITHIN_WORD
        return tokens


class _Vocabulary:
    """The numbers of the tokens, each of which follows its token in the file.

    Reading the whole file into a dictionary takes longer than a query does without one.
    """

    def __init__(self, stored: bytes) -> None:
        self._stored = stored
        self._start = stored.index(_TOKENS) + len(_TOKENS)
        self._searched = 0
        self._numbers: dict[str, int] | None = None

    def get(self, token: str) -> int:
        """The number of a token that must exist."""
        number = self.find(token)
        assert number is not None
        return number

    def find(self, token: str) -> int | None:
        if self._numbers is None and self._searched >= _MOST_SEARCHED:
            # Imported here because it is slow, and queries do without it.
            import orjson

            self._numbers = orjson.loads(self._stored)["model"]["vocab"]
        if self._numbers is not None:
            return self._numbers.get(token)
        self._searched += 1
        key = token.replace("\\", r"\\").replace('"', r"\"")
        written = f'"{key}":'.encode()
        at: int = stringzilla.find(self._stored, written, self._start)
        if at < 0:
            return None
        first = at + len(written)
        last = first
        while self._stored[last : last + 1].isdigit():
            last += 1
        return int(self._stored[first:last])


class _Spellings(dict[int, str]):
    """How the model spells characters: lower case, no accents, punctuation apart."""

    def __missing__(self, code: int) -> str:
        spelled = self[code] = _spell(chr(code))
        return spelled


_SPELLINGS = _Spellings()


def _spell(character: str) -> str:
    if character in "\t\n\r" or unicodedata.category(character) in ("Zs", "Zl", "Zp"):
        return " "
    if (
        character in ("\0", _REPLACEMENT_CHARACTER)
        or unicodedata.category(character) in _CONTROLS
    ):
        return ""
    spelled = "".join(
        f" {part} " if _is_punctuation(part) else part.lower()
        for part in unicodedata.normalize("NFD", character)
        if unicodedata.category(part) != "Mn"
    )
    is_ideograph = any(low <= ord(character) <= high for low, high in _IDEOGRAPHS)
    return f" {spelled} " if is_ideograph else spelled


def _is_punctuation(character: str) -> bool:
    if character.isascii():
        # Includes symbols such as $ and ^.
        return character.isprintable() and not character.isalnum() and character != " "
    return unicodedata.category(character).startswith("P")
