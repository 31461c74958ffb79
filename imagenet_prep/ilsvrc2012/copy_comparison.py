"""list_copy: a copy of ILSVRC2012 -> CopyListing: its images are listed and compared with the
facts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from imagenet_prep.checks.raw_check import RawSplit, check_as
from imagenet_prep.checks.verdict import Depth
from imagenet_prep.errors import InputError
from imagenet_prep.escaping import command
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.astray import nothing_found, refuse_unread
from imagenet_prep.ilsvrc2012.box_search import find_annotations, find_boxes_csv
from imagenet_prep.ilsvrc2012.class_parts import WHOLE
from imagenet_prep.ilsvrc2012.copy_listing import GET_MISSING, CopyListing
from imagenet_prep.ilsvrc2012.devkit import devkit_paths, train_counts
from imagenet_prep.ilsvrc2012.digests import Digests, find_digests
from imagenet_prep.ilsvrc2012.image_counts import count_by_wnid
from imagenet_prep.ilsvrc2012.known_copies import refuse_known_copies
from imagenet_prep.ilsvrc2012.official import ANOTHER_COPY, ImageSource
from imagenet_prep.ilsvrc2012.official_tars import OfficialTar
from imagenet_prep.ilsvrc2012.plan_inputs import find_sources, other_copies
from imagenet_prep.ilsvrc2012.planned_boxes import attach_boxes
from imagenet_prep.ilsvrc2012.raw_data import ConsumedImages, how_to_get
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.images.grades import Check
from imagenet_prep.model import Engine, Problem, ProblemKind, Progress
from imagenet_prep.recorders.inception_recorder import InceptionRecorder
from imagenet_prep.recorders.recorder import Recorder
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.obstacles import Obstacles, collecting, problem_of, refuse
from imagenet_prep.sources.slices import gone
from imagenet_prep.storage.layout import RAW_NAME, Layout
from imagenet_prep.text import listed, number_of

_MANY = 10  # places of misplaced images that have a cause each


def list_copy(
    layout: Layout,
    engine: Engine,
    options: ConvertOptions,
    progress: Progress,
    *,
    depth: Depth | None,
) -> CopyListing:
    """List every split that is there, and compare names and numbers with the facts.

    ``depth`` None: decode all images, except those that an archive's digest proves.

    Raises:
        InputError: there are no images of ImageNet.
    """
    layout = _with_images(layout)
    sources = find_sources(layout)
    comparison = CopyComparison(layout, options.allow_incomplete)
    for split in facts.SPLITS:
        if split not in sources:
            comparison.look_for(split)
    if not sources and not comparison.problems:
        raise nothing_found(layout)
    digests = find_digests(layout, progress, reads=depth != "quick")
    comparison.notes += digests.notes
    by_class = comparison.read_devkit()
    for split in facts.SPLITS:
        source = sources.get(split)
        if source is None:
            images = facts.IMAGES[split]
            detail = f"expected {images:,} images, found none"
            comparison.lack(ProblemKind.MISSING_IMAGE, split, detail, count=images)
        elif isinstance(source, ConsumedImages):
            comparison.problems.append(_consumed(source))
        else:
            progress.note(f"indexing {source.files} for {source.split}")
            check = _check_of(source, digests, depth)
            recorder = check_as(InceptionRecorder(), check)
            comparison.take(source, engine, progress, recorder, by_class)
    return comparison.done(digests, depth or "decode")


def _check_of(source: ImageSource, digests: Digests, depth: Depth | None) -> Check:
    """How closely the images of a source are checked."""
    if depth == "full" or (depth is None and _is_proven(source, digests)):
        return "header"
    return "decode"


def _with_images(layout: Layout) -> Layout:
    """The layout; if its raw folder has no images and is a DATA_DIR, that of the raw data in it."""
    if layout.raw is None or find_sources(layout):
        return layout
    raw_folder_inside = layout.raw_dir / RAW_NAME
    if not raw_folder_inside.is_dir():
        return layout
    return replace(layout, data_dir=layout.raw_dir, raw=None)


def _is_proven(source: ImageSource, digests: Digests) -> bool:
    return isinstance(source, OfficialTar) and source.split in digests.published


def _consumed(source: ImageSource) -> Problem:
    """The one problem of a split whose images are in its shards: nothing of it can be compared."""
    fault = problem_of(gone(source.path), ProblemKind.MISSING_IMAGE, source.split)
    return replace(fault, count=facts.IMAGES[source.split])


class CopyComparison:
    """Collects what becomes a CopyListing."""

    def __init__(self, layout: Layout, allow_incomplete: bool) -> None:
        self.layout = layout
        self.allow_incomplete = allow_incomplete
        self.splits: list[RawSplit] = []
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        self.lacking: list[str] = []
        self.skipped = 0

    def done(self, digests: Digests, depth: Depth) -> CopyListing:
        """The listing."""
        return CopyListing(
            layout=self.layout,
            splits=tuple(self.splits),
            problems=tuple(self.problems),
            depth=depth,
            notes=tuple(self.notes),
            skipped=self.skipped,
            lacking=tuple(self.lacking),
            digests=digests,
        )

    def lack(
        self,
        kind: ProblemKind,
        subject: str,
        detail: str,
        *,
        count: int = 1,
        remedy: str = GET_MISSING,
    ) -> None:
        """Something is missing: a problem, unless that is allowed."""
        if self.allow_incomplete:
            self.lacking.append(f"{subject}: {detail}")
        else:
            self.problems.append(Problem(kind, subject, detail, remedy, count=count))

    def look_for(self, split: str) -> None:
        """Look for a split that no copy has: an archive of another name,
        or a copy that is refused.
        """
        try:
            refuse_unread(self.layout, split)
            refuse_known_copies(self.layout, split)
        except InputError as error:
            self.problems.append(problem_of(error, ProblemKind.WRONG_CONTENT, split))

    def read_devkit(self) -> Mapping[str, int]:
        """The number of train images of each class; empty if the devkit is not there or damaged."""
        try:
            return train_counts(self.layout) or {}
        except InputError as error:
            self.problems.append(problem_of(error, ProblemKind.UNREADABLE, "devkit"))
            return {}

    def take(
        self,
        source: ImageSource,
        engine: Engine,
        progress: Progress,
        recorder: Recorder,
        by_class: Mapping[str, int],
    ) -> None:
        """List a split, and compare it with the facts."""
        split = source.split
        with collecting() as obstacles:
            catalog = _list(source, engine, progress)
        misplaced = _find_misplaced(obstacles.problems)
        self.problems += _grouped(obstacles, source, len(catalog) + len(misplaced))
        self.notes += [*obstacles.notes, *other_copies(self.layout, source)]
        self.skipped += obstacles.skipped
        if source.missing:
            self.lack(ProblemKind.MISSING_IMAGE, split, f"the copy lacks {source.missing}")
        self._attach_boxes(catalog)
        raw_split = RawSplit(split, source.words, catalog, recorder, facts.IMAGES[split])
        self.splits.append(raw_split)
        if obstacles.more:
            return  # not all images under another class are known by name
        well_placed = count_by_wnid(catalog.count_by_label())
        counts = Counter(misplaced.values()) + Counter(well_placed)
        if split == facts.VALIDATION:
            self._compare_validation({*catalog.names, *misplaced}, counts)
        else:
            self._compare_train(counts, by_class)

    def _compare_validation(self, present: Collection[str], counts: Counter[str]) -> None:
        """Compare the validation images with the table, which has all names;
        ``present`` are those that are there, in the right class or not.
        """
        names_by_class = _validation_names()
        short = [wnid for wnid, names in names_by_class.items() if counts[wnid] < len(names)]
        for wnid in short:
            names = names_by_class[wnid]
            got = counts[wnid]
            missing_names = ""
            if got:
                missing = listed(name for name in names if name not in present)
                missing_names = f": missing {missing}"
            expected = len(names)
            lacking = expected - got
            self._short(facts.VALIDATION, wnid, got, f"{expected:,}", lacking, missing_names)

    def _compare_train(self, counts: Counter[str], by_class: Mapping[str, int]) -> None:
        """Compare the train images with the devkit's numbers;
        without it, with the total and a least number.
        """
        total = sum(counts.values())
        expected = facts.IMAGES[facts.TRAIN]
        if total > expected:
            self._too_many(facts.TRAIN, total, expected)
        elif total < expected and not by_class:
            missing = expected - total
            self.lack(
                ProblemKind.MISSING_IMAGE,
                facts.TRAIN,
                f"expected {expected:,} images in all, found {total:,}: {missing:,} missing",
                count=missing,
                remedy=self._how_to_find_missing(),
            )
        for wnid in facts.synsets():
            self._compare_class(wnid, counts[wnid], by_class.get(wnid))

    def _how_to_find_missing(self) -> str:
        """The remedy for missing train images whose classes are not known."""
        if devkit_paths(self.layout):  # it can't be read, which is a problem of its own
            return GET_MISSING
        download = how_to_get(self.layout, "devkit")
        return Hint("get the devkit, which has the number of images of each class: ", download)

    def _compare_class(self, wnid: str, got: int, devkit_count: int | None) -> None:
        """Compare the train images of a class with the devkit's number,
        or with that of the smallest class.
        """
        if devkit_count is None:
            fewest = facts.FEWEST[facts.TRAIN]
            if got < fewest:
                self._short(facts.TRAIN, wnid, got, f"at least {fewest:,}", fewest - got)
        elif got < devkit_count:
            self._short(facts.TRAIN, wnid, got, f"{devkit_count:,}", devkit_count - got)
        elif got > devkit_count:
            self._too_many(f"{facts.TRAIN}/{wnid}", got, devkit_count)

    def _short(
        self, split: str, wnid: str, got: int, expected: str, count: int, names: str = ""
    ) -> None:
        """Images of a class are missing, or all of them."""
        if got:
            kind = ProblemKind.MISSING_IMAGE
            images = f"{got:,}"
        else:
            kind = ProblemKind.MISSING_CLASS
            images = "none"
        noun = "image" if expected == "1" else "images"
        detail = f"expected {expected} {noun}, found {images}{names}"
        self.lack(kind, f"{split}/{wnid}", detail, count=count)

    def _too_many(self, subject: str, got: int, expected: int) -> None:
        detail = f"expected {expected:,} images, found {got:,}"
        remedy = "find out which images are not those of ILSVRC2012, and remove them"
        problem = Problem(
            ProblemKind.WRONG_COUNT, subject, detail, remedy, expected=str(expected), got=str(got)
        )
        self.problems.append(problem)

    def _attach_boxes(self, catalog: Catalog) -> None:
        """Give the images their boxes if annotate has made their file,
        and compare the number of train boxes.
        """
        split = catalog.split
        if find_boxes_csv(self.layout, split) is None:
            self._note_annotations(split)
            return
        options = ConvertOptions(validation_boxes=True)
        try:
            entry, _ = attach_boxes(catalog, self.layout, options)
        except InputError as error:
            self.problems.append(problem_of(error, ProblemKind.BAD_ANNOTATION, f"{split} boxes"))
            return
        count = entry["boxes"]["count"]
        if split == facts.TRAIN and count != facts.BOXES:
            detail = f"expected {facts.BOXES:,} boxes, found {count:,}"
            download = how_to_get(self.layout, "boxes")
            settings = Layout(self.layout.data_dir, self.layout.raw).elsewhere()
            annotate = command("annotate", self.layout.data_dir, settings)
            remedy = Hint("get the official boxes: ", download, ", then run ", annotate)
            self.lack(ProblemKind.MISSING_BOX, f"{split} boxes", detail, remedy=remedy)

    def _note_annotations(self, split: str) -> None:
        """Note where the annotations of a split are, if they are there."""
        annotations = find_annotations(self.layout, split)
        if annotations is not None:
            archive = annotations.path.name
            self.notes.append(f"{split} boxes: in {archive}, which annotate reads and checks")


def _list(source: ImageSource, engine: Engine, progress: Progress) -> Catalog:
    """The images of a split, without those that are refused."""
    try:
        return source.catalog(engine, progress)
    except InputError as error:
        refuse(error, ProblemKind.UNREADABLE, source.split)
        return Catalog(split=source.split)


def _validation_names() -> dict[str, list[str]]:
    """The names of all validation images by class, in the order of the classes."""
    names: dict[str, list[str]] = {wnid: [] for wnid in facts.synsets()}
    for name in WHOLE.validation_filenames():
        names[facts.class_of(name, facts.VALIDATION) or ""].append(name)
    return names


# images under another class ----------------------------------------------------------------------


class _WrongPlace(NamedTuple):
    """A place of a class, or of none, that has images of another class."""

    place: str
    wnid: str
    wrong_class: str


def _find_misplaced(problems: Iterable[Problem]) -> dict[str, str]:
    """The images that are there under another class, each with its own class."""
    misplaced: dict[str, str] = {}
    for problem in problems:
        if problem.kind is ProblemKind.WRONG_LABEL:
            misplaced[problem.image] = problem.expected
    return misplaced


def _grouped(obstacles: Obstacles, source: ImageSource, images: int) -> Iterator[Problem]:
    """The problems of a listing of so many images;
    those of one class in one wrong place are one problem.
    """
    split = source.split
    misplaced: dict[_WrongPlace, list[Problem]] = {}
    for problem in obstacles.listed(split):
        if problem.kind is ProblemKind.WRONG_LABEL:
            wrong_place = _WrongPlace(problem.subject, problem.expected, problem.got)
            misplaced.setdefault(wrong_place, []).append(problem)
        else:
            yield problem
    if len(misplaced) > _MANY:
        of_all = "" if obstacles.more else f" of {images:,}"
        yield _in_another_order(misplaced, source, of_all)
        return
    for wrong_place, problems in misplaced.items():
        yield _misplaced(wrong_place, problems)


def _misplaced(wrong_place: _WrongPlace, problems: Sequence[Problem]) -> Problem:
    """Images of one class under another one."""
    wnid = wrong_place.wnid
    images = number_of(len(problems), f"image of {wnid} is", f"images of {wnid} are")
    names = listed(problem.image for problem in problems)
    detail = f"{images} under {wrong_place.wrong_class}: {names}"
    return replace(problems[0], subject=wrong_place.place, detail=detail, count=len(problems))


def _in_another_order(
    misplaced: Mapping[_WrongPlace, Sequence[Problem]], source: ImageSource, of_all: str
) -> Problem:
    """Images of many classes under others: their labels were taken from another list.

    ``of_all`` is the number of all images as text; "" if it isn't known.
    """
    count = 0
    examples: list[str] = []
    for (_, wnid, wrong_class), problems in misplaced.items():
        count += len(problems)
        examples.append(f"{problems[0].image} of {wnid} under {wrong_class}")
    detail = (
        f"{count:,}{of_all} images are under another class, as if by other labels: "
        f"{listed(examples)}"
    )
    remedy = ANOTHER_COPY
    if source.is_unpacked and source.split == facts.TRAIN:
        remedy = f"move each image to the folder of the class in its name, or {ANOTHER_COPY}"
    return Problem(ProblemKind.WRONG_LABEL, source.split, detail, remedy, count=count)
