"""find_misplaced: a folder -> MisplacedImages: images of ImageNet that are in other folders or have
other names than convert reads, and the command that mends them.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import (
    CommandLine,
    OptionValues,
    Shell,
    command,
    command_line,
    in_sequence,
    quoted,
)
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.repacked import AGAIN, SPLIT_FOLDER, split_of_image
from imagenet_prep.storage.files import names_in, scan
from imagenet_prep.storage.layout import STATE_NAME, Layout
from imagenet_prep.storage.location import AnyPath, local_or_none, local_path

_DEEPEST = 6
_MOST_ENTRIES = 50  # of a folder below the first one
_MOST_SCANNED = 300  # folders


def find_image(folder: Path, split: str) -> Path | None:
    """One image of a split at or below a folder, by its official name with any ending;
    few names are looked at.
    """
    scanned = 0
    pending = [(folder, 0)]
    while pending and scanned < _MOST_SCANNED:
        current, depth = pending.pop()
        scanned += 1
        files, folders = _entries(current, None if depth == 0 else _MOST_ENTRIES)
        for name in files:
            if split_of_image(name) == split:
                return current / name
        if depth < _DEEPEST:
            pending += [(current / name, depth + 1) for name in reversed(folders)]
    return None


def _entries(folder: Path, limit: int | None) -> tuple[list[str], list[str]]:
    """The names of files and of folders in a folder, of its first entries;
    hidden ones and our own are left out.
    """
    files: list[str] = []
    folders: list[str] = []
    with suppress(OSError), scan(folder) as entries:
        for entry in itertools.islice(entries, limit):
            if entry.name.startswith(".") or entry.name == STATE_NAME:
                continue
            if entry.is_dir():
                folders.append(entry.name)
            else:
                files.append(entry.name)
    return sorted(files), sorted(folders)


class MisplacedImages(Struct, frozen=True):
    """Images that are not where, or not as, they are read.

    Args:
        finding: where or as what they are.
        expected: how the images are read.
        mend: the command that makes them readable.
        folder: where they are, for a recipe of their own.
        raw: the raw folder to name, in place of that command.
    """

    finding: str
    expected: str
    mend: str
    folder: AnyPath
    raw: AnyPath | None = None

    @property
    def error(self) -> InputError:
        """The error that says so."""
        steps = Hint("move or rename the images: ", self.mend, f"    {AGAIN}")
        if self.raw is not None:
            steps = Hint(f"run the same command with --raw {quoted(str(self.raw))}")
        init = command("init", self.folder)
        hint = Hint(steps, "; for other images than ILSVRC2012's: ", init)
        return InputError(self.finding, self.expected, hint)


def find_misplaced(
    layout: Layout,
    split: str,
    places: Sequence[str],
    folder: AnyPath | None = None,
    *,
    keeps: bool = False,
) -> MisplacedImages | None:
    """Images of a split that have other names, or are in other folders, than are read; None if
    there are none.

    They are below the raw folder, where the ``places`` of class folders are; or below ``folder``,
    one of these. ``keeps``: the raw folder has the other split, so another raw folder would lack
    it.
    """
    local = local_or_none(folder or layout.raw_dir)
    image = find_image(local, split) if local else None
    if local is None or image is None:
        return None
    class_folder = _class_folder(image, local)
    if class_folder is not None:
        root = class_folder.parent
        misplaced = _wrong_names_in_class(image, class_folder) or _wrong_ending(image, root)
    else:
        root = image.parent
        misplaced = _wrong_ending(image, root)
        if misplaced is None and split == facts.TRAIN:
            misplaced = _without_class_folders(image)
    return misplaced or _wrong_place(layout, root, split, places, keeps)


def _class_folder(image: Path, top: Path) -> Path | None:
    """The class folder of an image, at or below a folder; None if it is in none."""
    for folder in image.parents:
        if folder.name.lower() in facts.labels():
            return folder if folder.is_relative_to(top) else None
    return None


def _wrong_names_in_class(image: Path, class_folder: Path) -> MisplacedImages | None:
    """Images too deep in their class folders, and class folders in upper case."""
    root = class_folder.parent
    if image.parent != class_folder:
        loop = _in_each("-mindepth 2 -maxdepth 2 -type d", root, 'mv -n -- "$each"/* "${each%/*}"')
        shown = image.relative_to(root)
        finding = f"{root} has images in folders within class folders: {shown}"
        return MisplacedImages(finding, f"expected {class_folder.name}/{image.name}", loop, root)
    if class_folder.name not in facts.labels():
        loop = _in_each(
            "-mindepth 1 -maxdepth 1 -name 'N????????'",
            root,
            'mv -n -- "$each" "${each%/*}/n${each##*/N}"',
        )
        finding = f"{root} has class folders in upper case: {class_folder.name}"
        return MisplacedImages(finding, f"expected {class_folder.name.lower()}", loop, root)
    return None


def _wrong_ending(image: Path, root: Path) -> MisplacedImages | None:
    """Images with another ending than .JPEG."""
    if image.suffix == ".JPEG":
        return None
    pattern = quoted(f"*{image.suffix}")
    loop = _in_each(f"-type f -name {pattern}", root, 'mv -n -- "$each" "${each%.*}.JPEG"')
    shown = image.relative_to(root)
    finding = f"{root} has images whose names end in {image.suffix}: {shown}"
    expected = f"expected {image.stem}.JPEG: the records hold the published names"
    return MisplacedImages(finding, expected, loop, root)


def _without_class_folders(image: Path) -> MisplacedImages:
    """Train images that are all in one folder."""
    root = image.parent
    names = 'name="${each##*/}"; wnid="${each%/*}/${name%%_*}"'
    body = names + '; mkdir -p -- "$wnid" && mv -n -- "$each" "$wnid"'
    loop = _in_each("-maxdepth 1 -type f -name 'n????????_*'", root, body)
    finding = f"{root} has images outside class folders: {image.name}"
    return MisplacedImages(
        finding, f"expected {image.name.partition('_')[0]}/{image.name}", loop, root
    )


def _in_each(test: str, folder: Path, body: str) -> CommandLine:
    """A command for a POSIX shell that runs ``body`` for ``each`` entry below a folder that
    passes a test of find.
    """
    loop = Shell(f"{test} -exec sh -c 'for each; do {body}; done' sh {{}} +")
    return command_line(["find", str(folder), loop])


def _wrong_place(
    layout: Layout, root: Path, split: str, places: Sequence[str], keeps: bool
) -> MisplacedImages | None:
    """Class folders, or a flat folder, that are in no folder that is read."""
    folder = local_path(layout.raw_dir)
    if any(root == folder / place for place in places):
        return None
    finding = f"{root} holds {split} images, but none are looked for there"
    expected = f"expected the images in {' or '.join(str(folder / place) for place in places[:2])}"
    base = _outermost_base(root, places)
    if base is not None and not keeps and _has_both(folder, base):
        mend = command("convert", layout.data_dir, _elsewhere(layout, base))
        return MisplacedImages(finding, expected, mend, root, raw=base)
    mend = _move_command(root, folder, folder / SPLIT_FOLDER[split])
    return MisplacedImages(finding, expected, mend, root)


def _outermost_base(root: Path, places: Sequence[str]) -> Path | None:
    """The outermost raw folder in which ``root`` would be at one of the places."""
    bases = [_base_of(root, place) for place in places]
    return min(filter(None, bases), key=lambda base: len(base.parts), default=None)


def _move_command(root: Path, raw_dir: Path, target: Path) -> CommandLine:
    """The command that moves images to the folder where they are read."""
    if root == raw_dir:
        make = command_line(["mkdir", "-p", "--", str(target)])
        has_classes = any(facts.is_wnid(name) for name in names_in(raw_dir))
        pattern = "n????????" if has_classes else "ILSVRC2012_val_*"
        images = Shell(f"{quoted(str(raw_dir))}/{pattern}")
        return make.then(command_line(["mv", "--", images, str(target)]))
    if not target.exists():
        return command_line(["mv", "--", str(root), str(target)])
    moves = ((root, f"{target}.new"), (target, f"{target}.old"), (f"{target}.new", target))
    return in_sequence(command_line(["mv", "--", *map(str, move)]) for move in moves)


def _has_both(folder: Path, inner: Path) -> bool:
    """Whether the first images of each split below a folder are below an inner one:
    none that it lacks are left.
    """
    images = (find_image(folder, split) for split in facts.SPLITS)
    return all(image is None or image.is_relative_to(inner) for image in images)


def _elsewhere(layout: Layout, raw_dir: Path) -> OptionValues:
    return replace(layout, raw=raw_dir).elsewhere()


def _base_of(root: Path, place: str) -> Path | None:
    """The folder that has ``root`` at ``place``."""
    parts = Path(place).parts
    return Path(*root.parts[: -len(parts)]) if root.parts[-len(parts) :] == parts else None
