"""find_source: the copy in the raw folder that holds a split;
the state and the space of the stages around it.
"""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from imagenet_prep.errors import InputError
from imagenet_prep.escaping import Settings, command, command_line, quoted
from imagenet_prep.fetch import BASE_URL
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.box_search import find_annotations, find_boxes_csv
from imagenet_prep.ilsvrc2012.official import (
    FOLDERS,
    ClassTars,
    ImageFolders,
    ImageSource,
    OfficialTar,
    finished,
)
from imagenet_prep.ilsvrc2012.repacked import (
    AGAIN,
    UNPACKED,
    Content,
    Misplaced,
    compressed_in_folder,
    content_of_tar,
    content_of_zip,
    find_misplaced,
    is_compressed_class_tar,
    unpack_command,
    unzip_command,
)
from imagenet_prep.ilsvrc2012.settings import WHOLE, ConvertOptions, Part
from imagenet_prep.model import Engine, Progress, StageStatus, State
from imagenet_prep.shards.consumption import Consumption, consumed_needs
from imagenet_prep.shards.room import PendingShards, is_pass_better, shard_needs
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.sources.tars import compression_of, decompress_command
from imagenet_prep.state.manifest import seen_digests
from imagenet_prep.state.plan_file import load_plan, recorded_raw
from imagenet_prep.storage.files import IN_WORDS, kind_of, load_json, names_in, open_file, scan
from imagenet_prep.storage.layout import STATE_NAME, Layout, parse_shard_name
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.storage.space import Need
from imagenet_prep.text import listed, number_of


class ConsumedImages(ImageSource, frozen=True):
    """A split known from its records; ``path`` is where its first file was."""

    consumption: Consumption

    @classmethod
    def find(cls, layout: Layout, split: str) -> ConsumedImages | None:
        """The record of a split."""
        if layout.raw_dir.resolve() != layout.own_raw_dir.resolve():
            return None
        consumption = Consumption.find(layout, split)
        if consumption is None:
            return None
        return cls(layout.data_dir / consumption.files[0].path, split, consumption)

    @property
    def size(self) -> int:
        """The recorded size of the files."""
        return sum(file.size for file in self.consumption.files)

    @property
    def words(self) -> str:
        """The place of its images."""
        shards = f"the {self.split} shards"
        if self.consumption.is_over:
            return f"{shards} only: {self.path.name} was consumed"
        return f"{shards} and files not yet consumed"

    @property
    def md5(self) -> str:
        """The published MD5, if its file was verified before it was consumed."""
        published = facts.ARCHIVES[self.split].md5
        return published if self.consumption.files[0].digests.get("md5") == published else ""

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images as recorded; none can be read."""
        return finished([self.consumption.catalog()], self.split)


ENCODED_AGAIN = {
    "TensorFlow Datasets": (
        "imagenet2012-{}.tfrecord-*",
        "imagenet2012/*/imagenet2012-{}.tfrecord-*",
    ),
    "timm's webdataset": ("imagenet1k-{}-*.tar", "imagenet-1k-wds/imagenet1k-{}-*.tar"),
}
"""Copies that can't give the same bytes, by their makers: patterns of their files below the raw
folder.

For TFDS see ``_fix_image`` in its imagenet2012_dataset_builder.py; for timm see
https://huggingface.co/datasets/timm/imagenet-1k-wds.
"""


def find_source(layout: Layout, split: str) -> ImageSource | None:
    """Find the images of a split; None if there are none.

    Raw data that is being consumed wins over any copy; the record of a consumed copy is last. A
    copy without some classes is used only if there is no other.
    """
    consumed = ConsumedImages.find(layout, split)
    if consumed is not None and not consumed.consumption.is_over:
        return consumed
    partial_copies = []
    for copy in find_copies(layout, split):
        if not _lacks_classes(copy):
            return copy
        partial_copies.append(copy)
    if partial_copies:
        return partial_copies[0]
    return ImageFolders.find_begun(layout, split) or consumed


def find_copies(layout: Layout, split: str) -> Iterator[ImageSource]:
    """All copies of a split in the raw folder, in order of preference."""
    for copy_type in _copy_types():
        copy = copy_type.find(layout, split)
        if copy:
            yield copy


def _copy_types() -> Iterator[type[ImageSource]]:
    yield from (OfficialTar, ClassTars, ImageFolders)
    from imagenet_prep.ilsvrc2012.huggingface import HubFiles  # late: few need them
    from imagenet_prep.ilsvrc2012.kaggle import KaggleZip

    yield from (KaggleZip, HubFiles)


def _lacks_classes(copy: ImageSource) -> bool:
    """Whether the names of a copy's folders or tars show fewer classes than the data set has."""
    if isinstance(copy, ClassTars):
        return len(copy.wnids()) < facts.CLASSES
    return (
        isinstance(copy, ImageFolders)
        and copy.split == facts.TRAIN
        and _count_classes(copy.path) < facts.CLASSES
    )


