"""Remind an agent by words, when no server is running: fast, read-only, few imports.

The rules are those of ``memory.context`` without vectors (``search.by_words``). What
they do not cover raises ``NeedsMemory``: a prompt that names a day, or a home with
settings of its own for prompts. Then the memory itself is asked, which takes longer.
"""

import os
import time
from collections.abc import Callable, Mapping

from backstory.hooks.limits import MAX_TOKENS
from backstory.hooks.projects import is_same_project
from backstory.notes.beginning import read_beginning
from backstory.search.by_words import (
    choose_by_words,
    is_worth_searching,
    judge_turn,
    leave_out_known,
    memory_key,
    show_replies_once,
)
from backstory.store.sqlite.reminders import Reminder, SqliteReminders
from backstory.text.date_hints import may_name_days
from backstory.text.query import parse_query
from backstory.values.query import Query

# The defaults of the settings ``context.*``.
_MAX_MEMORIES = 3
_MAX_TOKENS = min(2_000, MAX_TOKENS)


class NeedsMemory(Exception):
    """This prompt needs the whole search."""


def remind_by_words(
    home: str, prompt: str, *, host: str, native_id: str, cwd: str, given: list[str]
) -> tuple[str, list[str]]:
    """What to add to a prompt, and the keys of the memories in it."""
    query = _parse(prompt)
    if not is_worth_searching(query):
        return "", []
    reader = SqliteReminders(
        home,
        host=host,
        native_id=native_id,
        # Where it is unknown, it may be.
        is_ours=lambda each: each is None or not cwd or is_same_project(each, cwd),
    )
    try:
        found_by_words = (
            reader.loaded[each] for each in choose_by_words(query, reader)
        )
        chosen: list[Reminder] = []
        replies: dict[int, tuple[int, str, str]] = {}
        for each in found_by_words:
            is_shown, reply = _read_turn(each, reader)
            if is_shown:
                chosen.append(each)
            if is_shown and reply is not None:
                replies[each.unit_id] = reply
        shown = show_replies_once(
            [each.unit_id for each in chosen],
            {unit_id: reply[0] for unit_id, reply in replies.items()},
            {each.unit_id for each in chosen if each.role == "user"},
        )
        by_number = {each.unit_id: each for each in chosen}
        found = [
            by_number[number]
            for number in shown
            if memory_key(by_number[number].text) not in given
        ]
        if reader.session_id is not None and any(each.is_log for each in found):
            # A log may be about the session that asks.
            raise NeedsMemory
        beside = {each: replies[each] for each, reply in shown.items() if reply}
        return _write(home, query, reader, found, beside) if found else ("", [])
    finally:
        reader.close()


def _read_turn(
    each: Reminder, reader: SqliteReminders
) -> tuple[bool, tuple[int, str, str] | None]:
    """Whether to show a message, and what to show beside it."""
    is_question = each.role == "user"
    if not is_question and not (each.role == "assistant" and each.is_agentic):
        return True, None
    reply = reader.find_reply(each)
    is_shown, has_outcome = judge_turn(
        each.text,
        None if reply is None else reply[2],
        is_question=is_question,
        ends_in_step=reader.is_step(each.unit_id if reply is None else reply[0]),
    )
    return is_shown, reply if has_outcome else None


def _parse(prompt: str) -> Query:
    today = None
    if may_name_days(prompt):
        # Slow to import, and most prompts do not need today's date.
        from datetime import date

        today = date.today()
    query = parse_query(prompt, today=today)
    if query.days:
        raise NeedsMemory
    return query


# -- writing --------------------------------------------------------------------------


def _write(
    home: str,
    query: Query,
    reader: SqliteReminders,
    found: list[Reminder],
    replies: Mapping[int, tuple[int, str, str]],
) -> tuple[str, list[str]]:
    # Only needed if there is something to say.
    from backstory.search.sections import (
        iter_memory_pieces,
        write_frame,
        write_section,
    )

    # As above.
    from backstory.text.memories_frame import RELEVANT_HEADING, MemoriesFrame
    from backstory.text.redaction import mask_secrets

    try:
        memory = read_beginning(os.path.join(home, "memory"), "MEMORY.md")
    except OSError:
        memory = ""
    known = [*iter_memory_pieces(memory), *reader.list_said()]
    texts = (mask_secrets(each.text).strip() for each in found)
    new = [found[place] for place in leave_out_known(texts, known)][:_MAX_MEMORIES]
    lines = [_to_line(each, query, replies.get(each.unit_id)) for each in new]
    if not lines:
        return "", []
    seal = MemoriesFrame(reader.identity).seal

    def write(count_tokens: Callable[[str], int]) -> str:
        return write_frame(
            lambda room, cost: write_section(RELEVANT_HEADING, lines, room, cost),
            max_tokens=_MAX_TOKENS,
            count_tokens=count_tokens,
            seal=seal,
        )[0]

    # No text has more tokens than ASCII has characters.
    text = write(len) if all(map(str.isascii, lines)) else ""
    if not all(line in text for line in lines):
        # Slow to import, and most reminders are short.
        from backstory.text.tokens import most_tokens

        text = write(most_tokens)
    shown = zip(new, lines, strict=True)
    return text, [memory_key(each.text) for each, line in shown if line in text]


def _to_line(each: Reminder, query: Query, reply: tuple[int, str, str] | None) -> str:
    # As above: only if there is something to say.
    from backstory.search.memory_lines import (
        LONG_TERM,
        name_conversation,
        name_log,
        write_memory,
    )

    # As above.
    from backstory.text.titles import name_session
    from backstory.values.speakers import SPEAKERS

    if each.is_memory:
        origin = LONG_TERM
    elif each.is_log:
        origin = name_log(_day(each.at, time.gmtime))
    else:
        title = name_session(each.title, each.opening)
        origin = name_conversation(_day(each.at, time.localtime), title)
    return write_memory(
        origin,
        SPEAKERS.get(each.role, ""),
        each.text,
        query,
        reply=None if reply is None else (SPEAKERS[reply[1]], reply[2]),
    )


def _day(at: int | None, zone: Callable[[float], time.struct_time]) -> str:
    if at is None:
        return ""
    try:
        return time.strftime("%Y-%m-%d", zone(at // 1_000_000))
    except (OverflowError, ValueError, OSError):
        return ""
