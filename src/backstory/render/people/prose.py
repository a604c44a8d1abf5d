"""Markdown of a conversation as HTML that cannot run, load or link to anything.

The parser escapes all HTML in the text and makes no links and no images of it; what it
makes passes a list of harmless tags all the same. Only this module makes HTML of what
was said; everything else escapes it.
"""

from functools import cache

import nh3
from markdown_it import MarkdownIt
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_by_name
from pygments.util import ClassNotFound

from backstory.text.escape import neutralize

# Longer texts are shown as they are: what parsing costs grows faster than the text.
MAX_CHARS = 20_000
# What colouring costs grows with the square of a line, for texts made to be slow; in
# some languages, with the square of the text.
_MAX_CODE_CHARS = 12_000
_MAX_SLOW_CODE_CHARS = 4_000
_MAX_CODE_LINE_CHARS = 200
_SLOW_LANGUAGES = ("cpp", "html", "xml")
# Languages that agents write most, if their lexers are quick whatever they are given.
_LANGUAGES = """
bash c cpp css diff go html javascript js json jsx py python rb rs ruby rust sh
shell sql toml ts tsx typescript xml yaml yml
"""
_TAGS = """
blockquote br code del em h1 h2 h3 h4 h5 h6 hr li ol p pre s span strong table tbody td
th thead tr ul
"""
_ATTRIBUTES = {"span": {"class"}, "ol": {"start"}}


def to_html(text: str) -> Markup | None:
    """A text as HTML; None if it is too long for that."""
    if len(text) > MAX_CHARS:
        return None
    return _clean(_parser().render(neutralize(text)))


def code_to_html(code: str, language: str) -> Markup | None:
    """Coloured code as HTML; None if it is shown as it is."""
    coloured = _highlight(neutralize(code), language, "")
    return _clean(coloured) if coloured else None


def _clean(rendered: str) -> Markup:
    return Markup(
        nh3.clean(
            rendered,
            tags=set(_TAGS.split()),
            attributes={tag: set(names) for tag, names in _ATTRIBUTES.items()},
            link_rel=None,
            url_schemes=set(),
        )
    )


@cache
def _parser() -> MarkdownIt:
    parser = MarkdownIt("commonmark", {"html": False, "highlight": _highlight})
    parser.enable(["table", "strikethrough"])
    # Without the rule for HTML, it is escaped like any other text.
    parser.disable(["html_block", "html_inline", "image", "link", "autolink"])
    # A reference would vanish together with its address.
    return parser.disable("reference")


def _highlight(code: str, language: str, _: str) -> str:
    """Coloured code; empty if the parser shall show it as it is."""
    language = language.lower()
    lexer = _find_lexer(language)
    most = _MAX_SLOW_CODE_CHARS if language in _SLOW_LANGUAGES else _MAX_CODE_CHARS
    if lexer is None or not _is_short(code, most):
        return ""
    return highlight(code, lexer, HtmlFormatter(nowrap=True))


def _is_short(code: str, most: int) -> bool:
    longest = max(map(len, code.split("\n")))
    return len(code) <= most and longest <= _MAX_CODE_LINE_CHARS


@cache
def _find_lexer(language: str) -> Lexer | None:
    if language not in _LANGUAGES.split():
        return None
    try:
        return get_lexer_by_name(language)
    except ClassNotFound:
        return None
