"""Exports for tests: sessions with a parent, a sub-agent, an output, and callers."""

from collections.abc import Mapping, Sequence
from typing import Any

from pydantic_core import from_json

from fairlead_schema.catalog import ModelRef, Tokens
from fairlead_schema.events import (
    AttemptDispatched,
    AttemptFinished,
    ExecutionClaimed,
    ExecutionReleased,
    PermissionAsked,
    PermissionReplied,
    PromptAdmitted,
    PromptPromoted,
    SessionCreated,
    SessionEvent,
    StepEnded,
    StepStarted,
    TextEnded,
    TextStarted,
    ToolCalled,
    ToolInputEnded,
    ToolInputStarted,
    ToolStarted,
    ToolSucceeded,
)
from fairlead_schema.ids import seal
from fairlead_schema.location import LocationRef
from fairlead_schema.permission import CallSource, PermissionRequest
from fairlead_schema.prompt import Prompt
from fairlead_schema.record import Commit, Draft, encode, record
from fairlead_schema.subjects import Address
from fairlead_schema.tools.content import Executor, TextContent, managed_path
from fairlead_schema.transfer.checksum import add_checksum
from fairlead_schema.transfer.lines import ExportHeader, ExportLines, ExportScope
from fairlead_session.calls.child_ids import TASK, child_of, first_prompt

PARENT = "ses_parent"
CALL = "call_1"
OUTPUT = "out_long"
OUTPUT_TEXT = b"a long result\n" * 10
CHILD = child_of(PARENT, "msg_answer_1", "call_task")
MODEL = ModelRef(provider_id="sim", id="fast")
LOCAL = Executor()

Life = Sequence[tuple[str | None, tuple[SessionEvent, ...]]]
"""The commits of a session: who caused each, and its events."""


def created(directory: str = "/srv/project", parent: str | None = None) -> SessionCreated:
    location = LocationRef(directory=directory)
    return SessionCreated(title="One", project_id="prj_1", location=location, parent_id=parent)


def call_events(message: str, call: str, tool: str) -> tuple[SessionEvent, ...]:
    ids: dict[str, Any] = {"assistant_message_id": message, "call_id": call}
    return (
        ToolInputStarted(**ids, name=tool),
        ToolInputEnded(**ids, text="{}"),
        ToolCalled(**ids, tool=tool, input={}, provider=LOCAL, agent="build", retry="once"),
    )


def parent_life(directory: str = "/srv/project") -> Life:
    """A session whose answer calls a tool with a long result, and a sub-agent."""
    answer = "msg_answer_1"
    asked = PermissionRequest(
        id="per_1",
        session_id=PARENT,
        action="bash",
        resources=("ls",),
        source=CallSource(message_id=answer, call_id=CALL),
    )
    content = (TextContent(text=f"head\n... see {managed_path(OUTPUT)}"),)
    return (
        ("key:ann", (created(directory),)),
        ("key:ann", (admitted("msg_mine", "Look around"),)),
        (
            None,
            (
                ExecutionClaimed(generation=1, runner="run_a"),
                promoted("msg_mine", "Look around"),
                AttemptDispatched(
                    attempt_id="att_1",
                    assistant_message_id=answer,
                    agent="build",
                    model=MODEL,
                    step=1,
                ),
            ),
        ),
        (None, (StepStarted(assistant_message_id=answer, agent="build", model=MODEL),)),
        (None, (*text(answer, "I look."), *call_events(answer, CALL, "bash"))),
        (None, call_events(answer, "call_task", TASK)),
        (None, (PermissionAsked(request=asked, agent="build"),)),
        ("key:ann", (PermissionReplied(request_id="per_1", reply="once"),)),
        (None, (started(answer, CALL),)),
        (
            None,
            (
                ToolSucceeded(
                    assistant_message_id=answer,
                    call_id=CALL,
                    structured={},
                    content=content,
                    output_paths=(managed_path(OUTPUT),),
                    provider=LOCAL,
                ),
            ),
        ),
        (
            None,
            (
                AttemptFinished(
                    attempt_id="att_1",
                    assistant_message_id=answer,
                    finish="tool-calls",
                    cost=0.5,
                    tokens=Tokens(),
                ),
                started(answer, "call_task"),
                ToolSucceeded(
                    assistant_message_id=answer,
                    call_id="call_task",
                    structured={"sessionID": CHILD},
                    content=(TextContent(text="done"),),
                    provider=LOCAL,
                ),
                StepEnded(
                    assistant_message_id=answer, finish="tool-calls", cost=0.5, tokens=Tokens()
                ),
            ),
        ),
        (None, (ExecutionReleased(generation=1, reason="handover"),)),
    )


