"""Another agent, with the client of A2A's own package."""

import asyncio
import uuid
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any

import httpx
from a2a.client import A2ACardResolver, Client, ClientConfig, create_client
from a2a.types import (
    CancelTaskRequest,
    GetTaskRequest,
    ListTasksRequest,
    ListTasksResponse,
    Message,
    Part,
    Role,
    SendMessageConfiguration,
    SendMessageRequest,
    StreamResponse,
    SubscribeToTaskRequest,
    Task,
    TaskState,
)
from google.protobuf.json_format import ParseDict
from google.protobuf.struct_pb2 import Struct, Value

from fairlead_testing.stack import Stack

HANG_S = 60.0


def state_of(task: Task) -> str:
    """The state of a task in short: `completed`, `input_required`."""
    name: str = TaskState.Name(task.status.state)
    return name.removeprefix("TASK_STATE_").lower()


def text_of(task: Task) -> str:
    """The text of the last artifact."""
    return "".join(part.text for part in task.artifacts[-1].parts) if task.artifacts else ""


@dataclass
class OtherAgent:
    """Sends messages, and reads tasks."""

    plain: Client
    streaming: Client

    async def send(self, text: str | dict[str, Any], **fields: Any) -> Task:  # noqa: ANN401
        """One message whose answer is its task."""
        async with asyncio.timeout(HANG_S):
            found = [item async for item in self.plain.send_message(request_of(text, **fields))]
        return found[-1].task

    async def stream(
        self,
        text: str | dict[str, Any],
        into: list[StreamResponse],
        **fields: Any,  # noqa: ANN401
    ) -> list[StreamResponse]:
        """One message, and every update of its task."""
        async with asyncio.timeout(HANG_S):
            async for item in self.streaming.send_message(request_of(text, **fields)):
                into.append(item)  # noqa: PERF401 - others look at it meanwhile
        return into

    async def get(self, task_id: str) -> Task:
        return await self.plain.get_task(GetTaskRequest(id=task_id))

    async def page(self, context: str, **fields: Any) -> ListTasksResponse:  # noqa: ANN401
        return await self.plain.list_tasks(ListTasksRequest(context_id=context, **fields))

    async def cancel(self, task_id: str) -> Task:
        async with asyncio.timeout(HANG_S):
            return await self.plain.cancel_task(CancelTaskRequest(id=task_id))

    async def subscribe(self, task_id: str, into: list[StreamResponse]) -> list[StreamResponse]:
        async with asyncio.timeout(HANG_S):
            async for item in self.streaming.subscribe(SubscribeToTaskRequest(id=task_id)):
                into.append(item)  # noqa: PERF401 - others look at it meanwhile
        return into


def request_of(
    said: str | dict[str, Any],
    *,
    id_: str | None = None,
    task: str = "",
    context: str = "",
    at_once: bool = False,
    **metadata: str,
) -> SendMessageRequest:
    """A message with a text or with data."""
    part = Part(text=said) if isinstance(said, str) else Part(data=ParseDict(said, Value()))
    return SendMessageRequest(
        message=Message(
            message_id=id_ or str(uuid.uuid4()),
            role=Role.ROLE_USER,
            parts=[part],
            task_id=task,
            context_id=context,
        ),
        configuration=SendMessageConfiguration(return_immediately=at_once),
        metadata=ParseDict(metadata, Struct()),
    )


def joined_text(updates: list[StreamResponse]) -> str:
    """The text of the last artifact, put together as the protocol says."""
    texts: dict[str, str] = {}
    for item in updates:
        for artifact in item.task.artifacts:
            texts[artifact.artifact_id] = artifact.parts[0].text
        if item.HasField("artifact_update"):
            update = item.artifact_update
            before = texts.get(update.artifact.artifact_id, "") if update.append else ""
            texts[update.artifact.artifact_id] = before + update.artifact.parts[0].text
    return list(texts.values())[-1] if texts else ""


@asynccontextmanager
async def other_agent(
    up: Stack, *, token: str | None = None, version: str = "1.0"
) -> AsyncIterator[OtherAgent]:
    """An agent that has found the card of the gateway, and speaks one version."""
    headers = {"authorization": f"Bearer {token or up.up.token}"}
    async with httpx.AsyncClient(headers=headers, timeout=HANG_S, trust_env=False) as http:
        card = await A2ACardResolver(http, up.up.http).get_agent_card()
        spoken = [one for one in card.supported_interfaces if one.protocol_version == version]
        del card.supported_interfaces[:]
        card.supported_interfaces.extend(spoken)
        clients = [
            await create_client(
                card, client_config=ClientConfig(streaming=streams, httpx_client=http)
            )
            for streams in (False, True)
        ]
        yield OtherAgent(*clients)
