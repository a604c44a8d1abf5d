"""What the settings say, as arguments for the parts that a memory is made of."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from backstory.errors import ConfigError, UnknownName
from backstory.ingest.excluded import ExcludedFolders
from backstory.ingest.hosts import get_host
from backstory.providers.embedders import get_embedder_row, load_embedder
from backstory.providers.embedders.base import Embedder
from backstory.providers.keys import read_key
from backstory.search.own_project import ISOLATION
from backstory.search.weights import Weights
from backstory.settings import Settings
from backstory.system.machine import Machine, absolute, both_names
from backstory.values.runs import RunLimits
from backstory.values.structs import fields

if TYPE_CHECKING:
    from backstory.ingest.intake import Rules
    from backstory.providers.llms.base import Llm
    from backstory.search.prompt_context import ContextOptions
    from backstory.search.search import SearchOptions
    from backstory.summaries.schedule import LogOptions
    from backstory.text.memories_frame import DropInjected

EXCLUDED_HOSTS = "exclude.hosts"


def read_excluded_folders(settings: Settings, machine: Machine) -> ExcludedFolders:
    """The folders whose sessions must not be stored."""
    return ExcludedFolders(
        tuple(
            path
            for folder in settings.texts("exclude.folders")
            for path in both_names(absolute(folder, machine))
        )
    )


def read_rules(
    settings: Settings, excluded: ExcludedFolders, drop_injected: "DropInjected"
) -> "Rules":
    """What must not be stored, and how much of a tool's output is stored."""
    # Only needed for reading.
    from backstory.ingest.intake import Rules

    return Rules(
        excluded.excluded_folders,
        max_tool_output_bytes=settings.whole("index.max_tool_output_bytes"),
        drop_injected=drop_injected,
    )


def read_excluded_hosts(settings: Settings) -> frozenset[str]:
    """The agent programs not to read. Raises ``ConfigError`` for an unknown name."""
    try:
        names = settings.texts(EXCLUDED_HOSTS)
        return frozenset(get_host(host).name for host in names)
    except UnknownName as exc:
        raise ConfigError(f"{EXCLUDED_HOSTS}: {exc}", hint=exc.hint) from exc


def read_push_token(settings: Settings, machine: Machine) -> str:
    """The token for the server that conversations are sent to; empty if none is set.

    Raises ``ConfigError``.
    """
    setting = "push.token"
    return read_key(
        settings.text(setting),
        (),
        machine.environ,
        is_elsewhere=True,
        setting=setting,
    )


def embedder_loader(
    settings: Settings, machine: Machine
) -> Callable[[], Embedder | None]:
    """A function that loads the configured embedder."""
    return partial(
        load_embedder,
        settings.text("embedder.name"),
        model=settings.text("embedder.model"),
        url=settings.text("embedder.url"),
        key=settings.text("embedder.key"),
        environ=machine.environ,
        timeout_s=settings.number("embedder.timeout_seconds"),
    )


def try_embedder(settings: Settings, machine: Machine) -> None:
    """Embed a word with the configured embedder, if there is one.

    Raises ``BackstoryError`` if it does not work.
    """
    embedder = embedder_loader(settings, machine)()
    if embedder is not None:
        try:
            embedder.embed_query("hello")
        finally:
            embedder.close()


def has_lasting_embedder(settings: Settings) -> bool:
    """Whether the next run will use the same embedder."""
    return not any(
        chosen.setting.name.startswith("embedder.") and chosen.is_for_this_run
        for chosen in settings
    )


def llm_loader(settings: Settings, machine: Machine) -> "Callable[[], Llm | None]":
    """A function that loads the configured language model."""
    # Only the daily logs need it.
    from backstory.providers.llms import load_llm

    return partial(
        load_llm,
        settings.text("llm.name"),
        model=settings.text("llm.model"),
        url=settings.text("llm.url"),
        key=settings.text("llm.key"),
        environ=machine.environ,
        timeout_s=settings.number("llm.timeout_seconds"),
        context_tokens=settings.whole("llm.context_tokens"),
    )


def check_llm(settings: Settings, machine: Machine) -> str:
    """The configured language model, such as ``claude haiku``; empty if there is none.

    Nothing is asked that costs tokens. Raises ``BackstoryError`` if it is already clear
    that the model cannot work, for example because its program is not installed.
    """
    llm = llm_loader(settings, machine)()
    if llm is None:
        return ""
    try:
        llm.check()
        return llm.title
    finally:
        llm.close()


def log_options(settings: Settings) -> "LogOptions":
    # Only the daily logs need it.
    from backstory.summaries.schedule import LogOptions

    return LogOptions(
        is_enabled=settings.flag("logs.enabled"),
        in_background=settings.flag("logs.in_background"),
        curate_daily=settings.flag("logs.curate_daily"),
        daily_tokens=settings.whole("llm.daily_tokens"),
        quiet_s=settings.number("logs.quiet_minutes") * 60,
    )


def search_options(settings: Settings) -> "SearchOptions":
    # Many commands do not search.
    from backstory.search.search import SearchOptions

    number = settings.number
    has_server = bool(get_embedder_row(settings.text("embedder.name")).default_url)
    return SearchOptions(
        weights=Weights(
            **{each.name: number(f"ranking.{each.name}") for each in fields(Weights)}
        ),
        profile=settings.text("ranking.profile"),
        timeout_s=number("search.timeout_seconds"),
        query_timeout_s=(
            number("embedder.query_timeout_seconds") if has_server else None
        ),
        isolates_projects=settings.flag(ISOLATION),
    )


def context_options(settings: Settings) -> "ContextOptions":
    # Only prompts need it.
    from backstory.search.prompt_context import ContextOptions

    return ContextOptions(
        max_tokens=settings.whole("context.max_tokens"),
        max_memories=settings.whole("context.max_memories"),
        timeout_s=settings.number("context.timeout_seconds"),
    )


def run_limits(settings: Settings) -> RunLimits:
    return RunLimits(
        ttl_s=settings.number("run.ttl_minutes") * 60,
        max_bytes=settings.whole("run.max_bytes"),
        snippet_chars=settings.whole("run.snippet_chars"),
        answer_tokens=settings.whole("run.answer_tokens"),
    )
