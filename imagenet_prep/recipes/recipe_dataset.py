"""RecipeDataset: a recipe whose inputs have been listed; who makes its records, and what decides their bytes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from imagenet_prep.datasets.declarations import MakingOptions
from imagenet_prep.datasets.plan import PlannedSet, cut
from imagenet_prep.datasets.recorder import InceptionRecorder, Recorder
from imagenet_prep.images.pixels import codec
from imagenet_prep.images.prepare import Check
from imagenet_prep.model import Engine, Progress
from imagenet_prep.recipes.columns import Content, Mapped
from imagenet_prep.recipes.inputs import ManifestFile
from imagenet_prep.recipes.labels import Classes, Labelled
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recorders import LOOSELY, MappedRecorder
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.state.manifest import RECIPE, DatasetEntry
from imagenet_prep.storage.files import save_bytes
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.refusals import writing
from imagenet_prep.tfrecord.compression import Compression

RECIPE_VERSION = 1
"""Goes into every fingerprint: raised when the same recipe makes other bytes."""


@dataclass(frozen=True, slots=True)
class SplitPlan:
    """One split of a recipe.

    Args:
        name: "train", ...
        prefix: what its shards' names begin with: ``prefix-00000-of-00008``.
        catalog: its items, in the order before the shuffle.
        origin: the folder, archive or manifest that the recipe names.
        shards: how many there are.
        shuffle: whether the rows are shuffled, with ``seed``.
        seed: of the shuffle.
        recorder: makes a record of an item.
    """

    name: str
    prefix: str
    catalog: Catalog
    origin: AnyPath
    shards: int
    shuffle: bool
    seed: int
    recorder: Recorder


@dataclass(frozen=True, slots=True)
class RecipeDataset:
    """A whole recipe, compared with its inputs; see Dataset.

    Args:
        path: the recipe.
        splits: in the order in which the recipe has them.
        folder: where below the output the shards go, as ``output_file_prefix`` says; "" for the output itself.
        compression: of each shard.
        skip_bad: whether bad items are left out.
        settings: all that decides bytes beside the items, for fingerprints and the manifest; plain JSON.
        features: what every record holds: by name its kind, whether it may be missing, and how many values (None: any).
        classes: names, words and numbers of the classes; empty if there are none.
        notes: what to tell the user.
        manifest: a manifest_file that is still to be made; see ``prepare``.
        root: what relative paths begin with, where ``--raw`` or DATAPATH named it; None: the recipe's own folder.
    """

    path: AnyPath
    splits: tuple[SplitPlan, ...]
    folder: str
    compression: Compression
    skip_bad: bool
    settings: Mapping[str, Any]
    features: Mapping[str, Mapping[str, Any]]
    classes: Classes
    notes: tuple[str, ...]
    manifest: ManifestFile | None = None
    root: AnyPath | None = None

    @property
    def options(self) -> MakingOptions:
        """How the recipe says that shards are made."""
        return MakingOptions(compression=self.compression, skip_bad=self.skip_bad)

    @property
    def recipe_file(self) -> Mapping[str, str]:
        """Where it lies, and its root."""
        root = {} if self.root is None else {"root": str(self.root)}
        return {"recipe": str(self.path.resolve()), **root}

    def plan(self, layout: Layout, engine: Engine, options: MakingOptions, progress: Progress) -> PlannedSet:
        """All its shards."""
        settings = {"skip_bad": options.skip_bad, "overwrite": options.overwrite}
        said = f"the shards are in {layout.output_dir}: the DATA_DIR of verify, status, repair and report"
        return dataclasses.replace(
            self.cut(),
            options=tuple((name, True) for name, is_set in settings.items() if is_set),
            closing=(said,) if self.folder else (),
        )

    def cut(self) -> PlannedSet:
        """Every split, cut into plans."""
        splits = []
        for each in self.splits:
            seed = each.seed if each.shuffle else None
            splits.append(cut(each.catalog, each.origin, each.recorder, each.shards, seed, self.settings))
        prefixes = tuple(each.prefix for each in self.splits)
        ordering = {each.prefix: {"seed": each.seed, "shuffle": each.shuffle} for each in self.splits}
        features = {name: dict(promised) for name, promised in self.features.items()}
        return PlannedSet(
            entry=DatasetEntry(RECIPE, self.path.stem, prefixes, features),
            splits=tuple(splits),
            settings={**self.settings, "order": ordering},
            expected={each.prefix: len(each.catalog) for each in self.splits},
            notes=self.notes,
        )

    def prepare(self) -> None:
        """Write the manifest_file that the recipe names and that was not there; nothing if there is none to make."""
        made = self.manifest
        if made is None:
            return
        lists: dict[AnyPath, Sequence[str]] = {} if made.paths else {made.path: made.names}
        for split in self.splits if made.paths else ():
            lists[made.paths[split.name]] = [made.lead + name for name in split.catalog.names]
        for path, names in lists.items():
            with writing(path):
                path.parent.mkdir(parents=True, exist_ok=True)
                save_bytes(path, "".join(f"{name}\n" for name in names).encode())


# records --------------------------------------------------------------------------------------------------------


def make_recorder(
    file: RecipeFile,
    is_inception: bool,
    features: tuple[Mapped, ...] | None,
    content: Content,
    labelled: Labelled,
    split: str,
) -> Recorder:
    """The recorder of one split; ``features`` are those of a mapped record."""
    recipe = file.recipe
    how = recipe.reencode
    check: Check = "header" if recipe.check == "header" else "decode"
    upright = content == "image" and file.recipe.upright
    numbers = _in_short(labelled.classes.numbers)
    if is_inception or features is None:
        return InceptionRecorder(
            check, how, None if numbers == range(1, len(numbers) + 1) else numbers, upright, LOOSELY
        )
    bounds = None if recipe.min_val is None or recipe.max_val is None else (recipe.min_val, recipe.max_val)
    return MappedRecorder(features, content, split, numbers, check, how, bounds, recipe.array, upright)


def _in_short(numbers: tuple[int, ...]) -> Sequence[int]:
    """The same numbers; where each is one more than the last, as a range: every task of a shard carries them."""
    counted = range(numbers[0], numbers[0] + len(numbers)) if numbers else range(0)
    return counted if numbers == tuple(counted) else numbers


def settings_of(
    file: RecipeFile, features: tuple[Mapped, ...] | None, content: Content, listing: Catalog, classes: Classes
) -> dict[str, Any]:
    """All that decides the bytes of records beside the items; what is not set stays out."""
    recipe = file.recipe
    settings: dict[str, Any] = {"recipe": RECIPE_VERSION, "content": content, **recipe.deciding("records")}
    if features is None:
        settings["record"] = "inception"
    else:
        settings["record"] = {
            each.feature: {"from": each.column, "type": each.kind, "optional": each.optional} for each in features
        }
    if classes.numbers:  # any that don't count on from the first are the names of their classes, too
        settings["first_label"] = classes.numbers[0]
    if content == "image" and file.recipe.upright:
        settings["upright"] = True  # versions that turned none did not have this key
    jpegs = (each for each in listing.names.endings() if each.lower().endswith((".jpg", ".jpeg")))
    if recipe.reencode is None and content == "pixels" and any(jpegs):
        settings["codec"] = codec()  # how a JPEG becomes numbers is the decoder's choice
    if recipe.min_val is not None:
        settings["rescale"] = [float(recipe.min_val), float(recipe.max_val or 0)]
    if recipe.array is not None:
        settings["array"] = recipe.array
    return settings
