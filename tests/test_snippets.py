"""Every block of code on every page: which test runs it, or why none can;
and those of the shell, run here.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from kaggle_copies import tree, write_zip
from made_boxes import coco_set
from made_sets import ENGINE, PART, make_flowers
from object_server import ObjectServer
from running import command
from test_docs import DOCUMENTS, ROOT, blocks

import imagenet_prep
from imagenet_prep import records
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import UsageError
from imagenet_prep.reading.shard import Shard
from imagenet_prep.recipes.loading import read
from imagenet_prep.recipes.rules import is_imagenet
from imagenet_prep.registry import imagenet_options
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.location import locate

pytestmark = [
    pytest.mark.project,
    pytest.mark.once,
    pytest.mark.timeout(1800),
]  # no limit that busy machines reach

LANGUAGES = ("python", "sh", "yaml")
HERE = "test_snippets.py::test_{}"
SHELL, RECIPES = HERE.format("a_block_of_the_shell_runs"), HERE.format("recipes_are_read")
PAGE = "test_recipe_pages.py::test_a_page_does_what_it_says"
SUBSET = HERE.format("a_subset_of_a_zip_is_read")
MACHINES, OFFICIAL, SUITE = (
    "not: takes several machines",
    "not: takes image-net.org",
    "not: is this suite",
)

LEDGER: dict[str, list[str]] = {
    "README.md": [
        "not: is make demo",
        SUITE,
        OFFICIAL,
        "test_docs.py::test_the_loop_of_the_readme_runs",
    ],
    "CONTRIBUTING.md": [SUITE],
    "docs/cli.md": ["not: takes archives whose digest is published", SHELL],
    "docs/cluster.md": [MACHINES] * 2,
    "docs/export.md": [
        SHELL,
        "test_export_readers.py::test_the_program_of_the_page_reads_tars",
        "test_export_readers.py::test_the_program_of_the_page_reads_folders",
        SHELL,
        "test_export_tfds.py::test_the_example_of_the_page_runs",
        "test_other_readers.py::test_the_example_of_the_page_runs",
    ],
    "docs/getting-imagenet.md": [
        "test_boxes_of_copies.py::test_the_commands_of_the_page",
        *["test_source_commands.py::test_the_commands_of_the_page"] * 3,
    ],
    "docs/howto/check.md": [SHELL],
    "docs/howto/coco-voc.md": [HERE.format("coco_is_converted")] * 3,
    "docs/howto/compare.md": ["not: its sets differ, so its status is 3; test_diff.py"],
    "docs/howto/detection.md": [
        *["test_detection_page.py::test_the_detector_of_the_page_learns"] * 2,
        "test_detection_page.py::test_the_loop_of_the_page_for_masks_runs",
    ],
    "docs/howto/own-splits.md": [SHELL, SHELL, RECIPES, RECIPES],
    "docs/howto/prove-labels.md": ["not: takes ImageNet; test_prove_labels.py"] * 2,
    "docs/howto/resize.md": [SHELL],
    "docs/howto/resume.md": [SHELL],
    "docs/howto/s3.md": [
        HERE.format("the_steps_to_a_store_run"),
        HERE.format("a_set_in_a_store_opens"),
    ],
    "docs/howto/slurm.md": [MACHINES],
    "docs/howto/subset.md": [SUBSET, SUBSET],
    "docs/howto/time-and-space.md": [SHELL],
    "docs/index.md": [SHELL],
    "docs/install.md": ["not: is a clone of this repository"],
    "docs/object-stores.md": [HERE.format("a_set_in_a_store_opens")],
    "docs/python.md": [
        "test_docs.py::test_the_api_example_runs",
        "test_docs.py::test_reading_by_number_runs",
    ],
    "docs/recipes.md": [SHELL, RECIPES, RECIPES],
    "docs/recipes/arrays.md": [PAGE, PAGE],
    "docs/recipes/class-folders.md": [PAGE, SHELL, PAGE],
    "docs/recipes/imagenet.md": [
        "test_recipe_pages.py::test_the_page_of_imagenet_has_the_shipped_recipe",
        SHELL,
        RECIPES,
    ],
    "docs/recipes/labels.md": [PAGE, PAGE],
    "docs/recipes/pixels.md": [PAGE, PAGE],
    "docs/recipes/table.md": [
        "test_table_page.py::test_the_table_of_the_page_is_converted",
        "test_table_page.py::test_the_table_of_the_page_is_converted",
        "test_table_page.py::test_the_function_of_the_page_for_matlab_runs",
        "test_table_page.py::test_the_function_of_the_page_for_matlab_runs",
        "test_table_page.py::test_the_function_of_the_page_for_matlab_runs",
        "test_table_page.py::test_the_function_of_the_page_for_a_database_runs",
        "test_table_page.py::test_the_function_of_the_page_for_a_database_runs",
    ],
    "docs/recipes/tars.md": [PAGE, PAGE],
    "docs/records.md": ["test_records.py::test_the_page_is_right"] * 7,
    "docs/report.md": [SHELL] * 4,
    "docs/train/jax.md": [
        "test_train_pages.py::test_a_network_of_jax_learns",
        "test_train_pages.py::test_the_source_for_grain_goes_on",
        "test_train_pages.py::test_two_hosts_share_a_global_batch_of_jax",
    ],
    "docs/train/pytorch.md": [
        "test_train_pages.py::test_a_network_of_pytorch_learns_and_its_workers_end",
        "test_device.py::test_the_example_of_the_page",
        *[HERE.format("training_goes_on_from_a_checkpoint")] * 2,
        HERE.format("raw_images_open"),
    ],
    "docs/train/tensorflow.md": [
        "test_train_pages.py::test_a_network_of_tensorflow_learns",
        "test_train_pages.py::test_a_pipeline_of_ones_own",
    ],
    "docs/tutorial.md": ["test_train_pages.py::test_the_tutorial_runs"] * 5,
}
"""By page, for each block in its order: the test that runs it, or why none does."""


def found(path: Path) -> list[tuple[str, str]]:
    """The blocks of a page in one of the languages, in order."""
    every = re.findall(r"^```(\w*)\n(.*?)^```$", path.read_text(), re.M | re.S)
    return [(language, block) for language, block in every if language in LANGUAGES]


def test_every_block_is_accounted_for() -> None:
    """The ledger has each block of each page."""
    counts = {str(path.relative_to(ROOT)): len(found(path)) for path in DOCUMENTS if found(path)}
    assert {page: len(entries) for page, entries in LEDGER.items()} == counts


@pytest.mark.parametrize(
    "test", sorted({entry for entries in LEDGER.values() for entry in entries})
)
def test_the_test_is_there(test: str) -> None:
    """Each test that is named exists."""
    module, _, name = test.partition("::")
    if not test.startswith("not: "):
        assert re.search(rf"^def {name}\(", (ROOT / "tests" / module).read_text(), re.M)


# the shell ----------------------------------------------------------------------------------------

OF_THE_SHELL = [
    (page, block)
    for page, entries in LEDGER.items()
    for (_, block), entry in zip(found(ROOT / page), entries, strict=True)
    if entry == SHELL
]
ONE_OF_ALL = "--allow-incomplete --train-shards 8 --validation-shards 8"
IMAGENET = (ROOT / "docs/recipes/imagenet.md").read_text()


@pytest.fixture(scope="module")
def converted(tmp_path_factory: pytest.TempPathFactory, made_tiny: MadeSet) -> Path:
    """The shards of the tiny ImageNet. Read only."""
    folder = tmp_path_factory.mktemp("converted")
    imagenet_prep.convert(Layout(folder, raw=made_tiny.archives["train"].parent), ENGINE, PART)
    return folder


@pytest.fixture
def folder(tmp_path: Path, converted: Path) -> Path:
    """A folder with all that the blocks speak of;
    /data/imagenet stands for the tiny ImageNet there.
    """
    for name in ("demo-data", "other-data"):
        shutil.copytree(converted, tmp_path / name)
    make_flowers(tmp_path / "flowers", 20, ("daisy", "rose", "tulip"))
    for split in ("train", "val", "test"):
        shutil.copytree(tmp_path / "flowers", tmp_path / "photos" / split)
    for day in ("monday", "friday"):
        shutil.copytree(tmp_path / "flowers", tmp_path / "shoots" / day)
    recipe = blocks(IMAGENET, "yaml")[0]
    recipe = (
        recipe.replace("allow_incomplete: false", "allow_incomplete: true")
        .replace("1024", "8")
        .replace("128", "8")
    )
    (tmp_path / "imagenet.yaml").write_text(recipe)
    return tmp_path


def run_lines(script: str, folder: Path, **environment: str) -> None:
    """Run lines of a page in a folder, with this Python's imagenet-prep;
    each must end with status 0.

    A block of nothing but plain commands needs no shell: they are forked, which takes less time.
    """
    lines = [line for line in script.splitlines() if line]
    if all(re.fullmatch(r"imagenet-prep [^|<>$&;~\\*?'\"]+", line) for line in lines):
        for line in lines:
            _, *words = shlex.split(line, comments=True)
            command(*words, cwd=folder, **environment)
        return
    script = script.replace("imagenet-prep ", f"{sys.executable} -m imagenet_prep ")
    call, variables = ["bash", "-euo", "pipefail", "-c", script], {**os.environ, **environment}
    done = subprocess.run(call, cwd=folder, capture_output=True, text=True, env=variables)
    assert done.returncode == 0, done.stderr + done.stdout


@pytest.mark.timeout(
    1800
)  # a demo, a report and a run in one block, each at its own pace on a busy machine
@pytest.mark.parametrize(
    ("page", "block"), OF_THE_SHELL, ids=[f"{page}-{n}" for n, (page, _) in enumerate(OF_THE_SHELL)]
)
def test_a_block_of_the_shell_runs(
    page: str, block: str, folder: Path, tiny_data_dir: Path
) -> None:
    """Each line ends well, as it stands but for the folder,
    and that the ImageNet there is not a whole one.
    """
    if "demo demo-data" in block:  # as large as it is, it runs in the tutorial
        shutil.rmtree(folder / "demo-data")
        block = block.replace("demo demo-data", "demo demo-data --classes 4 --per-class 3")
    if "export" in block:
        imagenet_prep.convert(Layout(tiny_data_dir), ENGINE, PART)
    if "--mark flags.csv" in block:
        shard = min((folder / "demo-data").glob("train-*"))
        record = next(Shard.open(shard).records())
        (folder / "flags.csv").write_text(f"filename\n{record.filename}\n")
    if page.endswith("class-folders.md"):
        (folder / "flowers.yaml").write_text(blocks((ROOT / page).read_text(), "yaml")[0])
    script = re.sub(r"^pip install .*\n", "", block, flags=re.M)
    script = re.sub(
        r"(imagenet-prep (?:run|convert) /data/imagenet\S*)", rf"\1 {ONE_OF_ALL}", script
    )
    script = script.replace("/data/colleague", "demo-data")
    script = script.replace("/data/imagenet", str(tiny_data_dir)).replace(
        "DATA_DIR", str(tiny_data_dir)
    )
    run_lines(script, folder, HOME=str(folder), BROWSER="true")


# recipes, stores, checkpoints ---------------------------------------------------------------------


def check(path: Path) -> None:
    """Read a recipe, of ImageNet or of another data set."""
    file = read(path)
    if is_imagenet(file):
        imagenet_options(file)


def test_recipes_are_read(tmp_path: Path) -> None:
    """Recipes that no test converts are recipes;
    what shows one key alone is one with a source beside it.
    """
    pages = (ROOT / "docs/recipes.md", ROOT / "docs/howto/own-splits.md")
    parts = [block for page in pages for block in blocks(page.read_text(), "yaml")]
    path = tmp_path / "recipe.yaml"
    whole = [
        part if part.startswith("source:") else f"source: {{folders: images}}\n{part}"
        for part in parts
    ]
    for text in (*whole, blocks(IMAGENET, "yaml")[1]):
        path.write_text(text)
        check(path)
        path.write_text(text + "\nshrads: 2\n")
        with pytest.raises(UsageError, match="shrads"):
            check(path)


@pytest.mark.parametrize("page", ["docs/object-stores.md", "docs/howto/s3.md"])
def test_a_set_in_a_store_opens(page: str, objects: ObjectServer, tiny_data_dir: Path) -> None:
    """The line of the page on object stores gives every record."""
    url = objects.new_bucket()
    imagenet_prep.convert(Layout(tiny_data_dir, output=locate(url)), ENGINE, PART)
    (block,) = blocks((ROOT / page).read_text(), "python")
    names: dict[str, Any] = {"imagenet_prep": imagenet_prep}
    exec(block.replace("s3://bucket/imagenet", url), names)
    assert len(names["train"]) == 300


def test_the_steps_to_a_store_run(
    objects: ObjectServer, tiny_data_dir: Path, tmp_path: Path
) -> None:
    """The commands of the guide make a set in a bucket and verify it."""
    (block,) = blocks((ROOT / "docs/howto/s3.md").read_text(), "sh")
    lines = "\n".join(line for line in block.splitlines() if line.startswith("imagenet-prep"))
    lines = lines.replace("s3://bucket/imagenet", objects.new_bucket())
    lines = lines.replace("convert /data/imagenet", f"convert {tiny_data_dir} {ONE_OF_ALL}")
    run_lines(lines, tmp_path)


def test_coco_is_converted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page's commands, its recipe, its program:
    every image of both splits, and the names of its boxes.
    """
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs/howto/coco-voc.md").read_text()
    values = [coco_set(tmp_path / "coco", split=split) for split in ("train2017", "val2017")]
    (commands,), (recipe,), (program,) = (blocks(page, each) for each in ("sh", "yaml", "python"))
    run_lines(commands, tmp_path)
    proposed = read(tmp_path / "coco.yaml").recipe
    (tmp_path / "coco.yaml").write_text(recipe)
    said = read(tmp_path / "coco.yaml").recipe
    assert said.boxes == proposed.boxes
    for split, value in zip(("train", "validation"), values, strict=True):
        assert len(list(records.read(f"coco-shards/{split}-*"))) == len(value["images"])
    names: dict[str, Any] = {}
    exec(program, names)
    assert names["names"].dtype.name == "string"


