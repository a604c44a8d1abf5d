"""The examples run offline and show what their page says."""

import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).parent.parent / "docs/how-to/search-the-current-run.md"
EXAMPLES = Path(__file__).parent.parent / "examples"


def test_a_fact_from_iteration_3_is_recovered_at_iteration_60() -> None:
    done = subprocess.run(
        [sys.executable, EXAMPLES / "agent_loop.py"],
        capture_output=True,
        text=True,
        check=True,
        timeout=120,
    )

    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert lines[2] == "iteration 3: read services/billing.toml, 638 characters"
    assert lines[5] == (
        'iteration 60: search_conversation_history {"query": "billing service port", '
        '"max_results": 2}'
    )
    assert "    > port = 7412" in lines
    assert f"```text\n{done.stdout}```" in PAGE.read_text(encoding="utf-8")
    assert lines[-1] == "iteration 61: The service 'billing' listens on port 7412."
