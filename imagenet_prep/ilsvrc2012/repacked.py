"""Repacked archives of ImageNet: their content, by the names in them, and the commands that
unpack them.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import (
    CommandLine,
    Shell,
    command_line,
    quoted,
)
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.sources.archive_faults import ArchiveFault
from imagenet_prep.sources.tar_members import stranger
from imagenet_prep.sources.zip_entries import iter_entries
from imagenet_prep.sources.zips import with_slashes
from imagenet_prep.storage.files import open_file, view_of
from imagenet_prep.storage.location import AnyPath

AGAIN = "(then run the same command again)"
UNPACKED = ".unpacked"
"""The ending of an archive that was unpacked and is not looked at again."""

_AROUND = {".", "train", "val", "validation", "ILSVRC2012_img_train", "ILSVRC2012_img_val"}
"""Folders that may be around the members of the official archives."""

IMAGE_ENDINGS = (".jpeg", ".jpg", ".png", ".webp", ".bmp")
NAMES_OF_SPLITS = ("train", "val", "validation")
SPLIT_FOLDER = {facts.TRAIN: "train", facts.VALIDATION: "val"}


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
        if folder in NAMES_OF_SPLITS:
            return Content("folders", split, folders[:depth])
    is_in_class = bool(folders) and facts.is_wnid(folders[-1])
    outer = folders[:-1] if is_in_class else folders
    return Content("folders", split, outer, SPLIT_FOLDER[split])


def split_of_image(name: str) -> str:
    """The split of an image with this official name,
    whatever its image ending is in place of .JPEG; or "".
    """
    if not name.lower().endswith(IMAGE_ENDINGS):
        return ""
    official = f"{name.rpartition('.')[0]}.JPEG"
    for split in facts.SPLITS:
        if facts.class_of(official, split) in facts.labels():
            return split
    return ""


_MOST_FILES = 5  # files of a tar whose names are looked at
_MOST_ENTRIES = 1000  # of a zip, whose directory has all names
_LARGEST_PASSED = 1 << 24  # bytes of a file that is read to get to the next one


def content_of_tar(path: AnyPath) -> Content | None:
    """The content of a tar, compressed or not, by its first files;
    None if they don't tell, or it is no tar.
    """
    for name in _first_names(path):
        content = content_of(name)
        if content is not None:
            return content
    return None


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
        entries = iter_entries(view_of(path))
        for encoded_name, _, _ in itertools.islice(entries, _MOST_ENTRIES):
            name = with_slashes(encoded_name).decode("utf-8", "replace")
            content = content_of(name)
            if content is not None:
                return content
    return None


def unpack_command(archive: AnyPath, content: Content, raw_dir: AnyPath) -> CommandLine:
    """The command that unpacks an archive of folders where its images are found."""
    target = _target_of(content, raw_dir)
    words = ["tar", "-xf", str(archive), "-C", target]
    if content.outer:
        words.append(f"--strip-components={len(content.outer)}")
    make = command_line(["mkdir", "-p", "--", target])
    return make.then(command_line(words))


def unzip_command(archive: AnyPath, content: Content, raw_dir: AnyPath) -> CommandLine:
    """The command that unpacks a zip of folders where its images are found."""
    target = _target_of(content, raw_dir)
    unpack = command_line(["unzip", "-q", str(archive), "-d", target])
    if not content.outer:
        return unpack
    # with folders around the images the next run has to name their place, not the zip again
    return unpack.then(_move_away(archive))


def _target_of(content: Content, raw_dir: AnyPath) -> str:
    """The folder that an archive is unpacked into."""
    target = raw_dir / content.folder if content.folder else raw_dir
    return str(target)


def _move_away(archive: AnyPath) -> CommandLine:
    """The command after which an archive that was unpacked is not looked at."""
    return command_line(["mv", "--", str(archive), f"{archive}{UNPACKED}"])


def foreign_member(archive: object, member: bytes, offset: int, expected: str) -> InputError:
    """The error for a member of an official archive that is none of the ``expected``,
    with the command that helps.
    """
    if not isinstance(archive, Path):
        return stranger(archive, member, offset, expected)
    name = member.decode("utf-8", "replace")
    if is_compressed_class_tar(name):
        return _compressed_class_tars(archive, name)
    content = content_of(name) if "/" in name else None
    if content is None or content.kind == "official":
        return stranger(archive, member, offset, expected)
    images = "Kaggle's tree" if content.kind == "Kaggle" else "images in folders"
    unpack = unpack_command(archive, content, archive.parent)
    shown_name = member[:100].decode("utf-8", "backslashreplace")
    return InputError(
        f"{archive} holds {images}, in place of {expected}",
        f"got {shown_name!r}; unpack it once",
        Hint(unpack.then(_move_away(archive)), f"    {AGAIN}"),
    )


_DECOMPRESSORS = {"gz": "gzip", "bz2": "bzip2", "xz": "xz", "zst": "zstd"}


def is_compressed_class_tar(name: str) -> bool:
    """Whether a name is that of a compressed class tar, such as n01440764.tar.gz."""
    return re.fullmatch(r"n[0-9]{8}\.tar\.(gz|bz2|xz|zst)", name) is not None


def _compressed_class_tars(archive: Path, name: str) -> InputError:
    """The error for an archive of compressed class tars, ``name`` one of them."""
    folder = archive.with_suffix("")
    target = str(folder)
    make = command_line(["mkdir", "-p", "--", target])
    unpack = command_line(["tar", "-xf", str(archive), "-C", target])
    mend = make.then(unpack)
    mend = mend.then(_decompress(folder, name))
    mend = mend.then(_move_away(archive))
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
    words = [_DECOMPRESSORS[ending], "-d", "--", class_tars]
    if ending == "zst":
        words.insert(1, "--rm")  # zstd alone keeps what it has decompressed
    return command_line(words)


def _refuse_compressed(path: AnyPath, name: str, mend: str) -> InputError:
    return InputError(
        f"{path} holds compressed class tars: {name}",
        f"expected plain tars, whose images are read in place, such as {name.rpartition('.')[0]}",
        Hint(mend, f"    {AGAIN}"),
    )
