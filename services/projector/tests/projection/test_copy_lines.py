"""The text form of rows for the COPY command of Postgres."""

import json
from typing import TYPE_CHECKING

import pytest

from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.copy_lines import event_lines, input_lines
from fairlead_schema.events import (
    InputCancelled,
    PromptAdmitted,
    PromptPromoted,
    SessionCreated,
)
from fairlead_schema.location import LocationRef
from fairlead_schema.prompt import Prompt
from fairlead_schema.subjects import Address

if TYPE_CHECKING:
    from services.projector.tests.conftest import LogBuilder

AT = Address("default", "ses_1")
CREATED = SessionCreated(title="t", project_id="p", location=LocationRef(directory="/w"))


@pytest.mark.parametrize("text", ["a\\b", "tab\there", "line\nbreak", "quote\"and 'tick", "ünï"])
def test_copy_lines_carry_any_text(log_builder: "LogBuilder", text: str) -> None:
    admission = PromptAdmitted(message_id="msg_1", prompt=Prompt(text=text), delivery="steer")
    entry = log_builder.commit(AT, CREATED, admission)
    changes = row_changes.fold_batch({}, [log_entries.decode_entry(entry)])

    *_cells, data = event_lines(changes.events).decode().split("\n")[1].split("\t")

    assert json.loads(data.replace("\\\\", "\\")) == admission.wire()


def test_copy_lines_of_inputs_say_what_became_of_each(log_builder: "LogBuilder") -> None:
    prompt = Prompt(text="a\\b\tc")
    admissions = [
        PromptAdmitted(message_id=f"msg_{number}", prompt=prompt, delivery="queue")
        for number in range(3)
    ]
    promotion = PromptPromoted(message_id="msg_1", prompt=prompt, created=2)
    cancellation = InputCancelled(message_id="msg_2")
    entry = log_builder.commit(AT, CREATED, *admissions, promotion, cancellation, time=7)
    changes = row_changes.fold_batch({}, [log_entries.decode_entry(entry)])

    rows = [line.split("\t") for line in input_lines(changes.inputs.values()).decode().splitlines()]

    assert changes.created_inputs == set(changes.inputs)
    assert [row[:7] for row in rows] == [
        ["default", "ses_1", "msg_0", "2", "\\N", "f", "queue"],
        ["default", "ses_1", "msg_1", "3", "5", "f", "queue"],
        ["default", "ses_1", "msg_2", "4", "\\N", "t", "queue"],
    ]
    assert [json.loads(row[7].replace("\\\\", "\\")) for row in rows] == [prompt.wire()] * 3
    assert {row[8] for row in rows} == {"7"}
