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
from imagenet_prep.recipes.annotating import FIRST, Annotations
from imagenet_prep.recipes.classes import Classes, refuse_below_first
from imagenet_prep.recipes.formats import load_format
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_lines import YAML_WORDS
from imagenet_prep.recipes.source_rules import may_have_boxes
from imagenet_prep.state.manifest import RECIPE
from imagenet_prep.state.numbering import Numbering
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.text import listed, one_of

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
    def find(cls, records: SetRecords) -> KnownNumbering | None:
        """The numbering of one set, from its manifest or its plan;
        None if it has no classes, or is not a recipe's.
        """
        record = records.usable_manifest or records.plan
        if record is None or record.dataset.kind != RECIPE:
            return None
        boxes = {int(label): str(name) for label, name in record.settings.get("boxes", {}).items()}
        if not record.dataset.classes and not boxes:
            return None
        name = records.layout.set_name or ", ".join(record.dataset.splits)
        return cls(name, Numbering.read(record.dataset, record.settings), boxes)

    @classmethod
    def join(cls, numberings: Sequence[KnownNumbering]) -> KnownNumbering | None:
        """The numbering of several sets, which agree; None if there are none."""
        if not numberings:
            return None
        with_classes = [named.numbering for named in numberings if named.numbering.labels]
        labels: dict[str, int] = {}
        texts: dict[str, str] = {}
        boxes: dict[int, str] = {}
        for named in reversed(numberings):
            labels |= named.numbering.labels
            texts |= named.numbering.texts
            boxes |= named.boxes
        first_label = with_classes[0].first_label if with_classes else 0
        names = listed(named.name for named in numberings)
        return cls(names, Numbering(first_label, labels, texts), boxes)


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
    def find(cls, records: SetRecords | None, *, grows: bool, overwrite: bool) -> SharedNumbering:
        """The numberings in a folder; ``overwrite``: the set itself is made again."""
        if records is None:
            return cls()
        own = None if overwrite else KnownNumbering.find(records)
        candidates = [own] if grows else []
        candidates += map(KnownNumbering.find, records.siblings)
        binding = [named for named in candidates if named is not None]
        return cls(KnownNumbering.join(binding), own, grows)

    @property
    def first_label(self) -> int | None:
        """The label of the first class; None if no set has classes."""
        for named in (self.own, self.known):
            if named is not None and named.numbering.labels:
                return named.numbering.first_label
        return None

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
            refuse_below_first(file, classes, is_shared=True)
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
        keys = file.recipe.boxes
        is_numbered = annotations.is_numbered
        if keys is not None and (keys.names is not None or keys.first_label is not None):
            is_numbered = True
        shared_names = self._box_names
        if not is_numbered and set(annotations.classes.values()) <= set(shared_names.values()):
            annotations.renumber(shared_names)
        self._refuse_other_boxes(file, annotations.classes)

    @property
    def _box_names(self) -> Mapping[int, str]:
        """The names of boxes by label, in its own numbering or in that of the other sets."""
        for named in (self.own, self.known):
            if named is not None and named.boxes:
                return named.boxes
        return {}

    def _refuse_other_boxes(self, file: RecipeFile, boxes: Mapping[int, str]) -> None:
        """Raise InputError if a label of boxes, or a class of boxes,
        means something else in another set.
        """
        if self.known is None or not boxes:
            return
        labels = {name: label for label, name in boxes.items()}
        for label, name in self.known.boxes.items():
            new_name = boxes.get(label, name)
            new_label = labels.get(name, label)
            if new_name == name and new_label == label:
                continue
            problem = f"{file.path}: boxes of {name} would have label {labels.get(name, 'none')}"
            if new_name != name:
                problem = f"{file.path}: boxes of label {label} would be {new_name}"
            hint = _hint_on_boxes(self.known.boxes, boxes)
            if _are_numbered_by_files(file):
                hint = (
                    "give the classes of boxes the same numbers in all files, or put this set "
                    "elsewhere, with --output"
                )
            expected = f"expected {label} for {name}, as in {self.known.name}"
            raise InputError(problem, expected, hint)


def _hint_on_boxes(known: Mapping[int, str], boxes: Mapping[int, str]) -> str:
    """The keys that number the known classes of boxes, and then the others; another folder where no
    keys can.
    """
    first_label = min(known)
    if sorted(known) != [*range(first_label, first_label + len(known))]:
        return "put this set elsewhere, with --output"
    known_names = [known[label] for label in sorted(known)]
    names = list(dict.fromkeys((*known_names, *boxes.values())))
    hint = f"write in the `boxes` of all recipes: names: {_flow(names)}"
    return hint if first_label == FIRST else f"{hint} and first_label: {first_label}"


