"""Says how far the drain of a pool has come."""

from fairlead_cli.pools.drain import DrainReport
from fairlead_cli.terminal import stderr_console


class DrainProgress:
    """A line when the numbers have changed."""

    def __init__(self) -> None:
        self._shown = (0, 0)

    def __call__(self, report: DrainReport, left_s: float) -> None:
        numbers = (len(report.moved), len(report.busy))
        if numbers != self._shown:
            self._shown = numbers
            line = f"{numbers[0]} moved, {numbers[1]} still work; {left_s:.0f} s left"
            stderr_console().print(line, style="dim")
