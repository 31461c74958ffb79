"""Every export is read by its framework: name, class from 0,
name of the class, boxes and bytes of each image.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
import tf_fixture
from existing import existing
from made_boxes import photograph
from made_exports import RECIPES, Sample, make_set, samples_of
from made_sets import ENGINE
from made_tars import save
from test_docs import blocks
from torchvision_operators import import_torchvision

import imagenet_prep
from imagenet_prep import Layout, convert, export
from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.records import ShardWriter

pytestmark = [pytest.mark.once, pytest.mark.tensorflow, pytest.mark.torch]

tf = tf_fixture.tf

PAGE = (Path(__file__).parents[1] / "docs" / "export.md").read_text()

Facts = list[dict[str, Any]]
"""The values of each image that a reader gives."""


class Exports:
    """The awkward sets and their exports, made when a test asks."""

    def __init__(self, folder: Path, sound: Layout) -> None:
        self.folder = folder
        self.layouts = {"imagenet": sound}
        self.outs: dict[tuple[str, str], Path] = {}

    def layout(self, name: str) -> Layout:
        """The shards of a set."""
        if name not in self.layouts:
            self.layouts[name] = make_set(name, self.folder / name)
        return self.layouts[name]

    def out(self, name: str, container: str) -> Path:
        """The export of a set."""
        if (name, container) not in self.outs:
            out = self.folder / "exports" / name / container
            self.outs[name, container] = export(self.layout(name), container, out, ENGINE).out
        return self.outs[name, container]

    def splits(self, name: str) -> list[str]:
        """The splits of a set, empty ones too."""
        shards = Path(str(self.layout(name).data_dir)).glob("*-of-*")
        return sorted({path.name.split("-")[0] for path in list(shards)})


@pytest.fixture(scope="module")
def exports(tmp_path_factory: pytest.TempPathFactory, sound: Layout) -> Iterator[Exports]:
    """All sets; datasets keeps its cache with them, and asks no server."""
    folder = tmp_path_factory.mktemp("exports")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HF_HOME", str(folder / "huggingface"))
        patch.setenv("HF_HUB_OFFLINE", "1")
        yield Exports(folder, sound)


# readers ------------------------------------------------------------------------------------------


def by_torchvision(out: Path, split: str) -> Facts:
    """ImageFolder, with the numbers of classes.json as docs/export.md shows."""
    import_torchvision()
    from torchvision.datasets import ImageFolder

    data = ImageFolder(
        str(out / split), allow_empty=True, loader=lambda path: Path(path).read_bytes()
    )
    if (out / "classes.json").exists():
        numbers = json.loads((out / "classes.json").read_bytes())
        data.target_transform = lambda label: numbers[data.classes[label]]
    facts = []
    for number, (path, label) in enumerate(data.samples):
        encoded, index = data[number]
        told = {"file": Path(path).name, "class_name": data.classes[label]}
        facts.append({**told, "encoded": encoded, "index": index})
    return facts


def by_timm(out: Path, split: str) -> Facts:
    """timm's reader of folders, with the class_map.txt of the split."""
    import_torchvision()
    from timm.data import create_dataset

    data = create_dataset("", root=str(out / split), class_map="class_map.txt")
    facts = []
    for number, (file, index) in enumerate(data.reader):
        with file:
            facts.append(
                {
                    "file": data.filename(number, basename=True),
                    "index": index,
                    "encoded": file.read(),
                }
            )
    return facts


def by_timm_from_tars(out: Path, split: str) -> Facts:
    """timm's reader of tars, which gives pixels and classes."""
    import_torchvision()
    from timm.data import create_dataset

    data = create_dataset("wds/", root=str(out), split=split, is_training=False, batch_size=1)
    return [{"index": index} for _, index in data]


def by_timm_from_tfds(out: Path, split: str) -> Facts:
    """timm's reader of TFDS; labels are as in the records, from 1."""
    import_torchvision()
    from timm.data import create_dataset

    (info,) = existing(out, "*/*/dataset_info.json")
    keys = {"input_key": "image/encoded", "target_key": "image/class/label"}
    name = f"tfds/{info.parent.parent.name}:{info.parent.name}"
    data = create_dataset(name, root=str(out), split=split, is_training=False, batch_size=1, **keys)
    return [{"index": int(label) - 1} for _, label in data]


