"""A recipe's text -> its keys, and the line that each stands in. Every fault is one error that
names the line.

YAML is composed to nodes, not loaded: nodes know their lines and construct nothing. Scalars are
read as YAML 1.2's core schema has them (``1e-3`` is a number, ``no`` is a text). Tags, anchors and
keys that stand twice are refused.
"""

from __future__ import annotations

import contextlib
import functools
import re
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.datasets.expectations import expected_words
from imagenet_prep.errors import UsageError
from imagenet_prep.recipes.faulty_parts import steps_to_fault
from imagenet_prep.storage.files import read_plain
from imagenet_prep.text import SIZES, beginning, parse_size

if TYPE_CHECKING:
    import yaml

    from imagenet_prep.recipes.schema import Recipe

Key = tuple[str | int, ...]
"""Where something stands in a recipe: the keys and list positions that lead to it."""

_MAX_BYTES = 1 << 20
_MAX_DEPTH = 64
_INT = re.compile(r"[-+]?[0-9]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_VALUES = {"null": None, "true": True, "false": False}
_WORDS: dict[str, bool | None] = {"": None, "~": None}
_WORDS |= {
    form(text): value
    for text, value in _VALUES.items()
    for form in (str.lower, str.title, str.upper)
}


class RecipeFile(Struct, frozen=True):
    """A recipe that was read: where from, what it says, the line of every key, and all as it was
    written.

    Of one of ILSVRC2012 itself ``recipe`` has the source alone: its settings are those of another
    table. ``sealed`` is the file of the rows of a Python source, once it is known.
    """

    path: Path
    recipe: Recipe
    lines: Mapping[Key, int]
    value: Mapping[str, Any] = {}
    sealed: Path | None = None

    def place(self, key: Key) -> str:
        """File and line of a key, or of what holds it, for messages."""
        line = next(
            self.lines[key[:length]]
            for length in range(len(key), -1, -1)
            if key[:length] in self.lines
        )
        return f"{self.path}, line {line}"

    def fault(self, key: Key, problem: str, expected: str = "", hint: str = "") -> UsageError:
        """The error for a key that can't be as it is: file, line and key, then what is wrong."""
        where = f"{self.place(key)}: {_shown(key)}" if key else self.place(key)
        return UsageError(f"{where}: {problem}", expected, hint)

    def convert(self, value: object, kind: Any, key: Key) -> Any:
        """A part of the recipe as the type it must be.

        Raises:
            UsageError: it is another one.
        """
        try:
            return msgspec.convert(value, kind)
        except msgspec.ValidationError as error:
            problem, _, place = str(error).partition(" - at `")
            steps = steps_to_fault(place.rstrip("`"), value, kind)
            fault_key = (*key, *steps)
            missing = re.search(r"missing required field `(.*)`", problem)
            if missing:
                name = missing[1]
                example = _example_of(fault_key) or f"{name}: ..."
                problem = f"it has no key `{name}`"
                raise self.fault(fault_key, problem, f"expected {example}") from error
            unknown = re.search(r"unknown field `(.*)`", problem)
            if unknown:
                unknown_key = (*fault_key, unknown[1])
                expected = _expected_key(kind, unknown_key)
                raise self.fault(unknown_key, "no such key", expected) from error
            part: Any = value
            for step in steps:
                part = part[step]
            expected = expected_words(problem, _type_at(kind, fault_key))
            if expected == "expected a mapping":
                example = _example_of(fault_key)
                expected += f", for example {example}" if example else ""
            raise self.fault(fault_key, f"{value_in_words(part)} is not valid", expected) from error


def _example_of(key: Key) -> str:
    """An example of a key of the recipe that has keys itself; "" for another one."""
    return _EXAMPLES.get(key[0], "") if len(key) == 1 else ""


def _expected_key(kind: Any, key: Key) -> str:
    """The key that is meant by an unknown one, or all that there are."""
    import difflib

    names = _part_of(kind, key).__struct_encode_fields__
    similar = difflib.get_close_matches(str(key[-1]), names, 1)
    return f"expected {similar[0]}, perhaps" if similar else f"expected one of {', '.join(names)}"


def read_recipe(path: Path, text: str | None = None) -> RecipeFile:
    """Read a recipe, or its ``text``, and check its keys and types; what they mean together is
    checked by ``rules``.

    Raises:
        UsageError: it is no YAML, or a key or a type is wrong; the error names file, line and key.
        InputError: it can't be read.
    """
    from imagenet_prep.recipes.schema import Labels, Recipe

    document, lines = _read(path, _read_text(path) if text is None else text)
    if not isinstance(document, dict):
        raise UsageError(
            f"{path} is not a recipe",
            f"expected keys, such as source: {{folders: photos}}, got {value_in_words(document)}",
        )
    # an empty key says nothing
    values = {name: value for name, value in document.items() if value is not None}
    if isinstance(values.get("compression"), str):
        values["compression"] = values["compression"].lower()  # TensorFlow writes GZIP
    file = RecipeFile(path, Recipe(), lines, values)
    _parse_sizes(file, values)
    source = values.get("source")
    if isinstance(source, dict) and "imagenet" in source:
        values = {"source": source}
    recipe: Recipe = file.convert(values, Recipe, ())
    if isinstance(recipe.labels, str):
        recipe = replace(recipe, labels=Labels(file=recipe.labels))
    return replace(file, recipe=recipe)


def _parse_sizes(file: RecipeFile, values: dict[str, Any]) -> None:
    """Turn the settings that are sizes, such as 100MB, into bytes.

    Raises:
        UsageError: one of them is no size.
    """
    from imagenet_prep.datasets.declarations import settings_of
    from imagenet_prep.recipes.schema import Recipe

    for setting in settings_of(Recipe):
        name = setting.name
        if not setting.is_size or name not in values:
            continue
        size = parse_size(values[name])
        if size is None:
            raise file.fault((name,), f"{value_in_words(values[name])} is not valid", SIZES)
        values[name] = size


def _read_text(path: Path) -> str:
    content = read_plain(path, _MAX_BYTES)
    try:
        return content.decode().removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        problem = f"{path}, line {line}: not UTF-8"
        raise UsageError(problem, "expected a text in UTF-8", "save the file as UTF-8") from error


def read_texts(path: Path, text: str) -> Any:
    """The value of a YAML document whose scalars are all texts, as they are written.

    Raises:
        UsageError: it is no YAML, or is more than plain keys and values.
    """
    return _read(path, text, typed=False)[0]


# YAML -> values -----------------------------------------------------------------------------------


def _read(path: Path, text: str, *, typed: bool = True) -> tuple[Any, dict[Key, int]]:
    """The value of a YAML document, and the line of every part of it.

    LibYAML, which PyYAML has where it was built with it, takes a tenth of the time. It words faults
    in another way and refuses a little more: what it refuses, PyYAML's own parser reads again.
    What it reads in another way is left to that parser from the start.

    Raises:
        UsageError: it is no YAML, or is more than plain keys and values.
    """
    import yaml

    if hasattr(yaml, "CSafeLoader") and not _READ_IN_ANOTHER_WAY.search(text):
        with contextlib.suppress(UsageError):
            return _Nodes(path, typed=typed).read(text, _libyaml())
    return _Nodes(path, typed=typed).read(text, yaml.SafeLoader)


_READ_IN_ANOTHER_WAY = re.compile(r"[\t\r\x85\u2028\u2029\ufeff?]|[|>][-+0-9]*#|^%", re.MULTILINE)


@functools.cache
def _libyaml() -> Any:
    """A loader whose events are those of LibYAML, and whose nodes PyYAML makes of them."""
    import yaml

    class LibYaml(yaml.composer.Composer, yaml.CSafeLoader):
        def __init__(self, text: str) -> None:
            yaml.CSafeLoader.__init__(self, text)
            yaml.composer.Composer.__init__(self)

        def resolve(self, *_: object) -> str:
            """No type: scalars are read later."""
            return ""

    return LibYaml


class _Nodes:
    """Turns the nodes of a YAML document into plain values, and keeps their lines."""

    def __init__(self, path: Path, *, typed: bool = True) -> None:
        self._path = path
        self._typed = typed
        self._lines: dict[Key, int] = {(): 1}
        self._depth = 0

    def read(self, text: str, loader: Any) -> tuple[Any, dict[Key, int]]:
        """The document's value, and the line of every part of it."""
        import yaml

        check = self._check

        class PlainLoader(loader):  # type: ignore[misc]
            """Makes no node of what is not plain."""

            def get_event(self) -> yaml.Event:
                event: yaml.Event = super().get_event()
                check(event)
                return event

        try:
            node = yaml.compose(text, PlainLoader)
            return (self._value(node, ()) if node else {}), self._lines
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            last_line = max(0, len(text.rstrip().splitlines()) - 1)
            line = min(getattr(mark, "line", 0), last_line)
            if isinstance(error, yaml.composer.ComposerError):
                problem, expected = (
                    "a second YAML document starts here",
                    "expected one document in a file",
                )
                raise self._refusal(line, problem, expected) from error
            problem = error.problem or ""
            if error.context_mark and problem == "found unexpected end of stream":
                line = error.context_mark.line
                problem = "no quotation mark ends the text that starts here"
            hint = _yaml_hint(error.context or "", problem)
            detail = _plain_problem(problem)
            raise self._refusal(line, "not valid YAML", detail, hint) from error
        except yaml.reader.ReaderError as error:
            line = text.count("\n", 0, error.position)
            before = text[: error.position].rpartition("\n")[2].split()
            place = f"after {before[-1]!r}" if before else "at its start"
            problem = f"the line has the invisible character U+{error.character:04X} {place}"
            raise self._refusal(line, "not valid YAML", problem, _INVISIBLE) from error
        except (OverflowError, ValueError) as error:  # PyYAML takes any number for a character
            raise UsageError(
                f"{self._path} is not valid YAML",
                r"a \U in double quotes is no character: expected at most \U0010FFFF",
                _SINGLE_QUOTES,
            ) from error

    def _check(self, event: yaml.Event) -> None:
        """Look at an event before a node is made of it:
        no anchors, no tags, no nesting without end.
        """
        import yaml

        if isinstance(event, yaml.CollectionStartEvent):
            self._depth += 1
        elif isinstance(event, yaml.CollectionEndEvent):
            self._depth -= 1
        line = getattr(event.start_mark, "line", 0)
        if self._depth > _MAX_DEPTH:
            raise self._refusal(
                line, "values are nested too deep", f"expected at most {_MAX_DEPTH} levels"
            )
        mark = _mark_of(event)
        if mark:
            raise self._refusal(line, f"{mark} can't be used", _PLAIN, _QUOTES)

    def _value(self, node: yaml.Node, key: Key) -> Any:
        import yaml

        self._lines.setdefault(key, node.start_mark.line + 1)
        if isinstance(node, yaml.ScalarNode):
            text = self._text(node, "a text")
            is_quoted = node.style in ("'", '"', "|", ">")
            return text if is_quoted or not self._typed else _scalar(text)
        if isinstance(node, yaml.SequenceNode):
            return [self._value(child, (*key, number)) for number, child in enumerate(node.value)]
        assert isinstance(node, yaml.MappingNode)
        values: dict[str, Any] = {}
        for name_node, child in node.value:
            name, line = self._text(name_node, "a key"), name_node.start_mark.line + 1
            place = (*key, name)
            if name in values:
                problem = f"{_shown(place)} is in line {self._lines[place]} already"
                raise self._refusal(line - 1, problem, "expected every key once")
            self._lines[place] = line
            values[name] = self._value(child, place)
        return values

    def _text(self, node: yaml.Node, subject: str) -> str:
        """The text of a scalar; YAML can say what UTF-8 can't write, and what no path can hold."""
        if not isinstance(node.value, str):
            raise self._refusal(
                node.start_mark.line,
                f"{subject} is no text",
                "expected a name, such as source, before the colon",
            )
        text = _join_surrogates(node.value)
        if text is None:
            raise self._refusal(
                node.start_mark.line,
                "a text holds half of a surrogate pair",
                r"expected both halves, such as \ud83d\ude00, or the character itself",
            )
        if "\0" in text:
            raise self._refusal(
                node.start_mark.line,
                f"{subject} has a null character",
                r"in double quotes, YAML reads \0 as one",
                _SINGLE_QUOTES,
            )
        return text

    def _refusal(self, line: int, problem: str, detail: str, hint: str = "") -> UsageError:
        return UsageError(f"{self._path}, line {line + 1}: {problem}", detail, hint)


def _join_surrogates(text: str) -> str | None:
    """A text with one character for each surrogate pair, as JSON writes it; None if half of one is
    alone.
    """
    try:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le")
    except UnicodeDecodeError:
        return None


_INVISIBLE = "write the character that belongs there in its place, such as a hyphen, or remove it"
_SINGLE_QUOTES = r"put a text that holds \ in single quotes: 'a\b'"
_PLAIN = "expected plain keys and values"
_QUOTES = "put a text that starts with *, & or ! in quotes: '*.jpg'"


def _mark_of(event: yaml.Event) -> str:
    """The alias, anchor or tag of an event, for messages; "" if it has none."""
    import yaml

    anchor, tag = getattr(event, "anchor", None), getattr(event, "tag", None)
    if isinstance(event, yaml.AliasEvent):
        return f"the alias *{shortened(anchor)}"
    if anchor:
        return f"the anchor &{shortened(anchor)}"
    return f"the tag {shortened(tag)}" if tag else ""


_EXAMPLES: dict[str | int, str] = {
    "source": "source: {folders: FOLDER}",
    "labels": "labels: {file: FILE}",
    "boxes": "boxes: {coco: FILE}",
    "mask": "mask: {folder: FOLDER}",
    "splits": "splits: {train: 0.9, test: 0.1}",
    "expected": "expected: {images: 1000}",
}
"""A value of each key that has keys itself, for messages."""

_ANOTHER_LINE = ("expected <block end>", "expected '<document start>'")
"""The start of PyYAML's problem with a line that is no part of what was before it."""


def _plain_problem(problem: str) -> str:
    """A problem of PyYAML's parser without its names for the parts of a document."""
    if problem.startswith(_ANOTHER_LINE):
        return "the line has another indentation than those before it, or more text than a value"
    problem = problem.replace("the node content", "a value")
    return problem.replace("'<stream end>'", "the end of the file").replace("'<scalar>'", "a text")


def _yaml_hint(context: str, problem: str) -> str:
    """The remedy of a fault of YAML that its reader does not explain; "" for other faults."""
    if context.endswith((" alias", " anchor", " tag")):
        return _QUOTES
    if "mapping values" in problem:
        return (
            "check the indentation and the space after ':', in the line before it too; "
            "a text that holds ': ' needs quotes"
        )
    if "escape" in problem:
        return _SINGLE_QUOTES
    if context == "while scanning a block scalar":
        return "put a text that starts with | or > in quotes"
    if "'\\t'" in problem:
        return "indent with spaces, not with tabs"
    if "cannot start any token" in problem:
        return "put a text that starts with this character in quotes"
    if problem.startswith("expected"):
        return "check the brackets, quotes and indentation of this line and of those before it"
    return ""


def _scalar(text: str) -> Any:
    """The value of a plain scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if _INT.fullmatch(text) and len(text) < 40:
        return int(text)
    return float(text) if _FLOAT.fullmatch(text) else text


# values -> types ----------------------------------------------------------------------------------


def value_in_words(value: object) -> str:
    """A value of a recipe, for messages."""
    if isinstance(value, (dict, list)):
        return "a mapping" if isinstance(value, dict) else "a list"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return repr(shortened(value))
    return "an empty value" if value is None else shortened(value)


def _part_of(kind: Any, key: Key) -> Any:
    """The type of the mapping that a key of it stands in."""
    if len(key) > 1:
        for alternative in _alternatives(kind, str(key[0])):
            if hasattr(alternative, "__struct_fields__"):
                return alternative
    return kind


def _type_at(kind: Any, key: Key) -> Any:
    """The type of a key's value; None for a value within a list, or a mapping of free keys."""
    if not hasattr(kind, "__struct_fields__"):
        return kind
    part = _part_of(kind, key)
    depth = 1 if part is kind else 2
    if key[0] in kind.__struct_fields__ and len(key) > depth:
        return None
    return typing.get_type_hints(part).get(str(key[-1]))


def _alternatives(kind: Any, name: str) -> list[Any]:
    """The types that a key can have."""
    hint = typing.get_type_hints(kind).get(name)
    return [hint, *typing.get_args(hint)]


def shortened(text: object) -> str:
    """A recipe's value as an error shows it: 60 characters."""
    return beginning(str(text), 60)


def _shown(key: Key) -> str:
    """A key, for messages: list positions count from 1."""
    names = ".".join(shortened(name) for name in key if isinstance(name, str))
    positions = [f", entry {number + 1}" for number in key if isinstance(number, int)]
    return names + "".join(positions)
