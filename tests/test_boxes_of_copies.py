"""Copies of ImageNet with and without boxes: the advised commands give the records their boxes."""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
from copies_of_imagenet import write_hugging_face
from file_server import serve
from kaggle_copies import tree, write_tree, write_zip
from made_sets import ENGINE
from memory_store import MemoryStore
from running import command, error_lines, prep

import imagenet_prep
from imagenet_prep import ConvertOptions, Layout, annotate, convert, status
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError
from imagenet_prep.ilsvrc2012.planned_boxes import _note_without_boxes
from imagenet_prep.storage.location import Location

pytestmark = pytest.mark.once

PART = ("--allow-incomplete", "--train-shards", "2", "--validation-shards", "1", "--workers", "1")
ACCOUNT = {"IMAGENET_USERNAME": "name", "IMAGENET_ACCESS_KEY": "key"}
README = Path(__file__).parents[1] / "README.md"
PAGE = README.parent / "docs/getting-imagenet.md"


def write_archives(folder: Path, made: MadeSet) -> None:
    """All archives of image-net.org."""
    shutil.copytree(made.archives["train"].parent, folder)


def write_archives_without_boxes(folder: Path, made: MadeSet) -> None:
    """Those of images alone."""
    write_archives(folder, made)
    made_boxes = [folder / made.archives[key].name for key in ("boxes", "validation-boxes")]
    for path in made_boxes:
        path.unlink()


def write_kaggle_zip(folder: Path, made: MadeSet) -> None:
    """The zip of Kaggle."""
    write_zip(folder, tree(made))


def write_kaggle_tree(folder: Path, made: MadeSet) -> None:
    """The zip, unpacked."""
    write_tree(folder, tree(made))


def write_parquet(folder: Path, made: MadeSet) -> None:
    """The parquet files of Hugging Face."""
    write_hugging_face(folder, made)


def write_class_folders(folder: Path, made: MadeSet) -> None:
    """Folders train/ and val/ with a folder of each class."""
    wnids = {name: image.wnid for name, image in made.images.items()}
    for path, content in tree(made).items():
        split, _, rest = path.removeprefix("ILSVRC/Data/CLS-LOC/").partition("/")
        name = rest.rpartition("/")[2]
        if split in ("train", "val") and path.startswith("ILSVRC/Data/"):
            write_tree(folder, {f"{split}/{wnids[name]}/{name}": content})


Write = Callable[[Path, MadeSet], None]
WITH_BOXES: Mapping[str, Write] = {
    "archives": write_archives,
    "Kaggle's zip": write_kaggle_zip,
    "Kaggle's tree": write_kaggle_tree,
}
WITHOUT_BOXES: Mapping[str, Write] = {
    "parquet": write_parquet,
    "class folders": write_class_folders,
    "archives of images": write_archives_without_boxes,
}


@pytest.fixture
def url(tmp_path: Path, made_tiny: MadeSet) -> Iterator[str]:
    """The address of a server that has the archives of boxes."""
    folder = tmp_path / "served"
    folder.mkdir()
    for key in ("boxes", "validation-boxes"):
        shutil.copy(made_tiny.archives[key], folder)
    with serve(folder, ACCOUNT["IMAGENET_USERNAME"], ACCOUNT["IMAGENET_ACCESS_KEY"]) as address:
        yield address


def boxes_in(data_dir: str) -> int:
    """The number of boxes in the train records of a set."""
    return sum(len(record.boxes) for record in imagenet_prep.open(Path(data_dir), "train"))


def readme_row(words: str) -> list[str]:
    """The commands of the README's row for a copy."""
    (row,) = [line for line in README.read_text().splitlines() if line.startswith(f"| {words}")]
    return re.findall(r"`imagenet-prep ([^`]*)`", row)


def words_of(text: str) -> list[str]:
    """The words of an advised command, with the folders of the test."""
    return shlex.split(text.replace("DATA_DIR", "new").replace("FOLDER", "raw"))


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", WITH_BOXES)
def test_the_row_of_copies_with_boxes(inside: Path, made_tiny: MadeSet, kind: str) -> None:
    """annotate, then convert: the train records have boxes."""
    WITH_BOXES[kind](inside / "raw", made_tiny)
    (annotate,) = readme_row("the archives with the boxes")
    command(*words_of(annotate))
    command("convert", "new", "--raw", "raw", *PART)
    assert boxes_in("new") > 0


@pytest.mark.filterwarnings("ignore::UserWarning")
@pytest.mark.parametrize("kind", WITHOUT_BOXES)
def test_copies_without_boxes(inside: Path, made_tiny: MadeSet, url: str, kind: str) -> None:
    """The README's row converts them; the note of convert says how to add boxes,
    and its commands do.
    """
    WITHOUT_BOXES[kind](inside / "raw", made_tiny)
    (convert,) = readme_row("parquet files or class folders")
    ran = command(*words_of(convert), *PART)
    assert boxes_in("new") == 0
    assert "no boxes for train: no annotations were there when this set was started" in ran.stderr
    (download,) = re.findall(r"run imagenet-prep (download new --only boxes), ", ran.stderr)
    (annotate,) = re.findall(r"then imagenet-prep (annotate new --raw raw), ", ran.stderr)
    command(*words_of(download), "--base-url", url, "--no-digest", **ACCOUNT)
    command(*words_of(annotate))
    command("convert", "new", "--raw", "raw", *PART, "--overwrite")
    assert boxes_in("new") > 0


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_the_commands_of_the_page(inside: Path, made_tiny: MadeSet, url: str) -> None:
    """The page's section on boxes, from a copy without boxes to records with boxes."""
    write_parquet(inside / "raw", made_tiny)
    section = PAGE.read_text().partition("\n## Boxes\n")[2]
    block = section.partition("```sh\n")[2].partition("```")[0]
    more = {"download": ("--base-url", url, "--no-digest"), "convert": PART}
    for line in block.replace("/data/imagenet", "new").replace("/data/copy", "raw").splitlines():
        words = shlex.split(line.removeprefix("imagenet-prep "))
        command(*words, *more.get(words[0], ()), **ACCOUNT)
    assert boxes_in("new") > 0


