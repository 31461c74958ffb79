"""ConvertOptions: the settings of a conversion, from any source."""

from __future__ import annotations

import functools
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal

import msgspec

from imagenet_prep.datasets.declarations import MakingOptions, Shards, about
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import OptionValues
from imagenet_prep.hints import CONVERT_AGAIN, Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import LISTS, Part, find_part, recorded_part
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.state.manifest import ILSVRC2012, DatasetEntry, Manifest, not_understood
from imagenet_prep.storage.layout import MAX_SHARDS, parse_shard_name
from imagenet_prep.tfrecord import inception

ENTRY = DatasetEntry(ILSVRC2012, facts.NAME, facts.SPLITS, inception.PROMISE, {})
"""The entry of ILSVRC2012 in a manifest."""


FORMAT_VERSION = 1
"""Part of every fingerprint: it is raised when the bytes of a record change."""

SHIPPED = Path(__file__).with_name("imagenet.yaml")
"""The recipe with the default settings."""

SHARD_COUNTS = {split: f"{split}_shards" for split in facts.SPLITS}
"""The setting for the number of shards per split."""

_BOTH = ("run", "convert")


class ConvertOptions(MakingOptions, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Settings of a conversion; the defaults make the record set of 2016.

    imagenet-prep convert --help and docs/recipes/imagenet.md describe each. ``recorded`` is no
    setting: it holds classes with their labels that don't come from ``classes`` and ``relabel``.
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
    train_shards: Annotated[Shards, about("Shards of train images.", options=_BOTH)] = facts.SHARDS[
        facts.TRAIN
    ]
    validation_shards: Annotated[Shards, about("Shards of validation images.", options=_BOTH)] = (
        facts.SHARDS[facts.VALIDATION]
    )
    validation_boxes: Annotated[
        bool,
        about("Give validation images boxes too (the scripts of 2016 gave none).", decides="set"),
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
        fingerprinted = {"format": FORMAT_VERSION, **self.deciding("records")}
        if self.part.first is not None:
            fingerprinted["labels"] = dict(self.part.labels)
        return fingerprinted

    def settings(self) -> dict[str, Any]:
        """The settings in the manifest; labels are recorded with the data set instead."""
        return {"format": FORMAT_VERSION, **self.deciding("records", "set")}

    def chosen(self) -> OptionValues:
        """See CommonSettings; a file of classes is named by its absolute path."""
        part = self.part
        named = self.replace(classes=part.argument or None, relabel=part.first, recorded=None)
        return super(ConvertOptions, named).chosen()


def check_options(options: ConvertOptions) -> None:
    """Raise UsageError for an impossible number, or impossible classes."""
    part = options.part
    for split in facts.SPLITS:
        shards = options.shards(split)
        if not 1 <= shards <= MAX_SHARDS:
            raise UsageError(
                f"{SHARD_COUNTS[split]} is {shards:,}", f"expected 1 to {MAX_SHARDS:,}"
            )
    if options.consume and not part.is_whole:
        raise UsageError(
            f"can't convert only {part.name} with --consume",
            "--consume deletes the raw data, with the images of all other classes",
            "leave out --consume or --classes",
        )


def options_from(manifest: Manifest) -> ConvertOptions:
    """The options of the conversion that a manifest records: with them, convert makes the same
    bytes again.

    Settings that don't affect the bytes have their defaults. ``on_damaged`` is "skip" if images
    were set aside, ``allow_incomplete`` if images of ILSVRC2012 were missing.

    Raises:
        InputError: the settings are invalid, or the records have an older format.
    """
    settings = dict(manifest.settings)
    record_format = settings.pop("format", None)
    if not isinstance(record_format, int):
        raise not_understood()
    if record_format != FORMAT_VERSION:
        raise _other_format(manifest.version, record_format)
    shard_counts = _recorded_shard_counts(manifest)
    part = recorded_part(manifest.dataset.name, manifest.dataset.classes)
    for split, setting in SHARD_COUNTS.items():
        settings[setting] = shard_counts[split]
    was_complete = all(_was_complete(manifest, split, part) for split in facts.SPLITS)
    settings["allow_incomplete"] = not was_complete
    settings["on_damaged"] = "skip" if manifest.has_set_aside else "refuse"
    try:
        _spread_reencoding(settings)
        expected_settings = ConvertOptions().settings().keys() - {"format"}
        if not expected_settings <= settings.keys():
            raise not_understood()
        options = msgspec.convert(settings, ConvertOptions)
    except (msgspec.ValidationError, LookupError, TypeError) as error:
        raise not_understood() from error
    return options.replace(recorded=part if part.recorded else None)


def _other_format(version: str, record_format: int) -> InputError:
    """The error that records have an older format."""
    return InputError(
        f"these shards were made by imagenet-prep {version}, whose record format differs",
        f"expected record format {FORMAT_VERSION}, got {record_format}",
        Hint(f"use imagenet-prep {version}; or, to make the set again, ", CONVERT_AGAIN),
    )


def _spread_reencoding(settings: dict[str, Any]) -> None:
    """Replace the entry of how images were encoded again by the settings in it."""
    reencode = settings.pop("reencode", None)
    if reencode:
        for setting in Reencode.__struct_fields__:
            settings[setting] = reencode[setting]


def _recorded_shard_counts(manifest: Manifest) -> dict[str, int]:
    """The number of shards of each split; InputError if their names don't fit it."""
    shard_counts = dict(facts.SHARDS)
    for split, total in manifest.totals.items():
        shard_counts[split] = total.shards
    for shard in manifest.shards:
        name = parse_shard_name(shard)
        if name is None:
            raise not_understood()
        split, number, count = name
        if not number < count == shard_counts.get(split):
            raise not_understood()
    return shard_counts


def _was_complete(manifest: Manifest, split: str, part: Part) -> bool:
    """Whether all images and classes of a split were listed."""
    total = manifest.totals.get(split)
    if total is None:
        return False
    images = source_of(manifest, split).get("images")
    expected = total.expected
    if not expected_by_class(manifest):
        expected = part.images(split, expected)
    return images == expected and total.classes == len(part.labels)


def source_of(manifest: Manifest | None, split: str) -> Mapping[str, Any]:
    """The entry for a split's images in a manifest; empty if there is none."""
    source = manifest.sources.get(split) if manifest else None
    return source if isinstance(source, dict) else {}


def expected_by_class(manifest: Manifest | None) -> Mapping[str, int]:
    """The number of train images of each class by the devkit, as a manifest records it;
    empty without a devkit.
    """
    counts = source_of(manifest, facts.TRAIN).get("expected_by_class")
    return counts if isinstance(counts, dict) else {}
