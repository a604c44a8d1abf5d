"""Settings: where each value comes from, and what is wrong with those refused."""

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from backstory.errors import ConfigError
from backstory.settings import Setting, Settings, Value, read_settings
from tests.chance import examples
from tests.grid import in_one_test
from tests.ordinary_user import as_ordinary_user
from tests.shell import Shell

TABLE = (
    Setting("index.folders", (), "Folders to read."),
    Setting("index.max_bytes", 100, "How much is kept.", minimum=0),
    Setting("index.seconds", 1.0, "How often.", minimum=0.05),
    Setting("index.live", False, "Whether to watch."),
    Setting("page.title", "Backstory", "What it says."),
)
DEFAULTS: dict[str, tuple[Value, str]] = {
    "index.folders": ((), "default"),
    "index.max_bytes": (100, "default"),
    "index.seconds": (1.0, "default"),
    "index.live": (False, "default"),
    "page.title": ("Backstory", "default"),
}


@pytest.fixture
def user_file(tmp_path: Path) -> Path:
    return tmp_path / "config.toml"


def read(
    user_file: Path,
    environ: dict[str, str] | None = None,
    flags: tuple[str, ...] = (),
) -> Settings:
    return read_settings(
        user_file=user_file,
        environ=environ or {},
        flags=flags,
        table=TABLE,
    )


def shown(settings: Settings) -> dict[str, tuple[Value, str]]:
    return {chosen.setting.name: (chosen.value, chosen.origin) for chosen in settings}


def refused(raised: pytest.ExceptionInfo[ConfigError]) -> tuple[str, str]:
    return str(raised.value), raised.value.hint


# -- where values come from ---


def test_without_any_file_every_setting_has_its_default(user_file: Path) -> None:
    assert shown(read(user_file)) == DEFAULTS


def test_each_value_says_where_it_came_from(user_file: Path) -> None:
    user_file.write_text("[index]\nmax_bytes = 1\nfolders = ['~/a', 'b']\n")

    settings = read(
        user_file,
        {"BACKSTORY_INDEX_SECONDS": "2.5", "PATH": "/bin"},
        ("index.live=yes",),
    )

    assert shown(settings) == {
        "index.folders": (("~/a", "b"), str(user_file)),
        "index.max_bytes": (1, str(user_file)),
        "index.seconds": (2.5, "BACKSTORY_INDEX_SECONDS"),
        "index.live": (True, "--set"),
        "page.title": ("Backstory", "default"),
    }


@pytest.mark.parametrize(
    ("places", "expected"),
    [
        pytest.param(0, ("Backstory", "default"), id="nothing"),
        pytest.param(1, ("file", "USER"), id="the user's file over the default"),
        pytest.param(2, ("variable", "BACKSTORY_PAGE_TITLE"), id="the environment"),
        pytest.param(3, ("flag", "--set"), id="a flag over all"),
    ],
)
def test_the_nearest_place_wins(
    user_file: Path, places: int, expected: tuple[str, str]
) -> None:
    user_file.write_text("page.title = 'file'\n" * (places >= 1))
    environ = {"BACKSTORY_PAGE_TITLE": "variable"} if places >= 2 else {}
    flags = ("page.title=flag",) * (places >= 3)

    settings = read(user_file, environ, flags)

    names = {str(user_file): "USER"}
    value, origin = shown(settings)["page.title"]
    assert (value, names.get(origin, origin)) == expected


def test_the_places_of_everything_else_are_no_settings(user_file: Path) -> None:
    settings = read(
        user_file, environ={"BACKSTORY_HOME": "/x", "BACKSTORY_CONFIG": "/y"}
    )

    assert shown(settings) == DEFAULTS


def test_a_setting_is_looked_up_by_name_and_type(user_file: Path) -> None:
    settings = read(user_file, flags=("index.folders=a, b,,", "index.seconds=2"))

    found = (
        settings.texts("index.folders"),
        settings.whole("index.max_bytes"),
        settings.number("index.seconds"),
    )

    assert found == (("a", "b"), 100, 2.0)


