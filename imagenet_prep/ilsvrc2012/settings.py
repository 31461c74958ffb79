"""How ILSVRC2012 is converted: the settings of its recipe, as the command line, a recipe, or a manifest has them."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Literal, get_args

from imagenet_prep.datasets import order
from imagenet_prep.datasets.dataset import MakingOptions
from imagenet_prep.datasets.plan import not_understood
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import Settings
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.part import LISTS, WHOLE, Part, find_part, recorded_part
from imagenet_prep.images.pixels import Reencode, codec
from imagenet_prep.state.manifest import Manifest
from imagenet_prep.storage.layout import MAX_SHARDS, parse_shard_name
from imagenet_prep.tfrecord.compression import Compression

if TYPE_CHECKING:
    from imagenet_prep.recipes.recipe_file import RecipeFile

FORMAT_VERSION = 1
"""Goes into every fingerprint: raised when the bytes of a record change."""

SHIPPED = Path(__file__).with_name("imagenet.yaml")
"""The recipe of the defaults."""


@dataclass(frozen=True, slots=True)
class ConvertOptions(MakingOptions):
    """How to convert; the defaults make the record set of 2016.

    ``part`` are the classes and their labels (``part.find_part``). ``check`` "auto" decodes every image unless the
    archive's digest is the published one. ``read_order`` "sequential" passes over each archive once, holding up to
    ``memory`` bytes (None: a quarter of what is free); "auto" does so where seeking is dear and memory can't hold the
    archive.
    """

    train_shards: int = facts.SHARDS["train"]
    validation_shards: int = facts.SHARDS["validation"]
    seed: int = order.SEED
    shuffle: bool = True
    check: Literal["auto", "header", "decode"] = "auto"
    reencode: Reencode | None = None
    validation_boxes: bool = False
    allow_incomplete: bool = False
    part: Part = WHOLE

    def shards(self, split: str) -> int:
        """How many shards a split gets."""
        return self.train_shards if split == facts.TRAIN else self.validation_shards

    def deciding(self) -> dict[str, object]:
        """The settings that decide the bytes of a shard besides its items."""
        deciding = self._deciding()
        if self.part.first is not None:
            deciding["labels"] = dict(self.part.labels)
        return deciding

    def _deciding(self) -> dict[str, object]:
        """The same but for the labels, of which the manifest tells where it describes the data set."""
        deciding: dict[str, object] = {"format": FORMAT_VERSION, "compression": self.compression}
        if self.reencode is not None:
            deciding["reencode"] = {**dataclasses.asdict(self.reencode), "codec": codec()}
        return deciding

    def settings(self) -> dict[str, object]:
        """All that decides the bytes of the set besides its items: with those that say which item goes where."""
        more = {"seed": self.seed, "shuffle": self.shuffle, "validation_boxes": self.validation_boxes}
        return {**self._deciding(), **more}

    def chosen(self) -> Settings:
        """The same by name, and those that decide no bytes: those that matter, without defaults."""
        usual = ConvertOptions()._by_name()
        return tuple((name, value) for name, value in self._by_name().items() if value not in (None, usual[name]))

    def _by_name(self) -> dict[str, object]:
        how = self.reencode
        return {
            "classes": self.part.said or None,
            "relabel": self.part.first,
            **{name: getattr(self, name) for name in ("train_shards", "validation_shards", "seed", "check")},
            "compression": self.compression,
            **{name: getattr(how, name, None) for name in ("resize", "max_side", "quality")},
            **{name: getattr(self, name) for name in ("shuffle", "validation_boxes")},
            "reencode": how is not None,
            **{name: getattr(self, name) for name in ("allow_incomplete", "skip_bad", "overwrite", "consume")},
        }


def check_options(options: ConvertOptions) -> None:
    """Raise UsageError if a number can't be."""
    for split in facts.SPLITS:
        if not 1 <= options.shards(split) <= MAX_SHARDS:
            raise UsageError(f"{options.shards(split)} {split} shards", f"expected 1 to {MAX_SHARDS}")
    if options.consume and not options.part.is_whole:
        raise UsageError(
            f"raw data can't be consumed for {options.part.name} alone",
            "expected all classes: the others would be lost",
            "leave out --consume or --classes",
        )


