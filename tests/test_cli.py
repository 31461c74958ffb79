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
from running import error_lines, prep

from imagenet_prep.checks.shard_check import remedy_own
from imagenet_prep.cli.terminal import Lines
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


def test_help_loads_nothing_heavy() -> None:
    """The command line starts without any library but click (make bench times it)."""
    code = "import sys, imagenet_prep.cli; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "PIL", "requests", "tensorflow", "tqdm", "multiprocessing", "simplejpeg", "crc32c", "tempfile"}
    assert not heavy & set(loaded)


def test_a_first_conversion_loads_what_it_uses(tiny_data_dir: Path) -> None:
    """What draws, reads a journal or a recipe, or asks an object store is not loaded, nor are BLAS's threads begun."""
    shown = "print(os.environ['OPENBLAS_NUM_THREADS'], *sys.modules)"
    code = f"import os, sys, imagenet_prep.cli as cli\ntry: cli.main()\nfinally: {shown}"
    words = ["convert", tiny_data_dir, "--allow-incomplete", "--check", "header", "--quiet"]
    environment = {name: value for name, value in os.environ.items() if name != "OPENBLAS_NUM_THREADS"}
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    threads, *loaded = done.stdout.split()
    assert threads == "1"
    assert not {"numpy.random", "difflib", "concurrent.futures", "PIL"} & set(loaded)


