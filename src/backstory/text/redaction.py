"""Leave out what must not be kept, private passages, and mask secrets.

A passage between ``<private>`` and ``</private>`` is never stored. A tag that is never
closed hides the rest of the message: what was hidden by mistake can be said again, but
what was stored by mistake cannot be taken back.
"""

import re

from backstory.text.patterns import lazy_pattern

PRIVATE = "[private]"

# Also as JSON texts write it: \u003cprivate\u003e, <\/private>.
_MARK = lazy_pattern(r"(?:<|\\u003c)\\?(/?)private\s*(?:>|\\u003e)", re.IGNORECASE)


def drop_private(text: str) -> str:
    """Put ``[private]`` in place of every private passage."""
    return hide_private(text, 0)[0]


def hide_private(text: str, depth: int) -> tuple[str, int]:
    """The same for a piece of a longer text, with ``depth`` open passages before it.

    Returns the piece and the number of passages open after it.
    """
    kept: list[str] = [PRIVATE] if depth else []
    kept_to = 0
    for mark in _MARK.finditer(text):
        closing = bool(mark.group(1))
        if not closing:
            if depth == 0:
                kept.append(text[kept_to : mark.start()])
                kept.append(PRIVATE)
            depth += 1
        elif depth:
            depth -= 1
            kept_to = mark.end()
    if depth == 0:
        kept.append(text[kept_to:])
    return "".join(kept), depth


# -- secrets --------------------------------------------------------------------------

MASKED = "[masked]"
# Enough of a key to tell its kind. A short value is masked whole: four letters could be
# half of a password.
_SHOWN_CHARS = 4
_MIN_CHARS_TO_SHOW_SOME = 16


# Each pattern with a text that it always contains: most messages have none of them, and
# searching for a text is a hundred times faster than for a pattern. No repetition may
# begin inside another of its kind, or long texts would take quadratic time. For the
# same reason a pattern that has read a long value always matches: whether it is a
# secret is decided in what replaces it.
_NOT_INSIDE = r"(?<![A-Za-z0-9_-])"
_KEYS = tuple(
    (needed, lazy_pattern(_NOT_INSIDE + shape))
    for needed, shape in (
        ("sk-", r"sk-(?=[A-Za-z_-]{0,200}\d)[A-Za-z0-9_-]{20,}"),
        ("k_live_", r"[rs]k_live_[A-Za-z0-9]{16,}"),
        ("k_test_", r"[rs]k_test_[A-Za-z0-9]{16,}"),
        ("gh", r"gh[pousr]_[A-Za-z0-9]{20,}"),
        ("github_pat_", r"github_pat_[A-Za-z0-9_]{20,}"),
        ("AKIA", r"AKIA[0-9A-Z]{16}(?![A-Za-z0-9])"),
        ("ASIA", r"ASIA[0-9A-Z]{16}(?![A-Za-z0-9])"),
        ("AIza", r"AIza[A-Za-z0-9_-]{30,}"),
        ("xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
        ("xapp-", r"xapp-[A-Za-z0-9-]{20,}"),
        ("glpat-", r"glpat-[A-Za-z0-9_-]{16,}"),
        ("npm_", r"npm_[A-Za-z0-9]{30,}"),
        ("hf_", r"hf_[A-Za-z0-9]{20,}"),
        ("pypi-", r"pypi-[A-Za-z0-9_-]{50,}"),
        ("eyJ", r"eyJ[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}\.[A-Za-z0-9_-]{8,}"),
    )
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
    r"(\b(?:bearer|basic)\s{1,4})((?=[A-Za-z._~+/-]{0,200}[0-9=])"
    r"[A-Za-z0-9._~+/-]{16,}={0,2})",
    re.IGNORECASE,
)
# Password, token, api_key. Looking for sets of letters first, the first three of all
# names, is nine times as fast as ignoring case from the start.
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
# In environment variables the value follows the sign directly: DB_PASSWORD=….
_VARIABLE_NAME = (
    r"(?:PASSW(?:OR)?D|PASSPHRASE|PWD|SECRET|TOKEN|CREDENTIALS?"
    r"|(?:PRIVATE|API|ACCESS|AUTH|ACCOUNT)[_-]?KEY)"
)
_VARIABLE = lazy_pattern(
    rf"(^(?:export\s{{1,4}})?[A-Z0-9_]{{0,80}}{_VARIABLE_NAME}=)"
    r"([^\s\"'`$<>{}()\[\];&|]{8,}+)(?![(\[])",
    re.MULTILINE,
)
# Elsewhere an ordinary word may follow ("password: required"), or code: a value has a
# digit, is not called or indexed, and is no name such as config.token_2.
_BARE = r"[^\s\"'`$<>{}()\[\],;&|]"
_BARE_VALUE = lazy_pattern(
    rf"({_SECRET_NAME}[\"']?\s{{0,4}}(?:=>|:=|[=:])\s{{0,4}})"
    r"(?!(?:[a-z][a-z0-9]*(?:[._][a-z0-9]+)+|[a-z_]+\.[A-Za-z0-9_.]+)(?![^\s,;)\]}]))"
    rf"(?![/~.])({_BARE}{{8,}}+)([(\[]?)"
)
_DIGIT = lazy_pattern(r"\d")
# One of these is in every name above; most texts have none.
_NEEDED = ("passw", "passph", "pwd", "secret", "token", "key", "credential")


def mask_secrets(text: str) -> str:
    """Replace keys, passwords and tokens with ``[masked]``, leaving their kind visible.

    Keys of a known form are masked anywhere, other values only where a name or a sign
    says what they are. Commit hashes, UUIDs, paths and ordinary words stay.
    """
    if "PRIVATE KEY" in text:
        text = _PRIVATE_KEY.sub(_mask_block, text)
        text = _KEY_LINES.sub(_mask_key_end, text)
    for needed, shape in _KEYS:
        if needed in text:
            text = shape.sub(_mask_key, text)
    if "://" in text:
        text = _URL_PASSWORD.sub(_mask_password, text)
    small = text.lower()
    if "bearer" in small or "basic" in small:
        text = _SCHEME.sub(_mask_value, text)
    if any(word in small for word in _NEEDED):
        text = _QUOTED_VALUE.sub(_mask_value, text)
        text = _VARIABLE.sub(_mask_value, text)
        text = _BARE_VALUE.sub(_mask_bare_value, text)
    return text


def _mask_block(found: re.Match[str]) -> str:
    return "\n".join(filter(None, (found[1], MASKED, found[2])))


def _mask_key_end(found: re.Match[str]) -> str:
    return f"{MASKED}\n{found[1]}" if found[1] else found[0]


def _mask_key(found: re.Match[str]) -> str:
    return found[0][:_SHOWN_CHARS] + MASKED


def _mask_password(found: re.Match[str]) -> str:
    return found[1] + MASKED


def _mask_value(found: re.Match[str]) -> str:
    """The last group is the value, the first the text before it."""
    return found[1] + _mask_text(found[found.re.groups])


def _mask_bare_value(found: re.Match[str]) -> str:
    before, value, called = found.groups()
    if called or not _DIGIT.search(value):
        return found[0]
    return before + _mask_text(value)


def _mask_text(value: str) -> str:
    if MASKED in value:
        return value
    shown = value[:_SHOWN_CHARS] if len(value) >= _MIN_CHARS_TO_SHOW_SOME else ""
    return shown + MASKED