def _are_numbered_by_files(file: RecipeFile) -> bool:
    """Whether files number the classes of boxes themselves, and no recipe can:
    those of annotations, or those of the images.
    """
    keys = file.recipe.boxes
    if keys is None or not keys.format:
        return may_have_boxes(file)
    return load_format(keys.format).is_numbered


class _NumberingCheck(Struct, frozen=True):
    """The classes of a set, compared with those that DATA_DIR has."""

    file: RecipeFile
    classes: Classes
    known: KnownNumbering
    grows: bool

    def refuse_difference(self) -> None:
        """Raise InputError for the first difference."""
        classes = self.classes
        numbering = self.known.numbering
        for name, text, number in zip(classes.names, classes.texts, classes.numbers, strict=True):
            has_same_name = numbering.names.get(number) == name
            if has_same_name or self._has_same_words(number, text):
                continue
            is_new = name not in numbering.labels and number not in numbering.names
            if not (is_new and self._may_have_more()):
                self._refuse(name, number)
        first_label = numbering.first_label
        if classes.first_label != first_label:
            problem = f"{self.file.path}: the first label is {classes.first_label}"
            expected = f"expected {first_label}, as in {self.known.name}"
            hint = f"write in the recipes of all sets: first_label: {first_label}"
            raise InputError(problem, expected, hint)

    def _may_have_more(self) -> bool:
        """Whether the set may have classes that DATA_DIR has not."""
        if self.grows or self.file.recipe.classes is not None:
            return True
        names = self.known.numbering.names
        are_numbers = all(name == str(number) for number, name in names.items())
        return self.classes.is_numbered and are_numbers

    def _has_same_words(self, number: int, text: str) -> bool:
        """Whether DATA_DIR has these words, which are no number, for the class of this number."""
        if text == str(number):
            return False
        return self._text_of(number) == text

    def _text_of(self, number: int) -> str | None:
        """The words of a class that DATA_DIR has."""
        numbering = self.known.numbering
        name = numbering.names.get(number)
        if name is None:
            return None
        return numbering.texts.get(name, name)

    def _refuse(self, name: str, number: int) -> None:
        """Raise the error for a class with another number, a number of another class,
        or a class that is not there.
        """
        numbering = self.known.numbering
        set_names = f"the shards of {self.known.name}"
        has_own_numbers = self.file.recipe.classes is not None or self.classes.is_numbered
        if name in numbering.labels:
            problem = f"class {name} would have label {number}"
            expected = f"expected {numbering.labels[name]}, as in {set_names}"
        elif has_own_numbers and number in numbering.names:
            problem = f"label {number} would be {name}"
            expected = f"expected {numbering.names[number]}, as in {set_names}"
        else:
            problem = f"{name} is a new class, which {set_names} don't have"
            expected = f"expected {one_of(numbering.labels, 3)}"
        raise InputError(f"{self.file.path}: {problem}", expected, self._hint())

    def _hint(self) -> str:
        """The key that declares both numberings, or another folder."""
        numbering = self.known.numbering
        names = sorted(numbering.labels, key=numbering.labels.__getitem__)
        names += [name for name in self.classes.names if name not in numbering.labels]
        elsewhere = "put a set of other classes elsewhere, with --output"
        last_label = numbering.first_label + len(numbering.labels)
        counted = range(numbering.first_label, last_label)
        if sorted(numbering.labels.values()) != [*counted]:
            return elsewhere  # no list of classes gives these numbers
        declaration = f"write in the recipe classes: {_flow(names)}"
        if numbering.first_label or self.classes.first_label:
            declaration += f" and first_label: {numbering.first_label}"
        return f"{declaration}; or {elsewhere}"


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


def _renumbered(classes: Classes, numbering: Numbering) -> Classes:
    """The classes with the numbers and the words that they have;
    those that are not there keep theirs.
    """
    pairs = list(zip(classes.names, classes.texts, classes.numbers, strict=True))
    numbers = tuple(numbering.labels.get(name, number) for name, _, number in pairs)
    texts = tuple(numbering.texts.get(name, text) for name, text, _ in pairs)
    return replace(classes, texts=texts, numbers=numbers, first_label=numbering.first_label)


def _with_others(classes: Classes, numbering: Numbering) -> Classes:
    """The classes, then those without a file that are known."""
    names = list(classes.names)
    texts = list(classes.texts)
    numbers = list(classes.numbers)
    by_number = sorted(numbering.labels.items(), key=lambda pair: pair[1])
    for name, number in by_number:
        if number not in classes.numbers:
            names.append(name)
            texts.append(numbering.texts.get(name, name))
            numbers.append(number)
    return replace(classes, names=tuple(names), texts=tuple(texts), numbers=tuple(numbers))