def by_webdataset(out: Path, split: str) -> Facts:
    """The members of each sample as they are."""
    import webdataset

    tars = [str(path) for path in existing(out, f"*{split}-*.tar")]
    facts = []
    for sample in webdataset.WebDataset(tars, shardshuffle=False, empty_check=False):
        ending = next(ending for ending in IMAGES if ending in sample)
        index = int(sample["cls"]) if "cls" in sample else None
        facts.append(
            {"encoded": sample[ending], "index": index, **told_by_json(json.loads(sample["json"]))}
        )
    return facts


def by_datasets_from_tars(out: Path, split: str) -> Facts:
    """Hugging Face's load_dataset of the folder, which has a card."""
    data = load_folder(out, split)
    names = getattr(data.features.get("cls"), "names", None)
    facts = []
    for row in data:
        if names and row["cls"] is not None:
            assert names[row["cls"]] == row["json"]["wnid"]
        (image,) = [row[ending] for ending in IMAGES if row.get(ending)]
        facts.append(
            {"encoded": image["bytes"], "index": row.get("cls"), **told_by_json(row["json"])}
        )
    return facts


def by_datasets_that_guess(out: Path, split: str) -> Facts:
    """load_dataset of the tars alone: types are those of the first records."""
    from datasets import Image, load_dataset

    tars = [str(path) for path in existing(out, f"*{split}-*.tar")]
    data = load_dataset(
        "webdataset", data_files={split: tars}, cache_dir=str(out / "imagenet-prep" / "guessed")
    )[split]
    rows = data.cast_column("jpg", Image(decode=False))
    return [
        {"encoded": row["jpg"]["bytes"], "index": row["cls"], **told_by_json(row["json"])}
        for row in rows
    ]


def by_datasets_from_parquet(out: Path, split: str) -> Facts:
    """load_dataset of the files of a split, with the names that the schema gives to classes."""
    from datasets import Image, load_dataset

    paths = [str(path) for path in existing(out, f"{split}-*.parquet")]
    cache = str(out / "imagenet-prep" / "cache")
    data = load_dataset("parquet", data_files={split: paths}, cache_dir=cache)[split]
    names = getattr(data.features["label"], "names", None)
    facts = []
    for row in data.cast_column("image", Image(decode=False)):
        index = row["label"]
        if names and index is not None:
            assert names[index] == row["wnid"]
        facts.append(told_by_row(row))
    return facts


def by_pyarrow(out: Path, split: str) -> Facts:
    """The rows of all files."""
    return [
        told_by_row(row)
        for path in existing(out, f"{split}-*.parquet")
        for row in pyarrow_rows(path)
    ]


def by_datasets_from_folders(out: Path, split: str) -> Facts:
    """load_dataset of class folders: it numbers the classes by itself."""
    from datasets import Image, load_dataset

    data = load_dataset(
        "imagefolder", data_dir=str(out), cache_dir=str(out / "imagenet-prep" / "cache")
    )[split]
    names = data.features["label"].names
    facts = []
    for row in data.cast_column("image", Image(decode=False)):
        path = Path(row["image"]["path"])
        facts.append(
            {"file": path.name, "class_name": names[row["label"]], "encoded": path.read_bytes()}
        )
    return facts


def by_tfds(out: Path, split: str) -> Facts:
    """TensorFlow Datasets; labels are as in the records, and named."""
    import tensorflow_datasets

    (info,) = existing(out, "*/*/dataset_info.json")
    builder = tensorflow_datasets.builder_from_directory(info.parent)
    decoders = {"image/encoded": tensorflow_datasets.decode.SkipDecoding()}
    features = dict(builder.info.features)
    label = features.get("image/class/label")
    facts = []
    for example in tensorflow_datasets.as_numpy(builder.as_dataset(split=split, decoders=decoders)):
        values = {name: plain(value) for name, value in example.items()}
        number = values.get("image/class/label")
        fact = {"filename": values["image/filename"].decode(), "encoded": values["image/encoded"]}
        if isinstance(label, tensorflow_datasets.features.ClassLabel):
            fact["class_name"] = label.int2str(number)
        facts.append({**fact, "boxes": boxes_in(values), **several_in(values)})
    return facts


