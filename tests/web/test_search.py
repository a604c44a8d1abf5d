"""The search page: what it finds, how it shows it, and where it leads."""

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from backstory.render.part_meanings import RAW_PARTS, SCORE_PARTS
from backstory.search.notices import render_missing
from backstory.web.search import sort_notices
from backstory.web.suggestions import find_topic
from tests.builders import a_line, append, session_file
from tests.samples import a_memory
from tests.web.server import Page, serve

# One server answers all tests.
pytestmark = pytest.mark.xdist_group("web-search")
NOW = datetime(2026, 2, 25, 12, tzinfo=UTC)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    folder = tmp_path_factory.mktemp("web")
    settings = ("embedder.name=none",)
    with a_memory(folder, home=folder, settings=settings, clock=lambda: NOW) as memory:
        for day, session, project, words in (
            (20, "one", "/work/library", "Which port does the council export use?"),
            (21, "two", "/work/garden", "The council asked about the hedge."),
        ):
            for role, text in (("user", words), ("assistant", f"Answer: {day}00.")):
                memory.record(
                    session,
                    role,
                    text,
                    title=f"About {session}",
                    project=project,
                    sent_at=datetime(2026, 2, day, 9, 30, tzinfo=UTC),
                )
        memory.index()
        with serve(memory, folder) as served:
            yield served


def test_that_texts_wait_for_vectors_is_said_only_if_many_do() -> None:
    few, many = render_missing(1, 1_000), render_missing(300, 1_000)

    assert sort_notices(["time ran out", few]) == (["time ran out"], [])
    assert sort_notices([many]) == ([], [many])


def test_of_an_empty_store_it_is_said_that_nothing_was_read(
    tmp_path: Path, home: Path
) -> None:
    append(session_file(home), a_line("Where is the ladder?", uuid="u1"))
    settings = ("embedder.name=none",)
    with (
        a_memory(tmp_path, home=home, settings=settings) as memory,
        serve(memory, home) as empty,
    ):
        text = empty.see("/?q=ladder").text

    assert "no conversation has been read yet" in text
    assert "Claude Code 1 file" in text
    assert "Read them" in text
    assert "Nothing found" not in text


def titles(page: Page, path: str) -> list[str]:
    """The titles of what is listed, in order."""
    html = page.get(path).text
    pieces = html.split("data-item")[1:]
    return [piece.partition(">")[2].partition("<")[0].strip() for piece in pieces]


def test_without_a_query_the_latest_conversations_are_listed(page: Page) -> None:
    assert titles(page, "/") == [
        "what did we do on 2026-02-21",
        "what did we decide about About one",
        "About two",
        "About one",
    ]
    assert "About two" in page.see("/?q=what+did+we+do+on+2026-02-21").text


@pytest.mark.parametrize(
    ("title", "topic"),
    [
        ("Plan: Change default CLI report mode to json", "default CLI report mode"),
        (
            'Remove the button "Generate Prompts" in the module',
            "button Generate Prompts",
        ),
        ("Please fix these lint errors", "lint errors"),
        (
            "Add one, two_three, four.py, five, six and seven",
            "two_three four.py five six",
        ),
        ("hi", ""),
        ("Warmup", ""),
        ("…", ""),
        ("", ""),
    ],
)
def test_a_question_is_about_the_words_that_say_most(title: str, topic: str) -> None:
    assert find_topic(title) == topic


def test_a_hit_shows_its_words_and_leads_to_its_message(page: Page) -> None:
    seen = page.see("/?q=council+export")

    assert (
        "<mark>council</mark> <mark>export</mark>"
        in page.get("/?q=council+export").text
    )
    assert "User Which port does the council export use?" in seen.text
    assert "Agent Answer: 2000." in seen.text
    found = next(link for link in seen.links if link.startswith("/session/"))
    address, _, anchor = found.partition("#")
    assert anchor == "m" + address.rpartition("at=")[2]
    assert f'id="{anchor}"' in page.get(address).text


def test_filters_narrow_a_search_and_stay_in_the_form(page: Page) -> None:
    found = {
        asked: titles(page, f"/?q=council&{asked}")
        for asked in (
            "scope=sessions",
            "scope=memory",
            "project=garden",
            "since=2026-02-21",
            "until=2026-02-20",
            "host=python",
        )
    }

    both = ["About one", "About two"]
    assert {asked: sorted(set(each)) for asked, each in found.items()} == {
        "scope=sessions": both,
        "scope=memory": [],
        "project=garden": ["About two"],
        "since=2026-02-21": ["About two"],
        "until=2026-02-20": ["About one"],
        "host=python": both,
    }
    form = page.get("/?q=council&project=garden&since=2026-02-21").text
    assert 'name="project" value="garden"' in form
    assert 'name="since" value="2026-02-21"' in form


def test_hits_are_grouped_by_day_on_request(page: Page) -> None:
    text = page.see("/?q=council&group=day").text

    assert text.index("2026-02-21 ") < text.index("About two")
    assert text.index("About two") < text.index("2026-02-20 ") < text.index("About one")


def test_a_script_gets_the_results_alone_from_the_same_address(page: Page) -> None:
    whole = page.get("/?q=council").text
    part = page.get("/?q=council", **{"Backstory-Part": "results"}).text

    assert part.strip().startswith('<section id="results"')
    assert part.strip() in whole


def test_a_filter_that_names_nothing_is_explained_in_place(page: Page) -> None:
    answer = page.get("/?q=council&host=clyde")

    assert answer.status_code == 400
    assert "clyde" in answer.text
    assert 'id="search"' in answer.text


def test_nothing_found_is_said(page: Page) -> None:
    assert "Nothing found." in page.see("/?q=zebra").text
    assert "with these filters" in page.see("/?q=zebra&project=garden").text


def test_any_number_of_results_may_be_asked_for(page: Page) -> None:
    numbers = ("0", "-1", "x", "9" * 30, "1e3", "%D9%A3", "")

    statuses = [page.get(f"/?q=council&n={each}").status_code for each in numbers]

    assert statuses == [200] * len(numbers)


def test_every_number_of_a_score_is_explained(page: Page) -> None:
    hits = page.memory.search("council export").hits
    named = {part.name for hit in hits for part in hit.parts}

    assert named == {*SCORE_PARTS, *RAW_PARTS}
    assert SCORE_PARTS["words"] in page.see("/?q=council+export").text