def has_images(layout: Layout, split: str, part: Part) -> bool:
    """Whether a copy holds a split of these classes, by names alone;
    class tars may be incomplete.
    """
    source = find_source(layout, split)
    if isinstance(source, ClassTars):
        return part.labels.keys() <= set(source.wnids())
    return source is not None


def find_packed(layout: Layout, split: str) -> ImageSource | None:
    """Find the images of a split that are in archives; None if there are none."""
    return next((copy for copy in find_copies(layout, split) if not copy.is_unpacked), None)


def checked_md5(layout: Layout, archive: AnyPath) -> str:
    """The verified MD5 of an archive, if the file is unchanged since; else ""."""
    return seen_digests(layout, archive.name, archive).get("md5", "")


# without images -----------------------------------------------------------------------------------

_IMAGES = (".jpeg", ".jpg", ".png", ".tif", ".tiff")
_LOOKED_AT = 50  # names of a folder to look at

_UNFINISHED = (".part", ".partial", ".crdownload", ".download", ".aria2", ".tmp")

_TASK_3 = "_t3."
"""In the names of the archives of another task of 2012, with dogs only:
ILSVRC2012_img_train_t3.tar has tars too.
"""


class Astray(Struct, frozen=True):
    """An archive that is not read where or as it is:
    the finding, what was expected, the command that helps.
    """

    finding: str
    expected: str
    mend: str

    @property
    def error(self) -> InputError:
        """The error that says so."""
        return InputError(self.finding, self.expected, f"{self.mend}    {AGAIN}")


def find_astray(layout: Layout, key: str) -> Astray | None:
    """Find an archive in DATA_DIR itself, under another name, compressed, or of folders; None if
    there is none.

    Call it for a split or boxes that no copy has.
    """
    for folder in dict.fromkeys((layout.raw_dir, layout.own_raw_dir, layout.data_dir)):
        in_data_dir = folder == layout.data_dir
        raw_dir = layout.own_raw_dir if in_data_dir else folder
        for name in _archive_names(folder)[:_LOOKED_AT]:
            astray = _find_astray_at(folder / name, key, raw_dir, in_data_dir=in_data_dir)
            if astray is not None:
                return astray
    return None


def _archive_names(folder: AnyPath) -> list[str]:
    """The names of complete archives in a folder, except those already unpacked."""
    return [
        name
        for name in _names(folder)
        if _is_archive_name(name) and not name.endswith((UNPACKED, *_UNFINISHED))
    ]


def _is_archive_name(name: str) -> bool:
    return any(part in name for part in _PACKED) and _TASK_3 not in name


def _find_astray_at(
    path: AnyPath, key: str, raw_dir: AnyPath, *, in_data_dir: bool
) -> Astray | None:
    """What is wrong with an archive, if it is that of ``key``."""
    official_name = facts.ARCHIVES[key].filename
    if path.name == official_name and not in_data_dir:
        kind = kind_of(path)
        if kind != "file":
            return _no_file(path, IN_WORDS[kind])
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
    images = f"{split} images of {facts.NAME} in folders"
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


_UNPACK_ONCE = "expected the archives of image-net.org, Kaggle's zip, or folders: unpack it once"


def _astray_zip(path: AnyPath, head: bytes, split: str, raw_dir: AnyPath) -> Astray | None:
    """Kaggle's zip under another name, or a zip of folders."""
    from imagenet_prep.ilsvrc2012.kaggle import ZIP

    content = Content("Kaggle") if _ZIP_BEGINNING.match(head) else content_of_zip(path)
    if content is None or content.split not in ("", split) or path == raw_dir / ZIP.filename:
        return None
    if content.kind == "Kaggle":
        return _renamed(path, raw_dir / ZIP.filename)
    finding = f"{path} holds {split} images of {facts.NAME} in folders"
    return Astray(finding, _UNPACK_ONCE, unzip_command(path, content, raw_dir))


