"""backstory eval, from the files it reads to what it prints and writes."""

import re
from pathlib import Path
from xml.etree import ElementTree

import orjson
import pytest

from backstory.evals.metrics import Scores, SearchScore
from backstory.evals.picture import draw_scores
from backstory.evals.sets import SETS
from tests.builders import PROJECT, a_line
from tests.shell import Done, Shell

# One process indexes what is asked about.
pytestmark = pytest.mark.xdist_group("evals")

# Things that have nothing to do with each other, so that one question has one answer.
# fmt: off
SUBJECTS = (
    "aubergine", "barometer", "carburettor", "dulcimer", "escalator", "flamingo",
    "gazebo", "harpsichord", "igloo", "jodhpurs", "kaleidoscope", "lighthouse",
    "marzipan", "narwhal", "observatory", "periscope", "quicksand", "rhubarb",
    "sextant", "tambourine", "umbrella", "viaduct", "walnut", "xylophone", "yoghurt",
    "zeppelin", "accordion", "bandolier",
)
# fmt: on
WITHOUT_VECTORS = ("--set", "embedder.name=none")


@pytest.fixture
def shell(tmp_path: Path, home: Path) -> Shell:
    return Shell(home, tmp_path / "kept")


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """The shell of somebody who has talked about many things, and has indexed."""
    folder = tmp_path_factory.mktemp("asked")
    _write_talk(folder / "home")
    shell = Shell(folder / "home", folder / "kept")
    assert shell.run(*WITHOUT_VECTORS, "index").returncode == 0
    return shell


def run_eval(shell: Shell, *words: str | Path) -> Done:
    return shell.run(*WITHOUT_VECTORS, "eval", *map(str, words))


def scores_of(shell: Shell, *words: str | Path) -> dict[str, object]:
    """What --json prints, without times, which differ from run to run."""
    done = run_eval(shell, *words, "--json")
    assert (done.returncode, done.stderr) == (0, "")
    scores: dict[str, object] = orjson.loads(done.stdout)
    return {name: each for name, each in scores.items() if not name.endswith("_ms")}


# -- a person's own questions ---


def test_own_questions_are_asked_of_the_own_memory(
    asked: Shell, tmp_path: Path
) -> None:
    file = _write_lines(
        tmp_path / "mine.jsonl",
        {"question": "where is the lighthouse", "text": "The lighthouse\nis in drawer"},
        {"question": "igloo", "session": "s08", "kind": "place"},
        {"question": "narwhal", "session": "s13", "message": "u13-b", "kind": "place"},
        {"question": "what does a submarine cost", "unanswerable": True},
        {
            "prompt": "Did we put the umbrella into drawer 20?",
            "project": PROJECT,
            "text": ["put the umbrella", "umbrella is in drawer 20"],
        },
        {"prompt": "thanks", "unanswerable": True},
    )

    done = run_eval(asked, file)

    assert (done.returncode, done.stderr) == (0, "")
    assert re.sub(r"takes \d+ ms|(?<= )\d+$", "…", done.stdout, flags=re.M) == (
        "Questions with an answer\n"
        "kind      n  hit@1  hit@3  hit@10    R@5   R@10  nDCG@10  sess@5   weak\n"
        "question  1  1.000  1.000   1.000  1.000  1.000    1.000       -  0.000\n"
        "place     2  1.000  1.000   1.000  1.000  1.000    1.000   1.000  0.000\n"
        "all       3  1.000  1.000   1.000  1.000  1.000    1.000   1.000  0.000\n"
        "\n"
        "Questions without an answer\n"
        "kind          n   weak\n"
        "unanswerable  1  1.000\n"
        "\n"
        "Prompts that a memory helps\n"
        "kind    n  nothing   text  message  session  precision  tokens\n"
        "prompt  1    0.000  1.000    1.000        -      1.000      …\n"
        "\n"
        "Prompts that none helps\n"
        "kind             n  nothing  tokens\n"
        "needless prompt  1    1.000       …\n"
        "\n"
        "6 questions. A search …. A prompt's context ….\n"
    )


def test_a_message_is_not_taken_for_another_with_the_number_as_its_id(
    shell: Shell, tmp_path: Path
) -> None:
    # The ids are numbers, in the opposite order of those that the history gives.
    said = ["the red anchor", "the blue anchor", "the green anchor"]
    talk = _write_lines(
        tmp_path / "talk.backstory.jsonl",
        *(
            {"role": "user", "text": text, "id": 3 - at, "session": "talk"}
            for at, text in enumerate(said)
        ),
    )
    shell.run(*WITHOUT_VECTORS, "index", "--path", str(talk))
    file = _write_lines(
        tmp_path / "mine.jsonl",
        {"question": "red anchor", "session": "talk", "message": "3"},
        {"question": "green anchor", "session": "talk", "message": "1"},
    )

    scores = scores_of(shell, file)

    assert scores["searches"] == [_score("question", 2, 1.0, session=1.0)]


