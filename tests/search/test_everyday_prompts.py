"""Everyday prompts over a few weeks of work: which are given which memories."""

from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from backstory.memory import Memory
from tests.samples import a_memory

# One process fills the memory that all of them ask.
pytestmark = pytest.mark.xdist_group("everyday")

NOW = datetime(2026, 3, 20, 12, tzinfo=UTC)
SHOP, TRIPS, INFRA = "/home/mia/shop", "/home/mia/trips", "/home/mia/infra"
NOTES = """# Long-term Memory

- Mia writes commit messages in English, without a full stop
"""

# What was asked, the steps to it, and what it came to, in sessions three days apart.
SESSIONS: tuple[tuple[str, str, tuple[tuple[str, str, str], ...]], ...] = (
    (
        "refunds",
        SHOP,
        (
            (
                "Refunds over 500 euros are booked twice. Find out why.",
                "Let me look at the refund code and run the tests.",
                "Found it: the Stripe webhook charge.refunded arrives twice when the "
                "first answer takes longer than ten seconds, and refund_order() had no "
                "idempotency key. I store the event id in processed_events now and "
                "return early if it is there already.",
            ),
            (
                "Great, commit it",
                "Let me commit the changes now.",
                "Committed as 4f2a91c.",
            ),
        ),
    ),
    (
        "invoices",
        SHOP,
        (
            (
                "The PDF invoices lose the umlauts in customer names on the server.",
                "Now let me check which fonts are installed.",
                "The container has no DejaVu fonts, so WeasyPrint falls back to a font "
                "without umlauts. I added fonts-dejavu-core to the Dockerfile and a "
                "test that renders an invoice for Jörg Müller.",
            ),
        ),
    ),
    (
        "slow tests",
        SHOP,
        (
            (
                "The checkout tests take six minutes, can we make them faster?",
                "I'll run the tests with durations first.",
                "Most of the time went into hashing passwords: the tests use Argon2 "
                "with production settings. With MD5PasswordHasher in settings/test.py "
                "the checkout tests take 48 seconds.",
            ),
            (
                "looks good, run the whole suite",
                "Running the whole test suite.",
                "All 812 tests pass.",
            ),
        ),
    ),
    (
        "shipping",
        SHOP,
        (
            (
                "Which carrier do we use for parcels to Norway, and why?",
                "Let me search the code for carriers.",
                "Norway goes with Posten Bring since February, because DHL needs a "
                "VOEC number on every label and our label printer cannot print it.",
            ),
        ),
    ),
    (
        "map",
        TRIPS,
        (
            (
                "The map flickers whenever I drag a waypoint.",
                "Let me read the Map component.",
                "MapView created a new Leaflet layer group on every render. I moved it "
                "into a ref and update only the waypoint that is dragged; dragging is "
                "smooth now at 60 frames a second.",
            ),
        ),
    ),
    (
        "offline",
        TRIPS,
        (
            (
                "Trips should be usable without a network on the train.",
                "I'll check how the service worker is registered.",
                "Decided: the service worker caches map tiles of saved trips only, at "
                "zoom levels 8 to 14, at most 60 MB, because Safari clears everything "
                "above that. Edits wait in IndexedDB and are sent when online again.",
            ),
            (
                "ok now fix the lint errors",
                "Let me run eslint.",
                "No lint errors are left.",
            ),
        ),
    ),
    (
        "state lock",
        INFRA,
        (
            (
                "terraform apply hangs with 'Error acquiring the state lock'",
                "Let me look at the DynamoDB table of locks.",
                "The lock was left by a cancelled pipeline of 3 March. I removed it "
                "with terraform force-unlock after checking that nobody was applying, "
                "and set the GitLab job to interruptible: false so that it does not "
                "happen again.",
            ),
        ),
    ),
    (
        "certificate",
        INFRA,
        (
            (
                "The certificate of grafana.example.org expires tomorrow!",
                "Let me check the cert-manager logs.",
                "cert-manager could not renew it, because the DNS challenge used a "
                "Route53 key that was rotated in January. The new key is in the secret "
                "route53-acme; the certificate is valid until 12 June.",
            ),
        ),
    ),
    (
        "postgres upgrade",
        INFRA,
        (
            (
                "Plan the upgrade of the production database to Postgres 17",
                "I'll check the current versions first.",
                "Plan: a logical replica on 17 with pglogical, switch on a Sunday at "
                "05:00, and keep the old primary for a week. pg_upgrade in place is "
                "out because the disk has only 9 percent left.",
            ),
        ),
    ),
)


