"""Search a server beside this machine, and rank what both find as one.

A score is relative to the best match of its own search, so the scores of two searches
cannot be compared as they are. What can be compared is a hit's strength, that is, how
well it answers by itself, and what the scores were made from: how well the words and
the meaning of the best matches fit. So hits are sorted by strength, then by scaled
scores.
"""

import logging
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from backstory.errors import BackstoryError
from backstory.text.json_values import as_text
from backstory.values.history import Role, Session
from backstory.values.hits import Hit, HitSource, ScorePart, SearchResult, Strength
from backstory.values.moments import Moment, parse_iso, to_moment
from backstory.values.structs import replace

logger = logging.getLogger(__name__)

# Any: a server's answer is JSON, which is checked here.
Json = Any
Ask = Callable[[], Json]
# The raw numbers that can be compared between searches.
_WORDS, _MEANING = "bm25", "cosine"
_ORDER = {strength: number for number, strength in enumerate(Strength)}
# Time for the answer to arrive, on top of the server's own limit.
_SLACK_S = 0.5


class RemoteSearch:
    """A search of a server that runs beside one of this machine."""

    def __init__(self, ask: Ask, url: str, *, timeout_s: float) -> None:
        self._ask = ask
        self._url = url
        self._timeout_s = timeout_s
        self._found: list[Hit] = []
        self._notice = f"{_host_of(url)} gave no answer in time"
        # A daemon: the process must not wait for a server that takes too long.
        self._thread = threading.Thread(
            target=self._run, name="backstory-remote", daemon=True
        )
        self._thread.start()

    def _run(self) -> None:
        try:
            self._found, self._notice = parse_hits(self._ask(), self._url), ""
        except BackstoryError as exc:
            self._notice = str(exc)
        except Exception:
            logger.exception("the server's answer cannot be used")
            self._notice = f"{_host_of(self._url)} gave an answer that makes no sense"

    def finish(
        self,
        local: SearchResult,
        sources: Collection[HitSource],
        *,
        limit: int,
        is_known: Callable[[Session], bool],
    ) -> SearchResult:
        """The hits of both from some sources, best first.

        ``is_known`` says whether a session is on this machine as well: then, only what
        was found here is shown of it.
        """
        self._thread.join(self._timeout_s + _SLACK_S)
        if self._thread.is_alive() or self._notice:
            notice = f"only this machine was searched: {self._notice}"
            return replace(local, notices=(*local.notices, notice))
        theirs = [
            hit
            for hit in self._found
            if hit.source in sources
            and (hit.session is None or not is_known(hit.session))
        ]
        return replace(local, hits=tuple(merge(local.hits, theirs)[:limit]))


def merge(ours: Sequence[Hit], theirs: Sequence[Hit]) -> list[Hit]:
    """The hits of two searches, best first, on one scale."""
    both = (ours, theirs)
    best = {
        name: max((hit.part(name) for hits in both for hit in hits), default=0.0)
        for name in (_WORDS, _MEANING)
    }
    scaled = []
    for hits in both:
        scale = _find_scale(hits, best)
        scaled += [replace(hit, score=hit.score * scale) for hit in hits]
    return sorted(scaled, key=lambda hit: (_ORDER[hit.strength], -hit.score))


def _find_scale(hits: Sequence[Hit], best: Mapping[str, float]) -> float:
    """How good the best matches of one side are, compared with the best of both."""
    own = {name: max((hit.part(name) for hit in hits), default=0.0) for name in best}
    # A side without vectors does not lose by that; a side without the words does.
    shares = [
        own[name] / most
        for name, most in best.items()
        if most > 0 and (own[name] > 0 or name == _WORDS)
    ]
    return sum(shares) / len(shares) if shares else 1.0


# -- what a server answers ------------------------------------------------------------


def parse_hits(answer: Json, url: str) -> list[Hit]:
    """The hits in an answer; whatever makes no sense is left out."""
    results = answer.get("results") if isinstance(answer, dict) else None
    listed = results if isinstance(results, list) else []
    found = (
        _parse_hit(each, url, number)
        for number, each in enumerate(listed, start=1)
        if isinstance(each, dict)
    )
    return [hit for hit in found if hit is not None]


def _parse_hit(given: dict[str, Json], url: str, number: int) -> Hit | None:
    excerpt, score = as_text(given.get("excerpt")), given.get("score")
    try:
        source, strength = HitSource(given["source"]), Strength(given["strength"])
    except (KeyError, ValueError):
        return None
    if excerpt is None or not isinstance(score, int | float):
        return None
    session = _parse_session(given, number)
    parts = given.get("parts")
    role = given.get("role")
    return Hit(
        source,
        float(score),
        strength,
        text=excerpt,
        excerpt=excerpt,
        said=_parse_time(as_text(given.get("date"))),
        role=Role(role) if role in set(Role) else None,
        session=session,
        path=_page_of(session, url),
        heading=as_text(given.get("heading")) or "",
        project=as_text(given.get("project")),
        parts=tuple(
            ScorePart(name, float(value))
            for name, value in (parts if isinstance(parts, dict) else {}).items()
            if isinstance(value, int | float)
        ),
        server=_host_of(url),
    )


def _parse_session(given: dict[str, Json], number: int) -> Session | None:
    match given:
        case {
            "host": str(host),
            "session": {"id": str(native_id), "title": str(title)},
        }:
            # No session of ours has a negative number.
            return Session(
                -number, host, native_id, title, as_text(given.get("project")),
                None, None, None, None, 0, as_text(given.get("excerpt")) or "", None,
            )  # fmt: skip
    return None


def _parse_time(text: str | None) -> Moment | None:
    written = None if text is None else parse_iso(text)
    return None if written is None else to_moment(written)


def _page_of(session: Session | None, url: str) -> str:
    """Where the server shows a hit."""
    if session is None:
        return f"{url}/memory"
    names = (session.host, session.native_id)
    return "/".join([url, "session", *(quote(name, safe="") for name in names)])


def _host_of(url: str) -> str:
    return urlsplit(url).netloc
