"""Inspects a folder and writes a recipe for its structure, with a comment at each choice."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import NAME, command, escaped, quoted
from imagenet_prep.hints import Hint
from imagenet_prep.init.column_options import refuse_unknown_image_column, refuse_unused_columns
from imagenet_prep.init.declared_classes import (
    declare_classes,
    hot_classes,
    order_of_file,
)
from imagenet_prep.init.imagenet_copy import lacks_archives, note_on_imagenet
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.inspection import Inspection, inspect_folder
from imagenet_prep.init.named_classes import name_classes
from imagenet_prep.init.other_recipes import name_other_recipes
from imagenet_prep.init.proposal import Choice, Proposal
from imagenet_prep.init.recipe_text import (
    describe,
    files_of,
    render_classes,
    render_recipe,
    render_record,
)
from imagenet_prep.init.split_options import check_splits, refuse_unused_splits
from imagenet_prep.init.structure_choice import choose_structure
from imagenet_prep.init.structures import known_structures
from imagenet_prep.init.structures.universal_table import choose_table
from imagenet_prep.init.unread_files import without_told
from imagenet_prep.init.written_files import list_end, saved, written_path
from imagenet_prep.model import Engine, Progress, Silent
from imagenet_prep.recipes.classes import labels_in_words
from imagenet_prep.recipes.loading import load, read
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.recipes.row_tables import ENDINGS, is_table
from imagenet_prep.storage.files import absence_of, save_bytes
from imagenet_prep.storage.layout import RAW_NAME
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.storage.refusals import refuse_existing, writing
from imagenet_prep.text import nearest_words, number_of

_ARCHIVES_OF_IMAGENET = ("ILSVRC2012_img_train.tar", "ILSVRC2012_img_val.tar")


class InitSummary(Struct, frozen=True):
    """The proposed recipe.

    Args:
        recipe: the file that was written.
        text: its content.
        found: what the folder holds, as text.
        nouns: what its items are called: "images" or "arrays".
        structure: the recognised structure.
        evidence: the reasons for the structure.
        classes: the number of files per class, in the order of their labels.
        labels: the labels of the first classes and of the last one, as text; "" if there are none.
        passed: what is skipped, and why, as text.
        warnings: the classes that a split lacks, as text.
        class_list: the file of the names of the classes, if there are many; otherwise None.
    """

    recipe: Path
    text: str
    found: str
    nouns: str
    structure: str
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
    structure: str | None = None,
    options: InitOptions | None = None,
    progress: Progress | None = None,
) -> InitSummary:
    """Inspect a folder and write a recipe for it; by default named like the folder, with .yaml, in
    the current folder.

    Args:
        folder: the data, or a table that names it.
        output: the recipe.
        engine: lists files.
        structure: the structure to use if the folder has several possible ones, or files that
            would be skipped.
        options: the other options that say how to read the folder: columns, splits, names of
            classes.
        progress: reports what is being inspected.

    Raises:
        InputError: nothing in the folder can become records, or a recipe would misread or lose
            something; the error lists every fault, with the choices.
        UsageError: the recipe already exists, the folder is a URL, or has another structure.
    """
    is_alone = _is_table(folder)
    target = _target_of(folder, output, is_alone=is_alone)
    options = replace(options or InitOptions(), structure=structure, output=output, target=target)
    _check_structure(folder, options, is_alone=is_alone)
    (progress or Silent()).note(f"inspecting {folder}")
    inspection: Inspection | None = None
    if is_alone:
        choice = choose_table(folder, engine, options)
    else:
        inspection = inspect_folder(folder, engine, options)
        choice = _choose(inspection, structure)
    refuse_unused_splits(folder, options, inspection, choice.proposal.split_names)
    choice = name_other_recipes(choice, target)
    proposal = _with_written_lists(choice.proposal, target)
    text = render_recipe(proposal, folder.parent if is_alone else folder, target, options)
    files = files_of(proposal, folder, target)
    evidence = [*choice.evidence]
    if files:
        file_names = ", ".join(path.name for path in files)
        evidence.append(f"the recipe names {file_names} next to it")
    with saved(files):
        dataset, order_evidence = _load(text, proposal, inspection, target, engine)
        _check_count(dataset, proposal, target)
        counts = _count(dataset)
        class_list = declare_classes(dataset, proposal, target)
        named = name_classes(dataset, proposal, inspection, target, options)
        content = describe(proposal, len(counts))
        blocks = [text.rstrip("\n"), class_list.text, named.text, render_record(dataset, proposal)]
        text = _whole_text(content, choice, target, blocks)
        read(target, text)
        with saved(class_list.files), writing(target):
            save_bytes(target, text.encode())
    of_classes = (*order_evidence, *named.evidence)
    passed = choice.skip_notes
    imagenet_notes: list[Hint] = []
    if inspection is not None:
        passed = without_told(passed, of_classes, inspection)
        imagenet_notes = note_on_imagenet(folder, dataset.classes.names, inspection.items)
    return InitSummary(
        recipe=target,
        text=text,
        found=content,
        nouns="arrays" if proposal.content == "array" else "images",
        structure=choice.name,
        evidence=(
            *evidence,
            *of_classes,
            *imagenet_notes,
        ),
        classes=dict(zip(named.classes.names, counts.values(), strict=True)),
        labels=labels_in_words(named.classes.names, named.classes.numbers),
        passed=passed,
        warnings=dataset.warnings,
        class_list=next(iter(class_list.files), None),
    )


def _is_table(folder: Path) -> bool:
    """Whether the path is a table, and not a folder.

    Raises:
        UsageError: it is neither, or a URL.
    """
    refuse_url(folder)
    if folder.is_dir():
        return False
    if folder.is_file() and is_table(folder):
        return True
    problem = f"{folder} is a file" if folder.is_file() else absence_of(folder)
    tables = ", ".join(ENDINGS)
    raise UsageError(problem, f"expected a folder of data, or a table ({tables})")


def _target_of(folder: Path, output: Path | None, *, is_alone: bool) -> Path:
    """The path of the recipe; raises UsageError if it exists already."""
    target = output or Path(f"{_name_of(folder, is_alone=is_alone) or 'recipe'}.yaml")
    if str(target) == "-":
        raise UsageError(
            "--output -", "expected the name of a file", "such as --output recipe.yaml"
        )
    refuse_existing(target)
    return target


def _name_of(folder: Path, *, is_alone: bool) -> str:
    """The name of the folder, or of the table without its ending."""
    return folder.stem if is_alone else folder.resolve().name


def _check_structure(folder: Path, options: InitOptions, *, is_alone: bool) -> None:
    """Raise UsageError for an unknown structure, or one that a table can't have."""
    structure = options.structure
    if structure is None:
        return
    structures = known_structures()
    if structure not in structures:
        expected = f"expected --as with one of {', '.join(structures)}"
        raise UsageError(
            f"there is no structure {structure}", expected, nearest_words(structure, structures)
        )
    if is_alone and structure not in ("universal-table", "parquet"):
        raise UsageError(
            f"--as {structure} can't be used with a table, {folder}",
            f"expected a folder that can be read as {structure}",
            Hint("leave out --as: ", options.command(folder, **{"as": None})),
        )


