"""Folders that editors note as a URL."""

import pytest

from backstory.ingest.parsing.file_urls import to_path
from tests.grid import cases


@cases(
    ("folder", "expected"),
    [
        pytest.param("/home/dev/app", "/home/dev/app", id="a path"),
        pytest.param("C:\\dev\\app", "C:\\dev\\app", id="a path on Windows"),
        pytest.param("file:///home/dev/app", "/home/dev/app", id="a URL"),
        pytest.param("file:///home/dev/app/", "/home/dev/app", id="a slash at its end"),
        pytest.param("file:///", "/", id="the root"),
        pytest.param("file://localhost/srv", "/srv", id="with this machine's name"),
        pytest.param("file:///home/dev/my%20app", "/home/dev/my app", id="a blank"),
        pytest.param("file:///c%3A/dev/app", "c:\\dev\\app", id="a drive"),
        pytest.param("file:///C:/dev/app", "C:\\dev\\app", id="a drive, not escaped"),
        pytest.param("file://server/share", None, id="on another machine"),
        pytest.param("vscode-remote://ssh-remote%2Bbox/srv", None, id="remote"),
        pytest.param("vscode-vfs://github/a/b", None, id="in the cloud"),
        pytest.param("file://[x", None, id="no URL"),
    ],
)
def test_a_folder_has_a_path_if_it_is_on_this_machine(
    folder: str, expected: str | None
) -> None:
    assert to_path(folder) == expected
