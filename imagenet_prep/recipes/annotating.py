"""annotate: a recipe's `boxes` and `mask` -> Annotations: the objects and the mask of each image of a listing."""

from __future__ import annotations

import functools
import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import read_facts
from imagenet_prep.recipes import box_files
from imagenet_prep.recipes.box_files import BoxFile, Marked
from imagenet_prep.recipes.box_policy import BoxesOutside, ImpossibleBox, Size, fault
from imagenet_prep.recipes.labels import class_notes, left_out
from imagenet_prep.recipes.labels_file import match, unique_rows, without_ending
from imagenet_prep.recipes.splits import is_image_folder, is_mask_folder, unmasked
from imagenet_prep.sources.catalog import MASK_STAMP, Catalog
from imagenet_prep.sources.names import below, edges_of, text_of
from imagenet_prep.sources.slices import Reader
from imagenet_prep.storage.files import kind_of
from imagenet_prep.text import listed, number_of
from imagenet_prep.tfrecord.inception import EDGES

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import Boxes, Mask

SIZE = "boxes.size"
"""The column of the size that boxes were annotated for, which an image must have."""

FIRST = 1
"""The label of the first class: the Object Detection API keeps 0 for the background."""

_USUAL = tuple(f"boxes.{each}" for each in (*EDGES, "label", "text", "source_id"))


class Annotations(Struct):
    """The objects and masks of images.

    Args:
        listing: the images that stay, with their boxes.
        values: the columns of its rows, by the names in detection.FEATURES; and SIZE.
        columns: those that a record can hold.
        classes: the names of boxes by label.
        masks: the folder that paths of masks start at.
        notes: what was cut, left out or not found.
        unmatched: images without annotation, and annotations without image, by name.
        unread: notes of what annotation files hold and records don't.
        changed_boxes: how many boxes of each image were "clipped" and "dropped", by its name.
    """

    listing: Catalog
    values: dict[str, list[Any]] = {}
    columns: tuple[str, ...] = ()
    classes: Mapping[int, str] = {}
    masks: Path | None = None
    notes: list[str] = []
    unmatched: tuple[Sequence[str], Sequence[str]] = ((), ())
    unread: Sequence[str] = ()
    changed_boxes: Mapping[str, Mapping[str, int]] = {}

    @property
    def settings(self) -> dict[str, Any]:
        """The classes of boxes for the manifest: they decide bytes, and verify reads them."""
        return {"boxes": {str(label): name for label, name in self.classes.items()}} if self.classes else {}

    def renumber(self, classes: Mapping[int, str]) -> None:
        """Give the boxes these labels, by the names of their classes, which must have them all."""
        labels = {name: label for label, name in classes.items()}
        labels_now = {label: labels[name] for label, name in self.classes.items()}
        if "boxes.label" in self.values:
            self.values["boxes.label"] = [[labels_now[label] for label in row] for row in self.values["boxes.label"]]
        outdated = set(_note_of_labels(self.classes))
        self.classes = dict(sorted(classes.items()))
        self.notes = [note for note in self.notes if note not in outdated]
        self.notes += _note_of_labels(self.classes)


class _Images(Struct):
    """The images that annotations are sought for: their names start at ``base``, other paths at ``root``.

    ``marked`` are the images with annotations by row, ``missing`` the names of annotations without an image.
    """

    listing: Catalog
    names: list[str]
    base: Path
    root: Path
    file: BoxFile
    strip: str = ""
    marked: dict[int, Marked] = {}
    missing: list[str] = []

    def mark(self, row: int, image: Marked) -> Marked:
        """Keep the annotations of an image; raises InputError if it has others."""
        if (other := self.marked.setdefault(row, image)) is not image:
            what = f"{self.names[row]} is annotated in {other.where} too"
            raise fault(image.where, what, "expected every image once")
        return image

    def size(self, row: int) -> Size:
        """Width and height of an image, from its header."""
        data = self.listing.read(row, Reader())
        try:
            facts = read_facts(data)
        except ImageError as error:
            raise InputError(f"{self.names[row]}: {error}", "expected an image") from error
        return facts.width, facts.height


