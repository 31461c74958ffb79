"""Annotation archives or folders -> raw-data/imagenet_2012_bounding_boxes.csv, by the rules of the original.

The archive is read as a stream, never unpacked; workers parse a few hundred files at a time.
"""

from __future__ import annotations

import contextlib
import functools
import gzip
import hashlib
import operator
import os
import re
import stat
import zlib
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from imagenet_prep.errors import InputError, PrepError, UsageError, WorkerError, named
from imagenet_prep.escaping import command
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.boxes_csv import encode_boxes
from imagenet_prep.ilsvrc2012.voc import LARGEST, AnnotationFault, parse_annotation
from imagenet_prep.model import Box, Done, Engine, Problem, ProblemKind, Progress, Silent
from imagenet_prep.sources.tar_members import TarFault, stream_members
from imagenet_prep.storage.atomic import save_bytes, save_json
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.lock import hold
from imagenet_prep.storage.plain import load_json

RULES_VERSION = 2
"""Goes into the fingerprint: raised when the same annotations would give another CSV."""

INFLATION = 200
"""How often its own size an archive may unpack to. The real ones, 1 kB of repetitive XML a file, come to some 40."""

INFLATION_FLOOR = 1 << 30
"""Bytes that any archive may unpack to, however small it is."""

_BATCH = 256
_KEYS = {facts.TRAIN: "boxes", facts.VALIDATION: "validation-boxes"}
_FOLDERS = {  # Kaggle's tree
    facts.TRAIN: ("ILSVRC/Annotations/CLS-LOC/train", "Annotations/CLS-LOC/train"),
    facts.VALIDATION: ("ILSVRC/Annotations/CLS-LOC/val", "Annotations/CLS-LOC/val"),
}

File = tuple[str, str, bytes]
"""Folder name, file name without suffix, content of one annotation."""