def test_a_whole_number_in_a_file_does_for_a_number(user_file: Path) -> None:
    user_file.write_text("index.seconds = 3")

    assert shown(read(user_file))["index.seconds"] == (3.0, str(user_file))


@pytest.mark.parametrize("word", ["true", "1", "Yes", " on "])
def test_a_yes_is_said_in_many_words(user_file: Path, word: str) -> None:
    settings = read(user_file, flags=(f"index.live={word}",))

    assert shown(settings)["index.live"] == (True, "--set")


# -- unknown names ---


@pytest.mark.parametrize(
    ("content", "name", "hint"),
    [
        pytest.param(
            "[index]\nmax_byte = 1",
            "index.max_byte",
            "did you mean 'index.max_bytes'?",
            id="a typing error",
        ),
        pytest.param(
            "[[index]]\nmax_bytes = 1",
            "index",
            "did you mean 'index.folders' or 'index.max_bytes' or 'index.seconds'?",
            id="a list of tables",
        ),
        pytest.param(
            "zzz = 1",
            "zzz",
            "the names are: index.folders, index.max_bytes, index.seconds, "
            "index.live, page.title",
            id="nothing like it",
        ),
        pytest.param(
            "index.max_bytes.limit = 1",
            "index.max_bytes.limit",
            "did you mean 'index.max_bytes'?",
            id="below a setting",
        ),
    ],
)
def test_an_unknown_name_in_a_file_is_refused_with_the_nearest(
    user_file: Path, content: str, name: str, hint: str
) -> None:
    user_file.write_text(content)

    with pytest.raises(ConfigError) as raised:
        read(user_file)

    reason, given_hint = refused(raised)
    assert (reason.rpartition(": ")[2], given_hint) == (
        f"unknown setting '{name}'",
        hint,
    )
    assert reason.startswith(f"{user_file}:")


def test_an_unknown_variable_is_refused_with_the_nearest(user_file: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        read(user_file, environ={"BACKSTORY_INDEX_FOLDER": "x"})

    assert refused(raised) == (
        "environment: unknown setting 'BACKSTORY_INDEX_FOLDER'",
        "did you mean 'BACKSTORY_INDEX_FOLDERS'?",
    )


def test_an_unknown_name_in_a_flag_is_refused_with_the_nearest(user_file: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        read(user_file, flags=("index.secs=1",))

    assert refused(raised) == (
        "--set: unknown setting 'index.secs'",
        "did you mean 'index.seconds'?",
    )


def test_a_flag_without_a_value_is_refused(user_file: Path) -> None:
    with pytest.raises(ConfigError) as raised:
        read(user_file, flags=("index.live",))

    assert str(raised.value) == "--set index.live: expected NAME=VALUE"


# -- values that cannot be ---


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(
            "index.max_bytes = '9'",
            "'index.max_bytes' must be a whole number, got '9'",
            id="text for a number",
        ),
        pytest.param(
            "index.max_bytes = true",
            "'index.max_bytes' must be a whole number, got True",
            id="yes for a number",
        ),
        pytest.param(
            "index.max_bytes = 1.5",
            "'index.max_bytes' must be a whole number, got 1.5",
            id="half a byte",
        ),
        pytest.param(
            "index.max_bytes = -1",
            "'index.max_bytes' must be at least 0, got -1",
            id="less than nothing",
        ),
        pytest.param(
            "index.seconds = inf",
            "'index.seconds' must be a number, got inf",
            id="infinity",
        ),
        pytest.param(
            "index.seconds = nan", "'index.seconds' must be a number, got nan", id="nan"
        ),
        pytest.param(
            "index.folders = 'a'",
            "'index.folders' must be a list of texts, got 'a'",
            id="a text for a list",
        ),
        pytest.param(
            "index.folders = [1]",
            "'index.folders' must be a list of texts, got [1]",
            id="a list of numbers",
        ),
        pytest.param(
            "index.live = 1", "'index.live' must be true or false, got 1", id="a one"
        ),
        pytest.param(
            "page.title = 1", "'page.title' must be text, got 1", id="no text"
        ),
    ],
)
def test_a_value_of_another_type_in_a_file_is_refused(
    user_file: Path, content: str, reason: str
) -> None:
    user_file.write_text(content)

    with pytest.raises(ConfigError) as raised:
        read(user_file)

    assert str(raised.value) == f"{user_file}:1: {reason}"


