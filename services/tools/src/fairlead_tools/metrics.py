"""The metrics of a tool worker. Labels are bounded: no session ids, no names from a model."""

from typing import Final

from prometheus_client import Counter, Gauge, Histogram

CALLS: Final = Counter("fairlead_tool_calls", "Tool call requests, by how they ended.", ("end",))
OUTPUTS_CUT: Final = Counter(
    "fairlead_tool_output_lossy", "Outputs that could not be kept whole: the model saw both ends."
)
RUN_SECONDS: Final = Histogram(
    "fairlead_tool_run_seconds",
    "How long tools ran, by tool and end. Tools that others registered count as `registered`.",
    ("tool", "end"),
    buckets=(0.001, 0.005, 0.01, 0.05, 0.1, 0.5, 1, 5, 15, 60, 300, 1800),
)
CALLS_RUNNING: Final = Gauge("fairlead_tool_calls_running", "Tool calls running now.")
OBSERVATION_SECONDS: Final = Histogram(
    "fairlead_observation_seconds",
    "How long one sample of a location's context took.",
    buckets=(0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5),
)
LOCATION_LOOKS: Final = Counter(
    "fairlead_location_looks",
    "Looks at the files of a location: `warm` from memory, because nothing changed, or `read`.",
    ("from",),
)
WATCHES: Final = Gauge("fairlead_watches", "Files and directories that this worker watches.")
SNAPSHOT_SECONDS: Final = Histogram(
    "fairlead_file_snapshot_seconds",
    "How long one snapshot of a location's files took.",
    buckets=(0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30),
)
SNAPSHOTS_FAILED: Final = Counter(
    "fairlead_file_snapshots_failed",
    "Snapshots of files that failed: their steps cannot be reverted.",
)
SOURCES_UNAVAILABLE: Final = Counter(
    "fairlead_sources_unavailable",
    "Context sources that could not be observed; those of other services count as `plugin`.",
    ("source", "why"),
)
