"""Targets that parse data: archives, images, arrays, texts that people write, records."""

from __future__ import annotations

import functools
import io
import json
import zlib
from contextlib import suppress
from itertools import pairwise
from pathlib import Path

import mutations
from target import HOME, SHARD, Here, file_of, target

from imagenet_prep import records
from imagenet_prep.checks.examiner import PromiseExaminer
from imagenet_prep.checks.shard_check import ShardCheck
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.ilsvrc2012 import boxes
from imagenet_prep.ilsvrc2012.annotation_xml import AnnotationFault, parse_annotation
from imagenet_prep.ilsvrc2012.record_check import ImageNetExaminer
from imagenet_prep.images import arrays, jpeg, png, rasters
from imagenet_prep.images import prepare as images
from imagenet_prep.images.jpeg import ImageError
from imagenet_prep.images.pixels import Reencode
from imagenet_prep.reading.shard import Shard
from imagenet_prep.recipes import columns, labels_file, rules, table_rows, typed_values
from imagenet_prep.recipes.classes import given_classes
from imagenet_prep.recipes.recipe_file import RecipeFile, read_recipe
from imagenet_prep.reporting import lenient
from imagenet_prep.sources import patterns, zip_entries
from imagenet_prep.sources import tar_members as tars
from imagenet_prep.sources.file_lists import read_file_list
from imagenet_prep.sources.tars import list_tars
from imagenet_prep.stages.annotate import annotate
from imagenet_prep.stages.show import show
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord import compression as compressed
from imagenet_prep.tfrecord import example as examples
from imagenet_prep.tfrecord import example as sequences
from imagenet_prep.tfrecord.framing import FramingError
from imagenet_prep.tfrecord.inception_reader import RecordError, read_features, read_record

# archives -----------------------------------------------------------------------------------------


@target(limit=16_384, mutate=mutations.tar)
def tar(data: bytes) -> None:
    """A tar in place, each member of it a tar again;
    and the same bytes as a stream: both see the same.
    """
    view = memoryview(data)
    with suppress(tars.TarFault):
        for _, offset, length in tars.iter_members(view, 0, len(view)):
            assert offset >= 512
            assert offset + length <= len(data)
            with suppress(tars.TarFault):
                for _, inner, size in tars.iter_members(view, offset, offset + length):
                    assert offset + 512 <= inner
                    assert inner + size <= offset + length


@target(limit=16_384, mutate=mutations.tar)
def tar_stream(data: bytes) -> None:
    """A tar as a stream, against the same bytes in place:
    the same members with the same content, or a fault.
    """
    try:
        found = list(tars.stream_members(io.BytesIO(data), limit=len(data)))
    except tars.TarFault:
        found = None
    with suppress(tars.TarFault):
        in_place = [
            (name, data[offset : offset + size])
            for name, offset, size in tars.iter_members(data, 0, len(data))
        ]
        assert found == in_place
    with suppress(tars.TarFault):
        kept = sum(
            len(content)
            for _, content in tars.stream_members(io.BytesIO(data), limit=1 << 16, keep=100)
        )
        assert kept <= 100 * len(data)


@target(limit=16_384, mutate=mutations.tar)
def tar_of_a_recipe(data: bytes) -> None:
    """A tar that a recipe names: no name of it leads out."""
    path = file_of(data, "input.tar")
    with suppress(InputError):
        for name in list_tars([path], Here(), folder_each=True).names:
            assert ".." not in name.split("/")
            assert not name.startswith("/")


@target(limit=16_384, mutate=mutations.tar)
def annotation_archive(data: bytes) -> None:
    """An archive of annotations, through annotate."""
    path = file_of(data, "boxes.tar")
    with suppress(InputError):
        annotate(Layout(HOME.path / "boxes"), Here(), boxes=path)


@target(limit=16_384, words="PK\x01\x02 PK\x03\x04 PK\x05\x06 PK\x06\x06 PK\x06\x07")
def zip_directory(data: bytes) -> None:
    """A zip: every entry lies before the directory, none over another,
    and what is read of it has its CRC-32.
    """
    with suppress(zip_entries.ZipFault):
        spans = []
        for name, address, length in zip_entries.iter_entries(data):
            entry = zip_entries.entry_at(data, address)
            assert (entry.name, entry.size) == (name, length)
            spans.append((entry.local, entry.local + 30 + len(name) + entry.packed))
            assert spans[-1][1] <= address
            with suppress(zip_entries.ZipFault):
                content = zip_entries.read_entry(data, entry)
                assert len(content) == length
                assert zlib.crc32(content) == entry.crc
        spans.sort()
        assert all(stop <= start for (_, stop), (start, _) in pairwise(spans))


# images and arrays --------------------------------------------------------------------------------


