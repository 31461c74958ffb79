"""Inspection: one walk through a folder finds images by content, archives,
labels files, annotations, the rest.
"""

from __future__ import annotations

import contextlib
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.init.annotation_search import find_annotations
from imagenet_prep.init.file_endings import DATA, LARGEST_TEXT, MOST_READ, PACKED, ending_of
from imagenet_prep.init.init_options import InitOptions
from imagenet_prep.init.joined_labels import join_by_split
from imagenet_prep.init.label_tables import LabelsFile, LabelsRefusal
from imagenet_prep.init.labels_search import last_names, mentions_half
from imagenet_prep.init.table_forms import Sought
from imagenet_prep.init.table_search import (
    is_text,
    judge_tables,
    label_alike,
    take_hidden,
)
from imagenet_prep.init.unfit_files import strange_among, unreadable, wrong_formats
from imagenet_prep.model import Engine
from imagenet_prep.recipes.columns import Content, has_ending_of, is_other_image
from imagenet_prep.recipes.file_kinds import fits, kinds_by_content
from imagenet_prep.recipes.path_parts import has_ending
from imagenet_prep.recipes.source_kinds import kinds_with_samples
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.folders import list_folder
from imagenet_prep.sources.names import below
from imagenet_prep.sources.remarks import Remarks, missing_shards
from imagenet_prep.sources.tars import is_zip, list_tars

_LOCK = "lock.mdb"
"""A file that LMDB writes next to a database; it has no data."""


class Inspection(Struct, frozen=True):
    """The content of a folder.

    Args:
        folder: where it is.
        listing: its files.
        content: what most of them are; None if there are neither images nor arrays outside of tars.
        items: the files of this content.
        archives: the tars, and what each holds.
        holders: the files that may hold many images, by the source that reads them: parquet,
            tfrecord or arrays.
        labels: the labels files that name at least half of the items.
        partial: those that name some.
        refusals: those that name at least half of them, and can't be taken.
        annotations: the files of each tool that is known.
        others: the files that are none of these, by their reasons for being left out.
        remarks: the listing's notes, without its rows.
        faults: what keeps any structure from being taken.
        engine: lists what is in files.
        options: what the user says of the folder.
        members: the images in the tars, by their names there, where there are none outside of them.
    """

    folder: Path
    listing: Catalog
    content: Content | None
    items: Sequence[str]
    archives: Mapping[str, Catalog]
    holders: Mapping[str, Sequence[str]]
    labels: Sequence[LabelsFile]
    partial: Sequence[LabelsFile]
    refusals: Sequence[LabelsRefusal]
    annotations: Mapping[str, Sequence[str]]
    others: Mapping[str, Sequence[str]]
    remarks: Remarks
    faults: Sequence[InputError]
    engine: Engine
    options: InitOptions = InitOptions()
    members: Sequence[str] = ()

    @property
    def noun(self) -> str:
        """The word for one of its items."""
        members_are_arrays = bool(self.members) and has_ending_of("array", self.members[0])
        return "array" if self.content == "array" or members_are_arrays else "image"

    def sizes(self) -> Iterable[tuple[str, int]]:
        """Each file with its size in bytes."""
        lengths = self.listing.lengths.tolist()
        return zip(self.listing.names, lengths, strict=True)

    def command(self, **changes: object) -> str:
        """The command of init for the folder, with these options in place of others."""
        return self.options.command(self.folder, **changes)

    def command_for_another(self, **changes: object) -> str:
        """The same for a note of a run that writes a recipe: the command writes another one."""
        return self.options.command_for_another(self.folder, **changes)

    def command_unlabelled(self) -> str:
        """The command that takes all items without labels."""
        return self.command_without_columns(**{"as": "unlabelled", "names": None})

    def command_without_columns(self, **changes: object) -> str:
        """The command of init for a structure that takes no columns of tables."""
        return self.command(label=None, image=None, **changes)

    def command_as(self, structure: str) -> str:
        """The command that reads the folder by one structure."""
        return self.command(**{"as": structure})


class _Images(Struct):
    """The files of a folder that are images or arrays, or hold some.

    Args:
        content: what most of them are.
        items: those of this content.
        unfit: the kinds of those of other contents that only their bytes tell, by their names.
        holders: the kind of each file that may hold many, by its name.
        archives: the tars and zips, and what each holds.
        members: the images in those, where there are no items.
    """

    content: Content | None
    items: list[str]
    unfit: dict[str, str]
    holders: dict[str, str]
    archives: dict[str, Catalog]
    members: list[str]


