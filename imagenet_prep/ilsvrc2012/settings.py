"""Part: classes of ILSVRC2012 with their labels.
ConvertOptions: the settings of a conversion, from any source.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal

import msgspec

from imagenet_prep.datasets.declarations import MakingOptions, Shards, about
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import OptionValues, mention
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.state.manifest import ILSVRC2012, DatasetEntry, Manifest, not_understood
from imagenet_prep.storage.files import kind_of, read_plain
from imagenet_prep.storage.layout import MAX_SHARDS, parse_shard_name
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.text import nearest_words
from imagenet_prep.tfrecord import inception

LISTS = ("imagenette", "imagewoof", "imagenet-100")
"""Class lists in the package; data/README.md gives their sources."""

_LARGEST = 1 << 20
_SHOWN = 4  # further faults shown
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Part:
    """Classes of ILSVRC2012, and the label of each in records.

    Args:
        name: the name of the data set: ILSVRC2012 itself for all classes.
        labels: by wnid, in the order of sorted wnids: the official ones, or counted from 0 or 1.
        argument: that of ``--classes`` which selects it: a list or a path; "" for all classes.
    """

    name: str
    labels: Mapping[str, int] = field(hash=False)
    argument: str = field(default="", compare=False)

    @property
    def is_whole(self) -> bool:
        """Whether it contains all classes."""
        return len(self.labels) == facts.CLASSES

    @property
    def first(self) -> int | None:
        """The first label; None for official labels."""
        return None if self.labels == _labelled(self.labels, None) else min(self.labels.values())

    @property
    def recorded(self) -> Mapping[str, int]:
        """The labels to record in the manifest: none for ILSVRC2012 with official labels."""
        return {} if self == WHOLE else self.labels

    @property
    def words(self) -> str:
        """A description for users."""
        count = f"{len(self.labels):,} of the {facts.CLASSES:,} classes of {facts.NAME}"
        if self.first is None:
            return f"{count}, with their official labels"
        least = " (0 is a class here, not a background)" if self.first == 0 else ""
        return f"{count}, labelled {self.first} to {max(self.labels.values()):,}{least}"

    def numbers(self) -> tuple[int, ...] | None:
        """Maps official labels, from 1, to the labels to write; None keeps the official ones."""
        return (
            None
            if self.first is None
            else tuple(self.labels.get(wnid, 0) for wnid in facts.synsets())
        )

    def rows(self) -> frozenset[int]:
        """The official labels of these classes."""
        return frozenset(facts.labels()[wnid] for wnid in self.labels)

    def images(self, split: str, counted: int) -> int:
        """The number of images of these classes in a split; ``counted`` is the count of a complete
        copy.

        For some classes, ``counted`` is the only exact figure for train; every class has at least
        732.
        """
        if self.is_whole:
            return facts.IMAGES[split]
        least = facts.FEWEST[split] * len(self.labels)
        return least if split == facts.VALIDATION else max(counted, least)

    def validation_filenames(self) -> tuple[str, ...]:
        """The names of their validation images, by number: 50 per class."""
        wnids = enumerate(facts.validation_wnids(), 1)
        return tuple(
            facts.validation_filename(number) for number, wnid in wnids if wnid in self.labels
        )


def find_part(argument: str | None = None, first: int | None = None) -> Part:
    """Find the classes that ``argument`` names, a list in the package or a file; None: all classes.

    A file has one wnid per line. Words after it, blank lines, and comments after "#" are skipped.
    The part is named after the file, without its suffix.

    Args:
        argument: a name in LISTS wins over a file of the same name.
        first: the first label, in the order of sorted wnids; None: official labels.

    Raises:
        UsageError: it is neither, or lines of the file name no class. The error names every such
            line.
        InputError: the file can't be read.
    """
    if argument is None:
        return _part(facts.NAME, facts.synsets(), first, "")
    if argument in LISTS:
        return _part(argument, _shipped(argument), first, argument)
    refuse_url(argument)
    path = Path(argument)
    if not argument or kind_of(path) == "nothing":
        lists = ", ".join(LISTS)
        raise UsageError(
            f"unknown class list or file {argument!r}",
            f"expected {lists}, or a file of wnids",
            nearest_words(str(argument), LISTS),
        )
    wnids = _read(path.name, path, read_plain(path, _LARGEST))
    return _part(_name_of(path, wnids), wnids, first, str(path.absolute()))


def recorded_part(name: str, labels: Mapping[str, int]) -> Part:
    """The part of that name with these labels, as a manifest records them; a file's path is
    unknown.

    Raises:
        InputError: no part can have such labels.
    """
    if not labels:
        return WHOLE
    if not labels.keys() <= facts.labels().keys():
        raise not_understood("classes")
    if labels not in [_labelled(labels, first) for first in (None, 0, 1)]:
        raise not_understood("classes")
    argument = name if name in LISTS else f"{name}.txt"
    if len(labels) == facts.CLASSES:
        argument = ""
    return Part(name, {wnid: labels[wnid] for wnid in sorted(labels)}, argument)


def _part(name: str, wnids: Iterable[str], first: int | None, argument: str) -> Part:
    return Part(name, _labelled(wnids, first), "" if name == facts.NAME else argument)


def _labelled(wnids: Iterable[str], first: int | None) -> dict[str, int]:
    if first is None:
        return {wnid: facts.labels()[wnid] for wnid in sorted(wnids)}
    return {wnid: label for label, wnid in enumerate(sorted(wnids), first)}


def _shipped(name: str) -> set[str]:
    path = facts.class_list(name)
    return _read(name, path, path.read_bytes())


def _name_of(path: Path, wnids: set[str]) -> str:
    """The name for a file's classes: that of the list with the same classes, or the file's own."""
    lists = {facts.NAME: set(facts.synsets())}
    lists |= {name: _shipped(name) for name in LISTS}
    for list_name, listed_wnids in lists.items():
        if wnids == listed_wnids:
            return list_name
    from imagenet_prep.sources.names import shown_name  # NumPy, which verify does not need

    name = PurePosixPath(shown_name(path)).stem
    if name in lists:
        raise UsageError(
            f"{path} has other classes than {name}",
            f"expected its {len(lists[name]):,} classes, got {len(wnids):,}",
            "rename the file",
        )
    return name


# a file's lines -----------------------------------------------------------------------------------


def _read(name: str, path: Path, content: bytes) -> set[str]:
    """The wnids in a file's lines; raises UsageError with every fault."""
    lines: dict[str, int] = {}
    faults = []
    for number, line in enumerate(content.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            words = line.decode().partition("#")[0].split()
        except UnicodeDecodeError:
            faults.append(f"line {number}: not UTF-8")
            continue
        if not words:
            continue
        if fault := _fault(words[0], lines):
            faults.append(f"line {number}: {fault}")
        else:
            lines[words[0]] = number
    if faults:
        raise UsageError(
            f"{path}, {faults[0]}",
            _further(faults[1:]) or "expected a wnid such as n01440764 at the start of each line",
            f"correct {name}: one wnid per line, comments after #",
        )
    if not lines:
        raise UsageError(f"{path} names no class", "expected a wnid such as n01440764 in each line")
    return set(lines)


def _further(faults: Sequence[str]) -> str:
    """The next faults, and the number of those not shown."""
    shown = list(faults[:_SHOWN])
    hidden = len(faults) - len(shown)
    if hidden:
        shown.append(f"and {hidden:,} more")
    return "; ".join(shown)


def _fault(word: str, lines: Mapping[str, int]) -> str:
    if not facts.is_wnid(word):
        shown = word if len(word) <= _LONGEST else word[:_LONGEST] + "..."
        return f"{shown!r} is not a wnid"
    if word not in facts.labels():
        return f"{word} is not one of the 1000 classes"
    return f"{word} is already in line {lines[word]}" if word in lines else ""


WHOLE = find_part()
"""ILSVRC2012: every class with its official label."""

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

    def chosen(self) -> OptionValues:
        """See CommonSettings; a file of classes is named by its absolute path."""
        named = self.replace(
            classes=self.part.argument or None, relabel=self.part.first, recorded=None
        )
        return super(ConvertOptions, named).chosen()


def check_options(options: ConvertOptions) -> None:
    """Raise UsageError for an impossible number, or impossible classes."""
    part = options.part
    for split in facts.SPLITS:
        if not 1 <= options.shards(split) <= MAX_SHARDS:
            raise UsageError(
                f"can't make {options.shards(split)} {split} shards", f"expected 1 to {MAX_SHARDS}"
            )
    if options.consume and not part.is_whole:
        raise UsageError(
            f"can't consume raw data for {part.name} alone",
            "expected all classes: the others would be lost",
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
    if (version := settings.pop("format", None)) != FORMAT_VERSION:
        raise InputError(
            (
                f"these shards were made by imagenet-prep {manifest.version}, "
                "whose record format differs"
            ),
            f"expected format {FORMAT_VERSION}, got {version!r}",
            Hint(
                "use that version, or make the set again with ", mention("convert", "--overwrite")
            ),
        )
    shard_counts = _recorded_shard_counts(manifest)
    part = recorded_part(manifest.dataset.name, manifest.dataset.classes)
    settings |= {name: shard_counts[split] for split, name in SHARD_COUNTS.items()}
    settings["allow_incomplete"] = not all(
        _was_complete(manifest, split, part) for split in facts.SPLITS
    )
    settings["on_damaged"] = "skip" if manifest.has_set_aside else "refuse"
    try:
        if reencode := settings.pop("reencode", None):
            settings |= {name: reencode[name] for name in Reencode.__struct_fields__}
        expected_settings = ConvertOptions().settings().keys() - {"format"}
        if not expected_settings <= settings.keys():
            raise not_understood("settings")
        options = msgspec.convert(settings, ConvertOptions)
        return options.replace(recorded=part if part.recorded else None)
    except (msgspec.ValidationError, LookupError, TypeError) as error:
        raise not_understood("settings") from error


def _recorded_shard_counts(manifest: Manifest) -> dict[str, int]:
    """The number of shards of each split; InputError if their names don't fit it."""
    shard_counts = dict(facts.SHARDS)
    shard_counts |= {split: total.shards for split, total in manifest.totals.items()}
    for shard in manifest.shards:
        name = parse_shard_name(shard)
        if name is None:
            raise not_understood("names of shards")
        split, number, count = name
        if not number < count == shard_counts.get(split):
            raise not_understood("names of shards")
    return shard_counts


def _was_complete(manifest: Manifest, split: str, part: Part) -> bool:
    total, images = manifest.totals.get(split), source_of(manifest, split).get("images")
    if total is None:
        return False
    expected = total.expected
    if not expected_by_class(manifest):
        expected = part.images(split, expected)
    return (images, total.classes) == (expected, len(part.labels))


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