@target(limit=16_384)
def jpeg_markers(data: bytes) -> None:
    """Size and ends of a JPEG, and how it should be turned."""
    with suppress(ImageError):
        header = jpeg.read_header(data)
        assert 0 < header.width * header.height <= jpeg.MAX_PIXELS
        jpeg.check_ends(data)


@target()
def exif_orientation(data: bytes) -> None:
    """How a JPEG should be turned: an answer for anything."""
    assert 1 <= images.read_orientation(data) <= 8


@target(mutate=mutations.png)
def png_header(data: bytes) -> None:
    """Size and end of a PNG."""
    with suppress(ImageError):
        header = png.read_header(data)
        assert 0 < header.width * header.height <= jpeg.MAX_PIXELS
        png.check_ends(data)


@target(
    limit=16_384,
    mutate=mutations.png,
    words="II* MM IHDR PLTE tRNS IDAT IEND iCCP zTXt eXIf Exif JFIF Adobe",
)
def image_samples(data: bytes) -> None:
    """The samples of a PNG, TIFF or JPEG."""
    with suppress(ImageError):
        samples = rasters.decode_raster(data)
        assert samples.ndim == 3
        assert samples.dtype.name in ("uint8", "uint16")


@target(
    limit=16_384,
    mutate=mutations.png,
    words="IHDR PLTE tRNS IDAT IEND iCCP zTXt eXIf Exif JFIF Adobe",
)
def image_prepared(data: bytes) -> None:
    """An image for a record, decoded to prove it whole, and encoded again."""
    for how in (None, Reencode(resize=16, max_side=64)):
        with suppress(ImageError):
            prepared = images.prepare(data, "decode", how)
            assert prepared.width > 0
            assert prepared.height > 0
            if how is not None:
                assert max(prepared.width, prepared.height) <= 64


@target(
    mutate=mutations.npz, words="NUMPY descr fortran_order shape True False <f8 |u1 >i2 |O (1,) PK"
)
def array(data: bytes) -> None:
    """An .npy or .npz, and what records hold of it."""
    for key in (None, "a"):
        with suppress(arrays.ArrayError):
            value = arrays.parse_array(data, key)
            assert value.nbytes <= arrays.MAX_BYTES
            arrays.raw_bytes(value)
            arrays.float_bytes(value)
            arrays.rescale(value, 0, 1)
            arrays.plane(value.shape)


# texts that people write --------------------------------------------------------------------------


def _labels(data: bytes, form: table_rows.Form) -> None:
    with suppress(table_rows.LabelsFault):
        table = labels_file.parse_labels(data, form)
        for values in (*([] if table.labels is None else [table.labels]), *table.columns.values()):
            for kind in (None, "bytes", "int64", "float"):
                with suppress(table_rows.LabelsFault):
                    typed_values.typed(values, table.lines, table.is_text, kind)


@target()
def labels_lines(data: bytes) -> None:
    """A file of path:label lines."""
    _labels(data, "lines")


@target(words="path label file filename image class")
def labels_csv(data: bytes) -> None:
    """A CSV of labels."""
    _labels(data, "csv")


@target(words="path label file filename image class")
def labels_tsv(data: bytes) -> None:
    """A TSV of labels."""
    _labels(data, "tsv")


@target(mutate=mutations.json_line, words="path label null true NaN Infinity")
def labels_jsonl(data: bytes) -> None:
    """Labels as JSON lines."""
    _labels(data, "jsonl")


@target(limit=1024, words="** */ [! [^ ] - ? / .")
def file_pattern(data: bytes) -> None:
    """A pattern, and in its second line a path to match."""
    pattern, _, path = data.decode("utf-8", "surrogateescape").partition("\n")
    patterns.split_pattern(pattern)
    with suppress(ValueError):
        patterns.compile_pattern(pattern).fullmatch(path)


@target(
    words=(
        "<object> </object> <bndbox> <xmin> <ymin> <xmax> <ymax> <name> <size> <width> "
        "<height> <!DOCTYPE <![CDATA["
    )
)
def annotation_xml(data: bytes) -> None:
    """An annotation: every box lies within its image and has an area."""
    with suppress(AnnotationFault):
        for box in parse_annotation(data).boxes:
            assert 0 <= box.xmin <= box.xmax <= 1
            assert 0 <= box.ymin <= box.ymax <= 1


@target()
def boxes_table(data: bytes) -> None:
    """The CSV of boxes."""
    with suppress(boxes.BoxesFault):
        table = boxes.parse_boxes(data)
        for name in table:
            assert all(
                0 <= box.xmin <= box.xmax <= 1 and 0 <= box.ymin <= box.ymax <= 1
                for box in table[name]
            )


