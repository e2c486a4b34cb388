"""Limits of a child process that reads hostile bytes. Uses the standard library alone."""

import resource


def limit_this_process(*, memory_bytes: int, cpu_s: int) -> None:
    """Limit the memory and the processor time of this process, and let it leave no core file."""
    resource.setrlimit(resource.RLIMIT_AS, (memory_bytes, memory_bytes))
    resource.setrlimit(resource.RLIMIT_CPU, (cpu_s, cpu_s))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
