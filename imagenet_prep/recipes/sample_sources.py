"""Sources whose files hold images with their labels -> Samples by split, and the Inputs of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec.structs import replace

from imagenet_prep.model import Engine
from imagenet_prep.recipes.inputs import Inputs
from imagenet_prep.recipes.joined_samples import Samples, join_samples
from imagenet_prep.recipes.labels_file import NO_LABEL
from imagenet_prep.recipes.named_files import archives_by_split, origin_of
from imagenet_prep.recipes.recipe_file import Key, RecipeFile
from imagenet_prep.recipes.source_kinds import source_kinds
from imagenet_prep.sources.obstacles import NoFilesError
from imagenet_prep.sources.remarks import Remarks
from imagenet_prep.text import listed, number_of


def list_sample_inputs(file: RecipeFile, key: Key, root: Path, engine: Engine) -> Inputs:
    """The images in files that have the labels too, perhaps by split."""
    source = file.recipe.source
    assert source is not None
    archives, base = archives_by_split(file, key, root, engine)
    as_arrays = file.recipe.content == "array" or file.recipe.min_val is not None
    samples, splits = list_samples(source.kind, archives, engine, as_arrays=as_arrays)
    first_path = next(iter(archives.values()))[0]
    origin = origin_of(archives, base)
    inputs = Inputs(samples.listing, Remarks(), root, origin, has_folders=True)
    return replace(
        inputs,
        given=splits,
        table=(samples.table(source.label, first_path), first_path),
        marks=samples.marks or None,
        notes=samples.passed,
    )


def list_samples(
    kind: str, groups: Mapping[str, Sequence[Path]], engine: Engine, *, as_arrays: bool = False
) -> tuple[Samples, tuple[str, ...]]:
    """The samples in the files of each split ("": of no split), and the splits: the first folder of
    each name.

    With ``as_arrays``, no array is a picture.

    Raises:
        InputError: a file is damaged or compressed, there is no sample, or images and labels don't
            fit together.
    """
    parts = _read_parts(kind, groups, engine)
    _mark_unlabelled(parts)
    if as_arrays and kind == "arrays":  # by their endings names tell what files are
        for _, samples in parts:
            samples.rename(lambda name: re.sub(r"\.png$", ".npy", name))
    if len(parts) == 1 and not parts[0][0]:
        return parts[0][1], ()
    for split, samples in parts:
        samples.rename(f"{split}/{{}}".format)
    splits = tuple(dict.fromkeys(split for split, _ in parts))
    return join_samples([samples for _, samples in parts]), splits


def _read_parts(
    kind: str, groups: Mapping[str, Sequence[Path]], engine: Engine
) -> list[tuple[str, Samples]]:
    """The samples of each group of files, with their split: that of the group, or the one that
    names tell.

    Raises:
        InputError: there is no sample.
    """
    read_samples = source_kinds()[kind].read_samples
    assert read_samples is not None, f"{kind} has no labels of its own"
    parts: list[tuple[str, Samples]] = []
    for split, paths in groups.items():
        for split_in_names, samples in read_samples(paths, engine).items():
            parts.append((split or split_in_names, samples))
    if not any(samples.names for _, samples in parts):
        all_paths = [str(path) for paths in groups.values() for path in paths]
        raise NoFilesError(
            f"no image in {listed(all_paths)}",
            "expected at least one image",
            "name files that hold images in `source` of the recipe",
        )
    return parts


def _mark_unlabelled(parts: Sequence[tuple[str, Samples]]) -> None:
    """Give the images of a test split without labels the number that stands for none,
    if all others have numbers.
    """
    unlabelled: list[Samples] = []
    labelled: list[Samples] = []
    for split, samples in parts:
        if not samples.names:
            continue
        if split == "test" and samples.label is None:
            unlabelled.append(samples)
        else:
            labelled.append(samples)
    label = _shared_number_column(labelled) if unlabelled else None
    if label is None:
        return
    for samples in unlabelled:
        if label not in samples.columns:
            count = len(samples.names)
            samples.columns[label] = [NO_LABEL] * count
            samples.label = label
            records = number_of(count, "record")
            note = f"test has no {label}: it is {NO_LABEL}, which is no class, in {records}"
            samples.passed = [*samples.passed, note]


def _shared_number_column(parts: Sequence[Samples]) -> str | None:
    """The column in which all parts have their labels, as whole numbers; None if they have none."""
    columns = {samples.label for samples in parts}
    if len(columns) != 1:
        return None
    column = columns.pop()
    if column is None:
        return None
    labels = (label for samples in parts for label in samples.columns[column])
    return column if all(isinstance(label, int) for label in labels) else None