def _astray_class_tars(path: AnyPath, raw_dir: AnyPath) -> Astray:
    """Class tars that are in no folder of their own."""
    folder = raw_dir / facts.ARCHIVES[facts.TRAIN].filename.removesuffix(".tar")
    make = command_line(["mkdir", "-p", "--", str(folder)])
    move = f"mv -- {quoted(str(path.parent))}/n????????.tar {quoted(str(folder))}"
    return Astray(
        f"{path} is a class tar outside a folder of class tars",
        f"expected it in {folder}",
        f"{make} && {move}",
    )


_ZIP_BEGINNING = re.compile(rb"PK\x03\x04.{26}[^\0]{0,200}?ILSVRC[/\\]", re.DOTALL)
"""The first bytes of Kaggle's zip, whatever its name."""


def _head(path: AnyPath) -> bytes:
    with suppress(OSError), open_file(path) as file:
        return file.read(512)
    return b""


def _no_file(path: AnyPath, kind_in_words: str) -> Astray:
    """Something else than a file that has an archive's name."""
    move = command_line(["mv", "--", str(path), f"{path}.moved"])
    return Astray(
        f"{path} is {kind_in_words}", "expected the archive itself, or a link to it", move
    )


def _renamed(source: AnyPath, target: AnyPath) -> Astray:
    """An archive in another place, or under another name."""
    move = command_line(["mv", "--", str(source), str(target)])
    if not target.parent.is_dir():
        move = f"{command_line(['mkdir', '-p', str(target.parent)])} && {move}"
    return Astray(f"{source} looks like {target.name}; rename it", f"expected it as {target}", move)


def refuse_astray(layout: Layout, key: str) -> None:
    """Raise InputError if a missing archive is in DATA_DIR itself,
    has another name, or is packed in another way.
    """
    archive = find_astray(layout, key)
    if archive is not None:
        raise archive.error


def find_unread(layout: Layout, split: str) -> Astray | Misplaced | None:
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


def refuse_known_copies(layout: Layout, split: str) -> None:
    """Raise InputError if the raw folder holds a split only in an unusable copy;
    call it if there is no other copy.
    """
    for maker, patterns in ENCODED_AGAIN.items():
        path = _first_match(layout.raw_dir, patterns, split)
        if path is not None:
            raise InputError(
                f"{path} is the copy of {maker}, which can't give the same records",
                (
                    "expected the published images; that copy encoded 23 train images again: "
                    "22 CMYK images and one PNG"
                ),
                "get the archives of image-net.org, Kaggle's zip or Hugging Face's parquet files, "
                "and name their folder with --raw",
            )
    archive_name = facts.ARCHIVES[split].filename
    path = layout.raw_dir / archive_name.replace(".tar", f"{_TASK_3}tar")
    if path.is_file():
        raise InputError(
            f"{path} holds the dogs of task 3, not the {split} images of {facts.NAME}",
            f"expected {archive_name}",
            f"move it away, and get that one: {command('download', layout.data_dir)}",
        )


def _first_match(folder: AnyPath, patterns: Sequence[str], split: str) -> AnyPath | None:
    """The first file of a split below a folder that one of the patterns matches."""
    for pattern in patterns:
        paths: list[AnyPath] = sorted(folder.glob(pattern.format(split)))
        if paths:
            return paths[0]
    return None


def refuse_empty(layout: Layout, source: ImageSource, part: Part) -> None:
    """Raise InputError for a copy without any image: its shards would be empty."""
    names: list[str] = []
    if source.path.is_dir():
        misplaced = find_misplaced(layout, source.split, FOLDERS[source.split], source.path)
        if misplaced is not None:
            raise misplaced.error
        names = _names(source.path)
    compressed = next(filter(is_compressed_class_tar, names), None)
    if compressed is not None:
        raise compressed_in_folder(source.path, compressed)
    raise InputError(
        f"{source.path} holds no {source.split} image of {part.name}",
        (
            "expected folders such as n01440764, or an archive of image-net.org; "
            f"found {listed(names) or 'nothing'}"
        ),
        (
            "move it away, and run the same command again; for images of your own: "
            f"{command('init', source.path)}"
        ),
    )


