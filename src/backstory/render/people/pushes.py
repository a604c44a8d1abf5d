"""What was sent to a server, for people."""

from collections.abc import Iterator

from backstory.render.format import render_count, render_size
from backstory.render.layout import to_cell
from backstory.values.pushes import PushReport


def render_push(report: PushReport) -> Iterator[str]:
    """What a push has done."""
    place = to_cell(report.url)
    if report.is_empty:
        yield f"Nothing new for {place}."
    else:
        sent = render_count(report.messages, "message")
        sessions = render_count(report.sessions, "session")
        yield (
            f"Sent {sent} of {sessions} to {place} ({render_size(report.sent_bytes)}); "
            f"new there: {report.new_messages:,}."
        )
    if report.forgotten:
        yield f"Forgotten there as well: {render_count(report.forgotten, 'session')}."
    if report.excluded:
        excluded = render_count(report.excluded, "session")
        yield f"Not sent, as your settings exclude them: {excluded}."
    for problem in report.problems:
        yield f"Left out: {to_cell(str(problem))}"
