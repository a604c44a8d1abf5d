"""What the tests of the server share: a server with two tenants and what they said."""

from collections.abc import Iterator

import pytest

from tests.serve.team import Team, running_team


@pytest.fixture(scope="module")
def team(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Team]:
    with running_team(tmp_path_factory.mktemp("team")) as running:
        for tenant, secret in (("anna", "apricot"), ("bo", "blueberry")):
            memory = running.memories[tenant]
            memory.record(f"s-{tenant}", "user", f"the code word is {secret}")
            memory.record(f"s-{tenant}", "assistant", f"{secret}, noted")
            memory.notebook.add_fact(f"{tenant} likes {secret}", "Taste", mask=False)
        yield running
