"""Compare our records with those that TensorFlow 0.12.1 makes from an independent reading of the
algorithm of 2016.

python scripts/reference/compare.py                      # installs the old TensorFlow the first time; four minutes
python scripts/reference/compare.py --write-table tests/odd_images.csv

docs/record-format.md has the results, and how to compare with the scripts of 2016 themselves.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import os
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from imagenet_prep.demo import archives, photographs
from imagenet_prep.ilsvrc2012 import facts
from imagenet_prep.tfrecord.framing import iter_records
from imagenet_prep.tfrecord.inception_reader import read_record

PROJECT = Path(__file__).parents[2]
ODD_IMAGES = PROJECT / "tests" / "odd_images.tar"
READING = Path(__file__).with_name("records_2016.py")
PACKAGES = ("tensorflow==0.12.1", "numpy==1.16.6", "protobuf==3.17.3")
TRAIN_SHARDS, VALIDATION_SHARDS = 16, 8

Images = Mapping[str, bytes]
"""Image files by name."""


def main() -> None:
    """Make sets of both kinds and print how many records are equal;
    exit status 1 if any differs.
    """
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument(
        "--python", help="a Python 2.7; by default python2.7 on the PATH, or pyenv installs it"
    )
    parser.add_argument(
        "--into", type=Path, default=PROJECT / ".reference", help="where all files go"
    )
    parser.add_argument(
        "--write-table", type=Path, metavar="CSV", help="write the digests of the odd images"
    )
    options = parser.parse_args()
    if options.python and not shutil.which(options.python):
        parser.error(f"{options.python} is not a program")
    old = OldPython.install(options.python or find_python(), options.into.resolve() / "python2.7")
    folder = options.into / "sets"
    shutil.rmtree(folder, ignore_errors=True)
    records = equal = differences = 0
    digests: dict[str, str] = {}
    for name, odd_images in make_sets(folder):
        result = compare_set(folder / name, old)
        print(f"{name}: {result.equal:,} of {result.records:,} records equal", flush=True)
        for difference in result.differences[:20]:
            print(f"  {difference}")
        records += result.records
        equal += result.equal
        differences += len(result.differences)
        found = dict(read_digests(folder / name / "reference"))
        digests |= {odd: found[filename] for filename, odd in odd_images.items()}
    print(f"{equal:,} of {records:,} records equal, {len(digests)} odd images among them")
    if options.write_table:
        write_table(options.write_table, digests)
    sys.exit(differences > 0)


# the old TensorFlow -------------------------------------------------------------------------------


class OldPython(Struct, frozen=True):
    """A Python 2.7 with TensorFlow 0.12.1, whose packages are in a folder of their own."""

    python: str
    packages: Path

    @classmethod
    def install(cls, python: str, packages: Path) -> OldPython:
        """Install the packages, unless they are there."""
        old = cls(python, packages)
        if not packages.exists():
            print(f"installing {', '.join(PACKAGES)} in {packages}", flush=True)
            done = old.run(
                "-m", "pip", "install", "--quiet", "--user", "--no-warn-script-location", *PACKAGES
            )
            if done.returncode:
                shutil.rmtree(packages, ignore_errors=True)
                sys.exit(
                    f"{python} can't install {', '.join(PACKAGES)}; "
                    f"it requires pip and x86-64 Linux\n{done.stderr}"
                )
        return old

    def run(self, *words: object) -> subprocess.CompletedProcess[str]:
        """Run this Python."""
        variables = {
            **os.environ,
            "PYTHONUSERBASE": str(self.packages),
            "TF_CPP_MIN_LOG_LEVEL": "3",
        }
        for name in ("PYTHONPATH", "PYTHONHOME", "PYTHONNOUSERSITE"):
            variables.pop(name, None)
        return subprocess.run(
            [self.python, *map(str, words)], env=variables, capture_output=True, text=True
        )


def find_python() -> str:
    """A Python 2.7: by pyenv, which builds it from source, or on the PATH."""
    if (
        shutil.which("pyenv")
        and not subprocess.run(["pyenv", "install", "--skip-existing", "2.7.18"]).returncode
    ):
        root = subprocess.run(
            ["pyenv", "prefix", "2.7.18"], check=True, capture_output=True, text=True
        )
        return f"{root.stdout.strip()}/bin/python2.7"
    if python := shutil.which("python2.7"):
        return python
    sys.exit(
        "Python 2.7 is required: install pyenv, which builds it, "
        "or give an interpreter with --python"
    )


# sets ---------------------------------------------------------------------------------------------


def make_sets(folder: Path) -> Iterator[tuple[str, dict[str, str]]]:
    """Write the archives of each set; yield its name,
    and which odd image each of its file names is.
    """
    print("making photographs and small images", flush=True)
    archives.make(folder / "photographs" / "raw-data", classes=10, per_class=30, validation=60)
    yield "photographs", {}
    archives.make(
        folder / "small" / "raw-data", classes=100, per_class=100, validation=1000, tiny=True
    )
    yield "small", {}
    with tarfile.open(ODD_IMAGES) as tar:
        images = {member.name: tar.extractfile(member).read() for member in tar}  # type: ignore[union-attr]
    for number, group in enumerate(group_images(images), 1):
        wnid = facts.synsets()[number]
        names = {f"{wnid}_{40_000 + index}.JPEG": name for index, name in enumerate(group)}
        odd = {filename: images[name] for filename, name in names.items()}
        write_archives(folder / f"odd-{number:02d}" / "raw-data", wnid, odd)
        yield f"odd-{number:02d}", names


def group_images(images: Images) -> list[list[str]]:
    """The names in as many groups as needed: convert refuses more CMYK
    images and PNGs than ILSVRC2012 has.
    """
    pngs = [name for name in images if name.endswith(".png")]
    kept = [name for name in images if name.startswith("kept")]
    inks = [name for name in images if name not in pngs and name not in kept]
    most = len(facts.ODD_IMAGES["cmyk"])
    groups = [[png] for png in pngs]
    for index, name in enumerate(inks):
        groups[index // most].append(name)
    groups[0] += kept
    return groups


def write_archives(raw_dir: Path, wnid: str, odd: Images) -> None:
    """The two archives of images: the odd ones are train images of one class,
    with plain ones beside them.
    """
    raw_dir.mkdir(parents=True)
    plain = {f"{wnid}_{number}.JPEG": photographs.tiny(number) for number in range(24)}
    numbers = [number for number, other in enumerate(facts.validation_wnids(), 1) if other == wnid]
    validation = {
        facts.validation_filename(number): photographs.tiny(number) for number in numbers[:8]
    }
    train = {f"{wnid}.tar": tar_of({**plain, **odd})}
    (raw_dir / facts.ARCHIVES["train"].filename).write_bytes(tar_of(train))
    (raw_dir / facts.ARCHIVES["validation"].filename).write_bytes(tar_of(validation))


def tar_of(files: Images) -> bytes:
    """A tar of these files."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for name, content in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(content)
            tar.addfile(entry, io.BytesIO(content))
    return buffer.getvalue()


