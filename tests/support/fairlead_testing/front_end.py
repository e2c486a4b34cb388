"""A front end that speaks AG-UI: its own package parses every event of a run."""

import asyncio
import uuid
from dataclasses import dataclass, field
from typing import Any

import httpx
from ag_ui.core import Event, RunAgentInput, UserMessage
from ag_ui.core.types import ResumeEntry
from pydantic import TypeAdapter

from fairlead_testing.stack import Stack

HANG_S = 60.0
EVENT: TypeAdapter[Any] = TypeAdapter(Event)


@dataclass
class Run:
    """One run as the front end got it."""

    events: list[Any] = field(default_factory=list)

    @property
    def types(self) -> list[str]:
        return [event.type.value for event in self.events]

    @property
    def end(self) -> Any:  # noqa: ANN401 - the last event
        return self.events[-1]

    def text(self) -> str:
        """The text that the run streamed."""
        return "".join(e.delta for e in self.events if e.type.value == "TEXT_MESSAGE_CONTENT")


def run_input(
    thread: str,
    text: str | None,
    *,
    run: str | None = None,
    resume: list[ResumeEntry] | None = None,
    **props: object,
) -> RunAgentInput:
    """The input of a run: one message, or answers."""
    messages = [] if text is None else [UserMessage(id=str(uuid.uuid4()), content=text)]
    return RunAgentInput(
        thread_id=thread,
        run_id=run or str(uuid.uuid4()),
        messages=[*messages],
        resume=resume,
        forwarded_props=props or None,
    )


async def run_thread(
    up: Stack,
    given: RunAgentInput,
    *,
    headers: dict[str, str] | None = None,
    into: Run | None = None,
) -> Run:
    """Post a run, and read its events to the end."""
    run = into or Run()
    body = given.model_dump_json(by_alias=True)
    async with (
        asyncio.timeout(HANG_S),
        up.http.stream(
            "POST",
            "/ag-ui",
            content=body,
            headers={"content-type": "application/json", **(headers or {})},
            timeout=HANG_S,
        ) as response,
    ):
        if response.is_error:
            await response.aread()
            raise httpx.HTTPStatusError(response.text, request=response.request, response=response)
        async for line in response.aiter_lines():
            if line.startswith("data: "):
                run.events.append(EVENT.validate_json(line[6:]))
    return run
