"""Roles: the folders of a listing, each with its number of files -> which are splits,
classes, or neither.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.recipes.folder_words import (
    are_numbers,
    is_image_folder,
    is_mask_folder,
    is_no_class,
    is_unlabelled,
)
from imagenet_prep.recipes.splits import USUAL, split_names
from imagenet_prep.sources.patterns import literal


class FolderTree:
    """A folder: how many files are directly in it, and the folders below it."""

    def __init__(self) -> None:
        self.files = 0
        self.below: dict[str, FolderTree] = {}

    @classmethod
    def take(cls, names: Iterable[str]) -> FolderTree:
        """The folders of files, by their names."""
        file_counts = Counter(name.rpartition("/")[0] for name in names)
        root = cls()
        for path, count in file_counts.items():
            root.add(path, count)
        return root

    def add(self, path: str, files: int) -> None:
        """Count files that are directly in the folder of this path; "" is this one."""
        folder = self
        for name in _parts_of(path):
            folder = folder.below.setdefault(name, FolderTree())
        folder.files += files

    def at(self, path: str) -> FolderTree:
        """The folder of this path."""
        folder = self
        for name in _parts_of(path):
            folder = folder.below[name]
        return folder

    @property
    def total(self) -> int:
        """How many files are in it and below."""
        below = sum(folder.total for folder in self.below.values())
        return self.files + below

    @property
    def only_folder(self) -> tuple[str, FolderTree] | None:
        """The folder that holds all of its files; None if there are several, or it has files."""
        if self.files or len(self.below) != 1:
            return None
        (only_item,) = self.below.items()
        return only_item


def _parts_of(path: str) -> list[str]:
    """The names of the folders in a path; none in ""."""
    if not path:
        return []
    return path.split("/")


class Roles(Struct, frozen=True):
    """The roles of folders; paths start at ``lead``, the folders that lead to all.

    Args:
        lead: with a slash, or "".
        splits: the split of each folder that holds class folders; "" is the top, whose other
            folders are classes.
        within: where splits are folders within classes: the split of each such folder, by its name.
        parts: folders that hold the same classes each.
        unlabelled: folders whose images have no class, as those of a test without labels.
        doubtful: folders next to the classes whose names are those of splits, or of anything but
            classes.
        missed: folders next to splits that may hold more images with labels.
        loose: how many files are in no class folder.
        are_numbers: whether all folders are doubtful since they are called by days or numbers.
        classes: the names of the class folders.
    """

    lead: str = ""
    splits: Mapping[str, str] = {}
    within: Mapping[str, str] = {}
    parts: Sequence[str] = ()
    unlabelled: Sequence[str] = ()
    doubtful: Sequence[str] = ()
    missed: Sequence[str] = ()
    loose: int = 0
    are_numbers: bool = False
    classes: frozenset[str] = frozenset()

    @property
    def left_out(self) -> list[str]:
        """The folders of which no image has a class."""
        return [*self.unlabelled, *self.doubtful, *self.missed]

    def places(self) -> dict[str, dict[str, Any]]:
        """The recipe's ``splits`` that takes these folders, of a source that starts at ``lead``;
        none if all do.
        """
        if self.within:
            return self._places_within()
        if self.parts:
            return {"train": {"folder": list(self.parts)}}
        left_out = _excluding(self.left_out)
        if not self.splits:
            takes_all = not left_out and not self.loose
            if takes_all:
                return {}
            return {"train": {"files": ["*/**/*", *left_out]}}
        places: dict[str, dict[str, Any]] = {}
        for split, folders in _by_split(self.splits).items():
            if "" in folders:
                split_folders = _excluding(filter(None, self.splits))
                places[split] = {"files": ["*/**/*", *split_folders, *left_out]}
            else:
                places[split] = {"folder": _one_or_list(folders)}
        return places

    def _places_within(self) -> dict[str, dict[str, Any]]:
        """The recipe's ``splits`` where these are folders within classes."""
        places: dict[str, dict[str, Any]] = {}
        for split, names in _by_split(self.within).items():
            patterns = [f"*/{literal(name)}/**/*" for name in names]
            places[split] = {"files": _one_or_list(patterns)}
        return places

    def places_in_tars(self) -> dict[str, dict[str, Any]] | None:
        """The recipe's ``splits`` of a source that starts above ``lead``, as tars do;
        None if no recipe can say it.
        """
        places = self.places()
        if not self.lead:
            return places
        if not places:
            return {"train": {"folder": self.lead.rstrip("/")}}
        if any("files" in place for place in places.values()):
            return None
        for place in places.values():
            folders = place["folder"]
            if not isinstance(folders, list):
                folders = [folders]
            paths = [f"{self.lead}{folder}" for folder in folders]
            place["folder"] = _one_or_list(paths)
        return places


def _excluding(folders: Iterable[str]) -> list[str]:
    """The patterns that leave folders out."""
    return [f"!{literal(folder)}/**/*" for folder in folders]


