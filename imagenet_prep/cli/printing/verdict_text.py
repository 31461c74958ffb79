"""print_verdict: the verdict about shards or images; and what repair and report did."""

from __future__ import annotations

from typing import TYPE_CHECKING

from imagenet_prep.cli.printing.findings_text import (
    print_finding,
    print_problems,
    print_remedies,
)
from imagenet_prep.cli.printing.text_table import print_table
from imagenet_prep.cli.terminal import say, tell
from imagenet_prep.hints import Hint
from imagenet_prep.text import size_text

if TYPE_CHECKING:
    from imagenet_prep.checks.raw_verdict import RawVerdict
    from imagenet_prep.checks.verdict import Verdict
    from imagenet_prep.pipeline import RepairRun
    from imagenet_prep.stages.report import ReportSummary

Row = tuple[str, ...]


def print_verdict(verdict: Verdict, *, quiet: bool = False) -> None:
    """Print a table of splits, notes unless quiet, every finding, the verdict in one line,
    and what was left out or changed.
    """
    rows: list[Row] = [("split", "shards", "images", "of", "classes", "boxes", "size")]
    for total in verdict.totals:
        classes = total.classes or None
        numbers = (total.shards, total.records, total.expected, classes, total.boxes)
        size = size_text(total.bytes)
        rows.append((total.split, *map(_number_text, numbers), size))
    print_table(rows, left=1)
    if verdict.depth != "quick":
        _print_nature(verdict)
    _print_notes(verdict, quiet)
    print_problems(verdict.shown_problems)
    print_conclusion(verdict)


def _print_notes(verdict: Verdict | RawVerdict, quiet: bool) -> None:
    if quiet:
        return
    for note in verdict.notes:
        tell(Hint("note: ", note))


def _number_text(number: int | None) -> str:
    if number is None:
        return "-"
    return f"{number:,}"


def _print_nature(verdict: Verdict) -> None:
    """Print the kind of records, their order, and the fingerprint; a rank judges none of them."""
    if not verdict.flavour:
        return
    if verdict.flavour != "recipe":
        records = f"records: {verdict.flavour}"
        if verdict.differences:
            differences = "; ".join(verdict.differences)
            records += f", but {differences}"
        tell(records)
        order = f"order: {verdict.order}"
        if verdict.order == "unknown":
            order += ": it requires all shards, complete, with ImageNet's file name in every record"
        tell(order)
    fingerprint = verdict.fingerprint or "none: a shard is missing, or can't be read to its end"
    tell(f"fingerprint: {fingerprint}")


def print_final_verdict(verdict: Verdict, status: int, quiet: bool) -> None:
    """Print the verdict after other work; if quiet, only if the exit status is not 0."""
    if status or not quiet:
        print_verdict(verdict, quiet=quiet)


def print_raw_verdict(verdict: RawVerdict, *, quiet: bool = False) -> None:
    """Print a table of splits, notes unless quiet, the first problems of each kind,
    the verdict in one line, and counts.
    """
    rows: list[Row] = [("split", "in", "images", "of", "classes", "boxes", "size")]
    for total in verdict.totals:
        boxes = total.boxes or None
        numbers = (total.images, total.expected, total.classes, boxes)
        size = size_text(total.bytes)
        rows.append((total.split, total.place, *map(_number_text, numbers), size))
    if verdict.totals:
        print_table(rows, left=2)
    _print_notes(verdict, quiet)
    for problem in verdict.shown_problems:
        # a file that is no entry is in the detail
        subject = f"{problem.subject}: " if problem.subject else ""
        print_finding(problem, subject)
    print_remedies(verdict.shown_problems)
    print_conclusion(verdict)


def print_conclusion(verdict: Verdict | RawVerdict, *, error: bool = False) -> None:
    """Print the verdict in one line, and in a second what was left out or changed."""
    from imagenet_prep.checks.verdict import RIGHT

    colour = "yellow"
    if verdict.problems:
        colour = "red"
    elif verdict.level in RIGHT:
        colour = "green"
    tell(verdict.conclusion, colour=colour, error=error)
    if verdict.remarks:
        tell(verdict.remarks, error=error)


_FOUND = {"missing-shard": "missing"}
"""Kinds of faults of a shard whose name would not describe the shard."""


def print_repair(run: RepairRun, quiet: bool) -> None:
    """Print each shard that was made again, and what was wrong with it."""
    if quiet:
        return
    for name in run.repair.made:
        faults = run.found.faulty.get(name, ())
        fault_list = ", ".join(_FOUND.get(fault.value, fault.value) for fault in faults)
        tell(f"repair: {name} made again (before: {fault_list})")
    for name in run.repair.unchanged:
        tell(f"repair: {name} unchanged: it is as convert made it")
    if not run.repair.made:
        tell("repair: nothing to make again")


def print_report(summary: ReportSummary, quiet: bool) -> None:
    """Print where the page is, notes, and the verdict."""
    say(str(summary.path))
    if quiet:
        return
    verdict = summary.verdict
    for note in (*verdict.notes, *summary.remarks):
        tell(Hint("note: ", note), error=True)
    print_conclusion(verdict, error=True)