@pytest.mark.parametrize(
    ("flag", "reason"),
    [
        pytest.param(
            "index.max_bytes=much", "must be a whole number, got 'much'", id="word"
        ),
        pytest.param(
            "index.max_bytes=1.5", "must be a whole number, got '1.5'", id="half"
        ),
        pytest.param(
            "index.max_bytes=-1", "must be at least 0, got -1", id="less than nothing"
        ),
        pytest.param(
            "index.seconds=0.01", "must be at least 0.05, got 0.01", id="too often"
        ),
        pytest.param("index.seconds=inf", "must be a number, got inf", id="infinity"),
        pytest.param(
            "index.live=maybe", "must be true or false, got 'maybe'", id="maybe"
        ),
    ],
)
def test_a_value_that_cannot_be_read_from_a_flag_is_refused(
    user_file: Path, flag: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        read(user_file, flags=(flag,))

    name = flag.partition("=")[0]
    assert str(raised.value) == f"--set {name}: '{name}' {reason}"


# -- files ---


def test_a_file_that_is_no_toml_is_refused(user_file: Path) -> None:
    user_file.write_text("index.max_bytes = ")

    with pytest.raises(ConfigError) as raised:
        read(user_file)

    assert str(raised.value) == (
        f"{user_file}: not valid TOML (Invalid value (at end of document))"
    )


def test_a_file_that_is_no_text_is_refused(user_file: Path) -> None:
    user_file.write_bytes(b"a = '\xff'")

    with pytest.raises(ConfigError) as raised:
        read(user_file)

    assert str(raised.value) == f"{user_file}:1: not valid UTF-8"


def test_a_file_that_may_not_be_read_is_refused(user_file: Path) -> None:
    user_file.write_text("")
    user_file.chmod(0)

    with as_ordinary_user(), pytest.raises(ConfigError) as raised:
        read(user_file)

    assert str(raised.value) == f"{user_file}: cannot be read (Permission denied)"


@in_one_test(
    "case",
    {
        "nested arrays": (b"x = " + b"[" * 5_000, ": nested too deeply"),
        "a deep name": (b"a" + b".a" * 3_000 + b" = 1", ": nested too deeply"),
        "many digits": (
            b"\nindex.max_bytes = " + b"9" * 5_000,
            ":2: a number with too many digits",
        ),
        "many digits in hexadecimal": (
            b"index.max_bytes = 0x" + b"f" * 5_000,
            ":1: 'index.max_bytes' must be at most 9.0072e+15, got a value of type int",
        ),
        "too large a number": (
            b"index.seconds = " + b"9" * 30,
            ":1: 'index.seconds' must be at most 1e+08, got " + "9" * 30,
        ),
        "an integer for which there is no float": (
            b"index.seconds = 1" + b"0" * 400,
            ":1: 'index.seconds' must be at most 1e+08, got 1" + "0" * 78 + "…",
        ),
        "a NUL in a text": (
            b'page.title = "a\\u0000b"',
            ":1: 'page.title' has a NUL character in it",
        ),
        "a NUL in a list": (
            b'[index]\nfolders = ["a", "a\\u0000b"]',
            ":2: 'index.folders' has a NUL character in it",
        ),
        "no text": (b"\n\na = '\xff'", ":3: not valid UTF-8"),
        "more than anybody writes": (
            b"#" * 1_000_001,
            ": it has more than 1,000,000 bytes",
        ),
    },
)
def test_a_hostile_file_is_refused_with_its_place(
    user_file: Path, case: tuple[bytes, str]
) -> None:
    content, reason = case
    user_file.write_bytes(content)

    with pytest.raises(ConfigError) as raised:
        read(user_file)

    assert str(raised.value) == f"{user_file}{reason}"


def make_huge(path: Path) -> None:
    path.touch()
    os.truncate(path, 1_500_000_000)


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        pytest.param(os.mkfifo, "cannot be read (it is not a file)", id="a pipe"),
        pytest.param(Path.mkdir, "cannot be read (Is a directory)", id="a folder"),
        pytest.param(
            lambda path: path.symlink_to("/dev/zero"),
            "cannot be read (it is not a file)",
            id="a device",
        ),
        pytest.param(make_huge, "it has more than 1,000,000 bytes", id="a huge file"),
    ],
)
def test_what_is_no_ordinary_file_is_refused(
    user_file: Path, make: Callable[[Path], object], reason: str
) -> None:
    make(user_file)

    with pytest.raises(ConfigError) as raised:
        read(user_file)

    assert str(raised.value) == f"{user_file}: {reason}"


