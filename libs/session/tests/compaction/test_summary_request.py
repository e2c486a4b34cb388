"""What a model is asked when it shall summarise."""

import re

from fairlead_session.compaction.summary_request import FIRST, TEMPLATE, UPDATE, prompt


def test_a_first_summary_is_asked_of_the_conversation_alone() -> None:
    """G-22: the conversation in its tags, the instruction, then the template."""
    text = prompt("[User]: hi", None)

    assert text == f"<conversation>\n[User]: hi\n</conversation>\n\n{FIRST}\n\n{TEMPLATE}"
    assert "prior-summary" not in text


def test_a_later_summary_brings_the_earlier_one_up_to_date() -> None:
    """G-23: conversation, prior summary, rules for merging, template, in this order."""
    text = prompt("[User]: hi", "## Objective\n- sail")

    parts = ("</conversation>", "<prior-summary>\n## Objective\n- sail", UPDATE, TEMPLATE)
    assert [text.index(part) for part in parts] == sorted(text.index(part) for part in parts)
    for rule in ("not finished", "newer fact", "Completed", "objective and the next move"):
        assert rule in UPDATE


def test_the_template_has_its_sections_in_order() -> None:
    """G-24: all are kept, bullets are terse, identifiers are exact."""
    assert re.findall(r"(?m)^#+ (.*)$", TEMPLATE) == [
        "Objective",
        "Important Details",
        "Work State",
        "Completed",
        "Active",
        "Blocked",
        "Next Move",
        "Relevant Files",
    ]
    assert re.search(r"## Next Move\n1\. ", TEMPLATE)
    for rule in ("Keep all sections", "Short bullets", "exactly as they stand"):
        assert rule in TEMPLATE
