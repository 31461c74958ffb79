"""make: the official archives filled with generated images, with the same names, the same shape and
true labels.

Their annotations have the form of ILSVRC2012_bbox_train_v2.tar.gz (Pascal VOC), with every quirk of
the real ones. The expected boxes come from how each file is made, not from reading it, so they can
test a reader.
"""

from __future__ import annotations

import enum
import gzip
import hashlib
import io
import math
import random
import tarfile
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.etree.ElementTree import Element, SubElement

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.demo import photographs as pictures
from imagenet_prep.demo.photographs import Corners, Kind
from imagenet_prep.ilsvrc2012.facts import (
    ARCHIVES,
    CLASSES,
    TRAIN,
    VALIDATION,
    labels,
    synsets,
    texts,
    validation_filename,
    validation_wnids,
)
from imagenet_prep.model import Progress, Silent

ODD_KINDS: dict[str, tuple[Kind, ...]] = {
    TRAIN: (Kind.GREY, Kind.CMYK, Kind.PNG, Kind.ROTATED, Kind.CORRUPT_EXIF),
    VALIDATION: (Kind.GREY, Kind.YCCK, Kind.PROGRESSIVE),
}
"""The odd images of each split, one of each; every 40th of the others is grey."""

DOGS = range(152, 270)
"""The labels of the dog breeds, Chihuahua to Mexican hairless."""

_MTIME = 1_339_545_600  # 13 June 2012, the time of every member: the same call makes the same bytes
_HIGHEST_NUMBER = 32_000
_SEED = "archives 1"
_NOTHING: tuple[Corners, ...] = ()


class MadeImage(Struct, frozen=True):
    """The expected facts of one image: width, height and ``boxes`` in pixels as stored, without
    EXIF rotation.

    A tiny image has no boxes: it shows nothing.
    """

    filename: str
    split: str
    wnid: str
    label: int
    width: int
    height: int
    kind: Kind
    sha256: str
    boxes: tuple[Corners, ...] = ()


class MadeSet(Struct, frozen=True):
    """The generated archives, and the expected facts of their images.

    Args:
        archives: the path of each archive, by its key in facts.ARCHIVES.
        md5: its MD5 (hex), by the same key.
        images: every image, train and validation, by file name.
        annotations: the annotations in the archive of train boxes, in its order.
        validation_annotations: those in the archive of validation boxes.
    """

    archives: dict[str, Path]
    md5: dict[str, str]
    images: dict[str, MadeImage]
    annotations: tuple[MadeAnnotation, ...]
    validation_annotations: tuple[MadeAnnotation, ...]

    @property
    def wnids(self) -> tuple[str, ...]:
        """The classes, in label order."""
        return tuple(sorted({image.wnid for image in self.of(TRAIN)}))

    def of(self, split: str) -> tuple[MadeImage, ...]:
        """The images of a split, in archive order."""
        return tuple(image for image in self.images.values() if image.split == split)

    @property
    def boxes_csv(self) -> bytes:
        """The expected CSV of the train boxes."""
        return boxes_csv(self.annotations)


