"""find_unread: images that are not where or as they are read, and the command that helps.

The refusals say what was found instead: archives of other names, copies that can't be used, images
of the user's own, or nothing.
"""

from __future__ import annotations

import itertools
import re
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import Shell, command, command_line, quoted, rerun_elsewhere
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.class_parts import Part
from imagenet_prep.ilsvrc2012.misplaced_folders import MisplacedImages, find_image, find_misplaced
from imagenet_prep.ilsvrc2012.official import ImageSource
from imagenet_prep.ilsvrc2012.official_folders import FOLDERS
from imagenet_prep.ilsvrc2012.raw_data import data_dir_above, find_source, hint_to_own_raw_data
from imagenet_prep.ilsvrc2012.repacked import (
    AGAIN,
    UNPACKED,
    Content,
    compressed_in_folder,
    content_of_tar,
    content_of_zip,
    is_compressed_class_tar,
    unpack_command,
    unzip_command,
)
from imagenet_prep.sources.compressed_tars import compression_of, decompress_command
from imagenet_prep.state.export_record import export_fault
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.durable import move_away
from imagenet_prep.storage.files import IN_WORDS, absence_of, kind_of, names_in, open_file, scan
from imagenet_prep.storage.layout import RAW_NAME, STATE_NAME, Layout
from imagenet_prep.storage.location import AnyPath, local_or_none
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.text import listed

_IMAGES = (".jpeg", ".jpg", ".png", ".tif", ".tiff")
_SPLIT_FOLDERS = ("train", "training", "val", "valid", "validation")
_LOOKED_AT = 50  # names of a folder to look at

_UNFINISHED = (".part", ".partial", ".crdownload", ".download", ".aria2", ".tmp")

_EXPECTED_COPIES = "expected the archives of image-net.org, Kaggle's zip, or folders"
_NAME_WITH_RAW = "name the folder that has the images with --raw"

TASK_3 = "_t3."
"""In the names of archives of another task of 2012, with dogs only: they have class tars too."""


class Astray(Struct, frozen=True):
    """An archive that is not read where or as it is:
    the finding, what was expected, the command that helps, and perhaps the advice in its place.
    """

    finding: str
    expected: str
    mend: str
    afterwards: str = AGAIN
    advice: str = ""

    @property
    def error(self) -> InputError:
        """The error that says so; its hint is the advice, or the command and what follows it."""
        hint = self.advice or Hint(self.mend, f"    {self.afterwards}")
        return InputError(self.finding, self.expected, hint)


def find_astray(layout: Layout, key: str) -> Astray | None:
    """Find an archive in DATA_DIR itself, under another name, compressed, or of folders; None if
    there is none.

    Call it for a split or boxes that no copy has.
    """
    if (above := data_dir_above(layout)) is not None:
        return _one_folder_too_deep(layout, above, key)
    folders = [layout.raw_dir]
    if layout.reads_own_raw or key not in facts.SPLITS:  # images are read from --raw alone
        folders += [layout.own_raw_dir, layout.data_dir]
    for folder in dict.fromkeys(folders):
        if not _may_be_folder(folder):
            return _no_folder(layout, folder)
        if local_or_none(folder) is not None and (
            fault := export_fault(folder)
        ):  # exports are local
            return Astray(fault, _EXPECTED_COPIES, "", advice=_NAME_WITH_RAW)
        in_data_dir = folder == layout.data_dir and folder != layout.raw_dir
        raw_dir = layout.own_raw_dir if in_data_dir else folder
        for name in _archive_names(folder)[:_LOOKED_AT]:
            astray = _find_astray_at(folder / name, key, raw_dir, in_data_dir=in_data_dir)
            if astray is not None:
                return astray
    return None


def _may_be_folder(path: AnyPath) -> bool:
    """Whether a path is a folder, or nothing is there."""
    return path.is_dir() or not (path.exists() or path.is_symlink())


def _archive_names(folder: AnyPath) -> list[str]:
    """The names of complete archives in a folder, except those already unpacked."""
    return [
        name
        for name in _names(folder)
        if any(part in name for part in _PACKED)
        and TASK_3 not in name
        and not name.endswith((UNPACKED, *_UNFINISHED))
    ]