@pytest.mark.parametrize("kind", WITHOUT_BOXES)
def test_annotate_of_copies_without_boxes(
    inside: Path, made_tiny: MadeSet, url: str, kind: str
) -> None:
    """It refuses and writes nothing; after the command that it proposes, the same call succeeds."""
    WITHOUT_BOXES[kind](inside / "raw", made_tiny)
    refused = prep("annotate", "new", "--raw", "raw")
    assert refused.returncode == 4
    assert not Path("new").exists()
    what, expected, hint = error_lines(refused)
    assert "no annotations of train images in raw" in what
    assert "--boxes" in expected
    command(
        *shlex.split(hint.removeprefix("imagenet-prep ")),
        "--base-url",
        url,
        "--no-digest",
        **ACCOUNT,
    )
    command("annotate", "new", "--raw", "raw")


@pytest.mark.parametrize("kind", WITHOUT_BOXES)
def test_validation_boxes_of_copies_without_boxes(
    inside: Path, made_tiny: MadeSet, url: str, kind: str
) -> None:
    """convert names the download of all that annotate reads, then the annotate of this copy;
    both work.
    """
    WITHOUT_BOXES[kind](inside / "raw", made_tiny)
    call = ("convert", "new", "--raw", "raw", *PART, "--set", "validation_boxes=true")
    hint = error_lines(prep(*call))[-1].removeprefix("make it: imagenet-prep ")
    download, _, annotate = hint.partition(" && imagenet-prep ")
    command(*shlex.split(download), "--base-url", url, "--no-digest", **ACCOUNT)
    assert "--raw raw" in annotate
    command(*shlex.split(annotate))
    command(*call)


def test_no_annotate_into_an_object_store_is_advised(tmp_path: Path, made_tiny: MadeSet) -> None:
    """It reads and writes local folders only; convert takes the boxes that it makes there."""
    raw_dir = tmp_path / "raw"
    write_kaggle_tree(raw_dir, made_tiny)
    layout = Layout(Location(MemoryStore(), "set"), raw_dir)
    assert status(layout).following == f"imagenet-prep convert memory://tests/set --raw {raw_dir}"
    assert _note_without_boxes(layout, "train").endswith(
        f"although {raw_dir}/ILSVRC/Annotations/CLS-LOC/train was there when this set was "
        "started; to add boxes, run imagenet-prep annotate FOLDER with a local FOLDER, put its "
        f"{layout.boxes_csv.name} into the folder of raw data, then run the same imagenet-prep "
        "convert with --overwrite"
    )
    options = ConvertOptions(
        train_shards=2, validation_shards=1, allow_incomplete=True, validation_boxes=True
    )
    with pytest.raises(InputError, match="no boxes for validation") as caught:
        convert(layout, ENGINE, options)
    assert caught.value.hint == (
        "make it with imagenet-prep annotate FOLDER --validation-boxes with a local FOLDER, "
        f"and put it into {raw_dir}"
    )
    local_layout = Layout(tmp_path / "local", raw_dir)
    annotate(local_layout, ENGINE, validation=True)
    shutil.copy(local_layout.validation_boxes_csv, raw_dir)
    convert(layout, ENGINE, options)


@pytest.mark.parametrize("form", ["archive", "folder"])
def test_annotate_starts_a_data_dir_with_boxes_of_your_own(
    inside: Path, made_tiny: MadeSet, form: str
) -> None:
    """Only the result goes there, so it may be new;
    the boxes are those of annotate without --boxes.
    """
    write_kaggle_tree(inside / "raw", made_tiny)
    annotations = inside / "raw/ILSVRC/Annotations/CLS-LOC/train"
    command(
        "annotate",
        "new",
        "--boxes",
        made_tiny.archives["boxes"] if form == "archive" else annotations,
    )
    command("annotate", "other", "--raw", "raw")
    assert (
        Layout(Path("new")).boxes_csv.read_bytes() == Layout(Path("other")).boxes_csv.read_bytes()
    )


def test_annotate_refuses_before_it_writes(inside: Path, made_tiny: MadeSet) -> None:
    """Without annotations of validation images, those of train are not written either;
    a mistyped PATH is named.
    """
    refused = prep("annotate", "new", "--boxes", made_tiny.archives["boxes"], "--validation-boxes")
    assert refused.returncode == 4
    assert "no annotations of validation images" in refused.stderr
    refused = prep("annotate", "new", "--boxes", "nothing")
    assert refused.returncode == 2
    assert "nothing" in refused.stderr
    refused = prep("annotate", "new")
    assert refused.returncode == 2
    assert "new does not exist" in refused.stderr
    assert not Path("new").exists()