def child_life(directory: str = "/srv/project") -> Life:
    """The session of the sub-agent, which waits for its first turn."""
    return (
        ("key:ann", (created(directory, PARENT),)),
        ("key:ann", (admitted(first_prompt(CHILD), "Do this"),)),
    )


def admitted(id_: str, said: str) -> PromptAdmitted:
    return PromptAdmitted(message_id=id_, prompt=Prompt(text=said), delivery="steer")


def promoted(id_: str, said: str) -> PromptPromoted:
    return PromptPromoted(message_id=id_, prompt=Prompt(text=said), created=1)


def started(message: str, call: str) -> ToolStarted:
    return ToolStarted(assistant_message_id=message, call_id=call, worker="wkr_a", generation=1)


def text(message: str, said: str) -> tuple[SessionEvent, ...]:
    return (
        TextStarted(assistant_message_id=message, text_id="t"),
        TextEnded(assistant_message_id=message, text_id="t", text=said),
    )


def payloads(life: Life, at: Address, *, with_checksum: bool = True) -> list[bytes]:
    """The stored bytes of a life."""
    stored: list[bytes] = []
    seq = 0
    for number, (by, events) in enumerate(life, start=1):
        drafts = tuple(
            Draft(f"evt_{at.session_id[4:12]}_{seq + place}", 1000 + seq + place, event)
            for place, event in enumerate(events, start=1)
        )
        commit = Commit(f"cmt_{at.session_id[4:12]}_{number}", record(drafts, after=seq, by=by))
        payload = encode(commit)
        stored.append(add_checksum(at, payload) if with_checksum else payload)
        seq += len(events)
    return stored


def stored_life(life: Life, session_id: str) -> list[dict[str, Any]]:
    """The events of a life as a transfer carries them."""
    events: list[dict[str, Any]] = []
    for payload in payloads(life, Address("default", session_id)):
        raw = from_json(payload)
        by = {} if "by" not in raw else {"by": raw["by"]}
        events += [event | by for event in raw["events"]]
    return events


def export_lines(
    lives: Mapping[str, Life],
    outputs: Mapping[str, Mapping[str, bytes]] | None = None,
    *,
    tenant: str = "default",
    scope: ExportScope = "tree",
    with_checksum: bool = True,
) -> list[bytes]:
    """A whole export, line by line."""
    header = ExportHeader(level=1, release="0", scope=scope, tenant=tenant, by="key:ann", at=1)
    lines = ExportLines(header)
    written = [lines.first]
    for session_id, life in lives.items():
        written.append(lines.begin(session_id))
        at = Address(tenant, session_id)
        written += [lines.commit(each) for each in payloads(life, at, with_checksum=with_checksum)]
        for output_id, data in (outputs or {}).get(session_id, {}).items():
            written.append(lines.output(output_id, "text/plain", len(data)))
            if data:
                written.append(lines.chunk(data))
        written.append(lines.seal())
    return [*written, lines.end()]


def tree_export(directory: str = "/srv/project", *, with_checksum: bool = True) -> list[bytes]:
    """An export of the parent with its sub-agent and its output."""
    return export_lines(
        {PARENT: parent_life(directory), CHILD: child_life(directory)},
        {PARENT: {OUTPUT: OUTPUT_TEXT}},
        with_checksum=with_checksum,
    )


def growing_life(turns: int, directory: str = "/srv/project") -> Life:
    """A session of so many turns. In the middle of it there is always work that is not done."""
    commits: list[tuple[str | None, tuple[SessionEvent, ...]]] = [
        ("key:ann", (created(directory),))
    ]
    for number in range(1, turns + 1):
        answer, prompt = f"msg_answer_{number}", f"msg_prompt_{number}"
        commits += [
            ("key:ann", (admitted(_sealed(prompt), "Go on"),)),
            (
                None,
                (
                    ExecutionClaimed(generation=number, runner="run_a"),
                    promoted(_sealed(prompt), "Go on"),
                    AttemptDispatched(
                        attempt_id=f"att_{number}",
                        assistant_message_id=answer,
                        agent="build",
                        model=MODEL,
                        step=1,
                    ),
                ),
            ),
            (
                None,
                (
                    StepStarted(assistant_message_id=answer, agent="build", model=MODEL),
                    *text(answer, "word " * 100),
                    StepEnded(
                        assistant_message_id=answer, finish="stop", cost=0.0, tokens=Tokens()
                    ),
                    ExecutionReleased(generation=number, reason="idle"),
                ),
            ),
        ]
    return commits


def _sealed(id_: str) -> str:
    """The id with a seal, as if Fairlead had minted it: it needs no register."""
    return id_ + seal(id_)
