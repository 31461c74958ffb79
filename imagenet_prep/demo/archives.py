"""make: the official archives filled with generated images, with the same names, the same shape and
true labels.
"""

from __future__ import annotations

import gzip
import hashlib
import io
import math
import random
import tarfile
from collections.abc import Iterable, Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.demo import photographs as pictures
from imagenet_prep.demo.made_annotations import (
    PAIRED,
    QUIRKS,
    MadeAnnotation,
    Quirk,
    annotation,
    boxes_csv,
)
from imagenet_prep.demo.photographs import Corners, Kind
from imagenet_prep.ilsvrc2012.facts import (
    ARCHIVES,
    CLASSES,
    TRAIN,
    VALIDATION,
    labels,
    synsets,
    validation_filename,
    validation_wnids,
)
from imagenet_prep.model import Progress, Silent
from imagenet_prep.storage.durable import make_folders

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
    make_folders(raw_dir)
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