def options_of_recipe(file: RecipeFile) -> ConvertOptions:
    """The settings of a recipe of ILSVRC2012: the one that ships with the package, or any with ``imagenet: true``."""
    from imagenet_prep.recipes import rules

    said = file.recipe
    given = rules.shard_counts(file)
    by_split = given if isinstance(given, Mapping) else dict.fromkeys(facts.SPLITS, given)
    counts = {split: by_split.get(split) or facts.SHARDS[split] for split in facts.SPLITS}
    return ConvertOptions(
        train_shards=counts[facts.TRAIN],
        validation_shards=counts[facts.VALIDATION],
        seed=rules.seed_of(file),
        shuffle=said.shuffle is not False,
        check="auto" if said.images is None else said.images.check,
        reencode=rules.reencode_of(file),
        compression=said.compression,
        validation_boxes=said.validation_boxes,
        allow_incomplete=said.allow_incomplete,
        skip_bad=said.skip_bad,
        part=_part_of_recipe(file),
    )


def _part_of_recipe(file: RecipeFile) -> Part:
    """The classes that a recipe of ILSVRC2012 names: a list, or a file beside the recipe."""
    said, relabel = file.recipe.classes, file.recipe.relabel
    if isinstance(said, str) and said not in LISTS:
        said = str(file.path.parent / said)
    assert said is None or isinstance(said, str)
    return find_part(said, None if relabel in (None, "none") else int(relabel))


def options_from(manifest: Manifest) -> ConvertOptions:
    """The options of the conversion that a manifest records: the same ones make the same bytes again.

    What decides no bytes (``check``, ``read_order``, ``memory``) has its default. ``skip_bad`` is set if images were
    set aside, ``allow_incomplete`` if images of ILSVRC2012 were missing.

    Raises:
        InputError: the settings can't be understood, or records had another form then.
    """
    settings = manifest.settings
    if settings.get("format") != FORMAT_VERSION:
        raise InputError(
            f"these shards were made by imagenet-prep {manifest.version}, whose records have another form",
            f"expected format {FORMAT_VERSION}, got {settings.get('format')!r}",
            "use that version, or make the set again with imagenet-prep convert --overwrite",
        )
    if not _is_known(settings):
        raise not_understood("settings")
    part = recorded_part(manifest.dataset.name, manifest.dataset.classes)
    counts = {**facts.SHARDS, **{split: total.shards for split, total in manifest.totals.items()}}
    if not all(_is_one_of(name, counts) for name in manifest.shards):
        raise not_understood("names of shards")
    return ConvertOptions(
        train_shards=counts[facts.TRAIN],
        validation_shards=counts[facts.VALIDATION],
        seed=settings["seed"],
        shuffle=settings["shuffle"],
        reencode=_reencode_from(settings.get("reencode")),
        compression=settings["compression"],
        validation_boxes=settings["validation_boxes"],
        allow_incomplete=not all(_was_complete(manifest, split, part) for split in facts.SPLITS),
        skip_bad=manifest.has_set_aside,
        part=part,
    )


def _is_one_of(name: str, counts: Mapping[str, int]) -> bool:
    parsed = parse_shard_name(name)
    return parsed is not None and parsed[1] < parsed[2] == counts.get(parsed[0])


def _is_known(settings: Mapping[str, object]) -> bool:
    kinds = {"seed": int, "shuffle": bool, "compression": str, "validation_boxes": bool}
    has_kinds = all(type(settings.get(name)) is kind for name, kind in kinds.items())
    return has_kinds and settings["compression"] in get_args(Compression)


def _reencode_from(recorded: object) -> Reencode | None:
    if recorded is None:
        return None
    numbers = {key: value for key, value in recorded.items() if key != "codec"} if isinstance(recorded, dict) else {}
    is_known = set(numbers) == {field.name for field in dataclasses.fields(Reencode)}
    if not is_known or not all(value is None or type(value) is int for value in numbers.values()):
        raise not_understood("settings")
    return Reencode(**numbers)


def _was_complete(manifest: Manifest, split: str, part: Part) -> bool:
    source, totals = manifest.sources.get(split), manifest.totals.get(split)
    images = source.get("images") if isinstance(source, dict) else None
    return totals is not None and (images, totals.classes) == (part.images(split, totals.expected), len(part.labels))