def annotate(  # noqa: PLR0913 - what a recipe says of annotations
    boxes: Boxes | None,
    mask: Mask | None,
    listing: Catalog,
    base: Path,
    root: Path,
    policy: BoxesOutside = "refuse",
    strip: str | None = None,
) -> Annotations:
    """The objects and masks of the images of a listing.

    Args:
        boxes: the recipe's key.
        mask: the same.
        listing: the images; their names start at ``base``.
        base: that folder.
        root: the folder of relative paths.
        policy: what becomes of impossible boxes.
        strip: what is taken off the names of images in annotation files.

    Raises:
        InputError: an annotation is not there or can't be; an image has none, or one has no image.
    """
    found = Annotations(listing)
    if mask is not None:  # first: rows that go take no boxes with them
        _add_masks(found, mask, base, root)
    if boxes is not None:
        images = _Images(found.listing, list(found.listing.names), base, root, BoxFile(policy), strip or "")
        _add_boxes(found, boxes, images)
        found.notes += _note_of_labels(found.classes)
    if not len(found.listing):
        raise InputError(f"no image in {base} has an annotation", "expected some")
    return found


def _note_of_labels(classes: Mapping[int, str]) -> Iterator[str]:
    return class_notes([*classes.values()], [*classes], "labels of boxes")


def _add_boxes(found: Annotations, keys: Boxes, images: _Images) -> None:
    way = next(name for name in _WAYS if getattr(keys, name) is not None)
    _WAYS[way](keys, images)
    file, names, marked = images.file, images.names, images.marked
    _refuse_impossible(marked)
    missing = list(dict.fromkeys(images.missing))
    _label(keys, file, marked, images.root)
    policy = keys.unannotated or ("empty" if way == "yolo" else "error")
    bare = [name for row, name in enumerate(names) if row not in marked]
    where = listed(_texts(getattr(keys, way)))
    found.notes += _unmatched("an annotation", "unannotated", where, bare, policy)
    found.notes += _unmatched("an image", "missing", where, missing, keys.missing)
    found.notes += _notes(file, [names[row] for row, each in sorted(marked.items()) if not each.boxes])
    found.notes += _notes_of_impossible(marked, file.policy)
    found.notes += file.unread
    found.changed_boxes = _count_changed(marked, names)
    found.unmatched, found.unread = (bare, missing), file.unread
    rows = [row for row in range(len(names)) if row in marked or policy != "skip"]
    several = [marked.get(row) or file.captioned.get(row) or Marked("", "") for row in rows]
    found.values = {name: [values[row] for row in rows] for name, values in found.values.items()}
    found.columns += (*_USUAL, *file.columns, *(("boxes.caption",) if keys.captions else ()))
    found.classes = dict(sorted(file.classes.items()))
    found.values[SIZE] = [each.size for each in several]
    for name in (name for name in found.columns if name.startswith("boxes.") and name.partition(".")[2] not in EDGES):
        found.values[name] = [each.values.get(name, each.columns.get(name, [])) for each in several]
    lasts = zip(several, (names[row].rpartition("/")[2] for row in rows), strict=True)
    found.values["boxes.source_id"] = [each.values.get("boxes.source_id", name) for each, name in lasts]
    found.listing = replace(
        images.listing.picked(rows),
        box_starts=edges_of(np.fromiter((len(each.boxes) for each in several), np.int64, len(several))),
        boxes=np.fromiter((edge for each in several for box in each.boxes for edge in box), np.float32),
    )


def _add_masks(found: Annotations, keys: Mask, base: Path, root: Path) -> None:
    folders, names = _texts(keys.folder), list(found.listing.names)
    masks, missing = _by_stems(names, folders, ".png", base, root)
    bare = [name for row, name in enumerate(names) if row not in masks]
    found.notes += _unmatched("a mask", "unmasked", listed(folders), bare, keys.unmasked)
    found.notes += _unmatched("an image", "missing", listed(folders), missing, keys.missing)
    found.unmatched = bare, missing
    rows = sorted(masks)
    found.listing = found.listing.picked(rows)
    facts = [(masks[row], masks[row].stat()) for row in rows]
    found.values = {
        MASK_STAMP: [[f"masks in {os.path.realpath(path.parent)}", each.st_mtime_ns] for path, each in facts],
        "mask.encoded": [[text_of(os.path.relpath(path, root)), each.st_size] for path, each in facts],
        "mask.format": ["png"] * len(rows),
    }
    found.columns += ("mask.encoded", "mask.format")
    found.masks = root