def fill(memory: Memory) -> None:
    (memory.home / "memory").mkdir(parents=True, exist_ok=True)
    notes = memory.home / "memory" / "MEMORY.md"
    notes.write_text(NOTES, encoding="utf-8")
    for number, (name, project, turns) in enumerate(SESSIONS):
        at = NOW - timedelta(days=3 * (len(SESSIONS) - number))
        for turn, (request, step, answer) in enumerate(turns):
            said = (
                ("user", request),
                ("assistant", step),
                ("tool_call", '{"command": "make test"}'),
                ("tool_result", "ok"),
                ("assistant", answer),
            )
            for place, (role, text) in enumerate(said):
                memory.record(
                    name,
                    role,
                    text,
                    tool_name="Bash" if role.startswith("tool") else None,
                    sent_at=at + timedelta(minutes=10 * turn + place),
                    project=project,
                    title=name,
                )


@pytest.fixture(scope="module")
def memory(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Memory]:
    settings = ("embedder.in_background=false", "context.timeout_seconds=60")
    folder: Path = tmp_path_factory.mktemp("everyday")
    with a_memory(folder, settings=settings, clock=lambda: NOW) as opened:
        fill(opened)
        fill_with_errors(opened)
        opened.index()
        opened.embed()
        yield opened


def fill_with_errors(memory: Memory) -> None:
    """A session with more results of tools than are considered for a prompt."""
    error = "Error: String to replace not found in file."
    said = (
        ("user", "Rename CartView to BasketView everywhere"),
        *(
            # Results that say almost the same would count once.
            ("tool_result", error + "".join(f" {number}{each}" for each in "abcdefgh"))
            for number in range(20)
        ),
        (
            "assistant",
            "The edits of cart.py failed: the string to replace was not found, because "
            "that file is indented with tabs. I used sed there; CartView is BasketView "
            "in 11 files now.",
        ),
    )
    for place, (role, text) in enumerate(said):
        memory.record(
            "edits",
            role,
            text,
            tool_name="Edit" if role == "tool_result" else None,
            sent_at=NOW - timedelta(days=40) + timedelta(minutes=place),
            project=SHOP,
            title="edits",
        )


