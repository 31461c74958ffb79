"""Part: classes of ILSVRC2012 with their labels; find_part: a list or a file -> a Part."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.state.manifest import not_understood
from imagenet_prep.storage.files import IN_WORDS, kind_of, read_plain
from imagenet_prep.storage.location import refuse_url
from imagenet_prep.text import listed, nearest_words

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
        if self.labels == _labelled(self.labels, None):
            return None
        return min(self.labels.values())

    @property
    def recorded(self) -> Mapping[str, int]:
        """The labels to record in the manifest: none for ILSVRC2012 with official labels."""
        return {} if self == WHOLE else self.labels

    @property
    def words(self) -> str:
        """A description for users."""
        count = f"{len(self.labels):,} of the {facts.CLASSES:,} classes of {facts.NAME}"
        first = self.first
        if first is None:
            return f"{count}, with their official labels"
        last = max(self.labels.values())
        about_0 = " (0 is a class here, not a background)" if first == 0 else ""
        return f"{count}, labelled {first} to {last:,}{about_0}"

    def numbers(self) -> tuple[int, ...] | None:
        """Maps official labels, from 1, to the labels to write; None keeps the official ones."""
        if self.first is None:
            return None
        return tuple(self.labels.get(wnid, 0) for wnid in facts.synsets())

    def rows(self) -> frozenset[int]:
        """The official labels of these classes."""
        official_labels = facts.labels()
        return frozenset(official_labels[wnid] for wnid in self.labels)

    def images(self, split: str, counted: int) -> int:
        """The number of images of these classes in a split; ``counted`` is the count of a complete
        copy.

        For some classes, ``counted`` is the only exact figure for train; every class has at least
        732.
        """
        if self.is_whole:
            return facts.IMAGES[split]
        least = facts.FEWEST[split] * len(self.labels)
        if split == facts.VALIDATION:
            return least
        return max(counted, least)

    def validation_filenames(self) -> tuple[str, ...]:
        """The names of their validation images, by number: 50 per class."""
        filenames: list[str] = []
        for number, wnid in enumerate(facts.validation_wnids(), 1):
            if wnid in self.labels:
                filenames.append(facts.validation_filename(number))
        return tuple(filenames)


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
        InputError: the file can't be read, or it is a folder or a pipe.
    """
    if argument is None:
        return _part(facts.NAME, facts.synsets(), first, "")
    if argument in LISTS:
        return _part(argument, _shipped(argument), first, argument)
    refuse_url(argument)
    path = Path(argument)
    _refuse_no_file(path, argument)
    content = read_plain(path, _LARGEST)
    wnids = _read(path.name, path, content)
    name = _name_of(path, wnids)
    return _part(name, wnids, first, str(path.absolute()))


def _refuse_no_file(path: Path, argument: str) -> None:
    """Raise an error unless a file of classes is there."""
    file_type = kind_of(path) if argument else "nothing"
    if file_type == "file":
        return
    expected = f"expected a class list ({', '.join(LISTS)}) or a file of wnids"
    if file_type != "nothing":
        raise InputError(f"{path} is {IN_WORDS[file_type]}", expected)
    if path.is_symlink():
        raise UsageError(f"{path} is a broken link", expected)
    what = f"unknown class list or file {argument!r}"
    raise UsageError(what, expected, nearest_words(str(argument), LISTS))


def recorded_part(name: str, labels: Mapping[str, int]) -> Part:
    """The part of that name with these labels, as a manifest records them; a file's path is
    unknown.

    Raises:
        InputError: no part can have such labels.
    """
    if not labels:
        return WHOLE
    if not labels.keys() <= facts.labels().keys():
        raise not_understood()
    if not any(labels == _labelled(labels, first) for first in (None, 0, 1)):
        raise not_understood()
    argument = name if name in LISTS else f"{name}.txt"
    if len(labels) == facts.CLASSES:
        argument = ""
    sorted_labels = dict(sorted(labels.items()))
    return Part(name, sorted_labels, argument)


