"""What a person is told after something was forgotten."""

from datetime import UTC, datetime

import pytest

from backstory.render.people.forgetting import render_receipt
from backstory.values.forgetting import (
    Erasure,
    ForgetReport,
    Forgetting,
    ForgottenSession,
)
from tests.render.test_hits import DINNER

FORGETTING = Forgetting(1, datetime(2026, 2, 20, tzinfo=UTC), 1, 3, ("claude-code",))


@pytest.mark.parametrize(
    ("erasure", "told"),
    [
        (Erasure.DONE, []),
        (
            Erasure.BLOCKED,
            [
                "Another process is still reading the database: what was deleted is "
                "erased from its files after that process ends."
            ],
        ),
        (
            Erasure.LEFT,
            [
                "The rows are deleted, but the files of the database still have their "
                "bytes until the server overwrites them. The owner of the tables can "
                "erase them now with VACUUM FULL."
            ],
        ),
    ],
)
def test_a_receipt_says_what_is_left_in_the_files(
    erasure: Erasure, told: list[str]
) -> None:
    forgotten = ForgottenSession(DINNER, 3)
    report = ForgetReport((forgotten,), forgetting=FORGETTING, erasure=erasure)

    assert list(render_receipt(report))[2:] == told
