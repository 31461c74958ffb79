"""Repacked and renamed copies of ImageNet: their content, by the names in them,
and the commands that mend them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

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
from imagenet_prep.sources.tar_members import ArchiveFault, stranger
from imagenet_prep.sources.zip_entries import iter_entries
from imagenet_prep.sources.zips import with_slashes
from imagenet_prep.storage.files import names_in, open_file, scan, view_of
from imagenet_prep.storage.layout import STATE_NAME, Layout
from imagenet_prep.storage.location import AnyPath, local_or_none, local_path

AGAIN = "(then run the same command again)"
UNPACKED = ".unpacked"
"""The ending of an archive that was unpacked and is not looked at again."""

_AROUND = {".", "train", "val", "validation", "ILSVRC2012_img_train", "ILSVRC2012_img_val"}
"""Folders that may be around the members of the official archives."""

_ENDINGS = (".jpeg", ".jpg", ".png", ".webp", ".bmp")
_SPLIT_FOLDERS = ("train", "val", "validation")
_FOLDERS = {facts.TRAIN: "train", facts.VALIDATION: "val"}


def without_folders(member: bytes, wnid: str = "") -> bytes:
    """The name of a member of an official archive without the folders of its split and its class.

    A name in any other folder is left as it is.
    """
    path, _, name = member.rpartition(b"/")
    expected_folders = {*_AROUND, wnid} if wnid else _AROUND
    folders = path.decode("ascii", "replace").split("/")
    return name if expected_folders.issuperset(folders) else member


class Content(Struct, frozen=True):
    """The content of an archive, by the name of one of its files.

    Args:
        kind: an official archive, Kaggle's tree, or images in folders.
        split: the split of that file; "" if the name doesn't tell.
        outer: the folders around the copy; an archive's members are read or unpacked without them.
        folder: the folder, below the raw folder, for what remains.
    """

    kind: Literal["official", "Kaggle", "folders"]
    split: str = ""
    outer: Sequence[str] = ()
    folder: str = ""


def content_of(name: str) -> Content | None:
    """The content of an archive that has a file of this name; None if the name doesn't tell."""
    *folders, filename = name.split("/")
    if not {"", ".."}.isdisjoint(folders):
        return None  # absolute, or out of the archive
    if "CLS-LOC" in folders[1:]:
        return Content("Kaggle", outer=_folders_around_kaggle(folders))
    if filename.endswith(".tar") and filename[:-4] in facts.labels():
        return Content("official", facts.TRAIN) if _AROUND.issuperset(folders) else None
    split = split_of_image(filename)
    if not split:
        return None
    if split == facts.VALIDATION and _AROUND.issuperset(folders):
        return Content("official", split)
    return _content_of_folders(folders, split)


def _folders_around_kaggle(folders: Sequence[str]) -> Sequence[str]:
    """The folders around ILSVRC/Data/CLS-LOC, or around Data/CLS-LOC."""
    top = folders.index("CLS-LOC") - 1
    if top > 0 and folders[top - 1] == "ILSVRC":
        top -= 1
    return folders[:top]


def _content_of_folders(folders: Sequence[str], split: str) -> Content:
    """The content of an archive with an image of a split in these folders."""
    for depth, folder in enumerate(folders):
        if folder in _SPLIT_FOLDERS:
            return Content("folders", split, folders[:depth])
    is_in_class = bool(folders) and facts.is_wnid(folders[-1])
    outer = folders[:-1] if is_in_class else folders
    return Content("folders", split, outer, _FOLDERS[split])


def split_of_image(name: str) -> str:
    """The split of an image with this official name,
    whatever its image ending is in place of .JPEG; or "".
    """
    if not name.lower().endswith(_ENDINGS):
        return ""
    official = f"{name.rpartition('.')[0]}.JPEG"
    for split in facts.SPLITS:
        if facts.class_of(official, split) in facts.labels():
            return split
    return ""


# archives -----------------------------------------------------------------------------------------

_MOST_FILES = 5  # files of an archive whose names are looked at
_LARGEST_PASSED = 1 << 24  # bytes of a file that is read to get to the next one


def content_of_tar(path: AnyPath) -> Content | None:
    """The content of a tar, compressed or not, by its first files;
    None if they don't tell, or it is no tar.
    """
    return next(filter(None, map(content_of, _first_names(path))), None)