def nothing_found(layout: Layout) -> InputError:
    """The error for a DATA_DIR without images of ImageNet;
    an unfinished conversion names their former place.
    """
    folder, names = _names_in_raw_or_data_dir(layout)
    expected = (
        "expected the archives of image-net.org, folders train/ and val/, "
        "or a copy of Kaggle or Hugging Face"
    )
    return InputError(
        f"no images of ImageNet in {layout.raw_dir}",
        f"{expected}; found {listed(names) or 'nothing'} in {folder}",
        _hint_without_images(layout),
    )


def _hint_without_images(layout: Layout) -> str:
    """The command that names the raw folder, describes the user's own images, or downloads."""
    plan = load_plan(layout)
    if plan is not None:
        former = recorded_raw(layout)
        if former is None or former == layout.raw_dir:  # gone from there, or just looked at
            former = Path("FOLDER")
        places = replace(layout, raw=None).elsewhere(former)
        return command("convert", layout.data_dir, (*places, *plan.options))
    own_folder = own_images(layout)
    if own_folder is not None:
        return f"{command('init', own_folder)}    (for images of your own)"
    return f"{command('download', layout.data_dir)}    (or name the folder with --raw)"


def own_images(layout: Layout) -> AnyPath | None:
    """Find images that are not ImageNet's, in folders or in one place:
    a data set of the user's own.
    """
    folder, names = _names_in_raw_or_data_dir(layout)
    if not any(_holds_images(folder / name) for name in names[:_LOOKED_AT]):
        return None
    if any(find_source(layout, split) for split in facts.SPLITS):
        return None
    return folder


def _names_in_raw_or_data_dir(layout: Layout) -> tuple[AnyPath, list[str]]:
    """The raw folder and its names; if it is empty, DATA_DIR and its names."""
    raw_names, data_names = _names(layout.raw_dir), _names(layout.data_dir)
    if data_names and not raw_names:
        return layout.data_dir, data_names
    return layout.raw_dir, raw_names


def _names(folder: AnyPath) -> list[str]:
    """The names in a folder, except our own files; empty if it doesn't exist."""
    with suppress(OSError):
        names = sorted(names_in(folder))
        return [name for name in names if name != STATE_NAME and not name.startswith(".")]
    return []


def _holds_images(path: AnyPath) -> bool:
    """Whether it is an image, or a folder of images, by names."""
    if path.suffix.lower() in _IMAGES:
        return True
    with suppress(OSError), scan(path) as entries:
        sample = itertools.islice(entries, _LOOKED_AT)
        return any(entry.name.lower().endswith(_IMAGES) for entry in sample)
    return False


# state of the stages before convert ---------------------------------------------------------------


def stages_before(layout: Layout, classes: Mapping[str, int]) -> tuple[StageStatus, ...]:
    """The state of download, untar and annotate, by names and sizes;
    ``classes`` gives the folders per split.
    """
    return _download(layout), _untar(layout, classes), _annotate(layout)


def _download(layout: Layout) -> StageStatus:
    archives = [facts.ARCHIVES[key] for key in facts.DEFAULT_ARCHIVES]
    paths = [layout.archive_path(archive) for archive in archives]
    present = [path for path in paths if path.is_file()]
    begun = _count(layout.raw_partial_dir, ".tar.part") + _count(layout.raw_partial_dir, ".gz.part")
    sources = _present_sources(layout)
    copies = [source.words for source in sources if not isinstance(source, OfficialTar)]
    damage = next((source.damage for source in sources if source.damage), "")
    details: list[str] = []
    if present or begun or not copies:  # another copy requires none of the archives
        checked = sum(bool(checked_md5(layout, path)) for path in present)
        started = f", {begun} started" if begun else ""
        of_all = f"{len(present)} of {len(archives)} archives"
        details.append(f"{of_all}, {checked} of them checked{started}")
    if copies:
        details.append(f"images in {' and '.join(dict.fromkeys(copies))}{damage}")
    inputs = len(sources) + bool(find_annotations(layout, facts.TRAIN))
    state = "partly" if damage else _state(inputs, len(archives), begun > 0)
    return StageStatus("download", state, "; ".join(details))


