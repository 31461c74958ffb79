"""NamesOfClasses: the names of classes by their ids, or in order -> the name of each class."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.text import listed, number_of, parse_whole

CLASS_ID = re.compile(r"-?\d+|n\d{8}")
"""A number, or an id of WordNet."""


class NamesOfClasses(Struct, frozen=True):
    """Names by id; or, where a file has no ids, in order.

    ``may_have_heading``: its first line may be no name, so that their order tells no numbers.
    """

    by_id: Mapping[str, str] = {}
    in_order: Sequence[str] = ()
    may_have_heading: bool = False

    def names_of(self, ids: Collection[str], first_label: int | None = None) -> dict[str, str]:
        """The name of each id that has one.

        Names without ids, or with those of WordNet for numbers, count from ``first_label``, if each
        number then has a name. Otherwise they count from 0; or from 1, if an id is as large as
        there are names.
        """
        names = self._named_by_id(ids)
        if not names and not self.may_have_heading:
            names = self._named_in_order(ids, first_label)
        return {class_id: name for class_id, name in names.items() if name}

    def _named_by_id(self, ids: Collection[str]) -> dict[str, str]:
        plain_names = {_plain(key): name for key, name in self.by_id.items()}
        return {key: plain_names[_plain(key)] for key in ids if _plain(key) in plain_names}

    def _named_in_order(self, ids: Collection[str], first_label: int | None) -> dict[str, str]:
        ordered = self.in_order
        if not ordered and not any(key.isdigit() for key in self.by_id):
            ordered = list(self.by_id.values())
        return _names_by_number(ids, ordered, first_label) if ordered else {}

    def names_of_all(
        self, ids: Collection[str], first_label: int | None, place: str
    ) -> dict[str, str]:
        """The name of each id, as ``names_of``; raises InputError if one has none."""
        names = self.names_of(ids, first_label)
        unnamed = [class_id for class_id in ids if class_id not in names]
        if unnamed:
            count = f"{len(unnamed):,} of {number_of(len(ids), 'class', 'classes')}"
            problem = f"no name found in {place} for {count}: {listed(unnamed)}"
            hint = ""
            if (self.may_have_heading or self.in_order) and not names:
                line = f"its id (such as {unnamed[0]}), a tab, its name"
                hint = f"write a line for each class: {line}"
                if self.may_have_heading:
                    hint = f"remove its first line if that is a heading, or {hint}"
            raise InputError(problem, "expected a name for each class", hint)
        return names

    @property
    def are_ids(self) -> bool:
        """Whether its names are ids themselves, such as WordNet's."""
        names = self.in_order or self.by_id.values()
        return all(map(CLASS_ID.fullmatch, names))


def _names_by_number(
    ids: Collection[str], names: Sequence[str], first_label: int | None
) -> dict[str, str]:
    """The name of each id that is a number, where the names count from the first label, 0 or 1."""
    numbers: dict[str, int] = {}
    for key in ids:
        number_of_key = parse_whole(key)
        if number_of_key is not None:
            numbers[key] = number_of_key
    count = len(names)
    first_number = int(count in numbers.values())
    if first_label is not None:
        places = [number - first_label for number in numbers.values()]
        if all(0 <= place < count for place in places):
            first_number = first_label
    names_by_id: dict[str, str] = {}
    for key, number in numbers.items():
        place = number - first_number
        if 0 <= place < count:
            names_by_id[key] = names[place]
    return names_by_id


def _plain(key: str) -> str:
    """An id without needless zeros: 007 and 7 are one."""
    is_number = key.isascii() and key.isdigit()
    if not is_number:
        return key
    return key.lstrip("0") or "0"
