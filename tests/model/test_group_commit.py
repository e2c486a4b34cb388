"""A transaction over several shards, explored: no entry is applied twice, and none is skipped."""

from dataclasses import replace

import pytest

from tests.model.group_commit import Setting, explore

BREAKING = Setting(breaks=1)
FAILING = Setting(errors=1, entries=1)
REBUILT = Setting(writers=1, rebuilds=1)
SETTINGS = {
    "connections that break": BREAKING,
    "shards that fail alone": FAILING,
    "a rebuild": REBUILT,
    "a rebuild beside two writers": Setting(entries=1, rebuilds=1),
    "three shards": Setting(shards=3, entries=1),
}
NAIVE = {
    "only the first checkpoint is compared": (replace(FAILING, compares_all=False), "twice"),
    "a fenced shard writes its rows": (replace(FAILING, leaves_out_fenced=False), "twice"),
    "a failed shard goes on": (
        Setting(writers=1, errors=1, drops_failed=False),
        "skipped",
    ),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_every_entry_is_applied_once_whatever_breaks(name: str) -> None:
    found, faults, can_finish = explore(SETTINGS[name])

    assert len(found.states) > 100
    assert faults == {}
    assert can_finish


@pytest.mark.parametrize("name", NAIVE)
def test_each_rule_of_the_group_is_needed(name: str) -> None:
    setting, fault = NAIVE[name]

    _found, faults, _can_finish = explore(setting)

    assert any(fault in found for found in faults), faults


def test_a_quiet_writer_would_never_notice_a_rebuild_without_looking() -> None:
    _found, faults, can_finish = explore(replace(REBUILT, looks_when_quiet=False))

    assert (faults, can_finish) == ({}, False)
