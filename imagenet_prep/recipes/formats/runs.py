"""Run lengths of Kaggle: a CSV with a row for each object, its image,
perhaps its class, and EncodedPixels.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from imagenet_prep.errors import InputError
from imagenet_prep.images import mask_pixels
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.recipes.annotated_images import AnnotatedImages
from imagenet_prep.recipes.annotation_files import read_columns
from imagenet_prep.recipes.box_files import Marked, columns_named
from imagenet_prep.recipes.box_policy import NAMELESS, Size, fault
from imagenet_prep.recipes.folder_words import is_mask_folder
from imagenet_prep.recipes.formats import AnnotatedFolder, Format, Proposed
from imagenet_prep.recipes.object_masks import Runs
from imagenet_prep.text import parse_whole

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys

_RUNS = "encodedpixels"
_NO_OBJECT = "-1"
_CLASSES = ("classid", "class", "label")


_Run = tuple[int, int]
"""The first pixel, from 1, and the number of pixels."""


class _RunsOfObject(NamedTuple):
    """A row: the image, the class, the runs ("" for an image without objects),
    and its place for messages.
    """

    image: str
    class_name: str
    runs: str
    place: str


def _mark(keys: BoxKeys, images: AnnotatedImages) -> None:
    images.file.columns = columns_named("area")
    images.file.polygons = "masks"
    for path in images.paths(keys.places):
        objects_by_image: dict[str, list[_RunsOfObject]] = {}
        for runs_of_object in _rows(path):
            objects = objects_by_image.setdefault(runs_of_object.image, [])
            objects.append(runs_of_object)
        named = [Marked(name, objects[0].place) for name, objects in objects_by_image.items()]
        for row, image in images.by_name(named, path):
            image.size = images.size(row)
            for runs_of_object in objects_by_image[image.name]:
                if runs_of_object.runs:
                    _add_object(images, image, image.size, runs_of_object)
            images.mark(row, image)


def _rows(path: Path) -> Iterator[_RunsOfObject]:
    """The rows of a table: its first column names the images."""
    line_numbers, columns = read_columns(path)
    folded = {name.lower(): cells for name, cells in columns.items()}
    if _RUNS not in folded:
        header = ", ".join(columns) or "no header"
        expected = f"expected a header with the column EncodedPixels, got {header}"
        raise fault(str(path), "the file has no column of run lengths", expected)
    names = next(iter(columns.values()))
    class_columns = (folded[name] for name in _CLASSES if name in folded)
    nameless = [NAMELESS] * len(line_numbers)
    class_names = next(class_columns, nameless)
    rows = zip(line_numbers, names, class_names, folded[_RUNS], strict=True)
    for line_number, name, class_name, runs in rows:
        place = f"{path}, line {line_number}"
        text = "" if runs is None or runs == _NO_OBJECT else runs
        yield _RunsOfObject(name or "", class_name or "", text, place)


def _add_object(
    images: AnnotatedImages, image: Marked, size: Size, runs_of_object: _RunsOfObject
) -> None:
    """Add an object: its box is the one around its pixels."""
    place = runs_of_object.place
    try:
        counts = _coco_counts(runs_of_object, size)
        pixels = mask_pixels.fill_runs(counts, size)
    except ImageError as error:
        problem = f"EncodedPixels: {error}"
        expected = "expected the start and the length of each run, in order; the first pixel is 1"
        raise fault(place, problem, expected) from error
    width, height = size
    outline = Runs(size=(height, width), counts=counts)
    images.file.add_pixels(image, runs_of_object.class_name, pixels, outline, place)


def _coco_counts(runs_of_object: _RunsOfObject, size: Size) -> list[int]:
    """Kaggle's runs as COCO's: starts from 1 and lengths of what is inside
    become lengths of 0 and 1 in turn.
    """
    numbers: list[int] = []
    for word in runs_of_object.runs.split():
        number = parse_whole(word)
        if number is None:
            raise ImageError(f"{word[:40]!r} is not a whole number of at most 18 digits")
        numbers.append(number)
    if len(numbers) % 2:
        raise ImageError("the last run has a start and no length")
    width, height = size
    last_pixel = width * height
    counts: list[int] = []
    position = 0
    runs = list(zip(numbers[::2], numbers[1::2], strict=True))
    for number, (start, length) in enumerate(runs):
        first_pixel = start - 1
        if first_pixel < 0:
            raise ImageError("a run starts at 0")
        if first_pixel < position:
            raise _early_run(runs[number], runs[:number], runs_of_object.place)
        counts += (first_pixel - position, length)
        position = first_pixel + length
        if position > last_pixel:
            name = f"{runs_of_object.image} ({width} x {height} = {last_pixel:,})"
            problem = f"the run {start} {length} ends after the last pixel of {name}"
            expected = "expected runs for an image of this size"
            hint = "use the image that was annotated, or correct the run"
            raise fault(runs_of_object.place, problem, expected, hint)
    return [*counts, last_pixel - position]


def _early_run(run: _Run, earlier: Sequence[_Run], place: str) -> InputError:
    """The error for a run that starts before the end of an earlier one."""
    start, length = run
    overlaps = [first for first, size in earlier if first < start + length and start < first + size]
    if not overlaps:
        problem = f"EncodedPixels: the run at {start:,} comes after a run that starts later"
        return fault(place, problem, "expected runs in the order of their starts")
    return fault(
        place,
        f"EncodedPixels: the run at {start:,} overlaps an earlier one",
        "expected runs (a start and a length each) of one object, in order and without overlap",
        "correct it; if they are several objects, write a line for each of them",
    )


def is_table(name: str, ends: bytes) -> bool:
    """Whether a file is a table of runs, by its first bytes."""
    first_line, _, _ = ends.partition(b"\n")
    header = first_line.decode("utf-8", "replace")
    return name.lower().endswith(".csv") and _RUNS in header.lower()


def _propose(folder: AnnotatedFolder) -> Proposed | None:
    """The tables; None next to folders of masks, which hold the same."""
    if not folder.files or any(map(_is_in_mask_folder, folder.names)):
        return None
    return Proposed({"runs": sorted(folder.files)}, folder.files)


def _is_in_mask_folder(name: str) -> bool:
    *folders, _ = name.split("/")
    return any(map(is_mask_folder, folders))


FORMAT = Format(
    "runs",
    "run lengths",
    "run-lengths",
    (".csv",),
    is_table,
    _mark,
    usage={
        "Kaggle's run lengths": (
            "`boxes: {runs: FILES}`, a CSV with `EncodedPixels`: boxes and "
            "[masks](#masks-of-objects)"
        )
    },
    propose=_propose,
)
