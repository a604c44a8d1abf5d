"""Gather what a source says into batches, and leave out what must not be kept.

Everything that reaches the history passes here: private passages are dropped, tool
output loses its colours and is cut to its limit, sessions in excluded folders are
ignored, and so is what Backstory's own tools returned, which is a copy of memories.
What a program wrote into a person's message is kept, but not as the person's words.
"""

import math
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from datetime import datetime
from types import MappingProxyType
from typing import Any, TypeVar

from backstory.errors import BackstoryError
from backstory.ingest.excluded import ExcludedFolders
from backstory.ingest.open_passages import OpenPassages
from backstory.ingest.parsing.failures import describe_failure
from backstory.store.base.history import (
    Batch,
    HistoryStore,
    KeptMessage,
    SourceKey,
    SourceState,
    Written,
)
from backstory.text.cut import MAX_MARK_BYTES, cut_bytes, utf8_size
from backstory.text.escape import replace_surrogates
from backstory.text.memories_frame import DropInjected, keep_all
from backstory.text.own_calls import is_own_tool_call
from backstory.text.private import PRIVATE, drop_private, hide_private
from backstory.text.prompt_markup import is_continuation, split_prompt
from backstory.text.terminal import strip_terminal_codes
from backstory.text.titles import make_title
from backstory.values.history import (
    MAX_TITLE_CHARS,
    Item,
    MessageTitle,
    NewMessage,
    Problem,
    Role,
    SessionFacts,
)
from backstory.values.structs import Struct, field, replace

MAX_BATCH_MESSAGES = 2_000
MAX_BATCH_CHARS = 4 * 1024 * 1024
# In a garbage file, every line is a problem, so at most this many are kept.
MAX_PROBLEMS = 1_000

# What an intake remembers between two readings of a source, beside the parser's memo.
_EXCLUDED = "~excluded"
_OWN_CALLS = "~recalls"
_PROBLEMS = "~problems"
_MADE = "~made"
_PASSAGES = "~passages"

# What people and models said is kept verbatim.
_VERBATIM = frozenset({Role.USER, Role.ASSISTANT})
# What a program wrote into a message becomes a separate message, with this after the
# id.
_BESIDE = "/beside"

Said = TypeVar("Said", NewMessage, SessionFacts)


class Rules(ExcludedFolders):
    """What may be kept, and how much of it.

    ``drop_injected`` leaves out memories that were added to a prompt.
    """

    max_tool_output_bytes: int
    drop_injected: DropInjected = keep_all

    def keep(self, message: NewMessage) -> KeptMessage:
        """The message as it may be stored."""
        return self.keep_piece(message, None, 0)[0]

    def keep_piece(
        self,
        message: NewMessage,
        line: int | None,
        depth: int,
        cuts: Mapping[str, int] = MappingProxyType({}),
    ) -> tuple[KeptMessage, int]:
        """Like ``keep``, for a piece of a message; ``line`` is where it is.

        ``depth`` is how many private passages are open before the piece; also returns
        how many are open after it. ``cuts`` are the marks of strings that were cut when
        they were read, and the lengths of those strings.
        """
        message, depth = self._clean(message, depth)
        if message.role is not Role.TOOL_RESULT:
            return KeptMessage(message, None, line), depth
        text = message.text
        before = (full for mark, full in cuts.items() if text.endswith(mark))
        text, full_bytes = cut_bytes(
            text, self.max_tool_output_bytes, full_bytes=next(before, None)
        )
        if text is not message.text:
            message = replace(message, text=text)
        return KeptMessage(message, full_bytes, line), depth

    def keep_again(self, message: NewMessage, full_bytes: int | None) -> KeptMessage:
        """A message that another Backstory has kept before, as it may be stored here.

        ``full_bytes`` is set if it was cut then; it is only cut again to a smaller
        limit, and otherwise stays as it was.
        """
        if full_bytes is None:
            return self.keep(message)
        message, _ = self._clean(message, 0)
        limit = self.max_tool_output_bytes
        if utf8_size(message.text) > limit + MAX_MARK_BYTES:
            text, _ = cut_bytes(message.text, limit, full_bytes=full_bytes)
            message = replace(message, text=text)
        return KeptMessage(message, full_bytes)

    def _clean(self, message: NewMessage, depth: int) -> tuple[NewMessage, int]:
        """The message without what must not be kept; also the passages left open."""
        message = _without_surrogates(message)
        text = self.drop_injected(message.text)
        if message.role not in _VERBATIM:
            text = strip_terminal_codes(text)
        text, depth = hide_private(text, depth)
        if text is not message.text:
            message = replace(message, text=text)
        return message, depth

    def keep_facts(self, facts: SessionFacts) -> SessionFacts:
        """What may be stored of the facts: a title can quote what was said."""
        facts = _without_surrogates(facts)
        if facts.title is None:
            return facts
        return replace(facts, title=self.keep_title(facts.title))

    def keep_title(self, title: str) -> str | None:
        """What may be stored of a title, if it is one."""
        shown = drop_private(replace_surrogates(title))
        return make_title(shown, MAX_TITLE_CHARS) or None


