"""The parts that find things again: for people, for agents, and for prompts."""

from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING

from backstory.assembly.reading import ReadingParts
from backstory.errors import ConfigError
from backstory.options import context_options, read_push_token, search_options
from backstory.search.own_project import ISOLATION
from backstory.text.arguments import to_max_tokens, to_path, to_text
from backstory.values.lazy import lazy_property
from backstory.values.structs import replace

if TYPE_CHECKING:
    from backstory.providers.team_server import TeamServerClient
    from backstory.search.prompt_context import PromptContext
    from backstory.search.request import Filters
    from backstory.search.search import Search
    from backstory.values.hits import HitSource, SearchResult

_SET_URL = "name the server: backstory push --to https://memory.example.org"


class SearchingParts(ReadingParts):
    """The parts that find things in a home, and on a server."""

    @lazy_property
    def search(self) -> "Search":
        # Many commands search for nothing.
        from backstory.search.search import Search

        return Search(
            self.history,
            self.index_files,
            self.maintainer,
            self.find_guidance,
            search_options(self.settings),
            find_notes=self.stores.notes.find_notes,
            clock=self.clock,
            check_host=self.check_host,
            read_changed=self.read_changed,
        )

    def open_remote(self, url: str | None) -> "TeamServerClient":
        """The server at an address, or else at the one in the settings."""
        # It is slow to import, and few homes have one.
        from backstory.providers.team_server import TeamServerClient

        given = None if url is None else to_text(url, "to")
        chosen = given or self.settings.text("push.url")
        if not chosen:
            raise ConfigError("push.url is not set", hint=_SET_URL)
        token = read_push_token(self.settings, self.machine)
        named_by = "--to" if given else "push.url"
        return TeamServerClient(chosen, token, setting=named_by)

    def search_together(
        self,
        query: str,
        scope: str,
        sources: "frozenset[HitSource]",
        filters: "Filters",
        *,
        limit: int,
    ) -> "SearchResult":
        """What this machine and the server in the settings find, ranked together."""
        # Few homes have a server.
        from backstory.search.remote import RemoteSearch

        timeout_s = self.settings.number("search.remote_seconds")
        try:
            remote = self.open_remote(None)
        except ConfigError as exc:
            result = self.search.search(query, sources, filters, limit=limit)
            notice = f"only this machine was searched: {exc}"
            return replace(result, notices=(*result.notices, notice))
        since = filters.date_from
        if since is None and filters.days > 0:
            since = self.today() - timedelta(days=filters.days - 1)
        given = {
            "q": query,
            "scope": scope,
            "host": filters.host,
            "project": None if filters.project is None else str(filters.project),
            "since": since and str(since),
            "until": filters.date_to and str(filters.date_to),
            "limit": str(limit),
        }
        asked = {name: value for name, value in given.items() if value}

        def ask() -> object:
            try:
                return remote.search(asked, timeout_s=timeout_s)
            finally:
                remote.close()

        beside = RemoteSearch(
            ask,
            remote.url,
            timeout_s=timeout_s,
        )
        result = self.search.search(query, sources, filters, limit=limit)
        return beside.finish(
            result,
            sources,
            limit=limit,
            is_known=lambda each: self.history.has_session(each.host, each.native_id),
        )

    @lazy_property
    def prompt_context(self) -> "PromptContext":
        # Searches do without it.
        from backstory.notes.log_markers import is_marker_of
        from backstory.search.prompt_context import PromptContext

        return PromptContext(
            self.search,
            self.history,
            self.notebook,
            context_options(self.settings),
            is_log_of=is_marker_of,
            get_frame=lambda: self.frame,
            folder=self.machine.folder,
            count_tokens=self.count_tokens,
        )

    def write_opening(
        self, project: str | Path | None, is_compacted: bool, max_tokens: int | None
    ) -> str:
        # Only a session's beginning needs it.
        from backstory.notes.log_markers import is_marker_of
        from backstory.search.opening import SessionOpening

        budget = self.settings.whole("context.max_tokens")
        if max_tokens is not None:
            budget = to_max_tokens(max_tokens)
        folder = self.machine.folder
        if project is not None:
            folder = Path(folder or "/", to_path(project, "project"))
        return SessionOpening(
            self.history,
            self.notebook,
            is_log_of=is_marker_of,
            isolates_projects=self.settings.flag(ISOLATION),
            frame=self.frame,
            clock=self.clock,
            count_tokens=self.count_tokens,
        ).write(folder, is_compacted=is_compacted, max_tokens=budget)
