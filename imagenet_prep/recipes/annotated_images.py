"""AnnotatedImages: the images of a listing, and which of them each name or file of annotations
means.

Annotation files come in two kinds: one for each image, which has its name (``mark_files``), or one
for many images, which it names (``mark_named``).
"""

from __future__ import annotations

import functools
import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.images import ENDINGS
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import read_facts
from imagenet_prep.recipes.box_files import BoxFile, BoxNames, Drawn, Marked, read_names, walk
from imagenet_prep.recipes.box_policy import Size, fault
from imagenet_prep.recipes.mask_names import is_image_folder, is_mask_folder, unmasked
from imagenet_prep.recipes.path_matching import match, unique_rows, without_ending
from imagenet_prep.recipes.splits import split_name
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import below
from imagenet_prep.sources.slices import Reader
from imagenet_prep.storage.files import kind_of

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import BoxKeys


class Roots(Struct, frozen=True):
    """Where paths start: the names of images at ``base``, other paths at ``root``.

    ``strip`` is taken off the names in annotation files.
    """

    base: Path
    root: Path
    strip: str = ""


class AnnotatedImages(Struct):
    """The images that annotations are sought for, by their ``names``.

    ``splits`` are the splits of files of annotations. ``marked`` are the images with annotations by
    row, ``divided`` their splits, and ``missing`` the names of annotations without an image.
    """

    listing: Catalog
    names: list[str]
    roots: Roots
    file: BoxFile
    splits: Mapping[Path, str] = {}
    divided: dict[int, str] = {}
    marked: dict[int, Marked] = {}
    missing: list[str] = []

    def mark(self, row: int, image: Marked) -> Marked:
        """Keep the annotations of an image; raises InputError if it has others."""
        if (other := self.marked.setdefault(row, image)) is not image:
            what = f"{self.names[row]} is annotated in {other.where} too"
            raise fault(image.where, what, "expected every image once")
        return image

    def place(self, row: int, drawn: Drawn) -> Marked:
        """The image with its objects as records have them;
        its header gives a size that the file does not.
        """
        image = Marked(drawn.name, drawn.where, drawn.size)
        if drawn.size is None and not drawn.is_relative and drawn.objects:
            image.size = self.size(row)
        for drawn_object in drawn.objects:
            self.file.add(image, drawn_object)
        return image

    def size(self, row: int) -> Size:
        """Width and height of an image, from its header."""
        data = self.listing.read(row, Reader())
        try:
            facts = read_facts(data)
        except ImageError as error:
            raise InputError(f"{self.names[row]}: {error}", "expected an image") from error
        return facts.width, facts.height

    def paths(self, texts: Iterable[str]) -> Iterator[Path]:
        """The files of these paths; raises InputError if one is not there."""
        return (need_annotations(below(self.roots.root, text)) for text in texts)

    def mark_files(
        self, folders: Sequence[str], ending: str, read: Callable[[Path], Drawn]
    ) -> None:
        """Read a file for each image, which has its name with this ending, below folders."""
        paths, missing = files_by_stem(self.names, folders, ending, self.roots)
        for row, path in paths.items():
            self.marked[row] = self.place(row, read(path))
            folder = next((folder for folder in self.splits if path.is_relative_to(folder)), None)
            if folder is not None:
                self.divided[row] = self.splits[folder]
        self.missing += missing

    def mark_named(self, texts: Sequence[str], read: Callable[[Path], Sequence[Drawn]]) -> None:
        """Read files that name their images."""
        for path in self.paths(texts):
            for row, drawn in self.by_name(read(path), path):
                self.mark(row, self.place(row, drawn))

    def class_names(self, keys: BoxKeys) -> BoxNames:
        """The classes that the recipe names, itself or in a file;
        raises InputError if one is there twice.
        """
        names = (
            BoxNames([str(name) for name in keys.names])
            if isinstance(keys.names, list)
            else BoxNames()
        )
        if isinstance(keys.names, str):
            names = read_names(need_annotations(below(self.roots.root, keys.names)))
        again = Counter(filter(None, names.order)).most_common(1)
        if again and again[0][1] > 1:
            raise InputError(f"names of boxes: {again[0][0]} is there twice", "expected each once")
        return names

    def by_name(self, images: Sequence[Any], path: Path) -> Iterator[tuple[int, Any]]:
        """Each image of an annotation file that is in the listing, with its row; others are added
        to ``missing``.

        ``images`` are Drawn or Marked.
        """
        wanted, names = [image.name.removeprefix(self.roots.strip) for image in images], self.names
        if not any("." in name for name in wanted):  # image ids, as in Open Images
            names = [*map(without_ending, names)]
            self._refuse_same_stems(names, wanted, path)
        for row, image in zip(find_rows(wanted, names, self.roots.base, path), images, strict=True):
            if row < 0:
                self.missing.append(f"{image.name} ({image.where})")
            else:
                split = (
                    image.split
                    if isinstance(image, Drawn) and image.split
                    else self.splits.get(path)
                )
                if split is not None:
                    self.divided[row] = split
                yield row, image

    def _refuse_same_stems(self, stems: Sequence[str], wanted: Sequence[str], path: Path) -> None:
        """Raise InputError if two images have one name without their endings,
        and a file means one of them by it.
        """
        lasts = {name.rpartition("/")[2] for name in wanted}
        rows: dict[str, int] = {}
        for row, stem in enumerate(stems):
            if rows.setdefault(stem, row) != row and stem.rpartition("/")[2] in lasts:
                what = f"{self.names[row]} has the name of {self.names[rows[stem]]}, too: {stem}"
                raise InputError(
                    what, f"expected one image of each name of {path}", "rename one of them"
                )