def _texts(value: str | list[str] | None) -> list[str]:
    return [value] if isinstance(value, str) else value or []


_SKIPS = {"missing": "missing: ignore", "unmasked": "unmasked: skip"}
_SKIPS["unannotated"] = "unannotated: skip (or empty: they are kept without boxes)"


def _unmatched(what: str, key: str, where: str, names: Sequence[str], policy: str) -> list[str]:
    text = f"{where}: {number_of(len(names), 'annotation' if what == 'an image' else 'image')} without {what}"
    hint = f"to leave them out, write next to {where}: {_SKIPS[key]}"
    return left_out(text, names, policy, "expected one for each", hint)


def _notes(file: BoxFile, bare: Sequence[str]) -> Iterator[str]:
    if file.cut:
        yield f"{number_of(len(file.cut), 'box', 'boxes')} cut at the edge of the image: {listed(file.cut)}"
    if bare:
        yield f"{number_of(len(bare), 'image has', 'images have')} no box: {listed(bare)}"


# impossible boxes ----------------------------------------------------------------------------------------------


def _impossible(marked: Mapping[int, Marked]) -> list[ImpossibleBox]:
    """The impossible boxes of all images, in the order of the images."""
    return [box for _, image in sorted(marked.items()) for box in image.impossible]


def _refuse_impossible(marked: Mapping[int, Marked]) -> None:
    """Raise InputError if the recipe refuses impossible boxes and images have some: the error counts all of them."""
    refused = [box for box in _impossible(marked) if box.outcome == "refused"]
    if not refused:
        return
    others = [box.where for box in refused[1:]]
    more = f"; {number_of(len(others), 'more box', 'more boxes')} can't be: {listed(others)}" if others else ""
    hint = "correct the annotations, or write in the recipe: boxes_outside: clip (or drop, which leaves such boxes out)"
    raise InputError(f"{refused[0].where}: {refused[0].problem}", f"{refused[0].expected}{more}", hint)


def _notes_of_impossible(marked: Mapping[int, Marked], policy: BoxesOutside) -> Iterator[str]:
    impossible = _impossible(marked)
    for outcome in ("clipped", "dropped"):
        places = [box.where for box in impossible if box.outcome == outcome]
        if places:
            count = number_of(len(places), "impossible box", "impossible boxes")
            yield f"boxes_outside: {policy}: {count} {outcome}: {listed(places)}"


def _count_changed(marked: Mapping[int, Marked], names: Sequence[str]) -> dict[str, dict[str, int]]:
    """How many boxes of each image were clipped and dropped, by its name; nothing for the usual image."""
    changed: dict[str, dict[str, int]] = {}
    for row, image in sorted(marked.items()):
        if image.impossible:
            changed[names[row]] = dict(Counter(box.outcome for box in image.impossible))
    return changed


def _label(keys: Boxes, file: BoxFile, marked: Mapping[int, Marked], root: Path) -> None:
    """Number the classes of boxes in the order of ``names``, otherwise of their bytes; COCO numbers its own.

    Raises:
        InputError: a class is not among ``names``.
    """
    if keys.coco is not None:
        return
    names = given_names(keys, root) or sorted({text for each in marked.values() for text in each.texts}, key=str.encode)
    first = FIRST if keys.first_label is None else keys.first_label
    file.classes = {label: name for label, name in enumerate(names, first) if name}
    labels = {name: label for label, name in file.classes.items()}
    for each in marked.values():
        strange = next((text for text in each.texts if text not in labels), None)
        if strange is not None:
            raise fault(each.where, f"the class {strange!r}", f"expected one of {listed(labels, 20)}")
        each.columns["boxes.label"] = [labels[text] for text in each.texts]


