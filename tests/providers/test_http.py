"""Servers: what an address is, and what a refusal is for.

How they are asked is tested with those who ask: contract/test_embedders.py and
contract/test_llms.py.
"""

import pytest

from backstory.providers.http import is_address, means_size
from tests.grid import cases


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("http://localhost:11434", True),
        ("https://api.example.org/v1", True),
        ("http://[::1]:8000", True),
        ("localhost:11434", False),
        ("ftp://example.org", False),
        ("http://", False),
        ("http://[bad", False),
        ("http://host:port", False),
        ("", False),
    ],
)
def test_an_address_has_a_host_and_speaks_http(url: str, expected: bool) -> None:
    assert is_address(url) is expected


@cases(
    ("said", "expected"),
    [
        ("This model's maximum context length is 8192 tokens", True),
        ("the request exceeds the available context size", True),
        ("input length and `max_tokens` exceed context limit", True),
        ("too many tokens", True),
        ("Prompt is too long", True),
        ("bad request", False),
        ("context deadline exceeded", False),
        ("You exceeded your current quota", False),
        ("Rate limit exceeded", False),
        ("Too Many Requests", False),
        ("max_tokens is too large: 100000", False),
        ("it supports at most 16384 completion tokens, a maximum", False),
        ("8192 is the maximum allowed number of output tokens", False),
    ],
)
def test_a_refusal_for_its_size_is_told_from_others(said: str, expected: bool) -> None:
    assert means_size(said) is expected