def _choose(inspection: Inspection, structure: str | None) -> Choice:
    """The structure of a folder, if it takes all that the user names."""
    check_splits(inspection)
    refuse_unknown_image_column(inspection)
    try:
        choice = choose_structure(inspection, structure)
    except InputError as error:
        archive = _archive_of_imagenet(inspection)
        if structure is None and archive is not None:
            raise _imagenet_itself(inspection.folder, archive, error) from error
        raise
    refuse_unused_columns(inspection, choice)
    return choice


def _archive_of_imagenet(inspection: Inspection) -> Path | None:
    """An archive of ImageNet's images under its own name, with its path; None if there is none."""
    for name in (*inspection.archives, *inspection.members):
        if Path(name).name in _ARCHIVES_OF_IMAGENET:
            return Path(name)
    return None


def _imagenet_itself(folder: Path, archive: Path, refused: InputError) -> InputError:
    """The error for a folder of ImageNet, which convert reads; the ways to read its other files
    remain.
    """
    raw_dir = folder / archive.parent
    settings: list[tuple[str, object]] = []
    if lacks_archives(raw_dir):
        settings.append(("allow_incomplete", True))
    if raw_dir.resolve().name == RAW_NAME:
        named_dir = raw_dir if raw_dir.name else raw_dir.resolve()
        call = command("convert", named_dir.parent, tuple(settings))
    else:
        data_dir = Path(f"{folder.resolve().name}-shards")
        call = command("convert", data_dir, (("raw", raw_dir), *settings))
    problem = f"{folder} has an archive with a name of ImageNet's own: {archive}"
    hint = Hint("convert needs no recipe for ImageNet: ", call)
    error = InputError(problem, "init writes recipes for other data sets", hint)
    return error.with_choices(refused.choices)


