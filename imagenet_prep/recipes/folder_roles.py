"""Roles: the folders of a listing, each with its number of files -> which are splits,
classes, or neither.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.recipes.mask_names import is_image_folder, is_mask_folder, unmasked
from imagenet_prep.recipes.recipe_lines import flow, is_plain
from imagenet_prep.recipes.splits import USUAL, split_name, split_names, stem_of
from imagenet_prep.sources.names import Names
from imagenet_prep.sources.patterns import literal
from imagenet_prep.text import listed

_NO_CLASSES = re.compile(
    r"(?:thumbs?|thumbnails?|previews?|samples?|examples?|demo|"  # copies
    # pictures of images
    r"depths?|depth ?maps?|disparity|heat ?maps?|overlays?|vis|visualizations?|"
    r"query|queries|gallery|distractors?|"  # halves of a search
    r"aug|augmented|augmentations?|extra|backup|cache|te?mp|outputs?|results|preds?|predictions?|"
    r"unlabell?ed|(?:\d+ )?clutter|background google|images?|imgs?|jpeg ?images|rgb)(?: "
    r"images?| imgs?)?"
)
"""Folders that are hardly ever classes."""

_NO_NAMES = re.compile(
    r"\d{4}[-_.]\d{2}[-_.]\d{2}|\d{8}|(?:19|20)\d{2}|\d{3}[A-Z]{5}|\d{5,}|"
    r"(?:.*[-_ ])?(?:images?|imgs?|part|batch|chunk|shard|session|day|week|vol|volume|disk)[-_ "
    r"]?\d+"
)
"""Folders that are called by days, as cameras do, by numbers with many zeros, or as parts:
they may be no classes.
"""

_UNLABELLED = re.compile(r"(?:seg )?(?:preds?|predict|predictions?|unlabell?ed|unsup)")
"""Folders next to splits whose images have no labels."""


def is_no_class(folder: str) -> bool:
    """Whether a folder has a name that classes hardly ever have:
    thumbnails, query, depth, images.
    """
    return bool(_NO_CLASSES.fullmatch(_words(folder)))


def _words(folder: str) -> str:
    return re.sub(r"[^a-z0-9]+", " ", folder.lower()).strip()


class FolderTree:
    """A folder: how many files are directly in it, and the folders below it."""

    def __init__(self) -> None:
        self.files = 0
        self.below: dict[str, FolderTree] = {}

    @classmethod
    def take(cls, names: Iterable[str]) -> FolderTree:
        """The folders of files, by their names."""
        root = cls()
        for path, count in Counter(name.rpartition("/")[0] for name in names).items():
            root.add(path, count)
        return root

    def add(self, path: str, files: int) -> None:
        """Count files that are directly in the folder of this path; "" is this one."""
        folder = self
        for name in path.split("/") if path else ():
            folder = folder.below.setdefault(name, FolderTree())
        folder.files += files

    def at(self, path: str) -> FolderTree:
        """The folder of this path."""
        folder = self
        for name in path.split("/") if path else ():
            folder = folder.below[name]
        return folder

    @property
    def total(self) -> int:
        """How many files are in it and below."""
        return self.files + sum(folder.total for folder in self.below.values())


class Roles(Struct, frozen=True):
    """The roles of folders; paths start at ``lead``, the folders that lead to all.

    Args:
        lead: with a slash, or "".
        splits: the split of each folder that holds class folders; "" is the top, whose other
        folders are classes. within: where splits are folders within classes: the split of each such
        folder, by its name.
        parts: folders that hold the same classes each.
        unlabelled: folders whose images have no class, as those of a test without labels.
        doubtful: folders next to the classes whose names are those of splits, or of anything but
        classes. missed: folders next to splits that may hold more images with labels.
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
        left_out = [f"!{literal(folder)}/**/*" for folder in self.left_out]
        if self.within:
            patterns = {
                split: [f"*/{literal(name)}/**/*" for name in names]
                for split, names in _by_split(self.within).items()
            }
            return {split: {"files": _one(several)} for split, several in patterns.items()}
        if self.parts:
            return {"train": {"folder": list(self.parts)}}
        if not self.splits:
            return {"train": {"files": ["*/**/*", *left_out]}} if left_out or self.loose else {}
        below = [f"!{literal(folder)}/**/*" for folder in self.splits if folder]
        places: dict[str, dict[str, Any]] = {}
        for split, folders in _by_split(self.splits).items():
            is_top = "" in folders
            places[split] = (
                {"files": ["*/**/*", *below, *left_out]} if is_top else {"folder": _one(folders)}
            )
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
        folders = {split: place["folder"] for split, place in places.items()}
        listings = {
            split: [value] if isinstance(value, str) else value for split, value in folders.items()
        }
        return {
            split: {"folder": _one([f"{self.lead}{folder}" for folder in listing])}
            for split, listing in listings.items()
        }


