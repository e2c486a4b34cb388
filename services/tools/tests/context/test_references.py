"""References: places outside the location that a model may need."""

from fairlead_service.config.context import ReferenceConfig
from fairlead_tools.context.sources.references import CHANGED, LEAD, observe


def test_references_with_a_description_are_listed_by_name() -> None:
    """F-49: references without a description are left out."""
    observation = observe(
        {
            "b": ReferenceConfig(path="/b", description="for b"),
            "a": ReferenceConfig(path="/a", description="for a"),
            "quiet": ReferenceConfig(path="/q"),
        }
    )

    assert observation is not None
    assert observation.baseline == f"{LEAD}\n- a (/a): for a\n- b (/b): for b"
    assert observation.update.startswith(CHANGED)
    assert observation.removed


def test_without_any_there_is_no_source() -> None:
    """F-49: without references the sample has no such source."""
    assert observe({}) is None
    assert observe({"quiet": ReferenceConfig(path="/q")}) is None


def test_a_text_is_no_place_to_read() -> None:
    """F-49: the list names paths. A mention brings a text into a prompt."""
    assert observe({"motto": ReferenceConfig(text="Measure twice.", description="always")}) is None
