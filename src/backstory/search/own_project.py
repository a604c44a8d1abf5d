"""The project of the agent that asks: it comes first, or is all that is shown.

An agent's project is the folder that its session ran in. People search everything they
have; agents are first told what was said where they work, and with
``search.isolate_projects`` nothing else, except for the person's long-term memory.
"""

from collections.abc import Iterable
from pathlib import Path

from backstory.search.projects import is_same_project
from backstory.system.files import is_inside
from backstory.text.arguments import to_path
from backstory.values.hits import Hit, HitSource
from backstory.values.structs import FrozenStruct

# The weight of hits from other projects: a hit from the agent's own project comes first
# unless its score is less than this share of the other's.
_OTHER_PROJECT_SHARE = 0.85
ISOLATION = "search.isolate_projects"
KEPT_APART = (
    f"only this project was searched, because projects are kept apart ({ISOLATION})"
)


class OwnProject(FrozenStruct):
    """The folder that an agent works in; None if it is unknown.

    ``is_isolated``: the agent is shown nothing of what was said elsewhere.
    """

    folder: Path | None = None
    is_isolated: bool = False

    def shows(self, project: str | None) -> bool:
        """Whether the agent may see what was said in a project; None if unknown."""
        if not self.is_isolated:
            return True
        return (
            self.folder is not None
            and project is not None
            and is_inside(Path(project), self.folder)
        )

    def shows_hit(self, hit: Hit) -> bool:
        """Whether the agent may see a hit; the long-term memory is for all projects."""
        is_own_memory = hit.source is HitSource.MEMORY and hit.session is None
        return is_own_memory or self.shows(hit.project)

    def sort(self, hits: Iterable[Hit]) -> tuple[Hit, ...]:
        """The hits, those of the agent's project before others that fit as well.

        A hit that contains the query as typed stays before one that only resembles it.
        """
        folder = self.folder
        if folder is None:
            return tuple(hits)
        hits = tuple(hits)
        # Most hits belong to a few projects.
        others = {
            project
            for project in {hit.project for hit in hits}
            if project is not None and not is_same_project(project, folder)
        }

        def to_key(hit: Hit) -> tuple[bool, float]:
            share = _OTHER_PROJECT_SHARE if hit.project in others else 1.0
            return (not hit.part("exact"), -share * hit.score)

        return tuple(sorted(hits, key=to_key))


ANYONE = OwnProject()


def absolute_folder(folder: str | Path) -> Path:
    """The folder that an agent works in. Raises ``BadQuery`` if it is not a path."""
    return Path(to_path(folder, "folder")).absolute()
