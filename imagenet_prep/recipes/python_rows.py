"""Function: a function of the user's, in a module of the current folder -> PythonRows,
each checked as it comes.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import re
import sys
import traceback
from collections.abc import Callable, Generator, Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.recipes.box_policy import CORRECT, fault
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.storage.files import kind_of, read_plain
from imagenet_prep.text import listed

_NAME = re.compile(r"([A-Za-z_]\w*):([A-Za-z_]\w*)", re.ASCII)

IMAGE = "image"
"""The key of an image's bytes."""

_ROW = 'expected a dictionary such as {"file_name": "a.jpg", "label": "cat"}'


class PythonRow(Struct, frozen=True):
    """A row as JSON can hold it, its number from 1, and the bytes of its image;
    None if it names a file.
    """

    number: int
    values: dict[str, Any]
    image: bytes | None = None


class Function(Struct, frozen=True):
    """A function that yields rows.

    Args:
        name: as the recipe has it, ``module:function``.
        path: the file of its module, in the current folder.
        digest: the SHA-256 of that file.
    """

    name: str
    path: Path
    digest: str

    @classmethod
    def find(cls, file: RecipeFile, name: str) -> Function | None:
        """The function that a recipe names, not loaded; None if the current folder has no such
        module.

        Raises:
            UsageError: it is no name of a function.
        """
        match = _NAME.fullmatch(name)
        if match is None:
            expected = "expected module:function, with module.py in the current folder"
            raise file.fault(("source", "python"), f"{name[:60]!r} names no function", expected)
        path = Path.cwd() / f"{match[1]}.py"
        if kind_of(path) != "file":
            return None
        return cls(name, path, hashlib.sha256(read_plain(path)).hexdigest())

    def rows(self) -> Generator[PythonRow, None, None]:
        """Run the function; what it prints goes to the standard error.

        Raises:
            InputError: it fails, yields nothing, or yields what is no row.
        """
        with contextlib.redirect_stdout(sys.stderr), _at_home(), _importable(self.path) as module:
            iterator = self._start(module)
            number = 0
            while True:
                try:
                    row = next(iterator)
                except StopIteration:
                    break
                except (Exception, SystemExit) as error:
                    raise self._failed(error, f" at row {number + 1}") from error
                number += 1
                yield self._check(row, number)
        if not number:
            raise InputError(f"{self.name} yields no row", "expected a row for each image", CORRECT)

    def _start(self, module: ModuleType) -> Iterator[Any]:
        """Load the module, and call the function."""
        name = self.name.partition(":")[2]
        try:
            assert module.__spec__ is not None
            assert module.__spec__.loader is not None
            module.__spec__.loader.exec_module(module)
            function: Callable[[], Any] | None = getattr(module, name, None)
            if callable(function):
                rows = function()
        except (Exception, SystemExit) as error:
            raise self._failed(error, "") from error
        if not callable(function):
            functions = _public_functions(module)
            expected = "expected a function of this name, which yields rows"
            if functions:
                expected = f"its functions: {listed(functions)}"
            raise InputError(
                f"{self.path} has no function {name}",
                expected,
                f"correct python: {self.name} in the recipe, or add the function",
            )
        if isinstance(rows, (dict, str, bytes)) or not hasattr(rows, "__iter__"):
            problem = f"{self.name} returns {_shown(rows)}"
            raise InputError(problem, "expected rows: yield a dictionary for each image", CORRECT)
        try:
            return iter(rows)
        except (Exception, SystemExit) as error:
            raise self._failed(error, "") from error

    def _failed(self, error: BaseException, when: str) -> InputError:
        """The error for an exception of the user's code,
        with the last line of it that the current folder has.
        """
        message = _in_one_line(str(error))[:300]
        problem = f"{self.name} failed{when}: {type(error).__name__}: {message}".rstrip(": ")
        place = str(self.path)
        for frame in traceback.extract_tb(error.__traceback__):
            path = Path(frame.filename)
            if path.is_relative_to(self.path.parent) and not path.is_relative_to(_PACKAGE):
                place = f"{frame.filename}, line {frame.lineno}, in {frame.name}: {frame.line}"
        if isinstance(error, SyntaxError) and Path(error.filename or "").is_file():
            place = f"{error.filename}, line {error.lineno}"
        return InputError(problem, f"in {place}", CORRECT)

    def _check(self, row: Any, number: int) -> PythonRow:
        """A row as JSON can hold it; raises InputError if it is none."""
        place = f"{self.name}, row {number}"
        if not isinstance(row, dict):
            raise InputError(f"{place} is {_shown(row)}", _ROW, CORRECT)
        content = _image_content(row.get(IMAGE), place)
        if content is not None:
            row = {key: value for key, value in row.items() if key != IMAGE}
        try:
            values = _plain(row, place, "")
            _refuse_unwritable(values, place)
        except RecursionError as error:
            raise _too_deep(row, place) from error
        return PythonRow(number, values, content)


def _too_deep(row: dict[Any, Any], place: str) -> InputError:
    """The error for a row with a value that has too many levels of lists and dictionaries."""
    for key, value in row.items():
        try:
            json.dumps(_plain(value, place, key))
        except RecursionError:
            problem = f"{key} is nested too deep, or contains itself"
            expected = "expected a value with few levels of lists and dictionaries"
            hint = f"leave {key} out of the row, or make it a text; then run the same command again"
            return fault(place, problem, expected, hint)
        except (InputError, ValueError):
            continue  # that is another fault
    return fault(place, "a value is nested too deep, or contains itself", "", CORRECT)


