"""The algebra of system context: initialise, reconcile, replace."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from libs.session.tests.conftest import PROPERTY, away, observed, sample
from pydantic import ValidationError

from fairlead_schema.context import (
    BaselinePart,
    ContextSample,
    Observation,
    ObservedSource,
    SnapshotEntry,
    UnavailableSource,
)
from fairlead_schema.events import ContextSnapshotAdvanced
from fairlead_session.turn.epoch import (
    Baseline,
    Blocked,
    ContextUnchanged,
    DuplicateKey,
    Replaced,
    Snapshot,
    Updated,
    combine,
    initialise,
    reconcile,
    replace,
    text,
)

TOLD: Snapshot = {
    "core/a": SnapshotEntry(value=1),
    "core/b": SnapshotEntry(value=2, removed="b is gone"),
}
SAME = sample(observed("core/a", 1), observed("core/b", 2))

keys = st.sampled_from(["core/a", "core/b", "core/c", "core/d"])
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=2), inner),
    max_leaves=3,
)
sources: st.SearchStrategy[Observation] = st.builds(
    lambda key, value, removed: observed(key, value, removed=removed),
    keys,
    values,
    st.none() | st.just("gone"),
) | st.builds(away, keys)
samples = st.lists(sources, unique_by=lambda one: one.key).map(lambda all_: sample(*all_))
snapshots = st.dictionaries(
    keys, st.builds(SnapshotEntry, value=values, removed=st.none() | st.just("gone"))
)


def test_a_first_baseline_keeps_the_sources_order() -> None:
    """F-03, F-04, F-05: parts in order, joined by a blank line; the snapshot holds values."""
    baseline = initialise(sample(observed("core/b", 2, removed="gone"), observed("core/a", {})))

    assert isinstance(baseline, Baseline)
    assert text(baseline.parts) == "core/b is 2\n\ncore/a is {}"
    assert baseline.snapshot == {
        "core/b": SnapshotEntry(value=2, removed="gone"),
        "core/a": SnapshotEntry(value={}),
    }


def test_initialisation_names_every_source_that_is_away() -> None:
    """F-06: one missing source blocks the first epoch, and all of them are listed."""
    outcome = initialise(sample(away("core/a"), observed("core/b", 1), away("core/c")))

    assert outcome == Blocked(("core/a", "core/c"))


def test_what_nobody_requires_is_left_out_until_it_is_there() -> None:
    """F-06, F-09: the first turn does not wait for it, and it is introduced later."""
    optional = UnavailableSource(key="acme/x", reason="hung", required=False)

    baseline = initialise(sample(observed("core/a", 1), optional))

    assert isinstance(baseline, Baseline)
    assert list(baseline.snapshot) == ["core/a"]
    outcome = reconcile(baseline.snapshot, sample(observed("core/a", 1), observed("acme/x", 2)))
    assert isinstance(outcome, Updated)
    assert outcome.text == "acme/x is 2"


def test_what_waiting_would_not_mend_is_told_by_what_stands_in_for_it() -> None:
    """F-06, F-10, F-16: a first baseline only; afterwards it is unavailable like any other."""
    bad = away("core/a").model_copy(update={"instead": observed("core/a", "bad", removed="gone")})

    baseline = initialise(sample(bad))

    assert isinstance(baseline, Baseline)
    assert text(baseline.parts) == "core/a is bad"
    assert reconcile(baseline.snapshot, sample(bad)) == ContextUnchanged()
    assert reconcile(TOLD, sample(bad, observed("core/b", 2))) == ContextUnchanged()
    assert replace(TOLD, sample(bad)) == Blocked(("core/a",))
    mended = reconcile(baseline.snapshot, sample(observed("core/a", 1)))
    assert isinstance(mended, Updated)
    assert mended.text == "core/a became 1"


def test_no_sources_give_an_empty_baseline() -> None:
    """F-22: an empty text is a baseline too."""
    assert initialise(sample()) == Baseline((), {})
    assert text(()) == ""


def test_equal_values_are_unchanged_whatever_their_words() -> None:
    """F-07: only values are compared, so another rendering of the same value is no update."""
    reworded = SAME.observations[0].model_copy(update={"baseline": "x", "update": "y"})

    assert reconcile(TOLD, sample(reworded, observed("core/b", 2))) == ContextUnchanged()


def test_an_unchanged_source_keeps_its_stored_removal_text() -> None:
    """F-07: if another source changes, the stored entry stays, and so does its removal text."""
    outcome = reconcile(TOLD, sample(observed("core/a", 9), observed("core/b", 2, removed="new")))

    assert isinstance(outcome, Updated)
    assert outcome.snapshot["core/b"] == TOLD["core/b"]


def test_several_changes_are_one_text_and_one_snapshot() -> None:
    """F-08: changed values render their update text only, joined."""
    outcome = reconcile(TOLD, sample(observed("core/a", 8), observed("core/b", 9)))

    assert outcome == Updated(
        "core/a became 8\n\ncore/b became 9",
        {"core/a": SnapshotEntry(value=8), "core/b": SnapshotEntry(value=9)},
    )


def test_a_new_source_is_told_by_its_baseline_once() -> None:
    """F-09: a source that is new to the model gets its baseline text, not its update text."""
    outcome = reconcile(TOLD, sample(*SAME.observations, observed("core/c", 3)))

    assert isinstance(outcome, Updated)
    assert outcome.text == "core/c is 3"
    assert list(outcome.snapshot) == ["core/a", "core/b", "core/c"]


def test_an_unavailable_source_is_neither_changed_nor_removed() -> None:
    """F-10: an admitted source keeps its entry; a source never admitted is skipped."""
    unseen = sample(away("core/a"), observed("core/b", 2), away("core/x"))

    assert reconcile(TOLD, unseen) == ContextUnchanged()
    changed = reconcile(TOLD, sample(away("core/a"), observed("core/b", 3), away("core/x")))
    assert isinstance(changed, Updated)
    assert changed.snapshot == {"core/a": TOLD["core/a"], "core/b": SnapshotEntry(value=3)}


def test_a_vanished_source_is_told_in_the_words_stored_for_it() -> None:
    """F-11: the removal text is emitted, and the source leaves the snapshot."""
    outcome = reconcile(TOLD, sample(observed("core/a", 1)))

    assert outcome == Updated("b is gone", {"core/a": SnapshotEntry(value=1)})


def test_removals_follow_updates_in_key_order() -> None:
    """F-12: several removals come after every update, sorted."""
    snapshot = {key: SnapshotEntry(value=1, removed=f"no {key}") for key in ("core/z", "core/y")}

    outcome = reconcile({**snapshot, **TOLD}, sample(observed("core/a", 5), observed("core/b", 2)))

    assert isinstance(outcome, Updated)
    assert outcome.text == "core/a became 5\n\nno core/y\n\nno core/z"


def test_a_source_that_vanishes_without_words_forces_a_replacement() -> None:
    """F-13, F-15: the fresh baseline comes from the same sample and holds no update text."""
    sample_ = sample(observed("core/b", 7), observed("core/c", 3))

    outcome = reconcile(TOLD, sample_)

    assert isinstance(outcome, Replaced)
    assert text(outcome.baseline.parts) == "core/b is 7\n\ncore/c is 3"
    assert list(outcome.baseline.snapshot) == ["core/b", "core/c"]


def test_a_replacement_waits_for_what_the_model_was_told_of() -> None:
    """F-16: an admitted source that is away blocks; a source never admitted is left out."""
    assert reconcile(TOLD, sample(away("core/b"))) == Blocked(("core/b",))
    outcome = replace(TOLD, sample(observed("core/a", 1), away("core/new")))
    assert isinstance(outcome, Replaced)
    assert list(outcome.baseline.snapshot) == ["core/a"]


@pytest.mark.parametrize(
    "key", ["date", "Core/date", "core/", "/date", "core/Date", "-core/date", "core date/x", ""]
)
def test_a_key_is_lower_case_and_has_a_namespace(key: str) -> None:
    """F-01, F-18: neither a source nor a stored snapshot may have an invalid key."""
    with pytest.raises(ValidationError):
        observed(key, 1)
    with pytest.raises(ValidationError):
        ContextSnapshotAdvanced(snapshot={key: SnapshotEntry(value=1)})


@pytest.mark.parametrize("key", ["core/date", "a.b-c_d/e/f.g", "0/0"])
def test_namespaces_may_nest(key: str) -> None:
    """F-01: slashes, dots and dashes after the first character."""
    assert observed(key, 1).key == key


def test_a_key_twice_is_an_error_with_its_name() -> None:
    """F-02, F-20: the error names the key, and a sample with the key twice is invalid on the wire."""
    first, other = sample(observed("core/a", 1)), sample(away("core/a"))

    with pytest.raises(DuplicateKey, match="core/a") as raised:
        combine(first, other)
    assert raised.value.key == "core/a"
    with pytest.raises(ValidationError, match="core/a"):
        sample(*first.observations, *other.observations)


@PROPERTY
@given(st.lists(samples, max_size=4))
def test_combining_keeps_every_source_in_the_order_given(parts: list[ContextSample]) -> None:
    """F-02, F-03: any samples are joined in order; a key in two of them is an error."""
    together = [source for part in parts for source in part.observations]
    keys = [source.key for source in together]

    if len(set(keys)) < len(keys):
        with pytest.raises(DuplicateKey):
            combine(*parts)
    else:
        assert list(combine(*parts).observations) == together


def test_a_value_in_another_form_forces_a_replacement() -> None:
    """F-14, F-15: values of two forms cannot be compared, so the model gets a fresh baseline without update text."""
    reshaped = observed("core/a", 1).model_copy(update={"shape": 2})
    sample_ = sample(reshaped, observed("core/b", 9))

    outcome = reconcile(TOLD, sample_)

    assert isinstance(outcome, Replaced)
    assert text(outcome.baseline.parts) == "core/a is 1\n\ncore/b is 9"
    assert outcome.baseline.snapshot["core/a"] == SnapshotEntry(value=1, shape=2)
    assert reconcile(outcome.baseline.snapshot, sample_) == ContextUnchanged()


def test_a_value_in_another_form_waits_for_what_is_away() -> None:
    """F-14, F-16: the replacement is blocked like any other."""
    reshaped = observed("core/a", 1).model_copy(update={"shape": 2})

    assert reconcile(TOLD, sample(reshaped, away("core/b"))) == Blocked(("core/b",))


@pytest.mark.parametrize("field", ["baseline", "update", "removed"])
def test_an_empty_rendering_is_no_observation(field: str) -> None:
    """F-17: such a value is invalid, so no sample and no snapshot holds one."""
    whole = {"key": "core/a", "baseline": "b", "update": "u", "removed": "r"}

    with pytest.raises(ValidationError):
        ObservedSource.model_validate({**whole, field: ""})


def test_an_empty_removal_text_is_no_snapshot() -> None:
    """F-18: a part without text is invalid too."""
    with pytest.raises(ValidationError):
        SnapshotEntry(value=1, removed="")
    with pytest.raises(ValidationError):
        BaselinePart(key="core/a", text="")


@pytest.mark.parametrize("value", [float("nan"), [1, float("inf")], {"a": {"b": float("-inf")}}])
def test_what_json_cannot_hold_is_no_value(value: object) -> None:
    """F-05: such a value would never equal its stored form."""
    with pytest.raises(ValidationError):
        observed("core/a", value)


@pytest.mark.parametrize(("stored", "value"), [(1, True), (0, False), (1, 1.0), ([1], [True])])
def test_values_are_compared_as_json(stored: object, value: object) -> None:
    """F-05: values that are equal in Python may differ on the wire."""
    outcome = reconcile({"core/a": SnapshotEntry(value=stored)}, sample(observed("core/a", value)))

    assert isinstance(outcome, Updated)


def test_the_order_of_an_objects_keys_is_no_change() -> None:
    """F-05: the keys of a JSON object have no order."""
    stored = {"core/a": SnapshotEntry(value={"x": 1, "y": {"a": 1, "b": 2}})}

    outcome = reconcile(stored, sample(observed("core/a", {"y": {"b": 2, "a": 1}, "x": 1})))

    assert outcome == ContextUnchanged()


def test_what_blocks_is_told_with_its_reasons() -> None:
    """F-06: a person who looks at a resting session sees the missing sources."""
    blocked = initialise(
        sample(UnavailableSource(key="core/a", reason="too long", why="too-large"), away("core/b"))
    )

    assert isinstance(blocked, Blocked)
    assert blocked.describe() == "core/a: too long; core/b: hung"
    assert Blocked(("core/a",)).describe() == "core/a"


@PROPERTY
@given(snapshots, samples)
def test_what_is_away_is_neither_told_nor_forgotten(
    snapshot: Snapshot, sample_: ContextSample
) -> None:
    """F-10, F-11: after an update the snapshot holds each observed source, and each absent source unchanged."""
    outcome = reconcile(snapshot, sample_)

    if isinstance(outcome, Updated):
        unavailable = {
            source.key for source in sample_.observations if isinstance(source, UnavailableSource)
        }
        observed_keys = {
            source.key for source in sample_.observations if isinstance(source, ObservedSource)
        }
        assert set(outcome.snapshot) == observed_keys | (unavailable & set(snapshot))
        assert all(outcome.snapshot[key] == snapshot[key] for key in unavailable & set(snapshot))


@PROPERTY
@given(snapshots, samples)
def test_removals_need_words_or_a_new_epoch(snapshot: Snapshot, sample_: ContextSample) -> None:
    """F-11, F-12, F-13: a removed source has a removal text, or it forces a replacement."""
    removed = set(snapshot) - {source.key for source in sample_.observations}
    silent = {key for key in removed if snapshot[key].removed is None}

    outcome = reconcile(snapshot, sample_)

    assert isinstance(outcome, Replaced | Blocked) == bool(silent)
    if isinstance(outcome, Updated) and removed:
        assert outcome.text.endswith("gone")


@PROPERTY
@given(samples)
def test_reconciling_what_was_just_observed_says_nothing(sample_: ContextSample) -> None:
    """F-07: a sample compared with the snapshot of its own baseline changes nothing."""
    baseline = initialise(sample_)

    if isinstance(baseline, Baseline):
        assert reconcile(baseline.snapshot, sample_) == ContextUnchanged()


@PROPERTY
@given(snapshots, samples)
def test_a_change_is_told_exactly_once(previous: Snapshot, sample_: ContextSample) -> None:
    """F-08, F-15: after any update or replacement the same sample changes nothing."""
    outcome = reconcile(previous, sample_)

    match outcome:
        case Updated(snapshot=snapshot):
            assert outcome.text
            assert reconcile(snapshot, sample_) == ContextUnchanged()
        case Replaced(baseline=baseline):
            assert reconcile(baseline.snapshot, sample_) == ContextUnchanged()
        case Blocked(keys=blocked):
            assert set(blocked) <= set(previous)
        case ContextUnchanged():
            assert reconcile(previous, sample_) == outcome
