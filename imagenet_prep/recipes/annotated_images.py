"""AnnotatedImages: the images of a listing, and which of them each name or file of annotations
means.

Annotation files come in two kinds: one for each image, which has its name (``mark_files``), or one
for many images, which it names (``mark_named``).
"""

from __future__ import annotations

import functools
import itertools
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
from imagenet_prep.recipes.annotation_files import list_files
from imagenet_prep.recipes.box_files import BoxFile, Drawn, Marked
from imagenet_prep.recipes.box_names import BoxNames, read_box_names
from imagenet_prep.recipes.box_policy import Size, fault
from imagenet_prep.recipes.folder_words import is_image_folder, is_mask_folder, split_name, unmasked
from imagenet_prep.recipes.path_matching import match, unique_rows, without_ending
from imagenet_prep.recipes.recipe_paths import fault_of_path, remedy_of_path
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.names import below
from imagenet_prep.sources.slices import Reader
from imagenet_prep.text import listed

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
    """The images that annotations are sought for.

    Args:
        listing: the images.
        names: theirs, by which annotations find them.
        roots: where paths start.
        file: what annotation files hold, of all images.
        splits: the splits of files of annotations.
        divided: the splits of images, by row.
        marked: the images with annotations, by row.
        missing: the names of annotations without an image.
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
        earlier_image = self.marked.setdefault(row, image)
        if earlier_image is not image:
            problem = f"{self.names[row]} is annotated in {earlier_image.place} too"
            hint = f"remove one of these two entries of {self.names[row]}"
            raise fault(image.place, problem, "expected each image only once", hint)
        return image

    def place(self, row: int, drawn: Drawn) -> Marked:
        """The image with its objects as records have them;
        its header gives a size that the file does not.
        """
        image = Marked(drawn.name, drawn.place, drawn.size)
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
            for folder, split in self.splits.items():
                if path.is_relative_to(folder):
                    self.divided[row] = split
                    break
        self.missing += missing

    def mark_named(self, texts: Sequence[str], read: Callable[[Path], Sequence[Drawn]]) -> None:
        """Read files that name their images."""
        for path in self.paths(texts):
            for row, drawn in self.by_name(read(path), path):
                self.mark(row, self.place(row, drawn))

    def class_names(self, keys: BoxKeys) -> BoxNames:
        """The classes that the recipe names, itself or in a file;
        raises InputError if one occurs twice.
        """
        names = BoxNames()
        place = "`names` in the recipe's `boxes`"
        if isinstance(keys.names, list):
            names = BoxNames([str(name) for name in keys.names])
        elif isinstance(keys.names, str):
            path = below(self.roots.root, keys.names)
            place = str(path)
            names = read_box_names(need_annotations(path, content="the names of the classes"))
        for name, count in Counter(filter(None, names.order)).most_common(1):
            if count > 1:
                problem = f"{place}: the class {name} occurs {count:,} times"
                raise InputError(problem, "expected each class once")
        return names

    def by_name(self, images: Sequence[Any], path: Path) -> Iterator[tuple[int, Any]]:
        """Each image of an annotation file that is in the listing, with its row; others are added
        to ``missing``.

        ``images`` are Drawn or Marked.
        """
        names = self.names
        annotated_names = [image.name.removeprefix(self.roots.strip) for image in images]
        if not any("." in name for name in annotated_names):  # image ids, as in Open Images
            names = [*map(without_ending, names)]
            self._refuse_same_stems(names, annotated_names, path)
        rows = find_rows(annotated_names, names, self.roots.base, path)
        split_of_file = self.splits.get(path)
        for row, image in zip(rows, images, strict=True):
            if row < 0:
                if not image.name:
                    raise fault(image.place, "no image is named", "expected the name of an image")
                self.missing.append(f"{image.name} ({image.place})")
                continue
            has_split = isinstance(image, Drawn) and image.split
            split = image.split if has_split else split_of_file
            if split is not None:
                self.divided[row] = split
            yield row, image

    def _refuse_same_stems(
        self, stems: Sequence[str], annotated_names: Sequence[str], path: Path
    ) -> None:
        """Raise InputError if two images have one name without their endings,
        and a file means one of them by it.
        """
        annotated_stems = {name.rpartition("/")[2] for name in annotated_names}
        rows: dict[str, int] = {}
        for row, stem in enumerate(stems):
            if rows.setdefault(stem, row) != row and stem.rpartition("/")[2] in annotated_stems:
                first_name, name = self.names[rows[stem]], self.names[row]
                raise InputError(
                    f"{path}: {stem} may be the image {first_name} or {name}",
                    "expected one image for each name without an ending",
                    f"rename one of these images; or write all names in {path.name} with their "
                    "endings",
                )


def need_annotations(path: Path, expected: str = "file", content: str = "annotations") -> Path:
    """A file or a folder of annotations, or of other ``content``, that the recipe names; raises
    InputError if it is not there.
    """
    problem = fault_of_path(path, expected)
    if not problem:
        return path
    hint = remedy_of_path(problem)
    raise InputError(f"{path} {problem}", f"expected a {expected} of {content}", hint)


def find_rows(
    annotated_names: Sequence[str], names: Sequence[str], base: Path, path: Path
) -> list[int]:
    """The row of the image that each name in an annotation file means, -1 for none; ``names`` are
    those of all images.

    Images below a folder that the file is named after come first: 0.jpg in instances_val2017.json
    is val2017/0.jpg, even if there is a train2017/0.jpg; then those below a folder of the same
    split, as WIDER_val. Then comes ``match``, then images below a folder such as images,
    and last the names without folders, if all are in one folder of another machine.
    """
    stem = path.name.partition(".")[0]

    def is_named_folder(folder: str) -> bool:
        return stem == folder or stem.endswith((f"_{folder}", f"-{folder}"))

    def matches() -> Iterator[list[int]]:
        yield _match_below(annotated_names, names, is_named_folder)
        yield _match_split(split_in(stem), annotated_names, names)
        yield match(annotated_names, names, base, path)
        yield _match_below(annotated_names, names, is_image_folder)
        yield _match_last_parts(annotated_names, names)

    for rows in matches():
        if max(rows, default=-1) >= 0:
            return rows
    return [-1] * len(annotated_names)


def _match_below(
    annotated_names: Sequence[str], names: Iterable[str], is_start: Callable[[str], bool]
) -> list[int]:
    """The rows of paths that start within a folder; -1 for one that is in several."""
    is_start = functools.cache(is_start)

    def path_below(name: str) -> str:
        parts = name.split("/")
        for place, folder in enumerate(parts[:-1], 1):
            if is_start(folder):
                return "/".join(parts[place:])
        return ""

    rows = unique_rows(map(path_below, names))
    rows.pop("", None)
    return [rows.get(name.removeprefix("./"), -1) for name in annotated_names]


def _match_split(split: str, annotated_names: Sequence[str], names: Sequence[str]) -> list[int]:
    """The rows of images in folders such as images below a folder of this split;
    -1 for all without a split.
    """
    unmatched = [-1] * len(annotated_names)
    if not split:
        return unmatched
    cached_split_in = functools.cache(split_in)
    rows_of_split = []
    for row, name in enumerate(names):
        if split in map(cached_split_in, name.split("/")[:-1]):
            rows_of_split.append(row)
    if not rows_of_split or len(rows_of_split) == len(names):
        return unmatched
    names_of_split = [names[row] for row in rows_of_split]
    places = _match_below(annotated_names, names_of_split, is_image_folder)
    return [rows_of_split[place] if place >= 0 else -1 for place in places]


def split_in(stem: str) -> str:
    """The split in the words of a name: "train" in instances_train2017;
    "" if there is none, or several.
    """
    splits = {split_name(word) for word in re.split(r"[\W_]+", stem)} - {""}
    return splits.pop() if len(splits) == 1 else ""


def _match_last_parts(annotated_names: Sequence[str], names: Iterable[str]) -> list[int]:
    """The rows of names without their folders, which are those of another machine: all are in one
    folder, which is none of a split.
    """
    paths = [name.replace("\\", "/") for name in annotated_names]
    folders = {path.rpartition("/")[0] for path in paths}
    unmatched = [-1] * len(annotated_names)
    if len(folders) != 1:
        return unmatched
    folder = folders.pop()
    if any(map(split_name, folder.split("/"))):
        return unmatched
    rows = unique_rows(name.rpartition("/")[2] for name in names)
    return [rows.get(path.rpartition("/")[2], -1) for path in paths]


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
    root = roots.root
    paths = _paths_by_key(folders, ending, root)
    keys = [_key(os.path.relpath(below(roots.base, name), root)) for name in names]
    path_of_row: dict[int, Path] = {}
    row_of_path: dict[Path, int] = {}
    for find in (_find_whole, _find_end):
        paths_taken_before = set(row_of_path)
        for row, key in enumerate(keys):
            path = None if row in path_of_row else find(paths, key)
            if path is None or path in paths_taken_before:
                continue
            if path == _AMBIGUOUS:
                pairs = _keyed_paths(folders, ending, root)
                end = _known_end(paths, key)
                candidates = {os.path.relpath(path, root) for name, path in pairs if name == end}
                raise _several_fit(names[row], candidates, folders, root)
            if row_of_path.setdefault(path, row) != row:
                problem = f"{path} fits {names[row_of_path[path]]} and {names[row]}"
                raise _ambiguous(
                    problem, "rename one of these images, and give each a file with its name"
                )
            path_of_row[row] = path
    unused_paths = set(paths.values()) - row_of_path.keys() - {_AMBIGUOUS}
    return path_of_row, sorted(os.path.relpath(path, root) for path in unused_paths)


def _is_within(folder: str, folders: Iterable[str]) -> bool:
    """Whether one of the folders holds this one."""
    return any(folder.startswith(f"{other}/") for other in folders)


_AMBIGUOUS = Path()
"""Stands for several files of one name."""


def _several_fit(
    image: str, candidates: Iterable[str], folders: Sequence[str], root: Path
) -> InputError:
    """The error for an image that several files of these folders fit."""
    problem = f"several annotations fit {image}: {listed(sorted(candidates))}"
    places = {os.path.normpath(below(root, text)) for text in folders}
    outer = [place for place in places if not _is_within(place, places)]
    others = f"the others out of {listed(sorted(outer))}"
    return _ambiguous(problem, f"keep one of these files, and move {others}")


def _ambiguous(problem: str, hint: str) -> InputError:
    """The error for an image that several files fit, or whose file fits another one."""
    return InputError(problem, "expected one file of annotations for each image", hint)


def _find_whole(paths: Mapping[str, Path], key: str) -> Path | None:
    """The file whose name is that of an image, folders included;
    None if there is none, or if several have it.
    """
    path = paths.get(key)
    return path if "/" in key and path != _AMBIGUOUS else None


def _find_end(paths: Mapping[str, Path], key: str) -> Path | None:
    """The file that has most of the folders of an image, which may be ambiguous."""
    return paths.get(_known_end(paths, key))


def _known_end(paths: Mapping[str, Path], key: str) -> str:
    """The longest end of an image's name that a file has; "" if none has any."""
    parts = key.split("/")
    for start in range(len(parts)):
        end = "/".join(parts[start:])
        if end in paths:
            return end
    return ""


