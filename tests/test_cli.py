"""The command line: exit codes, three-line messages, help, and the whole way from a real shell's point of view."""

from __future__ import annotations

import hashlib
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from existing import existing
from file_server import serve
from PIL import Image
from running import command, error_lines, prep

from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord import framing as tfrecord
from imagenet_prep.tfrecord.example import BytesList, encode_example

PART = ("--allow-incomplete", "--train-shards", "8", "--validation-shards", "8", "--workers", "2")
ROOT = Path(__file__).parents[1]


def shard_stamps(folder: Path) -> dict[str, tuple[int, str]]:
    """mtime and digest of every file."""
    return {
        str(path): (path.stat().st_mtime_ns, hashlib.sha256(path.read_bytes()).hexdigest())
        for path in existing(folder, "**/*")
        if path.is_file()
    }


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert",),
        ("convert", "x", "--workers", "0"),
        ("download", "x", "--only", "train,everything"),
        ("verify", "x", "--depth", "deep"),
        ("convert", "x", "--quality", "101"),
        ("convert", "x", "--set", "memory=lots"),
        ("show", "not-there"),
        ("run", "x", "--raw", "not-there"),
        ("annotate", "not-there"),
        ("repair", "not-there"),
        ("init", "not-there"),
        ("verify", "x", "--json", "not-there/findings.json"),
    ],
)
def test_wrong_usage_is_exit_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A wrong call is exit 2, with a message and no traceback, and creates nothing."""
    result = subprocess.run(
        [sys.executable, "-m", "imagenet_prep", *arguments], cwd=tmp_path, capture_output=True, text=True
    )
    assert result.returncode == 2
    lines = result.stderr.splitlines()
    (said,) = (number for number, line in enumerate(lines) if line.startswith("error: "))
    assert said == 0 or (lines[0].startswith("Usage: imagenet-prep") and lines[said - 1] == "")
    assert "Error" not in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


def test_the_whole_way_with_credentials(tmp_path: Path, made_tiny: MadeSet) -> None:
    """run downloads what is missing with the credentials of the environment, then annotates, converts and verifies."""
    data_dir = tmp_path / "data"
    with serve(made_tiny.archives["train"].parent, "user", "s3cret-canary") as url:
        arguments = ("run", data_dir, "--base-url", url, "--no-digest", *PART)
        refused = command(*arguments, IMAGENET_USERNAME="user", IMAGENET_ACCESS_KEY="wrong-canary", status=6)
        lines = error_lines(refused)
        assert len(lines) <= 3
        assert "IMAGENET_ACCESS_KEY" in "".join(lines)
        command(*arguments, status=6)
        result = prep(*arguments, IMAGENET_USERNAME="user", IMAGENET_ACCESS_KEY="s3cret-canary")
    assert result.returncode == 0, result.stderr
    assert "Finished writing all 300 images in data set." in result.stderr
    assert Layout(data_dir).boxes_csv.exists()
    everything = result.stdout + result.stderr + refused.stdout + refused.stderr
    everything += "".join(
        path.read_text(errors="replace")
        for path in existing(data_dir, "**/*")
        if path.is_file() and path.suffix in (".json", ".jsonl", "")
    )
    assert "canary" not in everything


def test_convert_verify_show(tiny_data_dir: Path, tmp_path: Path) -> None:
    """Progress is plain lines, none if quiet; verify is 0 with a table, or 3 with the place; show prints records."""
    result = command("convert", tiny_data_dir, *PART)
    assert "\r" not in result.stderr
    assert "\x1b" not in result.stderr + result.stdout
    assert "300 images" in result.stderr
    quiet = prep("convert", tiny_data_dir, *PART, "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    good = command("verify", tiny_data_dir)
    assert re.search(r"^train +8 +300 +300 +10", good.stdout, re.MULTILINE)
    assert "part" in good.stdout
    shard = tiny_data_dir / "train-00002-of-00008"
    shown = prep("show", shard, "--limit", "1")
    assert re.search(r"image/encoded.*JPEG.*16.*16", shown.stdout)
    assert [json.loads(line) for line in prep("show", shard, "--json", "-").stdout.splitlines()]
    picture = tmp_path / "out.png"
    command("show", shard, "--record", "3", "--image", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    command("show", shard, "--record", "5000", status=2)
    content = bytearray(shard.read_bytes())
    content[len(content) // 2] ^= 4
    shard.write_bytes(content)
    findings = tmp_path / "findings.json"
    bad = command("verify", tiny_data_dir, "--json", findings, status=3)
    assert re.search(r"train-00002-of-00008.*record \d+.*byte [\d,]+", bad.stdout)
    assert json.loads(findings.read_text())["problems"][0]["subject"].startswith("train-00002-of-00008")


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
    assert len(Layout(data_dir).boxes_csv.read_text().splitlines()) == made_tiny.boxes_csv.count(b"\n")
    assert sorted(path.name for path in existing(raw, "*")) == sorted(
        made_tiny.archives[key].name for key in ("train", "validation")
    )


def test_a_place_that_cannot_be_written_is_no_bug(tmp_path: Path, tiny_data_dir: Path) -> None:
    """A file in the place of a folder, and the system's refusal, are three lines and no traceback."""
    (tmp_path / "file").touch()
    for arguments in (("convert", tmp_path / "file"), ("demo", tmp_path / "file")):
        command(*arguments, status=2)
    result = command("convert", tiny_data_dir, "--output", "/proc/not-here", *PART, status=1)
    assert error_lines(result)[0] == "error: cannot write /proc/not-here/imagenet-prep"
    assert len(error_lines(result)) == 3


