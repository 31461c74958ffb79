"""Numbers of classes: equal in all splits, sets and growths of one DATA_DIR,
and in every reader of them.
"""

from __future__ import annotations

import io
import json
import shutil
from collections.abc import Callable, Mapping
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
import tf_fixture
from existing import existing
from made_sets import ENGINE
from made_tars import save
from PIL import Image
from running import command_here
from test_boxes_of_samples import parquet_file
from test_export import features_in, samples_of

import imagenet_prep
from imagenet_prep import ConvertOptions, Layout, convert, export, records, verify
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, PrepError, UsageError
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.recipes.loading import load
from imagenet_prep.recipes.recipe_set import RecipeSet
from imagenet_prep.stages.init import init
from imagenet_prep.state.manifest import DatasetEntry, load_manifest
from imagenet_prep.state.numbering import Numbering, class_index

tf = tf_fixture.tf

INDEX = {"cat": 0, "dog": 1, "fox": 2}
"""The right number of each class, counted from 0."""


def save_images(folder: Path, *names: str) -> None:
    """Images of these names, each of its own size."""
    for number, name in enumerate(names):
        buffer = io.BytesIO()
        Image.new("RGB", (16 + number, 16), (90, 8 * number, 30)).save(buffer, "JPEG")
        save(folder / name, buffer.getvalue())


def make(folder: Path, recipe: str, name: str = "recipe.yaml") -> Layout:
    """The set of a recipe in ``folder``, in its DATA_DIR ``out``."""
    path = folder / name
    path.write_text(recipe)
    dataset = RecipeSet.read(path)
    convert(Layout(folder / "out"), ENGINE, dataset=dataset)
    return Layout(folder / "out", set_name=dataset.set_name)


# a set for each way to divide one -----------------------------------------------------------------


class Divided(NamedTuple):
    """The splits of a set, or sets of one split each,
    whose images are called after their classes.
    """

    splits: Mapping[str, Layout]


def by_folders(folder: Path) -> Divided:
    """The folder val lacks the first class."""
    save_images(folder / "data", *(f"train/{name}/{name}{n}.jpg" for name in INDEX for n in (1, 2)))
    save_images(
        folder / "data", *(f"val/{name}/{name}{n}.jpg" for name in ("dog", "fox") for n in (3, 4))
    )
    layout = make(folder, "source: {folders: data}\nrecord: inception\n")
    return Divided({"train": layout, "validation": layout})


def by_lists(folder: Path) -> Divided:
    """A table of labels, and lists of names; the list of test lacks the first class."""
    names = [f"{name}{n}.jpg" for name in INDEX for n in range(4)]
    save_images(folder / "data", *names)
    table = "".join(f"{name},{name[:3]}\n" for name in names)
    save(folder / "labels.csv", f"filename,label\n{table}".encode())
    tests = [name for name in names if name[0] in "df" and name[3] in "23"]
    save(folder / "test.txt", "".join(f"{name}\n" for name in tests).encode())
    save(folder / "train.txt", "".join(f"{name}\n" for name in names if name not in tests).encode())
    splits = "splits: {train: {manifest: train.txt}, test: {manifest: test.txt}}\n"
    layout = make(folder, f"source: {{files: 'data/*.jpg'}}\nlabels: labels.csv\n{splits}")
    return Divided({"train": layout, "test": layout})


def by_column(folder: Path) -> Divided:
    """A table with a column of splits; the rows of validation lack the first class."""
    rows = [(f"{name}{n}.jpg", name, split) for name, n, split in images_by_split()]
    save_images(folder / "data", *(name for name, _, _ in rows))
    table = "".join(f"{','.join(row)}\n" for row in rows)
    save(folder / "labels.csv", f"filename,label,split\n{table}".encode())
    layout = make(
        folder, "source: {files: 'data/*.jpg'}\nlabels: {file: labels.csv, split: split}\n"
    )
    return Divided({"train": layout, "validation": layout})


def save_table_of_each(folder: Path, header: str, image_folder: str = "") -> None:
    """The images in data/, and a table for each split; that of validation lacks the first class."""
    rows = images_by_split()
    save_images(folder / "data", *(f"{name}{number}.jpg" for name, number, _ in rows))
    for split in ("train", "validation"):
        lines = (
            f"{image_folder}{name}{number}.jpg,{name}\n"
            for name, number, other in rows
            if other == split
        )
        save(folder / f"{split}.csv", "".join((f"{header}\n", *lines)).encode())


def by_a_table_of_each(folder: Path) -> Divided:
    """A labels file of each split in one recipe; that of validation lacks the first class."""
    save_table_of_each(folder, "filename,label")
    files = "{train: train.csv, validation: validation.csv}"
    layout = make(folder, f"source: {{files: 'data/*.jpg'}}\nlabels: {{file: {files}}}\n")
    return Divided({"train": layout, "validation": layout})


def by_rows(folder: Path) -> Divided:
    """A source that is a table for each split; that of validation lacks the first class."""
    save_table_of_each(folder, "file_name,label", "data/")
    layout = make(folder, "source: {table: {train: train.csv, validation: validation.csv}}\n")
    return Divided({"train": layout, "validation": layout})


def images_by_split() -> list[tuple[str, int, str]]:
    """The class, number and split of images; validation has none of the first class."""
    train = [(name, number, "train") for name in INDEX for number in (1, 2)]
    return train + [(name, number, "validation") for name in ("dog", "fox") for number in (3, 4)]


def by_fractions(folder: Path) -> Divided:
    """Shares by hashes, of a record that the recipe maps itself."""
    save_images(folder / "data", *(f"{name}/{name}{n}.jpg" for name in INDEX for n in range(8)))
    record = "record: {image/encoded: encoded, image/class/label: label, image/filename: path}\n"
    layout = make(folder, f"source: {{folders: data}}\nsplits: {{train: 0.7, test: 0.3}}\n{record}")
    return Divided({"train": layout, "test": layout})