def make(
    raw_dir: Path,
    *,
    classes: int = 20,
    per_class: int = 12,
    validation: int = 60,
    tiny: bool = False,
    progress: Progress | None = None,
) -> MadeSet:
    """Write the four archives (train, validation, and the boxes of both) into ``raw_dir``.

    The same arguments give the same bytes. From about 20 train and 3 validation images, they
    include every kind of odd image and every quirk of the annotations.

    Args:
        raw_dir: the folder for the archives; created if missing.
        classes: the number of classes, at most 1000, spread evenly over them.
        per_class: train images per class, at most 1300.
        validation: validation images, of those classes; a class has 50, so at most 50 times
            ``classes`` are made.
        tiny: make images of 16x16 pixels instead of photographs.
        progress: gets the images made.
    """
    wnids = tuple(synsets()[index * CLASSES // classes] for index in range(classes))
    raw_dir.mkdir(parents=True, exist_ok=True)
    progress = progress or Silent()
    writer = _Writer(raw_dir, random.Random(_SEED), tiny, progress, {})
    progress.begin("making images", classes * per_class + min(validation, 50 * classes), "images")
    writer.write_train(wnids, per_class)
    writer.write_validation(wnids, validation)
    progress.end()
    return writer.finish()


class _Writer(Struct, frozen=True):
    """Makes images in turn and records the expected facts of each."""

    raw_dir: Path
    rng: random.Random
    tiny: bool
    progress: Progress
    images: dict[str, MadeImage]

    def path(self, key: str) -> Path:
        return self.raw_dir / ARCHIVES[key].filename

    def write_train(self, wnids: tuple[str, ...], per_class: int) -> None:
        """Write a tar of one tar per class: classes sorted as in the real one, images unsorted."""
        kinds = iter(self._kinds(TRAIN, len(wnids) * per_class))
        with tarfile.open(self.path("train"), "w", format=tarfile.GNU_FORMAT) as outer:
            for wnid in wnids:
                class_tar = io.BytesIO()
                with tarfile.open(fileobj=class_tar, mode="w", format=tarfile.GNU_FORMAT) as inner:
                    for number in self._unsorted(range(1, _HIGHEST_NUMBER), per_class):
                        self._add_image(inner, TRAIN, f"{wnid}_{number}.JPEG", wnid, next(kinds))
                _add(outer, f"{wnid}.tar", class_tar.getvalue())

    def write_validation(self, wnids: tuple[str, ...], count: int) -> None:
        """Write a flat, unsorted tar of official names whose true class is among ``wnids``."""
        wnid_of = dict(enumerate(validation_wnids(), 1))
        of_classes = set(wnids)
        candidates = [number for number, wnid in wnid_of.items() if wnid in of_classes]
        numbers = self._unsorted(candidates, min(count, len(candidates)))
        kinds = self._kinds(VALIDATION, len(numbers))
        with tarfile.open(self.path("validation"), "w", format=tarfile.GNU_FORMAT) as tar:
            for number, kind in zip(numbers, kinds, strict=True):
                name = validation_filename(number)
                self._add_image(tar, VALIDATION, name, wnid_of[number], kind)

    def finish(self) -> MadeSet:
        """Write the annotations of the images made so far."""
        train = self._annotations()
        validation_images = [image for image in self.images.values() if image.split == VALIDATION]
        validation = tuple(self._annotation(image, Quirk.NONE) for image in validation_images)
        _write_boxes(self.path("boxes"), ((made.wnid, made) for made in train))
        _write_boxes(self.path("validation-boxes"), (("val", made) for made in validation))
        archives = {
            key: self.path(key) for key in ("train", "validation", "boxes", "validation-boxes")
        }
        md5 = {key: _md5(path) for key, path in archives.items()}
        return MadeSet(archives, md5, self.images, train, validation)

    def _annotations(self) -> tuple[MadeAnnotation, ...]:
        """Make annotations for most train images, in class order; each quirk appears once."""
        train = [image for image in self.images.values() if image.split == TRAIN]
        images = self.rng.sample(train, math.ceil(0.85 * len(train)))
        _move_dog(images, QUIRKS.index(Quirk.BREED_NAME))
        quirks = [*QUIRKS, *[Quirk.NONE] * len(images)]
        annotations = [
            self._annotation(image, quirk) for image, quirk in zip(images, quirks, strict=False)
        ]
        return tuple(sorted(annotations, key=lambda made: made.wnid))

    def _annotation(self, image: MadeImage, quirk: Quirk) -> MadeAnnotation:
        """Make an image's annotation; its boxes are invented if the quirk
        requires two and it has fewer.
        """
        boxes = _NOTHING if quirk in PAIRED and len(image.boxes) < 2 else image.boxes
        name = Path(image.filename).stem
        return annotation(name, image.wnid, (image.width, image.height), quirk, boxes=boxes)

    def _kinds(self, split: str, count: int) -> list[Kind]:
        """The kind of each of ``count`` images, with the odd ones in random places."""
        kinds = list(ODD_KINDS[split])
        for number in range(count):
            kinds.append(Kind.GREY if number % 40 == 39 else Kind.RGB)
        kinds = kinds[:count]
        self.rng.shuffle(kinds)
        return kinds

    def _unsorted(self, numbers: Sequence[int], count: int) -> list[int]:
        """A sample of ``numbers``, never in sorted order."""
        sample = self.rng.sample(numbers, count)
        return sample[::-1] if sample == sorted(sample) else sample

    def _add_image(
        self, tar: tarfile.TarFile, split: str, filename: str, wnid: str, kind: Kind
    ) -> None:
        seed = self.rng.getrandbits(48)
        size, boxes = pictures.TINY_SIZE, _NOTHING
        if self.tiny:
            content = pictures.tiny(seed, kind)
        else:
            size = pictures.photograph_size(seed)
            image, boxes = pictures.scene(seed, size, wnid)
            content = pictures.encode(image, kind, pictures.photograph_quality(seed))
        digest = hashlib.sha256(content).hexdigest()
        self.images[filename] = MadeImage(
            filename, split, wnid, labels()[wnid], *size, kind, digest, boxes
        )
        _add(tar, filename, content)
        self.progress.advance()


def _move_dog(images: list[MadeImage], place: int) -> None:
    """Exchange the image at a place with the first one of a dog, if both are there."""
    for number, image in enumerate(images):
        if image.label in DOGS and place < len(images):
            images[place], images[number] = image, images[place]
            return


def _write_boxes(path: Path, files: Iterable[tuple[str, MadeAnnotation]]) -> None:
    """A compressed tar of <folder>/<name>.xml,
    with an entry for each folder before its first file.
    """
    current_folder = ""
    with (
        path.open("wb") as raw,
        gzip.GzipFile(filename="", mode="wb", compresslevel=6, fileobj=raw, mtime=0) as packed,
        tarfile.open(fileobj=packed, mode="w", format=tarfile.GNU_FORMAT) as tar,
    ):
        for folder, file in files:
            if folder != current_folder:
                current_folder = folder
                entry = tarfile.TarInfo(f"{folder}/")
                entry.type, entry.mode, entry.mtime = tarfile.DIRTYPE, 0o755, _MTIME
                tar.addfile(entry)
            _add(tar, f"{folder}/{file.name}.xml", file.xml)


def _add(tar: tarfile.TarFile, name: str, content: bytes) -> None:
    entry = tarfile.TarInfo(name)  # user and group 0, mode 0644
    entry.size, entry.mtime = len(content), _MTIME
    tar.addfile(entry, io.BytesIO(content))


def _md5(path: Path) -> str:
    digest = hashlib.md5(usedforsecurity=False)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


# annotations --------------------------------------------------------------------------------------


class Quirk(str, enum.Enum):
    """The quirk of an annotation."""

    NONE = "none"
    PERCENT_NAME = "percent-name"
    OTHER_SIZE = "other-size"
    SWAPPED = "swapped"
    BEYOND = "beyond"
    NO_AREA = "no-area"
    BREED_NAME = "breed-name"
    OTHER_CLASS = "other-class"
    FIRST_NAME = "first-name"
    MINUS_ONE = "minus-one"
    ZERO_SIZE = "zero-size"
    NO_SIZE = "no-size"
    BROKEN = "broken"


QUIRKS = tuple(quirk for quirk in Quirk if quirk is not Quirk.NONE)
PAIRED = (Quirk.FIRST_NAME, Quirk.OTHER_CLASS, Quirk.MINUS_ONE)
"""Quirks that require two boxes or more."""

BAD_QUIRKS = frozenset((Quirk.ZERO_SIZE, Quirk.NO_SIZE, Quirk.BROKEN))
"""Quirks that make a file a Problem."""


class MadeAnnotation(Struct, frozen=True):
    """One annotation file and its expected result.

    Args:
        name: the image's name without ".JPEG" and the file's without ".xml".
        wnid: the image's class.
        quirk: its quirk.
        xml: the file's bytes.
        lines: the lines, without newline, that it must add to the boxes CSV.
        skipped: the number of boxes to leave out (boxes after an xmin of -1 don't exist).
    """

    name: str
    wnid: str
    quirk: Quirk
    xml: bytes
    lines: tuple[str, ...]
    skipped: int


def annotation(
    name: str,
    wnid: str,
    size: tuple[int, int],
    quirk: Quirk = Quirk.NONE,
    seed: int = 1,
    boxes: tuple[Corners, ...] = (),
) -> MadeAnnotation:
    """Make an annotation for the image ``name`` of ``size`` pixels, at least 4 each way:
    ``boxes``, or one to three.
    """
    boxes = boxes or _random_boxes(random.Random(f"boxes {seed} {name}"), size, quirk)
    plain = _Draft(name, wnid, size, size, (wnid,) * len(boxes), boxes, boxes)
    draft = _CHANGES[quirk](plain)
    xml = _xml(draft)
    if quirk is Quirk.BROKEN:
        xml = xml[: len(xml) * 2 // 3]
    lines = tuple(_line(name, box, size) for box in draft.kept)
    return MadeAnnotation(name, wnid, quirk, xml, lines, draft.skipped)


def boxes_csv(annotations: Iterable[MadeAnnotation]) -> bytes:
    """The whole expected CSV, its lines sorted by byte value."""
    lines = [f"{line}\n".encode() for made in annotations for line in made.lines]
    return b"".join(sorted(lines))


# how a file is made: a plain draft, a quirk, the text ---------------------------------------------


class _Draft(Struct, frozen=True):
    """The values to write; ``stated`` is the size in the file.

    ``kept`` are the expected boxes, in pixels of the real size.
    """

    filename: str
    wnid: str
    size: tuple[int, int]
    stated: tuple[int, int] | None
    names: tuple[str, ...]
    boxes: tuple[Corners, ...]
    kept: tuple[Corners, ...]
    skipped: int = 0


def _random_boxes(rng: random.Random, size: tuple[int, int], quirk: Quirk) -> tuple[Corners, ...]:
    count = 2 if quirk in PAIRED else rng.choice((1, 1, 1, 2, 3))
    return tuple((*_corner(rng, size, 0), *_corner(rng, size, 1)) for _ in range(count))


def _corner(rng: random.Random, size: tuple[int, int], half: int) -> tuple[int, int]:
    """A point in the upper left quarter (half 0) or in the lower right one (1),
    so that a box has area.
    """
    x, y = (rng.randrange(length // 2) + half * (length // 2 + 1) for length in size)
    return min(x, size[0]), min(y, size[1])


def _line(name: str, box: Corners, size: tuple[int, int]) -> str:
    """A line of the CSV: the name, and the corners as shares of width and height."""
    shares = [f"{edge / side:.4f}" for edge, side in zip(box, size * 2, strict=True)]
    return ",".join((f"{name}.JPEG", *shares))


def _xml(draft: _Draft) -> bytes:
    root = Element("annotation")
    _add_texts(root, folder=draft.wnid, filename=draft.filename)
    _add_texts(SubElement(root, "source"), database="ILSVRC_2012")
    if draft.stated:
        width, height = draft.stated
        _add_texts(SubElement(root, "size"), width=width, height=height, depth=3)
    _add_texts(root, segmented=0)
    for name, (xmin, ymin, xmax, ymax) in zip(draft.names, draft.boxes, strict=True):
        thing = SubElement(root, "object")
        _add_texts(thing, name=name, pose="Unspecified", truncated=0, difficult=0)
        _add_texts(SubElement(thing, "bndbox"), xmin=xmin, ymin=ymin, xmax=xmax, ymax=ymax)
    ElementTree.indent(root, "\t")
    return f"{ElementTree.tostring(root, 'unicode')}\n".encode()


def _add_texts(parent: Element, **texts: object) -> None:
    for tag, text in texts.items():
        SubElement(parent, tag).text = str(text)


# the quirks ---------------------------------------------------------------------------------------


def _other_size(draft: _Draft) -> _Draft:
    """The annotator saw the image twice as large."""
    boxes = tuple(
        (2 * xmin, 2 * ymin, 2 * xmax, 2 * ymax) for xmin, ymin, xmax, ymax in draft.boxes
    )
    return replace(draft, stated=(2 * draft.size[0], 2 * draft.size[1]), boxes=boxes)


def _beyond(draft: _Draft) -> _Draft:
    """The first box exceeds all four edges; clamped, it is the whole image."""
    width, height = draft.size
    stretched = ((-7, -3, width + 40, height + 25), *draft.boxes[1:])
    return replace(draft, boxes=stretched, kept=((0, 0, width, height), *draft.kept[1:]))


def _no_area(draft: _Draft) -> _Draft:
    """A box without width, and one outside of the image, which has no area after clamping."""
    width, height = draft.size
    empty = ((width // 2, 1, width // 2, height - 1), (width + 3, 1, width + 30, height - 1))
    return replace(
        draft, names=(draft.wnid, draft.wnid, *draft.names), boxes=(*empty, *draft.boxes), skipped=2
    )


def _breed_name(draft: _Draft) -> _Draft:
    """The words of the class in place of its wnid: Scottish_deerhound."""
    breed = texts()[draft.wnid].partition(",")[0].replace(" ", "_")
    return replace(draft, names=(breed,) * len(draft.boxes))


def _other_class(draft: _Draft) -> _Draft:
    """The first name is another class: every box goes, including one with the right name."""
    names = (_another(draft.wnid), *draft.names[1:])
    return replace(draft, names=names, kept=(), skipped=len(draft.boxes))


def _first_name(draft: _Draft) -> _Draft:
    """The first name is right: every box stays, including one with another name."""
    wrong_names = [_another(draft.wnid)] * (len(draft.names) - 1)
    return replace(draft, names=(draft.wnid, *wrong_names))


def _minus_one(draft: _Draft) -> _Draft:
    """The second box starts at -1: it and all later ones are ignored."""
    first_box, *later_boxes = draft.boxes
    minus_one = (-1, *later_boxes[0][1:])
    return replace(
        draft,
        names=(draft.wnid, *draft.names),
        boxes=(first_box, minus_one, *later_boxes),
        kept=(first_box,),
    )


def _another(wnid: str) -> str:
    """The class 500 further on."""
    number = synsets().index(wnid)
    return synsets()[(number + 500) % len(synsets())]


_CHANGES: dict[Quirk, Callable[[_Draft], _Draft]] = {
    Quirk.NONE: lambda draft: draft,
    Quirk.PERCENT_NAME: lambda draft: replace(draft, filename="%s"),
    Quirk.OTHER_SIZE: _other_size,
    Quirk.SWAPPED: lambda draft: replace(
        draft, boxes=tuple((*box[2:], *box[:2]) for box in draft.boxes)
    ),
    Quirk.BEYOND: _beyond,
    Quirk.NO_AREA: _no_area,
    Quirk.BREED_NAME: _breed_name,
    Quirk.OTHER_CLASS: _other_class,
    Quirk.FIRST_NAME: _first_name,
    Quirk.MINUS_ONE: _minus_one,
    Quirk.ZERO_SIZE: lambda draft: replace(draft, stated=(0, 0), kept=()),
    Quirk.NO_SIZE: lambda draft: replace(draft, stated=None, kept=()),
    Quirk.BROKEN: lambda draft: replace(draft, kept=()),
}
