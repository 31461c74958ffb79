"""SharedNumbering: the classes that the sets of one DATA_DIR have already;
a later set takes their numbers.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.annotating import Annotations
from imagenet_prep.recipes.formats import load_format
from imagenet_prep.recipes.labels import Classes, refuse_below_first
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_lines import YAML_WORDS
from imagenet_prep.recipes.schema import BoxKeys
from imagenet_prep.state.manifest import RECIPE, Manifest, usable_manifest
from imagenet_prep.state.numbering import Numbering
from imagenet_prep.state.plan_file import Plan, load_plan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.text import listed

_MOST_IN_A_HINT = 50
"""Names that a hint lists; more go into a file."""


class KnownNumbering(Struct, frozen=True):
    """The numbering that a set has, or several sets; and the names of boxes by label.
    ``name`` is for messages.
    """

    name: str
    numbering: Numbering
    boxes: Mapping[int, str] = {}

    @classmethod
    def find(cls, layout: Layout) -> KnownNumbering | None:
        """The numbering of one set, from its manifest or its plan;
        None if it has no classes, or is not a recipe's.
        """
        record: Manifest | Plan | None = usable_manifest(layout.manifest_path) or load_plan(layout)
        if record is None or record.dataset.kind != RECIPE:
            return None
        boxes = {int(label): str(name) for label, name in record.settings.get("boxes", {}).items()}
        if not record.dataset.classes and not boxes:
            return None
        name = layout.set_name or ", ".join(record.dataset.splits)
        return cls(name, Numbering.read(record.dataset, record.settings), boxes)

    @classmethod
    def join(cls, several: Sequence[KnownNumbering]) -> KnownNumbering | None:
        """The numbering of several sets, which agree; None if there are none."""
        if not several:
            return None
        with_classes = [each.numbering for each in several if each.numbering.labels]
        labels: dict[str, int] = {}
        texts: dict[str, str] = {}
        boxes: dict[int, str] = {}
        for each in reversed(several):
            labels |= each.numbering.labels
            texts |= each.numbering.texts
            boxes |= each.boxes
        first = with_classes[0].first_label if with_classes else 0
        return cls(listed(each.name for each in several), Numbering(first, labels, texts), boxes)


class SharedNumbering(Struct, frozen=True):
    """The numberings of DATA_DIR.

    Args:
        known: the numbering that must hold: that of the other sets; and its own, if it grows.
        own: its own numbering, if it was made before and is not made again.
        grows: new files may have new classes, which come last.
    """

    known: KnownNumbering | None = None
    own: KnownNumbering | None = None
    grows: bool = False

    @classmethod
    def find(cls, layout: Layout | None, *, grows: bool, overwrite: bool) -> SharedNumbering:
        """The numberings in a folder; ``overwrite``: the set itself is made again."""
        if layout is None:
            return cls()
        sets = replace(layout, set_name="").sets()
        others = [KnownNumbering.find(each) for each in sets if each.set_name != layout.set_name]
        own = None if overwrite else KnownNumbering.find(layout)
        binding = [own, *others] if grows else others
        return cls(KnownNumbering.join([each for each in binding if each is not None]), own, grows)

    @property
    def first_label(self) -> int | None:
        """The label of the first class; None if no set has classes."""
        known = [each.numbering for each in (self.own, self.known) if each is not None]
        return next((numbering.first_label for numbering in known if numbering.labels), None)

    def settle(self, file: RecipeFile, classes: Classes) -> Classes:
        """The classes of a set with the numbers that DATA_DIR has for them, and its classes without
        a file.

        Classes that the recipe lists, and those that are numbers, keep their numbers.

        Raises:
            InputError: a class or a number means something else in another set, or the class is not
                there.
        """
        if not classes.names:
            return classes
        if classes.is_numbered and file.recipe.first_label is None and self.first_label is not None:
            classes = replace(classes, first_label=self.first_label)
            refuse_below_first(file, classes)
        base = self._find_base(classes, file.recipe.first_label)
        if base is not None and file.recipe.classes is None and not classes.is_numbered:
            classes = _renumbered(classes, base)
        if self.known is not None and self.known.numbering.labels:
            _NumberingCheck(file, classes, self.known, self.grows).refuse_difference()
        return classes if base is None else _with_others(classes, base)

    def _find_base(self, classes: Classes, declared: int | None) -> Numbering | None:
        """The numbering to take: that of the set itself if it has all classes, otherwise that of
        the others.

        None where the recipe declares another first label: then its own numbers are compared with
        those.
        """
        own = self.own.numbering if self.own is not None else Numbering()
        if own.labels.keys() >= set(classes.names) and declared in (None, own.first_label):
            return own
        known = self.known.numbering if self.known is not None else Numbering()
        return known if known.labels and declared in (None, known.first_label) else None

    def number_boxes(self, file: RecipeFile, annotations: Annotations) -> None:
        """Give boxes the labels that DATA_DIR has for their classes, unless their files or the
        recipe number them.

        Raises:
            InputError: a label of boxes, or a class, means something else in another set.
        """
        keys, classes = file.recipe.boxes, annotations.classes
        known = next(
            (each.boxes for each in (self.own, self.known) if each is not None and each.boxes), {}
        )
        is_numbered = keys is not None and (keys.names is not None or keys.first_label is not None)
        is_numbered = is_numbered or annotations.is_numbered
        if not is_numbered and set(classes.values()) <= set(known.values()):
            annotations.renumber(known)
        self._refuse_other_boxes(file, annotations.classes)

    def _refuse_other_boxes(self, file: RecipeFile, boxes: Mapping[int, str]) -> None:
        """Raise InputError if a label of boxes, or a class of boxes,
        means something else in another set.
        """
        if self.known is None or not boxes:
            return
        labels = {name: label for label, name in boxes.items()}
        for label, name in self.known.boxes.items():
            if (boxes.get(label, name), labels.get(name, label)) == (name, label):
                continue
            names = list(dict.fromkeys((*self.known.boxes.values(), *boxes.values())))
            what = f"{file.path}: boxes of {name} would have label {labels.get(name, 'none')}"
            if boxes.get(label, name) != name:
                what = f"{file.path}: boxes of label {label} would be {boxes[label]}"
            expected = f"expected {label} for {name}, as in {self.known.name}"
            hint = f"write in the `boxes` of all recipes: names: {_flow(names)}"
            if _are_numbered_by_files(file.recipe.boxes):
                hint = (
                    "give the categories of all files the same ids, or put this set elsewhere, "
                    "with --output"
                )
            raise InputError(what, expected, hint)


def _are_numbered_by_files(keys: BoxKeys | None) -> bool:
    """Whether the files of annotations number the classes of boxes themselves."""
    return keys is not None and keys.format != "" and load_format(keys.format).is_numbered


class _NumberingCheck(Struct, frozen=True):
    """The classes of a set, compared with those that DATA_DIR has."""

    file: RecipeFile
    classes: Classes
    known: KnownNumbering
    grows: bool

    def refuse_difference(self) -> None:
        """Raise InputError for the first difference."""
        known, classes = self.known.numbering, self.classes
        names = known.names
        are_numbers = all(name == str(number) for number, name in names.items())
        is_free = self.grows or self.file.recipe.classes is not None
        may_have_more = is_free or (classes.is_numbered and are_numbers)
        for name, text, number in zip(classes.names, classes.texts, classes.numbers, strict=True):
            if names.get(number) == name or (text != str(number) and self._text_of(number) == text):
                continue
            is_new = name not in known.labels and number not in names
            if not (is_new and may_have_more):
                self._refuse(name, number)
        if classes.first_label != known.first_label:
            what = f"{self.file.path}: the first label is {classes.first_label}"
            expected = f"expected {known.first_label}, as in {self.known.name}"
            raise InputError(
                what,
                expected,
                f"write in the recipes of all sets: first_label: {known.first_label}",
            )

    def _text_of(self, number: int) -> str | None:
        """The words of a class that DATA_DIR has."""
        name = self.known.numbering.names.get(number)
        return None if name is None else self.known.numbering.texts.get(name, name)

    def _refuse(self, name: str, number: int) -> None:
        """Raise the error for a class with another number, a number of another class,
        or a class that is not there.
        """
        known, where = self.known.numbering, self.known.name
        has_own_numbers = self.file.recipe.classes is not None or self.classes.is_numbered
        what, expected = (
            f"{name} is no class there",
            f"expected the classes of {where}: {listed(known.labels)}",
        )
        if name in known.labels:
            what, expected = (
                f"class {name} would have label {number}",
                f"expected {known.labels[name]}, as in {where}",
            )
        elif has_own_numbers and number in known.names:
            what, expected = (
                f"label {number} would be {name}",
                f"expected {known.names[number]}, as in {where}",
            )
        raise InputError(f"{self.file.path}: {what}", expected, self._hint())

    def _hint(self) -> str:
        """The key that declares both numberings, or another folder."""
        known = self.known.numbering
        names = sorted(known.labels, key=known.labels.__getitem__)
        names += [name for name in self.classes.names if name not in known.labels]
        first = f" and first_label: {known.first_label}" if known.first_label else ""
        way = f"write in the recipe classes: {_flow(names)}{first}"
        return f"{way}; or put a set of other classes elsewhere, with --output"


def _flow(names: Sequence[str]) -> str:
    """Names as a list of YAML; many go into a file."""
    if len(names) > _MOST_IN_A_HINT:
        return f"FILE, with a name a line: {', '.join(names[:3])} and so on"
    return f"[{', '.join(map(_quoted, names))}]"


_PLAIN = re.compile(r"[^\W\d_][\w -]*[\w]|[^\W\d_]|0|[1-9]\d*")


def _quoted(name: str) -> str:
    """A name as YAML reads it back."""
    is_plain = _PLAIN.fullmatch(name) is not None and name.lower() not in YAML_WORDS
    return name if is_plain else json.dumps(name, ensure_ascii=False)


def _renumbered(classes: Classes, known: Numbering) -> Classes:
    """The classes with the numbers and the words that they have;
    those that are not there keep theirs.
    """
    pairs = list(zip(classes.names, classes.texts, classes.numbers, strict=True))
    numbers = tuple(known.labels.get(name, number) for name, _, number in pairs)
    texts = tuple(known.texts.get(name, text) for name, text, _ in pairs)
    return replace(classes, texts=texts, numbers=numbers, first_label=known.first_label)


def _with_others(classes: Classes, known: Numbering) -> Classes:
    """The classes, then those without a file that are known."""
    names, texts, numbers = list(classes.names), list(classes.texts), list(classes.numbers)
    for name, number in sorted(known.labels.items(), key=lambda pair: pair[1]):
        if number not in classes.numbers:
            names.append(name)
            texts.append(known.texts.get(name, name))
            numbers.append(number)
    return replace(classes, names=tuple(names), texts=tuple(texts), numbers=tuple(numbers))