def need_annotations(path: Path, expected: str = "file") -> Path:
    """A file or a folder of annotations; raises InputError if it is not there."""
    if (kind := kind_of(path)) != expected:
        problem = "not there" if kind == "nothing" else f"not a {expected}"
        raise InputError(f"{path} is {problem}", "expected annotations")
    return path


def find_rows(wanted: Sequence[str], names: Sequence[str], base: Path, path: Path) -> list[int]:
    """The row of the image that each name in an annotation file means, -1 for none; ``names`` are
    those of all images.

    Images below a folder that the file is named after come first: 0.jpg in instances_val2017.json
    is val2017/0.jpg, even if there is a train2017/0.jpg; then those below a folder of the same
    split, as WIDER_val. Then come all ways of ``match``, then images below a folder such as images,
    and last the names without folders, if all are in one folder of another machine.
    """
    stem = path.name.partition(".")[0]
    ways: Sequence[Callable[[], list[int]]] = (
        lambda: _from_folder(
            wanted, names, lambda each: stem == each or stem.endswith((f"_{each}", f"-{each}"))
        ),
        lambda: _of_split(split_in(stem), wanted, names),
        lambda: match(wanted, names, base, path),
        lambda: _from_folder(wanted, names, is_image_folder),
        lambda: _of_another_machine(wanted, names),
    )
    return next((rows for way in ways if max(rows := way(), default=-1) >= 0), [-1] * len(wanted))


def _from_folder(
    wanted: Sequence[str], names: Iterable[str], is_start: Callable[[str], bool]
) -> list[int]:
    """The rows of paths that start within a folder; -1 for one that is in several."""
    known = functools.cache(is_start)

    def inside(name: str) -> str:
        parts = name.split("/")
        place = next((place for place, part in enumerate(parts[:-1], 1) if known(part)), len(parts))
        return "/".join(parts[place:])

    rows = unique_rows(map(inside, names))
    rows.pop("", None)
    return [rows.get(text.removeprefix("./"), -1) for text in wanted]


def _of_split(split: str, wanted: Sequence[str], names: Sequence[str]) -> list[int]:
    """The rows of images in folders such as images below a folder of this split;
    -1 for all without a split.
    """
    known = functools.cache(split_in)
    rows = [
        row for row, name in enumerate(names) if split and split in map(known, name.split("/")[:-1])
    ]
    if not rows or len(rows) == len(names):
        return [-1] * len(wanted)
    places = _from_folder(wanted, [names[row] for row in rows], is_image_folder)
    return [rows[place] if place >= 0 else -1 for place in places]


