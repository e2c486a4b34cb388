"""How a webhook fares. The state is stored when it changes, not at each delivery."""

from fairlead_eventlog.register_ports import Records
from fairlead_schema.ids import TenantId
from fairlead_schema.webhooks.record import WebhookRecord, WebhookState, is_gone
from fairlead_service.ids import now_ms


class WebhookHealth:
    """The state of one webhook, as this process knows it."""

    def __init__(
        self, states: Records, tenant: TenantId, record: WebhookRecord, state: WebhookState
    ) -> None:
        self._states = states
        self._tenant = tenant
        self._record = record
        self.state = state

    @property
    def gone(self) -> bool:
        """Whether the receiver said that it is gone."""
        return is_gone(self._record, self.state)

    async def note_success(self) -> None:
        """The receiver accepted a delivery."""
        if self.state != WebhookState():
            await self._store(WebhookState())

    async def note_failure(self, reason: str | None) -> None:
        """An attempt failed."""
        if self.gone:
            return
        if self.state.failing_since is None or self.state.reason != reason:
            since = self.state.failing_since or now_ms()
            await self._store(WebhookState(failing_since=since, reason=reason))

    async def note_gone(self, reason: str | None) -> None:
        """The receiver answered 410: nothing is sent until somebody changes the webhook."""
        if not self.gone:
            await self._store(
                WebhookState(gone_since=now_ms(), gone_change=self._record.changed, reason=reason)
            )

    async def _store(self, state: WebhookState) -> None:
        self.state = state
        value = state.model_dump_json(by_alias=True, exclude_none=True).encode()
        await self._states.put(self._tenant, self._record.id, value)
