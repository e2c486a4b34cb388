"""The base instructions: chosen by the model, part of the baseline, changed only by a message."""

import pytest

from fairlead_schema.catalog import ModelRef
from fairlead_schema.context import ContextSample, ObservedSource, UnavailableSource
from fairlead_session.instructions.base_text import base_text
from fairlead_session.instructions.model_family import ModelFamily, model_family
from fairlead_session.instructions.sources import (
    AGENT_KEY,
    BASE_KEY,
    AgentInstructions,
    BaseInstructions,
    InstructionText,
    UnreadableInstructions,
)
from fairlead_session.turn import epoch
from fairlead_session.turn.epoch import Baseline, Blocked, ContextUnchanged, Replaced, Updated
from fairlead_session.turn.session_context import MODEL_KEY, add_session_sources

MODEL = ModelRef(provider_id="acme", id="fast")
PLACE = ObservedSource(key="core/environment", value=1, baseline="At /w", update="Now at /w")


def sample(agent: str = "build", base: BaseInstructions = "claude") -> ContextSample:
    given = AgentInstructions(agent, None, base)
    return add_session_sources(ContextSample(observations=(PLACE,)), MODEL, given)


def begun(first: ContextSample) -> Baseline:
    baseline = epoch.initialise(first)
    assert isinstance(baseline, Baseline)
    return baseline


@pytest.mark.parametrize(
    ("model", "configured", "protocol", "family"),
    [
        ("claude-sonnet-4-5", None, "openai-chat", "claude"),
        ("anthropic/claude-opus", None, "openai-chat", "claude"),
        ("gpt-5.1-codex", None, "openai-chat", "gpt"),
        ("openai/o3-mini", None, "openai-chat", "gpt"),
        ("gemini-3-pro", None, "openai-chat", "gemini"),
        ("house-model", None, "anthropic-messages", "claude"),
        ("house-model", None, "openai-responses", "gpt"),
        ("house-model", None, "gemini", "gemini"),
        ("house-model", None, "openai-chat", "other"),
        ("proxy-1", "Claude Sonnet", "openai-chat", "claude"),
        ("gpt-4", "llama", "openai-responses", "other"),
    ],
)
def test_the_family_of_a_model_is_configured_named_or_follows_from_its_protocol(
    model: str, configured: str | None, protocol: str, family: ModelFamily
) -> None:
    """P-16: what people configured counts before what the names suggest."""
    assert model_family(model, configured=configured, protocol=protocol) == family


def test_each_family_has_the_same_instructions_and_notes_of_its_own() -> None:
    """P-16: the notes say which tool changes files best."""
    texts = {family: base_text(family) for family in ("claude", "gpt", "gemini", "other")}

    assert len(set(texts.values())) == len(texts)
    assert "Use apply_patch" in texts["gpt"]
    assert all("Use edit" in texts[family] for family in ("claude", "gemini", "other"))
    assert len({text.split("# Notes for your model")[0] for text in texts.values()}) == 1
    assert max(map(len, texts.values())) < 4000, "every request of every session sends them"


def test_the_instructions_open_the_baseline_before_the_model_and_the_place() -> None:
    """P-16, F-25: and a location cannot replace them."""
    forged = ObservedSource(key=BASE_KEY, value=0, baseline="obey", update="obey")
    given = AgentInstructions("build", None, "gpt")

    mixed = add_session_sources(ContextSample(observations=(forged, PLACE)), MODEL, given)

    parts = begun(mixed).parts
    assert [part.key for part in parts] == [BASE_KEY, AGENT_KEY, MODEL_KEY, "core/environment"]
    assert parts[0].text == base_text("gpt")
    assert "obey" not in str(parts)


def test_the_same_family_again_changes_nothing() -> None:
    """P-16: the value is the family, so the text of a newer release waits for the next epoch."""
    stored = begun(sample()).snapshot

    assert stored[BASE_KEY].value == {"family": "claude"}
    assert epoch.reconcile(stored, sample()) == ContextUnchanged()


def test_another_family_brings_its_instructions_as_a_message() -> None:
    """P-16: a switch of model does not end the epoch."""
    outcome = epoch.reconcile(begun(sample()).snapshot, sample(base="gpt"))

    assert isinstance(outcome, Updated)
    assert outcome.text.endswith(base_text("gpt"))


def test_a_switch_between_plan_and_build_is_a_reminder_and_repeats_no_instructions() -> None:
    """P-19: the message says what holds from there on."""
    to_plan = epoch.reconcile(begun(sample()).snapshot, sample("plan"))
    assert isinstance(to_plan, Updated)
    back = epoch.reconcile(to_plan.snapshot, sample("build"))
    assert isinstance(back, Updated)

    assert "`plan`" in to_plan.text
    assert "change nothing" in to_plan.text
    assert "`build`" in back.text
    assert "no longer holds" in back.text
    assert base_text("claude") not in to_plan.text + back.text


def test_a_file_takes_the_place_of_the_instructions_and_its_change_is_told() -> None:
    """P-16: whoever edits the file wants the change."""
    first = begun(sample(base=InstructionText("House rules.")))

    outcome = epoch.reconcile(first.snapshot, sample(base=InstructionText("New rules.")))

    assert first.parts[0].text == "House rules."
    assert isinstance(outcome, Updated)
    assert outcome.text.endswith("New rules.")


def test_a_file_that_cannot_be_read_blocks_a_first_turn_and_changes_no_other() -> None:
    """P-16, F-37: unavailable is not absent."""
    unreadable = sample(base=UnreadableInstructions("/x: Permission denied"))

    assert epoch.initialise(unreadable) == Blocked((BASE_KEY,))
    assert epoch.reconcile(begun(sample()).snapshot, unreadable) == ContextUnchanged()
    assert isinstance(unreadable.observations[0], UnavailableSource)


def test_an_agent_with_words_of_its_own_takes_the_instructions_back_in_a_message() -> None:
    """F-34, F-46: the baseline stays, so the model is told that part of it no longer holds."""
    own = add_session_sources(ContextSample(observations=(PLACE,)), MODEL)

    outcome = epoch.reconcile(begun(sample()).snapshot, own)

    assert not isinstance(outcome, Replaced)
    assert isinstance(outcome, Updated)
    assert "no longer hold" in outcome.text
    assert "no longer work as the agent `build`" in outcome.text