def by_grain(out: Path, split: str) -> Facts:
    """Grain's source of ArrayRecords: the bytes of the Examples, read by TensorFlow."""
    import grain
    import tensorflow

    source = grain.sources.ArrayRecordDataSource(
        [str(path) for path in existing(out, f"{split}-*.array_record")]
    )
    facts = []
    for number in range(len(source)):
        feature = tensorflow.train.Example.FromString(source[number]).features.feature
        facts.append({"encoded": feature["image/encoded"].bytes_list.value[0]})
    return facts


IMAGES = ("jpg", "png", "bmp", "webp")
"""The members of samples that are images."""


def load_folder(out: Path, split: str) -> Any:
    """load_dataset of a folder with a card; images as they are."""
    from datasets import Image, load_dataset

    data = load_dataset(str(out), split=split, cache_dir=str(out / "imagenet-prep" / "cache"))
    for name in IMAGES:
        if name in data.features:
            data = data.cast_column(name, Image(decode=False))
    return data


def told_by_json(told: dict[str, Any]) -> dict[str, Any]:
    """The values in the JSON of a sample."""
    boxes = json.loads(told["boxes"]) if "boxes" in told else boxes_in(told)
    return {
        "class_name": told["wnid"],
        "filename": told["filename"],
        "boxes": boxes,
        **several_in(told),
    }


def told_by_row(row: dict[str, Any]) -> dict[str, Any]:
    """The values in a row of a Parquet file."""
    boxes = row["boxes"] if "boxes" in row else boxes_in(row)
    image = {"name": row["image"]["path"], "encoded": row["image"]["bytes"]}
    return {
        **image,
        "index": row["label"],
        "class_name": row["wnid"],
        "boxes": boxes,
        **several_in(row),
    }


def boxes_in(values: Mapping[str, Any]) -> list[list[float]]:
    """The boxes among the features of a record."""
    edges = [
        values.get(f"image/object/bbox/{edge}", []) for edge in ("xmin", "ymin", "xmax", "ymax")
    ]
    return [list(box) for box in zip(*edges, strict=True)]


def several_in(values: Mapping[str, Any]) -> dict[str, Any]:
    """The features that a record may lack, or may have several values of."""
    labels = values.get("image/class/label")
    several = {name: values.get(name) for name in ("scores", "price", "image/object/class/label")}
    return {**several, "labels": labels if isinstance(labels, list) else None}


def plain(value: Any) -> Any:
    """A value of NumPy's as Python's."""
    return value.tolist() if hasattr(value, "tolist") else value


# what they must give ------------------------------------------------------------------------------


def expected(sample: Sample, split: str) -> dict[str, Any]:
    """Everything that a reader can give of a record."""
    folders = sample.name.split("/")
    within = [part for part in folders[:-1] if part not in (split, sample.class_name)]
    return {
        **sample._asdict(),
        "file": "__".join([*within, folders[-1]]),
        "filename": sample.features["image/filename"].decode(),
        **several_in(sample.features),
    }


def in_order(facts: Facts) -> list[str]:
    """Facts as texts, sorted: not every reader keeps the order."""
    return sorted(repr(sorted(fact.items())) for fact in facts)


CAPTIONED = ("captions", "captions and classes")
ALL = ("imagenet", *(name for name in RECIPES if name not in CAPTIONED), "foreign")
LABELLED = ("imagenet", "classes", "gzip", "numbers", "formats", "foreign")
PLAIN = tuple(name for name in ALL if name not in ("gzip", "partly"))

READERS: list[tuple[str, Callable[[Path, str], Facts], tuple[str, ...]]] = [
    ("folders", by_torchvision, LABELLED),
    ("folders", by_timm, ("imagenet", "classes", "gzip", "numbers")),
    ("folders", by_datasets_from_folders, ("classes", "gzip", "numbers", "formats")),
    ("webdataset", by_webdataset, ALL),
    ("webdataset", by_timm_from_tars, ("imagenet", "classes", "numbers")),
    ("webdataset", by_datasets_from_tars, ALL),
    ("webdataset", by_datasets_that_guess, ("classes", "numbers")),
    ("parquet", by_datasets_from_parquet, ALL),
    ("parquet", by_pyarrow, ALL),
    ("tfds", by_tfds, PLAIN),
    ("tfds", by_timm_from_tfds, ("classes",)),
    ("arrayrecord", by_grain, ALL),
]
CASES = [
    pytest.param(container, read, name, id=f"{read.__name__}-{name}")
    for container, read, names in READERS
    for name in names
]