def test_the_next_command_repeats_the_options(tiny_data_dir: Path) -> None:
    """With a shard gone, what status says to run makes just that shard again."""
    assert (
        prep("convert", tiny_data_dir, *PART, "--set", "seed=7", "--set", "compression=gzip", "--quiet").returncode == 0
    )
    victim = tiny_data_dir / "train-00002-of-00008"
    content = victim.read_bytes()
    victim.unlink()
    following = json.loads(command("status", tiny_data_dir, "--json", "-").stdout)["next_command"]
    command(*shlex.split(following)[1:])
    assert victim.read_bytes() == content


# files that are not ours to write over ---------------------------------------------------------------------------


def a_picture(grey: int) -> bytes:
    """A small PNG."""
    file = io.BytesIO()
    Image.new("RGB", (5, 4), (grey, grey, grey)).save(file, "PNG")
    return file.getvalue()


def a_shard(path: Path) -> Path:
    """A file of one record, which holds a picture and nothing else."""
    record = encode_example({"image/encoded": BytesList((a_picture(0),))})
    header, footer, _ = tfrecord.frame(record)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(header + record + footer)
    return path


def test_show_image_replaces_only_a_picture(tmp_path: Path) -> None:
    """--image refuses a shard, a text, an empty file and a link to nothing, untouched; its own picture it replaces."""
    shard, text, empty, link = (tmp_path / name for name in ("train-00000-of-00001", "keep.txt", "empty", "link"))
    a_shard(shard)
    text.write_text("keep")
    empty.touch()
    link.symlink_to("nothing")
    before = shard_stamps(tmp_path)
    for path in (shard, text, empty, link):
        result = command("show", shard, "--image", path, status=2)
        assert str(path) in result.stderr
    assert shard_stamps(tmp_path) == before
    assert link.is_symlink()
    picture = tmp_path / "x.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\nan old one")
    command("show", shard, "--image", picture)
    assert b"an old one" not in picture.read_bytes()


def test_verify_json_replaces_only_json(tmp_path: Path) -> None:
    """--json refuses a shard and what is kept beside shards, untouched; a verdict of before it replaces."""
    shard = a_shard(tmp_path / "train-00000-of-00001")
    manifest = Layout(tmp_path).manifest_path
    manifest.parent.mkdir()
    manifest.write_text("{}")
    before = shard_stamps(tmp_path)
    for path in (shard, manifest, tmp_path):
        result = command("verify", tmp_path, "--json", path, status=2)
        assert str(path) in result.stderr
    assert shard_stamps(tmp_path) == before
    manifest.unlink()
    verdict = tmp_path / "v.json"
    verdict.write_text('{"old": 1}')
    command("verify", tmp_path, "--json", verdict, status=3)
    remedies = [problem["remedy"] for problem in json.loads(verdict.read_text())["problems"]]
    assert any(remedy.endswith("verify with --allow-incomplete") for remedy in remedies), remedies


# what the system refuses -----------------------------------------------------------------------------------------


