"""One run of a schedule: makes its session if need be, and sends its prompt, again until there is an answer."""

import asyncio
import json
from typing import Final, TypeVar

from pydantic import ValidationError

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import LogError
from fairlead_hooks.schedules.rights import CurrentRights
from fairlead_schema import subjects
from fairlead_schema.commands.answer import CommandAnswer
from fairlead_schema.commands.input import AdmitPrompt
from fairlead_schema.commands.session import CreateSession
from fairlead_schema.errors import InternalFailure, LimitReached, Refused, ServiceUnavailable
from fairlead_schema.identity.restrictions import Restrictions
from fairlead_schema.ids import SessionId, TenantId
from fairlead_schema.model import Model
from fairlead_schema.prompt import Receipt
from fairlead_schema.schedules.record import ScheduleRecord, ScheduleRun
from fairlead_schema.session_info import SessionInfo
from fairlead_schema.subjects import RESTRICTIONS_HEADER
from fairlead_service.ids import now_ms
from fairlead_service.traces import names
from fairlead_service.traces.tracer import open_span
from fairlead_session.schedules.run_ids import run_message_id, run_session_id

ANSWER_S: Final = 10.0
PAUSE_S: Final = 0.2
PAUSE_S_MAX: Final = 15.0

# These refusals pass only when somebody acts: an operator, or whoever pays.
_LASTING_KINDS: Final = frozenset({"Unreadable", "Quota"})

Data = TypeVar("Data", bound=Model)


class RunUnanswered(Exception):
    """Nobody answered for a run, so nobody knows what became of it: it is begun anew, under the same ids."""


class RunSender:
    """Sends the prompts of runs on behalf of the principals of their schedules."""

    def __init__(self, eventlog: EventLog, rights: CurrentRights, patience_s: float) -> None:
        self._eventlog = eventlog
        self._rights = rights
        self._patience_s = patience_s

    async def send(self, tenant: TenantId, record: ScheduleRecord, due: int) -> ScheduleRun:
        """The outcome of a run. Its ids follow from the due time, so that a repetition changes nothing.

        Raises RunUnanswered.
        """
        attributes = {names.SCHEDULE_ID: record.id, names.TENANT: tenant}
        with open_span(names.SCHEDULE, attributes=attributes) as span:
            run = await self._send(tenant, record, due)
            span.set({names.END: run.outcome})
            return run

    async def _send(self, tenant: TenantId, record: ScheduleRecord, due: int) -> ScheduleRun:
        session_id = run_session_id(tenant, record.id, record.session, due)
        message_id = run_message_id(tenant, record.id, due)
        try:
            restrictions = self._rights.check(tenant, record, now_ms())
            await self._make_session(tenant, record, session_id, restrictions)
            command = AdmitPrompt(
                session_id=session_id,
                id=message_id,
                prompt=record.prompt,
                delivery=record.delivery,
            )
            receipt = await self._ask(
                tenant, "session.prompt", command, CommandAnswer[Receipt], record, restrictions
            )
        except Refused as refused:
            return ScheduleRun(
                due=due,
                outcome="refused",
                time=now_ms(),
                session_id=session_id,
                message_id=message_id,
                error=refused.body,
            )
        return ScheduleRun(
            due=due,
            outcome="admitted",
            time=now_ms(),
            session_id=session_id,
            message_id=message_id,
            admitted_seq=receipt.admitted_seq,
        )

    async def _make_session(
        self,
        tenant: TenantId,
        record: ScheduleRecord,
        session_id: SessionId,
        restrictions: Restrictions | None,
    ) -> None:
        if record.session not in {"new", "same"}:
            return
        chosen = {"agent": record.agent, "model": record.model, "location": record.location}
        given = {name: value for name, value in chosen.items() if value is not None}
        command = CreateSession.model_validate({"id": session_id, **given})
        answer = CommandAnswer[SessionInfo]
        await self._ask(tenant, "session.create", command, answer, record, restrictions)

    async def _ask(
        self,
        tenant: TenantId,
        verb: str,
        command: Model,
        answer: type[CommandAnswer[Data]],
        record: ScheduleRecord,
        restrictions: Restrictions | None,
    ) -> Data:
        """The data of an answer. What may pass is tried again. Raises Refused and RunUnanswered."""
        body = command.model_dump_json(by_alias=True, exclude_none=True).encode()
        headers = (
            {} if restrictions is None else {RESTRICTIONS_HEADER: json.dumps(restrictions.wire())}
        )
        pause_s, clock = PAUSE_S, asyncio.get_running_loop().time
        until = clock() + self._patience_s
        while True:
            failure: Exception
            try:
                raw = await self._eventlog.requests.request(
                    subjects.api(tenant, verb),
                    body,
                    timeout_s=ANSWER_S,
                    by=record.by,
                    headers=headers,
                )
                return _read_answer(answer.model_validate_json(raw))
            except Refused as refused:
                if not _may_pass(refused):
                    raise
                failure = refused
            except (LogError, ValidationError) as error:
                failure = error
            if clock() + pause_s > until:
                raise _give_up(failure, f"{verb} had no answer for {self._patience_s:g} s")
            await asyncio.sleep(pause_s)
            pause_s = min(pause_s * 2, PAUSE_S_MAX)


def _read_answer(answer: CommandAnswer[Data]) -> Data:
    """The data of an answer. Raises Refused."""
    if answer.error is not None:
        raise Refused.from_wire(answer.error)
    assert answer.data is not None, "a command is answered with data or an error"
    return answer.data


def _may_pass(refused: Refused) -> bool:
    """Whether the same request may be accepted a moment later."""
    passing = (ServiceUnavailable, LimitReached, InternalFailure)
    return isinstance(refused, passing) and refused.body.kind not in _LASTING_KINDS


def _give_up(failure: Exception, sentence: str) -> Exception:
    """What ends a run after its patience: a refusal that did not pass, or no answer at all."""
    if isinstance(failure, Refused) and not isinstance(failure, ServiceUnavailable):
        return failure
    return RunUnanswered(f"{sentence}: {failure}")
