"""Shares the slots of one process between tenants. Pure: time is an argument.

A queue delivers in order of arrival. So a full process looks through the queue and puts back what it
cannot start. Later it recalls those messages in turn: one of each tenant, then the next of each.
"""

from collections import Counter, OrderedDict, deque
from typing import Final, Generic, NamedTuple, TypeVar

from fairlead_eventlog.slots import Slots
from fairlead_schema.ids import TenantId

Message = TypeVar("Message")

# One slot in so many is kept for tenants that run nothing, and at least one if there are some slots.
RESERVE_PART: Final = 16
RESERVE_SLOTS_MIN: Final = 4
# A recalled message that did not come for this long went to another process.
RECALL_S: Final = 0.1
EXTRA_MAX: Final = 256


class _PutBack(NamedTuple, Generic[Message]):
    """A message that the queue delivers again by itself at a time."""

    message: Message
    until: float


class TenantShares(Generic[Message]):
    """Which tenant's message may have a slot now, and which messages that were put back come next."""

    def __init__(self, slots: Slots) -> None:
        self._slots = slots
        self._running: Counter[TenantId] = Counter()
        self._waiting: OrderedDict[TenantId, deque[_PutBack[Message]]] = OrderedDict()
        """The tenant whose turn is next comes first."""
        self._idle: OrderedDict[TenantId, None] = OrderedDict()
        """The waiting tenants that ran nothing when they came: their turn is before all others."""
        self._recalled: list[tuple[float, TenantId]] = []
        self._extra = 0
        """How many more to recall, because other processes seem to have free slots."""
        self._last_tenant: TenantId | None = None
        self._has_several_tenants = False
        self.waiting = 0
        """How many messages this process has put back, as far as it knows."""

    @property
    def is_full(self) -> bool:
        """Whether no slot is left for a tenant that runs something already."""
        return self._spare <= self._reserve

    @property
    def expects_recalled(self) -> bool:
        """Whether messages were recalled that did not come yet."""
        return bool(self._recalled)

    @property
    def capacity(self) -> int:
        """How many messages to ask for."""
        return min(self._slots.free, max(self._slots.free - self._reserve, len(self._recalled)))

    def start(self, tenant: TenantId, now: float, *, was_put_back: bool = False) -> bool:
        """Whether a message of the tenant may start now. It then counts as running.

        A message that some process put back had its turn there, and may come to this one instead.
        """
        self._note(tenant)
        if not self._may_start(tenant, now, was_put_back=was_put_back):
            if was_put_back:  # Nobody else had a slot for it.
                self._extra = 0
            return False
        self._running[tenant] += 1
        return True

    def end(self, tenant: TenantId) -> None:
        """Count a message as done."""
        self._running[tenant] -= 1
        if self._running[tenant] <= 0:
            del self._running[tenant]

    def put_back(self, tenant: TenantId, message: Message, *, until: float) -> None:
        """Note a message that waits in its queue until a time, unless it is recalled."""
        if self._is_idle(tenant):
            self._idle[tenant] = None
        self._waiting.setdefault(tenant, deque()).append(_PutBack(message, until))
        self.waiting += 1

    def recall(self, now: float) -> list[Message]:
        """The messages that may start now: the queue should deliver them at once.

        Some may have gone to other processes. Those have free slots then, so more are recalled.
        """
        outstanding = [item for item in self._recalled if item[0] > now]
        if len(outstanding) < len(self._recalled):
            self._extra = min(max(1, 2 * self._extra), EXTRA_MAX)
        self._recalled = outstanding
        messages = self.give_away(self._extra, now) if self._extra else []
        while self._spare > 0 and (tenant := self._next_tenant(now)) is not None:
            messages.append(self._pop(tenant))
            self._recalled.append((now + RECALL_S, tenant))
        return messages

    def give_away(self, count: int, now: float) -> list[Message]:
        """Up to so many messages for another process that has free slots."""
        messages: list[Message] = []
        while len(messages) < count and (tenant := self._next_waiting(now)) is not None:
            messages.append(self._pop(tenant))
        return messages

    @property
    def _spare(self) -> int:
        return self._slots.free - len(self._recalled)

    @property
    def _reserve(self) -> int:
        """A process that has served a single tenant keeps nothing for others."""
        limit = self._slots.limit
        if not self._has_several_tenants or limit < RESERVE_SLOTS_MIN:
            return 0
        return max(1, limit // RESERVE_PART)

    def _note(self, tenant: TenantId) -> None:
        if self._last_tenant not in {None, tenant}:
            self._has_several_tenants = True
        self._last_tenant = tenant

    def _may_start(self, tenant: TenantId, now: float, *, was_put_back: bool) -> bool:
        if self._slots.free <= 0:
            return False
        if was_put_back and self._recalled:
            own = (item for item in self._recalled if item[1] == tenant)
            self._recalled.remove(next(own, self._recalled[0]))
            return True
        if self._spare <= 0:
            return False
        if not self._running[tenant]:
            return True
        # A message that came now must not overtake those that wait for their turn.
        return not self.is_full and self._next_waiting(now) is None

    def _next_tenant(self, now: float) -> TenantId | None:
        """The next tenant in turn that may have a slot."""
        tenant = self._next_waiting(now)
        return tenant if not self.is_full or tenant in self._idle else None

    def _is_idle(self, tenant: TenantId) -> bool:
        return not self._running[tenant] and all(tenant != other for _, other in self._recalled)

    def _next_waiting(self, now: float) -> TenantId | None:
        while self._waiting:
            tenant = next(iter(self._idle or self._waiting))
            if self._drop_stale(tenant, now):
                return tenant
            del self._waiting[tenant]
            self._idle.pop(tenant, None)
        return None

    def _drop_stale(self, tenant: TenantId, now: float) -> bool:
        """Forget messages that the queue delivers by itself by now. Whether any other is left."""
        waiting = self._waiting[tenant]
        while waiting and waiting[0].until <= now:
            waiting.popleft()
            self.waiting -= 1
        return bool(waiting)

    def _pop(self, tenant: TenantId) -> Message:
        """The tenant's oldest message. The tenant's next turn comes after all others."""
        self._idle.pop(tenant, None)
        waiting = self._waiting[tenant]
        message = waiting.popleft().message
        self.waiting -= 1
        if waiting:
            self._waiting.move_to_end(tenant)
        else:
            del self._waiting[tenant]
        return message