@target()
def file_list(data: bytes) -> None:
    """A manifest of files, as TensorFlow's recipes have it: no name of it leads out."""
    path = file_of(data)
    with suppress(InputError):
        for name in read_file_list(path, Path("/data/set")).names:
            assert ".." not in name.split("/")
            assert not name.startswith("/")


@target(
    limit=8192,
    mutate=mutations.yaml_value,
    words="source: folders: files: labels: record: splits: shards: images: from: type:",
)
def recipe(data: bytes) -> None:
    """A recipe: read, its keys compared with each other, its features listed."""
    path = file_of(data, "recipe.yaml")
    with suppress(UsageError):
        file = read_recipe(path)
        rules.check_rules(file)
        if isinstance(file.recipe.record, dict):
            columns.wishes(file)


@target()
def class_file(data: bytes) -> None:
    """The file of classes that a recipe names."""
    file_of(data, "classes.txt")
    with suppress(InputError, UsageError):
        given_classes(_recipe_with_classes(), HOME.path, 0)


@functools.cache
def _recipe_with_classes() -> RecipeFile:
    return read_recipe(
        file_of(b"source: {folders: images}\nclasses: classes.txt\n", "classes.yaml")
    )


# records ------------------------------------------------------------------------------------------


@target()
def example(data: bytes) -> None:
    """A tf.train.Example: encoded again, it says the same."""
    with suppress(examples.ExampleError):
        encoded = examples.encode_example(examples.parse_features(data))
        assert examples.encode_example(examples.parse_features(encoded)) == encoded


@target()
def sequence_example(data: bytes) -> None:
    """A tf.train.SequenceExample: encoded again, it says the same."""
    with suppress(examples.ExampleError):
        sequences.has_feature_lists(data)
        encoded = sequences.encode_sequence_example(*sequences.parse_sequence_example(data))
        assert (
            sequences.encode_sequence_example(*sequences.parse_sequence_example(encoded)) == encoded
        )


@target(words="image/encoded image/class/label image/object/bbox/xmin image/filename RGB JPEG")
def inception_record(data: bytes) -> None:
    """A record of 2016's form: the quick way to read it says what the general one says."""
    try:
        general = read_features(examples.parse_example(data))
    except (examples.ExampleError, RecordError):
        general = None
    with suppress(examples.ExampleError, RecordError):
        quick = read_record(memoryview(data))
        assert general is not None
        assert repr(quick[:-2]) == repr(general[:-2])
        assert (quick.encoded, quick.traits) == (general.encoded, general.traits)


@target(mutate=mutations.records)
def tfrecord_framing(data: bytes) -> None:
    """The records of a TFRecord file, as the report, verify and others follow them."""
    view = memoryview(data)
    with suppress(FramingError):
        for record in compressed.iter_records(view, "none"):
            assert record.offset + 16 + len(record.data) <= len(data)
    with suppress(FramingError):
        for _, record in Shard(Path("shard"), view, compressed.detect(view)).unchecked():
            lenient.look(record)


@target(mutate=mutations.compressed_records)
def compressed_framing(data: bytes) -> None:
    """The records of a TFRecord file that may be compressed."""
    view = memoryview(data)
    with suppress(FramingError):
        for record in compressed.iter_records(view, compressed.detect(view)):
            assert record.intact in (True, False)


@target(mutate=mutations.records)
def record_seen(data: bytes) -> None:
    """A record as the report sees it: an answer for anything."""
    names = lenient.names_of({"record": {"a": {"from": "encoded"}, "b": {"from": "label"}}})
    for seen in (lenient.look(memoryview(data)), lenient.look(memoryview(data), names)):
        for box in seen.boxes if seen else ():
            assert box.is_inside in (True, False)


@target(mutate=mutations.records)
def records_read(data: bytes) -> None:
    """A file as records.read and records.read_sequences give it, and as show prints it."""
    path = file_of(data)
    for read in (records.read, records.read_sequences):
        with suppress(InputError, UsageError):
            for _ in read(path, text=len(data) % 2 == 0, lists=len(data) % 4 < 2):
                pass
    with suppress(InputError, UsageError):
        for shown in show(path):
            shown.lines()
            json.dumps(shown.as_dict())


@target(limit=16_384, mutate=mutations.records)
def shard(data: bytes) -> None:
    """A shard in the place of one that was made here:
    verify's worker names a problem, unless it is that one.
    """
    layout = HOME.layout
    path, view = layout.shard_path(SHARD), memoryview(data)
    report = ShardCheck(layout, ImageNetExaminer(), HOME.infos).check(Shard(path, view, "none"))
    assert report.problems or data == path.read_bytes()
    if report.is_whole:
        promise = {"label": {"kind": "int64", "optional": False, "values": 1}}
        examiner = PromiseExaminer(promise, decode=True)
        ShardCheck(layout, examiner).check(Shard(path, view, compressed.detect(view)))
