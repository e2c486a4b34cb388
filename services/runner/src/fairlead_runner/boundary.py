"""The safe boundary in the shell: observe once, then make everything durable before the call."""

import asyncio

from fairlead_runner import context
from fairlead_runner.ledger import Ledger
from fairlead_runner.tackle import Tackle
from fairlead_runner.voices import Speaker
from fairlead_schema.context import ContextSample
from fairlead_schema.tooling import ToolInfo
from fairlead_service import ids
from fairlead_session.boundary import TurnIds, cross, dispatch
from fairlead_session.calls import Offer
from fairlead_session.drain import TakeTurn


class Boundary:
    """Crosses boundaries of one session."""

    def __init__(self, tackle: Tackle, ledger: Ledger) -> None:
        self._tackle = tackle
        self._ledger = ledger
        self._sample: ContextSample | None = None

    async def sample(self) -> ContextSample:
        """One sample per boundary, however many moves it takes to get there."""
        if self._sample is None:
            self._sample = await context.sample(
                self._tackle.eventlog,
                self._ledger.session,
                pool=self._tackle.pool,
                timeout_s=self._tackle.settings.config.runner.observe_timeout_s,
            )
        return self._sample

    async def cross(self, move: TakeTurn, speaking: Speaker) -> Offer:
        """Cross in one commit; what was not written never happened. Raises Moved."""
        ledger = self._ledger
        sample, tools = await asyncio.gather(self.sample(), self._tools(move, speaking))
        self._sample = None
        minted = TurnIds(ids.attempt_id(), ids.message_id(), ids.message_id())
        attempt = dispatch(minted, agent=speaking.agent, model=speaking.voice.model, step=move.step)
        ledger.stage(*cross(ledger.session, move.inputs, sample, attempt, minted))
        await ledger.commit()
        runner = self._tackle.settings.config.runner
        return Offer(speaking.agent, tools, runner.calls_max, final=move.final)

    async def _tools(self, move: TakeTurn, speaking: Speaker) -> dict[str, ToolInfo]:
        if move.final:
            return {}
        return await self._tackle.catalogs.offered(self._ledger.session, speaking.agent)
