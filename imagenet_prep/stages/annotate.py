"""Converts annotation archives or folders to raw-data/imagenet_2012_bounding_boxes.csv, by the
original's rules.

The archive is streamed, never unpacked; workers parse a few hundred files at a time.
"""

from __future__ import annotations

import hashlib
import itertools
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from msgspec import Struct, convert, to_builtins

from imagenet_prep.errors import InputError, UsageError, named
from imagenet_prep.escaping import command
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.annotation_xml import LARGEST, AnnotationFault, parse_annotation
from imagenet_prep.ilsvrc2012.astray import refuse_astray
from imagenet_prep.ilsvrc2012.box_archives import BoxFiles, File, box_files_at
from imagenet_prep.ilsvrc2012.box_search import BOX_ARCHIVES, BOX_FOLDERS, find_annotations
from imagenet_prep.ilsvrc2012.boxes import encode_boxes
from imagenet_prep.ilsvrc2012.raw_data import hint_to_raw_data_below
from imagenet_prep.model import Box, Done, Engine, Failed, Problem, ProblemKind, Progress, Silent
from imagenet_prep.sources.tar_members import REMEDY
from imagenet_prep.storage.files import (
    absence_of,
    kind_of,
    lack_of,
    load_json,
    save_bytes,
    save_json,
)
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath, local_path, refuse_url
from imagenet_prep.storage.lock import hold

RULES_VERSION = 2
"""Part of the fingerprint: increased when the same annotations would give another CSV."""

_BATCH = 256

_EXAMPLES = {
    facts.TRAIN: "n01440764/n01440764_10026.xml",
    facts.VALIDATION: "ILSVRC2012_val_00000001.xml",
}
"""A file of each split's annotations, as the last part of its path."""


class BoxTotals(Struct, frozen=True):
    """Counts of one split's annotations.

    Args:
        files: annotation files read, including bad ones (the original of train: facts.BOX_FILES).
        images: files with at least one box (the original of train: all of them).
        boxes: boxes in the CSV (the original of train: facts.BOXES).
        other_class: boxes skipped because their file's first name is another of the 1000 classes.
        no_area: boxes skipped because no part of them is within the image.
        ended_early: files in which an xmin of exactly -1 ended the list.
        other_files: files skipped because their folder is not one of the 1000 classes.
    """

    files: int = 0
    images: int = 0
    boxes: int = 0
    other_class: int = 0
    no_area: int = 0
    ended_early: int = 0
    other_files: int = 0

    @property
    def without(self) -> int:
        """Files of the 1000 classes without a box, including bad files."""
        return self.files - self.images - self.other_files


class BoxesSummary(Struct, frozen=True):
    """One split's part of an AnnotateSummary.

    ``problems`` are the unreadable files; ``up_to_date`` means that nothing was left to do.
    """

    split: str
    source: AnyPath
    csv_path: Path
    totals: BoxTotals
    problems: tuple[Problem, ...]
    up_to_date: bool


class AnnotateSummary(Struct, frozen=True):
    """The summary of annotate: train, then validation if requested."""

    splits: tuple[BoxesSummary, ...]


def annotate(
    layout: Layout,
    engine: Engine,
    *,
    boxes: Path | None = None,
    validation: bool = False,
    progress: Progress | None = None,
) -> AnnotateSummary:
    """Write the CSV of train boxes, and of validation boxes if requested, unless it exists for the
    same input.

    Args:
        layout: the folder of the archives and the CSV.
        engine: parses the files.
        boxes: another archive of ``<wnid>/*.xml`` (.tar.gz or .tar) or an unpacked folder of them,
            for train.
        validation: also make the CSV of validation boxes.
        progress: reports bytes or files read.

    Raises:
        InputError: an archive is corrupt, unpacks to far too much, or does not exist.
        UsageError: ``boxes`` does not exist, is a broken link, or is a URL.
        SpaceError, BusyError: no space is left, or another run works here.
    """
    layout.refuse_urls()
    if boxes is not None:
        refuse_url(boxes)
    progress = progress or Silent()
    sources = {facts.TRAIN: _find_source(facts.TRAIN, layout, boxes)}
    if validation:
        sources[facts.VALIDATION] = _find_source(facts.VALIDATION, layout, None)
    with hold(layout.all_lock_paths, instead=layout.advice_if_read_only):
        splits = [
            _annotate_split(split, source, layout, engine, progress)
            for split, source in sources.items()
        ]
        return AnnotateSummary(tuple(splits))


