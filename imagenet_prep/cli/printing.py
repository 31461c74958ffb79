"""Prints summaries and tables for people."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from imagenet_prep.cli.command_outcome import begin_lines, write_line
from imagenet_prep.cli.terminal import is_closed, say, tell
from imagenet_prep.escaping import command
from imagenet_prep.fetch import SIGN_UP_URL
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.text import listed, number_of, size_text

if TYPE_CHECKING:
    from imagenet_prep.checks.raw_verdict import RawVerdict
    from imagenet_prep.checks.verdict import Verdict
    from imagenet_prep.model import Problem
    from imagenet_prep.pipeline import RepairRun, RunSummary
    from imagenet_prep.shards.convert_summary import ConvertSummary
    from imagenet_prep.stages.annotate import AnnotateSummary
    from imagenet_prep.stages.diff import Difference, SplitDifference
    from imagenet_prep.stages.download import DownloadSummary
    from imagenet_prep.stages.export import ExportSummary
    from imagenet_prep.stages.init import InitSummary
    from imagenet_prep.stages.report import ReportSummary
    from imagenet_prep.stages.show import ShownRecord
    from imagenet_prep.stages.status import Status
    from imagenet_prep.stages.untar import UntarSummary
    from imagenet_prep.storage.space import Need

SHOWN_PROBLEMS = 20
SHOWN_CLASSES = 20


def print_init(summary: InitSummary, quiet: bool) -> None:
    """Print the evidence, the recipe, and the command that uses it."""
    if not quiet:
        tell(f"found {summary.found}", *summary.evidence)
        if summary.classes:
            counts = [f"{name} {count:,}" for name, count in summary.classes.items()]
            in_all = f" ({len(counts):,} in all)" if len(counts) > SHOWN_CLASSES else ""
            tell(f"classes: {listed(counts, SHOWN_CLASSES)}{in_all}", f"labels: {summary.labels}")
        tell(*(Hint("skipped: ", text) for text in summary.passed), *summary.warnings)
        say(f"wrote {summary.recipe}:", "", *summary.text.split("\n"))
        shards = f"{summary.recipe.stem}-shards"
        tell(Hint("next: ", command("convert", Path(shards), (("config", summary.recipe),))))


def print_example_list(examples: Mapping[str, str]) -> None:
    """Print the names of the recipes, each with its data set."""
    listing = click.HelpFormatter()
    listing.write_dl([*examples.items()])
    say(*listing.getvalue().splitlines())


def print_example(recipe: Path, text: str) -> None:
    """Print a recipe that was copied, and the command that uses it."""
    say(f"wrote {recipe}:", "", *text.split("\n"))
    tell(Hint("next: ", command("convert", Path(f"{recipe.stem}-shards"), (("config", recipe),))))


def print_run(summary: RunSummary, quiet: bool) -> None:
    """Print the summary of each stage of a run."""
    if summary.download is not None:
        print_download(summary.download, quiet)
    if summary.untar is not None:
        print_untar(summary.untar, quiet)
    if summary.annotate is not None:
        print_annotate(summary.annotate, quiet)
    print_convert(summary.convert, quiet, facts.SPLITS)


def print_needs(needs: Sequence[Need]) -> None:
    """Print the needs of each step per file system, and the free space there."""
    from imagenet_prep.storage.space import rooms_for

    for room in rooms_for(needs):
        rows = [("step", "for", "space", "files")]
        for need in room.needs:
            rows.append((need.step, need.what, size_text(need.size), f"{need.files:,}"))
        rows.append(("", "needed", size_text(room.size), f"{room.files:,}"))
        free_files = "no limit" if room.free_files is None else f"{room.free_files:,}"
        rows.append(("", "free", size_text(room.free), free_files))
        tell(f"on the file system of {room.folder}:")
        _print_table(rows, left=2, indent="  ")
    if any(need.is_about for need in needs):
        tell("Space and files are estimates where an archive is not listed yet.")
    if not needs:
        tell("Nothing is left to download or make.")


def _print_table(rows: Sequence[Sequence[str]], *, left: int, indent: str = "") -> None:
    """Print columns; the first ``left`` of them are aligned left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    for row in rows:
        cells = []
        for column, (text, width) in enumerate(zip(row, widths, strict=True)):
            cells.append(text.ljust(width) if column < left else text.rjust(width))
        say(indent + "  ".join(cells))


