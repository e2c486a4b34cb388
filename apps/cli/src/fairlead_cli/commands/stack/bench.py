"""`fairlead bench`: measures a stack of its own, prints tables, writes JSON."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import uvloop

from fairlead_cli import terminal
from fairlead_cli.bench.suite import Results, run_scale_out, run_suite

DEFAULT = Path(".bench/bench.json")


def configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--out", type=Path, default=DEFAULT, help=f"JSON file ({DEFAULT})")
    parser.add_argument(
        "--scale", type=float, default=1.0, help="factor for the number of samples (1.0)"
    )
    parser.add_argument(
        "--mode",
        choices=("both", "always", "relaxed"),
        default="both",
        help="sync of commits to disk (both)",
    )


def run(args: argparse.Namespace) -> int:
    """Measure with a sync of every commit to disk, and again without it."""
    console = terminal.stderr_console()
    modes = {"both": (False, True), "always": (False,), "relaxed": (True,)}[args.mode]
    runs: list[dict[str, object]] = []
    for relaxed in modes:
        console.print("relaxed:" if relaxed else "sync always:")
        results = uvloop.run(run_suite(relaxed=relaxed, scale=args.scale, progress=console.print))
        _show(results)
        runs.append(results.to_json())
    runs.append(_run_scale_out(args.scale, console.print))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(runs, indent=2) + "\n")
    console.print(f"written to {args.out}")
    return 0


def _run_scale_out(scale: float, progress: Callable[[str], None]) -> dict[str, object]:
    """The same load with one runner and with two, and the take-over when one of two is killed."""
    (one_runner, _), (two_runners, take_over) = (
        uvloop.run(run_scale_out(runners=runners, scale=scale, progress=progress))
        for runners in (1, 2)
    )
    assert take_over is not None, "of two runners one takes over"
    timings = {
        "64 sessions, 1 runner": one_runner,
        "64 sessions, 2 runners": two_runners,
        "take-over after SIGKILL": take_over,
    }
    grid = terminal.table("scale-out", "p50 ms", "p99 ms", "per second")
    for name, timing in timings.items():
        grid.add_row(name, f"{timing.p50_ms:.1f}", f"{timing.p99_ms:.1f}", f"{timing.per_s:,.1f}")
    terminal.stdout_console().print(grid, "", sep="\n")
    return {"mode": "scale-out", **{name: timing.to_json() for name, timing in timings.items()}}


def _show(results: Results) -> None:
    out = terminal.stdout_console()
    timings = terminal.table(results.mode, "p50 ms", "p99 ms", "per second")
    for name, timing in results.timings.items():
        timings.add_row(
            name, f"{timing.p50_ms:.2f}", f"{timing.p99_ms:.2f}", f"{timing.per_s:,.0f}"
        )
    figures = terminal.table("figure", "value")
    for name, value in results.figures.items():
        figures.add_row(name, f"{value:,.1f}")
    ratios = terminal.table("ratio", "value", "to reach", "")
    for ratio in results.ratios:
        sign = "≤" if ratio.at_most else "≥"
        verdict = "reached" if ratio.is_met else "missed"
        ratios.add_row(ratio.name, f"{ratio.value:.3f}", f"{sign} {ratio.target}", verdict)
    out.print(timings, "", figures, "", ratios, "", sep="\n")
