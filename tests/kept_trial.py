"""Trial of a kept folder: init, then convert, then every record is compared with what a person
reads from the folder.

After a refusal the commands that its message names are run, and those of the next refusal, as a
user would.
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import shlex
import shutil
import subprocess
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from unittest import mock

import click
import numpy as np
from kept_folders import ANY, Box, Builder, Painter, Truth, number_of_pixels
from made_sets import ENGINE
from PIL import Image

import imagenet_prep
from imagenet_prep import Layout, convert, engines
from imagenet_prep.cli import cli
from imagenet_prep.errors import PrepError
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.state.manifest import features_by_column, load_manifest

RIGHT, ASKED, REFUSED, WRONG = "right", "asked", "refused", "wrong"
"""Right in two commands; right by a command that a refusal names;
refused, and no named command is right; wrong.
"""

MOST_STEPS = 4
"""So many commands in a row are followed."""

_TOOLS = ("unzip", "gzip", "mv", "mkdir", "tar", "cp", "cat")
_ENDS = re.compile(r"\s\(|; |\n|, or | or:|$")


class Mismatch(Exception):  # noqa: N818 - a finding, no error of the program
    """The first thing in which records and truth differ."""


def try_folder(builder: Builder, place: Path) -> tuple[str, str]:
    """Build a folder, convert it, compare: RIGHT, ASKED, REFUSED or WRONG, and why."""
    painter = Painter(place / "data")
    truth = builder(painter)
    trial = _Trial(place, painter, truth)
    outcome, said = trial.run(["imagenet-prep", "init", "data"])
    if outcome == RIGHT:
        if truth.must_ask:
            return WRONG, "it was taken without a question"
        return RIGHT, ""
    if outcome == WRONG:
        return WRONG, said
    tried = trial.follow(said, MOST_STEPS)
    return (ASKED, said) if tried == RIGHT else (REFUSED, f"{said}\n-> {tried}")


class _Trial:
    """The commands of one folder, each in a copy of its own."""

    def __init__(self, place: Path, painter: Painter, truth: Truth) -> None:
        self._place, self._painter, self._truth = place, painter, truth
        self._count = 0
        self._outcomes: dict[str, tuple[str, str]] = {}
        """The outcome of each command in the folder as it is."""

    def run(self, words: Sequence[str]) -> tuple[str, str]:
        """Run init, then convert: RIGHT; WRONG and the difference; or REFUSED and the message."""
        self._count += 1
        with _current_folder(self._place):
            before = set(self._place.iterdir())
            try:
                with (
                    contextlib.redirect_stdout(io.StringIO()),
                    contextlib.redirect_stderr(io.StringIO()),
                    _threads(),
                ):
                    cli.main(words[1:], prog_name="imagenet-prep", standalone_mode=False)
                    recipes = list(self._place.glob("*.yaml"))
                    if len(recipes) != 1:
                        return REFUSED, f"{shlex.join(words)} wrote {len(recipes)} recipes"
                    (recipe,) = recipes
                    layout = Layout(self._place / f"shards-{self._count}")
                    with warnings.catch_warnings():
                        warnings.simplefilter("ignore")
                        convert(layout, ENGINE, dataset=RecipeSet.read(recipe))
                    truths = [self._truth, *self._truth.choices]
                    return _first_fitting(layout, self._painter, truths)
            except (PrepError, click.ClickException) as error:
                return REFUSED, str(error)
            except SystemExit as error:
                return REFUSED, f"{shlex.join(words)} ended with {error.code}"
            finally:
                for path in (
                    set(self._place.iterdir()) - before
                ):  # a recipe, and the lists that it names
                    if path.is_file():
                        path.unlink()

    def follow(self, said: str, steps: int) -> str:
        """Run each command that a message names: RIGHT if one is, else what became of them."""
        commands = list(commands_in(said))
        if not commands:
            return "no command is named"
        outcomes = []
        for words in commands:
            if words[0] == "imagenet-prep":
                if words[1] != "init":
                    continue
                line = shlex.join(words)
                self._outcomes[line] = self._outcomes.get(line) or self.run(words)
                outcome, text = self._go_on(self._outcomes[line], said, steps)
            else:
                outcome, text = self._after_tool(words, said, steps)
            if outcome == RIGHT:
                return RIGHT
            outcomes.append(f"{shlex.join(words)}: {text}")
        return "; ".join(outcomes) or "no command of init is named"

    def _go_on(self, tried: tuple[str, str], said: str, steps: int) -> tuple[str, str]:
        """What became of a command, and of those that its refusal names,
        unless ``said`` named them already.
        """
        outcome, text = tried
        if outcome == REFUSED and steps > 1 and text != said:
            outcome = text = self.follow(text, steps - 1)
        return outcome, text

    def _after_tool(self, words: Sequence[str], said: str, steps: int) -> tuple[str, str]:
        """Run a command of the shell in a copy of the folder,
        then init again, and what that names.
        """
        kept = self._place / f"kept-{steps}"
        self._outcomes.clear()
        shutil.copytree(self._place / "data", kept)
        try:
            line = " ".join(words)
            ran = subprocess.run(
                ["sh", "-c", line], cwd=self._place, capture_output=True, text=True, check=False
            )
            if ran.returncode:
                return REFUSED, f"{line}: {ran.stderr}"
            return self._go_on(self.run(["imagenet-prep", "init", "data"]), said, steps)
        finally:
            self._outcomes.clear()
            shutil.rmtree(self._place / "data")
            kept.rename(self._place / "data")


def commands_in(message: str) -> Iterator[list[str]]:
    """The commands that a message names, as words;
    a line of the shell's own tools is one word after its name.
    """
    for match in re.finditer(r"imagenet-prep init ", message):
        rest = message[match.start() :]
        end = _ENDS.search(rest)
        assert end is not None
        with contextlib.suppress(ValueError):
            yield shlex.split(rest[: end.start()].rstrip(".,;:"))
    for match in re.finditer(
        rf"(?:^|: |; or )((?:{'|'.join(_TOOLS)}) [^\n;]+)", message, re.MULTILINE
    ):
        yield [match[1]]


def _threads() -> Any:
    """Threads in place of the processes of the commands:
    to fork for each of some images takes most of the time.
    """
    return mock.patch.object(engines, "make_engine", return_value=ENGINE)


@contextlib.contextmanager
def _current_folder(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


# records and truth --------------------------------------------------------------------------------


def _first_fitting(layout: Layout, painter: Painter, truths: Sequence[Truth]) -> tuple[str, str]:
    """RIGHT if the records are those of one truth,
    else WRONG and how they differ from the first.
    """
    differences = []
    for truth in truths:
        try:
            compare(layout, painter, truth)
        except Mismatch as mismatch:
            differences.append(str(mismatch))
        else:
            return RIGHT, ""
    return WRONG, differences[0]


def compare(layout: Layout, painter: Painter, truth: Truth) -> None:
    """Compare every record of a set with what a person reads; raises Mismatch."""
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    roles = features_by_column(manifest.settings)
    taken: dict[str, str] = {}
    numbers: dict[str, int] = {}
    for split in manifest.dataset.splits:
        records = imagenet_prep.open(layout.output_dir, split)
        for record in records:
            number = number_of_pixels(_pixels(record, roles))
            if number >= len(painter.painted):
                raise Mismatch(f"a record shows no image of the folder ({number})")
            path = painter.painted[number]
            if path in taken:
                raise Mismatch(f"{path} is in two records")
            taken[path] = split
            if path not in truth.classes and path not in truth.left_out:
                raise Mismatch(f"{path} is no example, and became a record")
            if path not in truth.classes and (labels := _labels_of(record, roles)):
                raise Mismatch(f"{path} is no example, and has the labels {labels}")
            if path in truth.classes:
                _compare_classes(path, record, roles, records, truth, numbers)
                _compare_objects(path, record, truth)
    missing = set(truth.classes) - set(taken) - truth.left_out
    if missing:
        raise Mismatch(f"{len(missing)} images became no record, {min(missing)} first")
    _compare_numbers(numbers, truth)
    for path, split in truth.splits.items():
        if path in taken and taken[path] != split:
            raise Mismatch(f"{path} is in {taken[path]}, and should be in {split}")


def _pixels(record: Any, roles: Mapping[str, Sequence[str]]) -> np.ndarray:
    if "encoded" in roles:
        image = Image.open(io.BytesIO(record.features[min(roles["encoded"])]))
        return np.asarray(image if image.mode in ("L", "RGB") else image.convert("RGB"))
    (raw,) = (record.features[name] for name in roles.get("raw", ())[:1])
    shape = [
        record.features[min(roles[name])] for name in ("height", "width", "depth") if name in roles
    ]
    if "shape" in roles:
        several = record.features[min(roles["shape"])]
        shape = several if isinstance(several, list) else [several]
    kind = record.features[min(roles["dtype"])].decode() if "dtype" in roles else "uint8"
    return np.frombuffer(raw, kind).reshape(shape)


def _compare_classes(
    path: str,
    record: Any,
    roles: Mapping[str, Sequence[str]],
    records: Any,
    truth: Truth,
    numbers: dict[str, int],
) -> None:
    """Compare the class of a record; ``numbers`` collects the number of each class,
    counted from 0.
    """
    expected = truth.classes[path]
    features = record.features
    found = _labels_of(record, roles)
    wanted = (
        [] if expected is None else list(expected) if isinstance(expected, tuple) else [expected]
    )
    if len(found) != len(wanted):
        raise Mismatch(f"{path} has the labels {found}, and should have {wanted}")
    names = records.class_names
    words = _first(features, roles, "text", "text.list")
    texts = words if isinstance(words, list) else [words]
    known = [
        {names.get(number, str(number)), *_texts_at(texts, at)} for at, number in enumerate(found)
    ]
    for class_name in wanted:
        at = next((at for at, several in enumerate(known) if class_name in several), None)
        if at is None:
            raise Mismatch(f"{path} is of {sorted(map(str, known))}, and should be of {class_name}")
        number = found[at] - records.first_label
        if numbers.setdefault(class_name, number) != number:
            raise Mismatch(f"{class_name} is {numbers[class_name]} and {number}")


def _labels_of(record: Any, roles: Mapping[str, Sequence[str]]) -> list[Any]:
    """The labels of a record."""
    label = _first(record.features, roles, "label", "label.list")
    return [] if label is None else label if isinstance(label, list) else [label]


def _texts_at(texts: Sequence[Any], at: int) -> list[str]:
    text = texts[at] if at < len(texts) else None
    return [text.decode()] if isinstance(text, bytes) else []


def _first(features: dict[str, Any], roles: Mapping[str, Sequence[str]], *columns: str) -> Any:
    """The value of the first of these columns that the records have."""
    held = [min(roles[column]) for column in columns if column in roles]
    return features.get(held[0]) if held else None


def _compare_numbers(numbers: dict[str, int], truth: Truth) -> None:
    if len(set(numbers.values())) != len(numbers):
        raise Mismatch(f"two classes have one number: {numbers}")
    if min(numbers.values(), default=0) < 0:
        raise Mismatch(f"a class is counted below 0: {numbers}")
    in_order = {
        name: number for number, name in enumerate(sorted(_names_of(truth), key=str.encode))
    }
    for name, number in (truth.numbers or in_order).items():
        if name in numbers and numbers[name] != number:
            raise Mismatch(f"{name} is {numbers[name]}, and should be {number}")


def _names_of(truth: Truth) -> set[str]:
    """Every class of a truth."""
    several = (name if isinstance(name, tuple) else (name,) for name in truth.classes.values())
    return {name for names in several for name in names if name is not None}


def _compare_objects(path: str, record: Any, truth: Truth) -> None:
    """Compare boxes and masks."""
    features = record.features
    if truth.boxes:
        found = _boxes_of(features)
        wanted = truth.boxes.get(path, [])
        if len(found) != len(wanted):
            raise Mismatch(f"{path} has {len(found)} boxes, and should have {len(wanted)}")
        if any(box[0] == ANY for box in wanted):
            found = [(ANY, *box[1:]) for box in found]
        for box, expected in zip(sorted(found), sorted(wanted), strict=True):
            if (
                box[0] != expected[0]
                or max(abs(a - b) for a, b in zip(box[1:], expected[1:], strict=True)) > 0.05
            ):
                raise Mismatch(f"{path} has the box {box}, and should have {expected}")
    if path in truth.masks:
        encoded = features.get("image/segmentation/class/encoded")
        mask = None if encoded is None else np.asarray(Image.open(io.BytesIO(encoded)))
        if (
            mask is None
            or mask.shape != truth.masks[path].shape
            or (mask != truth.masks[path]).any()
        ):
            raise Mismatch(f"{path} has another mask")
    if path in truth.object_masks:
        several = [
            np.asarray(Image.open(io.BytesIO(mask)))
            for mask in features.get("image/object/mask", [])
        ]
        wanted_masks = truth.object_masks[path]
        if len(several) != len(wanted_masks):
            raise Mismatch(
                f"{path} has {len(several)} object masks, and should have {len(wanted_masks)}"
            )
        if any(
            (got > 0).tobytes() != (np.asarray(want) > 0).tobytes()
            for got, want in zip(several, wanted_masks, strict=True)
        ):
            raise Mismatch(f"{path} has other object masks")


def _boxes_of(features: dict[str, Any]) -> list[Box]:
    """The boxes of a record in pixels."""
    width, height = features["image/width"], features["image/height"]
    edges = {
        edge: features.get(f"image/object/bbox/{edge}", [])
        for edge in ("xmin", "ymin", "xmax", "ymax")
    }
    names = features.get("image/object/class/text", [])
    corners = zip(edges["xmin"], edges["ymin"], edges["xmax"], edges["ymax"], strict=True)
    return [
        (name.decode(), xmin * width, ymin * height, xmax * width, ymax * height)
        for name, (xmin, ymin, xmax, ymax) in zip(names, corners, strict=True)
    ]