def _annotate_split(
    split: str, source: BoxFiles, layout: Layout, engine: Engine, progress: Progress
) -> BoxesSummary:
    fingerprint = {"input": source.identity(), "rules": RULES_VERSION}
    csv_path = local_path(layout.boxes_csv if split == facts.TRAIN else layout.validation_boxes_csv)
    recalled = _recall(layout, split, fingerprint, csv_path)
    if recalled is not None:
        totals = recalled.totals
        problems = tuple(itertools.starmap(_problem, recalled.problems))
        return BoxesSummary(split, source.path, csv_path, totals, problems, up_to_date=True)
    result = _read_all(source, split, engine, progress)
    content = b"".join(sorted(result.lines.splitlines(keepends=True)))
    save_bytes(csv_path, content)
    _save_state(layout, split, fingerprint, content, result)
    totals = BoxTotals(**result.totals)
    return BoxesSummary(split, source.path, csv_path, totals, result.problems, up_to_date=False)


# input --------------------------------------------------------------------------------------------


def _find_source(split: str, layout: Layout, boxes: Path | None) -> BoxFiles:
    if boxes is not None:
        return _source_at(boxes)
    source = find_annotations(layout, split)
    if source is None:
        archive = facts.ARCHIVES[BOX_ARCHIVES[split]]
        refuse_astray(layout, archive.key)
        expected = f"expected {archive.filename} or a folder {BOX_FOLDERS[split][0]}"
        if split == facts.TRAIN:
            expected += ", or your own with --boxes"
        raise InputError(
            lack_of(layout.raw_dir, f"no annotations of {split} images in {layout.raw_dir}"),
            expected,
            hint_to_raw_data_below(layout, find_annotations)
            or command("download", layout.data_dir, (("only", archive.key),)),
        )
    return source


def _source_at(boxes: Path) -> BoxFiles:
    """The annotations at a given path; it is refused if it is no archive and no folder."""
    if kind_of(boxes) in ("nothing", "other"):
        raise UsageError(
            absence_of(boxes), "expected an archive of annotations or an unpacked folder of them"
        )
    return box_files_at(boxes)


# the work -----------------------------------------------------------------------------------------


class _Result(Struct, frozen=True):
    """Unordered CSV lines, counts, and unreadable files."""

    lines: bytes
    totals: Counter[str]
    problems: tuple[Problem, ...]


def _read_all(source: BoxFiles, split: str, engine: Engine, progress: Progress) -> _Result:
    results: list[_Result] = []
    try:
        for outcome in engine.map(_Parser(split), _batches(source.files(progress))):
            if not isinstance(outcome, Done):
                raise _batch_error(outcome, source)
            results.append(outcome.value)
    finally:
        progress.end()
    if not results:
        is_official = source.path.name == facts.ARCHIVES[BOX_ARCHIVES[split]].filename
        is_folder = source.path.is_dir()
        where = (
            f"{source.path} and the folders directly in it hold"
            if is_folder
            else f"{source.path} holds"
        )
        raise InputError(
            f"{where} no annotations: no file ends with .xml",
            f"expected XML files of Pascal VOC's form, such as {_EXAMPLES[split]}",
            REMEDY if is_official else "use another path, or convert your boxes to such files",
        )
    lines = b"".join(result.lines for result in results)
    totals: Counter[str] = sum((result.totals for result in results), Counter())
    problems = itertools.chain.from_iterable(result.problems for result in results)
    return _Result(lines, totals, tuple(sorted(problems, key=str)))


def _batch_error(failed: Failed[list[File]], source: BoxFiles) -> Exception:
    """The error of a batch, with the names of its files."""
    (folder, name, _), *later_files = failed.task
    place = f"{source.path}, {folder}/{name}.xml"
    if later_files:
        count = len(later_files)
        others = f"one of the {count} files" if count > 1 else "the file"
        place += f" or {others} after it"
    return named(failed.error, place)


def _batches(files: Iterable[File]) -> Iterator[list[File]]:
    batch: list[File] = []
    size = 0
    for file in files:
        batch.append(file)
        size += len(file[2])
        if len(batch) == _BATCH or size > 8 * LARGEST:
            yield batch
            batch, size = [], 0
    if batch:
        yield batch


class _Parser(Struct, frozen=True):
    """Parses a batch of files in a worker."""

    split: str

    def __call__(self, batch: list[File]) -> _Result:
        """The boxes of a batch; an unreadable file is a Problem."""
        rows: list[tuple[str, Box]] = []
        problems: list[Problem] = []
        totals: Counter[str] = Counter()
        for folder, name, content in batch:
            try:
                boxes, counts = read_file(self.split, folder, name, content)
            except AnnotationFault as fault:
                subject = os.fsencode(f"{folder}/{name}.xml").decode("utf-8", "backslashreplace")
                problems.append(_problem(subject, str(fault)))
                totals["files"] += 1
            else:
                rows += [(f"{name}.JPEG", box) for box in boxes]
                totals.update(counts)
        return _Result(encode_boxes(rows), totals, tuple(problems))


