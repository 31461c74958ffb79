"""make bench: every row comes out, and the programs ours is held against do what they are said to do."""

from __future__ import annotations

import hashlib
import importlib
import os
import re
import shlex
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
from imagenet_prep.engines import make_engine
from imagenet_prep.images import pixels
from imagenet_prep.images.prepare import prepare
from imagenet_prep.stages.untar import untar
from imagenet_prep.storage.layout import Layout
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


def tree(folder: Path) -> dict[str, str]:
    """The SHA-256 of each file in a folder by its path below it."""
    files = (path for path in existing(folder, "**/*") if path.is_file())
    return {str(path.relative_to(folder)): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


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


def test_an_earlier_version_takes_its_turn(tmp_path: Path) -> None:
    """The command of another checkout is run by that checkout's code, and is one more rival of the row."""
    earlier = tmp_path / "an earlier version"
    (earlier / "imagenet_prep").mkdir(parents=True)
    (earlier / "imagenet_prep" / "__init__.py").touch()
    (earlier / "imagenet_prep" / "cli.py").write_text(f"def main(): open({str(tmp_path / 'called')!r}, 'w')")
    few = ["--only", "help", "--repeat", "1", "--warm-up", "0", "--against", earlier]
    done = run(sys.executable, SCRIPTS / "bench.py", "--dir", tmp_path / "bench", *few)
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\| help .* \d\.\d\d earlier version ", done.stdout, re.MULTILINE)
    assert re.search(
        r"^help: \d+\.\d+ of the earlier version.s wall time, \d+\.\d+ of its processor time$",
        done.stdout,
        re.MULTILINE,
    )
    assert (tmp_path / "called").exists()
    refused = run(sys.executable, SCRIPTS / "bench.py", "--against", tmp_path)
    assert refused.returncode == 2
    assert "is not a checkout of this project" in refused.stderr


def test_a_row_that_is_not_there_is_refused() -> None:
    """A wrong name is told before anything is made, with the right ones."""
    done = run(sys.executable, SCRIPTS / "bench.py", "--only", "as-is,nonsense")
    assert done.returncode == 2
    assert "no row nonsense: expected some of as-is, decode, resize," in done.stderr


def test_a_command_that_fails_ends_the_bench(tmp_path: Path, load: Any) -> None:
    """No figure is made of a run that failed; what the command said is shown."""
    with pytest.raises(SystemExit, match="ended with 3:\nno luck"):
        load("bench").timed(["sh", "-c", "echo no luck >&2; exit 3"], tmp_path / "out")


BUSY = """
import time
data = bytearray(64 << 20)
while time.process_time() < 0.3:
    pass
"""


def test_time_and_memory_are_those_of_the_process_and_its_children(tmp_path: Path) -> None:
    """Seconds are wall time, user and system seconds include a child's work, the peak is the largest process."""
    (tmp_path / "busy.py").write_text(BUSY)
    command = ["sh", "-c", f"{shlex.quote(sys.executable)} busy.py; sleep 0.2; exit 0"]
    # In a small process of its own: a new process begins with the peak of the one that starts it.
    script = f"from bench import *; took = timed({command}, Path('out')); print(took.seconds, took.cpu, took.peak)"
    environment = {**os.environ, "PYTHONPATH": str(SCRIPTS)}
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True)
    seconds, cpu, peak = map(float, done.stdout.split())
    assert seconds >= 0.5
    assert 0.3 <= cpu < seconds
    assert 64 <= peak <= 110


def test_the_median_is_of_the_ratios_within_a_round(load: Any) -> None:
    """A slow phase of the machine that falls on a whole round changes no ratio."""
    bench = load("bench")
    row = bench.Row("as-is", "ours", limit=bench.Run("cp", "cp"), rivals=(bench.Run("loop", "loop"),))
    rounds = [[bench.Took(slow * each, 1, 30) for each in (1.0, 0.8, 5.0)] for slow in (1, 10, 3)]
    cells = bench.Result(row, row.rivals, rounds).cells(10_000)
    assert cells == ("as-is", "1.25 cp", "5.0 loop", "3.000", "2.400", "15.000", "1.000", "30", "300")


def test_annotations_have_the_real_number_of_boxes(load: Any) -> None:
    """1000 files hold 1129 boxes, each file one or two, spread over the classes in their order."""
    made = list(load("bench_data").iter_annotations(1000))
    assert len({each.name for each in made}) == len({each.xml for each in made}) == 1000
    assert sum(len(each.lines) for each in made) == 1129
    assert [each.wnid for each in made] == sorted(each.wnid for each in made)


