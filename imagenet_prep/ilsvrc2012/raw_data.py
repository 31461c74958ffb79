"""find_source: the copy in the raw folder that holds a split; the state of the stages before
convert.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

from msgspec.structs import replace

from imagenet_prep.escaping import OptionValues, command, quoted
from imagenet_prep.fetch import BASE_URL
from imagenet_prep.hints import Hint
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.box_search import find_annotations
from imagenet_prep.ilsvrc2012.class_parts import Part
from imagenet_prep.ilsvrc2012.official import ImageSource, finished
from imagenet_prep.ilsvrc2012.official_folders import ImageFolders
from imagenet_prep.ilsvrc2012.official_tars import ClassTars, OfficialTar
from imagenet_prep.model import Engine, Progress, StageStatus, State
from imagenet_prep.shards.consumption import Consumption
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.state.manifest import seen_digests
from imagenet_prep.storage.files import load_json, names_in, open_file, scan
from imagenet_prep.storage.layout import RAW_NAME, Layout
from imagenet_prep.storage.location import AnyPath, local_or_none, real_path
from imagenet_prep.text import number_of


class ConsumedImages(ImageSource, frozen=True):
    """A split known from its records; ``path`` is where its first file was."""

    consumption: Consumption

    @classmethod
    def find(cls, layout: Layout, split: str) -> ConsumedImages | None:
        """The record of a split."""
        if not layout.reads_own_raw:
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
        first_file = self.consumption.files[0]
        if first_file.digests.get("md5") != published:
            return ""
        return published

    def catalog(self, engine: Engine, progress: Progress) -> Catalog:
        """All images as recorded; none can be read."""
        return finished([self.consumption.catalog()], self.split)


def data_dir_above(layout: Layout) -> AnyPath | None:
    """The folder above a DATA_DIR that is itself a folder of raw data; None if it is not."""
    folder = layout.data_dir
    if folder.name != RAW_NAME:  # it may be "." or a link
        folder = real_path(folder)
    if folder.name != RAW_NAME or layout.raw == layout.data_dir or layout.own_raw_dir.is_dir():
        return None
    above = Layout(folder.parent)
    has_raw_data = any(
        find_source(above, split) or find_annotations(above, split) for split in facts.SPLITS
    )
    return folder.parent if has_raw_data else None


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


def where_annotated(layout: Layout) -> Layout | None:
    """The layout with the folder of raw data that annotate read, if it has all images, and no other
    one is named.
    """
    if layout.raw is not None:
        return None
    entries = load_json(layout.annotate_path)
    entry = entries.get(facts.TRAIN) if isinstance(entries, dict) else None
    raw = entry.get("raw") if isinstance(entry, dict) else None
    if not isinstance(raw, str) or not raw:
        return None
    annotated = replace(layout, raw=raw)
    has_all = all(find_source(annotated, split) for split in facts.SPLITS)
    return annotated if has_all else None


def hint_to_own_raw_data(layout: Layout) -> str:
    """The advice if --raw names a DATA_DIR in place of its raw-data, or a folder without images
    while DATA_DIR/raw-data has some; or "".
    """
    if hint := hint_to_raw_data_below(layout, find_source):
        return hint
    without_raw = replace(layout, raw=None)
    if layout.reads_own_raw or not any(find_source(without_raw, split) for split in facts.SPLITS):
        return ""
    return f"name a folder that holds them with --raw, such as {layout.own_raw_dir}"


def hint_to_raw_data_below(layout: Layout, find: Callable[[Layout, str], object | None]) -> str:
    """The advice if --raw names a DATA_DIR in place of its raw-data, where ``find`` finds a split;
    or "".
    """
    if layout.raw is None:
        return ""
    below = replace(layout, raw=layout.raw / RAW_NAME)
    if not any(find(below, split) for split in facts.SPLITS):
        return ""
    return Hint(f"run the same command with --raw {quoted(str(below.raw))}")


def how_to_get(layout: Layout, key: str) -> Hint:
    """How to get an official archive, by its key: the command, or where to put it."""
    if local_or_none(layout.data_dir) is None:  # download writes to a local folder
        return Hint(f"put {facts.ARCHIVES[key].filename} into {layout.raw_dir}")
    return Hint(command("download", layout.data_dir, (("only", key),)))


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
    if isinstance(copy, ImageFolders) and copy.split == facts.TRAIN:
        return _count_classes(copy.path) < facts.CLASSES
    return False


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
    for copy in find_copies(layout, split):
        if not copy.is_unpacked:
            return copy
    return None


def checked_md5(layout: Layout, archive: AnyPath) -> str:
    """The verified MD5 of an archive, if the file is unchanged since; else ""."""
    return seen_digests(layout, archive.name, archive).get("md5", "")


# state of the stages before convert ---------------------------------------------------------------


def stages_before(layout: Layout, classes: Mapping[str, int]) -> tuple[StageStatus, ...]:
    """The state of download, untar and annotate, by names and sizes;
    ``classes`` gives the folders per split.
    """
    return _download(layout), _untar(layout, classes), _annotate(layout)


def _download(layout: Layout) -> StageStatus:
    archive_count = len(facts.DEFAULT_ARCHIVES)
    present = _present_archives(layout)
    begun = _count_begun(layout) if layout.reads_own_raw else 0
    sources = _present_sources(layout)
    damage = next((source.damage for source in sources if source.damage), "")
    copies = _other_copies(sources)
    details: list[str] = []
    if present or begun or not copies:  # another copy requires none of the archives
        details.append(_archives_text(layout, present, archive_count, begun))
    if copies:
        details.append(f"images in {' and '.join(copies)}{damage}")
    inputs = len(sources) + bool(find_annotations(layout, facts.TRAIN))
    state = "partly" if damage else _state(inputs, archive_count, begun > 0)
    return StageStatus("download", state, "; ".join(details))


def _present_archives(layout: Layout) -> list[AnyPath]:
    """The archives that download fetches by default, and that are there."""
    paths: list[AnyPath] = []
    for key in facts.DEFAULT_ARCHIVES:
        archive = facts.ARCHIVES[key]
        is_of_split = key in facts.SPLITS
        path = layout.archive_path(archive) if is_of_split else layout.extra_path(archive)
        if path.is_file():
            paths.append(path)
    return paths


def _count_begun(layout: Layout) -> int:
    """The number of archives whose download was started and is not complete."""
    tars = _count(layout.raw_partial_dir, ".tar.part")
    return tars + _count(layout.raw_partial_dir, ".gz.part")


def _other_copies(sources: Sequence[ImageSource]) -> list[str]:
    """The names of copies other than the official tars, each once."""
    copies = [source.words for source in sources if not isinstance(source, OfficialTar)]
    return list(dict.fromkeys(copies))


def _archives_text(layout: Layout, present: Sequence[AnyPath], archives: int, begun: int) -> str:
    """The numbers of archives that are there, checked and started."""
    checked = sum(bool(checked_md5(layout, path)) for path in present)
    started = f", {begun} started" if begun else ""
    return f"{len(present)} of {archives} archives, {checked} of them checked{started}"


def _present_sources(layout: Layout) -> list[ImageSource]:
    """The images of each split that is there."""
    sources = [find_source(layout, split) for split in facts.SPLITS]
    return [source for source in sources if source is not None]


def fetched_from(layout: Layout) -> OptionValues:
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
    folders = sum(counts.values())
    if not layout.reads_own_raw:  # they may have other images than --raw
        words = ", ".join(f"{count:,} {split} class folders" for split, count in counts.items())
        detail = f"{words} in {layout.own_raw_dir}, which --raw replaces (optional)"
        return StageStatus("untar", "unknown" if folders else "not started", detail)
    expected_folders = sum(classes.values())
    state = _state(folders, expected_folders)
    details: list[str] = []
    for split, count in counts.items():
        details.append(f"{count:,} of {classes[split]:,} {split} class folders")
    return StageStatus("untar", state, f"{', '.join(details)} (optional)")


def _count_classes(folder: AnyPath) -> int:
    """The number of class folders in a folder."""
    if not folder.is_dir():
        return 0
    classes = 0
    with scan(folder) as entries:
        for entry in entries:
            if facts.is_wnid(entry.name) and entry.is_dir():
                classes += 1
    return classes


def _annotate(layout: Layout) -> StageStatus:
    if not layout.boxes_csv.is_file():
        return StageStatus("annotate", "not started", "no boxes")
    boxes = 0
    with open_file(layout.boxes_csv) as file:
        while chunk := file.read(1 << 20):
            boxes += chunk.count(b"\n")
    return StageStatus("annotate", "done", number_of(boxes, "box", "boxes"))


def _state(done: int, expected: int, begun: bool = False) -> State:
    if expected and done >= expected:
        return "done"
    return "partly" if done or begun else "not started"


def _count(folder: AnyPath, suffix: str) -> int:
    """The number of files in a folder whose names end so; 0 without the folder."""
    if not folder.is_dir():
        return 0
    return sum(name.endswith(suffix) for name in names_in(folder))
