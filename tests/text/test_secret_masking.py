"""What a model is not shown: keys, passwords and tokens."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.text.redaction import mask_secrets
from tests.grid import cases

# Written in two pieces, so that no scanner takes this file for a leak.
_OPENAI = "sk-" + "proj4fQ8sT2vKx9LmN3bR7wZ"
_ANTHROPIC = "sk-ant-" + "api03-Ab12Cd34Ef56Gh78Ij90"
_GITHUB = "ghp_" + "16C7e42F292c6912E7710c838347Ae178B4a"
_JWT = (
    "eyJ" + "hbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTY3ODkwIn0.SflKxwRJSMeKKF2QT4fwpMeJf36"
)
_BEGIN, _END = "-----BEGIN RSA PRIVATE KEY-----", "-----END RSA PRIVATE KEY-----"


@cases(
    ("text", "expected"),
    [
        pytest.param(f"key {_OPENAI}.", "key sk-p[masked].", id="OpenAI"),
        pytest.param(_ANTHROPIC, "sk-a[masked]", id="Anthropic"),
        pytest.param(f"({_GITHUB})", "(ghp_[masked])", id="GitHub"),
        pytest.param("gho_" + "a1" * 18, "gho_[masked]", id="GitHub OAuth"),
        pytest.param("github_pat_" + "1A_b" * 8, "gith[masked]", id="GitHub, fine"),
        pytest.param("AKIA" + "IOSFODNN7EXAMPLE", "AKIA[masked]", id="AWS"),
        pytest.param("AIza" + "Sy" * 18, "AIza[masked]", id="Google"),
        pytest.param("xoxb-" + "123456789012-abc", "xoxb[masked]", id="Slack"),
        pytest.param("glpat-" + "x1y2" * 5, "glpa[masked]", id="GitLab"),
        pytest.param("npm_" + "a1B2" * 9, "npm_[masked]", id="npm"),
        pytest.param("hf_" + "AbCd" * 8, "hf_A[masked]", id="Hugging Face"),
        pytest.param("sk_" + "live_" + "4eC39HqLyjWDarjt", "sk_l[masked]", id="Stripe"),
        pytest.param(f"cookie={_JWT}; x", "cookie=eyJh[masked]; x", id="JWT"),
        pytest.param(
            f"a\n{_BEGIN}\nMIIEow\nIBAAKC\n{_END}\nb",
            f"a\n{_BEGIN}\n[masked]\n{_END}\nb",
            id="private key",
        ),
        pytest.param(
            f"{_BEGIN}\nMIIEow\nIBAA", f"{_BEGIN}\n[masked]", id="key without its end"
        ),
        pytest.param(
            f"...Xy12Ab34Cd\nZz98Yy76Xx==\n{_END}",
            f"...[masked]\n{_END}",
            id="key without its beginning",
        ),
        pytest.param(
            "\n".join(["x", *["Ab12Cd34"] * 500, _END]),
            f"x\n[masked]\n{_END}",
            id="a long key without its beginning",
        ),
        pytest.param("password = hunter2x", "password = [masked]", id="password"),
        pytest.param(
            f"token={'a' * 300}1", "token=aaaa[masked]", id="a digit far behind"
        ),
        pytest.param("Password: 12345678", "Password: [masked]", id="digits"),
        pytest.param(
            '{"password": "correcthorse"}', '{"password": "[masked]"}', id="JSON"
        ),
        pytest.param(
            r"{\"token\": \"abcdefghij\"}", r"{\"token\": \"[masked]\"}", id="JSON text"
        ),
        pytest.param(
            "api_key: 0123456789abcdef", "api_key: 0123[masked]", id="long value"
        ),
        pytest.param("token: Ab1_Cd2_Ef3", "token: [masked]", id="joined by signs"),
        pytest.param("x?token=a1b2c3d4&y=1", "x?token=[masked]&y=1", id="query string"),
        pytest.param("DB_PASSWORD=correcthorse", "DB_PASSWORD=[masked]", id="variable"),
        pytest.param(
            "export GITHUB_TOKEN=abcdefgh\nnext",
            "export GITHUB_TOKEN=[masked]\nnext",
            id="exported variable",
        ),
        pytest.param(
            "aws_secret_access_key = wJalrXUtnFEMI/K7MDENG/bPxRfiCY",
            "aws_secret_access_key = wJal[masked]",
            id="AWS secret",
        ),
        pytest.param(
            "postgres://app:s3cret@db:5432/x",
            "postgres://app:[masked]@db:5432/x",
            id="URL",
        ),
        pytest.param(
            "Authorization: Bearer abcdef0123456789xyz",
            "Authorization: Bearer abcd[masked]",
            id="Bearer",
        ),
    ],
)
def test_a_secret_is_masked(text: str, expected: str) -> None:
    assert mask_secrets(text) == expected
    assert mask_secrets(expected) == expected


@cases(
    "text",
    [
        "nothing to hide",
        "5a7c1569fa643084a940e1effa9d5b945aaaa223",
        "550e8400-e29b-41d4-a716-446655440000",
        "~/.config/backstory/config.toml",
        "src/backstory/store/sqlite/token_index_2.py:42",
        "the password: required, at least 8 letters",
        "password: string",
        "what is the secret of good coffee",
        "token = get_token_2(config)",
        "token=settings.github_token_2",
        "token: new_token_2, more",
        "token = settings.API_TOKEN_2",
        "password = getpass.getpass()",
        "token=1" * 20 + "(",
        "token=a" * 20,
        'api_key = os.environ["OPENAI_API_KEY_2"]',
        "api_key=$OPENAI_API_KEY_2",
        "TOKEN=${TOKEN_2_VALUE}",
        "PASSWORD=$(pass show mail2)",
        "api_key: <your-api-key-1>",
        "max_tokens=1024000000",
        "tokens: 12345678",
        "scikit-learn, sk-learn-contrib-and-more-packages",
        "https://example.com:8080/a@b",
        "https://user@example.com/a",
        "mail me at me:you@example.com",
        "a bearer of good news about everything",
        "Basic understanding of authentication",
        "eyJust a word",
        "the public key is ssh-ed25519 AAAAC3NzaC1lZDI1NTE5",
        "-----BEGIN PUBLIC KEY-----\nMIIBIjANBg\n-----END PUBLIC KEY-----",
        "keyboard: QWERTY12345",
    ],
)
def test_what_is_no_secret_stays(text: str) -> None:
    assert mask_secrets(text) == text


PIECES = st.sampled_from(
    [
        "token=",
        "password: ",
        '"secret": "',
        '"',
        "Bearer ",
        "://",
        "user:",
        "@",
        "TOKEN=",
        "\n",
        " ",
        "a1b2c3d4",
        "hunter2hunter2hunter2",
        "[masked]",
        _OPENAI,
        _JWT,
        _BEGIN,
        _END,
    ]
)


@given(st.lists(st.one_of(PIECES, st.text(max_size=3)), max_size=10).map("".join))
def test_masking_never_fails_and_is_done_once(text: str) -> None:
    masked = mask_secrets(text)

    assert mask_secrets(masked) == masked


@pytest.mark.parametrize(
    "piece",
    [
        "sk-",
        "eyJ",
        "eyJa.",
        "://",
        "a:",
        "://a:b",
        "token=",
        "token ",
        "password: 'a",
        "bearer ",
        "bearer aaaa-",
        "-----BEGIN PRIVATE KEY-----",
        "PRIVATE KEY AAAAAAAAAA ",
        "AAAAAAAA\n",
        "A_",
        "export ",
        "a",
    ],
)
def test_long_texts_take_no_quadratic_time(piece: str) -> None:
    text = (piece * 50_000)[:100_000] + " PRIVATE KEY"
    started = time.process_time()

    mask_secrets(text)

    assert time.process_time() - started < 2.0