def test_asking_changes_nothing_and_reads_no_source(
    asked: Shell, tmp_path: Path
) -> None:
    file = _write_lines(
        tmp_path / "mine.jsonl", {"question": "zither", "text": "zither"}
    )
    _write_talk(asked.home, "zither")
    before = asked.out("status", "--json")

    scores = scores_of(asked, file)

    assert asked.out("status", "--json") == before
    assert scores["searches"] == [_score("question", 1, 0.0, weak=1.0)]


def test_bad_lines_are_reported_and_the_others_asked(
    asked: Shell, tmp_path: Path
) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_bytes(
        b'\xef\xbb\xbf{"question": "igloo", "text": "igloo"}\n\n'
        + b"\n".join(line for line, _ in BAD_LINES)
    )

    done = run_eval(asked, file, "--json")

    assert done.returncode == 3
    scores = orjson.loads(done.stdout)
    assert scores["searches"] == [_score("question", 1, 1.0)]
    reported = [
        (each["line"], re.sub(r"JSON \(.*\)", "JSON (…)", each["reason"]))
        for each in scores["problems"]
    ]
    assert reported == [
        (number, reason) for number, (_, reason) in enumerate(BAD_LINES, 3)
    ]
    first, second, *_ = done.stderr.splitlines()
    assert first == f"{len(BAD_LINES)} problems:"
    assert second.startswith(f"  {file}:3: not valid JSON (")


# The parser's own words are left out.
_NOT_JSON = "not valid JSON (…)"
_NO_ANSWER = (
    "it does not say what answers it: give a text, a session or a message, or "
    '"unanswerable": true'
)
BAD_LINES = (
    (b"igloo", _NOT_JSON),
    (b'{"question": "igl', _NOT_JSON),
    (b'{"question": "\xff"}', _NOT_JSON),
    (b"[]", "not a JSON object"),
    (b"[" * 5_000, _NOT_JSON),
    (b'{"question": "a"}', _NO_ANSWER),
    (b'{"question": "a", "text": []}', _NO_ANSWER),
    (b'{"question": "a", "txt": "b"}', "unknown field 'txt'; did you mean 'text'?"),
    (b'{"text": "a"}', "it needs either a question or a prompt"),
    (
        b'{"question": "a", "prompt": "a", "text": "a"}',
        "it needs either a question or a prompt",
    ),
    (b'{"question": null, "text": "a"}', "'question' is null"),
    (b'{"question": " ", "text": "a"}', "'question' is ' ', not a text"),
    (b'{"question": 7, "text": "a"}', "'question' is 7, not a text"),
    (
        b'{"question": "%s", "text": "a"}' % (b"x" * 100_001),
        "'question' has more than 100,000 characters",
    ),
    (b'{"question": "a", "text": ["b", 1]}', "'text' is 1, not a text"),
    (
        b'{"question": "a", "session": "s01", "message": true}',
        "'message' is True, not a text",
    ),
    (
        b'{"question": "a", "message": 3}',
        "a message needs the one session that it is in",
    ),
    (
        b'{"question": "a", "text": "b", "unanswerable": true}',
        "it is 'unanswerable', but says what answers it",
    ),
    (
        b'{"question": "a", "unanswerable": 1}',
        "'unanswerable' is 1, not true or false",
    ),
    (
        b'{"question": "a", "text": "b", "asked_at": "soon"}',
        "'asked_at' is 'soon', not a time such as 2026-03-02T09:00:00Z",
    ),
    (b'{"question": "a", "session": "nobody"}', "no session has the id 'nobody'"),
    (
        b'{"question": "a", "session": "s01", "message": "nothing"}',
        "no message of session s01 is called 'nothing'",
    ),
    (
        b'{"question": "a", "text": "b", "project": "/nowhere"}',
        "no session ran in /nowhere or below it",
    ),
)


