"""P-08: the guide to hosted results has the rows of the tables."""

from pathlib import Path

from fairlead_session.hosted.tables import TABLES

GUIDE = Path(__file__).parents[4] / "docs" / "guide" / "hosted-results.md"
PLACES = {
    "call": "result of a call",
    "block": "block of its own",
    "reasoning": "metadata of reasoning",
    "text": "metadata of text",
    "step": "metadata of the step",
}


def render_tables() -> str:
    lines: list[str] = []
    for protocol, table in TABLES.items():
        lines += [f"## {protocol}", "", "| Type | Kept as | Same model | Other models | When old |"]
        lines += ["|---|---|---|---|---|"]
        for rule in table.values():
            cells = (f"`{rule.type}`", PLACES[rule.place], rule.to_same, rule.to_others)
            old = rule.when_old if rule.place == "call" else ""
            lines.append(f"| {' | '.join((*cells, old))} |")
        lines.append("")
    return "\n".join(lines)


def test_the_guide_has_the_tables() -> None:
    _before, rest = GUIDE.read_text().split("<!-- tables -->\n")
    text, _after = rest.split("<!-- end of tables -->")

    assert text.strip() == render_tables().strip(), "copy the output of render_tables() there"
