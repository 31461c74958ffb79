"""Inspects a folder and writes a recipe for its layout, with a comment at each choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import NAME, command, escaped, quoted
from imagenet_prep.init.column_options import refuse_unknown_image_column, refuse_unused_columns
from imagenet_prep.init.declared_classes import (
    declare_classes,
    hot_classes,
    name_classes_of,
    order_of_file,
)
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.inspection import Inspection, inspect_folder
from imagenet_prep.init.layout_choice import choose_layout
from imagenet_prep.init.layouts import known_layouts
from imagenet_prep.init.layouts.universal_table import choose_table
from imagenet_prep.init.recipe_text import (
    describe,
    files_of,
    render_classes,
    render_recipe,
    render_record,
)
from imagenet_prep.init.split_options import check_asked, refuse_unused_splits
from imagenet_prep.init.written_files import ANOTHER_NAME, list_end, saved, written_path
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes.classes import labels_in_words
from imagenet_prep.recipes.loading import load, read
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.row_tables import ENDINGS, is_table
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.storage.refusals import writing


class InitSummary(Struct, frozen=True):
    """The proposed recipe.

    Args:
        recipe: the file that was written.
        text: its content.
        found: what the folder holds, as text.
        layout: the recognised layout.
        evidence: the reasons for the layout.
        classes: the number of files per class, in the order of their labels.
        labels: the labels of the first classes and of the last one, as text; "" if there are none.
        passed: what is skipped, and why, as text.
        warnings: the classes that a split lacks, as text.
        class_list: the file of the names of the classes, if there are many; otherwise None.
    """

    recipe: Path
    text: str
    found: str
    layout: str
    evidence: tuple[str, ...]
    classes: Mapping[str, int]
    labels: str
    passed: tuple[str, ...]
    warnings: tuple[str, ...] = ()
    class_list: Path | None = None


def init(
    folder: Path,
    output: Path | None,
    engine: Engine,
    *,
    layout: str | None = None,
    asked: InitOptions | None = None,
    progress: Progress | None = None,
) -> InitSummary:
    """Inspect a folder and write a recipe for it; by default named like the folder, with .yaml, in
    the current folder.

    Args:
        folder: the data, or a table that names it.
        output: the recipe.
        engine: lists files.
        layout: the layout to use if the folder has several possible ones, or files that would be
        skipped. asked: the other options that say how to read the folder: columns, splits, names of
        classes.
        progress: reports what is being inspected.

    Raises:
        InputError: nothing in the folder can become records, or a recipe would misread or lose
            something; the error lists every fault, with the choices.
        UsageError: the recipe already exists, the folder is a URL, or it does not have that layout.
    """
    refuse_url(folder)
    is_alone = folder.is_file() and is_table(folder)
    if not folder.is_dir() and not is_alone:
        what = "is not a folder" if folder.exists() else "does not exist"
        raise UsageError(
            f"{folder} {what}", f"expected a folder of data, or a table ({', '.join(ENDINGS)})"
        )
    name = folder.stem if is_alone else folder.resolve().name
    target = output or Path(f"{name or 'recipe'}.yaml")
    if target.exists():
        raise UsageError(f"{target} already exists", "expected a new file", ANOTHER_NAME)
    if layout is not None and layout not in (known := known_layouts()):
        raise UsageError(
            f"there is no layout {layout}", f"expected --as with one of {', '.join(known)}"
        )
    asked = replace(asked or InitOptions(), layout=layout, output=output)
    (progress or Silent()).note(f"inspecting {folder}")
    inspection = None
    if is_alone:
        _refuse_other_layout(layout)
        choice = choose_table(folder, engine, asked)
    else:
        inspection = inspect_folder(folder, engine, asked)
        check_asked(inspection)
        refuse_unknown_image_column(inspection)
        choice = choose_layout(inspection, layout)
        refuse_unused_columns(inspection, choice)
    proposal = choice.proposal
    refuse_unused_splits(folder, asked, inspection, proposal.split_names)
    if proposal.written_lists:
        lists = {
            split: {"manifest": written_path(target, list_end(split))}
            for split in proposal.written_lists
        }
        proposal = replace(proposal, places=lists)
    text = render_recipe(proposal, folder.parent if is_alone else folder, target, asked)
    files = files_of(proposal, folder, target)
    evidence = choice.evidence
    if files:
        evidence = (
            *evidence,
            f"the recipe names {', '.join(path.name for path in files)} next to it",
        )
    with saved(files):
        declared = f"{hot_classes(proposal)}{render_classes(proposal)}"
        dataset = load(read(target, f"{text}\n{declared}\n"), None, engine)
        order, order_evidence = (
            ("", []) if declared or inspection is None else order_of_file(dataset, inspection)
        )
        if order:
            dataset = load(read(target, f"{text}\n{order}\n"), None, engine)
        taken = sum(len(split.catalog) for split in dataset.splits)
        if taken != len(proposal.names):
            what = (
                f"{target} would take {taken:,} files, and {len(proposal.names):,} were found: "
                "it is not kept"
            )
            raise InputError(
                what, "expected all of them", "write a recipe whose `source` names them"
            )
        counts = _count(dataset)
        classes_declared = declare_classes(dataset, proposal, target)
        names = name_classes_of(dataset, proposal, inspection, target, asked)
        found = describe(proposal, len(counts))
        parts = [
            text.rstrip("\n"),
            classes_declared.text,
            names.text,
            render_record(dataset, proposal),
        ]
        notes = "".join(f"# {_as_unused(escaped(note))}\n" for note in choice.unused)
        text = f"{_head(found, target)}{notes}\n" + "\n\n".join(filter(None, parts)) + "\n"
        read(target, text)
        with saved(classes_declared.files), writing(target):
            save_bytes(target, text.encode())
    return InitSummary(
        recipe=target,
        text=text,
        found=found,
        layout=choice.name,
        evidence=(
            *evidence,
            *order_evidence,
            *names.evidence,
            *_of_imagenet(folder, dataset, inspection),
        ),
        classes=dict(zip(names.classes.names, counts.values(), strict=True)),
        labels=labels_in_words(names.classes.names, names.classes.numbers),
        passed=choice.skip_notes,
        warnings=dataset.warnings,
        class_list=next(iter(classes_declared.files), None),
    )


def _refuse_other_layout(layout: str | None) -> None:
    """Raise UsageError for a layout that one table can't have."""
    if layout not in (None, "universal-table", "parquet"):
        raise UsageError(f"--as {layout} with one table", "expected a folder, or no --as")