def read_file(
    split: str, folder: str, name: str, content: bytes
) -> tuple[tuple[Box, ...], dict[str, int]]:
    """The boxes to keep of one annotation, and its counts, named as in BoxTotals.

    A file's boxes are skipped if its first name is another of the 1000 classes. Any other name
    counts, because the annotations of dogs have names such as "Scottish_deerhound". The folder
    gives the class. The file name gives the image, which may be of any class.

    Raises:
        AnnotationFault: it can't be read, or the original could not have written its name to the
            CSV and read it back.
    """
    wnid = _wnid_of(split, folder, name)
    if wnid not in facts.labels():
        return (), {"files": 1, "other_files": 1}
    annotation = parse_annotation(content)
    boxes = annotation.boxes
    counts = {"files": 1, "ended_early": int(annotation.ended_early)}
    if annotation.label != wnid and annotation.label in facts.labels():
        return (), {**counts, "other_class": len(boxes) + annotation.no_area}
    counts |= {"images": int(bool(boxes)), "boxes": len(boxes), "no_area": annotation.no_area}
    return boxes, counts


_usable = re.compile(r"[^.,\x00-\x1f\x7f\ud800-\udfff][^,\x00-\x1f\x7f\ud800-\udfff]*").fullmatch
"""Whether a name isn't hidden and fits in the CSV: no comma, no control character, UTF-8."""


_EXPECTED = "expected "
"""The first word about a file that has a wrong name; others are about its content."""

_EXPECTED_FOLDER = f"{_EXPECTED}it in the folder of a class"


def _wnid_of(split: str, folder: str, name: str) -> str:
    """The class of an annotation's folder; for validation, the class of its image."""
    if split == facts.TRAIN:
        if not facts.is_wnid(folder):
            raise AnnotationFault(f"{_EXPECTED_FOLDER}, like n01440764/n01440764_1.xml")
        if not _usable(name):
            raise AnnotationFault(
                f"{_EXPECTED}the name of its image, such as {folder}_1.xml: in UTF-8, without "
                "commas, control characters or a dot at its start"
            )
        return folder
    number = facts.validation_number(f"{name}.JPEG")
    if number is None:
        raise AnnotationFault(
            f"{_EXPECTED}the name of its image, from ILSVRC2012_val_00000001.xml to "
            "ILSVRC2012_val_00050000.xml"
        )
    return facts.validation_wnids()[number - 1]


_IN_ARCHIVE = "(unpack an archive first, and pack it again), and run annotate again"


def _problem(subject: str, detail: str) -> Problem:
    """The problem of an annotation; one that was read by its wrong name can be renamed."""
    remedy = "nothing is required: convert gives the image of such a file no boxes"
    if detail.startswith(_EXPECTED_FOLDER):
        remedy = f"to get its boxes, move it into the folder of its class {_IN_ARCHIVE}"
    elif detail.startswith(_EXPECTED):
        remedy = f"to get its boxes, give it the name of its image {_IN_ARCHIVE}"
    return Problem(ProblemKind.BAD_ANNOTATION, subject, detail, remedy)


# the state of an earlier run ----------------------------------------------------------------------


class _RecordedBoxes(Struct, frozen=True, omit_defaults=True):
    """The entry of a split; each of ``problems`` is its subject and detail, and ``raw`` the folder
    that --raw named.
    """

    made_from: dict[str, Any]
    csv_sha256: str
    totals: BoxTotals
    problems: tuple[tuple[str, str], ...]
    raw: str = ""


def _load_state(layout: Layout) -> dict[str, _RecordedBoxes]:
    """The entries of earlier runs, by split; none if this program did not write them."""
    try:
        return convert(load_json(layout.annotate_path), dict[str, _RecordedBoxes])
    except ValueError:
        return {}


def _recall(
    layout: Layout, split: str, fingerprint: dict[str, Any], csv_path: Path
) -> _RecordedBoxes | None:
    """The result of an earlier run, if it had the same input and its CSV is unchanged."""
    recorded = _load_state(layout).get(split)
    if recorded is None or recorded.made_from != fingerprint:
        return None
    return recorded if recorded.csv_sha256 == _digest(csv_path) else None


def _save_state(
    layout: Layout, split: str, fingerprint: dict[str, Any], content: bytes, result: _Result
) -> None:
    recorded = _RecordedBoxes(
        made_from=fingerprint,
        csv_sha256=hashlib.sha256(content).hexdigest(),
        totals=BoxTotals(**result.totals),
        problems=tuple((problem.subject, problem.detail) for problem in result.problems),
        raw="" if layout.reads_own_raw else str(layout.raw_dir.resolve()),
    )
    save_json(layout.annotate_path, to_builtins({**_load_state(layout), split: recorded}))


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