def _by_split(splits: Mapping[str, str]) -> dict[str, list[str]]:
    """The folders of each split, the splits in the usual order."""
    split_names = set(splits.values())
    folders: dict[str, list[str]] = {split: [] for split in USUAL if split in split_names}
    for folder, split in splits.items():
        folders_of_split = folders.setdefault(split, [])
        folders_of_split.append(folder)
    return folders


def _one_or_list(texts: list[str]) -> str | list[str]:
    if len(texts) == 1:
        return texts[0]
    return texts


_Holders = Mapping[str, tuple[str, FolderTree]]
"""The folder that holds the classes of each folder of a split, and its path, by that folder."""


def roles_of(root: FolderTree, splits: Mapping[str, str] | None = None) -> Roles:
    """The roles of the folders below ``root``; ``splits`` are those that are known, by folder."""
    if splits is not None:
        known_holders = {folder: (folder, root.at(folder)) for folder in splits}
        return _roles_below_splits(root, "", known_holders, splits, [])
    lead, top = _descend(root)
    splits = split_names(top.below)
    holders: dict[str, tuple[str, FolderTree]] = {}
    for folder in splits:
        holders[folder] = _descend_into(folder, top.below[folder])
    others = [folder for folder in top.below if folder not in splits]
    classes = _possible_classes(others)
    if _are_splits(holders, set(classes)):
        return _roles_below_splits(top, lead, holders, splits, others)
    return _roles_at_the_top(top, lead, holders, splits, classes)


def _possible_classes(folders: Sequence[str]) -> list[str]:
    """The folders whose names may be those of classes; next to images, masks are none."""
    classes = [folder for folder in folders if not is_no_class(folder)]
    if any(map(is_image_folder, folders)):
        classes = [folder for folder in classes if not is_mask_folder(folder)]
    return classes


def _descend(root: FolderTree) -> tuple[str, FolderTree]:
    """The folders that lead to all files, with a slash, and the last of them."""
    lead = ""
    top = root
    while top.only_folder is not None:
        name, folder = top.only_folder
        has_own_files = folder.files and len(folder.below) < 2
        is_class = not folder.below or has_own_files
        if is_class or _is_only_holder(folder):
            break
        lead = f"{lead}{name}/"
        top = folder
    return lead, top


def _is_only_holder(folder: FolderTree) -> bool:
    """Whether all files of a folder are in one folder within it, which is no class:
    class/images/1.jpg.
    """
    if folder.only_folder is None:
        return False
    name, inner = folder.only_folder
    return is_image_folder(name) and not inner.below


def _descend_into(name: str, folder: FolderTree) -> tuple[str, FolderTree]:
    """The folder that holds the classes of a split, and its path:
    seg_train/seg_train, train/images.
    """
    path = name
    while folder.only_folder is not None:
        inner_name, inner = folder.only_folder
        is_repeated = inner_name == name or split_names([inner_name])
        says_nothing = is_repeated or is_image_folder(inner_name)
        if not says_nothing or not inner.below or _is_only_holder(inner):
            break
        path = f"{path}/{inner_name}"
        folder = inner
    return path, folder


def _are_splits(holders: _Holders, classes: set[str]) -> bool:
    """Whether the classes are in the folders of splits, and not next to them."""
    names_below = [set(folder.below) for _, folder in holders.values() if folder.below]
    if not names_below:
        return False
    if any(names & classes for names in names_below):
        return False
    if len(classes) < 2:
        return True
    return any(len(names) > 1 for names in names_below)


# class folders below those of splits --------------------------------------------------------------


def _roles_below_splits(
    top: FolderTree,
    lead: str,
    holders: _Holders,
    split_by_folder: Mapping[str, str],
    others: Sequence[str],
) -> Roles:
    """The roles of folders of splits, and of others next to them."""
    classes_by_folder = classes_of_splits(holders, split_by_folder)
    splits: dict[str, str] = {}
    unlabelled: list[str] = []
    missed: list[str] = []
    classes: set[str] = set()
    loose = top.files
    for folder, (path, holder) in holders.items():
        if classes_by_folder[folder]:
            splits[path] = split_by_folder[folder]
            classes |= classes_by_folder[folder]
            loose += holder.files
        else:
            unlabelled.append(folder)
    for folder in others:
        is_flat = bool(splits) and not top.below[folder].below
        if is_flat or is_no_class(folder) or is_unlabelled(folder):
            unlabelled.append(folder)
        else:
            missed.append(folder)
    ordered_splits: dict[str, str] = {}
    for split, folders in _by_split(splits).items():
        ordered_splits |= dict.fromkeys(folders, split)
    return Roles(
        lead,
        ordered_splits,
        unlabelled=unlabelled,
        missed=missed,
        loose=loose,
        classes=frozenset(classes),
    )


