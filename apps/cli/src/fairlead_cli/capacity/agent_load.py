"""Computes what a workload needs from the measured figures: cores, processes, memory and disk."""

import math
from dataclasses import dataclass
from typing import Final

from fairlead_cli.capacity.figures import SERVERS, Figures

UTILISATION: Final = 0.6
"""How busy a core may be on average, so that bursts and the death of a process find room."""
PROJECTORS_MAX: Final = 8
COMMITS_OF_A_PROMPT: Final = 3
COMMITS_OF_A_CALL: Final = 3
REDUNDANT: Final = 2
"""Each service runs at least twice, so that a deploy or a death is not noticed."""
_SERVICES: Final = ("ingest", "runner", "tools", "projector", "gateway")
_DAY_S: Final = 86_400
_GB: Final = 1e9


@dataclass(frozen=True, slots=True)
class AgentLoad:
    """Agents that work at the same time. Each takes a step of its model every `step_s` seconds."""

    agents: float
    step_s: float = 10.0
    steps_per_prompt: float = 10.0
    """Of so many steps the first answers a prompt. Each of the others follows a call."""
    fragments_per_step: float = 100.0
    text_bytes_per_step: float = 4_000.0
    """Prompts, answers, arguments and outputs."""
    watchers: float = 1.0
    """Event streams that clients have open for each agent."""
    hours_per_day: float = 24.0
    days: float = 90.0
    """How long sessions stay in the log and the read models."""
    feed_days: float = 7.0
    replicas: int = 3

    @property
    def steps_per_s(self) -> float:
        return self.agents / self.step_s

    @property
    def prompts_per_s(self) -> float:
        return self.steps_per_s / self.steps_per_prompt

    @property
    def calls_per_s(self) -> float:
        return self.steps_per_s - self.prompts_per_s


@dataclass(frozen=True, slots=True)
class PartNeed:
    """What one service or server needs."""

    cores: float
    processes: int
    memory_gb: float


@dataclass(frozen=True, slots=True)
class Plan:
    """What a workload needs in all. The work of the tools themselves comes on top."""

    needs: dict[str, PartNeed]
    commits_per_s: float
    log_gb: float
    """On each node that has a copy; so are the other sizes."""
    feed_gb: float
    postgres_gb: float
    nats_nodes: int

    @property
    def cores(self) -> float:
        return sum(need.cores for need in self.needs.values())


def plan(workload: AgentLoad, figures: Figures) -> Plan:
    """The needs of a workload."""
    commits_per_s = (
        workload.prompts_per_s * COMMITS_OF_A_PROMPT + workload.calls_per_s * COMMITS_OF_A_CALL
    )
    nodes = math.ceil(commits_per_s / (figures.commits_per_s * UTILISATION))
    return Plan(
        needs={name: _need(name, workload, figures) for name in (*_SERVICES, *SERVERS)},
        commits_per_s=commits_per_s,
        log_gb=_stored_gb("log", workload, figures, workload.days),
        feed_gb=_stored_gb("feed", workload, figures, workload.feed_days),
        postgres_gb=_stored_gb("postgres", workload, figures, workload.days),
        nats_nodes=max(nodes, workload.replicas),
    )


def busy_cores(name: str, workload: AgentLoad, figures: Figures) -> float:
    """The processor time that one service or server uses in a second."""
    fragments_per_s = workload.steps_per_s * workload.fragments_per_step
    busy_ms = (
        workload.prompts_per_s * figures.prompt_ms.get(name, 0.0)
        + workload.calls_per_s * figures.call_ms.get(name, 0.0)
        + fragments_per_s * figures.fragment_us.get(name, 0.0) / 1000
    )
    if name == "gateway":
        further = max(0.0, workload.watchers - 1)
        busy_ms += fragments_per_s * further * figures.watcher_us / 1000
    if name == "nats":
        # Every copy is written by another node.
        busy_ms *= workload.replicas
    return busy_ms / 1000


def _need(name: str, workload: AgentLoad, figures: Figures) -> PartNeed:
    cores = busy_cores(name, workload, figures) / UTILISATION
    if name in SERVERS:
        return PartNeed(cores, workload.replicas if name == "nats" else 1, 0.0)
    processes = max(REDUNDANT, math.ceil(cores))
    if name == "projector":
        processes = min(processes, PROJECTORS_MAX)
    each_kb = figures.session_kb
    if name == "gateway":
        each_kb = figures.watcher_kb * workload.watchers
    used_kb = each_kb * workload.agents
    return PartNeed(cores, processes, (processes * figures.process_mb + used_kb / 1000) / 1000)


def _stored_gb(store: str, workload: AgentLoad, figures: Figures, days: float) -> float:
    per_s = (
        workload.prompts_per_s * figures.prompt_bytes[store]
        + workload.calls_per_s * figures.call_bytes[store]
        + workload.steps_per_s * workload.text_bytes_per_step * figures.text_factor[store]
    )
    return per_s * workload.hours_per_day / 24 * _DAY_S * days / _GB
