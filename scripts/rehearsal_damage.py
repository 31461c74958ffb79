"""Tests verify on a full-count set that lacks one image in 1.3 million, or one class: run it after
a rehearsal.

    python scripts/rehearsal_damage.py DIR

It takes the shards that rehearsal.py left in DIR, damages them in one way after the other, and
compares verify's findings with the damage. Finally repair restores everything. Exit status 0 if
each damage was identified.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path

sys.path[:0] = [str(Path(__file__).resolve().parent.parent / "tests")]

from made_sets import data_of, write  # noqa: E402 -- both modules are in tests/
from running import prep  # noqa: E402

from imagenet_prep.storage.layout import Layout  # noqa: E402
from imagenet_prep.tfrecord.inception_reader import read_record  # noqa: E402

SHARD, RECORD = "train-00500-of-01024", 700
LOST_CLASS = "n01440764"


def drop_one(layout: Layout) -> str:
    """Remove one record; returns the name of its image."""
    path = layout.shard_path(SHARD)
    records = data_of(path)
    write(path, records[:RECORD] + records[RECORD + 1 :])
    return read_record(memoryview(records[RECORD])).filename


def drop_class(layout: Layout) -> str:
    """Remove all images of a class from train; returns its wnid."""
    for path in layout.output_dir.glob("train-*"):
        records = data_of(path)
        kept = [
            data
            for data in records
            if not read_record(memoryview(data)).filename.startswith(LOST_CLASS)
        ]
        if len(kept) < len(records):
            write(path, kept)
    return LOST_CLASS


def look(layout: Layout) -> tuple[int, list[dict[str, object]]]:
    """The exit status of verify, and its problems."""
    file = layout.data_dir / "found.json"
    status = prep("verify", layout.data_dir, "--json", file, "--quiet").returncode
    problems: list[dict[str, object]] = json.loads(file.read_text())["problems"]
    file.unlink()
    return status, problems


def expect(name: str, check: Callable[[], bool]) -> bool:
    """Run one check, and print the result."""
    start = time.perf_counter()
    is_right = check()
    print(
        f"{'right' if is_right else 'WRONG'}  {time.perf_counter() - start:6.1f} s  {name}",
        flush=True,
    )
    return is_right


def main() -> int:
    """Run every damage in turn."""
    parser = argparse.ArgumentParser(
        description="damage the shards of a rehearsal, and check verify's findings"
    )
    parser.add_argument("folder", type=Path, metavar="DIR")
    layout = Layout(parser.parse_args().folder)
    state, aside = layout.state_dir, layout.data_dir / "state-aside"

    def one_image() -> bool:
        image = drop_one(layout)
        status, problems = look(layout)
        found = [
            (each["kind"], each["subject"], each["record"], each["image"]) for each in problems
        ]
        return (status, found) == (3, [("missing-record", SHARD, RECORD, image)])

    def one_image_without_manifest() -> bool:
        state.rename(aside)
        status, problems = look(layout)
        found = [(each["kind"], each["subject"], each["count"]) for each in problems]
        return (status, found) == (3, [("missing-image", "train", 1)])

    def one_class_without_manifest() -> bool:
        lost = drop_class(layout)
        status, problems = look(layout)
        kinds = {str(each["kind"]): str(each["detail"]) for each in problems}
        return (
            status == 3
            and set(kinds) == {"missing-image", "missing-class"}
            and lost in kinds["missing-class"]
        )

    def repaired() -> bool:
        for path in [*state.rglob("*")]:
            if path.is_file():
                path.unlink()
        state.rename(layout.data_dir / "state-of-verify")
        aside.rename(state)
        done = prep("repair", layout.data_dir, "--quiet")
        return done.returncode == 0 and "listed images are in" in done.stdout

    checks = {
        f"one image of 1.3 million missing: named, {SHARD} record {RECORD}": one_image,
        "the same without a manifest: counted": one_image_without_manifest,
        f"class {LOST_CLASS} missing, without a manifest: named": one_class_without_manifest,
        "repair makes the set whole again": repaired,
    }
    results = [expect(name, check) for name, check in checks.items()]
    return 0 if all(results) else 1


if __name__ == "__main__":
    sys.exit(main())
