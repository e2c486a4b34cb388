"""The text form of rows for the COPY command of Postgres."""

import json
from typing import TYPE_CHECKING

import pytest

from fairlead_projector.projection import log_entries, row_changes
from fairlead_projector.projection.copy_lines import event_lines
from fairlead_schema.events import PromptAdmitted, SessionCreated
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
