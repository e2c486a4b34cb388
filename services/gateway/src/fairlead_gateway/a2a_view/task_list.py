"""The tasks of one context, folded from its log in one pass."""

from collections.abc import Iterable

from a2a.types import ListTasksRequest, ListTasksResponse, TaskState
from a2a.utils.errors import InvalidParamsError

from fairlead_gateway.a2a_view.tasks import RpcRequest
from fairlead_gateway.a2a_view.translation.message_input import history_length_of
from fairlead_gateway.a2a_view.translation.task_ids import TaskRef
from fairlead_gateway.a2a_view.translation.task_view import TaskTranslator
from fairlead_gateway.http.request_parser import SESSION_ID
from fairlead_gateway.http.sse import auto_close
from fairlead_gateway.log.envelopes import PUBLIC_AND_NOTICE, EnvelopeTranslator, read_envelopes
from fairlead_gateway.log.unreadable import find_end, find_start
from fairlead_gateway.turn_view.session_events import at_session
from fairlead_gateway.turn_view.turn_progress import type_of
from fairlead_schema.errors import SessionNotFound
from fairlead_schema.subjects import Address

PAGE_SIZE = 50
PAGE_SIZE_MAX = 100


async def list_tasks(request: RpcRequest, given: ListTasksRequest) -> ListTasksResponse:
    """A page of the tasks of a context, the newest change first. Raises InvalidParamsError."""
    size = given.page_size if given.HasField("page_size") else PAGE_SIZE
    if not 1 <= size <= PAGE_SIZE_MAX:
        raise InvalidParamsError(f"pageSize is between 1 and {PAGE_SIZE_MAX}")
    # A long log takes as much of this process as a stream does.
    with request.runtime.limits.open_stream(request.principal.name):
        found = list(_select(await _fold_tasks(request, given.context_id), given))
    found.sort(key=_place_of, reverse=True)
    after = _parse_token(given.page_token)
    rest = [task for task in found if after is None or _place_of(task) < after]
    page = rest[:size]
    return ListTasksResponse(
        tasks=[
            one.task(
                history_length=history_length_of(given), with_artifacts=given.include_artifacts
            )
            for one in page
        ],
        next_page_token="{}.{}".format(*_place_of(page[-1])) if len(rest) > size else "",
        page_size=len(page),
        total_size=len(found),
    )


async def _fold_tasks(request: RpcRequest, context_id: str) -> list[TaskTranslator]:
    """Every task of a context. Each takes the events from its admission to its end."""
    if not context_id:
        text = "Name a contextId: tasks are listed by context. GET /api/session lists the contexts"
        raise InvalidParamsError(text)
    try:
        at = Address(request.tenant, SESSION_ID.validate_python(context_id))
        inner = await at_session(request, at)
    except (ValueError, SessionNotFound):
        # Nobody learns whether a context of somebody else exists.
        return []
    runtime = inner.runtime
    tasks, running = list[TaskTranslator](), list[TaskTranslator]()
    envelopes = EnvelopeTranslator(at, runtime.read_model, visible=PUBLIC_AND_NOTICE)
    start, reach = await find_start(inner, 0), await find_end(inner)
    events = read_envelopes(runtime.nats().log, at, envelopes, start=start, after=0, reach=reach)
    async with auto_close(events):
        async for envelope in events:
            assert envelope.durable is not None, "the log has durable events alone"
            event = envelope.wire()
            if type_of(event) == "prompt.admitted":
                message_id = event["data"]["messageID"]
                ref = TaskRef(at.session_id, message_id, envelope.durable.seq)
                tasks.append(TaskTranslator(ref))
                running.append(tasks[-1])
            for task in running:
                task.progress.take(event)
                task.take(event)
            running = [task for task in running if not task.progress.is_over]
    return tasks


def _select(tasks: Iterable[TaskTranslator], given: ListTasksRequest) -> Iterable[TaskTranslator]:
    since_ms = given.status_timestamp_after.ToMilliseconds()
    for task in tasks:
        has_state = given.status in {TaskState.TASK_STATE_UNSPECIFIED, task.status().state}
        if has_state and task.changed_ms >= since_ms:
            yield task


def _place_of(task: TaskTranslator) -> tuple[int, int]:
    return task.changed_ms, task.ref.admitted_seq


def _parse_token(token: str) -> tuple[int, int] | None:
    """The place that the page before ended with. Raises InvalidParamsError."""
    if not token:
        return None
    changed_ms, _, admitted_seq = token.partition(".")
    try:
        return int(changed_ms), int(admitted_seq)
    except ValueError:
        raise InvalidParamsError("The pageToken is not one of a list: begin without it") from None