def print_download(summary: DownloadSummary, quiet: bool) -> None:
    """Print the archives that were downloaded, and those that existed."""
    if not quiet:
        fetched = ", ".join(summary.fetched) or "nothing"
        text = f"download: fetched {fetched} ({size_text(summary.size)})"
        if summary.present:
            text += f"; {number_of(len(summary.present), 'archive')} already there"
        tell(text, error=is_closed())  # the download is complete, read or not


def print_untar(summary: UntarSummary, quiet: bool) -> None:
    """Print images and classes of each split."""
    if not quiet:
        for split in summary.splits:
            count = (
                f"{number_of(split.images, 'image')} in "
                f"{number_of(split.classes, 'class', 'classes')}"
            )
            tell(f"untar: {split.split}: {count}, {split.written:,} written now")


def print_convert(summary: ConvertSummary, quiet: bool, expected: Sequence[str]) -> None:
    """Print shards and images of each split and unusual events,
    after splits that are ``expected`` and absent.
    """
    from imagenet_prep.state.manifest import changed_boxes_text

    split_names = {split.split for split in summary.splits}
    tell(*(f"convert: {split}: no images" for split in expected if split not in split_names))
    if quiet:
        return
    tell(*(note for note in summary.notes if note.startswith("warning: ")))
    for split in summary.splits:
        tell(
            f"convert: {split.split}: {number_of(split.images, 'image')} in "
            f"{number_of(split.shards, 'shard')}, "
            f"{split.made:,} made now"
        )
        _print_changes(split.repairs)
        if split.changed_boxes:
            tell(f"  {changed_boxes_text(split.changed_boxes)}")
        _print_warned(split.warned)
        _print_set_aside(split.set_aside)
    _print_names(summary)
    _print_findings(summary.problems)  # set aside: they require no action


def print_merge(summary: ConvertSummary, verdict: Verdict, quiet: bool) -> None:
    """Print shards and images of each split, how many images were set aside,
    and the quick verdict.
    """
    for split in () if quiet else summary.splits:
        tell(
            f"merge: {split.split}: {number_of(split.images, 'image')} in "
            f"{number_of(split.shards, 'shard')}"
        )
        _print_warned(split.warned)
        _print_set_aside(split.set_aside)
    if not quiet:
        _print_names(summary)
        print_conclusion(verdict)


def _print_warned(warned: Sequence[str]) -> None:
    """Print the images that are unusual though their pixels are whole;
    ``warned`` are those of ShardInfo.
    """
    if warned:
        tell(f"  warned, pixels whole: {number_of(len(warned), 'image')}: {listed(warned, 5)}")


def _print_names(summary: ConvertSummary) -> None:
    """Print the file that names the images that were set aside."""
    if summary.set_aside and summary.named_in is not None:
        tell(f"  {summary.named_in} names each image that was set aside")


def _print_set_aside(count: int) -> None:
    if count:
        tell(f"  set aside: {number_of(count, 'image')}")


def _print_changes(repairs: Sequence[str]) -> None:
    """Print changes to images other than encoding; ``repairs`` are those of ShardInfo."""
    from imagenet_prep.images.prepare import TURNED, count_changes

    repaired = [repair for repair in repairs if not repair.endswith(f" ({TURNED})")]
    if repaired:
        tell(f"  repaired: {listed(repaired, 5)}")
    counts = count_changes(repairs)
    _print_recoded(counts)
    if counts[TURNED]:
        tell(f"  rotated by their EXIF orientation: {number_of(counts[TURNED], 'image')}")


