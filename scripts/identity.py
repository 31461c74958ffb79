"""Checks that another version of this project makes the same bytes: makes each set twice and
compares them.

    python scripts/identity.py CHECKOUT [--dir FOLDER] [--only imagenet,recipe-folders]

The input is that of the demo. Shards, their indexes, and exports are compared byte by byte.
Manifest, journal and plan are not: they may contain versions and times. It prints a line per set;
exit status 1 means that one differs.
"""

from __future__ import annotations

import argparse
import filecmp
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from imagenet_prep.demo.archives import make

PROJECT = Path(__file__).resolve().parent.parent

INDEX = "imagenet-prep/index/"
CONVERT = "convert {out} --raw {raw} --allow-incomplete --train-shards 5 --validation-shards 2"
RECIPE = "convert {out} --raw {raw} --config {raw}/"


@dataclass(frozen=True, slots=True)
class MadeBy:
    """A set and the command lines that make it, in order."""

    name: str
    commands: tuple[str, ...]


SETS = (
    MadeBy("imagenet", ("annotate {out} --raw {raw}", CONVERT)),
    MadeBy(
        "validation-boxes",
        ("annotate {out} --raw {raw} --validation-boxes", f"{RECIPE}boxes.yaml"),
    ),
    MadeBy("part", (f"{RECIPE}part.yaml",)),
    MadeBy("resized", (f"{CONVERT} --resize 64 --quality 80",)),
    MadeBy("decoded", (f"{CONVERT} --check decode",)),
    MadeBy("gzip", (f"{RECIPE}gzip.yaml",)),
    MadeBy("zlib", (f"{RECIPE}zlib.yaml",)),
    MadeBy("untarred", ("untar {out} --raw {raw}", CONVERT.replace(" --raw {raw}", ""))),
    MadeBy("recipe-folders", (f"{RECIPE}folders.yaml",)),
    MadeBy("recipe-split", (f"{RECIPE}split.yaml",)),
    MadeBy("recipe-labels", (f"{RECIPE}labels.yaml",)),
    MadeBy("recipe-tar", (f"{RECIPE}tar.yaml",)),
    MadeBy("recipe-arrays", (f"{RECIPE}arrays.yaml",)),
    MadeBy("export-webdataset", (CONVERT, "export webdataset {out} {out}/exported")),
    MadeBy("export-folders", (CONVERT, "export folders {out} {out}/exported")),
    MadeBy("export-tfds", (CONVERT, "export tfds {out} {out}/exported")),
    MadeBy("export-recipe", (f"{RECIPE}labels.yaml", "export webdataset {out} {out}/exported")),
)

IMAGENET = "source: {imagenet: true}\nshards: {train: 5, validation: 2}\nallow_incomplete: true\n"

RECIPES = {
    "boxes.yaml": IMAGENET + "validation_boxes: true\nshuffle: false\n",
    "part.yaml": IMAGENET + "classes: classes.txt\nrelabel: 0\nseed: 7\n",
    "gzip.yaml": IMAGENET + "compression: gzip\n",
    "zlib.yaml": IMAGENET + "compression: zlib\n",
    "folders.yaml": """
source: {folders: pictures}
shards: 3
""",
    "split.yaml": """
source: {folders: pictures}
splits: {train: 0.7, test: 0.3}
shards: {train: 2, test: 1}
seed: 5
""",
    "labels.yaml": """
source: {files: pictures/*/*.JPEG}
labels: labels.csv
shards: 2
record: {image: encoded, label: label, class: class, width: width, age: {from: age, type: float, optional: true}}
""",
    "tar.yaml": """
source: {tar: pictures.tar}
shards: 2
""",
    "arrays.yaml": """
manifest_file: manifest.txt
input_file_pattern: arrays/*.npy
output_file_prefix: volumes
num_shards: 2
min_val: -3.0
max_val: 3.0
""",
}


