"""The figures of each command's summary, as --json writes them; docs/cli.md lists the keys."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from msgspec import to_builtins

from imagenet_prep.hints import as_text
from imagenet_prep.storage.location import AnyPath

if TYPE_CHECKING:
    from imagenet_prep.checks.verdict import Verdict
    from imagenet_prep.model import Problem
    from imagenet_prep.pipeline import RepairRun, RunSummary
    from imagenet_prep.shards.convert_summary import ConvertSummary, SplitSummary
    from imagenet_prep.stages.annotate import AnnotateSummary
    from imagenet_prep.stages.download import DownloadSummary
    from imagenet_prep.stages.export import ExportSummary
    from imagenet_prep.stages.init import InitSummary
    from imagenet_prep.stages.report import ReportSummary
    from imagenet_prep.stages.untar import UntarSummary
    from imagenet_prep.storage.layout import Layout
    from imagenet_prep.storage.space import Need


def run_figures(summary: RunSummary, layout: Layout) -> dict[str, Any]:
    """The figures of each stage, null for one that was not needed."""
    download = untar = annotate = None
    if summary.download is not None:
        download = download_figures(summary.download, layout.own_raw_dir)
    if summary.untar is not None:
        untar = untar_figures(summary.untar, layout.own_raw_dir)
    if summary.annotate is not None:
        annotate = annotate_figures(summary.annotate)
    return {
        **verdict_figures(summary.verify),
        "download": download,
        "untar": untar,
        "annotate": annotate,
        "convert": convert_figures(summary.convert, layout.output_dir),
    }


def verdict_figures(verdict: Verdict) -> dict[str, Any]:
    """The word of a verdict that belongs to other work, and the verdict as verify writes it."""
    return {"verdict": verdict.level, "verify": verdict.as_dict()}


def needs_figures(needs: Sequence[Need]) -> dict[str, Any]:
    """The disk space that a dry run found."""
    steps = []
    for need in needs:
        steps.append(
            {
                "step": need.step,
                "what": need.what,
                "folder": str(need.folder),
                "bytes": need.size,
                "files": need.files,
                "is_estimate": need.is_about,
            }
        )
    return {"dry_run": True, "bytes": sum(need.size for need in needs), "needs": steps}


def download_figures(summary: DownloadSummary, folder: AnyPath) -> dict[str, Any]:
    """The files that were downloaded to a folder, and those that were there."""
    return {
        "folder": str(folder),
        "bytes": summary.size,
        "fetched": [*summary.fetched],
        "present": [*summary.present],
    }


def untar_figures(summary: UntarSummary, folder: AnyPath) -> dict[str, Any]:
    """Images and classes of each split in a folder."""
    return {
        "folder": str(folder),
        "images": sum(split.images for split in summary.splits),
        "written": summary.written,
        "splits": to_builtins(summary.splits),
    }


def annotate_figures(summary: AnnotateSummary) -> dict[str, Any]:
    """Files and boxes of each split, and the CSV that holds them."""
    splits = []
    for split in summary.splits:
        splits.append(
            {
                "split": split.split,
                "source": str(split.source),
                "csv": str(split.csv_path),
                "up_to_date": split.up_to_date,
                **to_builtins(split.totals),
                "problems": problem_figures(split.problems),
            }
        )
    return {"boxes": sum(split.totals.boxes for split in summary.splits), "splits": splits}


def init_figures(summary: InitSummary) -> dict[str, Any]:
    """The recipe, and the evidence for it."""
    return {
        "recipe": str(summary.recipe),
        "structure": summary.structure,
        "found": summary.found,
        "evidence": [*summary.evidence],
        "classes": dict(summary.classes),
        "skipped": [*summary.passed],
        "warnings": [*summary.warnings],
        "class_list": None if summary.class_list is None else str(summary.class_list),
    }


def convert_figures(summary: ConvertSummary, folder: AnyPath) -> dict[str, Any]:
    """Images, shards and bytes, in all and of each split."""
    splits = [_split_figures(split) for split in summary.splits]
    return {
        "folder": str(folder),
        **_totals(splits),
        "set_aside": summary.set_aside,
        "named_in": str(summary.named_in) if summary.set_aside else None,
        "splits": splits,
        "notes": [*summary.notes],
        "problems": problem_figures(summary.problems),
    }


def _split_figures(split: SplitSummary) -> Mapping[str, Any]:
    return {
        "split": split.split,
        "images": split.images,
        "shards": split.shards,
        "made": split.made,
        "bytes": split.size,
        "set_aside": split.set_aside,
        "repaired": len(split.repairs),
        "warned": len(split.warned),
    }


def _totals(splits: Sequence[Mapping[str, Any]]) -> dict[str, int]:
    """The sums over all splits of a summary."""
    totals: dict[str, int] = {}
    for key in ("images", "shards", "made", "bytes"):
        totals[key] = sum(split[key] for split in splits)
    return totals


def repair_figures(run: RepairRun) -> dict[str, Any]:
    """The shards that were made again, and the verdict after it."""
    return {
        **verdict_figures(run.verdict),
        "made": [*run.repair.made],
        "unchanged": [*run.repair.unchanged],
    }


def report_figures(summary: ReportSummary) -> dict[str, Any]:
    """The page, and the verdict that it shows."""
    return {"page": str(summary.path), **verdict_figures(summary.verdict)}


def export_figures(summary: ExportSummary) -> dict[str, Any]:
    """The records of each split in the other format."""
    splits = []
    for split in summary.splits:
        splits.append(
            {
                "split": split.split,
                "images": split.records,
                "shards": split.shards,
                "made": split.made,
                "bytes": split.size,
            }
        )
    return {
        "format": summary.container,
        "folder": str(summary.out),
        **_totals(splits),
        "set_aside": summary.left_out,
        "named_in": str(summary.named_in) if summary.left_out else None,
        "files": [str(summary.out / name) for name in summary.files],
        "splits": splits,
    }


def problem_figures(problems: Iterable[Problem]) -> list[Any]:
    """Findings, with the keys that those of a verdict have."""
    return [to_builtins(problem, enc_hook=as_text) for problem in problems]