def _paths_by_key(folders: Sequence[str], ending: str, root: Path) -> dict[str, Path]:
    """The files of annotations by a name that images can have."""
    paths: dict[str, Path] = {}
    for key, path in _keyed_paths(folders, ending, root):
        if paths.setdefault(key, path) != path:
            paths[key] = _AMBIGUOUS
    return paths


def _keyed_paths(folders: Sequence[str], ending: str, root: Path) -> Iterator[tuple[str, Path]]:
    """The files of annotations, each with every name that its image can have."""
    for folder in [need_annotations(below(root, text), "folder") for text in folders]:
        for name in list_files(folder, ending):
            path = folder / name
            for key in {_key(os.path.relpath(path, root), ending), _key(name, ending)}:
                yield key, path


def _key(name: str, ending: str = ".") -> str:
    """The path of a file without its ending, if it has one,
    and without folders that only say what is in them.
    """
    *folders, file_name = name.split("/")
    telling_folders = [folder for folder in folders if not _says_only_what(folder)]
    stem = file_name.rpartition(".")[0] if ending else file_name
    if stem.lower().endswith(_IMAGE_ENDINGS):  # a.jpg.json
        stem = stem.rpartition(".")[0]
    return "/".join((*telling_folders, unmasked(stem)))


_IMAGE_ENDINGS = tuple(itertools.chain.from_iterable(ENDINGS.values()))


def _says_only_what(folder: str) -> bool:
    """Whether a folder has a name of images or annotations; KITTI has image_2 and label_2."""
    name = folder.rstrip("_0123456789")
    return is_image_folder(name) or is_mask_folder(name)