def inspect_folder(folder: Path, engine: Engine, options: InitOptions | None = None) -> Inspection:
    """Look at every file of a folder once; raises InputError if a tar in
    it is damaged or compressed.
    """
    options = options or InitOptions()
    listing, remarks = list_folder(folder, engine)
    names = list(listing.names)
    images = _find_images(folder, names, engine)
    items = images.items or images.members
    is_packed = not images.items
    sought = Sought(folder, items, last_names(items), options, is_packed=is_packed)
    sizes = _sizes_of_others(sought, listing, remarks, images)
    judged = _judge_texts(sought, sizes, images)
    tables_inside = [name for name in judged if not name.startswith("../")]
    for name in tables_inside:
        sizes.pop(name, None)
    annotations = find_annotations(folder, list(sizes), tables_inside, images.items)
    strange_names = strange_among(sizes, images.content)
    for name in set(strange_names).union(*annotations.values()):
        sizes.pop(name, None)
    image_names = last_names(images.items)
    others = _others(folder, sizes, image_names, images.holders)
    judgements = label_alike(judged, sought).values()
    tables, refusals = _join_tables(sought, judgements)
    labels = [table for table in tables if table.is_most]
    partial = [table for table in tables if not table.is_most]
    faults_of_images = _faults_of_images(folder, names, images)
    return Inspection(
        folder=folder,
        listing=listing,
        content=images.content,
        items=images.items,
        archives=images.archives,
        holders=_names_by_kind(images.holders),
        labels=labels,
        partial=partial,
        refusals=refusals,
        annotations=annotations,
        others={"strange": strange_names, **others},
        remarks=remarks,
        faults=[*remarks.obstacles, *faults_of_images],
        engine=engine,
        options=options,
        members=images.members,
    )


def _sizes_of_others(
    sought: Sought, listing: Catalog, remarks: Remarks, images: _Images
) -> dict[str, int]:
    """The files that are no images, with their sizes; and hidden ones that name images."""
    known_names = {*images.items, *images.unfit, *images.archives}
    sizes: dict[str, int] = {}
    lengths = listing.lengths.tolist()
    for name, size in zip(listing.names, lengths, strict=True):
        if name not in known_names and not is_other_image("image", name):
            sizes[name] = size
    if images.items:
        sizes |= take_hidden(sought.folder, remarks, sought.known_names)
    return sizes


def _judge_texts(
    sought: Sought, sizes: Mapping[str, int], images: _Images
) -> dict[str, LabelsFile | LabelsRefusal]:
    """The labels files among some files, and next to the folder; none if there are no images."""
    if not sought.items:
        return {}
    texts = [name for name in sizes if name not in images.holders]  # holders may be large
    judged: dict[str, LabelsFile | LabelsRefusal] = {}
    for name, judgement in judge_tables(sought, texts, sizes).items():
        if judgement is not None:
            judged[name] = judgement
    return judged


def _join_tables(
    sought: Sought, judgements: Iterable[LabelsFile | LabelsRefusal | None]
) -> tuple[list[LabelsFile], list[LabelsRefusal]]:
    """The labels files, those of several splits as one; and those that can't be taken."""
    tables: list[LabelsFile] = []
    refusals: list[LabelsRefusal] = []
    split_lists = {place.removeprefix("./") for place in sought.options.splits.values()}
    for judgement in judgements:
        if isinstance(judgement, LabelsFile):
            tables.append(judgement)
        elif judgement is not None and judgement.name not in split_lists:
            refusals.append(judgement)
    joined = join_by_split(sought.folder, tables, sought.items)
    parts: set[str] = set()
    for table in joined:
        parts.update(table.places)
    joined += [table for table in tables if table.name not in parts]
    return joined, refusals


# images and archives ------------------------------------------------------------------------------


def _find_images(folder: Path, names: Sequence[str], engine: Engine) -> _Images:
    """The files that are images or arrays, by their names or their first bytes, and archives."""
    kinds = kinds_by_content(folder, names)
    holders, image_kinds = _divide_kinds(kinds)
    content = main_content(names) or _content_of_kinds(image_kinds)
    fitting = {name for name in image_kinds if fits(content, image_kinds[name])}
    items: list[str] = []
    if content is not None:
        items = [name for name in names if has_ending_of(content, name) or name in fitting]
    archives = _tars(folder, names, engine)
    members: list[str] = []
    if not items:
        archives |= _zips_of_images(folder, names, engine)
        members = _members(archives)
    unfit = {name: kind for name, kind in image_kinds.items() if name not in fitting}
    return _Images(
        content=content,
        items=items,
        unfit=unfit,
        holders=holders,
        archives=archives,
        members=members,
    )


