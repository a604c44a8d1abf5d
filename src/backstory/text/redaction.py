"""Mask secrets: keys, tokens and passwords, by their form or by what is around them."""

import re
from functools import partial
from itertools import count

from backstory.text.patterns import lazy_pattern
from backstory.text.secret_kinds import KEYS, PARTLY_SHOWN

# Type checkers read this as true. Importing it would slow down a hook.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

MASKED = "[masked]"
# How much of a key is shown, enough to tell its kind. A short value is masked entirely:
# four characters could be half of a password.
_SHOWN_CHARS = 4
_MIN_CHARS_TO_SHOW_SOME = 16


# Each pattern comes with a text that all its matches contain: most messages have none
# of these, and searching for a text is a hundred times faster than for a pattern. No
# repetition may begin inside another one like it, or long texts would take quadratic
# time. For the same reason, a pattern that has read a long value always matches: the
# function that replaces it decides whether it is a secret.
def _write_key(start: str, rest: str) -> str:
    """An expression for a key with this start, unless it begins inside a word.

    The start comes first because literal text is quick to search for. In JSON, a line
    end is written as a letter.
    """
    text = re.escape(start)
    return rf"{text}(?:(?<![A-Za-z0-9_-]{text})|(?<=\\[nrt]{text}))" + rest


def _any_beginning(starts: "Collection[str]") -> str:
    """An expression for any of these starts, reading common beginnings once.

    If one is the beginning of another, the shorter one is found.
    """
    if "" in starts:
        return ""
    after: dict[str, list[str]] = {}
    for start in starts:
        after.setdefault(start[0], []).append(start[1:])
    ways = [re.escape(first) + _any_beginning(rest) for first, rest in after.items()]
    return f"(?:{'|'.join(ways)})"