def _first_names(path: AnyPath) -> Iterator[str]:
    import lzma  # only what is refused gets here: a conversion loads none of these
    import tarfile
    import zlib

    faults = (OSError, EOFError, tarfile.TarError, zlib.error, lzma.LZMAError)
    with suppress(*faults), open_file(path) as file, tarfile.open(fileobj=file, mode="r|*") as tar:
        files = (member for member in tar if member.isfile())
        for member in itertools.islice(files, _MOST_FILES):
            yield member.name
            if member.size > _LARGEST_PASSED:
                return


def content_of_zip(path: AnyPath) -> Content | None:
    """The content of a zip, by the first names in its directory that tell;
    None if none of them does.
    """
    with suppress(OSError, ArchiveFault):
        names = (
            with_slashes(name).decode("utf-8", "replace")
            for name, _, _ in iter_entries(view_of(path))
        )
        contents = map(content_of, itertools.islice(names, 1000))
        return next(filter(None, contents), None)
    return None


def unpack_command(archive: AnyPath, content: Content, raw_dir: AnyPath) -> CommandLine:
    """The command that unpacks an archive of folders where its images are found."""
    target = str(raw_dir / content.folder if content.folder else raw_dir)
    strip = [f"--strip-components={len(content.outer)}"] if content.outer else []
    unpack = command_line(["tar", "-xf", str(archive), "-C", target, *strip])
    return command_line(["mkdir", "-p", "--", target]).then(unpack)


def unzip_command(archive: AnyPath, content: Content, raw_dir: AnyPath) -> CommandLine:
    """The command that unpacks a zip of folders where its images are found."""
    target = str(raw_dir / content.folder if content.folder else raw_dir)
    unpack = command_line(["unzip", "-q", str(archive), "-d", target])
    # with folders around the images the next run has to name their place, not the zip again
    return unpack.then(_move_away(archive)) if content.outer else unpack


def _move_away(archive: AnyPath) -> CommandLine:
    """The command after which an archive that was unpacked is not looked at."""
    return command_line(["mv", "--", str(archive), f"{archive}{UNPACKED}"])


def foreign_member(archive: object, member: bytes, offset: int, expected: str) -> InputError:
    """The error for a member of an official archive that is none of the ``expected``,
    with the command that helps.
    """
    if not isinstance(archive, Path):
        return stranger(archive, member, offset, expected)
    if is_compressed_class_tar(member.decode("ascii", "replace")):
        return _compressed_class_tars(archive, member)
    content = content_of(member.decode("utf-8", "replace")) if b"/" in member else None
    if content is None or content.kind == "official":
        return stranger(archive, member, offset, expected)
    images = "Kaggle's tree" if content.kind == "Kaggle" else "images in folders"
    unpack = unpack_command(archive, content, archive.parent)
    return InputError(
        f"{archive} holds {images}, in place of {expected}",
        f"got {member[:100].decode('utf-8', 'backslashreplace')!r}; unpack it once",
        Hint(unpack.then(_move_away(archive)), f"    {AGAIN}"),
    )


_DECOMPRESSORS = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}


def is_compressed_class_tar(name: str) -> bool:
    """Whether a name is that of a compressed class tar, such as n01440764.tar.gz."""
    return re.fullmatch(r"n[0-9]{8}\.tar\.(gz|bz2|xz|zst)", name) is not None


def _compressed_class_tars(archive: Path, member: bytes) -> InputError:
    name = member.decode()
    folder = archive.with_suffix("")
    make = command_line(["mkdir", "-p", "--", str(folder)])
    unpack = command_line(["tar", "-xf", str(archive), "-C", str(folder)])
    mend = make.then(unpack).then(_decompress(folder, name)).then(_move_away(archive))
    return _refuse_compressed(archive, name, mend)


def compressed_in_folder(folder: AnyPath, name: str) -> InputError:
    """The error for a folder of compressed class tars, ``name`` one of them,
    with the command that helps.
    """
    return _refuse_compressed(folder, name, _decompress(folder, name))


def _decompress(folder: AnyPath, name: str) -> CommandLine:
    """The command that decompresses the class tars of a folder in place."""
    ending = name.rpartition(".")[2]
    class_tars = Shell(f"{quoted(str(folder))}/n*.tar.{ending}")
    return command_line([_DECOMPRESSORS[ending], "-d", "--", class_tars])


