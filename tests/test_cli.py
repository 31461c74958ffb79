"""The command line: exit codes, three-line messages, help, and the whole way from a real shell's point of view."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.demo.server import serve
from imagenet_prep.layout import Layout

COMMANDS = ("run", "download", "untar", "annotate", "convert", "verify", "report", "status", "show", "demo")
PART = ("--allow-incomplete", "--train-shards", "8", "--validation-shards", "8", "--workers", "2")
ROOT = Path(__file__).parents[1]


def prep(*arguments: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run the command line to its end, nobody at the keyboard."""
    return subprocess.run(
        [sys.executable, "-m", "imagenet_prep", *map(str, arguments)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, **environment},
    )


def error_lines(result: subprocess.CompletedProcess[str]) -> list[str]:
    """The lines of an error message."""
    lines = result.stderr.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("error: "))
    return lines[start:]


def shard_stamps(folder: Path) -> dict[str, tuple[int, str]]:
    """mtime and digest of every file."""
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }


def test_help_names_every_command_and_loads_nothing_heavy() -> None:
    """--help lists the commands; the command line starts without any library but click (make bench times it)."""
    result = prep("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert re.search(rf"^  {command} ", result.stdout, re.MULTILINE)
    code = "import sys, imagenet_prep.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "PIL", "requests", "tensorflow", "tqdm", "multiprocessing", "simplejpeg", "crc32c", "tempfile"}
    assert not heavy & set(loaded)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command: str) -> None:
    """COMMAND --help ends well and shows a line that can be copied."""
    result = prep(command, "--help")
    assert result.returncode == 0
    assert f"imagenet-prep {command} " in result.stdout