def test_a_subset_of_a_zip_is_read(made_tiny: MadeSet, tmp_path: Path) -> None:
    """The command of the guide, with a list of classes that the zip has, and the loop after it."""
    page = (ROOT / "docs/howto/subset.md").read_text()
    files = tree(made_tiny)
    write_zip(tmp_path / "kaggle", files)
    wnids = sorted(
        {
            name.split("/")[-2]
            for name in files
            if "CLS-LOC/train/n" in name and name.endswith("JPEG")
        }
    )[:3]
    (tmp_path / "mine").write_text("\n".join(wnids))
    (command,) = blocks(page, "sh")
    command = command.replace("/data/imagenette", str(tmp_path / "set")).replace(
        "/data/kaggle", str(tmp_path / "kaggle")
    )
    run_lines(
        command.replace("--classes imagenette", "--classes mine --allow-incomplete"), tmp_path
    )
    (loop,) = blocks(page, "python")
    names: dict[str, Any] = {}
    exec(
        loop.replace("/data/imagenette", str(tmp_path / "set")).replace(
            "num_workers=8", "num_workers=0"
        ),
        names,
    )
    assert {int(label) for _, labels in names["train"] for label in labels} == {0, 1, 2}


def of_pytorch(word: str, data_dir: Path) -> str:
    """The block of the page that has a word in it."""
    (block,) = (
        each
        for each in blocks((ROOT / "docs/train/pytorch.md").read_text(), "python")
        if word in each
    )
    return block.replace("/data/imagenet", str(data_dir))