def _refuse_compressed(path: AnyPath, name: str, mend: str) -> InputError:
    return InputError(
        f"{path} holds compressed class tars: {name}",
        f"expected plain tars, whose images are read in place, such as {name.rpartition('.')[0]}",
        Hint(mend, f"    {AGAIN}"),
    )


# folders ------------------------------------------------------------------------------------------

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


class Misplaced(Struct, frozen=True):
    """Images that are not where, or not as, they are read.

    Args:
        finding: where or as what they are.
        expected: how the images are read.
        mend: the command that makes them readable.
        folder: where they are, for a recipe of their own.
    """

    finding: str
    expected: str
    mend: str
    folder: AnyPath

    @property
    def error(self) -> InputError:
        """The error that says so."""
        init = command("init", self.folder)
        return InputError(
            self.finding,
            self.expected,
            Hint(self.mend, f"    {AGAIN}; other images than ILSVRC2012's: ", init),
        )


def find_misplaced(
    layout: Layout,
    split: str,
    places: Sequence[str],
    folder: AnyPath | None = None,
    *,
    keeps: bool = False,
) -> Misplaced | None:
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


def _wrong_names_in_class(image: Path, class_folder: Path) -> Misplaced | None:
    """Images too deep in their class folders, and class folders in upper case."""
    root = class_folder.parent
    if image.parent != class_folder:
        loop = _in_each("-mindepth 2 -maxdepth 2 -type d", root, 'mv -n -- "$each"/* "${each%/*}"')
        shown = image.relative_to(root)
        finding = f"{root} has its images in folders within class folders: {shown}"
        return Misplaced(finding, f"expected {class_folder.name}/{image.name}", loop, root)
    if class_folder.name not in facts.labels():
        loop = _in_each(
            "-mindepth 1 -maxdepth 1 -name 'N*'",
            root,
            'mv -n -- "$each" "${each%/*}/n${each##*/N}"',
        )
        finding = f"{root} has class folders in upper case: {class_folder.name}"
        return Misplaced(finding, f"expected {class_folder.name.lower()}", loop, root)
    return None


def _wrong_ending(image: Path, root: Path) -> Misplaced | None:
    """Images with another ending than .JPEG."""
    if image.suffix == ".JPEG":
        return None
    pattern = quoted(f"*{image.suffix}")
    loop = _in_each(f"-type f -name {pattern}", root, 'mv -n -- "$each" "${each%.*}.JPEG"')
    shown = image.relative_to(root)
    finding = f"{root} has images that are named {image.suffix}: {shown}"
    expected = f"expected {image.stem}.JPEG: the records hold the published names"
    return Misplaced(finding, expected, loop, root)


def _without_class_folders(image: Path) -> Misplaced:
    """Train images that are all in one folder."""
    root = image.parent
    names = 'name="${each##*/}"; wnid="${each%/*}/${name%%_*}"'
    body = names + '; mkdir -p -- "$wnid" && mv -n -- "$each" "$wnid"'
    loop = _in_each("-maxdepth 1 -type f -name 'n????????_*'", root, body)
    finding = f"{root} has its images in no class folders: {image.name}"
    return Misplaced(finding, f"expected {image.name.partition('_')[0]}/{image.name}", loop, root)


def _in_each(test: str, folder: Path, body: str) -> CommandLine:
    """A command for a POSIX shell that runs ``body`` for ``each`` entry below a folder that
    passes a test of find.
    """
    loop = Shell(f"{test} -exec sh -c 'for each; do {body}; done' sh {{}} +")
    return command_line(["find", str(folder), loop])


def _wrong_place(
    layout: Layout, root: Path, split: str, places: Sequence[str], keeps: bool
) -> Misplaced | None:
    """Class folders, or a flat folder, that are in no folder that is read."""
    folder = local_path(layout.raw_dir)
    if any(root == folder / place for place in places):
        return None
    finding = f"{root} holds {split} images, and is not where they are looked for"
    expected = f"expected {' or '.join(places[:2])} in {folder}"
    base = _outermost_base(root, places)
    if base is not None and not keeps and _has_both(folder, base):
        mend = command("convert", layout.data_dir, _elsewhere(layout, base))
    else:
        mend = _move_command(root, folder, folder / _FOLDERS[split])
    return Misplaced(finding, expected, mend, root)


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