@pytest.mark.parametrize(
    ("project", "prompt", "expected"),
    [
        # Nothing helps with these.
        (SHOP, "run the tests", []),
        (SHOP, "commit this", []),
        (SHOP, "looks good, thanks", []),
        (TRIPS, "fix the lint errors", []),
        (INFRA, "what is 2+2?", []),
        (TRIPS, "rename the variable foo to bar in utils.ts", []),
        (SHOP, "write a docstring for this function", []),
        (INFRA, "continue", []),
        (TRIPS, "add a dark mode toggle to the settings page", []),
        # They name a time, but do not ask what was said then.
        (SHOP, "the deployment test has been failing since February, why?", []),
        (SHOP, "in February the login form still worked, fix it", []),
        (SHOP, "use the fonts that we added in February", ["invoices"]),
        # These are about another project.
        (TRIPS, "why is the build slow?", []),
        (TRIPS, "which database version do we run?", []),
        # And these were talked about before.
        (
            SHOP,
            "A customer got her refund twice again, please investigate",
            ["refunds"],
        ),
        (SHOP, "umlauts are missing in the PDF of an invoice", ["invoices"]),
        (SHOP, "the checkout tests have become slow again", ["slow tests"]),
        (SHOP, "add a carrier for parcels to Sweden", ["shipping"]),
        # What tools returned is no reminder, and takes no place of one.
        (
            SHOP,
            'my edit fails with "String to replace not found in file" again',
            ["edits"],
        ),
        (TRIPS, "dragging a waypoint on the map is jerky on Firefox", ["map"]),
        (TRIPS, "how many megabytes of map tiles may we cache offline?", ["offline"]),
        (INFRA, "terraform says the state lock is held, what now?", ["state lock"]),
        (INFRA, "cert-manager fails to renew a certificate", ["certificate"]),
        (INFRA, "when do we switch the database to Postgres 17?", ["postgres upgrade"]),
    ],
)
def test_a_prompt_is_given_what_helps_and_nothing_else(
    memory: Memory, project: str, prompt: str, expected: list[str]
) -> None:
    context = memory.context(prompt, project=project)
    given = [hit.session.title for hit in context.memories if hit.session]
    assert list(dict.fromkeys(given)) == expected, context.text


@pytest.mark.parametrize("embedder", ["minilm", "none"])
def test_a_step_is_shown_with_what_its_turn_came_to(
    tmp_path: Path, embedder: str
) -> None:
    step = (
        "The thumbnails of HEIC photos are rotated, since libheif leaves the Exif "
        "orientation to whoever decodes, and the gallery never asks for it. Let me "
        "look at the decoder of the gallery."
    )
    later = (
        "Now the decoder of HEIC photos: the Exif orientation of thumbnails is lost."
    )
    outcome = (
        "Done: decode_image() turns every picture upright, and forty new cases in the "
        "suite compare corners of the results."
    )
    settings = (f"embedder.name={embedder}", "embedder.in_background=false")
    with a_memory(tmp_path, settings=settings, clock=lambda: NOW) as memory:
        fill(memory)
        for place, (role, text) in enumerate(
            (
                ("user", "Something is wrong in the gallery, please mend it"),
                ("assistant", step),
                ("tool_call", '{"command": "cat decode.py"}'),
                ("assistant", later),
                ("tool_result", "ok"),
                ("assistant", outcome),
            )
        ):
            sent_at = NOW - timedelta(days=1) + timedelta(minutes=place)
            memory.record("gallery", role, text, sent_at=sent_at, project=TRIPS)
        memory.index()
        memory.embed()

        about_step = memory.context(
            "are the Exif orientation and thumbnails of HEIC photos right?",
            project=TRIPS,
        )
        about_outcome = memory.context(
            "which corners of HEIC pictures do the cases for decode_image() compare?",
            project=TRIPS,
        )

    assert f"Agent: {step}" in about_step.text
    assert about_step.text.count(f"Agent: {outcome}") == 1
    assert about_outcome.text.count(f"Agent: {outcome}") == 1


LOST = (
    ("user", "The ferry timetable of Hurtigruten is parsed wrongly, please look"),
    (
        "assistant",
        "Let me first check how parse_timetable() reads the columns of departures of "
        "the Hurtigruten ferry, which columns it takes for arrivals, and whether "
        "harbours without arrivals shift the rows of the winter months.",
    ),
    ("tool_call", '{"command": "cat timetable.py"}'),
    ("tool_result", "…"),
    (
        "assistant",
        "Now let me compare the Hurtigruten timetable with what parse_timetable() "
        "makes of the ferry departures and arrivals in each of the harbours.",
    ),
    ("tool_call", '{"command": "python timetable.py"}'),
)
UNRELATED = (
    "The page has a darker header now, with a menu that opens on small screens, and "
    "buttons that people can reach with their thumbs on large telephones."
)
PLAN = (
    "Here is what I would do about the Hurtigruten timetable: parse_timetable() reads "
    "the departures of the ferry by their column, so a harbour without arrivals shifts "
    "everything by one; it should go by the names in the first row. Let me ask you."
)


