"""A format of exports is one new file."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from made_boxes import photograph
from made_tars import save
from running import command, prep

import imagenet_prep

TOY = '''
"""imagefolder: a file per image, and one metadata.jsonl per split."""

import json

from imagenet_prep.exports.packing import Packer, handed_over
from imagenet_prep.exports.image_values import find_meaning


class ImageFolderPacker(Packer):
    unit = "image"

    def __init__(self, source):
        self.meaning = find_meaning(source.manifest)

    def pack(self, shard, files):
        lines = []
        for _, values in files.values(self.meaning):
            name = f"{values.filename}{values.true_ending}"
            path = f"{shard.split}/{name}"
            if not files.has(path, len(values.encoded)):
                files.write(path, [values.encoded])
            lines.append(json.dumps({"file_name": name, "text": values.text}) + "\\n")
        files.hand_over("".join(lines).encode())

    def finish(self, source, out):
        return {
            f"{split}/metadata.jsonl": b"".join(handed_over(out, shard) for shard in shards)
            for split, shards in source.splits.items()
        }


PACKER = ImageFolderPacker
'''


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a copy of the package that has the format, and a set of two shards."""
    folder = tmp_path_factory.mktemp("toy")
    shutil.copytree(Path(imagenet_prep.__file__).parent, folder / "imagenet_prep")
    save(folder / "imagenet_prep/exports/to_imagefolder.py", TOY)
    for name in ("cat/a.jpg", "dog/b.jpg"):
        save(folder / "data" / name, photograph(80, 40))
    save(folder / "recipe.yaml", "source: {folders: data}\nshards: 2\nshuffle: false\n")
    command("convert", "out", "--config", "recipe.yaml", cwd=folder, PYTHONPATH=str(folder))
    return folder


def _texts(export: Path) -> dict[str, str]:
    """The class of each file that the export describes, which must be there."""
    lines = (export / "train/metadata.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert all((export / "train" / row["file_name"]).is_file() for row in rows)
    return {Path(row["file_name"]).name: row["text"] for row in rows}


def test_an_export_format_is_one_new_file(copied: Path) -> None:
    """It writes the images of each shard, then one file that describes all of a split."""
    command("export", "imagefolder", "out", "images", cwd=copied, PYTHONPATH=str(copied))
    assert _texts(copied / "images") == {"a.jpg": "cat", "b.jpg": "dog"}


def test_a_second_run_makes_what_is_missing(copied: Path) -> None:
    """The file of the split is whole again, whichever shards the run packs."""
    arguments = ("export", "imagefolder", "out", "again")
    command(*arguments, cwd=copied, PYTHONPATH=str(copied))
    whole = (copied / "again/train/metadata.jsonl").read_bytes()
    (copied / "again/train/metadata.jsonl").unlink()
    next((copied / "again/train").rglob("a.jpg")).unlink()
    command(*arguments, cwd=copied, PYTHONPATH=str(copied))
    assert (copied / "again/train/metadata.jsonl").read_bytes() == whole
    assert len(_texts(copied / "again")) == 2


def test_without_it_the_format_is_unknown(copied: Path) -> None:
    """The package itself refuses the name."""
    refused = prep("export", "imagefolder", str(copied / "out"), str(copied / "none"))
    assert refused.returncode == 2
