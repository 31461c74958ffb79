"""Part, classes of ILSVRC2012 with their labels: all of them, a list that ships with the package, or a file's."""

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
"""Those that ship with the package; where they come from: data/README.md."""

_LARGEST = 1 << 20
_SHOWN = 4  # faults beside the first
_LONGEST = 40


@dataclass(frozen=True, slots=True)
class Part:
    """Classes of ILSVRC2012, and the label that records of each get.

    Args:
        name: of the set that they make: ILSVRC2012 itself if it is all of them.
        labels: by wnid, in the order of sorted wnids: the official ones, or counted from 0 or 1.
        said: what follows ``--classes`` to name it: a list or a path; "" for all classes.
    """

    name: str
    labels: Mapping[str, int] = field(hash=False)
    said: str = field(default="", compare=False)

    @property
    def is_whole(self) -> bool:
        """Whether these are all classes."""
        return len(self.labels) == facts.CLASSES

    @property
    def first(self) -> int | None:
        """What the labels count from; None if they are the official ones."""
        return None if self.labels == _labelled(self.labels, None) else min(self.labels.values())

    @property
    def recorded(self) -> Mapping[str, int]:
        """The labels, where they have to be on record: none for ILSVRC2012 as it is."""
        return {} if self == WHOLE else self.labels

    @property
    def words(self) -> str:
        """What a person has to know of it."""
        count = f"{len(self.labels):,} of the {facts.CLASSES:,} classes of {facts.NAME}"
        if self.first is None:
            return f"{count}, with their official labels"
        least = " (0 is a class here, and no background)" if self.first == 0 else ""
        return f"{count}, labelled {self.first} to {max(self.labels.values()):,}{least}"

    def numbers(self) -> tuple[int, ...] | None:
        """The label to write for each of the official ones from 1 on; None: those themselves."""
        return None if self.first is None else tuple(self.labels.get(wnid, 0) for wnid in facts.synsets())

    def rows(self) -> frozenset[int]:
        """The official labels of these classes."""
        return frozenset(facts.labels()[wnid] for wnid in self.labels)

    def images(self, split: str, counted: int) -> int:
        """How many images a split of these classes has, where ``counted`` is what a whole copy was found to have.

        Of some classes that is all there is to know of train, beside that none has fewer than 732.
        """
        if self.is_whole:
            return facts.IMAGES[split]
        least = facts.FEWEST[split] * len(self.labels)
        return least if split == facts.VALIDATION else max(counted, least)

    def validation_filenames(self) -> tuple[str, ...]:
        """The names of their validation images, by number: 50 a class."""
        wnids = enumerate(facts.validation_wnids(), 1)
        return tuple(facts.validation_filename(number) for number, wnid in wnids if wnid in self.labels)


def find_part(said: str | None = None, first: int | None = None) -> Part:
    """The classes that are meant by ``said``, a list of ours or a file; None: all of them.

    A file has a wnid a line; what follows it, blank lines, and comments after "#" are passed over. The part has the
    name of the file, without its suffix.

    Args:
        said: a name in LISTS goes before a file that is called the same.
        first: labels count from it, in the order of sorted wnids; None: they are the official ones.

    Raises:
        UsageError: it is neither; or a line of the file is no class. The error names every line.
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
        raise UsageError(f"no list and no file of classes is called {said!r}", f"expected {lists}, or a file of wnids")
    wnids = _read(path.name, path, read_plain(path, _LARGEST))
    return _part(_name_of(path, wnids), wnids, first, str(path.absolute()))


def recorded_part(name: str, labels: Mapping[str, int]) -> Part:
    """The part of that name with these labels, as a manifest has them; of a file no more than the name is known.

    Raises:
        InputError: no part has such labels.
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
    """The name of a file's classes: that of the list that has the same ones, else its own."""
    known = {facts.NAME: set(facts.synsets()), **{name: _shipped(name) for name in LISTS}}
    for name, theirs in known.items():
        if wnids == theirs:
            return name
    name = path.stem.encode(errors="replace").decode()
    if name in known:
        raise UsageError(
            f"{path} has other classes than {name}",
            f"expected those {len(known[name]):,}, got {len(wnids):,}",
            "give the file another name",
        )
    return name


# a file's lines ------------------------------------------------------------------------------------------------


def _read(name: str, path: Path, content: bytes) -> set[str]:
    """The wnids of a file's lines; raises UsageError with every fault."""
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
            f"correct {name}: a wnid a line, comments after #",
        )
    return set(lines)


def _fault(word: str, lines: Mapping[str, int]) -> str:
    if not facts.is_wnid(word):
        return f"{word if len(word) <= _LONGEST else word[:_LONGEST] + '...'!r} is not a wnid"
    if word not in facts.labels():
        return f"{word} is not one of the 1000 classes"
    return f"{word} is in line {lines[word]} already" if word in lines else ""


WHOLE = find_part()
"""ILSVRC2012: every class with its official label."""
