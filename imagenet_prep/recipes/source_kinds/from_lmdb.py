"""LMDB databases of images, such as LSUN's."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from imagenet_prep.errors import InputError
from imagenet_prep.model import Engine
from imagenet_prep.recipes.joined_samples import Samples, join_samples, words_beside_split
from imagenet_prep.recipes.sample_columns import samples_of_slices
from imagenet_prep.recipes.sample_sources import list_sample_inputs
from imagenet_prep.recipes.source_kinds import BySplit, SourceKind
from imagenet_prep.sources.lmdb_pages import MAGIC


def _read_samples(paths: Sequence[Path], engine: Engine) -> dict[str, Samples]:
    """The images of databases; where several have other names than splits have,
    those are the classes, as LSUN's.
    """
    from imagenet_prep.sources.lmdb_pages import iter_lmdb

    classes = {path: _class_of_database(path) for path in paths}
    are_classes = len(set(classes.values())) > 1 and all(classes.values())
    parts = []
    for path in paths:
        samples = samples_of_slices(path, iter_lmdb(path))
        if samples.label is None and are_classes:
            samples.columns["class"] = [classes[path]] * len(samples.names)
            samples.label = "class"
        parts.append(samples)
    try:
        return {"": join_samples(parts)}
    except InputError as error:
        raise _same_name_of_keys(parts) or error from None


def _same_name_of_keys(parts: Sequence[Samples]) -> InputError | None:
    """The error for two keys of one database that become one name; None if there are none."""
    for part in parts:
        row = part.listing.names.first_twice()
        if row is not None:
            return InputError(
                f"{part.listing.container(row).path}: two keys give the same name for an image, "
                f"{part.listing.names[row]}",
                "the name has a _ for each sign that is no letter, digit, _, . or -",
                "write the database again with other keys",
            )
    return None


def _class_of_database(path: Path) -> str:
    """The name of a database's folder without the words of splits:
    bedroom_train_lmdb is bedroom.
    """
    words = words_beside_split(path.parent.name)
    return "_".join(word for word in words if word != "lmdb")


def _recognises(name: str, head: bytes) -> bool:
    return head[16:20] == MAGIC and name.endswith((".mdb", ".lmdb"))


KIND = SourceKind(
    "lmdb",
    100,
    BySplit,
    list_sample_inputs,
    options=("label",),
    read_samples=_read_samples,
    recognises=_recognises,
)