def _print_recoded(counts: Mapping[str, int]) -> None:
    """Print how many images of each format became JPEGs, and what they lost;
    ``counts`` are those of count_changes.
    """
    from imagenet_prep.images import ENDINGS, LOST

    recoded = {ending: counts[ending.lower()] for ending in ENDINGS if counts[ending.lower()]}
    if not recoded:
        return
    images = " and ".join(number_of(count, ending) for ending, count in recoded.items())
    jpegs = "an 8-bit JPEG" if sum(recoded.values()) == 1 else "8-bit JPEGs"
    losses = ", ".join(f"{name} of {counts[name]:,}" for name in LOST if counts[name])
    tell(f"  {images} became {jpegs}" + (f": lost {losses}" if losses else ""))


def print_annotate(summary: AnnotateSummary, quiet: bool) -> None:
    """Print files and boxes of each split, with the original's totals, and unreadable files."""
    if quiet:
        return
    for split in summary.splits:
        totals = split.totals
        of_files = of_boxes = ""
        if split.split == facts.TRAIN:
            of_files = f" (original: {facts.BOX_FILES:,})"
            of_boxes = f" (original: {facts.BOXES:,})"
        state = "up to date" if split.up_to_date else "written"
        tell(
            f"annotate: {split.split}: {number_of(totals.files, 'file')}{of_files}, "
            f"{number_of(totals.boxes, 'box', 'boxes')}{of_boxes}, {state}"
        )
        tell(
            f"  left out: {number_of(totals.other_class, 'box', 'boxes')} of another class, "
            f"{totals.no_area:,} without area; lists ended by xmin -1: {totals.ended_early:,}; "
            f"files of other classes: {totals.other_files:,}"
        )
        tell(
            f"  {number_of(totals.images, 'image has', 'images have')} boxes; "
            f"{number_of(totals.without, 'file was', 'files were')} left without any"
        )
        _print_problems(split.problems)


def print_verdict(verdict: Verdict) -> None:
    """Print a table of splits, notes, every finding, the verdict in one line,
    and what was left out or changed.
    """
    rows: list[tuple[str, ...]] = [("split", "shards", "images", "of", "classes", "boxes", "size")]
    for total in verdict.totals:
        numbers = (total.shards, total.records, total.expected, total.classes or None, total.boxes)
        texts = ("-" if number is None else f"{number:,}" for number in numbers)
        rows.append((total.split, *texts, size_text(total.bytes)))
    _print_table(rows, left=1)
    if verdict.depth != "quick":
        _print_nature(verdict)
    for note in verdict.notes:
        tell(Hint("note: ", note))
    _print_problems(verdict.shown_problems)
    print_conclusion(verdict)


def _print_nature(verdict: Verdict) -> None:
    """Print the kind of records, their order, and the fingerprint."""
    if verdict.flavour != "recipe":
        differences = "; ".join(verdict.differences)
        tell(f"records: {verdict.flavour}" + (f", but {differences}" if differences else ""))
        is_unknown = verdict.order == "unknown"
        reason = ": not all shards and file names can be read" if is_unknown else ""
        tell(f"order: {verdict.order}{reason}")
    tell(f"fingerprint: {verdict.fingerprint or 'none: not every shard can be read'}")


def print_raw_verdict(verdict: RawVerdict) -> None:
    """Print a table of splits, notes, the first problems of each kind,
    the verdict in one line, and counts.
    """
    rows: list[tuple[str, ...]] = [("split", "in", "images", "of", "classes", "boxes", "size")]
    for total in verdict.totals:
        expected = "-" if total.expected is None else f"{total.expected:,}"
        boxes = f"{total.boxes:,}" if total.boxes else "-"
        numbers = f"{total.images:,}", expected, f"{total.classes:,}", boxes, size_text(total.bytes)
        rows.append((total.split, total.place, *numbers))
    if verdict.totals:
        _print_table(rows, left=2)
    for note in verdict.notes:
        tell(Hint("note: ", note))
    for problem in verdict.shown_problems:
        # a file that is no entry is in the detail
        subject = f"{problem.subject}: " if problem.subject else ""
        tell(f"{subject}{problem.detail}", lead=f"{problem.kind.value}: ", colour="red")
    _print_remedies(verdict.shown_problems)
    print_conclusion(verdict)


