"""Every kind of secret of the tables is masked wherever it stands, and only it is."""

import json

import pytest

from backstory.text.redaction import MASKED, mask_secrets
from backstory.text.secret_kinds import KEYS, PARTLY_SHOWN
from tests.grid import cases, in_one_test

SECRETS = {
    **{kind: (begin, rest) for kind, begin, _, rest in KEYS},
    **{row[0]: row[-2:] for row in PARTLY_SHOWN},
}
# Their kind is only told by their whole length.
EXACT = {
    "AWS",
    "AWS, temporary",
    "Databricks",
    "HashiCorp Vault, before 1.10",
    "Mailchimp",
    "Mailgun",
    "New Relic licence",
    "NuGet",
    "Square, access",
    "Twilio",
    "crates.io",
}


def check_masked(before: str, secret: str, after: str) -> None:
    text = before + secret + after
    masked = mask_secrets(text)

    # The first letters may tell the kind, and what is shown of an address.
    assert masked.startswith(before)
    assert masked.endswith(MASKED + after)
    for piece in ("a1a1a1a1", "A1A1A1A1", "aB1aB1", "a1B2a1B2", "Q2Q2Q2Q2", "aBaBaB"):
        assert piece not in masked
    assert mask_secrets(masked) == masked


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("", "", id="alone"),
        pytest.param("I use ", ", please.", id="sentence"),
        pytest.param("it is ", ".", id="end of a sentence"),
        pytest.param("(", ")", id="brackets"),
        pytest.param("export X=", "\nnext", id="variable"),
        pytest.param("run --with ", " && next", id="shell"),
        pytest.param("run 'https://example.com/", "' -o x", id="path of an address"),
        pytest.param("https://example.com/?x=", "&y=1", id="address"),
        pytest.param("a long text that ends in ", "…", id="before a cut"),
    ],
)
@in_one_test("secret", SECRETS)
def test_a_secret_is_masked(secret: tuple[str, str], before: str, after: str) -> None:
    check_masked(before, "".join(secret), after)


@in_one_test("secret", SECRETS)
def test_a_secret_is_masked_in_json(secret: tuple[str, str]) -> None:
    begin, rest = secret
    text = json.dumps({"text": f"line\n{begin}{rest}\nlast"})

    masked = json.loads(mask_secrets(text))["text"]

    assert masked.startswith("line\n")
    assert masked.endswith(f"{MASKED}\nlast")
    assert "a1a1a1a1a1" not in masked.lower()