def _head(found: str, target: Path) -> str:
    """The first lines of a recipe: what it was written for, and the command that uses it."""
    use = f"{NAME} convert DATA_DIR --config {quoted(target.name)}"
    return f"# {escaped(found)}.\n# To use it: {escaped(use)}\n"


def _as_unused(note: str) -> str:
    """A note on a file that the recipe does not use, which says so."""
    return note if " is not used: " in note else f"not used: {note}"


def _of_imagenet(folder: Path, dataset: RecipeDataset, inspection: Inspection | None) -> list[str]:
    """The note on class folders that are those of ImageNet,
    which convert reads without a recipe.
    """
    from imagenet_prep.ilsvrc2012.facts import synsets

    names = dataset.classes.names
    if inspection is None or len(names) < _FEWEST_OF_IMAGENET or not set(names) <= {*synsets()}:
        return []
    way = command("convert", Path(f"{folder.resolve().name}-shards"), (("raw", folder),))
    return [
        (
            "these are ImageNet's classes; convert reads such a copy, and any boxes in it, "
            f"without a recipe: {way}"
        )
    ]


_FEWEST_OF_IMAGENET = 1000


def _count(dataset: RecipeDataset) -> dict[str, int]:
    """The number of files of each class."""
    names = dataset.classes.names
    found = Counter[str]()
    for split in dataset.splits:
        for several in split.catalog.columns.get("class.list", ()):
            found.update(several)
        labels, counts = np.unique(split.catalog.labels, return_counts=True)
        pairs = zip(labels.tolist(), counts.tolist(), strict=True)
        found.update({names[label - 1]: count for label, count in pairs if label > 0})
    return {name: found[name] for name in names}
