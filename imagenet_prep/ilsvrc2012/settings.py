"""ConvertOptions: the settings of an ILSVRC2012 conversion, from the command line, a recipe or a manifest."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from imagenet_prep.datasets.declarations import MakingOptions, Shards, about
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import Settings
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.part import LISTS, Part, find_part, recorded_part
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.state.manifest import Manifest, not_understood
from imagenet_prep.storage.layout import MAX_SHARDS, parse_shard_name

FORMAT_VERSION = 1
"""Part of every fingerprint: it is raised when the bytes of a record change."""

SHIPPED = Path(__file__).with_name("imagenet.yaml")
"""The recipe with the default settings."""

SHARD_COUNTS = {split: f"{split}_shards" for split in facts.SPLITS}
"""The setting for the number of shards per split."""

_BOTH = ("run", "convert")


class ConvertOptions(MakingOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a conversion; the defaults make the record set of 2016.

    imagenet-prep convert --help and docs/recipes/imagenet.md describe each. ``recorded`` is no setting: it holds
    classes with their labels that don't come from ``classes`` and ``relabel``.
    """

    classes: Annotated[
        str | None,
        about(
            f"Only these classes: a file of wnids, or {', '.join(LISTS)}.",
            options=("run", "convert", "download"),
        ),
    ] = None
    relabel: Annotated[
        Literal[0, 1] | None,
        about(
            "Count labels from 0 or 1, in the order of sorted wnids. Default: official labels.",
            options=_BOTH,
            is_rare=True,
        ),
    ] = None
    train_shards: Annotated[Shards, about("Shards of train images.", options=_BOTH)] = facts.SHARDS[facts.TRAIN]
    validation_shards: Annotated[Shards, about("Shards of validation images.", options=_BOTH)] = facts.SHARDS[
        facts.VALIDATION
    ]
    validation_boxes: Annotated[
        bool, about("Give validation images boxes too (the original never did).", decides="set")
    ] = False
    allow_incomplete: Annotated[
        bool, about("Convert an incomplete data set, and record that it is a part.", options=_BOTH)
    ] = False
    recorded: Part | None = None

    @functools.cached_property
    def part(self) -> Part:
        """The classes and their labels."""
        return self.recorded or find_part(self.classes, self.relabel)

    def shards(self, split: str) -> int:
        """The number of shards of a split."""
        return self.train_shards if split == facts.TRAIN else self.validation_shards

    def fingerprinted(self) -> dict[str, Any]:
        """The settings, other than the items, that decide the bytes of a shard."""
        labels = {} if self.part.first is None else {"labels": dict(self.part.labels)}
        return {"format": FORMAT_VERSION, **self.deciding("records"), **labels}

    def settings(self) -> dict[str, Any]:
        """The settings in the manifest; labels are recorded with the data set instead."""
        return {"format": FORMAT_VERSION, **self.deciding("records", "set")}

    def chosen(self) -> Settings:
        """See CommonSettings; a file of classes is named by its absolute path."""
        named = self.replace(classes=self.part.said or None, relabel=self.part.first, recorded=None)
        return super(ConvertOptions, named).chosen()


def check_options(options: ConvertOptions) -> None:
    """Raise UsageError for an impossible number, or impossible classes."""
    part = options.part
    for split in facts.SPLITS:
        if not 1 <= options.shards(split) <= MAX_SHARDS:
            raise UsageError(f"can't make {options.shards(split)} {split} shards", f"expected 1 to {MAX_SHARDS}")
    if options.consume and not part.is_whole:
        raise UsageError(
            f"can't consume raw data for {part.name} alone",
            "expected all classes: the others would be lost",
            "leave out --consume or --classes",
        )


def options_from(manifest: Manifest) -> ConvertOptions:
    """The options of the conversion that a manifest records: with them, convert makes the same bytes again.

    Settings that don't affect the bytes have their defaults. ``skip_bad`` is set if images were set aside,
    ``allow_incomplete`` if images of ILSVRC2012 were missing.

    Raises:
        InputError: the settings are invalid, or the records have an older format.
    """
    settings = dict(manifest.settings)
    if (version := settings.pop("format", None)) != FORMAT_VERSION:
        raise InputError(
            f"these shards were made by imagenet-prep {manifest.version}, whose record format differs",
            f"expected format {FORMAT_VERSION}, got {version!r}",
            "use that version, or make the set again with imagenet-prep convert --overwrite",
        )
    counts = {**facts.SHARDS, **{split: total.shards for split, total in manifest.totals.items()}}
    if not all(_is_one_of(name, counts) for name in manifest.shards):
        raise not_understood("names of shards")
    part = recorded_part(manifest.dataset.name, manifest.dataset.classes)
    settings |= {name: counts[split] for split, name in SHARD_COUNTS.items()}
    settings["allow_incomplete"] = not all(_was_complete(manifest, split, part) for split in facts.SPLITS)
    settings["skip_bad"] = manifest.has_set_aside
    try:
        if encoded := settings.pop("reencode", None):
            settings |= {each.name: encoded[each.name] for each in dataclasses.fields(Reencode)}
        if not ConvertOptions().settings().keys() - {"format"} <= settings.keys():
            raise not_understood("settings")
        return msgspec.convert(settings, ConvertOptions).replace(recorded=part if part.recorded else None)
    except (msgspec.ValidationError, LookupError, TypeError) as error:
        raise not_understood("settings") from error


def _is_one_of(name: str, counts: Mapping[str, int]) -> bool:
    parsed = parse_shard_name(name)
    return parsed is not None and parsed[1] < parsed[2] == counts.get(parsed[0])


def _was_complete(manifest: Manifest, split: str, part: Part) -> bool:
    source, totals = manifest.sources.get(split), manifest.totals.get(split)
    images = source.get("images") if isinstance(source, dict) else None
    return totals is not None and (images, totals.classes) == (part.images(split, totals.expected), len(part.labels))
