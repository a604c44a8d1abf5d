"""Save what an index still knows of messages that the history no longer has.

An index has a message's time, its speaker and its words in the form in which they are
compared, without upper case; it has neither the native id nor the name of the session.
That is not the message, but better than nothing.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from backstory.index.origin import HISTORY, LAST_CHANGE
from backstory.store.base.history import HistoryStore, SessionFilter
from backstory.store.base.index import SearchIndex, Unit
from backstory.system.files import storing, write_new
from backstory.text.words import fold
from backstory.values.identity import content_id
from backstory.values.moments import from_microseconds
from backstory.values.reports import SavedTexts
from backstory.values.units import SessionRef, UnitKind, is_message

_ROLES = {
    UnitKind.USER: "user",
    UnitKind.ASSISTANT: "assistant",
    UnitKind.SUMMARY: "summary",
    UnitKind.OTHER: "tool_result",
    UnitKind.TASK: "user",
}

_NAME = "lost-messages-", ".backstory.jsonl"

# A unit of a message, and its folded text.
Text = tuple[Unit, str]


def save_lost_texts(
    index: SearchIndex, history: HistoryStore, folder: Path
) -> SavedTexts | None:
    """Write the texts that only the index has to a file that can be indexed.

    Returns None if there are none. The same index always gives the same file.
    """
    lost = _find_lost(index, history)
    if not lost:
        return None
    # Slow to import, and rarely needed.
    import orjson

    made_from = (index.get_state(name) or "" for name in (HISTORY, LAST_CHANGE))
    name = content_id(*made_from, str(len(lost)))[3:11]
    path = folder / name.join(_NAME)
    lines = b"".join(orjson.dumps(each) + b"\n" for each in _to_lines(lost))
    with storing(path):
        if not path.exists():
            write_new(path, lines)
    return SavedTexts(path, len(lost))


def list_saved_texts(folder: Path) -> list[Path]:
    """The files of such texts."""
    start, end = _NAME
    # Not a glob: every search looks for these files, and would wait for its pattern.
    with suppress(FileNotFoundError, NotADirectoryError):
        return sorted(
            each
            for each in folder.iterdir()
            if each.name.startswith(start) and each.name.endswith(end)
        )
    return []


def list_unread_texts(folder: Path, history: HistoryStore) -> list[Path]:
    """The files of such texts that the history has not read yet."""
    saved = list_saved_texts(folder)
    if not saved:
        return []
    read = {Path(source.path) for source in history.list_sources()}
    return [path for path in saved if not {path, path.resolve()} & read]


def _find_lost(index: SearchIndex, history: HistoryStore) -> list[Text]:
    texts = [each for each in index.iter_texts() if is_message(each[0].unit_id)]
    stored = history.get_messages([unit.unit_id for unit, _ in texts])
    missing = [
        (unit, text)
        for unit, text in texts
        if unit.unit_id not in stored or as_indexed(stored[unit.unit_id].text) != text
    ]
    if not missing:
        return []
    # They may have been read again, and have different numbers now.
    elsewhere = set(_iter_texts(history))
    return [(unit, text) for unit, text in missing if text not in elsewhere]


def _iter_texts(history: HistoryStore) -> Iterator[str]:
    for session in history.list_sessions(SessionFilter()):
        for message in history.iter_messages(session.session_id):
            yield as_indexed(message.text)


def as_indexed(text: str) -> str:
    """A text as the index keeps it."""
    # In the index, a NUL would end the text.
    return fold(text).replace("\0", "\1")


def _to_lines(lost: Iterable[Text]) -> Iterator[dict[str, object]]:
    for unit, text in lost:
        assert isinstance(unit.container, SessionRef)
        line: dict[str, object] = {
            "session": f"lost-{unit.container.session_id}",
            "id": unit.unit_id,
            "role": _ROLES.get(unit.kind, "assistant"),
            "text": text,
        }
        if unit.said_at is not None:
            line["sent_at"] = from_microseconds(unit.said_at).at.isoformat()
        yield line