def unpack(raw_dir: Path, folder: Path) -> None:
    """The class folders of both splits, by tarfile, and the tables next to them."""
    with tarfile.open(raw_dir / facts.ARCHIVES["train"].filename) as outer:
        for member in outer:
            with tarfile.open(fileobj=outer.extractfile(member)) as inner:
                inner.extractall(folder / "train" / member.name[:9], filter="data")
    wnids = (PROJECT / "data" / "imagenet_2012_validation_synset_labels.txt").read_text().split()
    with tarfile.open(raw_dir / facts.ARCHIVES["validation"].filename) as tar:
        for member in tar:
            tar.extract(
                member, folder / "validation" / wnids[int(member.name[15:23]) - 1], filter="data"
            )
    shutil.copy(PROJECT / "data" / "imagenet_lsvrc_2015_synsets.txt", folder / "synsets.txt")
    shutil.copy(PROJECT / "data" / "imagenet_metadata.txt", folder / "words.txt")
    boxes = raw_dir / "imagenet_2012_bounding_boxes.csv"
    (folder / "boxes.csv").write_bytes(boxes.read_bytes() if boxes.exists() else b"")


# comparison ---------------------------------------------------------------------------------------


class Result(Struct, frozen=True):
    """How many records of a set are equal, and the differences of the others."""

    records: int
    equal: int
    differences: tuple[str, ...]


def compare_set(data_dir: Path, old: OldPython) -> Result:
    """Convert a set both ways, and compare them with TensorFlow 0.12.1."""
    if (data_dir / "raw-data" / facts.ARCHIVES["boxes"].filename).exists():
        prep("annotate", data_dir)
    shards = ("--train-shards", TRAIN_SHARDS, "--validation-shards", VALIDATION_SHARDS)
    prep("convert", data_dir, *shards, "--allow-incomplete")
    unpack(data_dir / "raw-data", data_dir / "folders")
    reference = data_dir / "reference"
    reference.mkdir()
    run_reading(old, "write", data_dir / "folders", reference, TRAIN_SHARDS, VALIDATION_SHARDS)
    return Result(**json.loads(run_reading(old, "compare", reference, data_dir)))


def prep(*words: object) -> None:
    """Run a command of imagenet-prep."""
    done = subprocess.run(
        [sys.executable, "-m", "imagenet_prep", *map(str, words)], capture_output=True, text=True
    )
    if done.returncode not in (0, 3):  # 3: annotate names the broken annotations of the made set
        sys.exit(f"imagenet-prep {' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")


def run_reading(old: OldPython, *words: object) -> str:
    """Run a command of records_2016.py; its output."""
    done = old.run(READING, *words)
    if done.returncode:
        sys.exit(f"{READING.name} {' '.join(map(str, words))} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def read_digests(folder: Path) -> Iterator[tuple[str, str]]:
    """The file name and the SHA-256 of the image in each record of a folder's shards."""
    for shard in sorted(folder.glob("*-of-*")):
        for record in iter_records(memoryview(shard.read_bytes())):
            image = read_record(record.data)
            yield image.filename, hashlib.sha256(image.encoded).hexdigest()


def write_table(path: Path, digests: Mapping[str, str]) -> None:
    """The SHA-256 of each odd image, and of the image in its record of 2016."""
    with tarfile.open(ODD_IMAGES) as tar, path.open("w", newline="") as file:
        rows = csv.writer(file, lineterminator="\n")
        rows.writerow(("name", "sha256", "sha256_2016"))
        names: Sequence[str] = tar.getnames()
        for name in names:
            content = tar.extractfile(name).read()  # type: ignore[union-attr]
            rows.writerow((name, hashlib.sha256(content).hexdigest(), digests[name]))


if __name__ == "__main__":
    main()
