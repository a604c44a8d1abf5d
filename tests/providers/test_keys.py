"""Keys: where they may be, and what is said when one is not there."""

import os
from pathlib import Path

import pytest

from backstory.errors import ConfigError
from backstory.providers.embedders.base import EmbedderOptions
from backstory.providers.keys import read_key
from backstory.providers.llms.base import LlmOptions

VARIABLES = ("FIRST_KEY", "SECOND_KEY")


def read(
    chosen: str, environ: dict[str, str] | None = None, *, is_elsewhere: bool = False
) -> str:
    return read_key(
        chosen, VARIABLES, environ or {}, is_elsewhere=is_elsewhere, setting="llm.key"
    )


def refused(chosen: str, environ: dict[str, str] | None = None) -> tuple[str, str]:
    with pytest.raises(ConfigError) as caught:
        read(chosen, environ)
    return str(caught.value), caught.value.hint


@pytest.fixture
def file(tmp_path: Path) -> Path:
    file = tmp_path / "key"
    file.write_text("sk-1\n")
    file.chmod(0o600)
    return file


@pytest.mark.parametrize(
    ("environ", "key"),
    [
        ({}, ""),
        ({"FIRST_KEY": "a", "SECOND_KEY": "b"}, "a"),
        ({"FIRST_KEY": "", "SECOND_KEY": "b"}, "b"),
        ({"OTHER_KEY": "c"}, ""),
    ],
)
def test_without_a_choice_the_providers_variables_count(
    environ: dict[str, str], key: str
) -> None:
    assert read("", environ) == key


def test_the_providers_variables_do_not_count_for_another_server() -> None:
    assert read("", {"FIRST_KEY": "a"}, is_elsewhere=True) == ""


@pytest.mark.parametrize("is_elsewhere", [False, True])
def test_a_variable_that_is_named_counts_for_any_server(is_elsewhere: bool) -> None:
    environ = {"FIRST_KEY": "a", "MINE": " b\n"}

    assert read("env:MINE", environ, is_elsewhere=is_elsewhere) == "b"


def test_a_variable_that_is_not_set_is_said() -> None:
    assert refused("env:MI\x1bNE", {"FIRST_KEY": "a"}) == (
        "llm.key names the environment variable MI␛NE, which is not set",
        "set it, and make sure the agent program that starts Backstory sees it",
    )


def test_the_key_itself_is_refused_and_not_shown() -> None:
    assert refused("sk-1234") == (
        "llm.key must say where the key is, not be the key itself",
        'write llm.key = "env:NAME" or "file:/path"',
    )


@pytest.mark.parametrize("mode", [0o600, 0o400, 0o700])
def test_a_private_file_holds_a_key(file: Path, mode: int) -> None:
    file.chmod(mode)

    assert read(f"file:{file}") == "sk-1"


def test_a_link_to_a_private_file_does_as_well(file: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(file)

    assert read(f"file:{link}") == "sk-1"


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o610, 0o644])
def test_a_file_that_others_may_touch_is_refused(file: Path, mode: int) -> None:
    file.chmod(mode)

    assert refused(f"file:{file}") == (
        f"{file}: others may read it (its mode is {mode:04o})",
        f"run: chmod 600 '{file}'",
    )


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a file away")
def test_a_file_of_somebody_else_is_refused(file: Path) -> None:
    os.chown(file, 12345, 12345)

    assert refused(f"file:{file}") == (
        f"{file}: the file belongs to somebody else",
        "make a copy that you own: others could change this one",
    )


@pytest.mark.parametrize(
    "content", [b"", b" \n", b"x" * 20_000], ids=["empty", "blank", "long"]
)
def test_a_file_without_a_key_is_refused(file: Path, content: bytes) -> None:
    file.write_bytes(content)

    assert refused(f"file:{file}") == (
        f"{file}: it is empty or too long",
        "the file must hold what llm.key needs, and nothing else",
    )


def test_a_file_that_is_not_there_is_said(tmp_path: Path) -> None:
    assert refused(f"file:{tmp_path}/none") == (
        f"llm.key names the file '{tmp_path}/none', which cannot be read "
        "(No such file or directory)",
        "check the path, and that you may read the file",
    )


@pytest.mark.parametrize("name", ["key.txt", "~/key.txt", "", "a\x00b"])
def test_a_path_that_is_not_whole_is_refused(name: str) -> None:
    message, hint = refused(f"file:{name}")

    assert message.endswith("which is not an absolute path")
    assert hint == 'write llm.key = "file:/path"'


def test_a_path_with_a_nul_is_refused() -> None:
    message, _ = refused("file:/a\x00b")

    assert message == (
        "llm.key names the file '/a␀b', which cannot be read (embedded null byte)"
    )


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo], ids=["folder", "pipe"])
def test_what_is_no_file_is_refused_at_once(tmp_path: Path, make: object) -> None:
    place = tmp_path / "place"
    assert callable(make)
    make(place)

    message, _ = refused(f"file:{place}")

    assert message in (
        f"{place}: it is not a file",
        f"llm.key names the file '{place}', which cannot be read (Is a directory)",
    )


def test_a_key_is_in_no_text_about_the_options() -> None:
    for options in (EmbedderOptions(key="sk-secret"), LlmOptions(key="sk-secret")):
        assert "sk-secret" not in f"{options!r} {options}"