# One search finds which kinds a text may have; searching for each of them would take
# longer than everything else together. All begin with a letter or a digit.
_STARTS = tuple(dict.fromkeys(start for _, start, *_ in KEYS))
_KEY_BEGINNING = lazy_pattern(
    lambda: (
        rf"\b(?=[{''.join(sorted({start[0] for start in _STARTS}))}])"
        + _any_beginning(_STARTS)
    ),
    re.ASCII,
)
# For the first few texts up to this length, searching for each is quick enough;
# compiling the expression takes longer.
_SHORT_CHARS = 4_000
_FIRST_TEXTS = 30
_count_short_text = count().__next__
_KEYS = tuple(
    (start, lazy_pattern(partial(_write_key, start, rest)))
    for _, start, rest, _ in KEYS
)
_PARTLY_SHOWN = tuple(
    (needed, lazy_pattern(f"({shown})(?:{masked})"))
    for _, needed, shown, masked, *_ in PARTLY_SHOWN
)
_PRIVATE_KEY = lazy_pattern(
    r"(-----BEGIN (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)"
    r".*?(?:(-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY(?: BLOCK)?-----)|\Z)",
    re.DOTALL,
)
# The end of a key whose beginning was cut off.
_KEY_LINES = lazy_pattern(
    r"(?:(?<![A-Za-z0-9+/=])[A-Za-z0-9+/=]{8,}+(?:\s|\\n){1,2}+)++"
    r"(-----END (?:[A-Z0-9]+ ){0,3}PRIVATE KEY)?"
)
_URL_PASSWORD = lazy_pattern(r"(://[^\s/:@\"'<>]{0,200}:)([^\s/@\"'<>]{1,200})(?=@)")
_SCHEME = lazy_pattern(
    r"([Bb](?=[AEae])(?<![A-Za-z0-9_][Bb])(?i:earer|asic)\s{1,4})"
    r"((?=[A-Za-z._~+/-]{0,200}[0-9=])[A-Za-z0-9._~+/-]{16,}={0,2})"
)
# Other schemes, or no scheme: Authorization: token …
_AUTHORIZATION = lazy_pattern(
    r"([Aa](?=[Uu][Tt][Hh])(?i:uthorization)\\?[\"']?\s{0,4}[:=]\s{0,4}\\?[\"']?"
    r"(?:[A-Za-z-]{1,20}\s{1,4})?)([A-Za-z0-9._~+/=-]{8,}+)([(\[]?)"
)
# Password, token, api_key. Checking the first three letters against sets before
# anything else is nine times as fast as ignoring case from the start.
_SECRET_NAME = (
    r"[PSTACpstac](?=[APCEORUWapceoruw][CDEIKSTcdeikst])"
    r"(?i:(?<=p)(?:assw(?:or)?d|assphrase|wd|rivate[_-]?key)"
    r"|(?<=s)ecret|(?<=t)oken|(?<=c)redentials?"
    r"|(?<=a)(?:pi|ccess|uth|ccount)[_-]?key)"
)
# In quotes, anything is a value: "password": "…", api_key='…', \"token\": \"…\".
_QUOTED_VALUE = lazy_pattern(
    rf"({_SECRET_NAME}\\?[\"']?\s{{0,4}}(?:=>|:=|[=:])\s{{0,4}}\\?([\"'`]))"
    r"([^\s\"'`\\]{8,}+)(?=\\?\2)"
)
# In environment variables, the value immediately follows the sign: DB_PASSWORD=….
_VARIABLE = lazy_pattern(
    r"([PSTAC](?=[APCEORUW][CDEIKST])(?:(?<![a-z][PSTAC])|(?<=\\n[PSTAC]))"
    r"(?:(?<=P)(?:ASSW(?:OR)?D|ASSPHRASE|WD|RIVATE[_-]?KEY)"
    r"|(?<=S)ECRET|(?<=T)OKEN|(?<=C)REDENTIALS?"
    r"|(?<=A)(?:PI|CCESS|UTH|CCOUNT)[_-]?KEY)=)"
    r"([^\s\"'`$<>{}()\[\]\\;&|]{8,}+)"
)
# In addresses and connection strings as well: ?token=…, ;Password=….
_QUERY_VALUE = lazy_pattern(
    rf"([?&;](?:[A-Za-z]{{1,20}}[_-]){{0,2}}{_SECRET_NAME}=)"
    r"([^\s\"'`$<>{}()\[\]\\,;&|#]{6,}+)"
)
# --password …, --api-key=…
_OPTION = lazy_pattern(
    rf"(--(?:[a-z]{{1,20}}-){{0,2}}(?:{_SECRET_NAME}|pass)([= ])\\?[\"']?)"
    r"([^\s\"'`$<>{}()\[\]\\,;&|-][^\s\"'`<>\\;|]{3,}+)"
)
# Elsewhere, an ordinary word may follow ("password: required"), or code: a value has a
# digit, is not called or indexed, and is not a name such as config.token_2.
_BARE = r"[^\s\"'`$<>{}()\[\],;&|]"
_BARE_VALUE = lazy_pattern(
    rf"({_SECRET_NAME}[\"']?\s{{0,4}}(?:=>|:=|[=:])\s{{0,4}})"
    r"(?!(?:[a-z][a-z0-9]*(?:[._][a-z0-9]+)+|[a-z_]+\.[A-Za-z0-9_.]+)(?![^\s,;)\]}]))"
    rf"(?![/~.])({_BARE}{{8,}}+)([(\[]?)"
)
_DIGIT = lazy_pattern(r"\d")
# In a sentence: the password is …, our passphrase was "…".
_SENTENCE = lazy_pattern(
    r"([Pp](?=[aA][sS])(?i:assword|assphrase|asscode)\s{1,2}(?i:is|was|to|will\sbe)"
    r"(?:\s(?i:now|still))?:?\s{1,2}[\"'`“‘*]{0,3})([^\s\"'`”’*<>&]{4,}+)"
)
_PIN = lazy_pattern(
    r"([Pp](?=[Ii][Nn]\s)(?<![A-Za-z0-9_][Pp])..(?:\scode)?\s(?:is|was)\s[\"'`]?)"
    r"(\d{4,12})(?![\w.])"
)
_NETRC = lazy_pattern(
    r"(machine\s{1,9}\S{1,200}\s{1,9}login\s{1,9}\S{1,200}\s{1,9}password\s{1,9})(\S+)"
)
# Options that mean a password only after these commands.
_COMMAND_OPTIONS = tuple(
    (command, lazy_pattern(option))
    for command, option in (
        (
            "curl",
            r"(\s(?:-u|-U|--user|--proxy-user)[ =]?[\"']?[^\s:\"'$<>]{0,80}:)"
            r"([^\s\"'$<>{}]+)",
        ),
        ("mysql", r"(\s-p)([^\s\"'$<>{}-][^\s\"'$<>{}]+)"),
        ("sshpass", r"(\s-p ?[\"']?)([^\s\"'$<>{}-][^\s\"'$<>{}]+)"),
        ("redis-cli", r"(\s-a [\"']?)([^\s\"'$<>{}-][^\s\"'$<>{}]+)"),
        ("docker login", r"(\s-p [\"']?)([^\s\"'$<>{}-][^\s\"'$<>{}]+)"),
    )
)
_MAX_COMMAND_CHARS = 300
# Placeholders for values in instructions: ${TOKEN}, your-key-here, ********.
_PLACEHOLDER = lazy_pattern(
    r"\$\{[^{}]{1,80}\}|\$[A-Z_][A-Z0-9_]{0,80}|%\w{1,80}%|\{\{.{1,80}\}\}"
    r"|(?i:your)[-_]?[A-Za-z_-]{0,80}|[xX]{3,80}|[*.•…_-]{1,80}"
    r"|\[[A-Za-z _-]{1,80}\]|(?i:change-?me|redacted|password|placeholder)"
)
# Words that describe a password: the password is base64, 12-character, utf-8.
_SAID_OF_PASSWORDS = lazy_pattern(
    r"(?i:base\d|sha-?\d|md5|utf|argon2|pbkdf2|oauth2?|rot13|\d+(?:-[a-z]|\+?$))"
)
_WORD = lazy_pattern(r"\S+")
# Every name above contains one of these; most texts contain none.
_NEEDED = ("pass", "pwd", "secret", "token", "key", "credential")


