"""Which statements replace earlier ones, and which only seem to."""

import pytest

from backstory.text.revisions import read_statements, replaces
from tests.grid import cases


def is_replaced(earlier: str, later: str, *, by_person: bool = True) -> bool:
    return any(
        replaces(new, old, by_person=by_person)
        for new in read_statements(later)
        for old in read_statements(earlier)
    )


@cases(
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
        ("CI runs on Jenkins.", "We moved CI away from Jenkins."),
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
        (
            "The launch event with Amy is on November 15 at the cultural center.",
            "The launch event was moved from November 15 to November 22.",
        ),
        ("Die API lauscht auf Port 8080.", "Die API lauscht auf Port 9090."),
        (
            "Für die Ausleihen nehmen wir Postgres.",
            "Wir haben die Ausleihen von Postgres auf SQLite umgestellt.",
        ),
        (
            "L'API utilise la version 16 de Postgres.",
            "L'API utilise la version 17 de Postgres.",
        ),
        (
            "El servidor usa Postgres para los préstamos.",
            "Hemos migrado los préstamos de Postgres a SQLite.",
        ),
    ],
)
def test_a_changed_decision_replaces_the_one_before(earlier: str, later: str) -> None:
    assert is_replaced(earlier, later)


@cases(
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
        ("Congrats on the new team!", "Congrats on the trophy!"),
        (
            "A photo of two turtles sitting on a rock",
            "A photo of two turtles sitting on a log",
        ),
        ("I give my all on the court", "When I'm away from the court, I cook"),
        # Where a bug is told, nothing is given up; neither where work goes on.
        (
            "The system clones the repository, applies the patch and evaluates it.",
            "The button evaluates original files instead of patched files.",
        ),
        ("Let's work on the coin problem.", "Sure, let's move on to another problem"),
        # A goal is no change, and neither is what one of two things came to.
        (
            "I got 82 points for the essay outline.",
            "I am aiming to raise the essay from 82 to 90 points.",
        ),
        (
            "I have planned 3 editing sessions on May 11.",
            "The meeting with Greg was moved from 3 pm to 5 pm on June 2.",
        ),
        (
            "I'm trying to reach full coverage on the API module",
            "I'm trying to reach full coverage on the core modules",
        ),
        (
            "Passwords are hashed and stored in the users table in SQLite.",
            "We switched from SQLite to Postgres in production.",
        ),
        (
            "If 7 pm is not the best time, consider another one for writing.",
            "The writing session was moved from 7 pm to 8 pm.",
        ),
        (
            "Das Passwort für Jenkins liegt im Tresor.",
            "Wir haben die Tests von Jenkins auf GitHub umgestellt.",
        ),
        (
            "Für die Ausleihen nehmen wir Postgres.",
            "Sollten wir die Ausleihen von Postgres auf SQLite umstellen?",
        ),
        (
            "Für die Ausleihen nehmen wir Postgres.",
            "Wir könnten die Ausleihen von Postgres auf SQLite umstellen.",
        ),
    ],
)
def test_another_fact_replaces_nothing(earlier: str, later: str) -> None:
    assert not is_replaced(earlier, later)


@pytest.mark.parametrize(
    ("earlier", "later", "expected"),
    [
        ("We always deploy from main.", "The workflow now deploys from tags.", False),
        (
            "We always deploy from main.",
            "The workflow deploys from tags instead of main.",
            False,
        ),
        (
            "We always deploy from main.",
            "I switched the deploy from main to tags.",
            True,
        ),
        ("Looking at the test failures", "Looking at the diff", False),
        ("Use a professional format.", "Use a professional email address.", False),
        ("The API listens on port 8080.", "The API listens on port 9090.", True),
    ],
)
def test_an_agent_has_to_name_what_it_moved_from_or_another_number(
    earlier: str, later: str, expected: bool
) -> None:
    assert is_replaced(earlier, later, by_person=False) is expected
