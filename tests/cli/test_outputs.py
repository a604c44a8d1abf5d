"""Commands print what the files in ``data/outputs`` hold."""

from pathlib import Path

from tests.outputs import OUTPUTS, iter_outputs, prepare_outputs


def test_what_is_printed_is_what_was_reviewed(tmp_path: Path) -> None:
    printed = dict(iter_outputs(prepare_outputs(tmp_path)))

    kept = {
        file.name: file.read_text(encoding="utf-8")
        for file in OUTPUTS.iterdir()
        if file.is_file()
    }
    assert printed.keys() == kept.keys()
    assert {name for name in kept if printed[name] != kept[name]} == set()