def print_conclusion(verdict: Verdict | RawVerdict, *, error: bool = False) -> None:
    """Print the verdict in one line, and in a second what was left out or changed."""
    from imagenet_prep.checks.verdict import RIGHT

    colour = "green" if verdict.level in RIGHT else "yellow"
    tell(verdict.conclusion, colour="red" if verdict.problems else colour, error=error)
    if verdict.remarks:
        tell(verdict.remarks, error=error)


def print_repair(run: RepairRun, quiet: bool) -> None:
    """Print each shard that was made again, and what was wrong with it."""
    if quiet:
        return
    for name in run.repair.made:
        kinds = ", ".join(kind.value for kind in run.found.faulty.get(name, ()))
        tell(f"repair: {name} made again ({kinds})")
    for name in run.repair.unchanged:
        tell(f"repair: {name} unchanged: it is as convert made it")
    if not run.repair.made:
        tell("repair: nothing to make again")


def print_report(summary: ReportSummary, quiet: bool) -> None:
    """Print where the page is, notes, and the verdict."""
    say(str(summary.path))
    for note in () if quiet else (*summary.verdict.notes, *summary.remarks):
        tell(Hint("note: ", note), error=True)
    if not quiet:
        print_conclusion(summary.verdict, error=True)


def print_export(summary: ExportSummary, quiet: bool) -> None:
    """Print the content of each split of an export."""
    if not quiet:
        for split in summary.splits:
            tell(
                f"export: {split.split}: {number_of(split.records, 'image')} of "
                f"{number_of(split.shards, 'shard')} ({size_text(split.size)}), "
                f"{number_of(split.made, 'shard')} exported now"
            )
        if summary.left_out:
            tell(
                f"  set aside: {number_of(summary.left_out, 'damaged record')}; "
                f"{summary.named_in} names each"
            )
        if summary.usage:
            say(summary.usage)


def print_diff(difference: Difference, limit: int) -> None:
    """Print the differences of each split: counts, then the first records by name,
    each feature with both values.
    """
    place_a, place_b = difference.places
    say(f"A: {place_a}", f"B: {place_b}", *difference.problems)
    for split in difference.splits:
        _print_split_diff(split, difference, limit)
    if difference.is_same:
        tell("Both sets hold the same records in the same places.", colour="green")


def _print_split_diff(split: SplitDifference, difference: Difference, limit: int) -> None:
    records_a, records_b = split.records
    shards_a, shards_b = split.shards
    say(
        f"{split.split}: {records_a:,} records in {number_of(shards_a, 'shard')}, "
        f"{records_b:,} in {shards_b:,} (A / B)"
    )
    if split.other_shards:
        shown = listed(split.other_shards, SHOWN_PROBLEMS)
        say(f"  {number_of(len(split.other_shards), 'shard')} with other bytes: {shown}")
        say(
            "  a manifest doesn't tell whether their features differ: compare the shards themselves"
        )
    if split.moved:
        say(f"  {number_of(split.moved, 'record')} in another place")
    if split.encoded_differently:
        say(f"  the same records, encoded differently: {split.encoded_differently:,}")
    for place, names in zip(("A", "B"), split.only, strict=True):
        if names:
            say(f"  {number_of(len(names), 'record')} only in {place}: {listed(names, limit or 1)}")
    if split.differing:
        _print_differing(split, "bytes" if difference.by_bytes else "content", limit)


