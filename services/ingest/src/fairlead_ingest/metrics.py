"""The metrics of ingest: every prompt that it received was admitted, refused or put back.

The labels are bounded: how a prompt came, and the tag of a refusal.
"""

from typing import Final, Literal, TypeAlias

from prometheus_client import Counter
from typing_extensions import override

from fairlead_schema.errors import Refused
from fairlead_service.rpc.verb_metrics import RequestCount

Path: TypeAlias = Literal["verb", "intake"]

RECEIVED: Final = Counter("fairlead_prompts_received", "Prompts that ingest received.", ["path"])
ADMITTED: Final = Counter(
    "fairlead_prompts_admitted", "Prompts that got a receipt, exact retries among them.", ["path"]
)
REFUSED: Final = Counter(
    "fairlead_prompts_refused", "Prompts that got a refusal, by its tag.", ["path", "tag"]
)
PUT_BACK: Final = Counter(
    "fairlead_prompts_put_back",
    "Published prompts that got no answer: they come again, or become dead letters.",
)
REPEATED: Final = Counter(
    "fairlead_prompts_repeated", "Exact retries among the admitted prompts: nothing was written."
)


class PromptCount(RequestCount):
    """Counts the prompts of one path. A prompt that is lost leaves a difference that stays."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._received = RECEIVED.labels(path)
        self._admitted = ADMITTED.labels(path)

    @override
    def receive(self) -> None:
        self._received.inc()

    @override
    def answer(self, refused: Refused | None) -> None:
        if refused is None:
            self._admitted.inc()
        else:
            REFUSED.labels(self._path, refused.tag).inc()