def test_what_cannot_be_asked_at_all_is_an_error(asked: Shell, tmp_path: Path) -> None:
    empty = _write_lines(tmp_path / "empty.jsonl")
    good = _write_lines(tmp_path / "good.jsonl", {"question": "igloo", "text": "igloo"})
    new = Shell(asked.home, tmp_path / "new")

    done = [
        run_eval(asked, empty),
        run_eval(asked, tmp_path / "missing.jsonl"),
        run_eval(asked, "/dev/zero"),
        run_eval(asked, good, "--kind", "questio"),
        run_eval(new, good),
        run_eval(asked, good, "--picture", tmp_path / "no" / "picture.svg"),
        run_eval(asked, "locomo", good, "more"),
    ]

    assert [(each.returncode, each.stderr.splitlines()[0]) for each in done[:-1]] == [
        (14, f"backstory: {empty}: it has no question that can be asked"),
        (30, f"backstory: {tmp_path / 'missing.jsonl'}: No such file or directory"),
        (30, "backstory: /dev/zero: it is not a file"),
        (12, "backstory: no question is of the kind 'questio'"),
        (14, "backstory: no conversation has been read yet"),
        (26, f"backstory: {tmp_path}/no/picture.svg: No such file or directory"),
    ]
    assert done[-1].returncode == 2
    assert [each.stdout for each in done[:5]] == [""] * 5
    # What was found out is not lost with the picture.
    assert done[5].stdout.startswith("Questions with an answer\n")


def test_a_question_is_asked_at_its_own_time(asked: Shell, tmp_path: Path) -> None:
    wanted = {"question": "what did I say yesterday about drawers", "session": "s04"}
    file = _write_lines(
        tmp_path / "mine.jsonl",
        {**wanted, "asked_at": "2026-02-06T09:00:00Z", "kind": "the day after"},
        {**wanted, "asked_at": "2026-02-21T09:00:00Z", "kind": "later"},
    )

    scores = scores_of(asked, file)

    assert scores["searches"][:2] == [  # type: ignore[index]
        _score("the day after", 1, 1.0, session=1.0),
        _score("later", 1, 0.0, session=0.0),
    ]


# -- sets ---


def test_a_labelled_set_is_measured_in_a_memory_of_its_own(
    shell: Shell, tmp_path: Path
) -> None:
    data = _write_labelled_set(tmp_path / "data")

    scores = scores_of(shell, data)

    assert scores == {
        "set": "labelled",
        "questions": len(SUBJECTS),
        "searches": [_score("words", len(SUBJECTS), 1.0, session=1.0)],
        "unanswered": [],
        "prompts": [],
        "needless": [],
        "problems": [],
    }
    assert not shell.kept.exists()


def test_shuffled_labels_make_the_score_collapse(shell: Shell, tmp_path: Path) -> None:
    data = _write_labelled_set(tmp_path / "data")

    scores = [
        scores_of(shell, data, "--keep", tmp_path / "made", "--shuffle", str(seed))
        for seed in range(2)
    ]

    # With true labels, all of these are 1.0.
    count = len(SUBJECTS)
    assert [each["searches"] for each in scores] == [
        [_score("words", count, 0.0, session=0.0)]
    ] * 2


def test_chats_are_recorded_and_asked_about_and_about_each_other(
    shell: Shell, tmp_path: Path
) -> None:
    sample = Path(__file__).parents[1] / "data" / "evals"
    keep = tmp_path / "made"

    first = scores_of(shell, "longmemeval", sample, "--keep", keep)
    again = scores_of(shell, "longmemeval", sample, "--keep", keep)
    some = scores_of(shell, sample, "--keep", keep, "--kind", "stray")

    assert first == again
    assert [each["kind"] for each in first["searches"]] == [  # type: ignore[attr-defined]
        "single-session-user",
        "multi-session",
        "all",
    ]
    assert [
        (each["kind"], each["questions"])
        for each in first["unanswered"]  # type: ignore[attr-defined]
    ] == [("stray", 2), ("knowledge-update", 1)]
    assert (some["questions"], some["searches"]) == (2, [])


def test_a_set_that_is_broken_is_one_error(shell: Shell, tmp_path: Path) -> None:
    file = tmp_path / "locomo10.json"
    file.write_bytes(b'[{"sample_id": "x", "conversation": {"session_1": 7}}]')

    done = run_eval(shell, file)

    assert (done.returncode, done.stdout, done.stderr) == (
        30,
        "",
        f"backstory: {file}: not in the format of locomo "
        "(KeyError: 'session_1_date_time')\n",
    )


def test_every_set_is_in_the_help_and_on_the_page() -> None:
    docs = Path(__file__).parents[2] / "docs"
    listed = (docs / "reference" / "cli.md").read_text(encoding="utf-8")
    page = (docs / "how-to" / "measure-searches.md").read_text(encoding="utf-8")

    eval_help = listed.partition("## backstory eval")[2].partition("\n## ")[0]
    assert [row.name for row in SETS if row.name not in eval_help] == []
    assert [row.name for row in SETS if f"| `{row.name}` |" not in page] == []


# -- files ---