def mask_secrets(text: str) -> str:
    """Replace keys, passwords and tokens with ``[masked]``, leaving their kind visible.

    Keys of a known form are masked anywhere, other values only where a name or a sign
    marks them as secrets. Commit hashes, UUIDs, paths and ordinary words stay.
    """
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(_mask_block, text)
        text = _KEY_LINES.sub(_mask_key_end, text)
    if beginnings := _find_beginnings(text):
        for start, shape in _KEYS:
            if start.startswith(beginnings):
                text = shape.sub(_mask_key, text)
    for needed, shape in _PARTLY_SHOWN:
        if needed in text:
            text = shape.sub(_mask_rest, text)
    if "://" in text:
        text = _URL_PASSWORD.sub(_mask_rest, text)
    for command, option in _COMMAND_OPTIONS:
        if command in text:
            text = option.sub(_behind_command(command), text)
    small = text.lower()
    if "bearer" in small or "basic" in small:
        text = _SCHEME.sub(_mask_value, text)
    if "authorization" in small:
        text = _AUTHORIZATION.sub(_mask_bare_value, text)
    if "pin " in small:
        text = _PIN.sub(_mask_value, text)
    if any(word in small for word in _NEEDED):
        text = _QUOTED_VALUE.sub(_mask_value, text)
        text = _VARIABLE.sub(_mask_unless_called, text)
        text = _OPTION.sub(_mask_option, text)
        text = _QUERY_VALUE.sub(_mask_unless_called, text)
        text = _NETRC.sub(_mask_value, text)
        text = _SENTENCE.sub(_mask_said, text)
        text = _BARE_VALUE.sub(_mask_bare_value, text)
    return text


