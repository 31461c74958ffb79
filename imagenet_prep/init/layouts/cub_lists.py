"""cub_lists: CUB-200-2011 and sets like it, class folders with images.txt and
train_test_split.txt by number.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from imagenet_prep.errors import InputError
from imagenet_prep.init.inspection import Inspection
from imagenet_prep.init.layouts.class_folders import shape_of
from imagenet_prep.init.proposal import CERTAIN, Interpretation, Proposal
from imagenet_prep.storage.files import read_plain
from imagenet_prep.text import listed, number_of

_PATHS, _LABELS, _SPLITS = "images.txt", "image_class_labels.txt", "train_test_split.txt"
_BOXES = "CUB-200"
_NAMES_OF_SPLITS = {"1": "train", "0": "test"}


def recognise(inspection: Inspection) -> Interpretation | None:
    """Each line of the lists has the number of an image, then its path,
    its class, or 1 for train and 0 for test.
    """
    known = set(inspection.listing.names)
    folders = (name.removesuffix(_PATHS) for name in known if name.rpartition("/")[2] == _PATHS)
    home = next((folder for folder in folders if f"{folder}{_SPLITS}" in known), None)
    shape = shape_of(inspection.items)
    if home is None or not shape.has_classes or shape.splits:
        return None
    assert inspection.content is not None
    numbered = _read(inspection, home + _PATHS)
    names = {name.removeprefix(shape.lead) for name in shape.files.names()}
    if not numbered or 2 * len(names.intersection(numbered.values())) < len(names):
        return None
    splits = _read(inspection, home + _SPLITS)
    labels = _read(inspection, home + _LABELS) if f"{home}{_LABELS}" in known else {}
    faults = _faults(inspection, home, numbered, names, splits)
    if labels and not faults:
        faults = _contradictions(inspection, home, numbered, labels)
    if _BOXES in inspection.annotations and not faults:
        return None  # with boxes, boxes-in-class-folders takes these classes and these splits
    divided: dict[str, list[str]] = {split: [] for split in _NAMES_OF_SPLITS.values()}
    for number, path in numbered.items():
        divided[_NAMES_OF_SPLITS.get(splits.get(number, ""), "test")].append(path)
    divided = {split: paths for split, paths in divided.items() if paths}
    counts = ", ".join(f"{len(paths):,} {split}" for split, paths in divided.items())
    used = [f"{home}{name}" for name in (_PATHS, _LABELS, _SPLITS) if f"{home}{name}" in known]
    left = len(inspection.items) - len(numbered)
    return Interpretation(
        CERTAIN,
        (
            (
                f"{home}{_PATHS} names {len(numbered):,} images in class folders; {home}{_SPLITS}: "
                f"{counts}"
            ),
        ),
        f"the folders are the classes: {listed(shape.classes)}; {_SPLITS} divides them",
        Proposal(
            "folders",
            inspection.content,
            list(numbered.values()),
            shape.lead,
            written_lists=divided,
        ),
        faults,
        annotation_files=frozenset(used),
        skip_notes=[f"{number_of(left, inspection.noun)} not in {home}{_PATHS}, left out"]
        if left
        else [],
        labelled=len(numbered),
        classes=len(shape.classes),
    )


def _read(inspection: Inspection, name: str) -> dict[str, str]:
    """The text of each line of a list, by the number that it starts with;
    none if a line has no number.
    """
    found: dict[str, str] = {}
    for line in read_plain(inspection.folder / name).decode(errors="replace").splitlines():
        number, _, text = line.strip().partition(" ")
        if not number:
            continue
        if not number.isdigit() or not text or number in found:
            return {}
        found[number] = text.strip()
    return found


def _faults(
    inspection: Inspection,
    home: str,
    numbered: Mapping[str, str],
    names: set[str],
    splits: Mapping[str, str],
) -> list[InputError]:
    """Images that are not there, and images of no split."""
    faults = []
    if missing := [path for path in numbered.values() if path not in names]:
        what = (
            f"{inspection.folder / home / _PATHS} names {number_of(len(missing), 'image')} that "
            "are not there"
        )
        faults.append(
            InputError(
                f"{what}: {listed(missing)}", "expected all of them", "get them, or take them out"
            )
        )
    if wrong := [number for number in numbered if splits.get(number) not in _NAMES_OF_SPLITS]:
        what = (
            f"{inspection.folder / home / _SPLITS} has no 0 or 1 for "
            f"{number_of(len(wrong), 'image')}"
        )
        faults.append(
            InputError(f"{what}: {listed(wrong)}", "expected a line for each image", "correct it")
        )
    return faults


def _contradictions(
    inspection: Inspection, home: str, numbered: Mapping[str, str], labels: Mapping[str, str]
) -> list[InputError]:
    """The fault of a list of classes that are not those of the folders."""
    pairs = {(path.partition("/")[0], labels.get(number, "")) for number, path in numbered.items()}
    folders: Sequence[str] = sorted({folder for folder, _ in pairs})
    if len(pairs) == len(folders) == len({label for _, label in pairs}):
        return []
    what = f"{inspection.folder / home / _LABELS} gives the images other classes than their folders"
    return [InputError(what, "expected one number for each folder", "correct it, or move it away")]


LAYOUTS = {"cub-lists": recognise}