def test_elementtree_finds_the_same_boxes(made: MadeSet, tmp_path: Path) -> None:
    """The ElementTree rival writes the CSV that annotate must write, all quirks included."""
    subprocess.run(["tar", "xzf", made.archives["boxes"], "-C", tmp_path], check=True)
    done = run(sys.executable, RIVALS / "annotate_elementtree.py", tmp_path, tmp_path / "boxes.csv")
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "boxes.csv").read_bytes() == made.boxes_csv


def test_the_tarfile_loop_writes_what_untar_writes(made: MadeSet, data_dir: Path, tmp_path: Path) -> None:
    """Same folders, same files, same bytes."""
    done = run(sys.executable, RIVALS / "tarfile_loop.py", *archives(made), tmp_path / "loop")
    assert done.returncode == 0, done.stderr
    untar(Layout(data_dir), make_engine("threads", 1))
    for split in ("train", "validation"):
        files = tree(tmp_path / "loop" / split)
        assert len(files) == len(made.of(split))
        assert files == tree(data_dir / "raw-data" / split)


def test_tar_twice_writes_every_image(made: MadeSet, tmp_path: Path) -> None:
    """Train in class folders with no archive left over, validation flat."""
    done = run("sh", RIVALS / "tar_twice.sh", *archives(made), tmp_path / "two words")
    assert done.returncode == 0, done.stderr
    assert tree(tmp_path / "two words") == {
        f"train/{each.wnid}/{each.filename}" if each.split == "train" else f"validation/{each.filename}": each.sha256
        for each in made.images.values()
    }


def test_the_codec_loop_sees_every_image(made: MadeSet, load: Any) -> None:
    """Its own short way through nested tars finds each image's bytes, and both of its loops end well."""
    loop = load("codec_loop")
    found = [
        hashlib.sha256(image).hexdigest()
        for path in archives(made)
        for image in loop.find_images(memoryview(Path(path).read_bytes()))
    ]
    assert sorted(found) == sorted(each.sha256 for each in made.images.values())
    for what in ("decode", "resize"):
        done = run(sys.executable, RIVALS / "codec_loop.py", what, *archives(made), "--workers", "2")
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("kind", [Kind.RGB, Kind.GREY])
def test_the_codec_loop_makes_the_calls_that_convert_makes(kind: Kind, load: Any) -> None:
    """What it encodes is to the byte what convert encodes: the bare codec is the same codec."""
    content, _ = photograph_bytes(4, kind)
    ours = prepare(content, "header", pixels.Reencode(resize=256, quality=90)).encoded
    assert load("codec_loop").resize(memoryview(content)) == ours


@pytest.mark.filterwarnings("ignore:Corrupt EXIF data")  # that one is among the images on purpose
@pytest.mark.parametrize("decode", [True, False])
def test_the_tensorflow_loop_writes_the_same_records(
    made: MadeSet, tmp_path: Path, tf: Any, load: Any, decode: bool
) -> None:
    """Each image once, with its true size and label, in records that our reader and tf.data find whole."""
    loop = load("tf_loop")
    for split in ("train", "validation"):
        loop.write_split(made.archives[split], split, 3, tmp_path, decode)
    shards = sorted(tmp_path.glob("*-of-00003"))
    records = [
        read_record(each.data) for path in shards for each in tfrecord.iter_records(memoryview(path.read_bytes()))
    ]
    found = {each.filename: (each.width, each.height, each.label) for each in records}
    assert len(shards) == 6
    assert len(records) == len(made.images)
    assert found == {each.filename: (each.width, each.height, each.label) for each in made.images.values()}


def test_tf_data_counts_records(
    made: MadeSet,
    tmp_path: Path,
    tf: Any,
    load: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The counting rival counts every record of every shard."""
    for name in ("train-00000-of-00002", "train-00001-of-00002"):
        with tf.io.TFRecordWriter(str(tmp_path / name)) as writer:
            for record in range(5):
                writer.write(b"x" * record)
    monkeypatch.setattr(sys, "argv", ["count_tf.py", str(tmp_path)])
    load("count_tf").main()
    assert capsys.readouterr().out == "10\n"


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


def test_a_version_is_compared_with_itself(tmp_path: Path) -> None:
    """identity.py makes a set with both versions, and says that they are the same."""
    done = run(sys.executable, SCRIPTS / "identity.py", SCRIPTS.parent, "--only", "recipe-arrays")
    assert (done.returncode, done.stderr) == (0, "")
    assert re.fullmatch(r"recipe-arrays +the same: 6 files, [\d,]+ bytes\n", done.stdout)


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