@pytest.mark.parametrize(
    ("variable", "value", "reason"),
    [
        ("BACKSTORY_INDEX_MAX_BYTES", "9" * 5_000, "must be a whole number"),
        ("BACKSTORY_INDEX_MAX_BYTES", "9" * 400, "must be at most 9.0072e+15"),
        ("BACKSTORY_INDEX_SECONDS", "1e308", "must be at most 1e+08, got 1e+308"),
        ("BACKSTORY_INDEX_SECONDS", "1e309", "must be a number, got inf"),
        ("BACKSTORY_PAGE_TITLE", "\udcff", "is not valid UTF-8"),
        ("BACKSTORY_INDEX_FOLDERS", "a,\udcff", "is not valid UTF-8"),
    ],
)
def test_a_hostile_variable_is_refused_by_its_name(
    user_file: Path, variable: str, value: str, reason: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        read(user_file, environ={variable: value})

    assert str(raised.value).startswith(f"{variable}: '")
    assert reason in str(raised.value)
    assert len(str(raised.value)) < 300


_toml = st.recursive(
    st.text() | st.integers() | st.floats() | st.booleans() | st.dates(),
    lambda inner: st.lists(inner, max_size=3),
    max_leaves=5,
)


@settings(max_examples=examples(20))
@given(name=st.sampled_from(sorted(DEFAULTS)) | st.text(), value=_toml | st.binary())
def test_no_value_in_a_file_raises_anything_else(
    tmp_path_factory: pytest.TempPathFactory, name: str, value: object
) -> None:
    file = tmp_path_factory.getbasetemp() / "any.toml"
    raw = value if isinstance(value, bytes) else repr(value).encode("utf-8", "replace")
    file.write_bytes(name.encode("utf-8", "replace") + b" = " + raw)

    with suppress(ConfigError):
        read(file)


# -- changing them ---


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    return Shell(home, tmp_path / "kept")


def config_of(home: Path) -> Path:
    return home / ".config/backstory/config.toml"


def test_a_value_that_is_set_counts_from_then_on(shell: Shell) -> None:
    said = shell.out("settings", "set", "llm.daily_tokens", "5000")

    assert said == "Set llm.daily_tokens in ~/.config/backstory/config.toml.\n"
    assert config_of(shell.home).read_text() == "[llm]\ndaily_tokens = 5000\n"
    assert config_of(shell.home).stat().st_mode & 0o777 == 0o600
    assert "llm.daily_tokens                           5000" in shell.out("settings")


def test_setting_a_value_keeps_everything_else_in_the_file(shell: Shell) -> None:
    written = (
        b'\xef\xbb\xbf# mine\r\n[llm] # model\r\nname = "claude" # why\r\n\r\n# end\r\n'
    )
    config_of(shell.home).parent.mkdir(parents=True)
    config_of(shell.home).write_bytes(written)

    shell.out("settings", "set", "llm.name", "ollama")
    shell.out("settings", "set", "exclude.folders", "~/a, ~/b")
    changed = config_of(shell.home).read_bytes()
    shell.out("settings", "unset", "exclude.folders")
    shell.out("settings", "set", "llm.name", "claude")

    added = b'\r\n[exclude]\r\nfolders = ["~/a", "~/b"]\r\n'
    assert changed == written.replace(b"claude", b"ollama") + added
    assert config_of(shell.home).read_bytes() == written + b"\r\n[exclude]\r\n"


@pytest.mark.parametrize(
    "typed", ["~/a, ~/b", '["~/a", "~/b"]', " ['~/a', '~/b',] "], ids=repr
)
def test_a_list_can_be_typed_as_the_file_has_it(shell: Shell, typed: str) -> None:
    shell.out("settings", "set", "exclude.folders", typed)

    written = '[exclude]\nfolders = ["~/a", "~/b"]\n'
    assert config_of(shell.home).read_text() == written


def test_a_link_to_the_file_stays_a_link(shell: Shell, tmp_path: Path) -> None:
    real = tmp_path / "dotfiles.toml"
    real.write_text("")
    real.chmod(0o640)
    config_of(shell.home).parent.mkdir(parents=True)
    config_of(shell.home).symlink_to(real)

    shell.out("settings", "set", "llm.name", "none")

    assert config_of(shell.home).is_symlink()
    assert real.read_text() == '[llm]\nname = "none"\n'
    assert real.stat().st_mode & 0o777 == 0o640


@pytest.mark.parametrize(
    ("written", "words", "error"),
    [
        ("", ("llm.nam", "x"), "backstory: settings: unknown setting 'llm.nam'"),
        ("", ("llm.name", "x"), "backstory: settings: 'llm.name' cannot be 'x'"),
        (
            "",
            ("keep.days", "-1"),
            "backstory: settings: 'keep.days' must be at least 0, got -1",
        ),
        (
            "",
            ("llm.key", "sk-walnut"),
            "backstory: llm.key must say where the key is, not be the key itself",
        ),
        (
            "",
            ("exclude.hosts", "codx"),
            "backstory: exclude.hosts: no agent program is called 'codx'",
        ),
        (
            "",
            ("exclude.folders", "[~/a]"),
            "backstory: settings: 'exclude.folders' must be a list of texts, "
            "got '[~/a]'",
        ),
        (
            "",
            ("exclude.folders", '["~/a", 1]'),
            "backstory: settings: 'exclude.folders' must be a list of texts, "
            """got '["~/a", 1]'""",
        ),
        (
            "[llm\n",
            ("llm.name", "none"),
            "backstory: {file}: not valid TOML (Expected ']' at the end of a table "
            "declaration (at line 1, column 5))",
        ),
        (
            "llm = 1\n",
            ("llm.name", "none"),
            "backstory: {file}: this file cannot be changed safely",
        ),
    ],
)
def test_what_cannot_be_set_changes_nothing(
    shell: Shell, written: str, words: tuple[str, str], error: str
) -> None:
    config_of(shell.home).parent.mkdir(parents=True)
    config_of(shell.home).write_text(written)

    done = shell.run("settings", "set", *words)

    said = done.stderr.splitlines()[0]
    assert (done.returncode, said) == (11, error.format(file=config_of(shell.home)))
    assert config_of(shell.home).read_text() == written


def test_unsetting_what_is_not_set_says_so(shell: Shell) -> None:
    said = shell.out("settings", "unset", "llm.name")

    assert said == "llm.name is not set in ~/.config/backstory/config.toml.\n"
    assert not config_of(shell.home).exists()


def test_a_value_that_the_environment_overrides_is_said(shell: Shell) -> None:
    done = shell.run("settings", "set", "llm.name", "none", BACKSTORY_LLM_NAME="claude")

    assert done.stderr == "BACKSTORY_LLM_NAME in the environment overrides it.\n"


def test_a_key_in_the_environment_is_no_consent(shell: Shell) -> None:
    done = shell.run("logs", "--write", ANTHROPIC_API_KEY="k", OPENAI_API_KEY="k")

    assert (done.returncode, done.stderr.splitlines()[0]) == (
        11,
        "backstory: no language model is configured",
    )