def _by_split(splits: Mapping[str, str]) -> dict[str, list[str]]:
    """The folders of each split, the splits in the usual order."""
    folders: dict[str, list[str]] = {split: [] for split in USUAL if split in splits.values()}
    for folder, split in splits.items():
        folders.setdefault(split, []).append(folder)
    return folders


def _one(texts: list[str]) -> str | list[str]:
    return texts[0] if len(texts) == 1 else texts


def roles_of(root: FolderTree, splits: Mapping[str, str] | None = None) -> Roles:
    """The roles of the folders below ``root``; ``splits`` are those that are known, by folder."""
    if splits is not None:
        return _roles_below_splits(
            root, "", {folder: (folder, root.at(folder)) for folder in splits}, splits, []
        )
    lead, here = _descend(root)
    names = split_names(here.below)
    others = [name for name in here.below if name not in names]
    inner = {name: _descend_into(name, here.below[name]) for name in names}
    has_images = any(map(is_image_folder, others))
    classes = [
        name
        for name in others
        if not is_no_class(name) and not (has_images and is_mask_folder(name))
    ]
    if _are_splits(inner, set(classes)):
        return _roles_below_splits(here, lead, inner, names, others)
    return _roles_at_the_top(here, lead, inner, names, classes)


def _descend(root: FolderTree) -> tuple[str, FolderTree]:
    """The folders that lead to all files, with a slash, and the last of them."""
    lead, here = "", root
    while not here.files and len(here.below) == 1:
        ((name, folder),) = here.below.items()
        if not folder.below or (folder.files and len(folder.below) < 2):
            break
        if _is_only_holder(folder):
            break
        lead, here = f"{lead}{name}/", folder
    return lead, here


def _is_only_holder(folder: FolderTree) -> bool:
    """Whether all files of a folder are in one folder within it, which is no class:
    class/images/1.jpg.
    """
    names = list(folder.below)
    return (
        not folder.files
        and len(names) == 1
        and is_image_folder(names[0])
        and not folder.below[names[0]].below
    )


def _descend_into(name: str, folder: FolderTree) -> tuple[str, FolderTree]:
    """The folder that holds the classes of a split, and its path:
    seg_train/seg_train, train/images.
    """
    path = name
    while not folder.files and len(folder.below) == 1:
        ((inner, below),) = folder.below.items()
        says_nothing = inner == name or is_image_folder(inner) or split_names([inner])
        if not says_nothing or not below.below or _is_only_holder(below):
            break
        path, folder = f"{path}/{inner}", below
    return path, folder


def _are_splits(inner: Mapping[str, tuple[str, FolderTree]], classes: set[str]) -> bool:
    """Whether the classes are in the folders of splits, and not next to them."""
    held = [set(folder.below) for _, folder in inner.values() if folder.below]
    if not held or any(names & classes for names in held):
        return False
    return len(classes) < 2 or any(len(names) > 1 for names in held)


# class folders below those of splits --------------------------------------------------------------