def classes_of_splits(holders: _Holders, split_by_folder: Mapping[str, str]) -> dict[str, set[str]]:
    """The classes of each split; none where its folders can't be classes.

    One folder alone is a class only if another split has it too, or no split has others.
    """
    classes: dict[str, set[str]] = {}
    for folder, (_, holder) in holders.items():
        names = set(holder.below)
        are_no_classes = all(map(is_no_class, names))
        classes[folder] = set() if are_no_classes else names
    trained_classes: set[str] = set()
    for folder, names in classes.items():
        if split_by_folder[folder] == "train":
            trained_classes |= names
    if not trained_classes:
        trained_classes = max(classes.values(), key=len, default=set())
    for folder, names in classes.items():
        if len(names) == 1 and not names & trained_classes:
            classes[folder] = set()
    return classes


# class folders at the top -------------------------------------------------------------------------


def _roles_at_the_top(
    top: FolderTree,
    lead: str,
    holders: _Holders,
    split_by_folder: Mapping[str, str],
    classes: Sequence[str],
) -> Roles:
    """The roles of class folders, and of folders of splits next to them."""
    copies = _copies(top, classes)
    has_numbers = are_numbers(classes) and _are_flat(top, classes)
    class_names: list[str] = []
    if not has_numbers:
        class_names = [name for name in classes if name not in copies]
    known_folders = {*split_by_folder, *class_names, *copies}
    other_folders = [name for name in top.below if name not in known_folders]
    folders = _FoldersBesideClasses(class_names, doubtful=other_folders)
    for folder, (path, holder) in holders.items():
        folders.add(folder, path, holder, split_by_folder)
    class_names = folders.class_names
    splits = folders.splits
    if splits:
        has_train = "train" in splits.values()
        split_of_top = "top" if has_train else "train"
        splits = {"": split_of_top, **splits}
    roles = Roles(
        lead,
        splits,
        unlabelled=folders.unlabelled,
        doubtful=folders.doubtful,
        missed=copies,
        loose=top.files,
        are_numbers=has_numbers,
        classes=frozenset(class_names),
    )
    if splits or not class_names:
        return roles
    return _roles_within(top, roles, class_names)


class _FoldersBesideClasses(Struct):
    """The folders of splits next to class folders, by what they are.

    Args:
        class_names: the classes, a folder such as train among them if it is a vehicle.
        doubtful: folders that may be anything.
        splits: the splits of those that hold the same classes, by path.
        unlabelled: those whose images have no labels.
    """

    class_names: list[str]
    doubtful: list[str]
    splits: dict[str, str] = {}
    unlabelled: list[str] = []

    def add(
        self, folder: str, path: str, holder: FolderTree, split_by_folder: Mapping[str, str]
    ) -> None:
        """Sort in a folder that is called as a split; ``holder`` at ``path`` has its files."""
        split = split_by_folder[folder]
        is_only_train = split == "train" and len(split_by_folder) == 1
        holds_classes = not holder.below.keys().isdisjoint(self.class_names)
        if holds_classes:
            self.splits[path] = split
        elif len(holder.below) == 1 and self.class_names:
            self.unlabelled.append(folder)
        elif is_only_train and len(self.class_names) > 1 and not holder.below:
            self.class_names.append(folder)  # a vehicle
        else:
            self.doubtful.append(folder)


def _are_flat(top: FolderTree, classes: Sequence[str]) -> bool:
    """Whether no class holds folders, except for one that all of its files are in."""
    folders = [top.below[name] for name in classes]
    return all(not folder.below or _is_only_holder(folder) for folder in folders)


def _copies(top: FolderTree, classes: Sequence[str]) -> list[str]:
    """The folders next to classes that hold the same classes once more:
    cat, dog, pets/cat, pets/dog.
    """
    class_names = set(classes)
    copies: list[str] = []
    for name in classes:
        folder = top.below[name]
        holds_only_folders = len(folder.below) > 1 and not folder.files
        if holds_only_folders and class_names.issuperset(folder.below):
            copies.append(name)
    return copies


def _roles_within(top: FolderTree, roles: Roles, class_names: Sequence[str]) -> Roles:
    """The roles if the class folders hold splits (cat/train, cat/val), or if they are parts of the
    set, with the same classes in each (part1/cat, part2/cat); otherwise ``roles``.
    """
    folders = [top.below[name] for name in class_names]
    inner_names = {inner for folder in folders for inner in folder.below}
    splits = split_names(sorted(inner_names))
    hold_only_folders = all(folder.below and not folder.files for folder in folders)
    are_splits = len(splits) > 1 and inner_names == set(splits)
    if hold_only_folders and are_splits:
        return replace(roles, within=splits)
    part_by_path: dict[str, FolderTree] = {}
    for name in class_names:
        path, part = _descend_into(name, top.below[name])
        part_by_path[path] = part
    parts = list(part_by_path.values())
    if _are_parts(parts):
        shared_classes = frozenset(parts[0].below)
        return replace(roles, parts=list(part_by_path), classes=shared_classes)
    return roles


def _are_parts(folders: Sequence[FolderTree]) -> bool:
    """Whether several folders hold the same class folders each, and nothing else."""
    classes = folders[0].below.keys()
    if len(folders) < 2 or len(classes) < 2:
        return False
    if all(map(is_no_class, classes)):
        return False
    return all(folder.below.keys() == classes and not folder.files for folder in folders)