def _with_written_lists(proposal: Proposal, target: Path) -> Proposal:
    """The proposal that names the lists which init writes next to the recipe."""
    if not proposal.written_lists:
        return proposal
    places = {
        split: {"manifest": written_path(target, list_end(split))}
        for split in proposal.written_lists
    }
    return replace(proposal, places=places)


def _load(
    text: str, proposal: Proposal, inspection: Inspection | None, target: Path, engine: Engine
) -> tuple[RecipeDataset, list[str]]:
    """The data set of a recipe, with the classes that it must name or in the order of a file;
    and the notes on such files.
    """
    declared = f"{hot_classes(proposal)}{render_classes(proposal)}"
    dataset = load(read(target, f"{text}\n{declared}\n"), None, engine)
    if declared or inspection is None:
        return dataset, []
    order, evidence = order_of_file(dataset, inspection)
    if order:
        dataset = load(read(target, f"{text}\n{order}\n"), None, engine)
    return dataset, evidence


def _check_count(dataset: RecipeDataset, proposal: Proposal, target: Path) -> None:
    """Raise InputError if the recipe takes another number of files than was found."""
    count = sum(len(split.catalog) for split in dataset.splits)
    if count != len(proposal.names):
        files = number_of(count, "file")
        found = f"{len(proposal.names):,}"
        problem = f"{target} was not written: convert would read {files} by it, not {found}"
        hint = "write a recipe of your own, whose `source` names the files"
        raise InputError(problem, "expected the files that init found, and no others", hint)


def _whole_text(content: str, choice: Choice, target: Path, blocks: Sequence[str]) -> str:
    """The text of the recipe: what it was written for, the command that uses it, and its keys."""
    use = f"{NAME} convert DATA_DIR --config {quoted(target.name)}"
    head = f"# {escaped(content)}.\n# To use it: {escaped(use)}\n"
    notes = "".join(f"# {_as_unused(escaped(note))}\n" for note in choice.unused)
    return f"{head}{notes}\n" + "\n\n".join(filter(None, blocks)) + "\n"


def _as_unused(note: str) -> str:
    """A note on a file that the recipe does not use, which says so."""
    return note if " not used: " in note else f"not used: {note}"


def _count(dataset: RecipeDataset) -> dict[str, int]:
    """The number of files of each class."""
    names = dataset.classes.names
    counts = Counter[str]()
    for split in dataset.splits:
        for class_names in split.catalog.columns.get("class.list", ()):
            counts.update(class_names)
        labels, label_counts = np.unique(split.catalog.labels, return_counts=True)
        for label, count in zip(labels.tolist(), label_counts.tolist(), strict=True):
            if label > 0:
                counts[names[label - 1]] += count
    return {name: counts[name] for name in names}