def _part(name: str, wnids: Iterable[str], first: int | None, argument: str) -> Part:
    if name == facts.NAME:
        argument = ""
    return Part(name, _labelled(wnids, first), argument)


def _labelled(wnids: Iterable[str], first: int | None) -> dict[str, int]:
    """The label of each class: counted from ``first``, or the official one."""
    sorted_wnids = sorted(wnids)
    if first is not None:
        return {wnid: label for label, wnid in enumerate(sorted_wnids, first)}
    official_labels = facts.labels()
    return {wnid: official_labels[wnid] for wnid in sorted_wnids}


def _shipped(name: str) -> set[str]:
    path = facts.class_list(name)
    return _read(name, path, path.read_bytes())


def _name_of(path: Path, wnids: set[str]) -> str:
    """The name for a file's classes: that of the list with the same classes, or the file's own."""
    lists = {facts.NAME: set(facts.synsets())}
    for list_name in LISTS:
        lists[list_name] = _shipped(list_name)
    for list_name, listed_wnids in lists.items():
        if wnids == listed_wnids:
            return list_name
    from imagenet_prep.sources.names import shown_name  # NumPy, which verify does not need

    name = PurePosixPath(shown_name(path)).stem
    if name in lists:
        missing, others = sorted(lists[name] - wnids), sorted(wnids - lists[name])
        texts: list[str] = []
        if missing:
            texts.append(f"missing: {listed(missing)}")
        if others:
            texts.append(f"not among them: {listed(others)}")
        expected = f"expected the {len(lists[name]):,} classes of {name}"
        raise UsageError(
            f"{path} has other classes than imagenet-prep's own list {name}",
            f"{expected}, got {len(wnids):,}; {'; '.join(texts)}",
            "give the file another name: the data set is named after it",
        )
    return name


# a file's lines -----------------------------------------------------------------------------------


def _read(name: str, path: Path, content: bytes) -> set[str]:
    """The wnids in a file's lines; raises UsageError with every fault."""
    line_numbers: dict[str, int] = {}
    faults: list[str] = []
    lines = content.removeprefix(b"\xef\xbb\xbf").splitlines()
    for number, line in enumerate(lines, 1):
        try:
            entry, _, _ = line.decode().partition("#")
        except UnicodeDecodeError:
            faults.append(f"line {number}: not UTF-8")
            continue
        words = entry.split()
        if not words:
            continue
        wnid = words[0]
        fault = _fault(wnid, line_numbers)
        if fault:
            faults.append(f"line {number}: {fault}")
        else:
            line_numbers[wnid] = number
    if faults:
        raise UsageError(
            f"{path}, {faults[0]}",
            _further(faults[1:]) or "expected a wnid such as n01440764 at the start of each line",
            f"correct {name}: one wnid per line in UTF-8, comments after #",
        )
    if not line_numbers:
        raise UsageError(f"{path} names no class", "expected a wnid such as n01440764 in each line")
    return set(line_numbers)


def _further(faults: Sequence[str]) -> str:
    """The next faults, and the number of those not shown."""
    shown = list(faults[:_SHOWN])
    hidden = len(faults) - len(shown)
    if hidden:
        shown.append(f"and {hidden:,} more")
    return "; ".join(shown)


def _fault(word: str, line_numbers: Mapping[str, int]) -> str:
    """Why a word is no further class, or ""; ``line_numbers`` are those of the classes so far."""
    if not facts.is_wnid(word):
        if len(word) > _LONGEST:
            word = word[:_LONGEST] + "..."
        return f"{word!r} is not a wnid"
    if word not in facts.labels():
        return f"{word} is not one of the 1000 classes"
    if word in line_numbers:
        return f"{word} is already in line {line_numbers[word]}"
    return ""


WHOLE = find_part()
"""ILSVRC2012: every class with its official label."""