def given_names(keys: Boxes, root: Path) -> list[str]:
    """The names of classes that the recipe gives, itself or in a file."""
    said = keys.names
    names = (
        [str(each) for each in said]
        if isinstance(said, list)
        else box_files.read_names(_need(below(root, said)))
        if said
        else []
    )
    again = Counter(filter(None, names)).most_common(1)
    if again and again[0][1] > 1:
        raise InputError(f"names of boxes: {again[0][0]} is there twice", "expected each once")
    return names


def _need(path: Path, kind: str = "file") -> Path:
    if (found := kind_of(path)) != kind:
        raise InputError(f"{path} is {'not there' if found == 'nothing' else f'not a {kind}'}", "expected annotations")
    return path


# each kind of annotation ---------------------------------------------------------------------------------------


def _coco(keys: Boxes, images: _Images) -> None:
    paths = [_need(below(images.root, text)) for text in _texts(keys.coco)]
    contents = [box_files.read_coco(path) for path in paths]
    most = max((len(each.keypoints) for content in contents for each in content.categories), default=0)
    while contents:
        path, content = paths.pop(0), contents.pop(0)  # it takes a gigabyte
        for row, image in _by_name(box_files.coco_boxes(path, content, most, images.file), images, path):
            images.mark(row, image)
    for path in (_need(below(images.root, text)) for text in _texts(keys.captions)):
        for row, image in _by_name(box_files.coco_captions(path, box_files.read_coco(path)), images, path):
            captions = image.values.pop("boxes.caption", [])
            kept = images.marked.get(row) or images.file.captioned.setdefault(row, image)
            kept.values.setdefault("boxes.caption", []).extend(captions)


def _by_name(found: Sequence[Marked], images: _Images, path: Path) -> Iterator[tuple[int, Marked]]:
    """Each image of an annotation file that is in the listing, with its row; others are added to ``missing``."""
    wanted, names = [each.name.removeprefix(images.strip) for each in found], images.names
    if not any("." in name for name in wanted):  # image ids, as in Open Images
        names = [*map(without_ending, names)]
        lasts = {name.rpartition("/")[2] for name in wanted}
        rows: dict[str, int] = {}
        for row, stem in enumerate(names):
            if rows.setdefault(stem, row) != row and stem.rpartition("/")[2] in lasts:
                what = f"{images.names[row]} has the name of {images.names[rows[stem]]}, too: {stem}"
                raise InputError(what, f"expected one image of each name of {path}", "rename one of them")
    for row, image in zip(find_rows(wanted, names, images.base, path), found, strict=True):
        if row < 0:
            images.missing.append(f"{image.name} ({image.where})")
        else:
            yield row, image


def find_rows(wanted: Sequence[str], names: Sequence[str], base: Path, path: Path) -> list[int]:
    """The row of the image that each name in an annotation file means, -1 for none; ``names`` are those of all images.

    Images below a folder that the file is named after come first: 0.jpg in instances_val2017.json is val2017/0.jpg,
    even if there is a train2017/0.jpg. Then come all ways of ``match``, and last, images below a folder such as images.
    """
    stem = path.name.partition(".")[0]
    ways: Sequence[Callable[[], list[int]]] = (
        lambda: _from_folder(wanted, names, lambda each: stem == each or stem.endswith((f"_{each}", f"-{each}"))),
        lambda: match(wanted, names, base, path),
        lambda: _from_folder(wanted, names, is_image_folder),
    )
    return next((found for way in ways if max(found := way(), default=-1) >= 0), [-1] * len(wanted))


def _from_folder(wanted: Sequence[str], names: Iterable[str], is_start: Callable[[str], bool]) -> list[int]:
    """The rows of paths that start within a folder; -1 for one that is in several."""
    known = functools.cache(is_start)

    def inside(name: str) -> str:
        parts = name.split("/")
        place = next((place for place, each in enumerate(parts[:-1], 1) if known(each)), len(parts))
        return "/".join(parts[place:])

    rows = unique_rows(map(inside, names))
    rows.pop("", None)
    return [rows.get(text.removeprefix("./"), -1) for text in wanted]


