"""The life of a call in one worker: begin, run, settle.

`begin` and `settle` are one commit each; a call that is over at once needs only the first. The request
stays in its queue until the end. So when a worker dies, another one gets the request, and the log
says what is left to do:

- dead before the commit of `begin`: nothing happened, and the call begins anew;
- dead between `begin` and `settle`: the log names a dead worker. A `pure` or `idempotent` call runs
  again; a `once` call is settled as interrupted, because its effect is unknown;
- dead between `settle` and the wake or the acknowledgement: the call is settled, and the repeated
  request wakes the session.

A worker that is only paused comes back to a log that has moved on: its next commit does not count.
"""

from fairlead_eventlog.connection import EventLog
from fairlead_eventlog.errors import SessionErased
from fairlead_schema.ids import WorkerId
from fairlead_schema.location import LocationRef
from fairlead_schema.subjects import Address
from fairlead_service.config.sections import ToolsConfig
from fairlead_session.calls.lifecycle import Outcome
from fairlead_session.calls.output_bounds import OutputLimits
from fairlead_session.fold.calls import find_call
from fairlead_session.state.calls import UnsettledCall
from fairlead_session.state.session import Session
from fairlead_tools.calls.begin import BeginPhase
from fairlead_tools.calls.decision import BeginDecider
from fairlead_tools.calls.liveness import PeerLiveness
from fairlead_tools.calls.log import CallLog
from fairlead_tools.calls.output import OutputRetention
from fairlead_tools.calls.permission import CallPolicy
from fairlead_tools.calls.request import Handled, PutBack, TakenRequest
from fairlead_tools.calls.run import Ready, RunPhase
from fairlead_tools.calls.settle import SettlePhase
from fairlead_tools.calls.subagents import Subagents
from fairlead_tools.calls.timings import CallTimings
from fairlead_tools.private_directory import open_private_directory
from fairlead_tools.quotas import TenantQuotas
from fairlead_tools.registry.outcome import error_text, tool_crash
from fairlead_tools.registry.registry import Registry


class CallLifecycle:
    """Takes the calls of one worker through their three phases."""

    def __init__(
        self,
        worker: WorkerId,
        eventlog: EventLog,
        registry: Registry,
        settings: ToolsConfig,
        policy: CallPolicy,
        timings: CallTimings,
    ) -> None:
        self._worker = worker
        self._log = CallLog(eventlog, settings, retry_s=timings.log_retry_s)
        self._quotas = TenantQuotas(eventlog, policy.quotas)
        self._outputs = OutputRetention(
            eventlog.outputs,
            OutputLimits(settings.output_lines_max, settings.output_bytes_max),
            settings.media_bytes_max,
            self._quotas.outputs,
            hurry_s=timings.store_hurry_s,
        )
        self.subagents = Subagents(
            eventlog, self._log, depth_max=settings.depth_max, agent_model=policy.agent_model
        )
        peers = PeerLiveness(worker, eventlog.liveness, second_look_s=timings.second_look_s)
        decider = BeginDecider(peers, eventlog, registry, self._outputs, policy, self._quotas)
        private = open_private_directory(settings.spool_dir)
        self._run = RunPhase(eventlog, self._log, self._outputs, private.spools, timings)
        self._begin = BeginPhase(decider, self._log, self._run)
        self._settle = SettlePhase(eventlog, self._log, self.subagents, private)

    async def handle(self, request: TakenRequest) -> Handled:
        """Do what is left to do of a call. The caller then does with the request as the answer says.

        Raises RecordError, CommitTooLarge and LogError; the request then stays in its queue.
        """
        if self._run.is_leaving:
            return Handled("left", PutBack())
        try:
            async with self._begin.speculate(request) as speculation:
                written = await self._begin.begin(request, speculation)
                after, begun = written.after, written.value
                if not isinstance(begun, Ready):
                    if speculation.ready is not None:
                        # A run that nobody wants must not store an output behind a purge.
                        await self._run.close(speculation.ready)
                    return await self._settle.finish(request, after, begun)
                result = await self._run.run(begun, after.state.seq)
                return await self._settle.settle_run(request.at, begun.call, result, after)
        except SessionErased:
            await self._settle.remove_outputs(request.at)
            return Handled("gone")
        finally:
            self._quotas.calls.release(request.key)

    async def settle(self, at: Address, call: UnsettledCall, outcome: Outcome) -> bool:
        """Settle a call with an outcome from outside. False: the call is not in that state now."""
        profile = (await self.read(at)).profile
        principal = None if profile is None else profile.created_by
        bounded = await self._outputs.bound(at, outcome, principal=principal)
        handled = await self._settle.settle(at, call, bounded)
        return handled.end not in {"late", "lost"}

    async def fail(self, request: TakenRequest, error: Exception) -> None:
        """Settle a call that this worker cannot handle, unless somebody else works on it."""
        session = await self.read(request.at)
        call = find_call(session, request.assistant_message_id, request.call_id)
        if call is None or call.worker not in {None, self._worker} or call.deferred_until:
            return
        await self.settle(request.at, call, tool_crash(error_text(error)))

    def leave(self) -> None:
        """Stop what runs, and what would run: the worker leaves. Results are settled in a hurry."""
        self._outputs.hurry()
        self._run.stop_all()

    async def location(self, request: TakenRequest) -> LocationRef | None:
        """The location of the call; None for a session that does not exist."""
        if request.snapshot is not None:
            return request.snapshot.location
        return await self._log.location(request.at)

    async def read(self, at: Address) -> Session:
        """The session as it is now."""
        return await self._log.read(at)
