"""Prints what convert, merge and export made."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from imagenet_prep.cli.printing.findings_text import print_findings
from imagenet_prep.cli.terminal import say, tell
from imagenet_prep.text import listed, number_of, size_text

if TYPE_CHECKING:
    from imagenet_prep.checks.verdict import Verdict
    from imagenet_prep.shards.convert_summary import ConvertSummary
    from imagenet_prep.stages.export import ExportSummary

SHOWN_IMAGES = 5
"""Images that a line names."""


def print_convert(summary: ConvertSummary, quiet: bool, expected: Sequence[str]) -> None:
    """Print shards and images of each split and unusual events,
    after splits that are ``expected`` and absent.
    """
    from imagenet_prep.state.manifest import changed_boxes_text

    split_names = {split.split for split in summary.splits}
    for name in expected:
        if name not in split_names:
            tell(f"convert: {name}: no images")
    if quiet:
        return
    for note in summary.notes:
        if note.startswith("warning: "):
            tell(note)
    for split in summary.splits:
        images = number_of(split.images, "image")
        shards = number_of(split.shards, "shard")
        tell(f"convert: {split.split}: {images} in {shards}, {split.made:,} made now")
        _print_changes(split.repairs)
        if split.changed_boxes:
            boxes = changed_boxes_text(split.changed_boxes)
            tell(f"  {boxes}")
        _print_warned(split.warned)
        _print_set_aside(split.set_aside)
    _print_names(summary)
    print_findings(summary.problems)  # set aside: they require no action


def print_merge(summary: ConvertSummary, verdict: Verdict, quiet: bool) -> None:
    """Print shards and images of each split, how many images were set aside,
    and the quick verdict.
    """
    from imagenet_prep.cli.printing.verdict_text import print_conclusion

    if quiet:
        return
    for split in summary.splits:
        images = number_of(split.images, "image")
        shards = number_of(split.shards, "shard")
        tell(f"merge: {split.split}: {images} in {shards}")
        _print_warned(split.warned)
        _print_set_aside(split.set_aside)
    _print_names(summary)
    print_conclusion(verdict)


def _print_warned(warned: Sequence[str]) -> None:
    """Print the images that are unusual though their pixels are whole;
    ``warned`` are those of ShardInfo.
    """
    if warned:
        images = number_of(len(warned), "image")
        names = listed(warned, SHOWN_IMAGES)
        tell(f"  unusual, but no pixel is damaged: {images}: {names}")


def _print_names(summary: ConvertSummary) -> None:
    """Print the file that names the images that were set aside."""
    if summary.set_aside and summary.named_in is not None:
        tell(f"  {summary.named_in} names each image that was set aside")


def _print_set_aside(count: int) -> None:
    if count:
        images = number_of(count, "image")
        tell(f"  set aside: {images}")


def _print_changes(repairs: Sequence[str]) -> None:
    """Print changes to images other than encoding; ``repairs`` are those of ShardInfo."""
    from imagenet_prep.images.prepare import TURNED, count_changes

    turned_mark = f" ({TURNED})"
    repaired = [repair for repair in repairs if not repair.endswith(turned_mark)]
    if repaired:
        names = listed(repaired, SHOWN_IMAGES)
        tell(f"  repaired: {names}")
    counts = count_changes(repairs)
    _print_recoded(counts)
    if counts[TURNED]:
        images = number_of(counts[TURNED], "image")
        tell(f"  rotated by their EXIF orientation: {images}")


def _print_recoded(counts: Mapping[str, int]) -> None:
    """Print how many images of each format became JPEGs, and what they lost;
    ``counts`` are those of count_changes.
    """
    from imagenet_prep.images import ENDINGS, LOST

    recoded: dict[str, int] = {}
    for ending in ENDINGS:
        count = counts[ending.lower()]
        if count:
            recoded[ending] = count
    if not recoded:
        return
    images = " and ".join(number_of(count, ending) for ending, count in recoded.items())
    jpegs = "an 8-bit JPEG" if sum(recoded.values()) == 1 else "8-bit JPEGs"
    text = f"  {images} became {jpegs}"
    losses: list[str] = []
    for name in LOST:
        if counts[name]:
            lost_part = "the lower 8 of 16 bits" if name == "16 bits" else name
            losses.append(f"{lost_part} in {number_of(counts[name], 'image')}")
    if losses:
        loss_list = ", ".join(losses)
        text += f": lost {loss_list}"
    tell(text)


def print_export(summary: ExportSummary, quiet: bool) -> None:
    """Print the content of each split of an export."""
    if quiet:
        return
    if not summary.files:
        _print_exported(summary)
    elif not summary.usage:  # a line of code names the files itself
        for name in summary.files:
            tell(f"wrote {summary.out / name}")
    if summary.left_out:
        damaged = number_of(summary.left_out, "damaged record")
        tell(f"  set aside: {damaged}; {summary.named_in} names each")
    if summary.usage:
        say(summary.usage)


def _print_exported(summary: ExportSummary) -> None:
    for split in summary.splits:
        records = number_of(split.records, "record")
        shards = number_of(split.shards, "shard")
        size = size_text(split.size)
        made = number_of(split.made, "shard")
        tell(f"export: {split.split}: {records} of {shards} ({size}), {made} exported now")
