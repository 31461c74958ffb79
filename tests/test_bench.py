"""make bench: every row comes out, and the programs ours is held against do what they are said to do."""

from __future__ import annotations

import importlib
import re
import subprocess
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import tf_fixture
from existing import existing

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.photographs import Kind, photograph_bytes
from imagenet_prep.images import pixels
from imagenet_prep.images.prepare import prepare
from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord.inception_reader import read_record

pytestmark = pytest.mark.project

tf = tf_fixture.tf

SCRIPTS = Path(__file__).resolve().parent.parent / "scripts"
RIVALS = SCRIPTS / "rivals"


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Imports one of the scripts by name."""
    monkeypatch.syspath_prepend(str(SCRIPTS))
    monkeypatch.syspath_prepend(str(RIVALS))

    def load(name: str) -> ModuleType:
        monkeypatch.delitem(sys.modules, name, raising=False)
        return importlib.import_module(name)

    return load


def archives(made: MadeSet) -> list[str]:
    """The two image archives, as all rivals take them."""
    return [str(made.archives["train"]), str(made.archives["validation"])]


def run(*command: str | Path) -> subprocess.CompletedProcess[str]:
    """Run a command to its end."""
    return subprocess.run([*map(str, command)], capture_output=True, text=True)


def test_every_row_comes_out_with_a_ratio(tmp_path: Path, load: Any) -> None:
    """The whole program, on very few images: a line a row with a ratio in each. Ray takes too long to start."""
    names = [row.name for row in load("bench").ROWS if row.name != "ray"]
    words = list(dict.fromkeys(name.partition(",")[0] for name in names))
    few = ["--images", "20", "--repeat", "1", "--warm-up", "0", "--workers", "1", "--no-tensorflow"]
    done = run(sys.executable, SCRIPTS / "bench.py", "--dir", tmp_path / "bench", *few, "--only", ",".join(words))
    assert done.returncode == 0, done.stderr
    table, _, about = done.stdout.partition("\n\n")
    cells = [[cell.strip() for cell in line.split("|")[1:]] for line in table.splitlines()[2:]]
    assert [line[0] for line in cells] == names
    assert all(re.match(r"\d+\.\d+ [a-z]", line[1]) or re.match(r"\d+\.\d+ [a-z]", line[2]) for line in cells)
    assert about.startswith("21 images; medians; rounds: 1.")
    assert "TensorFlow" not in table
    assert re.search(r"Processor: .+ CPUs usable.*\n.*Python 3\..*\n.*simplejpeg \d", about)
    kept = sorted(path.name for path in existing(tmp_path / "bench", "*"))
    assert kept == ["annotations-20", "images-2", "images-20", "images-6", "rehearsal-20"]


def test_a_command_that_fails_ends_the_bench(tmp_path: Path, load: Any) -> None:
    """No figure is made of a run that failed; what the command said is shown."""
    with pytest.raises(SystemExit, match="ended with 3:\nno luck"):
        load("bench").timed(["sh", "-c", "echo no luck >&2; exit 3"], tmp_path / "out")


def test_the_median_is_of_the_ratios_within_a_round(load: Any) -> None:
    """A slow phase of the machine that falls on a whole round changes no ratio."""
    bench = load("bench")
    row = bench.Row("as-is", "ours", limit=bench.Run("cp", "cp"), rivals=(bench.Run("loop", "loop"),))
    rounds = [[bench.Took(slow * each, 1, 30) for each in (1.0, 0.8, 5.0)] for slow in (1, 10, 3)]
    cells = bench.Result(row, row.rivals, rounds).cells(10_000)
    assert cells == ("as-is", "1.25 cp", "5.0 loop", "3.000", "2.400", "15.000", "1.000", "30", "300")


def test_elementtree_finds_the_same_boxes(made: MadeSet, tmp_path: Path) -> None:
    """The ElementTree rival writes the CSV that annotate must write, all quirks included."""
    subprocess.run(["tar", "xzf", made.archives["boxes"], "-C", tmp_path], check=True)
    done = run(sys.executable, RIVALS / "annotate_elementtree.py", tmp_path, tmp_path / "boxes.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "boxes.csv").read_bytes() == made.boxes_csv


@pytest.mark.parametrize("kind", [Kind.RGB, Kind.GREY])
def test_the_codec_loop_makes_the_calls_that_convert_makes(kind: Kind, load: Any) -> None:
    """What it encodes is to the byte what convert encodes: the bare codec is the same codec."""
    content, _ = photograph_bytes(4, kind)
    ours = prepare(content, "header", pixels.Reencode(resize=256, quality=90)).encoded
    assert load("codec_loop").resize(memoryview(content)) == ours


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # that one is among the images on purpose
def test_the_tensorflow_loop_writes_the_same_records(made: MadeSet, tmp_path: Path, tf: Any, load: Any) -> None:
    """Each image once, with its true size and label, in records that our reader and tf.data find whole."""
    loop = load("tf_loop")
    for split in ("train", "validation"):
        loop.write_split(made.archives[split], split, 3, tmp_path, True)
    shards = sorted(tmp_path.glob("*-of-00003"))
    records = [
        read_record(each.data) for path in shards for each in tfrecord.iter_records(memoryview(path.read_bytes()))
    ]
    found = {each.filename: (each.width, each.height, each.label) for each in records}
    assert len(shards) == 6
    assert len(records) == len(made.images)
    assert found == {each.filename: (each.width, each.height, each.label) for each in made.images.values()}


def test_reading_is_measured(
    load: Any, tf: Any, torch: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """All three tables come out: every way reads the records that are there, and decodes every image."""
    bench = load("bench_reading")
    monkeypatch.setattr(bench, "PHOTOGRAPHS", 3)
    words = ["bench_reading.py", "--records", "24", "--images", "9", "--repeat", "1", "--folder", str(tmp_path)]
    monkeypatch.setattr(sys, "argv", words)
    bench.main()
    printed = capsys.readouterr().out
    rows = (
        "bare mmap",
        "records.read",
        "array_record",
        "grain",
        "tf.data",
        "tfrecord package",
        "imagenet-prep",
    )
    assert all(re.search(rf"^.*{row}.* \d+\.\d\d$", printed, re.MULTILINE) for row in rows)
    assert list(tmp_path.iterdir()) == []


def test_every_byte_is_compared(tmp_path: Path, load: Any) -> None:
    """A byte of a shard or an index, a missing file; manifests may differ."""
    same = {"a-00000-of-00001": "a", "b-00000-of-00001": "b", "imagenet-prep/manifest.json": "1"}
    other = {"a-00000-of-00001": "a", "b-00000-of-00001": "c", "imagenet-prep/manifest.json": "2"}
    for folder, files in (("one", same), ("two", {**other, "imagenet-prep/index/a.idx": ""})):
        for name, content in files.items():
            Path(tmp_path, folder, name).parent.mkdir(parents=True, exist_ok=True)
            Path(tmp_path, folder, name).write_text(content)
    assert load("identity").differences(tmp_path / "one", tmp_path / "two") == [
        "b-00000-of-00001",
        "imagenet-prep/index/a.idx",
    ]
