"""Prints what download, untar and annotate did, and the space that the stages require."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from imagenet_prep.cli.printing.findings_text import print_problems
from imagenet_prep.cli.printing.text_table import print_table
from imagenet_prep.cli.streams import is_closed
from imagenet_prep.cli.terminal import tell
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.text import listed, number_of, size_text

if TYPE_CHECKING:
    from imagenet_prep.stages.annotate import AnnotateSummary, BoxesSummary, BoxTotals
    from imagenet_prep.stages.download import DownloadSummary
    from imagenet_prep.stages.untar import UntarSummary
    from imagenet_prep.storage.space import Need


def print_needs(needs: Sequence[Need]) -> None:
    """Print the needs of each step per file system, and the free space there."""
    from imagenet_prep.storage.space import rooms_for

    for room in rooms_for(needs):
        rows = [("step", "for", "space", "files")]
        for need in room.needs:
            size = size_text(need.size)
            rows.append((need.step, need.what, size, f"{need.files:,}"))
        needed = size_text(room.size)
        rows.append(("", "needed", needed, f"{room.files:,}"))
        free = size_text(room.free)
        free_files = "no limit" if room.free_files is None else f"{room.free_files:,}"
        rows.append(("", "free", free, free_files))
        tell(f"on the file system of {room.folder}:")
        print_table(rows, left=2, indent="  ")
    if any(need.is_about for need in needs):
        tell("Some of these numbers are estimates.")
    if not needs:
        tell("This command has nothing left to download or make.")


def print_download(summary: DownloadSummary, quiet: bool) -> None:
    """Print the archives that were downloaded, and those that existed."""
    if quiet:
        return
    fetched = ", ".join(summary.fetched) or "nothing"
    size = size_text(summary.size)
    text = f"download: fetched {fetched} ({size})"
    if summary.present:
        text += f"; already there: {listed(summary.present)}"
    tell(text, error=is_closed())  # the download is complete, read or not


def print_untar(summary: UntarSummary, quiet: bool) -> None:
    """Print images and classes of each split."""
    if quiet:
        return
    for split in summary.splits:
        images = number_of(split.images, "image")
        classes = number_of(split.classes, "class", "classes")
        tell(f"untar: {split.split}: {images} in {classes}, {split.written:,} written now")


def print_annotate(summary: AnnotateSummary, quiet: bool) -> None:
    """Print files and boxes of each split, with the totals of ILSVRC2012, and unreadable files."""
    if quiet:
        return
    for split in summary.splits:
        _print_annotated(split)


def _print_annotated(split: BoxesSummary) -> None:
    totals = split.totals
    files = number_of(totals.files, "file")
    boxes = number_of(totals.boxes, "box", "boxes")
    whole = ""
    if split.split == facts.TRAIN:
        whole = f" (all of {facts.NAME}: {facts.BOXES:,} boxes from {facts.BOX_FILES:,} files)"
    state = "unchanged" if split.up_to_date else "written"
    tell(
        f"annotate: {split.split}: {boxes} from {files}{whole}; {split.csv_path} is {state}",
        *_describe_left_out(totals),
    )
    images_with_boxes = number_of(totals.images, "image has", "images have")
    without = ""
    if totals.without:
        files_without = number_of(totals.without, "file has", "files have")
        without = f"; {files_without} no box that can be used"
    tell(f"  {images_with_boxes} boxes{without}")
    print_problems(split.problems)


def _describe_left_out(totals: BoxTotals) -> list[str]:
    """The boxes and files that annotate left out, a line for each reason."""
    counts = (
        (totals.other_class, "boxes left out, as their file names another class"),
        (totals.no_area, "boxes left out, as no part of them is within the image"),
        (totals.ended_early, "files read only up to a box with an xmin of -1"),
        (totals.other_files, "files left out, as their folder is not one of the 1,000 classes"),
    )
    return [f"  {words}: {count:,}" for count, words in counts if count]