def _content_of_kinds(kinds: Mapping[str, str]) -> Content | None:
    """The content of files whose names don't tell it, by the kind of the first; None for none."""
    if not kinds:
        return None
    first_kind = next(iter(kinds.values()))
    return "array" if first_kind == "NumPy" else "image"


def _divide_kinds(kinds: Mapping[str, str]) -> tuple[dict[str, str], dict[str, str]]:
    """The kinds of files that hold many images, and those of images, by name."""
    sample_kinds = kinds_with_samples()
    holders: dict[str, str] = {}
    images: dict[str, str] = {}
    for name, kind in kinds.items():
        if kind in sample_kinds:
            holders[name] = kind
        else:
            images[name] = kind
    return holders, images


def _tars(folder: Path, names: Iterable[str], engine: Engine) -> dict[str, Catalog]:
    """The tars, and what is in them."""
    tars = [name for name in names if has_ending(name, ".tar")]
    return {name: list_tars([below(folder, name)], engine, folder_each=False) for name in tars}


def _zips_of_images(folder: Path, names: Iterable[str], engine: Engine) -> dict[str, Catalog]:
    """The zips that hold images, and what is in them;
    a damaged one, or one of other files, has to be unpacked.
    """
    zips: dict[str, Catalog] = {}
    for name in filter(is_zip, names):
        with contextlib.suppress(InputError):
            listing = list_tars([below(folder, name)], engine, folder_each=False)
            if main_content(listing.names) is not None:
                zips[name] = listing
    return zips


def _members(archives: Mapping[str, Catalog]) -> list[str]:
    """The images or arrays in all tars."""
    names: list[str] = []
    for listing in archives.values():
        names += listing.names
    content = main_content(names)
    if content is None:
        return []
    return [name for name in names if has_ending_of(content, name)]


def main_content(names: Iterable[str]) -> Content | None:
    """The content of most files; TIFFs alone are read as numbers, which loses nothing of them."""
    endings = Counter(
        name.rpartition(".")[2].lower()
        for name in names
        if has_ending_of("image", name) or has_ending_of("array", name)
    )
    if not endings:
        return None
    arrays = endings["npy"] + endings["npz"]
    images = endings.total() - arrays
    if arrays > images:
        return "array"
    tiffs = endings["tif"] + endings["tiff"]
    return "pixels" if tiffs == images else "image"


def _names_by_kind(kinds: Mapping[str, str]) -> dict[str, list[str]]:
    """The files of each kind."""
    names_by_kind: dict[str, list[str]] = {}
    for name, kind in kinds.items():
        names_by_kind.setdefault(kind, []).append(name)
    return names_by_kind


# files that no structure can read -----------------------------------------------------------------


def _faults_of_images(folder: Path, names: Sequence[str], images: _Images) -> list[InputError]:
    """The faults of shards that are missing, and of images that can't be read."""
    tars = [name for name in names if has_ending(name, ".tar")]
    faults = missing_shards([*tars, *images.holders], folder)
    faults += wrong_formats(folder, names, images.content)
    if images.unfit:
        unreadable_images = [f"{name} ({kind})" for name, kind in images.unfit.items()]
        faults.append(unreadable(folder, unreadable_images, images.content))
    return faults


def _reason(ending: str, *, names_images: bool) -> str:
    """The reason why nothing is made of a file with this ending: what it seems to be."""
    if names_images:
        return "names images" if ending in DATA or not ending else "text names images"
    return "data" if ending in DATA else "other"


def _others(
    folder: Path, sizes: Mapping[str, int], image_names: frozenset[str], holders: Collection[str]
) -> dict[str, list[str]]:
    """The files that nothing is made of, by what they seem to be;
    files that hold images are not read.
    """
    names_by_reason: dict[str, list[str]] = {}
    read_counts: Counter[str] = Counter()
    for name, size in sizes.items():
        path = below(folder, name)
        ending = ending_of(name)
        is_holder = name in holders and ending not in DATA
        is_packed = is_holder or has_ending(name, PACKED)
        if is_packed and not name.endswith(_LOCK):
            names_by_reason.setdefault("packed", []).append(name)
            continue
        may_be_data = ending in DATA or not ending
        is_small = size <= LARGEST_TEXT and read_counts[ending] < MOST_READ
        is_read = False
        if is_small and name not in holders:
            is_read = may_be_data or is_text(path)
        read_counts[ending] += is_read
        names_images = is_read and mentions_half(path, image_names)
        reason = _reason(ending, names_images=names_images)
        names_by_reason.setdefault(reason, []).append(name)
    return names_by_reason
