"""Folders that a recipe would misread as classes -> a Misread, with the recipe that fits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import Struct

from imagenet_prep.recipes.folder_roles import FolderTree, Roles, classes_of_splits, roles_of
from imagenet_prep.recipes.folder_words import is_image_folder, is_mask_folder, split_name, unmasked
from imagenet_prep.recipes.path_parts import stem_of
from imagenet_prep.recipes.recipe_lines import flow, is_plain
from imagenet_prep.recipes.splits import split_names
from imagenet_prep.sources.names import Names
from imagenet_prep.text import listed

_PAIRED = 0.5
"""The least share of the files of a folder of masks that are called as files of another folder."""

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
    reason = _misread_splits(trees, splits)
    for lead, tree in trees.items():
        reason = reason or _misread_in(lead, tree, is_divided=is_divided)
    if reason is None:
        return None
    names = list(dict.fromkeys(name for tree in trees.values() for name in tree.below))
    all_classes = f"or {_all_classes(names)}, if each of them is a class"
    return Misread(reason.what, "; ".join(filter(None, (reason.choice, all_classes))))


def _all_classes(names: Sequence[str]) -> str:
    """The key of a recipe for all of these classes; "..." stands for those beyond the first 20."""
    classes = ", ".join(map(flow, names[:_MOST_NAMED]))
    if len(names) > _MOST_NAMED:
        classes += ", ..."
    return f"classes: [{classes}]"


def _misread_splits(trees: Mapping[str, FolderTree], splits: Mapping[str, str]) -> Misread | None:
    """The splits whose folders are no classes of the others."""
    classes = classes_of_splits({lead: (lead, tree) for lead, tree in trees.items()}, splits)
    bare = [lead for lead, tree in trees.items() if tree.below and not classes[lead]]
    if not bare or len(bare) == len(trees):
        return None
    problem = _problem_of_splits(trees, bare)
    if "" in splits:
        return Misread(problem, "")
    places = {
        split: {"folder": lead.rstrip("/")} for lead, split in splits.items() if lead not in bare
    }
    return Misread(problem, f"splits: {in_flow(places)}")


def _problem_of_splits(trees: Mapping[str, FolderTree], leads: Sequence[str]) -> str:
    """The problem of splits whose folders are no classes of the others."""
    folders = dict.fromkeys(name for lead in leads for name in trees[lead].below)
    verb = "holds" if len(leads) == 1 else "hold"
    return (
        f"{listed(lead or 'the source' for lead in leads)} {verb} {listed(folders)}, "
        "and the other splits have no such class: those images have no labels"
    )


def misread_inner(folders: Iterable[str]) -> Misread | None:
    """Inner folders, or paths, that are called as splits are, and would be misread as classes."""
    names = list(folders)
    if len(names) < 2 or not all(split_name(name.rpartition("/")[2]) for name in names):
        return None
    problem = f"the inner folders {listed(names)} are called as splits are, not as classes"
    patterns: dict[str, list[str]] = {}
    for folder in dict.fromkeys(name.rpartition("/")[2] for name in names):
        patterns.setdefault(split_name(folder), []).append(f"*/{folder}/**/*")
    places = {split: {"files": texts} for split, texts in patterns.items()}
    return Misread(problem, f"class_folder: first, and splits: {in_flow(places)}")


def _misread_in(lead: str, tree: FolderTree, *, is_divided: bool) -> Misread | None:
    """The folders below one split, or below the source, that are no classes."""
    roles = roles_of(tree)
    if roles.lead:
        folder = f"{lead}{roles.lead.rstrip('/')}"
        problem = f"all files are in {folder}, and the folders there may be the classes"
        return Misread(problem, f"source: {{folders: .../{folder}}}")
    if roles.are_numbers or not tree.below:
        return None
    problem = ""
    if any(roles.splits) or not roles.classes:
        problem = _called_otherwise(list(tree.below))
    elif roles.within and not is_divided:
        problem = f"the folders within the classes are called as splits are: {listed(roles.within)}"
    elif roles.parts and not is_divided:
        problem = f"{listed(roles.parts)} hold the same folders: {listed(sorted(roles.classes))}"
    elif roles.left_out:
        problem = f"the folder {roles.left_out[0]} next to the classes is hardly a class"
        if len(roles.left_out) > 1:
            folders = listed(roles.left_out)
            problem = f"the folders {folders} next to the classes are hardly classes"
    return Misread(problem, _splits_that_fit(roles)) if problem else None


def _called_otherwise(names: Sequence[str]) -> str:
    """The fault of folders that are called as anything but classes."""
    splits = split_names(names)
    called_splits = [name for name in names if name in splits]
    if len(called_splits) == 1:
        return f"the folder {called_splits[0]} is called as a split is, not as a class"
    if called_splits:
        return f"the folders {listed(called_splits)} are called as splits are, not as classes"
    if len(names) == 1:
        return f"the folder {names[0]} is called as images, or what is made of them, not as a class"
    return (
        f"the folders {listed(names)} are called as images, or what is made of them, not as classes"
    )


def _splits_that_fit(roles: Roles) -> str:
    places = roles.places()
    if not roles.classes or not places:
        return (
            "a file of labels, and a pattern for each split (splits: {train: {files: "
            "'train/*'}, ...})"
        )
    choice = f"splits: {in_flow(places)}"
    if roles.left_out:
        choice += f", which leaves {listed(roles.left_out)} out"
    return choice


def in_flow(value: Any) -> str:
    """Mappings and lists of names in one line of YAML."""
    if isinstance(value, Mapping):
        entries = [f"{in_flow(name)}: {in_flow(part)}" for name, part in value.items()]
        return f"{{{', '.join(entries)}}}"
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
    folders: list[str] = []
    for name, files in classes.items():
        inner_folders = sorted({path.rpartition("/")[0] for path in files})
        if len(inner_folders) > 1:
            folders += [f"{name}/{folder}".rstrip("/") for folder in inner_folders]
    return folders


# masks --------------------------------------------------------------------------------------------


def mask_folders(classes: Mapping[str, Sequence[str]]) -> Misread | None:
    """The folders of masks next to those of their images, or masks among their images;
    ``classes`` as ``nested``.
    """
    masks = list(filter(is_mask_folder, classes))
    others = [name for name in classes if not is_mask_folder(name)]
    if not masks or not others or not _are_masks(masks, others, classes):
        return None
    problem = f"the folders {listed(classes)} look like images and their masks, not like classes"
    patterns = [f".../{name}/**/*" for name in others]
    pattern = in_flow(patterns[0] if len(patterns) == 1 else patterns)
    only_images = f"only the images (source: {{files: {pattern}}})"
    all_classes = f"or {_all_classes(list(classes))}, if each of them is a class"
    return Misread(problem, f"{only_images}; {all_classes}")


def _are_masks(
    masks: Sequence[str], others: Sequence[str], classes: Mapping[str, Sequence[str]]
) -> bool:
    """Whether most files in folders of masks have the names of images."""
    if any(map(is_image_folder, others)):
        return True
    images = {stem_of(path) for name in others for path in classes[name]}
    stems = [stem_of(path) for name in masks for path in classes[name]]
    paired = sum(unmasked(stem) in images or stem in images for stem in stems)
    return paired >= _PAIRED * len(stems)


def _images_of_masks(names: Names) -> dict[str, str]:
    """The stem of the image of each file that is called as a mask."""
    image_by_mask: dict[str, str] = {}
    for name in names.holding(_MASK_WORDS):
        stem = name.rpartition(".")[0]
        image = unmasked(stem)
        if image != stem:
            image_by_mask[name] = image
    return image_by_mask


def mixed_masks(names: Names) -> str | None:
    """The evidence for masks next to their images: a.jpg and a_mask.png."""
    image_by_mask = _images_of_masks(names)
    least = _MASKED * len(names)
    if not image_by_mask or len(image_by_mask) < least:
        return None
    stems = set(image_by_mask.values()).intersection(name.rpartition(".")[0] for name in names)
    masks = [name for name, image in image_by_mask.items() if image in stems]
    if not masks or len(masks) < least:
        return None
    have = "has the name of a mask" if len(masks) == 1 else "have the names of masks"
    return f"{len(masks):,} of {len(names):,} files {have}: {listed(masks)}"


def masks_in_classes(names: Names, classes: Iterable[str]) -> Misread | None:
    """The masks next to their images in the folders of ``classes``; ``names`` are their files."""
    problem = mixed_masks(names)
    if problem is None:
        return None
    all_classes = f"{_all_classes(list(classes))}, if these are images like the others"
    return Misread(problem, f"{all_classes}; or move the masks to a folder outside")
