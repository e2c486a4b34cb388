"""`fairlead bench`: measures, prints a table, writes JSON."""

import argparse
import json
from collections.abc import Callable
from pathlib import Path

import uvloop

from fairlead_cli import terminal
from fairlead_cli.bench.suite import Results, measured, scaled

DEFAULT = Path(".bench/bench.json")


def configure(parser: argparse.ArgumentParser) -> None:
    """Say the options."""
    parser.add_argument("--out", type=Path, default=DEFAULT, help=f"JSON file ({DEFAULT})")
    parser.add_argument("--scale", type=float, default=1.0, help="more or fewer samples (1.0)")
    parser.add_argument(
        "--mode", choices=("both", "always", "relaxed"), default="both", help="disk promises (both)"
    )


def run(args: argparse.Namespace) -> int:
    """Measure with every commit on disk, and again without that promise."""
    remarks = terminal.remarks()
    modes = {"both": (False, True), "always": (False,), "relaxed": (True,)}[args.mode]
    runs: list[dict[str, object]] = []
    for relaxed in modes:
        remarks.print("relaxed:" if relaxed else "sync always:")
        results = uvloop.run(measured(relaxed=relaxed, scale=args.scale, progress=remarks.print))
        _show(results)
        runs.append(results.told())
    runs.append(_scale_out(args.scale, remarks.print))
    args.out.parent.mkdir(parents=True, exist_ok=True)
    args.out.write_text(json.dumps(runs, indent=2) + "\n")
    remarks.print(f"written to {args.out}")
    return 0


def _scale_out(scale: float, progress: Callable[[str], None]) -> dict[str, object]:
    """The same load with one runner and with two; and one of two killed while it works."""
    (one, _), (two, taken) = (
        uvloop.run(scaled(runners=runners, scale=scale, progress=progress)) for runners in (1, 2)
    )
    assert taken is not None, "of two runners one takes over"
    timings = {
        "64 sessions, 1 runner": one,
        "64 sessions, 2 runners": two,
        "take-over after SIGKILL": taken,
    }
    shown = terminal.table("scale-out", "p50 ms", "p99 ms", "per second")
    for name, timed in timings.items():
        shown.add_row(name, f"{timed.p50_ms:.1f}", f"{timed.p99_ms:.1f}", f"{timed.per_s:,.1f}")
    terminal.answers().print(shown, "", sep="\n")
    return {"mode": "scale-out", **{name: timed.told() for name, timed in timings.items()}}


def _show(results: Results) -> None:
    out = terminal.answers()
    timings = terminal.table(results.mode, "p50 ms", "p99 ms", "per second")
    for name, timed in results.timings.items():
        timings.add_row(name, f"{timed.p50_ms:.2f}", f"{timed.p99_ms:.2f}", f"{timed.per_s:,.0f}")
    figures = terminal.table("figure", "value")
    for name, value in results.figures.items():
        figures.add_row(name, f"{value:,.1f}")
    ratios = terminal.table("ratio", "value", "to reach", "")
    for ratio in results.ratios:
        sign = "≤" if ratio.at_most else "≥"
        word = "reached" if ratio.reached else "missed"
        ratios.add_row(ratio.name, f"{ratio.value:.3f}", f"{sign} {ratio.target}", word)
    out.print(timings, "", figures, "", ratios, "", sep="\n")