def hide_messages(batch: Batch, session_id: str, ids: Collection[str]) -> None:
    """Hide the texts of messages, in the batch and where they are stored already."""
    batch.hidden += [(session_id, each) for each in ids]
    batch.messages = [
        replace(each, message=replace(each.message, text=PRIVATE))
        if each.message.session_id == session_id and each.message.native_id in ids
        else each
        for each in batch.messages
    ]


def _iter_parts(kept: KeptMessage) -> Iterator[KeptMessage]:
    """A message, preceded by what a program wrote into it as a separate message.

    What the program wrote is left out if it is nothing but tags.
    """
    message = kept.message
    if message.role not in (Role.USER, Role.SYSTEM):
        yield kept
        return
    if message.role is Role.USER and is_continuation(message.text):
        yield replace(kept, message=replace(message, role=Role.SUMMARY))
        return
    prompt = split_prompt(message.text)
    words, beside = prompt.words, strip_terminal_codes(prompt.beside)
    if message.role is Role.SYSTEM:
        words, beside = "", "\n".join(filter(None, (beside, words)))
    if beside:
        # The person's words keep the program's own id of the message, to be found by
        # it.
        native_id = message.native_id + (_BESIDE if words else "")
        said = replace(message, native_id=native_id, role=Role.SYSTEM, text=beside)
        yield replace(kept, message=said)
    if words:
        yield replace(kept, message=replace(message, text=words))


def _without_surrogates(said: Said) -> Said:
    """The same value with half characters replaced in all its texts, ids included."""
    # Any: mypy cannot know that these are the names of the text fields.
    changed: dict[str, Any] = {
        name: whole
        for name in said.__struct_fields__
        if isinstance(text := getattr(said, name), str)
        and not text.isascii()
        and (whole := replace_surrogates(text)) is not text
    }
    return replace(said, **changed) if changed else said