def _find_astray_at(
    path: AnyPath, key: str, raw_dir: AnyPath, *, in_data_dir: bool
) -> Astray | None:
    """Describe the fault of an archive, if it is that of ``key``."""
    official_name = facts.ARCHIVES[key].filename
    if path.name == official_name and not in_data_dir:
        kind = kind_of(path)
        if kind != "file":
            return _no_file(path, kind)
    if key in facts.SPLITS:
        return _astray_images(path, key, raw_dir)
    return _renamed(path, raw_dir / path.name) if path.name == official_name else None


_PACKED = (".tar", ".tgz", ".zip")
"""Parts of the names of archives."""


def _astray_images(path: AnyPath, split: str, raw_dir: AnyPath) -> Astray | None:
    """An archive with images of a split, by the names in it."""
    head = _head(path)
    if head.startswith(b"PK"):
        return _astray_zip(path, head, split, raw_dir)
    if path.name[:-4] in facts.labels() and path.name.endswith(".tar"):
        return _astray_class_tars(path, raw_dir) if split == facts.TRAIN else None
    content = content_of_tar(path)
    if content is None or content.split not in ("", split):
        return None
    compression = compression_of(head)
    if content.kind == "official":
        return _astray_official(path, raw_dir / facts.ARCHIVES[split].filename, compression)
    images = f"{split} images of {facts.NAME}"
    if content.kind == "Kaggle":
        images = "Kaggle's tree in a tar"
    packed = f" and is compressed with {compression}" if compression else ""
    return Astray(
        f"{path} holds {images}{packed}", _UNPACK_ONCE, unpack_command(path, content, raw_dir)
    )


def _astray_official(path: AnyPath, target: AnyPath, compression: str) -> Astray:
    """The official archive under another name, or compressed."""
    if not compression:
        return _renamed(path, target)
    return Astray(
        f"{path} looks like {target.name}, compressed with {compression}",
        f"expected {target}, a plain tar, whose images are read in place",
        decompress_command(str(path), str(target), compression),
    )


_UNPACK_ONCE = f"{_EXPECTED_COPIES}: unpack it once"


def _astray_zip(path: AnyPath, head: bytes, split: str, raw_dir: AnyPath) -> Astray | None:
    """Kaggle's zip under another name, or a zip of folders."""
    from imagenet_prep.ilsvrc2012.kaggle import ZIP

    content = Content("Kaggle") if _ZIP_BEGINNING.match(head) else content_of_zip(path)
    if content is None or content.split not in ("", split) or path == raw_dir / ZIP.filename:
        return None
    if content.kind == "Kaggle":
        return _renamed(path, raw_dir / ZIP.filename)
    finding = f"{path} holds {split} images of {facts.NAME}"
    return Astray(finding, _UNPACK_ONCE, unzip_command(path, content, raw_dir))


def _astray_class_tars(path: AnyPath, raw_dir: AnyPath) -> Astray:
    """Class tars that are in no folder of their own."""
    folder = raw_dir / facts.ARCHIVES[facts.TRAIN].filename.removesuffix(".tar")
    make = command_line(["mkdir", "-p", "--", str(folder)])
    class_tars = Shell(f"{quoted(str(path.parent))}/n????????.tar")
    move = command_line(["mv", "--", class_tars, str(folder)])
    return Astray(
        f"{path} is a class tar outside a folder of class tars",
        f"expected it in {folder}",
        make.then(move),
    )


_ZIP_BEGINNING = re.compile(rb"PK\x03\x04.{26}[^\0]{0,200}?ILSVRC[/\\]", re.DOTALL)
"""The first bytes of Kaggle's zip, whatever its name."""


def _head(path: AnyPath) -> bytes:
    with suppress(OSError), open_file(path) as file:
        return file.read(512)
    return b""


def _one_folder_too_deep(layout: Layout, above: AnyPath, key: str) -> Astray:
    """A folder of raw data that was given as DATA_DIR."""
    name = "convert" if key in facts.SPLITS else "annotate"
    mend = command(name, above, replace(layout, data_dir=above).elsewhere())
    finding = f"{layout.data_dir} is the folder of raw data of {above}"
    rerun = rerun_elsewhere(layout.data_dir, above)
    advice = rerun or f"give {above} to this command in place of {layout.data_dir}"
    return Astray(finding, f"expected {above} as DATA_DIR", mend, advice=advice)