@pytest.mark.parametrize(("container", "read", "name"), CASES)
def test_the_reader_gives_every_record(
    exports: Exports, tf: Any, container: str, read: Callable[[Path, str], Facts], name: str
) -> None:
    """Each record of each split comes once,
    with the values that imagenet-prep's own reader gives.
    """
    out = exports.out(name, container)
    for split in exports.splits(name):
        samples = samples_of(exports.layout(name), split)
        if not samples and read in REFUSE_EMPTY:
            continue
        facts = read(out, split)
        assert len(facts) == len(samples)
        keys = facts[0].keys() if facts else ()
        wanted = [expected(sample, split) for sample in samples]
        assert in_order(facts) == in_order(
            [{key: values[key] for key in keys} for values in wanted]
        )


REFUSE_EMPTY = (by_datasets_from_tars, by_datasets_from_parquet, by_tfds)
"""The readers of libraries that raise an error for an empty split."""


@pytest.mark.parametrize("name", CAPTIONED)
def test_features_keep_their_names(exports: Exports, tf: Any, name: str) -> None:
    """A caption that is called text, a score called label:
    no value of ours takes their place, or that of none.
    """
    samples = samples_of(exports.layout(name), "train")
    wanted = [
        [sample.features.get(feature) for feature in ("text", "filename", "label", "wnid")]
        for sample in samples
    ]
    wanted = [[text.decode(), filename.decode(), *others] for text, filename, *others in wanted]
    out = exports.out(name, "webdataset")
    rows = [*load_folder(out, "train")]
    assert [
        [row["json"][key] for key in ("text", "filename", "label", "wnid")] for row in rows
    ] == wanted
    assert [row["json"]["label"] for row in rows] == [None, 1.0, 0.5, 1.5]
    if name == "captions":
        (shard,) = existing(exports.out(name, "parquet"), "train-*.parquet")
        rows = pyarrow_rows(shard)
        found = [
            [row["text"].decode(), row["filename"].decode(), row["label"], row["wnid"]]
            for row in rows
        ]
        assert found == wanted
    else:
        assert [row["cls"] for row in rows] == [0, 0, 1, 1]
        with pytest.raises(UsageError, match="feature label of the records is not the class label"):
            exports.out(name, "parquet")


def pyarrow_rows(path: Path) -> list[dict[str, Any]]:
    """The rows of a file."""
    from pyarrow import parquet

    rows: list[dict[str, Any]] = parquet.read_table(path).to_pylist()
    return rows


@pytest.mark.parametrize("name", ["objects", "lists"])
def test_labels_in_lists_are_named(exports: Exports, tf: Any, name: str) -> None:
    """The classes of objects, or several of an image:
    Parquet's schema and TFDS give the name of each number.
    """
    import tensorflow_datasets
    from datasets import load_dataset

    layout, feature = (
        exports.layout(name),
        {"objects": "image/object/class", "lists": "image/class"}[name],
    )
    (shard,) = existing(exports.out(name, "parquet"), "train-*.parquet")
    rows = load_dataset("parquet", data_files=str(shard), cache_dir=str(exports.folder / "cache"))[
        "train"
    ]
    (info,) = existing(exports.out(name, "tfds"), "*/*/dataset_info.json")
    features = dict(tensorflow_datasets.builder_from_directory(info.parent).info.features)
    for column in (rows.features[f"{feature}/label"], features[f"{feature}/label"]):
        names = getattr(column, "feature", None) or column[0]
        for sample in samples_of(layout, "train"):
            labels, texts = (sample.features[f"{feature}/{part}"] for part in ("label", "text"))
            assert [names.int2str(label).encode() for label in labels] == texts


def test_tfds_reads_values_that_some_records_lack(exports: Exports, tf: Any) -> None:
    """They are lists of none or one; labels keep their names."""
    import tensorflow_datasets

    (info,) = existing(exports.out("partly", "tfds"), "*/*/dataset_info.json")
    builder = tensorflow_datasets.builder_from_directory(info.parent)
    names = dict(builder.info.features)["image/class/label"].feature.names
    examples = list(tensorflow_datasets.as_numpy(builder.as_dataset(split="train")))
    found = {
        (example["image/filename"].decode(), *map(tuple, values_of(example)))
        for example in examples
    }
    samples = samples_of(exports.layout("partly"), "train")
    assert len(examples) == len(samples)
    assert found == {
        (
            sample.name,
            tuple(filter(None, [sample.features.get("price")])),
            () if sample.index is None else (sample.index,),
        )
        for sample in samples
    }
    assert {sample.class_name for sample in samples} == {None, *names}


