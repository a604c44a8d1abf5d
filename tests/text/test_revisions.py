"""Which statements replace earlier ones, and which only seem to."""

import pytest

from backstory.text.revisions import read_statements, replaces


def is_replaced(earlier: str, later: str, *, by_person: bool = True) -> bool:
    return any(
        replaces(new, old, by_person=by_person)
        for new in read_statements(later)
        for old in read_statements(earlier)
    )


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("Let's use Postgres for the loans.", "Let's use SQLite for the loans."),
        (
            "Let's use Postgres for the job queue.",
            "We're switching the job queue to SQLite.",
        ),
        (
            "We'll use Postgres for the loans database",
            "Postgres is overkill, let's go with SQLite for the loans.",
        ),
        (
            "Decided: Postgres for the loans database, with a nightly dump.",
            "We moved the loans from Postgres to SQLite with WAL.",
        ),
        ("Decided: we use Postgres.", "Switched from Postgres to SQLite."),
        ("The API listens on port 8080.", "The API listens on port 9090 now."),
        (
            "The API listens on port 8080.",
            "The API port is now 9090, because 8080 clashes with Jenkins.",
        ),
        (
            "The API listens on port 8080.",
            "I changed the API port from 8080 to 9090 in docker-compose.yml.",
        ),
        (
            "We always deploy from main.",
            "From now on we deploy from the release branch.",
        ),
        (
            "We always deploy from main, tagged with the date.",
            "Deploy from the release branch instead of main.",
        ),
        ("Use tabs for indentation.", "Use four spaces for indentation instead."),
        ("CI runs on Jenkins.", "CI runs on GitHub Actions now."),
        ("CI runs on Jenkins.", "We migrated CI off Jenkins."),
        ("The release is on March 3.", "The release is on March 17."),
        ("Zotero library has 45 sources", "Zotero library now has 52 sources"),
        (
            "My weekly target is 1,200 words",
            "my weekly target was adjusted to 1,350 words",
        ),
        (
            "Prefer moment.js for dates.",
            "Use date-fns rather than moment.js for dates.",
        ),
        ("We'll deploy to Heroku", "We no longer deploy to Heroku, it's Fly.io now"),
        ("The timeout is 30 seconds", "Raise the timeout to 60 seconds"),
    ],
)
def test_a_changed_decision_replaces_the_one_before(earlier: str, later: str) -> None:
    assert is_replaced(earlier, later)


@pytest.mark.parametrize(
    ("earlier", "later"),
    [
        ("We'll use Postgres for the loans", "Let's keep the loans page in dark mode"),
        ("We'll use Postgres for the loans", "The loans export runs every January"),
        ("The API listens on port 8080.", "The metrics endpoint listens on port 9100."),
        ("Staging listens on port 8080.", "Production listens on port 9090."),
        ("We always deploy from main.", "Deploys must be announced in the channel."),
        ("Let's use Postgres for the loans", "Let's use Redis as the cache for loans"),
        ("Let's use Postgres for the loans", "Let's use Postgres for the audit log"),
        ("Let's use Postgres for the loans", "Let's use Postgres for the loans"),
        (
            "Let's use Postgres for the loans",
            "Let's use Postgres for the loans, please",
        ),
        (
            "Let's use Postgres for the loans",
            "Should we switch from Postgres to SQLite for the loans?",
        ),
        (
            "Let's use Postgres for the loans",
            "We could switch the loans from Postgres to SQLite later.",
        ),
        (
            "Let's use Postgres for the loans",
            "We decided not to switch the loans from Postgres to SQLite.",
        ),
        (
            "Switch the loans from Postgres to SQLite.",
            "Done: the loans moved from Postgres to SQLite.",
        ),
        (
            "Jenkins admin password is in 1Password",
            "We moved the CI from Jenkins to GitHub Actions",
        ),
        ("The tests use pytest", "Now let's run the tests with pytest"),
        ("Let me run the tests", "Now let me run the tests again"),
        ("Fixed the login bug in auth.py", "Fixed the logout bug in auth.py"),
        ("Alice prefers dark mode", "Bob prefers light mode"),
    ],
)
def test_another_fact_replaces_nothing(earlier: str, later: str) -> None:
    assert not is_replaced(earlier, later)


def test_an_agent_has_to_name_what_it_gives_up() -> None:
    earlier = "We always deploy from main."

    assert not is_replaced(
        earlier, "The workflow now deploys from tags.", by_person=False
    )
    assert is_replaced(
        earlier, "Changed: deploys come from tags instead of main.", by_person=False
    )