def by_one_csv_a_split(folder: Path) -> Divided:
    """A recipe a split, with a CSV each: the one of val lacks the first class,
    and nothing declares the classes.
    """
    layouts = {}
    for split, classes in (("train", INDEX), ("val", ("dog", "fox"))):
        names = [f"{name}{split}{n}.jpg" for name in classes for n in range(3)]
        save_images(folder / split, *names)
        save(
            folder / f"{split}.csv",
            "".join(["path,label\n", *(f"{n},{n[:3]}\n" for n in names)]).encode(),
        )
        recipe = (
            f"source: {{files: '{split}/*.jpg'}}\nlabels: {split}.csv\noutput_file_prefix: "
            f"{split}\n"
        )
        layouts[split] = make(folder, recipe, f"{split}.yaml")
    return Divided(layouts)


def by_prefixes(folder: Path) -> Divided:
    """A set of one class after one of three; then one of two, in a record of another layout."""
    mapped = "record: {image/encoded: encoded, image/class/label: label, image/filename: path}\n"
    layouts = {}
    for split, classes, record in (
        ("whole", INDEX, ""),
        ("one", ("fox",), ""),
        ("two", ("dog", "fox"), mapped),
    ):
        save_images(
            folder / split, *(f"{name}/{name}{n}.jpg" for name in classes for n in range(3))
        )
        recipe = f"source: {{folders: {split}}}\noutput_file_prefix: {split}\n{record}"
        layouts[split] = make(folder, recipe, f"{split}.yaml")
    return Divided(layouts)


def by_growth(folder: Path) -> Divided:
    """New files of two classes, and a new class that comes last."""
    recipe = "source: {folders: data}\ngrow: true\n"
    save_images(
        folder / "data", *(f"{name}/{name}{n}.jpg" for name in ("cat", "dog") for n in range(3))
    )
    make(folder, recipe)
    save_images(folder / "data", "dog/dog7.jpg", "fox/fox8.jpg")
    return Divided({"train": make(folder, recipe)})


ROUTES: dict[str, Callable[[Path], Divided]] = {
    route.__name__.removeprefix("by_"): route
    for route in (
        by_folders,
        by_lists,
        by_column,
        by_a_table_of_each,
        by_rows,
        by_fractions,
        by_one_csv_a_split,
        by_prefixes,
        by_growth,
    )
}


