"""Times as hosts write them."""

import time
from collections.abc import Iterator
from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from backstory.values.moments import Moment, from_microseconds, parse_moment
from tests.grid import cases

AT = datetime(2026, 2, 20, 14, 32, 10, 500_000, tzinfo=UTC)
ON_THE_SECOND = AT.replace(microsecond=0)


@pytest.fixture
def _berlin(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    yield
    monkeypatch.undo()
    time.tzset()


@cases(
    ("value", "expected"),
    [
        pytest.param("2026-02-20T14:32:10.500Z", Moment(AT, 0), id="UTC"),
        pytest.param(
            "2026-02-20T14:32:10.500999999Z",
            Moment(AT.replace(microsecond=500_999), 0),
            id="nanoseconds",
        ),
        pytest.param("2026-02-20T16:32:10.5+02:00", Moment(AT, 120), id="east of UTC"),
        pytest.param("2026-02-20T09:02:10.5-0530", Moment(AT, -330), id="west of UTC"),
        pytest.param(" 2026-02-20 14:32:10Z\n", Moment(ON_THE_SECOND, 0), id="spaces"),
        pytest.param("2026-02-20T14:32:10.5", Moment(AT), id="no zone"),
        pytest.param(
            "2026-02-20", Moment(datetime(2026, 2, 20, tzinfo=UTC)), id="a day"
        ),
        pytest.param(
            "20260220", Moment(datetime(2026, 2, 20, tzinfo=UTC)), id="a compact day"
        ),
        pytest.param(1771597930, Moment(ON_THE_SECOND), id="seconds"),
        pytest.param(1771597930.5, Moment(AT), id="seconds with a fraction"),
        pytest.param(1771597930500, Moment(AT), id="milliseconds"),
        pytest.param(1771597930500000, Moment(AT), id="microseconds"),
        pytest.param("1771597930", Moment(ON_THE_SECOND), id="seconds as text"),
        pytest.param("1771597930500", Moment(AT), id="milliseconds as text"),
        pytest.param(
            "1710123112345",
            Moment(datetime(2024, 3, 11, 2, 11, 52, 345_000, tzinfo=UTC)),
            id="milliseconds that look like a compact date",
        ),
        pytest.param("yesterday", None, id="words"),
        pytest.param("", None, id="nothing"),
        pytest.param("20260220143210", None, id="fourteen digits"),
        pytest.param(True, None, id="a truth value"),
        pytest.param(None, None, id="null"),
        pytest.param({"at": 1}, None, id="an object"),
        pytest.param(float("nan"), None, id="not a number"),
        pytest.param(float("inf"), None, id="infinity"),
        pytest.param(10**400, None, id="a number without measure"),
    ],
)
def test_a_time_is_read_as_utc_with_its_own_offset(
    value: object, expected: Moment | None
) -> None:
    assert parse_moment(value) == expected


@pytest.mark.usefixtures("_berlin")
@pytest.mark.parametrize(
    ("text", "hour"),
    [
        pytest.param("2026-02-20T14:00:00", 13, id="winter"),
        pytest.param("2026-07-20T14:00:00", 12, id="summer"),
    ],
)
def test_a_time_without_a_zone_is_local_with_the_summer_time_of_its_own_date(
    text: str, hour: int
) -> None:
    found = parse_moment(text)

    written = datetime.fromisoformat(text)
    assert found == Moment(written.replace(hour=hour, tzinfo=UTC))


def test_the_caller_may_say_how_times_without_a_zone_are_read() -> None:
    found = parse_moment(
        "2026-02-20T14:32:10.5",
        lambda naive: naive.replace(hour=naive.hour - 1, tzinfo=UTC),
    )

    assert found == Moment(AT.replace(hour=13))


@pytest.mark.parametrize(
    ("moment", "expected"),
    [
        pytest.param(Moment(AT), "2026-02-20T14:32:10.500000+00:00", id="none"),
        pytest.param(Moment(AT, 0), "2026-02-20T14:32:10.500000+00:00", id="zero"),
        pytest.param(Moment(AT, -330), "2026-02-20T09:02:10.500000-05:30", id="west"),
    ],
)
def test_a_moment_shows_itself_in_the_zone_it_came_with(
    moment: Moment, expected: str
) -> None:
    assert moment.in_own_zone().isoformat() == expected


# From when times count as known, within the years that every zone has as a whole.
WRITTEN = st.datetimes(
    datetime(1980, 1, 2), datetime(9998, 1, 1), timezones=st.timezones()
)


@given(WRITTEN)
def test_any_time_with_a_zone_keeps_its_instant_and_can_be_shown_again(
    written: datetime,
) -> None:
    moment = parse_moment(written.isoformat())

    shown = (moment or Moment(AT)).in_own_zone()

    assert abs(shown - written).total_seconds() < 1


@pytest.mark.parametrize(
    "zero", [0, 0.0, "0001-01-01T00:00:00Z", "1970-01-01T00:00:00Z"]
)
def test_a_programs_zero_is_a_time_that_is_not_known(zero: object) -> None:
    assert parse_moment(zero) is None


def test_an_offset_with_seconds_just_short_of_a_day_can_be_shown() -> None:
    moment = parse_moment("2026-02-20T14:32:10-23:59:30")

    shown = (moment or Moment(AT)).in_own_zone().isoformat()

    assert shown == "2026-02-20T14:32:40-23:59"


@given(st.datetimes(timezones=st.just(UTC)))
def test_microseconds_lose_nothing(at: datetime) -> None:
    moment = Moment(at, 90)

    assert from_microseconds(moment.to_microseconds(), 90) == moment


ANYTHING = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text()
    | st.text("0123456789-:TZ+. W", max_size=30)
    | st.lists(st.integers())
)


@given(ANYTHING)
def test_nothing_makes_reading_a_time_raise(value: object) -> None:
    found = parse_moment(value)

    assert found is None or found.in_own_zone().tzinfo is not None