def make_input(raw: Path) -> None:
    """Make archives, folders of some of their images, a labels file, arrays, recipes."""
    made = make(raw, classes=12, per_class=10, validation=40)
    (raw / "classes.txt").write_text("".join(f"{wnid}\n" for wnid in made.wnids[:7]))
    untarred = raw / "untarred"
    run(PROJECT, f"untar {untarred} --raw {raw}")
    folders = sorted(path for path in untarred.glob("raw-data/train/*") if path.is_dir())
    for folder in folders[:5]:
        shutil.copytree(folder, raw / "pictures" / folder.name)
    shutil.rmtree(untarred)
    shutil.make_archive(str(raw / "pictures"), "tar", raw / "pictures")
    lines = ["filename,label,age"]
    pictures = sorted(raw.glob("pictures/*/*.JPEG"))
    lines += [
        f"{path.relative_to(raw)},{path.parent.name},{n % 7 or ''}"
        for n, path in enumerate(pictures)
    ]
    (raw / "labels.csv").write_text("\n".join(lines) + "\n")
    (raw / "arrays").mkdir()
    numbers = np.random.default_rng(1)
    for number in range(9):
        np.save(
            raw / "arrays" / f"{number}.npy",
            numbers.normal(0, 2, (3, 4 + number)).astype("float32"),
        )
    for name, text in RECIPES.items():
        (raw / name).write_text(text)


def run(checkout: Path, command: str) -> str:
    """Run a command of a version; returns its error output if it failed."""
    environment = {**os.environ, "PYTHONPATH": str(checkout.resolve())}
    call = [sys.executable, "-m", "imagenet_prep", *command.split(), "--quiet"]
    done = subprocess.run(call, capture_output=True, text=True, env=environment, cwd="/")
    return f"{command}\n{done.stderr}" if done.returncode else ""


def made(checkout: Path, made_by: MadeBy, raw: Path, out: Path) -> str:
    """Make a set with a version; returns the error, if any."""
    said = (run(checkout, command.format(raw=raw, out=out)) for command in made_by.commands)
    return next(filter(None, said), "")


def contents(out: Path) -> dict[str, Path]:
    """Shards, indexes and exported files by their names;
    the state of a set with a prefix is named like any other.
    """
    files = (path for path in out.rglob("*") if path.is_file())
    kept = {
        re.sub("^imagenet-prep/sets/[^/]+/", "imagenet-prep/", str(path.relative_to(out))): path
        for path in files
    }
    state = ("imagenet-prep/", "raw-data/", "exported/imagenet-prep/")
    return {
        name: path
        for name, path in kept.items()
        if name.startswith(INDEX) or not name.startswith(state)
    }


def differences(one: Path, other: Path) -> list[str]:
    """The names of files that only one folder has, or whose bytes differ."""
    here, there = contents(one), contents(other)
    different = here.keys() ^ there.keys()
    different |= {
        name
        for name in here.keys() & there.keys()
        if not filecmp.cmp(here[name], there[name], shallow=False)
    }
    return sorted(different)


def compared(made_by: MadeBy, checkout: Path, raw: Path, folder: Path) -> tuple[bool, str]:
    """Make a set with both versions; returns whether they are equal, and a line about it."""
    ours, theirs = folder / "ours", folder / "theirs"
    if said := made(PROJECT, made_by, raw, ours):
        return False, f"this version can't make it: {said}"
    if said := made(checkout, made_by, raw, theirs):
        return False, f"the other version can't make it: {said}"
    names = contents(ours)
    size = sum(path.stat().st_size for path in names.values())
    if different := differences(ours, theirs):
        return False, f"{len(different)} of {len(names)} files differ: {' '.join(different[:5])}"
    return bool(names), f"the same: {len(names)} files, {size:,} bytes"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare the requested sets; returns the exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("checkout", type=Path, help="another version of this project")
    parser.add_argument("--dir", type=Path, help="work in this folder, and keep everything there")
    parser.add_argument("--only", type=lambda text: text.split(","), metavar="SET,SET")
    given = parser.parse_args(arguments)
    if not (given.checkout / "imagenet_prep").is_dir():
        parser.error(f"{given.checkout} is not a checkout of this project")
    chosen = [each for each in SETS if not given.only or each.name in given.only]
    with tempfile.TemporaryDirectory(prefix="identity-") as temporary:
        root = given.dir or Path(temporary)
        make_input(root / "raw")
        good = []
        for each in chosen:
            same, line = compared(each, given.checkout, root / "raw", root / each.name)
            print(f"{each.name:<18} {line}", flush=True)
            good.append(same)
    return 0 if all(good) and good else 1


if __name__ == "__main__":
    sys.exit(main())