def _roles_below_splits(
    here: FolderTree,
    lead: str,
    inner: Mapping[str, tuple[str, FolderTree]],
    names: Mapping[str, str],
    others: Sequence[str],
) -> Roles:
    known = _classes_of_splits(inner, names)
    splits: dict[str, str] = {}
    unlabelled, missed = list[str](), list[str]()
    classes, loose = set[str](), here.files
    for name, (path, folder) in inner.items():
        if known[name]:
            splits[path] = names[name]
            classes |= known[name]
            loose += folder.files
        else:
            unlabelled.append(name)
    for name in others:
        is_flat = not here.below[name].below and bool(splits)
        is_unlabelled = (
            is_flat or is_no_class(name) or _UNLABELLED.fullmatch(_words(name)) is not None
        )
        (unlabelled if is_unlabelled else missed).append(name)
    ordered = {folder: split for split, folders in _by_split(splits).items() for folder in folders}
    return Roles(
        lead, ordered, unlabelled=unlabelled, missed=missed, loose=loose, classes=frozenset(classes)
    )


def _classes_of_splits(
    inner: Mapping[str, tuple[str, FolderTree]], names: Mapping[str, str]
) -> dict[str, set[str]]:
    """The classes of each split; none where its folders can't be classes.

    One folder alone is a class only if another split has it too, or no split has others.
    """
    held = {name: set(folder.below) for name, (_, folder) in inner.items()}
    classes = {
        name: folders if not all(map(is_no_class, folders)) else set()
        for name, folders in held.items()
    }
    trained = [folders for name, folders in classes.items() if names[name] == "train" and folders]
    base = set().union(*trained) if trained else max(classes.values(), key=len, default=set())
    for name, folders in classes.items():
        if len(folders) == 1 and not folders & base:
            classes[name] = set()
    return classes


# class folders at the top -------------------------------------------------------------------------


def _roles_at_the_top(
    here: FolderTree,
    lead: str,
    inner: Mapping[str, tuple[str, FolderTree]],
    names: Mapping[str, str],
    classes: Sequence[str],
) -> Roles:
    splits: dict[str, str] = {}
    copies = _copies(here, classes)
    are_flat = not any(
        here.below[name].below and not _is_only_holder(here.below[name]) for name in classes
    )
    are_numbers = len(classes) > 1 and are_flat and all(map(_NO_NAMES.fullmatch, classes))
    known = [] if are_numbers else [name for name in classes if name not in copies]
    unlabelled: list[str] = []
    doubtful = [name for name in here.below if name not in (*names, *known, *copies)]
    for name, (path, folder) in inner.items():
        below = set(folder.below)
        if below & set(known):
            splits[path] = names[name]
        elif len(below) == 1 and known:
            unlabelled.append(name)
        elif names[name] == "train" and len(names) == 1 and len(known) > 1 and not below:
            known.append(name)  # a vehicle
        else:
            doubtful.append(name)
    if splits:
        splits = {"": "train" if "train" not in splits.values() else "top", **splits}
    roles = Roles(
        lead,
        splits,
        unlabelled=unlabelled,
        doubtful=doubtful,
        missed=copies,
        loose=here.files,
        are_numbers=are_numbers,
        classes=frozenset(known),
    )
    if splits or not known:
        return roles
    return _within_classes(here, roles, known)


def _copies(here: FolderTree, classes: Sequence[str]) -> list[str]:
    """The folders next to classes that hold the same classes once more:
    cat, dog, pets/cat, pets/dog.
    """
    known = set(classes)
    return [
        name
        for name in classes
        if len(here.below[name].below) > 1
        and not here.below[name].files
        and known.issuperset(here.below[name].below)
    ]


def _within_classes(here: FolderTree, roles: Roles, known: Sequence[str]) -> Roles:
    """The roles where folders within classes, or the folders of parts, decide."""
    splits = split_names(sorted({inner for name in known for inner in here.below[name].below}))
    held = [set(here.below[name].below) for name in known]
    is_deep = all(held) and not any(here.below[name].files for name in known)
    if is_deep and len(splits) > 1 and set().union(*held) == set(splits):
        return replace(roles, within=splits)
    parts = dict(_descend_into(name, here.below[name]) for name in known)
    first = next(iter(parts.values()))
    is_same = all(
        part.below.keys() == first.below.keys() and not part.files for part in parts.values()
    )
    if (
        len(known) > 1
        and len(first.below) > 1
        and is_same
        and not all(map(is_no_class, first.below))
    ):
        return replace(roles, parts=list(parts), classes=frozenset(first.below))
    return roles


