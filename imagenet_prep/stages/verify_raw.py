"""verify_raw: lists a copy of images and checks each one, and gives a RawVerdict: would convert
take it, is it right?

Nothing is written.
"""

from __future__ import annotations

from collections.abc import Iterator

from imagenet_prep.checks.checked_dataset import CheckedDataset
from imagenet_prep.checks.raw_check import ImageFindings, check_images, shown_twins
from imagenet_prep.checks.raw_verdict import RawListing, RawTotal, RawVerdict
from imagenet_prep.checks.verdict import Depth, level_of
from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.registry import ILSVRC2012
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import listed, number_of

_QUICK = "names and numbers are right. A quick check does not read the content of the images."


def verify_raw(
    layout: Layout,
    engine: Engine,
    *,
    dataset: CheckedDataset = ILSVRC2012,
    options: MakingOptions | None = None,
    depth: Depth | None = None,
    progress: Progress | None = None,
) -> RawVerdict:
    """Check a copy before it is converted: what is there, what is missing, and whether every image
    is sound.

    "quick" lists names and numbers; "full" reads every image and its header; "decode" decodes every
    image. None: decode, except the images of an archive with the published MD5, and those of a
    recipe that checks headers alone. An official archive's MD5 is computed unless download has
    verified it, or the check is quick.

    Raises:
        InputError: there is nothing to check.
        UsageError: the recipe is wrong.
    """
    progress = progress or Silent()
    options = options or dataset.options
    listing = dataset.list_raw(layout, engine, options, progress, depth)
    findings = ImageFindings()
    if listing.depth != "quick":
        findings = check_images(listing.splits, engine, progress)
    problems_across_images, claim = listing.judge(findings)
    problems = (*listing.problems, *findings.problems, *problems_across_images)
    problem_kinds = {problem.kind for problem in problems}
    level = level_of(claim.level, problem_kinds, depth=listing.depth)
    reason = ""
    if not problems:
        reason = claim.reason or _QUICK
    totals = map(RawTotal.take, listing.splits)
    return RawVerdict(
        raw=str(layout.raw_dir),
        depth=listing.depth,
        problems=problems,
        totals=tuple(totals),
        level=level,
        reason=reason,
        counts=_counts(listing, findings),
        notes=(*listing.notes, *_notes(findings), *_note_on_shards(layout)),
        odd=tuple(findings.odd.names),
        warned=tuple(findings.warned.names),
        twins=tuple(findings.twins),
        dataset=listing.dataset,
    )


def _counts(listing: RawListing, findings: ImageFindings) -> dict[str, int]:
    counts = {
        "damaged": findings.damaged,
        "warned": findings.warned.total,
        "odd": findings.odd.total,
        "skipped": listing.skipped,
    }
    return {name: count for name, count in counts.items() if count}


def _note_on_shards(layout: Layout) -> Iterator[Hint]:
    """A note that the shards of a set made in the same DATA_DIR were not looked at.

    Other shards may be those that a recipe reads.
    """
    if not (layout.plan_path.exists() or layout.manifest_path.exists()):
        return
    shard_count = len(layout.find_shards())
    if shard_count:
        subject = f"only images were checked, and not the {number_of(shard_count, 'shard')} in "
        verify_shards = command("verify", layout.output_dir)
        yield Hint(f"{subject}{layout.output_dir}; to verify shards: ", verify_shards)


def _notes(findings: ImageFindings) -> Iterator[str]:
    """Notes about odd and warned images, and images with the same bytes."""
    for group, images in (("odd", findings.odd), ("warned", findings.warned)):
        for remark, count in sorted(images.counts.items()):
            ending = f" ({remark})"
            names = [name for name in images.names if name.endswith(ending)]
            image_names = listed(name.removesuffix(ending) for name in names)
            image_count = number_of(count, "image")
            yield f"{group}: {image_count}, {remark}: {image_names}"
    if findings.twin_count:
        twins = shown_twins(findings)
        yield f"the same bytes under two names: {twins}"