def _no_folder(layout: Layout, folder: AnyPath) -> Astray:
    """Something else than a folder where one of raw data, or DATA_DIR, is expected."""
    kind = kind_of(folder)
    expected = f"expected a folder{_ask_for_disk(kind)}"
    advice = _NAME_WITH_RAW if folder == layout.raw else ""
    return Astray(f"{folder} is {IN_WORDS[kind]}", expected, move_away(folder), advice=advice)


def _no_file(path: AnyPath, kind: str) -> Astray:
    """Something else than a file that has an archive's name."""
    expected = f"expected the archive itself, or a link to it{_ask_for_disk(kind)}"
    return Astray(f"{path} is {IN_WORDS[kind]}", expected, move_away(path))


def _ask_for_disk(kind: str) -> str:
    """The question about a link that leads to nothing; "" about anything else."""
    return ": is the disk mounted that the link leads to?" if kind == "nothing" else ""


def _renamed(source: AnyPath, target: AnyPath) -> Astray:
    """An archive in another place, or under another name."""
    move = command_line(["mv", "--", str(source), str(target)])
    if not target.parent.is_dir():
        move = command_line(["mkdir", "-p", str(target.parent)]).then(move)
    finding = f"{source} looks like {target.name}; rename it"
    if source.name == target.name:
        finding = f"{source} is not in the folder of raw data"
    return Astray(finding, f"expected it as {target}", move)


def refuse_wrong_folder(layout: Layout) -> None:
    """Raise InputError if DATA_DIR is itself a folder of raw data, or if that is no folder."""
    above, raw_dir = data_dir_above(layout), layout.raw_dir
    if above is not None:
        raise _one_folder_too_deep(layout, above, facts.TRAIN).error
    if not _may_be_folder(raw_dir):
        raise _no_folder(layout, raw_dir).error


def refuse_astray(layout: Layout, key: str) -> None:
    """Raise InputError if a missing archive is in DATA_DIR itself,
    has another name, or is packed in another way.
    """
    archive = find_astray(layout, key)
    if archive is not None:
        raise archive.error


def find_unread(layout: Layout, split: str) -> Astray | MisplacedImages | None:
    """Find the images of a split that no copy has:
    in an archive, in other folders, or under other names.
    """
    archive = find_astray(layout, split)
    if archive is not None:
        return archive
    keeps = any(find_source(layout, other) for other in facts.SPLITS if other != split)
    return find_misplaced(layout, split, FOLDERS[split], keeps=keeps)


def refuse_unread(layout: Layout, split: str) -> None:
    """Raise InputError if the images of a split that no copy has are there,
    and are not where or as they are read.
    """
    images = find_unread(layout, split)
    if images is not None:
        raise images.error


def refuse_empty(layout: Layout, source: ImageSource, part: Part) -> None:
    """Raise InputError for a copy without any image of the part: its shards would be empty."""
    what = f"{source.path} holds no {source.split} image of {part.name}"
    names: list[str] = []
    if source.path.is_dir():
        misplaced = find_misplaced(layout, source.split, FOLDERS[source.split], source.path)
        if misplaced is not None:
            raise misplaced.error
        names = _names(source.path)
    compressed = next(filter(is_compressed_class_tar, names), None)
    if compressed is not None:
        raise compressed_in_folder(source.path, compressed)
    if not part.is_whole:
        raise InputError(
            what,
            f"expected images of its classes, such as {min(part.labels)}",
            "get a copy with these classes, or choose other classes",
        )
    expected = "expected images with the names of image-net.org"
    if not source.is_unpacked:
        other = "get an intact copy of it, or move it away to use another copy"
        raise InputError(what, expected, other)
    move = f"move {source.path} away, and run the same command again; for images of your own: "
    raise InputError(
        what,
        f"{expected}, {_EXAMPLES[source.split]}; found {listed(names) or 'nothing'} in it",
        Hint(move, command("init", source.path)),
    )