@pytest.mark.parametrize(
    "arguments",
    [
        ("convert",),
        ("nonsense", "x"),
        ("convert", "x", "--workers", "0"),
        ("convert", "x", "--check", "twice"),
        ("download", "x", "--only", "train,everything"),
        ("verify", "x", "--depth", "deep"),
        ("convert", "x", "--set", "depth=1"),
        ("convert", "x", "--rank", "3"),
        ("convert", "x", "--train-shards", "0"),
        ("convert", "x", "--quality", "101"),
        ("convert", "x", "--resize", "0"),
        ("convert", "x", "--set", "memory=lots"),
        ("show", "not-there"),
        ("init", "not-there"),
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
    lines = result.stderr.splitlines()
    (said,) = (number for number, line in enumerate(lines) if line.startswith("error: "))
    assert said == 0 or (lines[0].startswith("Usage: imagenet-prep") and lines[said - 1] == "")
    assert "Error" not in result.stderr
    assert "Traceback" not in result.stderr
    assert not list(tmp_path.iterdir())


def test_what_is_not_there_is_said_in_our_words() -> None:
    """No more than that, and what was expected."""
    words = {"show": "a TFRecord file", "init": "a folder of data", "verify": "a folder of shards"}
    for command, expected in words.items():
        lines = prep(command, "not-there").stderr.splitlines()
        assert lines == ["error: not-there does not exist", f"expected {expected}"]


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
        for path in existing(data_dir, "**/*")
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


def test_show_prints_a_record_and_its_picture(tiny_data_dir: Path, tmp_path: Path) -> None:
    """Features one line each, images by size; --json is JSON; --image is a PNG."""
    assert prep("convert", tiny_data_dir, *PART, "--quiet").returncode == 0
    shard = tiny_data_dir / "train-00000-of-00008"
    result = prep("show", shard, "--limit", "1")
    assert result.returncode == 0
    assert re.search(r"image/encoded.*JPEG.*16.*16", result.stdout)
    assert "image/class/synset" in result.stdout
    lines = prep("show", shard, "--json", "-").stdout.splitlines()
    assert [json.loads(line) for line in lines]
    picture = tmp_path / "out.png"
    assert prep("show", shard, "--record", "3", "--image", picture).returncode == 0
    assert picture.read_bytes().startswith(b"\x89PNG")
    assert prep("show", shard, "--record", "5000").returncode == 2


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


def test_convert_takes_sizes_and_smaller_images(tiny_data_dir: Path) -> None:
    """--resize, --quality and --set reach the conversion."""
    options = (
        "--resize",
        "8",
        "--quality",
        "70",
        "--set",
        "read_order=sequential",
        "--set",
        "memory=1000000",
        "--quiet",
    )
    assert prep("convert", tiny_data_dir, *PART, *options).returncode == 0
    record = json.loads(prep("show", tiny_data_dir / "train-00000-of-00008", "--limit", "1", "--json", "-").stdout)
    assert record["features"]["image/width"] == [8]
    assert prep("verify", tiny_data_dir, "--depth", "decode").returncode == 0


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
    assert (
        prep("convert", tiny_data_dir, *PART, "--set", "seed=7", "--set", "compression=gzip", "--quiet").returncode == 0
    )
    victim = tiny_data_dir / "train-00002-of-00008"
    content = victim.read_bytes()
    victim.unlink()
    command = json.loads(prep("status", tiny_data_dir, "--json", "-").stdout)["next_command"]
    assert prep(*shlex.split(command)[1:]).returncode == 0
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
        result = prep("show", shard, "--image", path)
        assert result.returncode == 2
        assert str(path) in result.stderr
    assert shard_stamps(tmp_path) == before
    assert link.is_symlink()
    picture = tmp_path / "x.png"
    picture.write_bytes(b"\x89PNG\r\n\x1a\nan old one")
    assert prep("show", shard, "--image", picture).returncode == 0
    assert b"an old one" not in picture.read_bytes()


def test_verify_json_replaces_only_json(tmp_path: Path) -> None:
    """--json refuses a shard and what is kept beside shards, untouched; a verdict of before it replaces."""
    shard = a_shard(tmp_path / "train-00000-of-00001")
    manifest = Layout(tmp_path).manifest_path
    manifest.parent.mkdir()
    manifest.write_text("{}")
    before = shard_stamps(tmp_path)
    for path in (shard, manifest, tmp_path):
        result = prep("verify", tmp_path, "--json", path)
        assert result.returncode == 2
        assert str(path) in result.stderr
    assert shard_stamps(tmp_path) == before
    manifest.unlink()
    verdict = tmp_path / "v.json"
    verdict.write_text('{"old": 1}')
    assert prep("verify", tmp_path, "--json", verdict).returncode == 3
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


@pytest.mark.parametrize("command", ["verify", "status", "untar", "convert", "annotate"])
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


SYSTEM_CALLS = """
import errno, os, sys
import imagenet_prep.cli as cli
from imagenet_prep.storage import local

name, number, *words = sys.argv[1:]
number = getattr(errno, number)

def refuse(*arguments, **more):
    raise OSError(number, os.strerror(number))

if name == "fstat":
    os.fstat = refuse
elif name == "mmap":
    local.map_descriptor = refuse
elif name == "scandir":
    def scandir(path="."):
        raise OSError(number, os.strerror(number), os.fspath(path))
    os.scandir = os.listdir = scandir
sys.argv[1:] = words
cli.main()
"""


@pytest.mark.parametrize("number", ["EIO", "EACCES", "ESTALE"])
@pytest.mark.parametrize("call", ["fstat", "mmap", "scandir"])
def test_a_system_call_that_fails_is_no_bug(call: str, number: str, tmp_path: Path) -> None:
    """Whichever call it is, in the parent or in a worker: three lines, or a finding, and no traceback."""
    a_shard(tmp_path / "train-00000-of-00001")
    for command in ("verify", "untar"):
        words = [sys.executable, "-c", SYSTEM_CALLS, call, number, command, str(tmp_path), "--workers", "1"]
        result = subprocess.run(words, capture_output=True, text=True, timeout=60)
        assert "Traceback" not in result.stderr, result.stderr
        assert "This is a bug" not in result.stderr


def test_a_report_that_cannot_be_written_is_said_at_once(tmp_path: Path) -> None:
    """report of a folder without the right to write names page and folder before it reads a shard."""
    folder = a_shard(tmp_path / "d" / "train-00000-of-00001").parent
    folder.chmod(0o555)
    try:
        result = restricted("report", folder)
    finally:
        folder.chmod(0o755)
    assert result.returncode == 1
    assert error_lines(result)[0] == f"error: the page {Layout(folder).report_path} can't be written"
    assert str(folder) in error_lines(result)[1]
    assert "verify" not in result.stderr


@pytest.mark.parametrize("command", ["verify", "report", "repair", "status"])
def test_a_folder_that_is_not_there_is_wrong_usage(command: str, tmp_path: Path) -> None:
    """A mistyped DATA_DIR is exit 2 and named; one that is there without shards is exit 4."""
    result = prep(command, tmp_path / "nope")
    assert result.returncode == 2
    assert error_lines(result)[0] == f"error: {tmp_path / 'nope'} does not exist"
    assert prep(command, tmp_path).returncode == (0 if command == "status" else 4)
    assert not list(tmp_path.iterdir())


def test_a_report_of_a_folder_that_is_not_utf8(tmp_path: Path) -> None:
    """The page is made, its title with a replacement character; its path is printed byte for byte."""
    folder = os.fsencode(tmp_path) + b"/by\xff"
    a_shard(Path(os.fsdecode(folder)) / "train-00000-of-00001")
    call = [sys.executable, "-m", "imagenet_prep", "report", folder]
    result = subprocess.run(call, capture_output=True, env={**os.environ, "PYTHONUTF8": "1"})
    assert result.returncode == 3, result.stderr.decode(errors="replace")
    assert result.stdout == folder + b"/imagenet-prep/report.html\n"
    page = Path(os.fsdecode(result.stdout.strip())).read_text(encoding="utf-8")
    assert "by\N{REPLACEMENT CHARACTER}" in page


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


def test_init_proposes_a_command_that_can_be_copied(tmp_path: Path) -> None:
    """A folder's name with blanks, or a leading dash, is one word of the command that init prints."""
    for name in ("fl owers", "-x"):
        for class_name in ("a", "b"):
            (tmp_path / name / class_name).mkdir(parents=True)
            for number in range(12):
                (tmp_path / name / class_name / f"{number}.png").write_bytes(a_picture(number))
        program = installed(tmp_path / f"bin of {name}")
        result = off_path(program, "init", f"./{name}", cwd=tmp_path)
        assert result.returncode == 0, result.stderr
        command = after(result.stdout, "\nnext: ")
        assert command[0] == str(program)
        converted = off_path(*command, "-q", cwd=tmp_path)
        assert converted.returncode == 0, converted.stderr
        assert (tmp_path / f"{name}-shards").is_dir()


# plain words -----------------------------------------------------------------------------------------------------


def test_one_is_not_plural_and_small_amounts_are_kilobytes(capsys: pytest.CaptureFixture[str]) -> None:
    """Plain lines say 1 image, 2 images, and bytes in the unit that suits them."""
    lines = Lines()
    for label, total, unit in (
        ("a", 1, "images"),
        ("b", 2, "images"),
        ("c", 2500, "B"),
        ("d", 3_000_000, "B"),
        ("e", 7, "B"),
    ):
        lines.begin(label, total, unit)
        lines.advance(total)
        lines.end()
    starts = [line.rsplit(", ", 1)[0] for line in capsys.readouterr().err.splitlines()]
    assert starts == [
        "a: 1 of 1 image",
        "b: 2 of 2 images",
        "c: 2.5 kB of 2.5 kB",
        "d: 3 MB of 3 MB",
        "e: 7 B of 7 B",
    ]


def test_a_remedy_quotes_its_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder with a blank is one word, one with a leading dash no option: from Python, where paths stay relative."""
    monkeypatch.chdir(tmp_path)
    for name, word in (("a b", "a b"), ("-dash", "./-dash")):
        layout = Layout(Path(name))
        layout.state_dir.mkdir(parents=True)
        layout.manifest_path.touch()
        assert after(remedy_own(layout), "make it again: ") == ["imagenet-prep", "repair", word]