def _voc(keys: Boxes, images: _Images) -> None:
    _mark_stems(keys.voc, images, ".xml", lambda path: box_files.voc_boxes(path, images.file))
    names = [name.rpartition("/")[2] for name in images.names]
    known = set(names)
    others = [each.where for row, each in images.marked.items() if each.name != names[row] and each.name in known]
    if others:
        count = number_of(len(others), "annotation names", "annotations name")
        what = f"{count} another image in <filename>: {listed(others)}; the file's own name counts"
        images.file.unread.append(what)


def _yolo(keys: Boxes, images: _Images) -> None:
    names = given_names(keys, images.root)
    _mark_stems(keys.yolo, images, ".txt", lambda path: box_files.yolo_boxes(path, names, images.file))


def _mark_stems(said: str | list[str] | None, images: _Images, ending: str, read: Callable[[Path], Marked]) -> None:
    """Read a file for each image, below folders that the recipe names."""
    found, missing = _by_stems(images.names, _texts(said), ending, images.base, images.root)
    images.marked.update((row, read(path)) for row, path in found.items())
    images.missing += missing


def _csv(keys: Boxes, images: _Images) -> None:
    for path in (_need(below(images.root, text)) for text in _texts(keys.csv)):
        rows = box_files.csv_boxes(path, keys.columns or {})
        relative = box_files.is_relative(rows)
        marked = {each.name: each for each in (Marked(row.name, row.where) for row in reversed(rows))}
        found = {image.name: (row, image) for row, image in _by_name(list(marked.values()), images, path)}
        for each in (row for row in rows if row.name in found):
            place, image = found[each.name]
            images.mark(place, image)
            if not relative:
                image.size = image.size or each.size or images.size(place)
                if each.size not in (None, image.size):
                    sizes = [f"{size[0]} x {size[1]}" for size in (each.size, image.size) if size]
                    raise fault(each.where, f"a size of {sizes[0]}", f"expected {sizes[1]}, as before")
            if each.corners is None:
                continue
            placed = images.file.place(each.corners, image, each.where)
            if placed.corners is not None:
                image.add(placed.corners, text=each.label)


_WAYS = {"coco": _coco, "voc": _voc, "yolo": _yolo, "csv": _csv}
"""The kinds of annotations by their keys."""


def _by_stems(
    names: Sequence[str], folders: Sequence[str], ending: str, base: Path, root: Path
) -> tuple[dict[int, Path], list[str]]:
    """The file of each image, by row, that has its name without the ending; and the files of no image.

    Folders count, too, except those that only say what is in them: images/train/a.jpg and labels/train/a.txt, as well
    as train/images/a.jpg and train/labels/a.txt. If those differ, what follows the annotations' own folder does.
    """
    paths: dict[str, Path] = {}  # by a name that images can have; the empty path: several files have it
    for folder in (_need(below(root, each), "folder") for each in folders):
        for name in box_files.walk(folder, ending):
            path = folder / name
            for key in {_key(os.path.relpath(path, root)), _key(name)}:
                if paths.setdefault(key, path) != path:
                    paths[key] = Path()
    found: dict[int, Path] = {}
    rows: dict[Path, int] = {}
    for row, name in enumerate(names):
        parts = _key(os.path.relpath(below(base, name), root)).split("/")
        keys = ("/".join(parts[start:]) for start in range(len(parts)))
        own = next((paths[key] for key in keys if key in paths), None)
        if own is None:
            continue
        if own == Path() or rows.setdefault(own, row) != row:
            other = "several annotations" if own == Path() else f"{names[rows[own]]}, too: {own}"
            what = f"{name} has the name of {other}"
            raise InputError(what, "expected one annotation of this name for each image", "rename one of them")
        found[row] = own
    every = {path for path in paths.values() if path != Path()}
    return found, sorted(os.path.relpath(path, root) for path in every - rows.keys())


def _key(name: str) -> str:
    *folders, last = name.split("/")
    kept = [each for each in folders if not is_image_folder(each) and not is_mask_folder(each)]
    return "/".join((*kept, unmasked(last.rpartition(".")[0])))