@pytest.mark.parametrize("embedder", ["minilm", "none"])
@pytest.mark.parametrize(
    ("more", "helps"),
    [
        # Somebody stopped it: what it was about to do helps nobody.
        ((), False),
        ((("user", "never mind"), ("assistant", "All right.")), False),
        # Neither does what it was about to do before this.
        ((("assistant", "Done."),), False),
        # What came of it is found by itself, if it has to do with the prompt.
        ((("assistant", UNRELATED),), False),
        # A step may say much besides what comes next.
        ((("assistant", PLAN), ("tool_call", "{}")), True),
    ],
)
def test_a_mere_step_is_not_shown(
    tmp_path: Path, embedder: str, more: tuple[tuple[str, str], ...], helps: bool
) -> None:
    settings = (f"embedder.name={embedder}", "embedder.in_background=false")
    with a_memory(tmp_path, settings=settings, clock=lambda: NOW) as memory:
        fill(memory)
        for place, (role, text) in enumerate((*LOST, *more)):
            sent_at = NOW - timedelta(days=1) + timedelta(minutes=place)
            memory.record("ferries", role, text, sent_at=sent_at, project=TRIPS)
        memory.index()
        memory.embed()

        context = memory.context(
            "which columns of departures and arrivals does parse_timetable() take for "
            "the Hurtigruten ferry?",
            project=TRIPS,
        )

    shown = {hit.text for hit in context.memories} | {
        hit.reply.text for hit in context.memories if hit.reply is not None
    }
    assert not shown & {LOST[1][1], LOST[4][1]}
    assert (PLAN in shown) is helps


@pytest.mark.parametrize(
    "steps",
    [
        LOST[1:3],
        [
            ("tool_call", "{}"),
            (
                "assistant",
                "Now replace the old timetable of winter in the page with the times of "
                "the corrected file, and update the links to Moskenes and Reine:",
            ),
        ],
    ],
)
def test_a_question_is_shown_without_what_was_about_to_be_done(
    tmp_path: Path, steps: Sequence[tuple[str, str]]
) -> None:
    question = (
        "The ferry from Bodø to Moskenes does not sail on Saturdays in winter, but our "
        "timetable page offers it; the operator sent a corrected file on Monday."
    )
    settings = ("embedder.name=none",)
    with a_memory(tmp_path, settings=settings, clock=lambda: NOW) as memory:
        fill(memory)
        for role, text in (("user", question), *steps):
            memory.record("ferries", role, text, sent_at=NOW, project=TRIPS)

        context = memory.context(
            "does the ferry from Bodø to Moskenes sail in winter?", project=TRIPS
        )

    assert f"User: {question}" in context.text
    assert "Agent:" not in context.text


def test_most_of_a_long_answer_is_shown_beside_its_question(tmp_path: Path) -> None:
    question = "Which ferries from Bodø to Moskenes sail on Saturdays in winter?"
    facts = [
        f"On Saturday {day} of winter, ferry F{day * 37} sails." for day in range(40)
    ]
    answer = " ".join(facts)
    settings = ("embedder.name=none",)
    with a_memory(tmp_path, settings=settings, clock=lambda: NOW) as memory:
        fill(memory)
        for role, text in (("user", question), ("assistant", answer)):
            memory.record("ferries", role, text, sent_at=NOW, project=TRIPS)

        context = memory.context(
            "does the ferry from Bodø to Moskenes sail in winter?", project=TRIPS
        )

    shown = context.text.partition("Agent: ")[2].partition("\n")[0]
    assert 700 < len(shown) <= 800
    assert shown[:-20] in answer