@pytest.fixture(scope="module", params=ROUTES)
def divided(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Divided:
    """A set of each route. Read only."""
    return ROUTES[request.param](tmp_path_factory.mktemp(request.param))


def right_numbers(layout: Layout, split: str) -> list[int]:
    """The number of the class of each record, counted from 0, by the name of its image."""
    return [
        INDEX[record.filename.rpartition("/")[2][:3]]
        for record in imagenet_prep.open(layout.output_dir, split)
    ]


def test_records_and_names_agree_in_all_splits(divided: Divided) -> None:
    """Record.class_index, and the names of classes that open gives:
    those without an image in a split too.
    """
    for split, layout in divided.splits.items():
        found = imagenet_prep.open(layout.output_dir, split)
        assert [record.class_index for record in found] == right_numbers(layout, split)
        assert {
            name: label - found.first_label for label, name in found.class_names.items()
        } == INDEX
        for record in found:
            assert found.class_names[record.label or 0] == record.filename.rpartition("/")[2][:3]


def test_raw_data_gives_these_numbers(divided: Divided) -> None:
    """The records that convert would write, with the numbering that the folder has,
    and its names.
    """
    for split, layout in divided.splits.items():
        folder = layout.output_dir.parent
        recipe = folder / (f"{split}.yaml" if layout.set_name else "recipe.yaml")
        shards = imagenet_prep.open(layout.output_dir, split)
        if list(layout.output_dir.glob("*-grown2-*")):
            continue  # it has shards of several plans
        with pytest.warns(UserWarning, match="labels: "):
            raw = imagenet_prep.open(layout.output_dir, split, source="raw", config=recipe)
        assert [bytes(record.data) for record in raw] == [bytes(record.data) for record in shards]
        assert [record.class_index for record in raw] == right_numbers(layout, split)
        assert raw.class_names == shards.class_names


def test_pytorch_gives_these_numbers(divided: Divided, torch: Any) -> None:
    """ImageDataset, and batches of a Loader."""
    from imagenet_prep.torch import ImageDataset, Loader

    for split, layout in divided.splits.items():
        dataset = ImageDataset(imagenet_prep.open(layout.output_dir, split), lambda image: 0)
        right = right_numbers(layout, split)
        assert [label for _, label in dataset] == right
        batches = list(Loader(dataset, 2, shuffle=False))
        assert [label for _, labels in batches for label in labels.tolist()] == right


def test_tf_data_gives_these_numbers(divided: Divided, tf: Any) -> None:
    """The helper's batches."""
    from imagenet_prep.tensorflow import dataset

    for split, layout in divided.splits.items():
        batches = dataset(layout.output_dir, split, batch_size=4, image_size=8, training=False)
        assert [int(label) for _, labels in batches for label in labels] == right_numbers(
            layout, split
        )


def test_tfds_gives_these_classes(divided: Divided, tf: Any, tmp_path: Path) -> None:
    """Its labels are the records', and their names are those of the classes."""
    import tensorflow_datasets

    config = tensorflow_datasets.ReadConfig(interleave_cycle_length=1)
    for split, layout in divided.splits.items():
        out = tmp_path / split
        if list(layout.output_dir.glob("*-grown2-*")):
            with pytest.raises(UsageError, match="has grown"):
                export(layout, "tfds", out, ENGINE)
            continue
        (info,) = export(layout, "tfds", out, ENGINE).out.glob("*/*/dataset_info.json")
        builder = tensorflow_datasets.builder_from_directory(info.parent)
        label = builder.info.features["image/class/label"]
        examples = tensorflow_datasets.as_numpy(builder.as_dataset(split=split, read_config=config))
        names = [label.int2str(int(example["image/class/label"])) for example in examples]
        assert [INDEX[name] for name in names] == right_numbers(layout, split)


def test_exports_give_these_numbers(divided: Divided, tmp_path: Path) -> None:
    """WebDataset's .cls; parquet's label, with the names of classes,
    which are no column of all these records.
    """
    from pyarrow import parquet

    for split, layout in divided.splits.items():
        out, right = tmp_path / split, right_numbers(layout, split)
        export(layout, "webdataset", out / "tars", ENGINE)
        samples = samples_of(existing(out / "tars", f"{split}-*.tar"))
        assert [int(sample["cls"]) for sample in samples] == right
        assert [INDEX[json.loads(sample["json"])["wnid"]] for sample in samples] == right
        export(layout, "parquet", out / "parquet", ENGINE)
        paths = existing(out / "parquet", f"{split}*-of-*.parquet")
        assert [
            row["label"] for path in paths for row in parquet.read_table(path).to_pylist()
        ] == right
        assert {tuple(features_in(path)["label"]["names"]) for path in paths} == {
            ("cat", "dog", "fox")
        }


@pytest.mark.tensorflow
def test_croissant_and_array_records_name_the_classes(divided: Divided, tmp_path: Path) -> None:
    """A record set of all classes; a file beside the records, which may have numbers alone."""
    for split, layout in divided.splits.items():
        first = imagenet_prep.open(layout.output_dir, split).first_label
        out = export(layout, "croissant", tmp_path / split / "croissant", ENGINE).out
        rows = json.loads((out / "croissant.json").read_bytes())["recordSet"][-1]["data"]
        assert {row["classes/name"]: row["classes/label"] - first for row in rows} == INDEX
        out = export(layout, "arrayrecord", tmp_path / split / "arrays", ENGINE).out
        assert json.loads((out / "classes.json").read_bytes()) == INDEX


def test_folders_have_the_classes_of_all_splits(divided: Divided, tmp_path: Path) -> None:
    """ImageFolder numbers the folders that it finds:
    each split has those of all classes, in their order.
    """
    for split, layout in divided.splits.items():
        out = export(layout, "folders", tmp_path / split, ENGINE).out
        names = sorted(path.name for path in existing(out / split, "*"))
        assert [name for name in names if name != "class_map.txt"] == list(INDEX)
        assert (out / split / "class_map.txt").read_text().split() == list(INDEX)


def test_the_manifest_keeps_all_classes(tmp_path: Path) -> None:
    """By name, with their words, those without a file too; open gives both by label."""
    save_images(tmp_path / "data", "b/1.jpg", "c/2.jpg")
    layout = make(
        tmp_path, "source: {folders: data}\nclasses: {c: a sea, a: first, b: b}\nfirst_label: 4\n"
    )
    manifest = load_manifest(layout.manifest_path)
    assert manifest is not None
    assert dict(manifest.dataset.classes) == {"c": 4, "a": 5, "b": 6}
    assert dict(manifest.dataset.texts) == {"c": "a sea", "a": "first"}
    found = imagenet_prep.open(layout.output_dir, "train")
    assert (found.first_label, found.class_names) == (4, {4: "c", 5: "a", 6: "b"})
    assert found.class_texts == {4: "a sea", 5: "first", 6: "b"}
    part = found.shard(0, 2)
    assert (part.first_label, part.class_names) == (4, found.class_names)


# parts, gaps and labels that are numbers ----------------------------------------------------------


@pytest.fixture(scope="module")
def one_class(made_tiny: MadeSet, tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """The last class of a made ImageNet alone, with its official label. Read only."""
    folder = tmp_path_factory.mktemp("one-class")
    save(folder / "list.txt", f"{made_tiny.wnids[-1]}\n".encode())
    layout = Layout(folder / "data", raw=made_tiny.archives["train"].parent)
    options = ConvertOptions(
        classes=str(folder / "list.txt"), train_shards=1, validation_shards=1, allow_incomplete=True
    )
    convert(layout, ENGINE, options)
    return layout


def test_a_part_of_one_class_keeps_its_number(
    one_class: Layout, made_tiny: MadeSet, torch: Any, tf: Any, tmp_path: Path
) -> None:
    """The official label minus 1, in every reader and export, however few classes there are."""
    import tensorflow_datasets
    from pyarrow import parquet

    from imagenet_prep.tensorflow import dataset
    from imagenet_prep.torch import ImageDataset

    wnid = made_tiny.wnids[-1]
    right = {facts.labels()[wnid] - 1}
    assert right != {0}
    found = imagenet_prep.open(one_class.data_dir, "train")
    assert {record.class_index for record in found} == right
    assert (found.class_names, found.class_texts) == (
        {facts.labels()[wnid]: wnid},
        {facts.labels()[wnid]: facts.texts()[wnid]},
    )
    assert {label for _, label in ImageDataset(found, lambda image: 0)} == right
    batches = dataset(one_class.data_dir, "train", batch_size=4, image_size=8, training=False)
    assert {int(label) for _, labels in batches for label in labels} == right
    tars = export(one_class, "webdataset", tmp_path / "tars", ENGINE).out
    assert {
        int(sample["cls"]) for sample in samples_of(existing(tars, "imagenet-train-*.tar"))
    } == right
    tables = export(one_class, "parquet", tmp_path / "parquet", ENGINE).out
    (path,) = existing(tables, "train-*.parquet")
    assert {row["label"] for row in parquet.read_table(path).to_pylist()} == right
    tree = export(one_class, "folders", tmp_path / "tree", ENGINE).out
    assert json.loads((tree / "classes.json").read_bytes()) == {wnid: facts.labels()[wnid] - 1}
    (info,) = export(one_class, "tfds", tmp_path / "tfds", ENGINE).out.glob("*/*/dataset_info.json")
    builder = tensorflow_datasets.builder_from_directory(info.parent)
    examples = tensorflow_datasets.as_numpy(builder.as_dataset(split="train"))
    assert {int(example["image/class/label"]) - 1 for example in examples} == right


@pytest.mark.parametrize(
    ("kind", "labels", "settings", "first"),
    [
        ("ILSVRC2012", {}, {}, 1),
        ("ILSVRC2012", {"n01484850": 3}, {}, 1),
        ("ILSVRC2012", {"n01484850": 0}, {}, 0),
        ("ILSVRC2012", {"n01484850": 1, "n01440764": 2}, {}, 1),
        ("recipe", {"cat": 7}, {"first_label": 5, "record": "inception"}, 5),
        ("recipe", {}, {"record": "inception"}, 1),
        ("recipe", {}, {"record": {}}, 0),
    ],
)
def test_the_first_label_is_never_the_smallest_that_occurs(
    kind: Any, labels: dict[str, int], settings: dict[str, Any], first: int
) -> None:
    """It is the recorded one; parts of ImageNet count from 1,
    unless --relabel 0 gave a class the label 0.
    """
    entry = DatasetEntry(kind, "a set", ("train",), {}, {}, labels)
    assert Numbering.read(entry, settings).first_label == first


GAPS = {
    "folders": ("source: {folders: data}\n", "", 0),
    "folders from 1": ("source: {folders: data}\nfirst_label: 1\n", "0", 1),
    "table": ("source: {files: 'data/*/*.jpg'}\nlabels: labels.csv\n", "", 0),
    "table from 1": (
        "source: {files: 'data/*/*.jpg'}\nlabels: labels.csv\nfirst_label: 1\n",
        "0",
        1,
    ),
    "mapped": (
        "source: {folders: data}\nrecord: {image: encoded, image/class/label: label, path: path}\n",
        "",
        0,
    ),
}


@pytest.mark.parametrize("way", GAPS)
def test_a_gap_moves_no_number(tmp_path: Path, way: str) -> None:
    """Labels that are numbers stay those numbers: of a table, and of folders;
    two folders fewer change nothing.
    """
    recipe, without, first = GAPS[way]
    numbers = [number for number in ("0", "1", "2", "4", "11") if number != without]
    for part in (numbers, ["4"]):
        folder = tmp_path / str(len(part))
        names = [f"{number}/{number}_{n}.jpg" for number in part for n in range(2)]
        save_images(folder / "data", *names)
        table = "".join(f"data/{name},{name.partition('/')[0]}\n" for name in names)
        save(folder / "labels.csv", f"path,label\n{table}".encode())
        layout = make(folder, recipe)
        found = imagenet_prep.open(layout.output_dir, "train")
        own = {int(number): number for number in part}
        assert (found.first_label, found.class_names) == (first, own)
        labels = [record.features["image/class/label"] for record in found]
        assert sorted(set(labels)) == sorted(own)
        if way != "mapped":
            assert [record.class_index for record in found] == [label - first for label in labels]
            assert all(
                str(record.label) == record.filename.rpartition("/")[2].partition("_")[0]
                for record in found
            )


def test_needless_zeros_make_folders_names(tmp_path: Path) -> None:
    """As in a table: ids such as 0045 are counted in their order."""
    save_images(tmp_path / "data", "0045/a.jpg", "0007/b.jpg", "1000/c.jpg")
    layout = make(tmp_path, "source: {folders: data}\n")
    assert imagenet_prep.open(layout.output_dir, "train").class_names == {
        1: "0007",
        2: "0045",
        3: "1000",
    }


@pytest.mark.parametrize(
    ("numbers", "first_label", "indexes"),
    [
        ((3, 7), 0, [3, 7]),
        ((1, 4), 1, [0, 3]),
        ((0, 2), 0, [0, 2]),
        ((249114794, 2937985045), 0, [0, 1]),
    ],
    ids=["a gap before the first", "from 1", "from 0", "ids"],
)
def test_init_writes_where_numbers_start(
    tmp_path: Path, numbers: tuple[int, int], first_label: int, indexes: list[int]
) -> None:
    """From 0, or from 1 if that is the smallest; numbers with many digits are ids,
    which are counted in their order.
    """
    save_images(tmp_path / "data", "a.jpg", "b.jpg")
    save(
        tmp_path / "data" / "t.csv",
        f"file,label\na.jpg,{numbers[0]}\nb.jpg,{numbers[1]}\n".encode(),
    )
    recipe = init(tmp_path / "data", tmp_path / "recipe.yaml", ENGINE).recipe
    layout = make(tmp_path, recipe.read_text())
    records = imagenet_prep.open(layout.output_dir, "train")
    assert records.first_label == first_label
    assert sorted(record.class_index for record in records) == indexes
    assert {records.class_names[record.label] for record in records} == {*map(str, numbers)}


@pytest.mark.parametrize(
    ("label", "advice"),
    [
        (
            0,
            "if labels count from 0, in Python: records.first_label = 0",
        ),
        (
            -1,
            "write the records again, with labels from 1 up",
        ),
    ],
)
def test_a_label_below_the_first_one_has_the_advice_that_helps(label: int, advice: str) -> None:
    """No set counts its classes from -1."""
    record = SimpleNamespace(place="a shard: record 0 at byte 0")
    with pytest.raises(InputError) as caught:
        class_index(label, 1, record)
    assert caught.value.what.endswith(f"has label {label}")
    assert caught.value.hint == advice


def test_an_export_can_not_be_told_the_first_label_and_names_the_recipe_that_can(
    tmp_path: Path,
) -> None:
    """Shards of another program with labels from 0 are made again by a recipe, and exported."""
    save_images(tmp_path / "images", "a.jpg", "b.jpg")
    with records.ShardWriter(tmp_path / "theirs" / "train", shards=1) as writer:
        for number, name in enumerate(("a.jpg", "b.jpg")):
            encoded = (tmp_path / "images" / name).read_bytes()
            writer.write({"image/encoded": encoded, "image/class/label": number})
    with pytest.raises(InputError, match="has label 0") as caught:
        export(Layout(tmp_path / "theirs"), "folders", tmp_path / "files", ENGINE)
    assert caught.value.hint.endswith(f"imagenet-prep init {tmp_path / 'theirs'}")
    recipe = init(tmp_path / "theirs", tmp_path / "recipe.yaml", ENGINE).recipe
    made = make(tmp_path, recipe.read_text())
    assert export(made, "folders", tmp_path / "again", ENGINE).splits[0].records == 2


@pytest.mark.parametrize(
    ("start", "first", "notes"), [("0", "", 0), ("1", "", 1), ("1", "first_label: 1\n", 0)]
)
def test_numbers_from_1_are_a_note(tmp_path: Path, start: str, first: str, notes: int) -> None:
    """Nothing is derived from them: the note says what to write if class 0
    is missing on purpose.
    """
    save_images(tmp_path / "data", f"{start}/a.jpg", "2/b.jpg")
    save(tmp_path / "recipe.yaml", f"source: {{folders: data}}\n{first}".encode())
    found = load(tmp_path / "recipe.yaml", None, ENGINE).notes
    note = (
        "labels start at 1, and class 0 has no image: if 1 is the first class, write first_label: 1"
    )
    assert found.count(note) == notes


@pytest.mark.parametrize(
    "recipe", ["source: {folders: data}\n", "source: {files: 'data/*/*.jpg'}\nlabels: t.csv\n"]
)
def test_a_number_below_the_first_label_is_refused(tmp_path: Path, recipe: str) -> None:
    """The error says which, and the key to write."""
    save_images(tmp_path / "data", "0/a.jpg", "1/b.jpg")
    save(tmp_path / "t.csv", b"path,label\na.jpg,0\nb.jpg,1\n")
    words = "a class has the number 0, and the first label is 1"
    with pytest.raises(InputError, match=words) as caught:
        make(tmp_path, f"{recipe}first_label: 1\n")
    assert "write first_label: 0" in caught.value.hint


def test_a_negative_label_is_no_first_label(tmp_path: Path) -> None:
    """The error names no first_label: there is none below 0."""
    with pytest.raises(InputError, match="a class has the number -2") as caught:
        unlabelled_set(tmp_path, labels=("-2", "0", "1"))
    assert "first_label" not in caught.value.hint


# no label -----------------------------------------------------------------------------------------


def unlabelled_set(
    folder: Path, more: str = "", labels: tuple[str, ...] = ("2", "-1", "0", "-1", "2", "1")
) -> Layout:
    """Images with these labels."""
    names = [f"{number}.jpg" for number in range(len(labels))]
    save_images(folder / "data", *names)
    table = "".join(f"{name},{label}\n" for name, label in zip(names, labels, strict=True))
    save(folder / "labels.csv", f"path,label\n{table}".encode())
    return make(folder, f"source: {{files: 'data/*.jpg'}}\nlabels: {{file: labels.csv{more}}}\n")


RIGHT = {"0.jpg": 2, "1.jpg": None, "2.jpg": 0, "3.jpg": None, "4.jpg": 2, "5.jpg": 1}


@pytest.fixture(scope="module")
def partly(tmp_path_factory: pytest.TempPathFactory) -> Layout:
    """Two of six images have -1 as their label. Read only."""
    return unlabelled_set(tmp_path_factory.mktemp("partly"))


def names_in(found: Any) -> list[str]:
    """The names of images without their folders."""
    return [record.filename.rpartition("/")[2] for record in found]


def test_minus_1_is_no_class(partly: Layout) -> None:
    """Such a record has no label; plan, manifest and verify count them, and 0 stays a class."""
    found = imagenet_prep.open(partly.output_dir, "train")
    assert {
        name: record.label for name, record in zip(names_in(found), found, strict=True)
    } == RIGHT
    assert {
        name: record.class_index for name, record in zip(names_in(found), found, strict=True)
    } == RIGHT
    assert [("image/class/label" in record.features) for record in found] == [
        RIGHT[name] is not None for name in names_in(found)
    ]
    assert (found.class_names, found.unlabelled) == ({0: "0", 1: "1", 2: "2"}, 2)
    manifest = load_manifest(partly.manifest_path)
    assert manifest is not None
    assert (manifest.totals["train"].unlabelled, manifest.totals["train"].classes) == (2, 3)
    verdict = verify(partly, ENGINE)
    assert (verdict.problems, verdict.notes) == ((), ("train: 2 records of 6 without a label",))


@pytest.mark.filterwarnings("ignore:.*has no label")
@pytest.mark.parametrize(
    ("more", "labels", "unlabelled"),
    [("", ("2", "-1", "0"), 1), (", several: ' '", ("2 1", "1", "0 1"), 0)],
)
def test_raw_data_counts_the_same_records_without_a_label(
    tmp_path: Path, more: str, labels: tuple[str, ...], unlabelled: int
) -> None:
    """As the shards do; an image with several labels has some."""
    layout = unlabelled_set(tmp_path, more, labels)
    shards = imagenet_prep.open(layout.output_dir, "train")
    raw = imagenet_prep.open(
        layout.output_dir, "train", source="raw", config=tmp_path / "recipe.yaml"
    )
    assert (raw.unlabelled, shards.unlabelled) == (unlabelled, unlabelled)


def test_convert_says_how_many_have_no_label(tmp_path: Path) -> None:
    """And which are the first."""
    unlabelled_set(tmp_path)
    said = command_here("convert", "again", "--config", "recipe.yaml", cwd=tmp_path)
    assert "2 records have no label: data/1.jpg, data/3.jpg" in said.stdout + said.stderr


def test_pytorch_refuses_images_without_a_label(partly: Layout, torch: Any) -> None:
    """The error names the record, and the line that leaves them out, which runs;
    or they get a label of their own.
    """
    from torch.utils.data import Subset  # noqa: F401 - the line needs it

    from imagenet_prep.torch import ImageDataset, Loader

    found = imagenet_prep.open(partly.output_dir, "train")
    dataset = ImageDataset(found, lambda image: 0)
    with pytest.raises(InputError, match="has no label") as caught:
        list(dataset)
    subset = eval(caught.value.hint.rpartition(": ")[2], {**globals(), **locals()})
    labels = [RIGHT[name] for name in names_in(found)]
    assert [label for _, label in subset] == [label for label in labels if label is not None]
    with_own = ImageDataset(found, lambda image: 0, unlabelled=-1)
    right = [-1 if label is None else label for label in labels]
    assert [
        label for _, batch in Loader(with_own, 4, shuffle=False) for label in batch.tolist()
    ] == right


def test_tf_data_refuses_images_without_a_label(partly: Layout, tf: Any) -> None:
    """Before the first batch, by the manifest, or they get a label of their own."""
    from imagenet_prep.tensorflow import dataset

    options = {"batch_size": 4, "image_size": 8, "training": False}
    with pytest.raises(InputError, match=r"2 train records .*no label") as caught:
        dataset(partly.output_dir, "train", **options)
    assert "unlabelled=-1" in caught.value.hint
    assert caught.value.hint.endswith(".filter(lambda image, label: label >= 0).batch(N)")
    for policy in ("raise", "skip"):
        batches = dataset(partly.output_dir, "train", unlabelled=-1, on_damaged=policy, **options)
        found = imagenet_prep.open(partly.output_dir, "train")
        right = [-1 if RIGHT[name] is None else RIGHT[name] for name in names_in(found)]
        assert [int(label) for _, labels in batches for label in labels] == right
        kept = batches.unbatch().filter(lambda image, label: label >= 0)
        assert len(list(kept)) == 4


def test_tf_data_refuses_a_record_without_a_label_of_another_maker(tmp_path: Path, tf: Any) -> None:
    """No manifest counts them: the batch is an error."""
    from imagenet_prep.tensorflow import dataset

    buffer = io.BytesIO()
    Image.new("RGB", (16, 16)).save(buffer, "JPEG")
    records.write(tmp_path / "train-00000-of-00001", [{"image/encoded": buffer.getvalue()}])
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"no label.*unlabelled=-1"):
        list(dataset(tmp_path, "train", batch_size=1, image_size=8, training=False))


def test_exports_of_images_without_a_label(partly: Layout, tmp_path: Path) -> None:
    """Tars have no .cls, parquet a null; folders have no place for them."""
    from pyarrow import parquet

    found = imagenet_prep.open(partly.output_dir, "train")
    labels = [RIGHT[name] for name in names_in(found)]
    tars = export(partly, "webdataset", tmp_path / "tars", ENGINE).out
    samples = samples_of(existing(tars, "train-*.tar"))
    assert [int(sample["cls"]) if "cls" in sample else None for sample in samples] == labels
    tables = export(partly, "parquet", tmp_path / "parquet", ENGINE).out
    rows = [
        row
        for path in existing(tables, "*.parquet")
        for row in parquet.read_table(path).to_pylist()
    ]
    assert [row["label"] for row in rows] == labels
    with pytest.raises(InputError, match="has no class"):
        export(partly, "folders", tmp_path / "tree", ENGINE)


@pytest.mark.parametrize(
    ("labels", "policy", "names"),
    [
        (("0", "", "1"), "", {"0.jpg": 0, "1.jpg": None, "2.jpg": 1}),
        (("0", "", "1"), ", unlabelled: keep", {"0.jpg": 0, "1.jpg": None, "2.jpg": 1}),
        (("0", "-1", "1"), ", unlabelled: skip", {"0.jpg": 0, "2.jpg": 1}),
        (("cat", "", "dog"), "", {"0.jpg": 0, "1.jpg": None, "2.jpg": 1}),
        (("-1", "-1", "-1"), "", {"0.jpg": None, "1.jpg": None, "2.jpg": None}),
    ],
)
def test_labels_that_are_none(
    tmp_path: Path, labels: tuple[str, ...], policy: str, names: dict[str, int | None]
) -> None:
    """An empty one is as -1; the recipe can leave such files out."""
    layout = unlabelled_set(tmp_path, policy, labels)
    found = imagenet_prep.open(layout.output_dir, "train")
    assert {
        name: record.class_index for name, record in zip(names_in(found), found, strict=True)
    } == names
    assert verify(layout, ENGINE).problems == ()


@pytest.mark.parametrize(
    ("labels", "more", "words"),
    [
        (("0", "-1", "1"), ", unlabelled: error", "line 3: no label for data/1.jpg"),
        (("-1", "1", "1"), "", "the labels are -1 and 1"),
        (("-2", "0", "1"), "", "a class has the number -2"),
        (
            ("0", "-1", "1"),
            "}\nrecord: inception\nexpected: {images: 3",
            "record: 1 file has no label",
        ),
    ],
)
def test_labels_that_can_not_be_are_refused(
    tmp_path: Path, labels: tuple[str, ...], more: str, words: str
) -> None:
    """-1 and 1 are a question, since -1 may be a class there;
    Inception's records have no place for no label.
    """
    with pytest.raises(PrepError, match=words):
        unlabelled_set(tmp_path, more, labels)
    assert not list(tmp_path.glob("out/*-of-*"))


@pytest.mark.parametrize(
    ("prefix", "words"),
    [
        ("", "made from other inputs"),
        ("output_file_prefix: more\n", "class cat would have label 0"),
    ],
)
def test_another_first_label_is_refused(tmp_path: Path, prefix: str, words: str) -> None:
    """A set that exists, and a set beside it: a declared number is never replaced in silence."""
    save_images(tmp_path / "data", "cat/1.jpg", "dog/2.jpg")
    recipe = "source: {folders: data}\nfirst_label: "
    layout = make(tmp_path, f"{recipe}5\n")
    with pytest.raises(PrepError, match=words):
        make(tmp_path, f"{recipe}0\n{prefix}")
    make(tmp_path, f"source: {{folders: data}}\n{prefix}")
    assert sorted(
        record.label or 0 for record in imagenet_prep.open(layout.output_dir, "train")
    ) == [5, 6]


@pytest.mark.parametrize(
    ("labels", "right"),
    [([2, 1], [2, 1]), ([2, -1], [2, None]), ([-1, -1], [None, None]), ([None, 1], [None, 1])],
)
def test_a_list_of_classes_numbers_those_without_an_image(
    tmp_path: Path, labels: list[int | None], right: list[int | None]
) -> None:
    """Hugging Face's ClassLabel names all of them: the first one keeps 0 though no image has it;
    -1 is none.
    """
    import pyarrow as pa
    from pyarrow import parquet

    save_images(tmp_path, "a.jpg", "b.jpg")
    images = [
        {"bytes": (tmp_path / name).read_bytes(), "path": name} for name in ("a.jpg", "b.jpg")
    ]
    features = {"image": {"_type": "Image"}, "label": {"_type": "ClassLabel", "names": list(INDEX)}}
    metadata = {"huggingface": json.dumps({"info": {"features": features}})}
    table = pa.table(
        {"image": images, "label": pa.array(labels, pa.int64())}
    ).replace_schema_metadata(metadata)
    parquet.write_table(table, tmp_path / "d.parquet")
    layout = make(tmp_path, "source: {parquet: d.parquet}\nshuffle: false\n")
    found = imagenet_prep.open(layout.output_dir, "train")
    numbers = {record.filename.rpartition("/")[2]: record.class_index for record in found}
    assert numbers == dict(zip(("a.jpg", "b.jpg"), right, strict=True))
    names = {label - found.first_label: name for label, name in found.class_names.items()}
    assert names == {number: name for name, number in INDEX.items()}
    assert verify(layout, ENGINE).problems == ()


# refused before anything is written ---------------------------------------------------------------


class Refusal(NamedTuple):
    """The classes of a second set, what its recipe says more, and the error:
    words of it, and the key to write.
    """

    classes: tuple[str, ...]
    more: str
    words: str
    key: str


REFUSALS = {
    "a new class": Refusal(
        ("cat", "emu"),
        "",
        "emu is a new class, which the shards of train",
        "classes: [cat, dog, fox, emu]",
    ),
    "names that YAML quotes": Refusal(
        ("cat", "null", "1e3: a, b"),
        "",
        "1e3: a, b is a new class, which the shards of train",
        'classes: [cat, dog, fox, "1e3: a, b", "null"]',
    ),
    "other classes": Refusal(
        ("a", "b"),
        "",
        "a is a new class, which the shards of train",
        "classes: [cat, dog, fox, a, b]",
    ),
    "another order": Refusal(
        ("cat", "dog"),
        "classes: [dog, cat]\n",
        "class dog would have label 1",
        "classes: [cat, dog, fox]",
    ),
    "one class between": Refusal(
        ("cat", "fox"),
        "classes: [cat, fox]\n",
        "class fox would have label 2",
        "classes: [cat, dog, fox]",
    ),
    "another class of a number": Refusal(
        ("cat", "dog"),
        "classes: [cat, dog, emu]\n",
        "label 3 would be emu",
        "classes: [cat, dog, fox, emu]",
    ),
    "another first label": Refusal(
        ("cat", "dog"),
        "classes: [cat, dog, fox]\nfirst_label: 0\n",
        "class cat would have label 0",
        "first_label: 1",
    ),
    "numbers": Refusal(("1", "2"), "", "label 1 would be 1", "classes: [cat, dog, fox, 1, 2]"),
}


@pytest.fixture(scope="module")
def first_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the set of three classes in ``out``; others are copied from it."""
    folder = tmp_path_factory.mktemp("first")
    save_images(folder / "train", *(f"{name}/{name}{n}.jpg" for name in INDEX for n in range(2)))
    make(folder, "source: {folders: train}\noutput_file_prefix: train\n", "train.yaml")
    return folder


@pytest.mark.parametrize("name", REFUSALS)
def test_a_second_set_with_another_numbering_is_refused(
    tmp_path: Path, first_set: Path, name: str
) -> None:
    """The error names the key to write, and every byte stays;
    with that key, the second set is made.
    """
    classes, more, words, key = REFUSALS[name]
    folder = Path(shutil.copytree(first_set, tmp_path / "copy"))
    save_images(folder / "val", *(f"{each}/{each}9.jpg" for each in classes))
    before = {path: path.read_bytes() for path in existing(folder, "**/*") if path.is_file()}
    recipe = "source: {folders: val}\noutput_file_prefix: val\n"
    with pytest.raises(InputError, match=words) as caught:
        make(folder, recipe + more, "val.yaml")
    after = {
        path: path.read_bytes()
        for path in existing(folder, "**/*")
        if path.is_file() and path.name != "val.yaml"
    }
    assert {path: content for path, content in after.items() if path.name != "lock"} == {
        path: content for path, content in before.items() if path.name != "lock"
    }
    assert key in caught.value.hint
    declared = caught.value.hint.partition("classes: ")[2].partition("]")[0]
    layout = make(folder, f"{recipe}classes: {declared}]\nfirst_label: 1\n", "val.yaml")
    found = imagenet_prep.open(layout.output_dir, "val")
    train = imagenet_prep.open(layout.output_dir, "train").class_names
    assert found.class_names.items() >= train.items()
    assert {found.class_names[record.label or 0] for record in found} == set(classes)


def test_a_set_made_anew_numbers_its_classes_anew(tmp_path: Path) -> None:
    """With --overwrite, if no other set is there."""
    save_images(tmp_path / "data", "b/1.jpg", "c/2.jpg")
    make(tmp_path, "source: {folders: data}\n")
    save_images(tmp_path / "data", "a/3.jpg")
    path = tmp_path / "recipe.yaml"
    dataset = RecipeSet.read(path)
    convert(
        Layout(tmp_path / "out"), ENGINE, dataset.options.replace(overwrite=True), dataset=dataset
    )
    assert imagenet_prep.open(tmp_path / "out", "train").class_names == {1: "a", 2: "b", 3: "c"}


def test_a_later_set_stays_right_when_the_first_is_gone(tmp_path: Path, first_set: Path) -> None:
    """Its own manifest keeps the numbers: the same convert finds everything done."""
    folder = Path(shutil.copytree(first_set, tmp_path / "copy"))
    save_images(folder / "val", "fox/fox9.jpg")
    recipe = "source: {folders: val}\noutput_file_prefix: val\n"
    make(folder, recipe, "val.yaml")
    shutil.rmtree(folder / "out/imagenet-prep/sets/train")
    for path in existing(folder / "out", "train-*"):
        path.unlink()
    before = {path.name: path.stat().st_mtime_ns for path in existing(folder / "out", "val-*")}
    make(folder, recipe, "val.yaml")
    assert {
        path.name: path.stat().st_mtime_ns for path in existing(folder / "out", "val-*")
    } == before
    assert [record.class_index for record in imagenet_prep.open(folder / "out", "val")] == [2]


# boxes --------------------------------------------------------------------------------------------


def annotate_image(folder: Path, name: str, *classes: str) -> None:
    """An image with a box of each class, as Pascal VOC has it."""
    save_images(folder, f"{name}.jpg")
    objects = "".join(
        f"<object><name>{each}</name><bndbox><xmin>1</xmin><ymin>1</ymin><xmax>9</xmax><ymax>9</ymax></bndbox></object>"
        for each in classes
    )
    size = "<size><width>16</width><height>16</height><depth>3</depth></size>"
    save(folder / f"{name}.xml", f"<annotation>{size}{objects}</annotation>".encode())


def test_boxes_have_one_numbering_too(tmp_path: Path) -> None:
    """A class of boxes has the number that the first set gave it;
    a new one is refused, with the key to write.
    """
    annotate_image(tmp_path / "train", "a", "cat", "dog")
    annotate_image(tmp_path / "val", "b", "dog")
    recipe = "source: {{files: '{0}/*.jpg'}}\nboxes: {{voc: {0}}}\noutput_file_prefix: {0}\n"
    for split in ("train", "val"):
        layout = make(tmp_path, recipe.format(split), f"{split}.yaml")
    (record,) = imagenet_prep.open(tmp_path / "out", "val")
    assert record.features["image/object/class/label"] == [2]
    assert verify(layout, ENGINE).problems == ()
    annotate_image(tmp_path / "test", "c", "ant", "dog")
    with pytest.raises(InputError, match=r"label 1 .*\bant") as caught:
        make(tmp_path, recipe.format("test"), "test.yaml")
    assert "names: [cat, dog, ant]" in caught.value.hint


def coco(folder: Path, split: str, *classes: str) -> None:
    """An image with a box of each class, as COCO has it: its ids count from 1."""
    save_images(folder, f"{split}/a.jpg")
    boxes = [
        {"image_id": 1, "category_id": n, "bbox": [1, 1, 8, 8]} for n in range(1, len(classes) + 1)
    ]
    content = {
        "images": [{"id": 1, "file_name": "a.jpg", "width": 16, "height": 16}],
        "annotations": [{"id": number, **box} for number, box in enumerate(boxes, 1)],
        "categories": [{"id": number, "name": name} for number, name in enumerate(classes, 1)],
    }
    save(folder / f"{split}.json", json.dumps(content).encode())


def test_ids_of_coco_that_mean_something_else_are_refused(tmp_path: Path) -> None:
    """They stay as the file has them, so that the file of one split must fit that of another."""
    coco(tmp_path, "train", "cat", "dog")
    coco(tmp_path, "val", "dog", "cat")
    recipe = "source: {{files: '{0}/*.jpg'}}\nboxes: {{coco: {0}.json}}\noutput_file_prefix: {0}\n"
    make(tmp_path, recipe.format("train"), "train.yaml")
    with pytest.raises(InputError, match=r"label 1 .*\bdog") as caught:
        make(tmp_path, recipe.format("val"), "val.yaml")
    assert caught.value.detail == "expected 1 for cat, as in train"
    assert caught.value.hint.startswith("give the classes of boxes the same numbers in all files")
    assert not list((tmp_path / "out").glob("val-*"))


def test_numbers_of_parquet_that_mean_something_else_are_refused(tmp_path: Path) -> None:
    """No recipe can number their boxes otherwise: the hint doesn't speak of the recipe."""
    for split, names in (("train", ["cat", "dog"]), ("val", ["dog", "cat"])):
        objects = {"bbox": [[1.0, 1.0, 8.0, 8.0]], "category": [0]}
        save(tmp_path / f"{split}.parquet", parquet_file(objects, names))
    recipe = "source: {{parquet: {0}.parquet}}\noutput_file_prefix: {0}\n"
    make(tmp_path, recipe.format("train"), "train.yaml")
    with pytest.raises(InputError, match=r"label 0 .*\bdog") as caught:
        make(tmp_path, recipe.format("val"), "val.yaml")
    assert caught.value.hint.startswith("give the classes of boxes the same numbers in all files")
    numbered = recipe.format("val") + "boxes: {names: [cat, dog]}\n"
    with pytest.raises(UsageError, match="line 3: boxes: it has only names"):
        make(tmp_path, numbered, "val.yaml")
