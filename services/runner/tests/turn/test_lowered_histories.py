"""The histories that a runner keeps stay within their budget."""

from dataclasses import replace

from fairlead_runner.turn.lowered_histories import LoweredHistories
from fairlead_schema.catalog import ModelRef
from fairlead_schema.subjects import Address
from fairlead_session.turn.history import HistoryStart
from fairlead_session.turn.lowered_history import LoweredHistory

HISTORY = LoweredHistory(ModelRef(provider_id="acme", id="fast"), None, HistoryStart(0, 0))


def at(number: int) -> Address:
    return Address("default", f"ses_{number}")


def test_the_least_recently_written_history_goes_first() -> None:
    histories = LoweredHistories(sessions_max=9, units_max=250)
    for number in range(3):
        histories.put(at(number), replace(HISTORY, units=100))

    assert histories.get(at(0)) is None
    assert histories.get(at(1)) is not None
    assert histories.get(at(2)) is not None


def test_a_history_replaces_the_one_before() -> None:
    histories = LoweredHistories(sessions_max=9, units_max=250)
    for units in (100, 150, 200):
        histories.put(at(1), replace(HISTORY, units=units))
    histories.put(at(2), replace(HISTORY, units=50))

    kept = histories.get(at(1))
    assert kept is not None
    assert kept.units == 200
    assert histories.get(at(2)) is not None


def test_a_history_beyond_the_whole_budget_is_not_kept() -> None:
    histories = LoweredHistories(sessions_max=9, units_max=250)
    histories.put(at(1), replace(HISTORY, units=300))

    assert histories.get(at(1)) is None


def test_many_short_histories_are_bounded_by_their_number() -> None:
    histories = LoweredHistories(sessions_max=2)
    for number in range(3):
        histories.put(at(number), replace(HISTORY, units=1))

    assert [histories.get(at(number)) is None for number in range(3)] == [True, False, False]
