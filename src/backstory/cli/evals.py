"""eval: measure how well searches find what is wanted."""

from collections.abc import Sequence
from pathlib import Path

import click
import orjson

from backstory.cli import progress
from backstory.cli.app import SKIPPED_SOME, App, commands, echo_lines
from backstory.cli.parameters import PATH
from backstory.errors import BadQuery, UnknownName, nearest_hint
from backstory.evals.ask import Answered, SettableClock
from backstory.evals.metrics import score_answers
from backstory.evals.own import read_questions
from backstory.evals.picture import draw_scores
from backstory.evals.questions import Case, list_kinds, only_kinds, shuffle_labels
from backstory.evals.report import answer_object, render_scores, scores_object
from backstory.evals.run import ask_cases, ask_memory
from backstory.evals.sets import get_set, read_set
from backstory.memory import Memory
from backstory.render.format import render_count
from backstory.render.objects import to_json
from backstory.render.people.reports import render_problems
from backstory.settings import STORE_URL, load_settings, read_settings
from backstory.system.files import storing
from backstory.system.machine import find_home
from backstory.values.history import Problem
from backstory.values.structs import FrozenStruct

_OWN = "questions"


class EvalFlags(FrozenStruct):
    """The options that say what to ask, and what to do with the answers."""

    kinds: tuple[str, ...]
    shuffle: int | None
    keep: Path | None
    picture: Path | None
    details: Path | None
    as_json: bool

    def choose(self, cases: Sequence[Case]) -> list[Case]:
        """The cases to ask. Raises ``UnknownName`` for a kind that no question has."""
        known = list_kinds(cases)
        for kind in self.kinds:
            if kind not in known:
                raise UnknownName(
                    f"no question is of the kind '{kind}'",
                    hint=nearest_hint(kind, known),
                )
        if self.shuffle is not None:
            cases = shuffle_labels(cases, self.shuffle)
        return only_kinds(cases, self.kinds)


@commands.command("eval", short_help="Measure how well searches find what is wanted.")
@click.argument("words", nargs=-1, required=True, metavar="[SET] DATA")
@click.option("--kind", "kinds", multiple=True, help="Only this kind; can be repeated.")
@click.option(
    "--keep",
    type=PATH,
    metavar="DIR",
    help="Keep the memories that are made from a set here, and use them again.",
)
@click.option(
    "--shuffle",
    type=int,
    metavar="SEED",
    help="Give each question the answer of another one: the scores must collapse.",
)
@click.option("--picture", type=PATH, metavar="FILE", help="Draw the scores as SVG.")
@click.option(
    "--details",
    type=PATH,
    metavar="FILE",
    help="Write what was found for each question, as JSON lines.",
)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def evaluate(app: App, /, words: tuple[str, ...], **given: object) -> None:
    """Measure how well searches find what is wanted.

    DATA is a file of your own questions (JSON lines), which are asked of your own
    memory, or the files of a set, which are asked of memories made from them, with the
    default settings. SET is needed if DATA does not tell it: beam, labelled, locomo,
    longmemeval or memorybank. Exit code 3 means that some questions could not be asked.
    """
    if len(words) > 2:
        raise click.UsageError("Give at most the name of a set and a path.")
    # Any: click has checked the types of all options.
    flags = EvalFlags(**given)  # type: ignore[arg-type]
    data = Path(words[-1])
    if len(words) == 1 and not data.is_dir() and data.suffix != ".json":
        name, answers, problems = _OWN, *_ask_own(app, data, flags)
    else:
        name, answers = _ask_set(app, words[0] if len(words) > 1 else None, data, flags)
        problems = []
    _report(name, answers, problems, flags)
    _echo_problems(problems, app.user_home)
    if problems:
        raise SystemExit(SKIPPED_SOME)


def _ask_own(
    app: App, path: Path, flags: EvalFlags
) -> tuple[list[Answered], list[Problem]]:
    clock = SettableClock(app.clock)
    # No worker: measuring starts nothing that goes on afterwards, and reads nothing.
    home = find_home(app.machine, app.home)
    settings = load_settings(app.machine, (*app.flags, "search.read_changed=false"))
    with Memory(home, settings, app.machine, clock=clock) as memory:
        _check_ready(memory)
        questions, problems = read_questions(path, memory)
        if not questions:
            _echo_problems(problems, app.user_home)
            raise BadQuery(
                f"{path}: it has no question that can be asked",
                hint='write one per line: {"question": "…", "text": "…"}',
            )
        (case,) = flags.choose([Case(_OWN, (), tuple(questions))])
        with progress.bars() as bars:
            on_asked = bars.counting("questions")
            answers = ask_memory(memory, clock, case.questions, on_asked=on_asked)
    return answers, problems


def _check_ready(memory: Memory) -> None:
    """Say what would make the scores lower than those of the search itself."""
    status = memory.status()
    if not status.sessions:
        raise BadQuery(
            "no conversation has been read yet", hint="run 'backstory index --wait'"
        )
    missing = status.index.with_meaning - status.index.embedded
    if missing > 0 and status.index.embedder != "none":
        click.echo(
            f"Notice: {render_count(missing, 'vector')} not made yet; "
            "'backstory index --wait' makes them",
            err=True,
        )


def _echo_problems(problems: Sequence[Problem], home: Path) -> None:
    for line in render_problems(problems, home=home):
        click.echo(line, err=True)


def _ask_set(
    app: App, name: str | None, data: Path, flags: EvalFlags
) -> tuple[str, list[Answered]]:
    row = get_set(name, data)
    cases = flags.choose(read_set(row, data))
    # The same figures for everybody: of a person's settings, only --set counts.
    settings = read_settings(environ={}, flags=app.flags)
    if settings.text(STORE_URL):
        raise BadQuery(
            f"a set is asked of memories of its own, which cannot be in {STORE_URL}",
            hint="ask your own questions of a memory in a database: "
            "backstory eval QUESTIONS.jsonl",
        )
    with progress.bars() as bars:
        on_asked = bars.counting("questions")
        answers = ask_cases(cases, settings, keep=flags.keep, on_asked=on_asked)
    return row.name, answers


def _report(
    name: str,
    answers: Sequence[Answered],
    problems: Sequence[Problem],
    flags: EvalFlags,
) -> None:
    scores = score_answers(answers)
    # First what took long to find out; then what may not be writable.
    if flags.as_json:
        click.echo(to_json(scores_object(name, scores, problems)))
    else:
        echo_lines(render_scores(scores))
    if flags.details is not None:
        lines = [orjson.dumps(answer_object(answer)) + b"\n" for answer in answers]
        _write(flags.details, b"".join(lines))
    if flags.picture is not None:
        _write(flags.picture, draw_scores(f"backstory eval: {name}", scores).encode())


def _write(path: Path, content: bytes) -> None:
    with storing(path, is_named=True):
        path.write_bytes(content)