def split_in(stem: str) -> str:
    """The split in the words of a name: "train" in instances_train2017;
    "" if there is none, or several.
    """
    splits = {split_name(word) for word in re.split(r"[\W_]+", stem)} - {""}
    return splits.pop() if len(splits) == 1 else ""


def _of_another_machine(wanted: Sequence[str], names: Iterable[str]) -> list[int]:
    """The rows of names without their folders: all are in one folder, which is none of a split."""
    plain = [text.replace("\\", "/") for text in wanted]
    folders = {text.rpartition("/")[0] for text in plain}
    if len(folders) != 1 or any(map(split_name, folders.pop().split("/"))):
        return [-1] * len(wanted)
    rows = unique_rows(name.rpartition("/")[2] for name in names)
    return [rows.get(text.rpartition("/")[2], -1) for text in plain]


# a file for each image ----------------------------------------------------------------------------


def files_by_stem(
    names: Sequence[str], folders: Sequence[str], ending: str, roots: Roots
) -> tuple[dict[int, Path], list[str]]:
    """The file of each image, by row, that has its name without the ending; and the files of no
    image.

    Folders count, too, except those that only say what is in them: images/train/a.jpg and
    labels/train/a.txt, as well as train/images/a.jpg and train/labels/a.txt. If those differ, what
    follows the annotations' own folder does, unless that is the file of another image by all of its
    folders.
    """
    root, paths = roots.root, _paths_by_key(folders, ending, roots.root)
    keys = [_key(os.path.relpath(below(roots.base, name), root)) for name in names]
    by_row: dict[int, Path] = {}
    rows: dict[Path, int] = {}
    for find in (_by_whole, _by_end):
        taken = set(rows)
        for row, key in enumerate(keys):
            path = None if row in by_row else find(paths, key)
            if path is None or path in taken:
                continue
            if path == Path() or rows.setdefault(path, row) != row:
                other = (
                    "several annotations" if path == Path() else f"{names[rows[path]]}, too: {path}"
                )
                what = f"{names[row]} has the name of {other}"
                raise InputError(
                    what,
                    "expected one annotation of this name for each image",
                    "rename one of them",
                )
            by_row[row] = path
    every = {path for path in paths.values() if path != Path()}
    return by_row, sorted(os.path.relpath(path, root) for path in every - rows.keys())


def _by_whole(paths: Mapping[str, Path], key: str) -> Path | None:
    """The file whose name is that of an image, folders included;
    None if there is none, or if several have it.
    """
    path = paths.get(key)
    return path if "/" in key and path != Path() else None


def _by_end(paths: Mapping[str, Path], key: str) -> Path | None:
    """The file that has most of the folders of an image; the empty path: several have as many."""
    parts = key.split("/")
    ends = ("/".join(parts[start:]) for start in range(len(parts)))
    return next((paths[end] for end in ends if end in paths), None)


def _paths_by_key(folders: Sequence[str], ending: str, root: Path) -> dict[str, Path]:
    """The files of annotations by a name that images can have;
    the empty path where several files have it.
    """
    paths: dict[str, Path] = {}
    for folder in [need_annotations(below(root, text), "folder") for text in folders]:
        for name in walk(folder, ending):
            path = folder / name
            for key in {_key(os.path.relpath(path, root), ending), _key(name, ending)}:
                if paths.setdefault(key, path) != path:
                    paths[key] = Path()
    return paths


def _key(name: str, ending: str = ".") -> str:
    """The path of a file without its ending, if it has one,
    and without folders that only say what is in them.
    """
    *folders, last = name.split("/")
    kept = [folder for folder in folders if not _says_only_what(folder)]
    stem = last.rpartition(".")[0] if ending else last
    if stem.lower().endswith(_IMAGE_ENDINGS):  # a.jpg.json
        stem = stem.rpartition(".")[0]
    return "/".join((*kept, unmasked(stem)))


_IMAGE_ENDINGS = tuple(ending for endings in ENDINGS.values() for ending in endings)


def _says_only_what(folder: str) -> bool:
    """Whether a folder has a name of images or annotations; KITTI has image_2 and label_2."""
    name = folder.rstrip("_0123456789")
    return is_image_folder(name) or is_mask_folder(name)