# folders that a recipe would misread --------------------------------------------------------------

_PAIRED = 0.9
"""The least share of the files of a folder of masks are called as files of another folder,
at the least.
"""

_MASKED = 0.1
"""The least number of masks next to their images in a set that has masks."""

_MASK_WORDS = (b"mask", b"gt", b"seg", b"label", b"annotation")
_MOST_NAMED = 20


class Misread(Struct, frozen=True):
    """The reason why folders are no classes, and the recipe that fits."""

    what: str
    choice: str


def misread(
    trees: Mapping[str, FolderTree], splits: Mapping[str, str], *, is_divided: bool
) -> Misread | None:
    """The folders that a recipe would misread as classes; None without a sign of that.

    Args:
        trees: by what comes before the classes ("train/", or "") the class folders there.
        splits: the split of each.
        is_divided: whether the recipe says itself where its splits are.
    """
    named = list(dict.fromkeys(name for tree in trees.values() for name in tree.below))
    listing = (
        "or classes: "
        f"[{', '.join(map(flow, named[:_MOST_NAMED]))}{', ...' * (len(named) > _MOST_NAMED)}]"
    )
    listing += ", if that is what they are"
    wrong = _misread_splits(trees, splits)
    for lead, tree in trees.items():
        wrong = wrong or _misread_in(lead, tree, is_divided=is_divided)
    if wrong is None:
        return None
    return Misread(wrong.what, "; ".join(filter(None, (wrong.choice, listing))))


def _misread_splits(trees: Mapping[str, FolderTree], splits: Mapping[str, str]) -> Misread | None:
    """The splits whose folders are no classes of the others."""
    classes = _classes_of_splits({lead: (lead, tree) for lead, tree in trees.items()}, splits)
    bare = [lead for lead in trees if not classes[lead] and trees[lead].below]
    if len(trees) < 2 or not bare or len(bare) == len(trees):
        return None
    what = (
        f"{listed(bare)} holds {listed(trees[bare[0]].below)}, "
        "which is no class of the other splits"
    )
    places = {
        split: {"folder": lead.rstrip("/")} for lead, split in splits.items() if lead not in bare
    }
    return Misread(
        f"{what}: those images have no labels", "" if "" in splits else f"splits: {in_flow(places)}"
    )


def misread_inner(folders: Iterable[str]) -> Misread | None:
    """Inner folders, or paths, that are called as splits are, and would be misread as classes."""
    names = list(folders)
    called = [name for name in names if split_name(name.rpartition("/")[2])]
    if len(names) < 2 or len(called) < len(names):
        return None
    what = f"the inner folders {listed(called)} are called as splits are, not as classes"
    return Misread(what, "class_folder: first, and splits: {train: {files: '*/train/**/*'}, ...}")


def _misread_in(lead: str, tree: FolderTree, *, is_divided: bool) -> Misread | None:
    """The folders below one split, or below the source, that are no classes."""
    roles = roles_of(tree)
    names = list(tree.below)
    if roles.lead:
        what = (
            f"all files are in {lead}{roles.lead.rstrip('/')}, and the folders there may be the "
            "classes"
        )
        return Misread(what, f"source: {{folders: .../{lead}{roles.lead.rstrip('/')}}}")
    if roles.are_numbers:
        return None
    if any(roles.splits) or not roles.classes:
        called = [name for name in names if name in split_names(names)] or names
        how = (
            "splits are"
            if called != names or split_names(names)
            else "images and what is made of them"
        )
        return Misread(
            f"the folders {listed(called)} are called as {how}, not as classes",
            _splits_that_fit(roles),
        )
    if roles.within and not is_divided:
        what = f"the folders within the classes are called as splits are: {listed(roles.within)}"
        return Misread(what, _splits_that_fit(roles))
    if roles.parts and not is_divided:
        what = f"{listed(roles.parts)} hold the same folders: {listed(sorted(roles.classes))}"
        return Misread(what, _splits_that_fit(roles))
    if left_out := [*roles.unlabelled, *roles.doubtful, *roles.missed]:
        what = (
            f"{listed(left_out)} next to the classes {'is' if len(left_out) == 1 else 'are'} "
            "hardly a class"
        )
        return Misread(what, _splits_that_fit(roles))
    return None


