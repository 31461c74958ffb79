"""ConvertOptions: how ILSVRC2012 is converted, as the command line, a recipe, or a manifest has it."""

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
"""Goes into every fingerprint: raised when the bytes of a record change."""

SHIPPED = Path(__file__).with_name("imagenet.yaml")
"""The recipe of the defaults."""

SHARD_COUNTS = {split: f"{split}_shards" for split in facts.SPLITS}
"""The setting that says how many shards a split gets."""

_BOTH = ("run", "convert")


class ConvertOptions(MakingOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How to convert; the defaults make the record set of 2016.

    Each setting says what it is for: imagenet-prep convert --help, and docs/recipes/imagenet.md. ``recorded`` is no
    setting: the classes with their labels, where they are known otherwise than by ``classes`` and ``relabel``.
    """

    classes: Annotated[
        str | None,
        about(
            f"These classes alone: a file of wnids, or {', '.join(LISTS)}.",
            options=("run", "convert", "download"),
        ),
    ] = None
    relabel: Annotated[
        Literal[0, 1] | None,
        about(
            "Count labels from 0 or 1, in the order of sorted wnids; else the official labels.",
            options=_BOTH,
            is_rare=True,
        ),
    ] = None
    train_shards: Annotated[Shards, about("Shards of train images.", options=_BOTH)] = facts.SHARDS[facts.TRAIN]
    validation_shards: Annotated[Shards, about("Shards of validation images.", options=_BOTH)] = facts.SHARDS[
        facts.VALIDATION
    ]
    validation_boxes: Annotated[
        bool, about("Validation images get boxes too (the original never did that).", decides="set")
    ] = False
    allow_incomplete: Annotated[bool, about("Convert what is there, and record that it is a part.", options=_BOTH)] = (
        False
    )
    recorded: Part | None = None

    @functools.cached_property
    def part(self) -> Part:
        """The classes and their labels."""
        return self.recorded or find_part(self.classes, self.relabel)

    def shards(self, split: str) -> int:
        """How many shards a split gets."""
        return self.train_shards if split == facts.TRAIN else self.validation_shards

    def fingerprinted(self) -> dict[str, Any]:
        """The settings that decide the bytes of a shard besides its items."""
        labels = {} if self.part.first is None else {"labels": dict(self.part.labels)}
        return {"format": FORMAT_VERSION, **self.deciding("records"), **labels}

    def settings(self) -> dict[str, Any]:
        """What the manifest records: labels stand where it describes the data set."""
        return {"format": FORMAT_VERSION, **self.deciding("records", "set")}

    def chosen(self) -> Settings:
        """See CommonSettings; a file of classes by its absolute path."""
        named = self.replace(classes=self.part.said or None, relabel=self.part.first, recorded=None)
        return super(ConvertOptions, named).chosen()


def check_options(options: ConvertOptions) -> None:
    """Raise UsageError if a number can't be, or classes can't."""
    part = options.part
    for split in facts.SPLITS:
        if not 1 <= options.shards(split) <= MAX_SHARDS:
            raise UsageError(f"{options.shards(split)} {split} shards", f"expected 1 to {MAX_SHARDS}")
    if options.consume and not part.is_whole:
        raise UsageError(
            f"raw data can't be consumed for {part.name} alone",
            "expected all classes: the others would be lost",
            "leave out --consume or --classes",
        )


def options_from(manifest: Manifest) -> ConvertOptions:
    """The options of the conversion that a manifest records: the same ones make the same bytes again.

    What decides no bytes has its default. ``skip_bad`` is set if images were set aside, ``allow_incomplete`` if images
    of ILSVRC2012 were missing.

    Raises:
        InputError: the settings can't be understood, or records had another form then.
    """
    settings = dict(manifest.settings)
    if (version := settings.pop("format", None)) != FORMAT_VERSION:
        raise InputError(
            f"these shards were made by imagenet-prep {manifest.version}, whose records have another form",
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
