"""The protocol on a replicated log, explored: stale reads, lost acknowledgements and elections."""

from dataclasses import replace

import pytest

from tests.model.replicated.explore import explore
from tests.model.replicated.log import Setting

WAITING = Setting(call=True, waits=True, lags=1, losses=1, nudges_carry_commits=True)
SETTINGS = {
    "stale reads": Setting(prompts=2, lags=3),
    "two runners": Setting(prompts=2, runners=2, lags=1, expiries=1),
    "an interrupt": Setting(prompts=1, interrupts=True, lags=2, losses=1),
    "lost acknowledgements": Setting(prompts=2, lags=2, losses=2),
    "an election": Setting(prompts=2, lags=1, losses=1, elections=1),
    "an election and a second runner": Setting(
        prompts=1, runners=2, lags=2, losses=1, elections=1, expiries=1
    ),
    "a call": Setting(prompts=0, call=True, lags=2, losses=2, elections=1),
    "wakes with commits": Setting(
        prompts=2, runners=2, lags=1, expiries=1, wakes_carry_commits=True
    ),
    "followed sessions": Setting(
        prompts=2, lags=1, losses=1, elections=1, follows=True, wakes_carry_commits=True
    ),
    "an interrupt of a followed session": Setting(
        prompts=1, interrupts=True, lags=1, losses=1, follows=True, wakes_carry_commits=True
    ),
    "nudges with commits": WAITING,
    "nudges and wakes with commits": replace(
        WAITING, prompts=0, interrupts=True, lags=0, wakes_carry_commits=True
    ),
}
# What was wrong in the old protocol shows in small settings.
SMALL = {
    "stale reads": Setting(prompts=2, lags=2),
    "an interrupt": Setting(prompts=1, interrupts=True),
    "a lost acknowledgement": Setting(prompts=1, lags=1, losses=1),
    "an election": Setting(prompts=1, lags=0, elections=1),
    "a call": Setting(prompts=0, call=True, losses=1),
}
OLD = {
    "confirms_rest": False,
    "reads_to_the_head": False,
    "keeps_ids": False,
    "patient": False,
    "wakes_carry_positions": False,
}


@pytest.mark.parametrize("name", SETTINGS)
def test_on_a_replicated_log_nothing_is_lost_doubled_or_stranded(name: str) -> None:
    """A1, A2, A3: the protocol of today breaks no rule, and no session waits for a sweep."""
    exploration = explore(SETTINGS[name])

    print(f"{name}: {len(exploration.found.states)} states")  # noqa: T201
    assert exploration.faults == {}
    assert exploration.stranding is None


def test_the_old_protocol_does_not_find_a_session_that_exists() -> None:
    """A1: ingest on a follower that lags refuses a prompt to a session that its caller has created."""
    faults = explore(replace(SMALL["stale reads"], **OLD)).faults

    assert "an existing session was not found" in faults


def test_the_old_protocol_strands_input_behind_a_stale_read() -> None:
    """A1: the second look after the release is stale itself, and the refused wake is given up."""
    stranding = explore(replace(SMALL["stale reads"], **OLD)).stranding

    assert stranding is not None
    print("; ".join(stranding))  # noqa: T201


def test_the_old_protocol_drops_an_interrupt() -> None:
    """A1: ingest answers that the session is idle while a turn runs."""
    faults = explore(replace(SMALL["an interrupt"], **OLD)).faults

    assert "an interrupt was answered as idle while a turn ran" in faults


def test_the_old_protocol_writes_a_fact_twice() -> None:
    """A2: a lost acknowledgement and a follower that lags hide a runner's own commit from it."""
    faults = explore(replace(SMALL["a lost acknowledgement"], **OLD)).faults

    assert "a fact was written twice" in faults
    print("; ".join(faults["a fact was written twice"]))  # noqa: T201


def test_the_old_protocol_settles_a_call_that_never_ran() -> None:
    """A2: a worker takes its own start for that of a dead worker."""
    faults = explore(replace(SMALL["a call"], **OLD)).faults

    assert "a call that never ran was settled as interrupted" in faults


def test_the_old_protocol_loses_a_turn_to_an_election() -> None:
    """A3: an append that gives up while a leader is elected throws the turn away."""
    faults = explore(replace(SMALL["an election"], **OLD)).faults

    assert "a turn was lost to an election" in faults


FOLLOWED = Setting(prompts=1, lags=0, interrupts=True, follows=True, wakes_carry_commits=True)


def test_a_followed_state_is_confirmed_before_anything_is_refused() -> None:
    """ADR 0041: from what broadcasts told alone, ingest would not find sessions, and drop interrupts."""
    assert explore(FOLLOWED).faults == {}

    faults = explore(replace(FOLLOWED, confirms_rest=False)).faults

    assert "an interrupt was answered as idle while a turn ran" in faults
    assert "an existing session was not found" in faults


def test_a_commit_that_was_passed_on_counts_only_behind_the_one_before_it() -> None:
    """ADR 0043: a runner that folds a settlement over a prompt that it has not seen rests upon it."""
    assert explore(replace(WAITING, lags=0, losses=0)).stranding is None

    careless = explore(replace(WAITING, lags=0, losses=0, folds_only_the_next=False))

    assert careless.stranding is not None
    print("; ".join(careless.stranding))  # noqa: T201


NEEDED = {
    "confirms_rest": SMALL["stale reads"],
    "reads_to_the_head": replace(SMALL["a lost acknowledgement"], keeps_ids=False),
    "keeps_ids": replace(SMALL["a lost acknowledgement"], reads_to_the_head=False),
    "patient": SMALL["an election"],
}


@pytest.mark.parametrize("rule", NEEDED)
def test_every_rule_of_the_replicated_log_is_needed(rule: str) -> None:
    """A position in the wake alone does not replace the look at the leader's head.

    Of the two rules for a refused append either one alone would do. The code keeps both.
    """
    without = explore(replace(NEEDED[rule], **{rule: False}))

    assert without.faults or without.stranding is not None