def values_of(example: Mapping[str, Any]) -> list[list[Any]]:
    """The values of an example that may be missing."""
    return [example[name].tolist() for name in ("price", "image/class/label")]


@pytest.mark.parametrize(
    "name", ["imagenet", "classes", "gzip", "numbers", "objects", "lists", "partly", "plain"]
)
def test_mlcroissant_reads_the_metadata(
    exports: Exports, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    """No error; no warning but of terms that only the owner of a set knows; classes are records."""
    import mlcroissant

    caplog.set_level(logging.WARNING)
    data = mlcroissant.Dataset(jsonld=str(exports.out(name, "croissant") / "croissant.json"))
    assert not data.metadata.issues.errors
    unknown = [
        text
        for text in data.metadata.issues.warnings
        if "is recommended" not in text or name == "imagenet"
    ]
    assert unknown == []
    record_sets = {record_set.name: record_set for record_set in data.metadata.record_sets}
    assert record_sets.keys() - {"classes"} == set(exports.splits(name))
    first = imagenet_prep.open(exports.layout(name).data_dir, "train").first_label
    classes = list(data.records("classes")) if "classes" in record_sets else []
    rows = {row["classes/label"] - first: row["classes/name"] for row in classes}
    named = {
        sample.index: sample.class_name for sample in samples_of(exports.layout(name), "train")
    }
    assert not rows or named.items() - {(None, None)} <= rows.items()


def test_grain_resumes_in_the_middle(exports: Exports) -> None:
    """Grain's own state: an iterator that continues from it gives the
    records that the first one had not given.
    """
    import grain

    paths = [
        str(path)
        for path in existing(exports.out("classes", "arrayrecord"), "train-*.array_record")
    ]
    data = (
        grain.MapDataset.source(grain.sources.ArrayRecordDataSource(paths))
        .shuffle(seed=3)
        .repeat(2)
    )
    whole = list(data.to_iter_dataset())
    records = len(samples_of(exports.layout("classes"), "train"))
    assert len(whole) == 2 * records
    assert len(set(whole[:records])) == len(set(whole[records:])) == records
    for count in (1, 7, records, records + 5):
        first = iter(data.to_iter_dataset())
        taken = [next(first) for _ in range(count)]
        second = iter(data.to_iter_dataset())
        second.set_state(first.get_state())
        assert [*taken, *second] == whole


def test_the_program_of_the_page_reads_tars(
    exports: Exports, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/export.md shows how webdataset reads them."""
    (program,) = (block for block in blocks(PAGE, "python") if "webdataset.WebDataset" in block)
    exec(program.replace("/data/imagenet-tars", str(exports.out("imagenet", "webdataset"))), {})
    labels = [int(line.split()[-1]) for line in capsys.readouterr().out.splitlines()]
    assert sorted(labels) == sorted(
        int(sample.index or 0) for sample in samples_of(exports.layout("imagenet"), "train")
    )


def test_the_program_of_the_page_reads_folders(
    exports: Exports, capsys: pytest.CaptureFixture[str]
) -> None:
    """docs/export.md shows the call for timm."""
    import_torchvision()
    (program,) = (block for block in blocks(PAGE, "python") if "class_map" in block)
    exec(program.replace("/data/imagenet-folders", str(exports.out("classes", "folders"))), {})
    assert capsys.readouterr().out == "12\n"


@pytest.mark.parametrize(
    ("names", "members"),
    [
        (["", "a"], ["000000", "a"]),
        (["a/", ".JPEG"], ["a/000000", "000001"]),
        (["a\0b", "../../c"], ["a_b", "/__/c"]),
        (["__x__/a", "b"], ["x__/a", "b"]),
        (["a_1.JPEG", "a", "a.JPEG"], ["a_1", "a", "a_2"]),
        (["a_2.JPEG", "a", "a.JPEG"], ["a_2", "a", "a_2_2"]),
    ],
)
def test_no_name_hides_an_image(tmp_path: Path, names: list[str], members: list[str]) -> None:
    """webdataset gives every sample, whatever the name of its image."""
    import webdataset

    (tmp_path / "data").mkdir()
    with ShardWriter(tmp_path / "data" / "train", shards=1) as writer:
        for number, name in enumerate(names):
            writer.write(
                {
                    "image/encoded": b"\xff\xd8\xff%d" % number,
                    "image/class/label": 1,
                    "image/filename": name,
                }
            )
    out = export(Layout(tmp_path / "data"), "webdataset", tmp_path / "out", ENGINE).out
    (tar,) = existing(out, "*.tar")
    samples = list(webdataset.WebDataset([str(tar)], shardshuffle=False))
    assert [(sample["__key__"], sample["jpg"][3:]) for sample in samples] == [
        (key, b"%d" % number) for number, key in enumerate(members)
    ]


def test_a_name_that_is_no_line_is_not_listed(tmp_path: Path) -> None:
    """A class that a text file can't name would shift the others:
    there is no class_map.txt, and no names in tfds.
    """
    for number, name in enumerate(("a", " b")):
        save(tmp_path / "in" / name / "1.jpg", photograph(20, 20, number))
    (tmp_path / "recipe.yaml").write_text("source: {folders: in}\nshards: 1\n")
    layout = Layout(tmp_path / "shards")
    convert(layout, ENGINE, dataset=RecipeSet.read(tmp_path / "recipe.yaml"))
    assert not list(
        export(layout, "folders", tmp_path / "folders", ENGINE).out.glob("*/class_map.txt")
    )
    assert not list(export(layout, "tfds", tmp_path / "tfds", ENGINE).out.glob("*/*/*.labels.txt"))


def test_folders_within_a_class_stay(tmp_path: Path) -> None:
    """Also one whose name begins as that of the split:
    only a folder above the class is the split's.
    """
    for number, name in enumerate(("cat/1.jpg", "cat/t/1.jpg", "cat/train/1.jpg", "dog/1.jpg")):
        save(tmp_path / "in" / name, photograph(20, 20, number))
    (tmp_path / "recipe.yaml").write_text("source: {folders: in}\nshards: 1\n")
    layout = Layout(tmp_path / "shards")
    convert(layout, ENGINE, dataset=RecipeSet.read(tmp_path / "recipe.yaml"))
    out = export(layout, "folders", tmp_path / "out", ENGINE).out
    assert sorted(path.name for path in existing(out, "*/cat/*")) == [
        "1.jpg",
        "t__1.jpg",
        "train__1.jpg",
    ]


def test_a_class_may_have_the_name_of_the_map(tmp_path: Path) -> None:
    """Its folder stays, and there is no map."""
    for name in ("class_map.txt", "b"):
        save(tmp_path / "in" / name / "1.jpg", photograph(20, 20))
    (tmp_path / "recipe.yaml").write_text("source: {folders: in}\nshards: 1\n")
    layout = Layout(tmp_path / "shards")
    convert(layout, ENGINE, dataset=RecipeSet.read(tmp_path / "recipe.yaml"))
    out = export(layout, "folders", tmp_path / "out", ENGINE).out
    assert len(existing(out, "*/*/1.jpg")) == 2


@pytest.mark.parametrize(("shards", "place"), [(1, "record 2 "), (3, "train-0000[02]-of-00003:")])
def test_two_classes_never_share_a_folder(tmp_path: Path, shards: int, place: str) -> None:
    """Cranes that fly and cranes that lift, named by words alone, would become one class."""
    (tmp_path / "data").mkdir()
    with ShardWriter(tmp_path / "data" / "train", shards=shards) as writer:
        for number, (label, text) in enumerate([(135, "crane"), (1, "tench"), (518, "crane")]):
            values = {
                "image/encoded": photograph(20, 20, number),
                "image/filename": f"{number}.jpg",
            }
            writer.write({**values, "image/class/label": label, "image/class/text": text})
    with pytest.raises(InputError, match=rf"{place}.*134 and 517 counted from 0.*train/crane"):
        export(Layout(tmp_path / "data"), "folders", tmp_path / "out", ENGINE)


def test_an_export_of_another_version_is_refused(
    tmp_path: Path, exports: Exports, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Names and contents of files change with the version: those of two must not mix."""
    layout, out = exports.layout("classes"), tmp_path / "out"
    with monkeypatch.context() as patch:
        patch.setattr("imagenet_prep.stages.export.PACKING", 1)
        export(layout, "folders", out, ENGINE)
    with pytest.raises(InputError, match="or by another version"):
        export(layout, "folders", out, ENGINE)
