"""A made-up history of any size, always the same, with the statistics of a real one.

Some sixty thousand words follow Zipf's law; a session keeps to its topic. Four in ten
messages are spoken, the rest are tool calls and results. One in twelve sessions is
Chinese, one in ten messages is code, and a message has about 360 characters. Sessions
of 10 to 200 messages are spread over the ten years before ``NOW``.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from backstory.values.history import NewMessage, Role, SessionFacts
from backstory.values.moments import Moment

NOW = datetime(2026, 2, 20, 12, tzinfo=UTC)
SPAN = timedelta(days=3650)
HOSTS = ("claude-code", "codex", "opencode")

_FUNCTION_WORDS = """
the to and a of in is it that for you we on this with be as not have are i can if or so
but at was do from by will an there what all when no my me one would they just which up
your get out about has then how more like our them some now only use need does did been
should make its than into other also any here were new because could after same where
want their first these see using each before still over work two those way well why let
him her his who most very between too even without while both every own such much back
"""
_COMMON_WORDS = """
file error test code run line function data server value name list user build message
change branch version error config database index search query memory session token
model agent deploy cache request response failed path string number object class method
time thing good right idea problem question answer team meeting week project plan review
release bug fix issue commit merge update install package module import script command
output input result table column row key type field schema migration backup disk network
address port password account email invoice budget customer contract report design draft
garden kitchen recipe flight hotel train ticket birthday doctor appointment school music
guitar camera bicycle weather holiday coffee dinner book novel chapter language lesson
"""
_BEGINNINGS = """
re de con pre trans inter sub per ex pro dis en over under out micro counter semi infra
ultra hyper para meta poly auto
"""
_ROOTS = """
port form struct spect mit duct vert scrib dict ject tract pend press rupt sect serv
sign sist solv spir tain tend text tort vers vid voc volv act aud cap ced cert cid clam
clud cogn cord corp cred cur don fer fid fin flect flu frag fus grad graph greg hab
junct lab lect leg loc log luc man merg min mob mon mov nav nom norm nov numer oper ord
pac pan part pat ped pel pet phon plic pon pos pot prim prob punct quer quis rad reg rog
sal san sat
"""
_ENDINGS = """
a or ium ant ex ory ade ule ine ora ix ist ium ula yx oid ern ow ish ock ump elle ette
ard
"""
_CODE = ("=", "(", ")", "return", "if", "for", "in", "None:", "+", "[0]", "==", "def")
_PATHS = ("src/", "tests/", "lib/", "app/", "docs/")
_TOOLS = ("Bash", "Read", "Edit", "Grep")

_FUNCTION_COUNT = len(_FUNCTION_WORDS.split())
_TOPICS = 400
_TOPIC_WORDS = 60
_IDENTIFIERS = 6_000
_CJK_WORDS = 8_000


@dataclass(frozen=True)
class MadeSession:
    host: str
    facts: SessionFacts
    messages: list[NewMessage]


class SearchCorpus:
    """Makes sessions; ``words`` go from the most frequent to the rarest."""

    def __init__(self) -> None:
        chance = random.Random(20260220)
        self.words = _make_words(chance)
        self.identifiers = _make_identifiers(chance, self.words)
        self.cjk_words = _make_cjk_words(chance)
        self._prose = _with_ends(self.words, (".", ","))
        self._cjk = _with_ends(self.cjk_words, ("。", "，"))
        self._code = np.array(
            [*self.identifiers, *_CODE, *(f"{word}\n   " for word in _CODE)], object
        )
        numbers = np.random.default_rng(20260220)
        # The words of a topic are neither the most frequent nor the rarest.
        self._topics = numbers.integers(
            _FUNCTION_COUNT, 20_000, (_TOPICS, _TOPIC_WORDS)
        )
        self._word_odds = _zipf(len(self.words))
        self._cjk_odds = _zipf(len(self.cjk_words))
        self._identifier_odds = _zipf(len(self.identifiers))

    def topic(self, number: int) -> list[str]:
        """The words that sessions on a topic use more often than others."""
        return [self.words[place] for place in self._topics[number % _TOPICS]]

    def iter_sessions(self, messages: int) -> Iterator[MadeSession]:
        """Sessions in order of time, with ``messages`` messages in total."""
        made = number = 0
        while made < messages:
            started = NOW - SPAN * (1 - made / messages)
            session = self._make(number, started, messages - made)
            yield session
            made += len(session.messages)
            number += 1

    def sample_texts(self, count: int) -> list[str]:
        """Some of the spoken texts, to make real vectors from."""
        texts: list[str] = []
        for session in self.iter_sessions(1_000_000):
            texts += [
                message.text
                for message in session.messages
                if message.role in (Role.USER, Role.ASSISTANT)
                and message.text.isascii()
            ]
            if len(texts) >= count:
                break
        return texts[:count]

    def _make(self, number: int, started: datetime, at_most: int) -> MadeSession:
        numbers = np.random.default_rng((20260220, number))
        count = min(at_most, int(numbers.integers(10, 201)))
        is_cjk, is_chat = numbers.random() < 0.08, numbers.random() < 0.1
        roles = _chat_roles(count) if is_chat else _work_roles(numbers, count)
        sizes = _sizes(numbers, roles, is_chat=is_chat)
        topic = self._topics[int(numbers.integers(_TOPICS))]
        if is_cjk:
            texts = self._cjk_texts(numbers, sizes)
        else:
            texts = self._texts(numbers, sizes, topic)
            self._put_code(numbers, roles, sizes, texts)
        name = f"session-{number:06}"
        messages = []
        sent = started
        for place, (role, text) in enumerate(zip(roles, texts, strict=True)):
            is_tool = role in (Role.TOOL_CALL, Role.TOOL_RESULT)
            messages.append(
                NewMessage(
                    name,
                    f"m{place}",
                    role,
                    f'{{"command":"{text}"}}' if role is Role.TOOL_CALL else text,
                    _TOOLS[number % len(_TOOLS)] if is_tool else None,
                    None,
                    Moment(sent, 60),
                )
            )
            sent += timedelta(seconds=20 + place % 40)
        title = " ".join(texts[0].split()[:6])[:60]
        project = f"/home/dev/project-{number % 40}"
        facts = SessionFacts(name, title=title, project=project)
        return MadeSession(HOSTS[number % len(HOSTS)], facts, messages)

    def _texts(
        self,
        numbers: np.random.Generator,
        sizes: NDArray[np.int64],
        topic: NDArray[np.int64],
    ) -> list[str]:
        total = int(sizes.sum())
        places = np.searchsorted(self._word_odds, numbers.random(total))
        # One word in eight belongs to the topic.
        of_topic = numbers.random(total) < 0.12
        places[of_topic] = topic[numbers.integers(_TOPIC_WORDS, size=of_topic.sum())]
        return _join(numbers, self._prose, places, sizes, " ")

    def _cjk_texts(
        self, numbers: np.random.Generator, sizes: NDArray[np.int64]
    ) -> list[str]:
        total = int(sizes.sum())
        places = np.searchsorted(self._cjk_odds, numbers.random(total))
        return _join(numbers, self._cjk, places, sizes, "")

    def _put_code(
        self,
        numbers: np.random.Generator,
        roles: Sequence[Role],
        sizes: NDArray[np.int64],
        texts: list[str],
    ) -> None:
        """Replace some of the texts with code, mostly those of tools."""
        is_code = numbers.random(len(texts)) < [
            0.03 if role in (Role.USER, Role.ASSISTANT) else 0.15 for role in roles
        ]
        for place in np.flatnonzero(is_code):
            size = int(sizes[place])
            tokens = np.searchsorted(self._identifier_odds, numbers.random(size))
            signs = numbers.random(size) < 0.5
            tokens[signs] = len(self.identifiers) + numbers.integers(
                2 * len(_CODE), size=signs.sum()
            )
            texts[place] = " ".join(self._code[tokens])


def _chat_roles(count: int) -> list[Role]:
    return [Role.ASSISTANT if place % 2 else Role.USER for place in range(count)]


def _work_roles(numbers: np.random.Generator, count: int) -> list[Role]:
    """A question, then answers and tools in turn."""
    roles: list[Role] = []
    while len(roles) < count:
        roles.append(Role.USER)
        for _ in range(int(numbers.integers(1, 5))):
            roles += [Role.TOOL_CALL, Role.TOOL_RESULT]
        roles.append(Role.ASSISTANT)
        if numbers.random() < 0.3:
            roles.append(Role.ASSISTANT)
    return roles[:count]


def _sizes(
    numbers: np.random.Generator, roles: Sequence[Role], *, is_chat: bool
) -> NDArray[np.int64]:
    """How many words each message has."""
    usual = {
        Role.USER: 10 if is_chat else 22,
        Role.ASSISTANT: 14 if is_chat else 50,
        Role.TOOL_CALL: 8,
        Role.TOOL_RESULT: 62,
    }
    spread = numbers.lognormal(0.0, 0.7, len(roles))
    sizes = np.array([usual[role] for role in roles]) * spread
    return np.clip(sizes, 2, 2_000).astype(np.int64)


def _join(
    numbers: np.random.Generator,
    words: NDArray[np.object_],
    places: NDArray[np.int64],
    sizes: NDArray[np.int64],
    between: str,
) -> list[str]:
    """Texts of ``sizes`` words; one word in ten ends a sentence or a part of one."""
    plain = len(words) // 3
    ends = numbers.random(len(places))
    places = places + plain * (ends < 0.1) + plain * (ends < 0.05)
    chosen = words[places].tolist()
    borders = np.concatenate(([0], np.cumsum(sizes))).tolist()
    return [between.join(chosen[start:end]) for start, end in pairwise(borders)]


def _zipf(count: int) -> NDArray[np.float64]:
    """The cumulative frequency of words, from the most frequent on."""
    shares = 1 / np.arange(1, count + 1)
    summed = np.cumsum(shares / shares.sum())
    summed[-1] = 1.0
    return summed


def _with_ends(words: Sequence[str], signs: Sequence[str]) -> NDArray[np.object_]:
    more = [word + sign for sign in signs for word in words]
    return np.array([*words, *more], object)


def _make_words(chance: random.Random) -> tuple[str, ...]:
    common = _COMMON_WORDS.split()
    beginnings, endings = ["", *_BEGINNINGS.split()], ["", *_ENDINGS.split()]
    made = [
        beginning + root + ending
        for beginning in beginnings
        for root in _ROOTS.split()
        for ending in endings
        if beginning or ending
    ]
    chance.shuffle(common)
    chance.shuffle(made)
    return tuple(dict.fromkeys([*_FUNCTION_WORDS.split(), *common, *made]))


def _make_identifiers(chance: random.Random, words: Sequence[str]) -> tuple[str, ...]:
    content = words[_FUNCTION_COUNT : _FUNCTION_COUNT + 3_000]
    made: dict[str, None] = {}
    while len(made) < _IDENTIFIERS:
        parts = chance.choices(content, k=chance.randint(2, 3))
        match chance.randrange(4):
            case 0 | 1:
                made["_".join(parts)] = None
            case 2:
                made[parts[0] + "".join(part.title() for part in parts[1:])] = None
            case _:
                made[chance.choice(_PATHS) + "/".join(parts) + ".py"] = None
    return tuple(made)


def _make_cjk_words(chance: random.Random) -> tuple[str, ...]:
    signs = [chr(code) for code in range(0x4E00, 0x4E00 + 2_500)]
    chance.shuffle(signs)
    # Some characters occur in many words, as in the language itself.
    weights = [1 / (place + 20) for place in range(len(signs))]
    made: dict[str, None] = {}
    while len(made) < _CJK_WORDS:
        size = chance.choices((1, 2, 3), (1, 7, 2))[0]
        made["".join(chance.choices(signs, weights, k=size))] = None
    return tuple(made)
