"""What a tool worker counts. Labels are bounded: never a session id, never a name a model made up."""

from typing import Final

from prometheus_client import Counter, Gauge

CALLS: Final = Counter("fairlead_tool_calls", "Tool call requests, by how they ended.", ("end",))
LOSSY: Final = Counter(
    "fairlead_tool_output_lossy", "Outputs that could not be kept whole: the model saw both ends."
)
RUNNING: Final = Gauge("fairlead_tool_calls_running", "Tool calls running now.")