def _present_sources(layout: Layout) -> list[ImageSource]:
    """The images of each split that is there."""
    sources = [find_source(layout, split) for split in facts.SPLITS]
    return [source for source in sources if source is not None]


def fetched_from(layout: Layout) -> Settings:
    """The option for the folder that archives were fetched from, if it is not the official one."""
    checked = load_json(layout.checked_path)
    for archive in facts.ARCHIVES.values():
        for url in _recorded_urls(layout, archive.filename, checked):
            folder, _, name = url.rpartition("/")
            if name == archive.filename and f"{folder}/" != BASE_URL:
                return (("base_url", f"{folder}/"),)
    return ()


def _recorded_urls(layout: Layout, filename: str, checked: object) -> Iterator[str]:
    """The addresses of an archive: that of its unfinished download, and that of its check."""
    part_entry = load_json(layout.raw_partial_dir / f"{filename}.part.json")
    checked_entry = checked.get(filename) if isinstance(checked, dict) else None
    for entry in (part_entry, checked_entry):
        if isinstance(entry, dict):
            yield str(entry.get("url"))


def _untar(layout: Layout, classes: Mapping[str, int]) -> StageStatus:
    counts = {split: _count_classes(layout.images_dir(split)) for split in facts.SPLITS}
    state = _state(sum(counts.values()), sum(classes.values()))
    details = ", ".join(
        f"{count:,} of {classes[split]:,} {split} class folders" for split, count in counts.items()
    )
    return StageStatus("untar", state, f"{details} (optional)")


def _count_classes(folder: AnyPath) -> int:
    if not folder.is_dir():
        return 0
    with scan(folder) as entries:
        return sum(facts.is_wnid(entry.name) and entry.is_dir() for entry in entries)


def _annotate(layout: Layout) -> StageStatus:
    if not layout.boxes_csv.is_file():
        return StageStatus("annotate", "not started", "no boxes")
    with open_file(layout.boxes_csv) as file:
        boxes = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    return StageStatus("annotate", "done", number_of(boxes, "box", "boxes"))


def _state(done: int, expected: int, begun: bool = False) -> State:
    if expected and done >= expected:
        return "done"
    return "partly" if done or begun else "not started"


def _count(folder: AnyPath, suffix: str) -> int:
    return sum(name.endswith(suffix) for name in names_in(folder)) if folder.is_dir() else 0


# the space of the steps after a download ----------------------------------------------------------

_BOXES = 50_000_000
"""Approximate bytes of the boxes of train images as a CSV;
those of validation images are a sixth of it.
"""

_BLOCK = 4096
"""Bytes of a disk block: a file wastes half of its last one on average."""


_LEAST_FILES = 14
"""The minimum number of parquet files of a split."""


class Coming(Struct, frozen=True, kw_only=True):
    """Images that a download is about to fetch.

    Args:
        splits: their splits.
        size: bytes of all files, including those already received.
        by_class: splits of which only the wanted classes are fetched.
        in_order: whether they can only be read in file order.
        has_boxes: whether annotations are fetched, with them or separately.
    """

    splits: Sequence[str] = ()
    size: int = 0
    by_class: Sequence[str] = ()
    in_order: bool = False
    has_boxes: bool = True


class _Amount(Struct, frozen=True):
    """The approximate images of a split: their bytes, and how to read them;
    ``source`` if they are present.
    """

    split: str
    size: int
    in_order: bool
    source: ImageSource | None

    @property
    def images(self) -> int:
        """The number of images."""
        return about_images(self.split, self.size)


def needs_behind(
    layout: Layout, coming: Coming, options: ConvertOptions, *, extract: bool
) -> Iterator[Need]:
    """Estimate the needs of the steps after a download, for present and incoming images, less
    finished shards.

    With ``extract``, untar makes image folders of everything not unpacked, for all present classes.
    """
    if extract:
        for split in facts.SPLITS:
            yield from _untar_needs(layout, split, coming, options)
    estimates = [_amount(layout, split, coming, options, options.part) for split in facts.SPLITS]
    amounts = [amount for amount in estimates if amount is not None]
    for amount in amounts:
        yield from _annotate_needs(layout, amount, coming, options)
    for amount in amounts:
        yield from _shards(layout, amount, options)


