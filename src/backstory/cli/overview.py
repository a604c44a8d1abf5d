"""What ``backstory`` alone shows: what there is, and what to try next."""

from backstory.address import read_database
from backstory.cli.app import App, echo_lines, terminal_width
from backstory.errors import BackstoryError
from backstory.overview import read_overview
from backstory.render.people.overview import render_overview
from backstory.render.people.vectors import render_vectors
from backstory.system.machine import find_home
from backstory.values.structs import replace


def show_overview(app: App) -> None:
    """Print it; whatever is wrong with a database or the settings is only told."""
    home = find_home(app.machine, app.home)
    try:
        database = read_database(app.settings, app.machine)
    except BackstoryError:
        database = None  # told below, with the settings
    overview = read_overview(home, app.machine, database)
    vectors = f"{overview.embedded:,} of {overview.texts:,} texts"
    try:
        vectors = render_vectors(
            overview.embedded,
            overview.texts,
            embedder=app.settings.text("embedder.name"),
            in_background=app.settings.flag("embedder.in_background"),
        )
    except BackstoryError as exc:
        overview = replace(overview, problems=(*overview.problems, str(exc)))
    echo_lines(
        render_overview(
            overview, home=app.user_home, width=terminal_width(), vectors=vectors
        )
    )
