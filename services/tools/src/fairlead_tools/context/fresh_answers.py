"""Answers of registered sources that count until a change is announced or their time is over."""

import time
from collections import OrderedDict
from typing import Final, NamedTuple

from fairlead_schema.context import ObservedSource
from fairlead_schema.ids import TenantId

ANSWERS_MAX: Final = 512


class Question(NamedTuple):
    """What a source was asked, and where."""

    tenant: TenantId
    key: str
    subject: str
    body: bytes


class FreshAnswer(NamedTuple):
    """An answer and the end of its time. Without a source, the service has no value now."""

    source: ObservedSource | None
    until: float


class FreshAnswers:
    """The answers that a worker may use again. It keeps none before it hears of changes."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Question, FreshAnswer] = OrderedDict()
        self._hears_changes = False
        self.changes = 0
        """How many changes this worker has heard of."""

    def start(self) -> None:
        """Keep answers from now on."""
        self._hears_changes = True

    def find(self, question: Question) -> FreshAnswer | None:
        """The answer to a question that still counts."""
        kept = self._kept.get(question)
        if kept is None or kept.until <= time.monotonic():
            return None
        self._kept.move_to_end(question)
        return kept

    def keep(
        self, question: Question, source: ObservedSource | None, fresh_s: float, *, asked_at: int
    ) -> None:
        """Keep an answer, unless a change came after its question: the answer may be older."""
        if fresh_s <= 0 or not self._hears_changes or asked_at != self.changes:
            return
        self._kept[question] = FreshAnswer(source, time.monotonic() + fresh_s)
        if len(self._kept) > ANSWERS_MAX:
            self._kept.popitem(last=False)

    def forget(self, tenant: TenantId | None, key: str | None) -> None:
        """Forget the answers of a source; of all sources without a tenant."""
        self.changes += 1
        stale = [
            question
            for question in self._kept
            if tenant is None or (question.tenant, question.key) == (tenant, key)
        ]
        for question in stale:
            del self._kept[question]