def _untar_needs(
    layout: Layout, split: str, coming: Coming, options: ConvertOptions
) -> Iterator[Need]:
    """The space for the image folders of a split that is not unpacked."""
    is_by_class = split in coming.by_class or isinstance(find_source(layout, split), ClassTars)
    part = options.part if is_by_class else WHOLE
    amount = _amount(layout, split, coming, options, part)
    if amount and not (amount.source and amount.source.is_unpacked):
        yield _folders(layout, amount, part)


def _annotate_needs(
    layout: Layout, amount: _Amount, coming: Coming, options: ConvertOptions
) -> Iterator[Need]:
    """The space for the boxes of a split that annotate has not made yet."""
    if amount.split != facts.TRAIN and not options.validation_boxes:
        return
    has_boxes = coming.has_boxes or find_annotations(layout, amount.split)
    if has_boxes and not find_boxes_csv(layout, amount.split):
        size = _BOXES * amount.images // facts.IMAGES[facts.TRAIN]
        yield Need("annotate", f"boxes of {amount.split}", layout.own_raw_dir, size, is_about=True)


def about_images(split: str, size: int) -> int:
    """The number of images in so many bytes of a split, in proportion to the official archive."""
    return facts.IMAGES[split] * size // facts.ARCHIVES[split].about


def folders_need(layout: Layout, split: str, *, classes: int, size: int) -> Need:
    """The disk space of class folders with images of ``size`` bytes in all."""
    images = about_images(split, size)
    needed = size + images * _BLOCK // 2
    return Need(
        "untar",
        f"image folders of {split}",
        layout.images_dir(split),
        needed,
        images + classes,
        is_about=True,
    )


def _amount(
    layout: Layout, split: str, coming: Coming, options: ConvertOptions, part: Part
) -> _Amount | None:
    """The approximate amount of a split, None if nothing:
    ``part`` of the facts, but no more than present.
    """
    source = None if split in coming.splits else find_source(layout, split)
    if (source is None and split not in coming.splits) or isinstance(source, ConsumedImages):
        return None  # a resumed conversion requires no more than its first run checked
    whole = facts.ARCHIVES[split].about * len(part.labels) // facts.CLASSES
    size = min(whole, source.size if source else coming.size)
    return _Amount(split, size, source.is_in_order if source else coming.in_order, source)


def _folders(layout: Layout, amount: _Amount, part: Part) -> Need:
    """The space for missing class folders; an existing folder counts as complete."""
    folder, classes = layout.images_dir(amount.split), len(part.labels)
    present = sum((folder / wnid).is_dir() for wnid in part.labels) if folder.is_dir() else 0
    missing = classes - present
    size = amount.size * missing // classes
    return folders_need(layout, amount.split, classes=missing, size=size)


def _shards(layout: Layout, amount: _Amount, options: ConvertOptions) -> list[Need]:
    """The space for missing shards; a shard with its final name counts as finished."""
    count = options.shards(amount.split)
    missing = max(count - _count_shards(layout, amount.split, count), 0)
    size = amount.size * missing // count
    pending = PendingShards(
        amount.split, missing, about_images(amount.split, size), size, is_about=True
    )
    if options.consume:
        return consumed_needs(
            layout,
            pending,
            under_way=(os.cpu_count() or 1) * size // max(missing, 1),
            whole=amount.size // _LEAST_FILES if amount.in_order else 0,
        )
    return shard_needs(
        layout,
        pending,
        in_order=amount.in_order or _reads_in_order(layout, amount, size, options),
        keeps_size=options.reencode is None or not options.reencode.may_shrink,
    )


def _count_shards(layout: Layout, split: str, count: int) -> int:
    """The shards of a split cut into ``count`` that have their final names."""
    names = [parse_shard_name(name) for name in layout.find_shards((split,))]
    return sum(name is not None and name[2] == count for name in names)


def _reads_in_order(layout: Layout, amount: _Amount, size: int, options: ConvertOptions) -> bool:
    """Whether convert will choose to read an archive in file order."""
    if amount.source and amount.source.is_unpacked:
        return False
    place = amount.source.path if amount.source else layout.own_raw_dir
    return is_pass_better(place, size, options)