class Intake(Struct, kw_only=True):
    """Takes the items of one source and writes them, a batch at a time.

    ``after_line`` is where reading begins. ``reread`` is a set if the source is read
    from its start once more: then a known id means an old message read again, not an id
    given twice. ``made_now`` are the sessions that this run has created, by host and
    id: they are emptied again if their folder turns out to be excluded. ``until`` is
    when to stop reading, on the monotonic clock.
    """

    store: HistoryStore
    rules: Rules
    clock: Callable[[], datetime]
    host: str
    key: SourceKey
    replaces: bool
    is_companion: bool = False
    after_line: int | None = 0
    moved_from: SourceKey | None = None
    reread: set[int] | None = None
    made_now: set[tuple[str, str]] = field(default_factory=set)
    until: float = math.inf
    written: list[Written] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    met_messages: int = 0
    met_facts: int = 0
    last_line: int = 0
    _batch: Batch | None = None
    _chars: int = 0
    _excluded: set[str] = field(default_factory=set)
    _excluded_before: int = 0
    _checked: set[str] = field(default_factory=set)
    _private: tuple[tuple[object, ...], int] = ((), 0)
    _passages: OpenPassages = field(default_factory=OpenPassages)
    _own_calls: set[str] = field(default_factory=set)
    _problem_count: int = 0
    _made: set[str] = field(default_factory=set)
    _cuts: dict[str, int] = field(default_factory=dict)

    # Any: a memo holds plain JSON values of the parser's choice.
    def restore(self, memo: dict[str, Any]) -> None:
        """Take from a memo what ``save`` of an earlier reading put into it."""
        self._excluded = set(memo.pop(_EXCLUDED, ()))
        self._excluded_before = len(self._excluded)
        self._own_calls = set(memo.pop(_OWN_CALLS, ()))
        self._passages = OpenPassages(memo.pop(_PASSAGES, None))
        self._problem_count = memo.pop(_PROBLEMS, 0)
        # Made by a reading that was killed: this one continues its work.
        self._made = set(memo.pop(_MADE, ()))
        self.made_now.update((self.host, made) for made in self._made)

    def save(self, memo: dict[str, Any], *, is_last: bool) -> dict[str, Any]:
        """The memo with what this intake must know when reading resumes."""
        kept = dict(memo)
        if self._excluded:
            kept[_EXCLUDED] = sorted(self._excluded)
        if self._own_calls:
            kept[_OWN_CALLS] = sorted(self._own_calls)
        if passages := self._passages.to_json():
            kept[_PASSAGES] = passages
        if self._problem_count:
            kept[_PROBLEMS] = self._problem_count
        if self.rules.excluded_folders and not is_last:
            kept[_MADE] = sorted(self._made | self._about_to_make())
        return kept

    def _about_to_make(self) -> set[str]:
        """The sessions that the current batch will create."""
        ids = {each.message.session_id for each in self._open().messages}
        return {each for each in ids if not self.store.has_session(self.host, each)}

    @property
    def excluded_by(self) -> str:
        """The rules that kept something out, if anything was."""
        return self.rules.fingerprint if self._excluded else ""

    @property
    def newly_excluded(self) -> int:
        """How many sessions this reading left out for the first time."""
        return len(self._excluded) - self._excluded_before

    @property
    def is_full(self) -> bool:
        return (
            self._batch is not None and len(self._batch.messages) >= MAX_BATCH_MESSAGES
        ) or self._chars >= MAX_BATCH_CHARS

    @property
    def is_late(self) -> bool:
        return time.monotonic() >= self.until

    def add(self, item: Item, line: int | None = None) -> None:
        """Take one item; ``line`` is where it is."""
        self.last_line = max(self.last_line, line or 0)
        try:
            match item:
                case NewMessage():
                    self.met_messages += 1
                    self._add_message(item, line)
                case SessionFacts():
                    self.met_facts += 1
                    self._add_facts(item)
                case MessageTitle():
                    self._add_title(item)
                case Problem():
                    self._count_problem(item, line)
        except BackstoryError:
            raise
        except Exception as exc:
            # An item that cannot be kept, for whatever reason, affects no others.
            self._count_problem(Problem(describe_failure(exc)), line)

    def _count_problem(self, problem: Problem, line: int | None) -> None:
        self._cuts.update(problem.cuts)
        self._problem_count += 1
        if self._problem_count <= MAX_PROBLEMS:
            self._add_problem(problem, line if problem.line is None else problem.line)

    def commit(self, progress: SourceState | None) -> None:
        """Write what was gathered and, with ``progress``, how far the source is read.

        Without ``progress``, problems wait, because they are written together with it.
        """
        more = self._problem_count - MAX_PROBLEMS
        if progress is not None and progress.signature and more > 0:
            self._add_problem(Problem(f"{more:,} more problems"), None)
        batch = self._open()
        batch.progress = progress
        problems = batch.problems
        # What a power cut undoes is read again, because the place it was read to is
        # undone, too.
        written = self.store.write(
            batch,
            now=self.clock(),
            is_durable=False,
            is_patient=self.until == math.inf,
        )
        self.written.append(written)
        self._made.update(written.made_sessions)
        self.made_now.update((self.host, made) for made in written.made_sessions)
        self.problems.extend(written.problems)
        self._batch, self._chars = None, 0
        if progress is None:
            self._open().problems = [*problems, *written.problems]
        else:
            self.after_line, self.moved_from = None, None

    def _open(self) -> Batch:
        if self._batch is None:
            self._batch = Batch(
                self.host,
                read_from=self.key.path,
                replaces=self.replaces,
                is_companion=self.is_companion,
                reread=self.reread,
                after_line=self.after_line,
                moved_from=self.moved_from,
            )
        return self._batch

    def _add_problem(self, problem: Problem, line: int | None) -> None:
        placed = replace(problem, line=line, path=self.key.path, cuts=())
        self.problems.append(placed)
        self._open().problems.append(placed)

    def _add_message(self, message: NewMessage, line: int | None) -> None:
        if self._is_excluded(message.session_id) or self._is_from_own_tool(message):
            return
        # Hosts cut a message into pieces; a private passage may span them.
        piece_of = (message.session_id, message.role, message.sent)
        known, depth = self._private
        if known != piece_of or depth == 0:
            depth = self._end_passage(message)
        kept, after = self.rules.keep_piece(message, line, depth, self._cuts)
        parts = list(_iter_parts(kept))
        self._private = (piece_of, after)
        if message.role is Role.USER:
            ids = [each.message.native_id for each in parts]
            self._passages.follow(message.session_id, ids, before=depth, after=after)
        self._chars += len(kept.message.text)
        self._open().messages.extend(parts)

    def _end_passage(self, message: NewMessage) -> int:
        """How many private passages from the person's earlier messages end in this one.

        The messages in between are hidden.
        """
        if message.role is not Role.USER:
            return 0
        inside = self._passages.close(message.session_id, message.text)
        if inside is None:
            return 0
        hide_messages(self._open(), message.session_id, inside)
        return 1

    def _is_excluded(self, session_id: str) -> bool:
        """Whether the session ran in an excluded folder, by this source or another."""
        if self.rules.excluded_folders and session_id not in self._checked:
            self._checked.add(session_id)
            project = self.store.find_project(self.host, session_id)
            if project is not None and self.rules.exclude(project):
                self._excluded.add(session_id)
        return session_id in self._excluded

    def _is_from_own_tool(self, message: NewMessage) -> bool:
        if message.role is Role.TOOL_CALL:
            if message.call_id and is_own_tool_call(message.tool_name, message.text):
                self._own_calls.add(message.call_id)
            elif message.call_id:
                # Some hosts start numbering their calls anew in every turn.
                self._own_calls.discard(message.call_id)
            return False
        if message.role is not Role.TOOL_RESULT:
            return False
        return is_own_tool_call(message.tool_name) or message.call_id in self._own_calls

    def _add_facts(self, facts: SessionFacts) -> None:
        if facts.project and self.rules.exclude(facts.project):
            self._exclude(facts.native_id)
        if not self._is_excluded(facts.native_id):
            self._open().facts.append(self.rules.keep_facts(facts))
        elif (self.host, facts.native_id) in self.made_now:
            # Its folder is kept, so that it is known when other sources of the session
            # are read.
            about = SessionFacts(facts.native_id, project=facts.project)
            self._open().facts.append(self.rules.keep_facts(about))

    def _add_title(self, titled: MessageTitle) -> None:
        # It is not known here which session the title belongs to. In the file of a
        # session that is left out, it is most likely one that is left out as well.
        title = self.rules.keep_title(titled.title)
        if title is not None and not self._excluded:
            self._open().titles.append(replace(titled, title=title))

    def _exclude(self, session_id: str) -> None:
        """Leave the session out, even what was read before its folder was known."""
        self._excluded.add(session_id)
        batch = self._open()
        batch.titles.clear()
        batch.facts = [each for each in batch.facts if each.native_id != session_id]
        batch.messages = [
            each for each in batch.messages if each.message.session_id != session_id
        ]
        if (self.host, session_id) in self.made_now:
            batch.emptied.append(session_id)