def _splits_that_fit(roles: Roles) -> str:
    places = roles.places()
    if not roles.classes or not places:
        return (
            "a file of labels, and a pattern for each split (splits: {train: {files: "
            "'train/*'}, ...})"
        )
    return f"splits: {in_flow(places)}"


def in_flow(value: Any) -> str:
    """Mappings and lists of names in one line of YAML."""
    if isinstance(value, Mapping):
        entries = ", ".join(f"{in_flow(name)}: {in_flow(inner)}" for name, inner in value.items())
        return f"{{{entries}}}"
    if isinstance(value, list):
        return f"[{', '.join(map(in_flow, value))}]"
    text = str(value)
    if is_plain(text) or not text.isprintable():
        return flow(text)
    quotes_twice = text.replace("'", "''")
    return f"'{quotes_twice}'"


def nested(classes: Mapping[str, Sequence[str]]) -> list[str]:
    """The folders within classes that only paths distinguish; ``classes`` are the files of each, by
    their paths.

    One way down to all files of a class, as in class/images/file, tells nothing apart.
    """
    found = []
    for name, files in classes.items():
        inner = sorted({path.rpartition("/")[0] for path in files})
        if len(inner) > 1:
            found += [f"{name}/{folder}".rstrip("/") for folder in inner]
    return found


def mask_folders(classes: Mapping[str, Sequence[str]]) -> Misread | None:
    """The folders of masks next to those of their images, or masks among their images;
    ``classes`` as ``nested``.
    """
    masks = list(filter(is_mask_folder, classes))
    others = [name for name in classes if not is_mask_folder(name)]
    if not masks or not others or not _are_masks(masks, others, classes):
        return None
    what = f"the folders {listed(classes)} look like images and their masks, not like classes"
    listing = f"or classes: [{', '.join(map(flow, classes))}], if that is what they are"
    return Misread(what, f"the images alone (source: {{files: '{others[0]}/**/*'}}); {listing}")


def _are_masks(
    masks: Sequence[str], others: Sequence[str], classes: Mapping[str, Sequence[str]]
) -> bool:
    if any(map(is_image_folder, others)):
        return True
    images = {stem_of(path) for name in others for path in classes[name]}
    stems = [stem_of(path) for name in masks for path in classes[name]]
    paired = sum(unmasked(stem) in images or stem in images for stem in stems)
    return paired >= _PAIRED * len(stems)


def mixed_masks(names: Names) -> Misread | None:
    """The evidence for masks next to their images: a.jpg and a_mask.png."""
    stems = ((name, name.rpartition(".")[0]) for name in names.holding(_MASK_WORDS))
    images = {name: image for name, stem in stems if (image := unmasked(stem)) != stem}
    if not images or len(images) < _MASKED * len(names):
        return None
    wanted = set(images.values())
    known = {stem for name in names if (stem := name.rpartition(".")[0]) in wanted}
    masks = [name for name, image in images.items() if image in known]
    if not masks or len(masks) < _MASKED * len(names):
        return None
    what = (
        f"{len(masks):,} of {len(names):,} files are called as masks of others are: {listed(masks)}"
    )
    ways = (
        "take the masks to a folder of their own outside; or name the classes in the recipe "
        "(classes: [...])"
    )
    return Misread(what, f"{ways}, if these are images like the others")
