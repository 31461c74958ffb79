"""Part: classes of ILSVRC2012 with their labels, from a list in the package or a file, or all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from imagenet_prep.errors import UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.state.manifest import not_understood
from imagenet_prep.storage.files import kind_of, read_plain
from imagenet_prep.storage.location import refuse_url

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
        said: the argument of ``--classes`` that selects it: a list or a path; "" for all classes.
    """

    name: str
    labels: Mapping[str, int] = field(hash=False)
    said: str = field(default="", compare=False)

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
        return None if self.first is None else tuple(self.labels.get(wnid, 0) for wnid in facts.synsets())

    def rows(self) -> frozenset[int]:
        """The official labels of these classes."""
        return frozenset(facts.labels()[wnid] for wnid in self.labels)

    def images(self, split: str, counted: int) -> int:
        """The number of images of these classes in a split; ``counted`` is the count of a complete copy.

        For some classes, ``counted`` is the only exact figure for train; every class has at least 732.
        """
        if self.is_whole:
            return facts.IMAGES[split]
        least = facts.FEWEST[split] * len(self.labels)
        return least if split == facts.VALIDATION else max(counted, least)

    def validation_filenames(self) -> tuple[str, ...]:
        """The names of their validation images, by number: 50 per class."""
        wnids = enumerate(facts.validation_wnids(), 1)
        return tuple(facts.validation_filename(number) for number, wnid in wnids if wnid in self.labels)


def find_part(said: str | None = None, first: int | None = None) -> Part:
    """Find the classes that ``said`` names, a list in the package or a file; None: all classes.

    A file has one wnid per line. Words after it, blank lines, and comments after "#" are skipped. The part is named
    after the file, without its suffix.

    Args:
        said: a name in LISTS wins over a file of the same name.
        first: the first label, in the order of sorted wnids; None: official labels.

    Raises:
        UsageError: it is neither, or lines of the file name no class. The error names every such line.
        InputError: the file can't be read.
    """
    if said is None:
        return _part(facts.NAME, facts.synsets(), first, "")
    if said in LISTS:
        return _part(said, _shipped(said), first, said)
    refuse_url(said)
    path = Path(said)
    if not said or kind_of(path) == "nothing":
        lists = ", ".join(LISTS)
        raise UsageError(f"unknown class list or file {said!r}", f"expected {lists}, or a file of wnids")
    wnids = _read(path.name, path, read_plain(path, _LARGEST))
    return _part(_name_of(path, wnids), wnids, first, str(path.absolute()))


def recorded_part(name: str, labels: Mapping[str, int]) -> Part:
    """The part of that name with these labels, as a manifest records them; a file's path is unknown.

    Raises:
        InputError: no part can have such labels.
    """
    if not labels:
        return WHOLE
    if not labels.keys() <= facts.labels().keys():
        raise not_understood("classes")
    if labels not in [_labelled(labels, first) for first in (None, 0, 1)]:
        raise not_understood("classes")
    said = "" if len(labels) == facts.CLASSES else name if name in LISTS else f"{name}.txt"
    return Part(name, {wnid: labels[wnid] for wnid in sorted(labels)}, said)


def _part(name: str, wnids: Iterable[str], first: int | None, said: str) -> Part:
    return Part(name, _labelled(wnids, first), "" if name == facts.NAME else said)


def _labelled(wnids: Iterable[str], first: int | None) -> dict[str, int]:
    if first is None:
        return {wnid: facts.labels()[wnid] for wnid in sorted(wnids)}
    return {wnid: label for label, wnid in enumerate(sorted(wnids), first)}


def _shipped(name: str) -> set[str]:
    path = facts.class_list(name)
    return _read(name, path, path.read_bytes())


def _name_of(path: Path, wnids: set[str]) -> str:
    """The name for a file's classes: that of the list with the same classes, or the file's own."""
    known = {facts.NAME: set(facts.synsets()), **{name: _shipped(name) for name in LISTS}}
    for name, theirs in known.items():
        if wnids == theirs:
            return name
    name = path.stem.encode(errors="replace").decode()
    if name in known:
        raise UsageError(
            f"{path} has other classes than {name}",
            f"expected its {len(known[name]):,} classes, got {len(wnids):,}",
            "rename the file",
        )
    return name


# a file's lines ------------------------------------------------------------------------------------------------


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
    if not faults and not lines:
        raise UsageError(f"{path} names no class", "expected a wnid such as n01440764 in each line")
    if faults:
        rest = faults[1 : 1 + _SHOWN]
        more = len(faults) - 1 - len(rest)
        also = "; ".join(rest) + (f"; and {more:,} more" if more else "")
        raise UsageError(
            f"{path}, {faults[0]}",
            also or "expected a wnid such as n01440764 at the start of each line",
            f"correct {name}: one wnid per line, comments after #",
        )
    return set(lines)


def _fault(word: str, lines: Mapping[str, int]) -> str:
    if not facts.is_wnid(word):
        return f"{word if len(word) <= _LONGEST else word[:_LONGEST] + '...'!r} is not a wnid"
    if word not in facts.labels():
        return f"{word} is not one of the 1000 classes"
    return f"{word} is already in line {lines[word]}" if word in lines else ""


WHOLE = find_part()
"""ILSVRC2012: every class with its official label."""