def mask_pieces(text: str, pieces: "Iterable[str]") -> list[str]:
    """Pieces of a text, without the words that are masked in the whole text.

    In a piece by itself, half a secret would not be recognized, nor a value whose name
    is in the piece before it.
    """
    masked = mask_secrets(text)
    if masked == text:
        return list(pieces)
    shown = frozenset(masked.split())
    return [
        _WORD.sub(lambda word: word[0] if word[0] in shown else MASKED, piece)
        for piece in pieces
    ]


def _find_beginnings(text: str) -> tuple[str, ...]:
    """The starts of keys that may be in a text."""
    is_short = len(text) <= _SHORT_CHARS and _count_short_text() < _FIRST_TEXTS
    find = _find_each_beginning if is_short else _KEY_BEGINNING.findall
    found = {*find(text)}
    if "\\" in text:
        # In JSON, a line end is written as a letter.
        for escape in ("\\n", "\\r", "\\t"):
            text = text.replace(escape, " ")
        found.update(find(text))
    return tuple(found)


def _find_each_beginning(text: str) -> list[str]:
    """Every start that the expression finds, and those that begin with it."""
    return [start for start in _STARTS if start in text and _begins(start, text)]


def _begins(start: str, text: str) -> bool:
    """Whether a word in the text begins with this."""
    at = text.find(start)
    while at > 0 and _is_of_word(text[at - 1]):
        at = text.find(start, at + 1)
    return at >= 0


def _is_of_word(character: str) -> bool:
    return character.isascii() and (character.isalnum() or character == "_")


def _mask_block(found: re.Match[str]) -> str:
    return "\n".join(filter(None, (found[1], MASKED, found[2])))


def _mask_key_end(found: re.Match[str]) -> str:
    return f"{MASKED}\n{found[1]}" if found[1] else found[0]


def _mask_key(found: re.Match[str]) -> str:
    return found[0][:_SHOWN_CHARS] + MASKED


def _mask_rest(found: re.Match[str]) -> str:
    return found[1] + MASKED


def _mask_value(found: re.Match[str]) -> str:
    """The last group is the value, the first the text before it."""
    return found[1] + _mask_text(found[found.re.groups])


def _mask_unless_called(found: re.Match[str]) -> str:
    # Not in the expression: for each name in a long value, it would search for its end.
    is_called = found.string[found.end() : found.end() + 1] in ("(", "[")
    return found[0] if is_called else _mask_value(found)


def _mask_bare_value(found: re.Match[str]) -> str:
    before, value, called = found.groups()
    if called or not _DIGIT.search(value):
        return found[0]
    return before + _mask_text(value)


def _mask_option(found: re.Match[str]) -> str:
    """After a space, it may be the next word of a sentence about the option."""
    before, sign, value = found.groups()
    is_value = sign == "=" or _is_no_word(value)
    return before + _mask_text(value) if is_value else found[0]


def _mask_said(found: re.Match[str]) -> str:
    before, said = found.groups()
    value = said.rstrip(".,:;!?)")
    if not _is_no_word(value) or _SAID_OF_PASSWORDS.match(value):
        return found[0]
    return before + _mask_text(value) + said[len(value) :]


def _is_no_word(value: str) -> bool:
    """Whether it has a digit, a sign, or a capital letter after a small one."""
    letters = value.replace("-", "").replace("'", "").replace("’", "").replace("/", "")
    return len(value) >= 4 and not (
        letters.isalpha() and (letters[1:].islower() or letters.isupper())
    )


def _behind_command(command: str) -> "Callable[[re.Match[str]], str]":
    """Mask a value if the command precedes it on the same line."""

    def mask(found: re.Match[str]) -> str:
        at = found.start()
        before = found.string[max(0, at - _MAX_COMMAND_CHARS) : at]
        line = before.replace("\\\n", " ").rpartition("\n")[2]
        return found[1] + _mask_text(found[2]) if command in line else found[0]

    return mask


def _mask_text(value: str) -> str:
    if MASKED in value or _PLACEHOLDER.fullmatch(value):
        return value
    shown = value[:_SHOWN_CHARS] if len(value) >= _MIN_CHARS_TO_SHOW_SOME else ""
    return shown + MASKED