REPLACED = (
    (
        "user",
        "Where do failed webhooks of customers wait until they are sent again, Kafka "
        "or what? Please look it up in the code.",
    ),
    ("assistant", "Let me look."),
    ("tool_call", "{}"),
    (
        "assistant",
        "The webhook queue uses Postgres. Each delivery is a row of "
        "webhook_deliveries, locked with SKIP LOCKED, and is tried again after 1, 5 "
        "and 30 minutes.",
    ),
)
REPLACING = (
    (
        "user",
        "Let's move the webhook queue from Postgres to NATS JetStream, the table of "
        "deliveries has grown to 38 GB since Contoso is a customer.",
    ),
    ("tool_call", "{}"),
    ("assistant", "Moved: the stream WEBHOOKS has a consumer per region."),
)


@pytest.mark.parametrize(
    ("prompt", "order"),
    [
        # The question fits much better than what replaced its answer later.
        (
            "where do failed webhooks wait until they are sent to customers again?",
            [REPLACING[0][1], REPLACED[0][1]],
        ),
        (
            "is the webhook queue in Kafka or Postgres?",
            [REPLACING[0][1], REPLACED[0][1]],
        ),
        (
            "what was the webhook queue before, Kafka or Postgres?",
            [REPLACED[0][1], REPLACING[0][1]],
        ),
    ],
)
def test_what_was_decided_is_not_shown_without_what_replaced_it(
    tmp_path: Path, prompt: str, order: list[str]
) -> None:
    settings = ("embedder.in_background=false",)
    with a_memory(tmp_path, settings=settings, clock=lambda: NOW) as memory:
        fill(memory)
        for days, said in ((20, REPLACED), (11, REPLACING)):
            for place, (role, text) in enumerate(said):
                sent_at = NOW - timedelta(days=days) + timedelta(minutes=place)
                name = f"{days} days ago"
                memory.record(name, role, text, sent_at=sent_at, project=SHOP)
        memory.index()
        memory.embed()

        context = memory.context(prompt, project=SHOP)

    assert [hit.text for hit in context.memories] == order
    assert context.text.count(", newer: 2026-03-09]") == 1


def test_who_asks_what_was_done_is_given_the_sessions_of_the_project(
    memory: Memory,
) -> None:
    context = memory.context("What did we do in February?", project=SHOP)

    assert [line for line in context.text.splitlines() if line[:2] == "- "] == [
        '- [Conversation 2026-02-27 "slow tests"] 10 messages, session: slow tests',
        '- [Conversation 2026-02-24 "invoices"] 5 messages, session: invoices',
        '- [Conversation 2026-02-21 "refunds"] 10 messages, session: refunds',
        '- [Conversation 2026-02-08 "edits"] 22 messages, session: edits',
    ]
    assert context.memories == ()


def test_who_asks_what_was_done_elsewhere_is_given_those_sessions(
    memory: Memory,
) -> None:
    context = memory.context("What did we do in shop in February?", project=INFRA)
    silence = memory.context("What did we do in shop in January?", project=INFRA)

    assert [line for line in context.text.splitlines() if line[:2] == "- "] == [
        '- [Conversation 2026-02-27 "slow tests"] 10 messages, session: slow tests',
        '- [Conversation 2026-02-24 "invoices"] 5 messages, session: invoices',
        '- [Conversation 2026-02-21 "refunds"] 10 messages, session: refunds',
        '- [Conversation 2026-02-08 "edits"] 22 messages, session: edits',
    ]
    assert "## Relevant Memories" not in silence.text


def test_a_new_user_is_reminded_of_the_first_conversations(tmp_path: Path) -> None:
    settings = ("embedder.name=none",)
    with a_memory(tmp_path, settings=settings, clock=lambda: NOW) as memory:
        memory.record("a", "user", "The staging ledger listens on port 7431.")
        memory.record("a", "assistant", "Noted.")

        reminded = memory.context("which port does the staging ledger use?")
        not_reminded = memory.context("run the tests")

    assert "port 7431" in reminded.text
    assert not_reminded.text == ""
