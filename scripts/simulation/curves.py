"""Curves of the simulation, drawn by matplotlib as SVG: small, light, the same bytes each time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

Points = Sequence[tuple[float, float]]

COLOURS = ("#1f5fa8", "#c2571a", "#3a7d44", "#7a4a9e")


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart: its title, what its axes say, and its curves by name; ``line`` is drawn across at that height."""

    title: str
    across: str
    up: str
    curves: Mapping[str, Points]
    line: float | None = None
    top: float | None = None


def draw(charts: Sequence[Chart], path: Path) -> None:
    """Draw all charts side by side, two in a row."""
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams.update({"svg.hashsalt": "scale", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 9})
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(
        (len(charts) + 1) // 2, 2, figsize=(9, 3.2 * ((len(charts) + 1) // 2)), squeeze=False
    )
    for chart, axis in zip(charts, axes.flat, strict=False):
        for (name, points), colour in zip(chart.curves.items(), COLOURS, strict=False):
            axis.plot(*zip(*points, strict=True), color=colour, marker="o", markersize=3, linewidth=1.4, label=name)
        if chart.line is not None:
            axis.axhline(chart.line, color="#888888", linewidth=0.8, linestyle="--")
        axis.set_xscale("log")
        axis.set_title(chart.title, fontsize=10, loc="left")
        axis.set_xlabel(chart.across)
        axis.set_ylabel(chart.up)
        axis.set_ylim(0 if chart.line is None else 1, chart.top)
        axis.grid(color="#e4e4e4", linewidth=0.6)
        axis.spines[["top", "right"]].set_visible(False)
        axis.legend(frameon=False, fontsize=8)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, format="svg", facecolor="white", metadata={"Date": None})
    text = "\n".join(line.rstrip() for line in path.read_text().splitlines())
    path.write_text(f"{text}\n")
