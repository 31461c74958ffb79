"""What tests of whole sets share: a converted set,
and the records of its shards read and written again.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from made_tars import save

from imagenet_prep import ConvertOptions, Layout, annotate, convert, make_engine, report
from imagenet_prep.demo import photographs
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.ilsvrc2012.official_folders import ImageFolders
from imagenet_prep.ilsvrc2012.official_tars import OfficialTar
from imagenet_prep.model import Engine, Item, Silent
from imagenet_prep.recipes.recipe_dataset import RecipeDataset
from imagenet_prep.sources.catalog import Catalog
from imagenet_prep.state.journal import seal as sealed_as
from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord import inception
from imagenet_prep.tfrecord.example import BytesList, Feature, FloatList, Int64List

ENGINE = make_engine("threads", 2)
PART = ConvertOptions(train_shards=8, validation_shards=8, allow_incomplete=True)


FLOWERS = ("daisy", "dandelion", "rose", "sunflower", "tulip")


def make_flowers(folder: Path, per_class: int, names: Sequence[str] = FLOWERS) -> Path:
    """Class folders of small JPEGs."""
    for number in range(len(names) * per_class):
        save(folder / names[number % len(names)] / f"{number:04d}.jpg", photographs.tiny(number))
    return folder


def write_lists(made: RecipeDataset) -> None:
    """The manifest_file that a recipe names, as convert writes it."""
    for path, content in made.cut().lists.items():
        save(path, content)


def converted(folder: Path, source: MadeSet, options: ConvertOptions = PART) -> Layout:
    """A DATA_DIR with its own copies of the archives, and the shards that convert made of them."""
    layout = Layout(folder)
    layout.raw_dir.mkdir(parents=True)
    for archive in source.archives.values():
        shutil.copy2(archive, layout.raw_dir)
    convert(layout, ENGINE, options)
    return layout


def annotated(folder: Path, source: MadeSet, options: ConvertOptions = PART) -> Layout:
    """A DATA_DIR with shards of a made set that know its boxes; raw data stays where it is."""
    layout = Layout(folder, raw=source.archives["train"].parent)
    annotate(layout, ENGINE)
    convert(layout, ENGINE, options)
    return layout


def reported(folder: Path, source: MadeSet, options: ConvertOptions) -> Layout:
    """Such a DATA_DIR with the page about its shards."""
    annotated(folder, source, options)
    report(Layout(folder), ENGINE)
    return Layout(folder)


def read_catalog(path: Path, split: str, engine: Engine) -> Catalog:
    """All images of a split in its official archive or its folder."""
    source = ImageFolders(path, split) if path.is_dir() else OfficialTar(path, split)
    return source.catalog(engine, Silent())


def catalog_rows(catalog: Catalog, *, items: bool = True) -> list[tuple[Any, ...]]:
    """Every row of a table: where it lies, and what goes into its record."""
    return [
        (catalog.row(row), catalog.container(row), catalog.item(row) if items else None)
        for row in range(len(catalog))
    ]


def copied(layout: Layout, folder: Path) -> Layout:
    """A test's own copy of a DATA_DIR."""
    return Layout(Path(shutil.copytree(layout.data_dir, folder)))


def data_of(path: Path) -> list[bytes]:
    """The data of each record of an undamaged shard."""
    return [bytes(record.data) for record in tfrecord.iter_records(memoryview(path.read_bytes()))]


def write(path: Path, records: Iterable[bytes]) -> None:
    """A shard of these records, soundly framed."""
    framed = (
        (header, data, footer) for data in records for header, footer, _ in [tfrecord.frame(data)]
    )
    path.write_bytes(b"".join(part for record in framed for part in record))


def flip(path: Path, position: int) -> None:
    """Flip a bit of a file; of its last byte if ``position`` is -1."""
    content = bytearray(path.read_bytes())
    content[position] ^= 1
    path.write_bytes(content)


def edit_manifest(layout: Layout, change: Callable[[dict[str, Any]], object]) -> None:
    """Change what a manifest says, and seal it again."""
    value = json.loads(layout.manifest_path.read_bytes())
    value.pop("crc", None)
    change(value)
    value["crc"] = sealed_as(value)
    layout.manifest_path.write_text(json.dumps(value, indent=2, sort_keys=True) + "\n")


def one_more(value: dict[str, Any], key: str, by: int = 1) -> None:
    """Change a number in its place."""
    value[key] += by


def inception_features(item: Item, width: int, height: int, encoded: bytes) -> dict[str, Feature]:
    """The features of one record, ``width`` and ``height`` in pixels;
    what ``record_parts`` encodes, spelled out.
    """
    boxes = item.boxes
    return {
        "image/encoded": BytesList((encoded,)),
        "image/height": Int64List((height,)),
        "image/width": Int64List((width,)),
        "image/colorspace": BytesList((inception.COLORSPACE,)),
        "image/channels": Int64List((inception.CHANNELS,)),
        "image/format": BytesList((inception.FORMAT,)),
        "image/class/label": Int64List((item.label,)),
        "image/class/synset": BytesList((item.wnid.encode(),)),
        "image/class/text": BytesList((item.text.encode(),)),
        "image/filename": BytesList((item.filename.encode(),)),
        "image/object/bbox/xmin": FloatList(tuple(box.xmin for box in boxes)),
        "image/object/bbox/xmax": FloatList(tuple(box.xmax for box in boxes)),
        "image/object/bbox/ymin": FloatList(tuple(box.ymin for box in boxes)),
        "image/object/bbox/ymax": FloatList(tuple(box.ymax for box in boxes)),
        "image/object/bbox/label": Int64List((item.label,) * len(boxes)),
    }
