"""A day is a day where the caller is; an instant is an instant however it is written."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from tests.protocol.bench import Bench

from agora.errors import InvalidInput
from agora.protocol.times import instant, seconds, written

NOW = datetime(2026, 1, 15, 12, 0, tzinfo=UTC)

needs_zones = pytest.mark.skipif(sys.platform == "win32", reason="a process cannot change its time zone there")


@pytest.fixture
def zone() -> Iterator[Callable[[str], None]]:
    """Moves this process to another time zone, and home again at the end."""
    before = os.environ.get("TZ")

    def move(name: str) -> None:
        os.environ["TZ"] = name
        if sys.platform != "win32":
            time.tzset()

    yield move
    if before is None:
        os.environ.pop("TZ", None)
    else:
        os.environ["TZ"] = before
    if sys.platform != "win32":
        time.tzset()


def at(text: str, **given: Any) -> str | None:
    return written(instant("since", text, NOW, **given))


@needs_zones
@pytest.mark.parametrize("spelling", ["2026-03-01T14:30:00Z", "2026-03-01T16:30:00+02:00", "2026-03-01 14:30Z"])
def test_an_offset_says_which_instant_is_meant(zone: Callable[[str], None], spelling: str) -> None:
    for name in ("UTC", "Asia/Tokyo", "America/Los_Angeles"):
        zone(name)
        assert at(spelling) == "2026-03-01T14:30:00Z"


@needs_zones
def test_a_time_without_an_offset_is_local(zone: Callable[[str], None]) -> None:
    zone("Asia/Tokyo")
    assert at("2026-03-01T14:30:00") == "2026-03-01T05:30:00Z"
    zone("America/Los_Angeles")
    assert at("2026-03-01T14:30:00") == "2026-03-01T22:30:00Z"
    assert at("2026-07-01T14:30:00") == "2026-07-01T21:30:00Z"


@needs_zones
def test_a_day_begins_and_ends_at_local_midnight(zone: Callable[[str], None]) -> None:
    zone("Asia/Tokyo")
    assert at("2026-03-01") == at("20260301") == "2026-02-28T15:00:00Z"
    assert at("2026-03-01", edge="end") == at("20260301", edge="end") == "2026-03-01T15:00:00Z"
    # It is 21:00 on the 15th there.
    assert (at("today"), at("Yesterday ")) == ("2026-01-14T15:00:00Z", "2026-01-13T15:00:00Z")
    assert at("yesterday", edge="end") == at("today")
    zone("Pacific/Kiritimati")
    # It is 02:00 on the 16th there.
    assert at("today") == "2026-01-15T10:00:00Z"


@needs_zones
@pytest.mark.parametrize(
    ("name", "day", "hours"),
    [
        ("America/Los_Angeles", "2026-03-08", 23),
        ("America/Los_Angeles", "2026-11-01", 25),
        ("Europe/Rome", "2026-03-29", 23),
        ("Africa/Cairo", "2026-04-24", 23),
        ("Asia/Tokyo", "2026-03-08", 24),
    ],
)
def test_days_on_which_the_clocks_change_are_as_long_as_they_are(
    zone: Callable[[str], None], name: str, day: str, hours: int
) -> None:
    zone(name)
    begins, ends = instant("since", day, NOW), instant("until", day, NOW, "end")
    assert ends - begins == timedelta(hours=hours)


@pytest.mark.parametrize(
    ("text", "age"),
    [("now", 0), ("90s", 90), ("15m", 900), ("12 h", 43_200), ("7d", 604_800), ("2W ago", 1_209_600), ("0s", 0)],
)
def test_an_age_counts_back_from_now(text: str, age: int) -> None:
    assert instant("since", text, NOW) == NOW - timedelta(seconds=age)


def test_years_before_the_epoch_are_years_like_others() -> None:
    assert at("1492-10-12T00:00:00Z") == "1492-10-12T00:00:00Z"
    assert abs(instant("since", "1969-07-20", NOW) - datetime(1969, 7, 20, tzinfo=UTC)) < timedelta(days=1)


@pytest.mark.parametrize(
    "text",
    ["", " ", "soon", "2026-02-30", "2026-1-1", "2026-W10", "2026W101", "25:00", "1700000000", "-7d", "7y", "7d 3h",
     "2026-03-01T25:00", "9" * 12 + "w", "0000-01-01", "2026-03-01T10:00:00+99:00", "2026-03-01\0"],
)  # fmt: skip
def test_what_is_no_time_is_refused_with_the_forms_there_are(text: str) -> None:
    with pytest.raises(InvalidInput, match="7d, 12h") as caught:
        instant("before", text, NOW)
    assert caught.value.param == "before"


def test_a_lifetime_is_a_number_of_seconds_or_a_number_with_a_unit() -> None:
    assert seconds("expires_in", 90) == seconds("expires_in", "90s") == timedelta(seconds=90)
    assert seconds("expires_in", " 2 W ") == timedelta(weeks=2)
    for wrong in ("", "2", "w", "-1d", "1.5h", "1d1h", "0s", 0, -1, 10**12):
        with pytest.raises(InvalidInput):
            seconds("expires_in", wrong)


@needs_zones
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["Asia/Tokyo", "America/Los_Angeles", "UTC", "Asia/Kolkata"])
async def test_listing_a_day_and_forgetting_it_agree_which_rows_are_of_that_day(
    bench: Bench, zone: Callable[[str], None], name: str
) -> None:
    zone(name)
    async with bench.client() as client:
        ids = {}
        for moment in ("2026-01-09T23:30", "2026-01-10T00:30", "2026-01-10T23:30", "2026-01-11T00:30"):
            saved = await bench.ok(client, "agora_save", content=f"night watch {moment}", occurred_at=moment)
            ids[moment] = saved["id"]
        listed = await bench.ok(client, "agora_query", query="night watch", since="2026-01-10", until="2026-01-10")
        of_the_day = {hit["id"] for hit in listed["results"]}
        assert of_the_day == {ids["2026-01-10T00:30"], ids["2026-01-10T23:30"]}
        until = await bench.ok(client, "agora_forget", before="2026-01-11")
        earlier = await bench.ok(client, "agora_forget", before="2026-01-10")
        forgettable = {note["id"] for note in until["notes"]} - {note["id"] for note in earlier["notes"]}
        assert forgettable == of_the_day


@needs_zones
@pytest.mark.anyio
@pytest.mark.parametrize("name", ["Asia/Tokyo", "America/Los_Angeles", "Pacific/Kiritimati"])
async def test_what_is_saved_now_is_of_today_and_not_of_yesterday(
    bench: Bench, zone: Callable[[str], None], name: str
) -> None:
    zone(name)
    async with bench.client() as client:
        for hour in range(0, 48, 5):
            saved = await bench.ok(client, "agora_save", content=f"made in hour {hour}")
            today = await bench.ok(client, "agora_query", query=f"hour {hour}", since="today", top_k=50)
            assert saved["id"] in [hit["id"] for hit in today["results"]]
            today = await bench.ok(client, "agora_query", query=f"hour {hour}", until="today", top_k=50)
            assert saved["id"] in [hit["id"] for hit in today["results"]]
            before = await bench.ok(client, "agora_query", query=f"hour {hour}", until="yesterday", top_k=50)
            assert saved["id"] not in [hit["id"] for hit in before["results"]]
            bench.clock.advance(hours=5)