_EXAMPLES = {
    facts.TRAIN: "in folders such as n01440764",
    facts.VALIDATION: "such as ILSVRC2012_val_00000001.JPEG",
}
"""The content of a folder of a split, for messages."""


def nothing_found(layout: Layout) -> InputError:
    """The error for a DATA_DIR without images of ImageNet;
    an unfinished conversion names their former place.
    """
    folder, names = _names_in_raw_or_data_dir(layout)
    expected = (
        "expected the archives of image-net.org, folders train/ and val/, "
        "or a copy of Kaggle or Hugging Face"
    )
    what = f"found no images of ImageNet in {layout.raw_dir}"
    if layout.raw is not None and not layout.raw.exists():
        what = absence_of(layout.raw)
    detail = f"{expected}; found {listed(names) or 'nothing'} in {folder}"
    return InputError(what, detail, _hint_without_images(layout))


def _hint_without_images(layout: Layout) -> str:
    """The command that names the raw folder, describes the user's own images, or downloads."""
    if own := hint_to_own_raw_data(layout):
        return own
    own_folder = own_images(layout)
    if layout.reads_own_raw and own_folder is None:
        in_data_dir = replace(layout, raw=layout.data_dir)
        if any(find_source(in_data_dir, split) for split in facts.SPLITS):
            return Hint(f"run the same command with --raw {quoted(str(layout.data_dir))}")
    records = SetRecords(layout)
    if records.plan is not None:
        raw_dir = records.raw_dir
        if raw_dir is None or raw_dir == layout.raw_dir:  # gone from there, or just looked at
            raw_dir = Path("FOLDER")
        places = replace(layout, raw=None).elsewhere(raw_dir)
        return command("convert", layout.data_dir, (*places, *records.plan.options))
    if own_folder is not None:
        return Hint(command("init", own_folder), "    (for images of your own)")
    return download_hint(layout)


def download_hint(layout: Layout) -> str:
    """How to get the images: the command, or another folder that has them."""
    if local_or_none(layout.data_dir) is None:  # download writes to a local folder
        return _NAME_WITH_RAW
    then = f"then name {layout.own_raw_dir} with --raw, or another folder"
    with_raw = (
        "or, if you have the images, name their folder with --raw" if layout.raw is None else then
    )
    return Hint(command("download", layout.data_dir), f"    ({with_raw})")


def own_images(layout: Layout) -> AnyPath | None:
    """Find images that are not ImageNet's, in folders or in one place:
    a data set of the user's own.
    """
    folder, names = _names_in_raw_or_data_dir(layout)
    if not any(_holds_images(folder / name) for name in names[:_LOOKED_AT]):
        return None
    if any(find_source(layout, split) for split in facts.SPLITS):
        return None
    local = local_or_none(folder)
    if local is not None and any(find_image(local, split) for split in facts.SPLITS):
        return None
    return folder


def _names_in_raw_or_data_dir(layout: Layout) -> tuple[AnyPath, list[str]]:
    """The raw folder and its names; if it is DATA_DIR's own and empty, DATA_DIR and its names."""
    raw_names = _names(layout.raw_dir)
    data_names = [name for name in _names(layout.data_dir) if name != RAW_NAME]
    if data_names and not raw_names and layout.reads_own_raw:
        return layout.data_dir, data_names
    return layout.raw_dir, raw_names


def _names(folder: AnyPath) -> list[str]:
    """The names in a folder, except our own files; empty if it doesn't exist.

    Raises:
        InputError: it can't be listed.
    """
    try:
        names = sorted(names_in(folder))
    except (FileNotFoundError, NotADirectoryError):
        return []
    except OSError as error:
        raise unreadable(folder, error) from error
    return [name for name in names if name != STATE_NAME and not name.startswith(".")]


def _holds_images(path: AnyPath) -> bool:
    """Whether it is an image, a folder of images, or a split's class folders, by names."""
    if path.suffix.lower() in _IMAGES:
        return True
    with suppress(OSError), scan(path) as entries:
        names = [entry.name for entry in itertools.islice(entries, _LOOKED_AT)]
        has_images = any(name.lower().endswith(_IMAGES) for name in names)
        inner = names if path.name.lower() in _SPLIT_FOLDERS else ()
        return has_images or any(_holds_images(path / name) for name in inner)
    return False
