"""Schedules: make, list, change and remove prompts at a time, or again and again."""

from starlette.responses import Response

from fairlead_gateway.http.answers import answer, empty_answer
from fairlead_gateway.http.operation import ApiRequest, Operation
from fairlead_gateway.http.request_parser import EmptyInput, validate
from fairlead_gateway.log.commands import send_command
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.hooks.schedules import (
    ChangeSchedule,
    ChangeScheduleBody,
    CreateSchedule,
    ListSchedules,
    ScheduleInfo,
    ScheduleQuery,
    Schedules,
)
from fairlead_schema.commands.hooks.webhooks import HookRemoved
from fairlead_schema.errors import (
    Conflict,
    LimitReached,
    ProviderNotFound,
    ScheduleNotFound,
    ServiceUnavailable,
    SessionNotFound,
)
from fairlead_schema.model import Model


class ScheduleAnswer(Model):
    data: ScheduleInfo


class ScheduleListAnswer(Model):
    data: tuple[ScheduleInfo, ...]


def _query(request: ApiRequest[EmptyInput, EmptyInput]) -> ScheduleQuery:
    return validate(ScheduleQuery, {"id": request.http.path_params["scheduleID"]}, "Params")


async def _create(request: ApiRequest[EmptyInput, CreateSchedule]) -> Response:
    made = CommandAnswer[ScheduleInfo]
    return answer(
        ScheduleAnswer(data=await send_command(request, "schedule.create", request.body, made))
    )


async def _list(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    found = await send_command(request, "schedule.list", ListSchedules(), CommandAnswer[Schedules])
    return answer(ScheduleListAnswer(data=found.schedules))


async def _read(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    made = CommandAnswer[ScheduleInfo]
    return answer(
        ScheduleAnswer(data=await send_command(request, "schedule.get", _query(request), made))
    )


async def _change(request: ApiRequest[EmptyInput, ChangeScheduleBody]) -> Response:
    given = request.body.model_dump(by_alias=True, exclude_none=True, exclude_unset=True)
    fields = {**given, "id": request.http.path_params["scheduleID"]}
    command = validate(ChangeSchedule, fields, "Params")
    made = CommandAnswer[ScheduleInfo]
    return answer(
        ScheduleAnswer(data=await send_command(request, "schedule.change", command, made))
    )


async def _remove(request: ApiRequest[EmptyInput, EmptyInput]) -> Response:
    query = _query(request)
    await send_command(request, "schedule.remove", query, CommandAnswer[HookRemoved])
    return empty_answer()


CREATE = Operation(
    id="schedule.create",
    method="POST",
    path="/api/schedule",
    scope="session:write",
    summary="Send a prompt at a time, or again and again by a cron expression.",
    respond=_create,
    body=CreateSchedule,
    answer=ScheduleAnswer,
    errors=(Conflict, LimitReached, ProviderNotFound, SessionNotFound, ServiceUnavailable),
)

LIST = Operation(
    id="schedule.list",
    method="GET",
    path="/api/schedule",
    scope="session:read",
    summary="The schedules of the tenant with their next and their last runs, oldest first.",
    respond=_list,
    answer=ScheduleListAnswer,
    errors=(ServiceUnavailable,),
)

READ = Operation(
    id="schedule.get",
    method="GET",
    path="/api/schedule/{scheduleID}",
    scope="session:read",
    summary="One schedule with its next and its last run.",
    respond=_read,
    answer=ScheduleAnswer,
    errors=(ScheduleNotFound, ServiceUnavailable),
)

CHANGE = Operation(
    id="schedule.change",
    method="PATCH",
    path="/api/schedule/{scheduleID}",
    scope="session:write",
    summary="Change or pause a schedule. Its later runs are the caller's.",
    respond=_change,
    body=ChangeScheduleBody,
    answer=ScheduleAnswer,
    errors=(ScheduleNotFound, ServiceUnavailable),
)

REMOVE = Operation(
    id="schedule.remove",
    method="DELETE",
    path="/api/schedule/{scheduleID}",
    scope="session:write",
    summary="Remove a schedule; an unknown one is already removed. Its sessions stay.",
    respond=_remove,
    answer=None,
    status=204,
    errors=(ServiceUnavailable,),
)