def _print_differing(split: SplitDifference, compared_part: str, limit: int) -> None:
    say(f"  {number_of(len(split.differing), 'record')} with other {compared_part}:")
    compared = ""
    if split.compared != len(split.differing):
        compared = f" of the {split.compared:,} that were compared"
    for feature, count in split.differing_features.items():
        say(f"    {feature} differs in {number_of(count, 'record')}{compared}")
    if split.differing[:limit]:
        say("  each record's shard and number, and its values: A / B")
    for record in split.differing[:limit]:
        say(f"  {record.name}    ({' / '.join(dict.fromkeys(record.places))})")
        if record.features == {}:
            say("    the same features, encoded differently")
        for feature, (value_a, value_b) in (record.features or {}).items():
            say(f"    {feature}: {value_a} / {value_b}")
    if len(split.differing) > limit:
        say(f"  and {len(split.differing) - limit:,} more")


def print_status(status: Status) -> None:
    """Print one line per stage, and the next command."""
    if status.running:
        tell(f"running: {status.running}")
    for stage in status.stages:
        tell(Hint(f"{stage.stage:10}{stage.state:12}", stage.detail), hang=22)
    tell(Hint("next: ", status.following))


def print_records(records: Iterable[ShownRecord]) -> int:
    """Print the features of records, one line each, and write each record as a line of JSON;
    returns the number of records.
    """
    count = 0
    begin_lines()
    for record in records:
        count += 1
        write_line(record.as_dict())
        say(*record.lines())
    return count


def print_demo(summary: RunSummary, quiet: bool) -> None:
    """Print each stage of the demo, without its intended oddities."""
    if quiet:
        return
    if summary.download is not None:
        print_download(summary.download, quiet)
    if summary.untar is not None:
        print_untar(summary.untar, quiet)
    for annotated in summary.annotate.splits if summary.annotate else ():
        files = number_of(annotated.totals.files, "file")
        boxes = number_of(annotated.totals.boxes, "box", "boxes")
        tell(f"annotate: {annotated.split}: {files}, {boxes}")
    for split in summary.convert.splits:
        tell(
            f"convert: {split.split}: {number_of(split.images, 'image')} in "
            f"{number_of(split.shards, 'shard')}"
        )


def print_demo_end(data_dir: Path | None) -> None:
    """Print the next commands, for the demo and for ImageNet."""
    if data_dir is not None:
        shard = data_dir / "train-00000-of-00008"
        show = command("show", shard, (("limit", 1),))
        report = command("report", data_dir, (("open", True),))
        tell("", Hint("Look at a record:       ", show))
        tell(Hint("Look at all of it:      ", report))
    tell(
        "",
        f"The real ImageNet requires about 330 GB. Sign up at {SIGN_UP_URL}, then:",
        "  export IMAGENET_USERNAME=... IMAGENET_ACCESS_KEY=...",
        Hint("  ", command("run", "/data/imagenet")),
    )


def _print_problems(problems: tuple[Problem, ...]) -> None:
    """Print the first problems, then each of their remedies once."""
    _print_findings(problems)
    _print_remedies(_first_of(problems))


def _print_findings(problems: tuple[Problem, ...]) -> None:
    """Print the first problems, and the number of the others."""
    shown = _first_of(problems)
    for problem in shown:
        tell(f"{problem.subject}: {problem.detail}", lead=f"{problem.kind.value}: ", colour="red")
    if len(shown) < len(problems):
        tell(f"... and {len(problems) - len(shown):,} more")


def _first_of(problems: tuple[Problem, ...]) -> tuple[Problem, ...]:
    """The problems to print: the first ones, and the last one if it is the only other:
    it may count for several.
    """
    if len(problems) == SHOWN_PROBLEMS + 1:
        return problems
    return problems[:SHOWN_PROBLEMS]


def _print_remedies(problems: Iterable[Problem]) -> None:
    for remedy in dict.fromkeys(problem.remedy for problem in problems if problem.remedy):
        tell(Hint("to do: ", remedy))
