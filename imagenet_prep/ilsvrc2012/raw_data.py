"""How far the stages before convert have come: which archives, folders and boxes are there."""

from __future__ import annotations

from collections.abc import Mapping

from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.ilsvrc2012.finding import find_annotations, find_source
from imagenet_prep.ilsvrc2012.kaggle import damage_of
from imagenet_prep.ilsvrc2012.official import OfficialTar
from imagenet_prep.model import StageStatus, State
from imagenet_prep.state.checked import seen_digests
from imagenet_prep.storage.files import names_in, open_file, scan
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import AnyPath
from imagenet_prep.text import number_of


def stages_before(layout: Layout, classes: Mapping[str, int]) -> tuple[StageStatus, ...]:
    """Download, untar, annotate: told by names and sizes alone; of ``classes`` by split there are to be folders."""
    return _download(layout), _untar(layout, classes), _annotate(layout)


def _download(layout: Layout) -> StageStatus:
    archives = [facts.ARCHIVES[key] for key in facts.DEFAULT_ARCHIVES]
    present = [archive for archive in archives if layout.archive_path(archive).is_file()]
    checked = sum(bool(checked_md5(layout, layout.archive_path(archive))) for archive in present)
    begun = _count(layout.raw_partial_dir, ".tar.part") + _count(layout.raw_partial_dir, ".gz.part")
    details = [f"{len(present)} of {len(archives)} archives, {checked} of them checked"]
    if begun:
        details[0] += f", {begun} begun"
    sources = [find_source(layout, split) for split in facts.SPLITS]
    copies = [source.words for source in sources if source and not isinstance(source, OfficialTar)]
    damage = damage_of(sources)
    if copies:
        details.append(f"images in {' and '.join(dict.fromkeys(copies))}{damage}")
    if copies and not (present or begun):
        del details[0]  # who has another copy needs none of them
    found = sum(map(bool, (*sources, find_annotations(layout, facts.TRAIN))))
    return StageStatus("download", "partly" if damage else _state(found, len(archives), begun > 0), "; ".join(details))


def checked_md5(layout: Layout, archive: AnyPath) -> str:
    """The MD5 that an archive was compared with, if the file was not touched since; else ""."""
    return seen_digests(layout, archive.name, archive).get("md5", "")


def _untar(layout: Layout, classes: Mapping[str, int]) -> StageStatus:
    counts = {split: _count_classes(layout.images_dir(split)) for split in facts.SPLITS}
    words = (f"{count:,} of {classes[split]:,} {split} class folders" for split, count in counts.items())
    return StageStatus("untar", _state(sum(counts.values()), sum(classes.values())), f"{', '.join(words)} (optional)")


def _count_classes(folder: AnyPath) -> int:
    if not folder.is_dir():
        return 0
    with scan(folder) as entries:
        return sum(facts.is_wnid(entry.name) and entry.is_dir() for entry in entries)


def _annotate(layout: Layout) -> StageStatus:
    if not layout.boxes_csv.is_file():
        return StageStatus("annotate", "not begun", "no boxes")
    with open_file(layout.boxes_csv) as file:
        boxes = sum(chunk.count(b"\n") for chunk in iter(lambda: file.read(1 << 20), b""))
    return StageStatus("annotate", "done", number_of(boxes, "box", "boxes"))


def _state(done: int, expected: int, begun: bool = False) -> State:
    if expected and done >= expected:
        return "done"
    return "partly" if done or begun else "not begun"


def _count(folder: AnyPath, suffix: str) -> int:
    return sum(name.endswith(suffix) for name in names_in(folder)) if folder.is_dir() else 0
