"""The table of spans in the documents is the table of the code."""

from pathlib import Path

from fairlead_service.traces import names

DOCUMENT = (Path(__file__).parents[2] / "docs/operations/traces.md").read_text()


def test_every_span_of_the_code_is_in_the_table_and_no_other() -> None:
    rows = [line for line in DOCUMENT.splitlines() if line.startswith("| `")]

    assert rows == [
        f"| `{span.name}` | {span.kind} | {span.service} | {span.covers} |" for span in names.SPANS
    ]


def test_the_document_names_the_attributes_of_content() -> None:
    assert [name for name in names.CONTENT if f"`{name}`" not in DOCUMENT] == []