def _refuse_unwritable(values: dict[str, Any], place: str) -> None:
    """Raise InputError for a row that JSON in UTF-8 can't hold."""
    try:
        json.dumps(values, ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        problem = f"{_unwritable_text(values)}, which UTF-8 can't store"
        expected = "expected valid Unicode: names of files that are not UTF-8 become such texts"
        raise fault(place, problem, expected) from error
    except ValueError as error:  # Python writes no number of thousands of digits
        raise _too_long(values, place) from error


def _too_long(values: Mapping[str, Any], place: str) -> InputError:
    """The error for a row with a whole number that Python can't write."""
    key = next(key for key, value in values.items() if _is_too_long(value))
    problem = f"{key} holds a whole number of thousands of digits"
    hint = f"make {key} a text or a list of numbers; then run the same command again"
    return fault(place, problem, "expected a number that fits in 64 bits", hint)


def _is_too_long(value: Any) -> bool:
    """Whether a value holds a whole number that Python can't write."""
    try:
        json.dumps(value)
    except ValueError:
        return True
    return False


def _unwritable_text(values: Mapping[str, Any]) -> str:
    """The first key or value that UTF-8 can't store, for a message."""
    for key, value in values.items():
        if not _is_writable(key):
            return f"a key is {ascii(key)[:60]}"
        if not _is_writable(value):
            return f"{key} is {ascii(value)[:60]}"
    return "a text is one"


def _is_writable(value: Any) -> bool:
    """Whether UTF-8 can store a value as JSON."""
    try:
        json.dumps(value, ensure_ascii=False).encode()
    except UnicodeEncodeError:
        return False
    return True


def _public_functions(module: ModuleType) -> list[str]:
    """The names of the functions that a module defines itself."""
    names: list[str] = []
    for name, member in vars(module).items():
        is_own = getattr(member, "__module__", None) == module.__name__
        if callable(member) and is_own and not name.startswith("_"):
            names.append(name)
    return names


def _is_picture(image: Any) -> bool:
    """Whether an array, or an image of Pillow, holds pixels that ``Image.fromarray`` takes as they
    are meant.
    """
    interface = getattr(image, "__array_interface__", None)
    if not isinstance(interface, dict):  # a class has it as an attribute of another kind
        return False
    if interface.get("typestr") != "|u1" or getattr(image, "mode", "RGB") not in _MODES:
        return False
    shape = interface["shape"]
    return len(shape) == 2 or (len(shape) == 3 and shape[2] in (3, 4))


def _image_content(image: Any, place: str) -> bytes | None:
    """The bytes of an image; None if the row names its file, or another column does.

    Raises InputError if it is neither.
    """
    expected = "expected the bytes of an image file"
    if image is None or isinstance(image, (str, Path)):
        return None
    if not isinstance(image, (bytes, bytearray, memoryview)):
        hint = CORRECT
        if _is_picture(image):
            hint = (
                "encode it: stream = io.BytesIO(); Image.fromarray(image).save(stream, 'PNG'); "
                "stream.getvalue()"
            )
        raise fault(place, f"image is {_shown(image)}", expected, hint)
    content = bytes(image)
    if not content:
        raise fault(place, "image is empty", expected)
    return content


_MODES = ("L", "RGB", "RGBA")
"""Modes of Pillow whose arrays say all that the image holds."""

_PACKAGE = Path(__file__).parents[1]


@contextlib.contextmanager
def _at_home() -> Iterator[None]:
    """Go back to the current folder at the end: the user's code may have changed it."""
    home = Path.cwd()
    try:
        yield
    finally:
        os.chdir(home)


@contextlib.contextmanager
def _importable(path: Path) -> Iterator[ModuleType]:
    """The module of a file, not loaded; while it runs, it can import its neighbours."""
    name = path.stem
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    namesake = sys.modules.get(name)
    sys.modules[name] = module
    sys.path.insert(0, str(path.parent))
    try:
        yield module
    finally:
        with contextlib.suppress(ValueError):
            sys.path.remove(str(path.parent))
        del sys.modules[name]
        if namesake is not None:
            sys.modules[name] = namesake


def _shown(value: object) -> str:
    text = _in_one_line(repr(value))
    return f"{text[:60]} ({type(value).__name__})"


def _in_one_line(text: str) -> str:
    """A text whose line breaks are spaces."""
    return " ".join(text.split())


def _plain(value: Any, place: str, key: str) -> Any:
    """A value as JSON can hold it: NumPy's numbers and arrays become Python's,
    paths texts, tuples lists.
    """
    if value is None or isinstance(value, (str, int, float)):
        return value
    if isinstance(value, Path):
        return str(value)
    if hasattr(value, "dtype") and hasattr(value, "tolist"):
        return _plain(value.tolist(), place, key)
    if isinstance(value, (list, tuple)):
        return [_plain(item, place, key) for item in value]
    if isinstance(value, dict):
        return _plain_mapping(value, place, key)
    expected = "expected texts, numbers, lists and dictionaries of them"
    raise fault(place, f"{key} holds {_shown(value)}", expected)


def _plain_mapping(mapping: dict[Any, Any], place: str, key: str) -> dict[str, Any]:
    """A dictionary as JSON can hold it; raises InputError unless its keys are texts."""
    for name in mapping:
        if not isinstance(name, str) or not name:
            expected = "expected keys that are texts, and not empty"
            raise fault(place, f"a key is {_shown(name)}", expected)
    lead = f"{key}." if key else ""
    return {name: _plain(value, place, lead + name) for name, value in mapping.items()}