@in_one_test(
    "secret", {kind: secret for kind, secret in SECRETS.items() if kind not in EXACT}
)
def test_a_secret_is_masked_whose_end_was_cut_off(secret: tuple[str, str]) -> None:
    begin, rest = secret
    check_masked("it is ", begin + rest[: len(rest) * 4 // 5], "")


@pytest.mark.parametrize("before", ["", "(", "é", "\\n"])
@in_one_test("secret", SECRETS)
def test_a_secret_is_masked_in_a_long_text_as_in_a_short_one(
    secret: tuple[str, str], before: str
) -> None:
    long = "nothing to hide here. " * 1_000
    text = f"{before}{''.join(secret)} is not xsk-learn_sk-"

    assert mask_secrets(long + text + long) == long + mask_secrets(text) + long


@pytest.mark.parametrize("near_miss", ["{0}", "x{0}{1}", "{0} {1}", "{0}word"])
@in_one_test("secret", SECRETS)
def test_what_only_begins_like_a_secret_stays(
    secret: tuple[str, str], near_miss: str
) -> None:
    begin, rest = secret
    # A piece that is too short for any key.
    text = near_miss.format(begin, rest[:6])

    assert mask_secrets(text) == text


def test_every_kind_has_a_name_of_its_own() -> None:
    kinds = [row[0] for row in (*KEYS, *PARTLY_SHOWN)]

    assert sorted(kinds) == sorted(set(kinds))
    assert set(kinds) >= EXACT


FAKE = "hunter" + "2"


@cases(
    ("text", "expected"),
    [
        (f"db --password {FAKE}", "db --password [masked]"),
        ("db --password=swordfish -v", "db --password=[masked] -v"),
        (f'db --admin-password "{FAKE}" x', 'db --admin-password "[masked]" x'),
        ("tool --api-key Ab12Cd34 --all", "tool --api-key [masked] --all"),
        ("tool --token sWordFish", "tool --token [masked]"),
        (f"curl -u me:{FAKE} https://x.org", "curl -u me:[masked] https://x.org"),
        ("curl -s -u 'me:pass word' x", "curl -s -u 'me:[masked] word' x"),
        (f"curl --user me:{FAKE} x", "curl --user me:[masked] x"),
        (f"curl x \\\n  -u me:{FAKE}", "curl x \\\n  -u me:[masked]"),
        (f"mysql -u root -p{FAKE} db", "mysql -u root -p[masked] db"),
        (f"sshpass -p {FAKE} ssh x", "sshpass -p [masked] ssh x"),
        (f"redis-cli -h x -a {FAKE}", "redis-cli -h x -a [masked]"),
        (f"docker login -u me -p {FAKE}", "docker login -u me -p [masked]"),
        (
            "machine x.org login me password swordfish",
            "machine x.org login me password [masked]",
        ),
        (
            "machine x.org\n  login me\n  password swordfish\n",
            "machine x.org\n  login me\n  password [masked]\n",
        ),
        (
            "docker run -e DB_PASSWORD=swordfish x",
            "docker run -e DB_PASSWORD=[masked] x",
        ),
        ('{"a": "x\\nTOKEN=swordfish\\n"}', '{"a": "x\\nTOKEN=[masked]\\n"}'),
        (
            "https://x.org/?password=swordfish&a=1",
            "https://x.org/?password=[masked]&a=1",
        ),
        ("Server=x;User=a;Password=swordfish;", "Server=x;User=a;Password=[masked];"),
        (f"my password is {FAKE}.", "my password is [masked]."),
        (f"The password was now `{FAKE}`", "The password was now `[masked]`"),
        ("set the password to Sw0rdfish!", "set the password to [masked]!"),
        ("our passphrase is: cor-rect-H0rse, ok", "our passphrase is: [masked], ok"),
        ("the PIN is 4821", "the PIN is [masked]"),
        (
            "Authorization: token 0123456789abcdef0123",
            "Authorization: token 0123[masked]",
        ),
        ("'authorization': 'Ab12Cd34Ef'", "'authorization': '[masked]'"),
    ],
)
def test_a_secret_is_told_by_the_words_before_it(text: str, expected: str) -> None:
    assert mask_secrets(text) == expected
    assert mask_secrets(expected) == expected


@cases(
    "text",
    [
        "use --password to set it",
        "the --token option is required",
        "--api-key KEY is needed",
        "--password $PASSWORD",
        "--password=<your password>",
        "docker run -u 1000:1000 image",
        "docker run --user node:node image\ncurl x",
        "mkdir -p folder && mysql",
        "curl -u $USER:$PASSWORD x",
        "the login page has a password field",
        "the password is required, and the password is wrong",
        "my password is not accepted",
        "the password is base64 and was sha256-hashed",
        "the password is 12-character text",
        "change the password to something-else",
        "the pin is 13",
        "pin 4821 is an output",
        "the authorization: required for everybody",
        "authorization = base64.decodebytes(value)",
        'OPENAI_API_KEY="${OPENAI_API_KEY}"',
        "ANTHROPIC_API_KEY=your-key-here",
        'password="********"',
        'api_key = "YOUR_API_KEY"',
        "s.replaceAllOfTheTokens2(x)",
        "items.s.aB1aB1aB1aB1aB1aB1aB1aB1",
        "data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQ",
        "data:audio/wav;base64,EAAAEAAAABAAAAAQAAAAEAAAABAAAAAQ+AAAAEAAA/AAAABAAAA",
        "commit 5a7c1569fa643084a940e1effa9d5b945aaaa223 (HEAD -> main)",
        "sha256:9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "it costs $1,299.00 or 1.299,00 €, order 4711-0815-2026",
        "/home/me/key-files/pat/sk-learn/hf_hub/npm_modules/x.py",
        "node_modules/.cache/9f86d081884c7d659a2feaa0c55ad015",
        "at 2026-11-17T08:00:00.000Z in 550e8400-e29b-41d4-a716-446655440000",
        "do_v1_migration, gl-pattern, ghost_writer_of_many_words, fw_update_check",
    ],
)
def test_ordinary_text_and_code_stay(text: str) -> None:
    assert mask_secrets(text) == text


@pytest.mark.parametrize(
    "key",
    [
        "figuh_" + "a1" * 20,
        "figdh_" + "a1" * 20,
        "sntryi_" + "a1" * 32,
        "bkaj_eyJ" + "a1" * 12 + "." + "a1" * 20 + "." + "a1" * 20,
        "pat-eu-" + "a1" * 4 + "-a1a1" * 3 + "-" + "a1" * 6,
    ],
)
def test_other_forms_of_a_kind_are_masked_too(key: str) -> None:
    assert mask_secrets(f"It is {key}.") == f"It is {key[:4]}[masked]."