def test_version() -> None:
    """--version prints name and version."""
    assert re.fullmatch(r"imagenet-prep, version \d+\.\d+\.\d+\n", prep("--version").stdout)


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert",),
        ("nonsense", "x"),
        ("convert", "x", "--workers", "0"),
        ("convert", "x", "--check", "twice"),
        ("download", "x", "--only", "train,everything"),
        ("verify", "x", "--quick", "--decode"),
        ("convert", "x", "--train-shards", "0"),
        ("convert", "x", "--quality", "90"),
        ("convert", "x", "--resize", "0"),
        ("convert", "x", "--memory", "lots"),
        ("show", "not-there"),
        ("run", "x", "--raw", "not-there"),
        ("verify", "x", "--json", "not-there/findings.json"),
    ],
)
def test_wrong_usage_is_exit_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A wrong call is exit 2, with a message and no traceback, and creates nothing."""
    result = subprocess.run(
        [sys.executable, "-m", "imagenet_prep", *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 2
    assert "error: " in result.stderr.lower()
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


def test_run_makes_every_shard_and_a_second_run_nothing(tiny_data_dir: Path) -> None:
    """run names shards officially; again, no file changes; with one shard deleted, that one comes back, same bytes."""
    shards = ("--allow-incomplete", "--quiet")
    assert prep("run", tiny_data_dir, *shards).returncode == 0
    assert len(list(tiny_data_dir.glob("train-?????-of-01024"))) == 1024
    assert len(list(tiny_data_dir.glob("validation-?????-of-00128"))) == 128
    assert len(list(tiny_data_dir.glob("train-*"))) == 1024
    before = shard_stamps(tiny_data_dir)
    assert prep("run", tiny_data_dir, *shards).returncode == 0
    assert shard_stamps(tiny_data_dir) == before
    victim = tiny_data_dir / "train-00017-of-01024"
    victim.unlink()
    assert prep("run", tiny_data_dir, *shards).returncode == 0
    after = shard_stamps(tiny_data_dir)
    changed = {name for name in after if after[name][0] != before[name][0]}
    assert str(victim) in changed
    digests = [{name: digest for name, (_, digest) in stamps.items() if "-of-0" in name} for stamps in (before, after)]
    assert digests[0] == digests[1]
    assert not {name for name in changed if "-of-0" in name and victim.name not in name}


def test_the_whole_way_with_credentials(tmp_path: Path, made_tiny: MadeSet) -> None:
    """run downloads what is missing with the credentials of the environment, then annotates, converts and verifies."""
    data_dir = tmp_path / "data"
    with serve(made_tiny.archives["train"].parent, "user", "s3cret-canary") as url:
        arguments = ("run", data_dir, "--base-url", url, "--no-digest", *PART)
        refused = prep(*arguments, IMAGENET_USERNAME="user", IMAGENET_ACCESS_KEY="wrong-canary")
        assert refused.returncode == 6
        lines = error_lines(refused)
        assert len(lines) <= 3
        assert "IMAGENET_ACCESS_KEY" in "".join(lines)
        assert prep(*arguments).returncode == 6  # none given, nobody to ask
        result = prep(*arguments, IMAGENET_USERNAME="user", IMAGENET_ACCESS_KEY="s3cret-canary")
    assert result.returncode == 0, result.stderr
    assert "Finished writing all 300 images in data set." in result.stderr
    assert Layout(data_dir).boxes_csv.exists()
    everything = result.stdout + result.stderr + refused.stdout + refused.stderr
    everything += "".join(
        path.read_text(errors="replace")
        for path in data_dir.rglob("*")
        if path.is_file() and path.suffix in (".json", ".jsonl", "")
    )
    assert "canary" not in everything


def test_progress_off_a_terminal_is_plain_lines(tiny_data_dir: Path) -> None:
    """No carriage returns and no escape codes reach a log; --quiet writes nothing at all."""
    result = prep("convert", tiny_data_dir, *PART)
    assert result.returncode == 0
    assert "\r" not in result.stderr
    assert "\x1b" not in result.stderr + result.stdout
    assert "300 images" in result.stderr
    quiet = prep("convert", tiny_data_dir, *PART, "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")


def test_an_incomplete_imagenet_is_three_lines(tiny_data_dir: Path) -> None:
    """What and where, expected and got, what to do: no more."""
    result = prep("convert", tiny_data_dir)
    assert result.returncode == 4
    lines = error_lines(result)
    assert len(lines) == 3
    assert "--allow-incomplete" in lines[2]


def test_a_corrupt_tar_is_three_lines(tiny_data_dir: Path) -> None:
    """A cut archive is exit 4 with its path and the byte offset."""
    archive = tiny_data_dir / "raw-data" / "ILSVRC2012_img_val.tar"
    os.truncate(archive, archive.stat().st_size // 2)
    for command in ("convert", "untar"):
        result = prep(command, tiny_data_dir, *(("--allow-incomplete",) if command == "convert" else ()))
        assert result.returncode == 4
        lines = error_lines(result)
        assert len(lines) <= 3
        assert str(archive) in lines[0]
        assert re.search(r"byte [\d,]+", "".join(lines))


def test_verify_prints_a_table_and_its_findings(tiny_data_dir: Path, tmp_path: Path) -> None:
    """Good shards: exit 0 with a table; a flipped bit: exit 3, naming shard, record and offset, in --json too."""
    assert prep("convert", tiny_data_dir, *PART, "--quiet").returncode == 0
    good = prep("verify", tiny_data_dir)
    assert good.returncode == 0
    assert re.search(r"^train +8 +300 +300 +10", good.stdout, re.MULTILINE)
    assert "part" in good.stdout
    shard = tiny_data_dir / "train-00002-of-00008"
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 4
    shard.write_bytes(content)
    findings = tmp_path / "findings.json"
    bad = prep("verify", tiny_data_dir, "--json", findings)
    assert bad.returncode == 3
    assert re.search(r"train-00002-of-00008.*record \d+.*byte [\d,]+", bad.stdout)
    problems = json.loads(findings.read_text())["problems"]
    assert problems[0]["subject"].startswith("train-00002-of-00008")


def test_status_says_what_to_run_next(tiny_data_dir: Path) -> None:
    """Before and after a conversion, as text and as JSON."""
    before = prep("status", tiny_data_dir)
    assert before.returncode == 0
    assert "imagenet-prep" in before.stdout
    assert prep("convert", tiny_data_dir, *PART, "--quiet").returncode == 0
    after = json.loads(prep("status", tiny_data_dir, "--json").stdout)
    stages = {stage["stage"]: stage["state"] for stage in after["stages"]}
    assert stages["convert"] == "done"


def test_show_prints_a_record_and_its_picture(tiny_data_dir: Path, tmp_path: Path) -> None:
    """Features one line each, images by size; --json is JSON; --image is a PNG."""
    assert prep("convert", tiny_data_dir, *PART, "--quiet").returncode == 0
    shard = tiny_data_dir / "train-00000-of-00008"
    result = prep("show", shard, "--limit", "1")
    assert result.returncode == 0
    assert re.search(r"image/encoded.*JPEG.*16.*16", result.stdout)
    assert "image/class/synset" in result.stdout
    lines = prep("show", shard, "--json").stdout.splitlines()
    assert [json.loads(line) for line in lines]
    picture = tmp_path / "out.png"
    assert prep("show", shard, "--record", "3", "--image", picture).returncode == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert prep("show", shard, "--record", "5000").returncode == 2


def test_a_closed_pipe_is_no_traceback(tiny_data_dir: Path) -> None:
    """imagenet-prep show FILE | head ends quietly."""
    assert prep("convert", tiny_data_dir, *PART, "--quiet").returncode == 0
    shard = tiny_data_dir / "train-00000-of-00008"
    shell = f"{sys.executable} -m imagenet_prep show {shard} | head -n 1"
    result = subprocess.run(["sh", "-c", shell], capture_output=True, text=True)
    assert result.stdout
    assert result.stderr == ""


def test_boxes_are_fetched_where_the_raw_folder_lacks_them(tmp_path: Path, made_tiny: MadeSet) -> None:
    """run --raw on a folder with images alone downloads the boxes to DATA_DIR and finds them there."""
    raw, data_dir = tmp_path / "raw", tmp_path / "data"
    raw.mkdir()
    for key in ("train", "validation"):
        os.link(made_tiny.archives[key], raw / made_tiny.archives[key].name)
    with serve(made_tiny.archives["boxes"].parent, "user", "key") as url:
        arguments = ("run", data_dir, "--raw", raw, "--base-url", url, "--no-digest", *PART, "--quiet")
        result = prep(*arguments, IMAGENET_USERNAME="user", IMAGENET_ACCESS_KEY="key")
    assert result.returncode == 0, result.stderr
    assert len(Layout(data_dir).boxes_csv.read_text().splitlines()) == made_tiny.box_count
    assert sorted(path.name for path in raw.iterdir()) == sorted(
        made_tiny.archives[key].name for key in ("train", "validation")
    )


def test_convert_takes_sizes_and_smaller_images(tiny_data_dir: Path) -> None:
    """--resize, --quality, --read-order and --memory reach the conversion."""
    options = ("--resize", "8", "--quality", "70", "--read-order", "sequential", "--memory", "1M", "--quiet")
    assert prep("convert", tiny_data_dir, *PART, *options).returncode == 0
    record = json.loads(prep("show", tiny_data_dir / "train-00000-of-00008", "--limit", "1", "--json").stdout)
    assert record["features"]["image/width"] == [8]
    assert prep("verify", tiny_data_dir, "--decode").returncode == 0


def test_a_place_that_cannot_be_written_is_no_bug(tmp_path: Path, tiny_data_dir: Path) -> None:
    """A file in the place of a folder, and the system's refusal, are three lines and no traceback."""
    (tmp_path / "file").touch()
    for arguments in (("convert", tmp_path / "file"), ("demo", tmp_path / "file")):
        assert prep(*arguments).returncode == 2
    result = prep("convert", tiny_data_dir, "--output", "/proc/not-here", *PART)
    assert result.returncode == 1
    assert error_lines(result)[0] == "error: cannot write /proc/not-here/imagenet-prep"
    assert len(error_lines(result)) == 3


def test_the_next_command_repeats_the_options(tiny_data_dir: Path) -> None:
    """With a shard gone, what status says to run makes just that shard again."""
    assert prep("convert", tiny_data_dir, *PART, "--seed", "7", "--compression", "gzip", "--quiet").returncode == 0
    victim = tiny_data_dir / "train-00002-of-00008"
    content = victim.read_bytes()
    victim.unlink()
    command = json.loads(prep("status", tiny_data_dir, "--json").stdout)["next_command"]
    assert prep(*shlex.split(command)[1:]).returncode == 0
    assert victim.read_bytes() == content