@dataclass(frozen=True, slots=True)
class BoxTotals:
    """Counts over one split's annotations.

    Args:
        files: annotation files read, the bad ones included (the original of train: facts.BOX_FILES).
        images: files that gave at least one box (the original of train: all of them).
        boxes: boxes in the CSV (the original of train: facts.BOXES).
        other_class: boxes skipped because their file's first name is another of the 1000 classes.
        no_area: boxes skipped because nothing of them is within the image.
        ended_early: files in which an xmin of exactly -1 ended the list.
        other_files: files left out because their folder is none of the 1000 classes.
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
        """Files of the 1000 classes that gave no box, the bad ones included."""
        return self.files - self.images - self.other_files


_counts = operator.attrgetter("files", "images", "boxes", "other_class", "no_area", "ended_early", "other_files")


def add_up(parts: Iterable[BoxTotals]) -> BoxTotals:
    """The counts of all parts together."""
    return BoxTotals(*map(sum, zip(*map(_counts, parts), strict=True)))


@dataclass(frozen=True, slots=True)
class BoxesSummary:
    """One split's part of an AnnotateSummary.

    ``problems`` are the files that can't be read; ``up_to_date`` says that nothing had to be done.
    """

    split: str
    source: Path
    csv_path: Path
    totals: BoxTotals
    problems: tuple[Problem, ...]
    up_to_date: bool


@dataclass(frozen=True, slots=True)
class AnnotateSummary:
    """What annotate did: train, then validation if that was asked for."""

    splits: tuple[BoxesSummary, ...]


def annotate(
    layout: Layout,
    engine: Engine,
    *,
    boxes: Path | None = None,
    validation: bool = False,
    progress: Progress | None = None,
) -> AnnotateSummary:
    """Write the CSV of the train boxes, and of the validation boxes if asked to, unless it is there for the same input.

    Args:
        layout: where the archives are and where the CSV goes.
        engine: parses the files.
        boxes: another archive of ``<wnid>/*.xml`` (.tar.gz or .tar) or an unpacked folder of them, for train.
        validation: also make the CSV of validation boxes.
        progress: told of bytes or files read.

    Raises:
        InputError: an archive is corrupt, unpacks to far too much, or isn't there.
        UsageError: ``boxes`` isn't there.
        SpaceError, BusyError: as their names say.
    """
    progress = progress or Silent()
    with hold(layout.lock_paths):
        splits = [_annotate_split(facts.TRAIN, layout, engine, boxes, progress)]
        if validation:
            splits.append(_annotate_split(facts.VALIDATION, layout, engine, None, progress))
        return AnnotateSummary(tuple(splits))


def _annotate_split(split: str, layout: Layout, engine: Engine, given: Path | None, progress: Progress) -> BoxesSummary:
    source = _find_source(split, layout, given)
    fingerprint = {"input": _identify(source), "rules": RULES_VERSION}
    csv_path = layout.boxes_csv if split == facts.TRAIN else layout.validation_boxes_csv
    known = _recall(layout, split, fingerprint, csv_path)
    if known is not None:
        return BoxesSummary(split, source, csv_path, known.totals, known.problems, up_to_date=True)
    result = _read_all(source, split, engine, progress)
    content = b"".join(sorted(result.lines.splitlines(keepends=True)))
    save_bytes(csv_path, content)
    _save_state(layout, split, fingerprint, content, result)
    return BoxesSummary(split, source, csv_path, result.totals, result.problems, up_to_date=False)


# input ---------------------------------------------------------------------------------------------------------


def find_annotations(layout: Layout, *, validation: bool = False) -> Path | None:
    """The archive or the folder (Kaggle's tree) that holds the annotations of train or of validation, or None."""
    split = facts.VALIDATION if validation else facts.TRAIN
    archive = layout.archive_path(facts.ARCHIVES[_KEYS[split]])
    if archive.is_file():
        return archive
    folders = (layout.raw_dir / name for name in _FOLDERS[split])
    return next((folder for folder in folders if folder.is_dir()), None)


def _find_source(split: str, layout: Layout, given: Path | None) -> Path:
    source = given or find_annotations(layout, validation=split == facts.VALIDATION)
    if source is None:
        archive = facts.ARCHIVES[_KEYS[split]]
        raise InputError(
            f"no annotations of {split} images in {layout.raw_dir}",
            f"expected {archive.filename} or a folder {_FOLDERS[split][0]}",
            f"{command('download', layout.data_dir, '--only', archive.key)}",
        )
    if not source.exists():
        raise UsageError(f"{source} isn't there", "expected an archive of annotations or an unpacked folder of them")
    return source


def _identify(source: Path) -> dict[str, Any]:
    """What tells this input from another: of a file its size and time, of a folder those of every file."""
    status = source.stat()
    if source.is_file():
        return {"name": source.name, "size": status.st_size, "mtime_ns": status.st_mtime_ns}
    digest = hashlib.sha256()
    count = 0
    with _naming(source):
        for path in _xml_files(source):
            status = path.stat()
            if not stat.S_ISREG(status.st_mode):  # to read from a pipe could take for ever
                raise InputError(f"{path} is no plain file", "expected an annotation", "remove it")
            line = f"{path.parent.name}/{path.name} {status.st_size} {status.st_mtime_ns}\n"
            digest.update(os.fsencode(line))
            count += 1
    return {"name": source.name, "files": count, "sha256": digest.hexdigest()}


def _xml_files(folder: Path) -> Iterator[Path]:
    """Every *.xml in the folder and in the folders in it, sorted."""
    with os.scandir(folder) as entries:
        names = sorted((entry.name, entry.is_dir()) for entry in entries)
    for name, is_folder in names:
        if is_folder:
            yield from (folder / name / each for each in sorted(os.listdir(folder / name)) if each.endswith(".xml"))
        elif name.endswith(".xml"):
            yield folder / name


def _iter_folder(folder: Path, progress: Progress) -> Iterator[File]:
    progress.begin(f"read {folder.name}", None, "files")
    for path in _xml_files(folder):
        with _naming(folder), path.open("rb") as file:
            content = file.read(LARGEST + 1)
        yield path.parent.name, path.stem, content
        progress.advance()


def _iter_archive(archive: Path, progress: Progress) -> Iterator[File]:
    size = archive.stat().st_size
    limit = max(INFLATION_FLOOR, INFLATION * size)
    progress.begin(f"read {archive.name}", size, "B")
    seen: set[tuple[str, str]] = set()
    done = 0
    with _naming(archive), archive.open("rb") as raw, _naming(archive, raw.tell):
        is_packed = raw.read(2) == b"\x1f\x8b"
        raw.seek(0)
        stream = gzip.GzipFile(fileobj=raw) if is_packed else raw
        for member, content in stream_members(stream, limit=limit, keep=LARGEST + 1):
            folder, _, name = os.fsdecode(member).rpartition("/")
            if not name.endswith(".xml"):
                continue
            file = (folder.rpartition("/")[2], name[:-4])
            if file in seen:
                raise InputError(f"{archive} holds {folder}/{name} twice", "expected every file once", _REMEDY)
            seen.add(file)
            yield (*file, content)
            if len(seen) % _BATCH == 0:  # to ask for each file would take a fifth of the time
                progress.advance(raw.tell() - done)
                done = raw.tell()
        progress.advance(size - done)


_REMEDY = "check where it comes from, or move it away and download it again with imagenet-prep download"


@contextlib.contextmanager
def _naming(source: Path, tell: Callable[[], int] = int) -> Iterator[None]:
    """Turn what tar, gzip and the system find wrong into the error that names the archive or the file."""
    try:
        yield
    except TarFault as fault:
        raise InputError(f"{source}, unpacked, is damaged at byte {fault.offset:,}", fault.reason, _REMEDY) from fault
    except (EOFError, zlib.error, gzip.BadGzipFile) as error:
        raise InputError(f"{source} is damaged before byte {tell():,}", str(error), _REMEDY) from error
    except OSError as error:
        raise InputError(f"{error.filename or source} can't be read", error.strerror or str(error)) from error


# the work ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Result:
    """CSV lines in no order, counts, and the files that can't be read."""

    lines: bytes
    totals: BoxTotals
    problems: tuple[Problem, ...]


def _read_all(source: Path, split: str, engine: Engine, progress: Progress) -> _Result:
    files = _iter_folder(source, progress) if source.is_dir() else _iter_archive(source, progress)
    results: list[_Result] = []
    try:
        for outcome in engine.map(_Parser(split), _batches(files)):
            if not isinstance(outcome, Done):
                (folder, name, _), *others = outcome.task
                after = f" or one of the {len(others)} files after it" if others else ""
                error = named(outcome.error, f"{source}, {folder}/{name}.xml{after}")
                raise error if isinstance(error, PrepError) else WorkerError(f"a bug in a worker: {error!r}")
            results.append(outcome.value)
    finally:
        progress.end()
    if not results:
        raise InputError(f"{source} holds no annotations", "expected files <wnid>/<image>.xml", _REMEDY)
    problems = sorted((problem for result in results for problem in result.problems), key=str)
    totals = add_up(result.totals for result in results)
    return _Result(b"".join(result.lines for result in results), totals, tuple(problems))


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


@dataclass(frozen=True, slots=True)
class _Parser:
    """Parses a batch of files. Runs in workers."""

    split: str

    def __call__(self, batch: list[File]) -> _Result:
        """The boxes of a batch; a file that can't be read is a Problem."""
        rows: list[tuple[str, Box]] = []
        problems: list[Problem] = []
        totals: list[BoxTotals] = []
        for folder, name, content in batch:
            try:
                boxes, counts = read_file(self.split, folder, name, content)
            except AnnotationFault as fault:
                subject = os.fsencode(f"{folder}/{name}.xml").decode("utf-8", "backslashreplace")
                problems.append(_problem(subject, str(fault)))
                totals.append(BoxTotals(files=1))
            else:
                rows += [(f"{name}.JPEG", box) for box in boxes]
                totals.append(counts)
        return _Result(encode_boxes(rows), add_up(totals), tuple(problems))


def read_file(split: str, folder: str, name: str, content: bytes) -> tuple[tuple[Box, ...], BoxTotals]:
    """The boxes to keep of one annotation, and the counts it adds.

    A file's boxes are skipped if its first name is another one of the 1000 classes; any other text counts, because the
    annotations of dogs carry names such as "Scottish_deerhound". The class is the folder's, the image is the one that
    the file is named after, of whatever class that is.

    Raises:
        AnnotationFault: it can't be read, or its name can be none that the original wrote to the CSV and read from it.
    """
    wnid = _wnid_of(split, folder, name)
    if wnid not in facts.labels():
        return (), BoxTotals(files=1, other_files=1)
    annotation = parse_annotation(content)
    early = int(annotation.ended_early)
    if annotation.label != wnid and annotation.label in facts.labels():
        skipped = len(annotation.boxes) + annotation.no_area
        return (), BoxTotals(files=1, other_class=skipped, ended_early=early)
    return annotation.boxes, _totals_of(len(annotation.boxes), annotation.no_area, early)


@functools.lru_cache(maxsize=256)
def _totals_of(boxes: int, no_area: int, early: int) -> BoxTotals:
    """What nearly all files add: one of a few values, made once."""
    return BoxTotals(files=1, images=int(boxes > 0), boxes=boxes, no_area=no_area, ended_early=early)


_usable = re.compile(r"[^.,\x00-\x1f\x7f\ud800-\udfff][^,\x00-\x1f\x7f\ud800-\udfff]*").fullmatch
"""Whether a name isn't hidden, and can stand in the CSV: no comma, no control character, UTF-8."""


def _wnid_of(split: str, folder: str, name: str) -> str:
    """The class of an annotation's folder, for validation that of its image."""
    if split == facts.TRAIN:
        if not facts.is_wnid(folder):
            raise AnnotationFault("expected it in the folder of a class, like n01440764/n01440764_1.xml")
        if not _usable(name):
            raise AnnotationFault(
                f"expected a name like {folder}_1.xml: not hidden, UTF-8, no comma, no control character"
            )
        return folder
    number = facts.validation_number(f"{name}.JPEG")
    if number is None:
        raise AnnotationFault("expected a name like ILSVRC2012_val_00000001.xml")
    return facts.validation_wnids()[number - 1]


def _problem(subject: str, detail: str) -> Problem:
    return Problem(ProblemKind.BAD_ANNOTATION, subject, detail, "its image will have no boxes")


# what was made before ------------------------------------------------------------------------------------------


def _load_state(layout: Layout) -> dict[str, Any]:
    state = load_json(layout.annotate_path)
    return state if isinstance(state, dict) else {}


def _recall(layout: Layout, split: str, fingerprint: dict[str, Any], csv_path: Path) -> _Result | None:
    """What an earlier run found, if it had the same input and its CSV is unchanged."""
    try:
        known = _load_state(layout)[split]
        if known["made_from"] != fingerprint or known["csv_sha256"] != _digest(csv_path):
            return None
        problems = tuple(_problem(subject, detail) for subject, detail in known["problems"])
        return _Result(b"", BoxTotals(**known["totals"]), problems)
    except (KeyError, TypeError, ValueError):  # not of our writing: as good as absent
        return None


def _save_state(layout: Layout, split: str, fingerprint: dict[str, Any], content: bytes, result: _Result) -> None:
    record = {
        "made_from": fingerprint,
        "csv_sha256": hashlib.sha256(content).hexdigest(),
        "totals": asdict(result.totals),
        "problems": [[problem.subject, problem.detail] for problem in result.problems],
    }
    save_json(layout.annotate_path, {**_load_state(layout), split: record})


def _digest(path: Path) -> str | None:
    return hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else None