def test_the_details_say_what_was_found_for_each_question(
    asked: Shell, tmp_path: Path
) -> None:
    file = _write_lines(
        tmp_path / "mine.jsonl",
        {"question": "igloo drawer 8", "text": "igloo is in drawer 8", "id": "cold"},
        {"prompt": "thanks", "unanswerable": True},
    )

    run_eval(asked, file, "--details", tmp_path / "details.jsonl")

    lines = (tmp_path / "details.jsonl").read_bytes().splitlines()
    first, second = map(orjson.loads, lines)
    hit = first["hits"][0]
    assert {**first, "hits": [{**hit, "score": 0}]} == {
        "id": "cold",
        "kind": "question",
        "part": None,
        "query": "igloo drawer 8",
        "rank": 1,
        "session_rank": None,
        "is_weak": False,
        "hits": [
            {
                "is_right": True,
                "message": None,
                "source": "message",
                "role": "assistant",
                "score": 0,
                "strength": "strong",
                "session": "s08",
                "position": 1,
                "said_at": "2026-02-09T09:01:00+00:00",
                "excerpt": "The igloo is in drawer 8.",
            }
        ],
    }
    assert second == {
        "id": "2",
        "kind": "needless prompt",
        "part": None,
        "query": "thanks",
        "tokens": 0,
        "has_text": False,
        "hits": [],
    }


def test_the_picture_has_a_bar_for_each_share(asked: Shell, tmp_path: Path) -> None:
    file = _write_lines(
        tmp_path / "mine.jsonl",
        {"question": "igloo", "text": "igloo", "kind": "<&> \u202e \u0007 \ufffe"},
        {"question": "submarine", "unanswerable": True},
        {"prompt": "find the umbrella", "text": "umbrella"},
        {"prompt": "thanks", "unanswerable": True},
    )

    run_eval(asked, file, "--picture", tmp_path / "scores.svg")

    picture = ElementTree.parse(tmp_path / "scores.svg").getroot()
    bars = [each.get("class") for each in picture.iter() if each.get("height") == "12"]
    legend = ["c0", "c1", "c2"]
    assert bars == [*legend, "c0", "c1", "c2", "c3", "c3", "c3", "c3"]
    assert "<&> \ufffd ␇ \ufffd" in [each.text for each in picture.iter()]


def test_a_full_share_and_none_fit_into_the_picture() -> None:
    scores = Scores(
        searches=(
            SearchScore("full", "", 1, *[1.0] * 12),
            SearchScore("none", "", 2, *[0.0] * 12),
        )
    )

    picture = ElementTree.fromstring(draw_scores("title", scores))

    widths = [
        float(each.get("width", 0))
        for each in picture.iter()
        if each.get("height") == "12"
    ]
    assert widths[3:] == [400.0] * 3 + [1.0] * 3


# -- pieces ---


def _score(
    kind: str,
    questions: int,
    share: float,
    *,
    session: float | None = None,
    weak: float = 0.0,
) -> dict[str, object]:
    """What --json says of questions of which this share is answered at once."""
    return {
        "kind": kind,
        "part": None,
        "questions": questions,
        "hit_at_1": share,
        "hit_at_3": share,
        "hit_at_10": share,
        "reciprocal_rank": share,
        "recall_at_5": share,
        "recall_at_10": share,
        "gain_at_10": share,
        "session_at_3": session,
        "session_at_5": session,
        "session_at_10": session,
        "reply_at_3": share,
        "weak": weak,
    }


def _write_labelled_set(data: Path) -> Path:
    """Talk about many things, and a question about each."""
    _write_talk(data / "home")
    labels = [
        {
            "id": f"q{number}",
            "kind": "words",
            "query": f"where is the {subject}",
            "messages": [f"u{number:02}-b"],
            "texts": [f"{subject} is in drawer"],
            "sessions": [f"s{number:02}"],
        }
        for number, subject in enumerate(SUBJECTS)
    ]
    _write_lines(data / "labels.jsonl", *labels)
    return data


def _write_talk(home: Path, *subjects: str) -> None:
    """A session of Claude Code about each subject, one a day."""
    folder = home / ".claude" / "projects" / "-home-dev-demo"
    folder.mkdir(parents=True, exist_ok=True)
    for number, subject in enumerate(subjects or SUBJECTS):
        session = f"s{number:02}" if not subjects else f"new-{subject}"
        day = f"2026-02-{number + 1:02}"
        lines = (
            a_line(
                f"Where did we put the {subject}?",
                uuid=f"u{number:02}-a",
                session=session,
                at=f"{day}T09:00:00.000Z",
            ),
            a_line(
                f"The {subject} is in drawer {number}.",
                uuid=f"u{number:02}-b",
                role="assistant",
                session=session,
                at=f"{day}T09:01:00.000Z",
            ),
        )
        (folder / f"{session}.jsonl").write_bytes(b"".join(lines))


def _write_lines(path: Path, *rows: object) -> Path:
    path.write_bytes(b"".join(orjson.dumps(row) + b"\n" for row in rows))
    return path