def restricted(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
    """Run the command line without root's right to read and write everything."""
    call = [sys.executable, "-m", "imagenet_prep", *map(str, arguments)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may read and write everything, and there is no setpriv")
        call = ["setpriv", "--bounding-set", "-dac_override,-dac_read_search", "--inh-caps", "-all", *call]
    return subprocess.run(call, capture_output=True, text=True)


def test_output_on_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """show > /dev/full is exit 7, and says in one line that the output could not be written."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    shard = a_shard(tmp_path / "f")
    with open("/dev/full", "wb") as full:
        call = [sys.executable, "-m", "imagenet_prep", "show", str(shard)]
        result = subprocess.run(call, stdout=full, stderr=subprocess.PIPE, text=True)
    assert result.returncode == 7
    assert result.stderr == "error: no space left while writing to standard output\n"


def test_a_folder_that_cannot_be_searched_is_named(tmp_path: Path) -> None:
    """verify is exit 4 and names the folder; status says so too and is exit 0."""
    a_shard(tmp_path / "train-00000-of-00001")
    closed = Layout(tmp_path).state_dir
    closed.mkdir()
    closed.chmod(0)
    try:
        verify, status = restricted("verify", tmp_path), restricted("status", tmp_path)
        as_json = restricted("status", tmp_path, "--json", "-")
    finally:
        closed.chmod(0o755)
    assert (verify.returncode, status.returncode, as_json.returncode) == (4, 0, 0)
    assert re.match(rf"error: {re.escape(str(closed))}\S* can't be read$", error_lines(verify)[0])
    assert error_lines(verify)[1] == "Permission denied"
    assert re.search(rf"{re.escape(str(closed))}\S* can't be read: Permission denied$", status.stdout, re.MULTILINE)
    assert {stage["state"] for stage in json.loads(as_json.stdout)["stages"]} == {"unknown"}


@pytest.mark.parametrize("command", ["verify", "convert"])
@pytest.mark.parametrize(("kind", "reason"), [("loop", "Too many levels of symbolic links"), ("x" * 300, "too long")])
def test_a_path_that_the_system_refuses_is_no_bug(command: str, kind: str, reason: str, tmp_path: Path) -> None:
    """A link to itself, or a name that is too long, as DATA_DIR: what and why in three lines, never a traceback."""
    if kind == "loop":
        (tmp_path / kind).symlink_to(kind)
    result = prep(command, tmp_path / kind)
    assert "Traceback" not in result.stderr
    assert result.returncode in (1, 2, 4)
    assert len(error_lines(result)) <= 3
    assert reason in result.stderr or "does not exist" in result.stderr


# commands to copy ------------------------------------------------------------------------------------------------


def installed(folder: Path) -> Path:
    """The program under its own name, in a folder that is not on PATH."""
    folder.mkdir()
    path = folder / "imagenet-prep"
    path.write_text(f"#!{sys.executable}\nfrom imagenet_prep.cli import main\nmain()\n")
    path.chmod(0o755)
    return path


def off_path(*call: str | Path, cwd: Path) -> subprocess.CompletedProcess[str]:
    """Run a program where PATH does not lead to it."""
    words = [str(word) for word in call]
    return subprocess.run(words, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PATH": "/usr/bin:/bin"})


def after(text: str, mark: str) -> list[str]:
    """The words of the command that follows a mark."""
    return shlex.split(text.split(mark, 1)[1].splitlines()[0])


def test_commands_to_copy_call_the_program_as_it_was_called(tmp_path: Path) -> None:
    """Off PATH, what status, an error and a remedy propose begins with the program's path, quoted."""
    program = installed(tmp_path / "my bin")
    made_here = a_shard(tmp_path / "d" / "train-00000-of-00001").parent
    status = off_path(program, "status", made_here, cwd=tmp_path)
    assert after(status.stdout, "next: ") == [str(program), "verify", str(made_here)]
    as_json = json.loads(off_path(program, "status", made_here, "--json", "-", cwd=tmp_path).stdout)
    assert shlex.split(as_json["next_command"])[0] == str(program)
    (tmp_path / "none").mkdir()
    error = off_path(program, "verify", "none", cwd=tmp_path).stderr.splitlines()
    assert shlex.split(error[2])[:2] == [str(program), "convert"]


def test_a_path_that_begins_with_a_dash_can_be_copied(tmp_path: Path, tiny_data_dir: Path) -> None:
    """What verify and status propose for a folder called -dash works as printed."""
    tiny_data_dir.rename(tmp_path / "-dash")
    program = installed(tmp_path / "bin")
    assert off_path(program, "convert", "./-dash", *PART, "-q", cwd=tmp_path).returncode == 0
    (tmp_path / "-dash" / "train-00001-of-00008").unlink()
    verify = off_path(program, "verify", "./-dash", cwd=tmp_path)
    assert verify.returncode == 3
    assert "1 problem found." in verify.stdout
    command = after(verify.stdout, "to do: make it again: ")
    status = off_path(program, "status", "./-dash", cwd=tmp_path)
    assert after(status.stdout, "next: ") == command
    assert off_path(*command, cwd=tmp_path).returncode == 0
