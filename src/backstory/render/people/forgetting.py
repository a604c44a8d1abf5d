"""What is forgotten, for the person who wants it gone."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from backstory.render.format import render_count, render_local, render_path, render_time
from backstory.render.layout import GUTTER, cut_to_width, render_columns
from backstory.text.cut import one_line
from backstory.text.escape import neutralize
from backstory.values.forgetting import (
    Erasure,
    ForgetReport,
    Forgetting,
    ForgottenFact,
    ForgottenSession,
)

# Of more sessions or entries than this, only the first are listed.
_MAX_LISTED = 20
_MAX_FACT_CHARS = 500
# From this share of all messages on, there is a warning.
_MOST = 0.5


def render_preview(
    report: ForgetReport,
    *,
    names: Mapping[int, str],
    home: Path,
    width: int | None,
    is_dry_run: bool,
) -> Iterator[str]:
    """What would be forgotten; ``names`` are the short ids of the sessions."""
    verb = "would delete" if is_dry_run else "deletes"
    if report.sessions:
        yield f"This {verb} {_describe(report)}:"
        rows = [_to_row(each, names) for each in report.sessions[:_MAX_LISTED]]
        for line in list(render_columns([""] * 5, rows, width=None))[1:]:
            yield _fit(f"  {line}", width)
        yield from _more(len(report.sessions))
        yield from _warn_of_share(report)
    else:
        yield f"This {verb} {render_count(len(report.facts), 'fact')} of MEMORY.md:"
        yield from _list_facts(report.facts, width)
    if report.log_entries:
        yield (
            "And what the daily logs say about it:"
            if report.with_notes
            else "The daily logs say something about it; --with-notes deletes that too:"
        )
        for entry in report.log_entries[:_MAX_LISTED]:
            yield _fit(f"  {entry.day}  {neutralize(entry.heading)}", width)
        yield from _more(len(report.log_entries))
    if report.sessions and report.facts:
        yield (
            "And the facts of MEMORY.md that were noted from it:"
            if report.with_notes
            else "MEMORY.md has facts noted from it; --with-notes deletes them too:"
        )
        yield from _list_facts(report.facts, width)
    for path in report.copies:
        shown = render_path(str(path), home)
        yield f"{shown} may contain it as well; delete it if you do not need it."


def _warn_of_share(report: ForgetReport) -> Iterator[str]:
    """A warning if it is most of what there is."""
    kept = report.kept_messages
    if len(report.sessions) == 1 or report.messages < _MOST * kept:
        return
    share = "everything"
    if report.messages < kept:
        share = f"{100 * report.messages // kept}% of everything"
    yield f"WARNING: this is {share} that is kept ({kept:,} messages)."


def _list_facts(facts: Sequence[ForgottenFact], width: int | None) -> Iterator[str]:
    for fact in facts[:_MAX_LISTED]:
        shown = one_line(neutralize(fact.text), _MAX_FACT_CHARS)
        yield _fit(f"  {GUTTER}{shown}", width)
        if fact.copies:
            files = render_count(fact.copies, "older or edited version")
            yield f"    (also in {files} of the file)"
    yield from _more(len(facts))


def _to_row(each: ForgottenSession, names: Mapping[int, str]) -> tuple[str, ...]:
    session = each.session
    count = render_count(each.messages, "message")
    if not each.is_whole:
        count = f"{each.messages:,} of {render_count(session.message_count, 'message')}"
    return (
        render_time(session.last_active),
        names.get(session.session_id, session.native_id),
        session.host,
        count,
        one_line(session.title, 200),
    )


def _fit(line: str, width: int | None) -> str:
    return line if width is None else cut_to_width(line, width)


def _more(count: int) -> Iterator[str]:
    if count > _MAX_LISTED:
        yield f"  … and {count - _MAX_LISTED:,} more"


def _describe(report: ForgetReport) -> str:
    messages = render_count(report.messages, "message")
    return f"{messages} of {render_count(len(report.sessions), 'session')}"


def render_receipt(report: ForgetReport) -> Iterator[str]:
    """What was forgotten."""
    if report.forgetting is None:
        return
    number = report.forgetting.forgetting_id
    if not report.sessions:
        yield f"Forgotten: {render_count(len(report.facts), 'fact')}."
        yield (
            "No language model notes it again unless you add it yourself, or allow it "
            f"with 'backstory forget --undo {number}'."
        )
        yield from render_erasure(report.erasure)
        return
    yield f"Forgotten: {_describe(report)}."
    if report.with_notes and report.log_entries:
        entries = len(report.log_entries)
        words = "1 entry" if entries == 1 else f"{entries:,} entries"
        yield f"{words} of the daily logs went with it."
    if report.with_notes and report.facts:
        yield f"{render_count(len(report.facts), 'fact')} of MEMORY.md went with it."
    yield (
        "It is left out when its files are read again; "
        f"'backstory forget --undo {number}' allows it."
    )
    yield from render_erasure(report.erasure)


def render_erasure(erasure: Erasure) -> Iterator[str]:
    """What the files of the database still have of what was deleted, if anything."""
    match erasure:
        case Erasure.BLOCKED:
            yield (
                "Another process is still reading the database: what was deleted is "
                "erased from its files after that process ends."
            )
        case Erasure.LEFT:
            yield (
                "The rows are deleted, but the files of the database still have their "
                "bytes until the server overwrites them. The owner of the tables can "
                "erase them now with VACUUM FULL."
            )


def render_undone(undone: Forgetting) -> Iterator[str]:
    """What follows from letting it be read again."""
    if undone.sessions or undone.messages:
        yield "'backstory index' reads it again, where its files still exist."
    if undone.facts:
        yield "A language model may note it again."


def render_forgetting(done: Forgetting) -> str:
    """What was forgotten without being asked for, in a line."""
    messages = render_count(done.messages, "message")
    return f"Forgotten: {messages} ({done.reason}); see 'backstory forget --list'."


def render_forgettings(found: Sequence[Forgetting]) -> Iterator[str]:
    """Everything that was forgotten, one line each."""
    rows = [
        (
            str(each.forgetting_id),
            render_local(each.forgotten_at),
            str(each.sessions),
            str(each.messages),
            str(each.facts),
            each.reason,
            ", ".join(each.hosts),
        )
        for each in found
    ]
    heads = ("NUMBER", "FORGOTTEN", "SESSIONS", "MESSAGES", "FACTS", "WHY", "HOSTS")
    yield from render_columns(heads, rows, right={0, 2, 3, 4}, width=None)