def test_raw_images_open(tiny_data_dir: Path) -> None:
    """The records that shards would have are there before any shard is."""
    names: dict[str, Any] = {"imagenet_prep": imagenet_prep}
    part = 'source="raw", options=imagenet_prep.ConvertOptions(allow_incomplete=True)'
    exec(of_pytorch('source="raw"', tiny_data_dir).replace('source="raw"', part), names)
    assert len(names["records"]) == 300


def test_training_goes_on_from_a_checkpoint(
    tiny_data_dir: Path, torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is saved in mid-epoch and loaded by another loader gives the batches that were left."""
    from imagenet_prep.torch import ImageDataset, Loader

    monkeypatch.chdir(tmp_path)
    imagenet_prep.convert(Layout(tiny_data_dir), ENGINE, PART)
    records = imagenet_prep.open(tiny_data_dir, "train")

    def loader() -> Any:
        return Loader(ImageDataset(records, lambda image: image), batch_size=50)

    def labels(batches: Iterator[Any]) -> list[list[int]]:
        return [each.tolist() for _, each in batches]

    expected = labels(iter(loader()))
    train = loader()
    before = labels(batch for _, batch in zip(range(2), train, strict=False))
    names: dict[str, Any] = {"torch": torch, "network": torch.nn.Linear(1, 1), "train": train}
    exec(of_pytorch("torch.save", tiny_data_dir), names)
    names["train"] = loader()
    exec(of_pytorch("load_state_dict", tiny_data_dir), names)
    assert before + labels(iter(names["train"])) == expected
