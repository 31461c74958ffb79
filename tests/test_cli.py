"""The command line: exit codes, three-line messages, help,
and the whole way from a real shell's point of view.
"""

from __future__ import annotations

import fcntl
import hashlib
import io
import json
import os
import pty
import re
import shlex
import shutil
import struct
import subprocess
import sys
import termios
import time
from pathlib import Path

import click
import pytest
from click.testing import CliRunner
from existing import existing
from file_server import serve
from made_sets import flip, write
from PIL import Image
from pseudo_terminals import rest_shown
from running import PROGRAM, command, error_lines, held, prep

from imagenet_prep.cli import COMMANDS, INTERRUPTED, _stopped, cli
from imagenet_prep.cli.base_command import LongCommand, every_command
from imagenet_prep.cli.commands import load_commands
from imagenet_prep.cli.option_types import NewFile
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.hints import install_extra
from imagenet_prep.ilsvrc2012.astray import own_images
from imagenet_prep.storage.layout import Layout
from imagenet_prep.tfrecord.example import BytesList, encode_example

PART = ("--allow-incomplete", "--train-shards", "8", "--validation-shards", "8", "--workers", "2")


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
        ("run", ""),
        ("convert", "D", "--raw", ""),
        ("verify", "D", "--json", ""),
    ],
)
def test_wrong_usage_is_exit_2(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A wrong call is exit 2, with a message and no traceback, and creates nothing.

    A variable that is not set must not be taken for the folder that the shell is in.
    """
    result = command(*arguments, cwd=tmp_path, status=2)
    lines = result.stderr.splitlines()
    (said,) = (number for number, line in enumerate(lines) if line.startswith("error: "))
    assert said == 0 or (lines[0].startswith("Usage: imagenet-prep") and lines[said - 1] == "")
    assert "Error" not in result.stderr
    assert "Traceback" not in result.stderr
    assert "" not in arguments or "the value is empty; is a shell variable unset?" in result.stderr
    assert not list(tmp_path.iterdir())


def test_the_whole_way_with_credentials(tmp_path: Path, made_tiny: MadeSet) -> None:
    """run downloads what is missing with the credentials of the environment,
    then annotates, converts and verifies.
    """
    data_dir = tmp_path / "data"
    with serve(made_tiny.archives["train"].parent, "user", "s3cret-canary") as url:
        arguments = ("run", data_dir, "--base-url", url, "--no-digest", *PART)
        refused = command(
            *arguments, IMAGENET_USERNAME="user", IMAGENET_ACCESS_KEY="wrong-canary", status=6
        )
        lines = error_lines(refused)
        assert len(lines) <= 3
        assert "IMAGENET_ACCESS_KEY" in "".join(lines)
        command(*arguments, status=6)
        result = command(*arguments, IMAGENET_USERNAME="user", IMAGENET_ACCESS_KEY="s3cret-canary")
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
    """Progress is plain lines, none if quiet; verify is 0 with a table, or 3 with the place;
    show prints records.
    """
    result = command("convert", tiny_data_dir, *PART)
    assert "\r" not in result.stderr
    assert "\x1b" not in result.stderr + result.stdout
    assert "300 images" in result.stderr
    quiet = prep("convert", tiny_data_dir, *PART, "--quiet")
    assert (quiet.returncode, quiet.stdout, quiet.stderr) == (0, "", "")
    good = command("verify", tiny_data_dir)
    assert re.search(r"^train +8 +300 +300 +10", good.stdout, re.MULTILINE)
    assert "incomplete: the shards of ILSVRC2012 hold 300 of 1,281,167 train images" in good.stdout
    shard = tiny_data_dir / "train-00002-of-00008"
    shown = prep("show", shard, "--limit", "1")
    assert re.search(r"image/encoded.*JPEG.*16.*16", shown.stdout)
    assert [json.loads(line) for line in prep("show", shard, "--json", "-").stdout.splitlines()]
    picture = tmp_path / "out.png"
    command("show", shard, "--record", "3", "--image", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    command("show", shard, "--record", "5000", status=2)
    flip(shard, shard.stat().st_size // 2)
    findings = tmp_path / "findings.json"
    bad = command("verify", tiny_data_dir, "--json", findings, status=3)
    assert re.search(r"train-00002-of-00008.*record \d+.*byte [\d,]+", bad.stdout)
    assert json.loads(findings.read_text())["problems"][0]["subject"].startswith(
        "train-00002-of-00008"
    )


def test_boxes_are_fetched_where_the_raw_folder_lacks_them(
    tmp_path: Path, made_tiny: MadeSet
) -> None:
    """run --raw on a folder with images alone downloads the boxes to
    DATA_DIR and finds them there.
    """
    raw, data_dir = tmp_path / "raw", tmp_path / "data"
    raw.mkdir()
    for key in ("train", "validation"):
        os.link(made_tiny.archives[key], raw / made_tiny.archives[key].name)
    with serve(made_tiny.archives["boxes"].parent, "user", "key") as url:
        arguments = (
            "run",
            data_dir,
            "--raw",
            raw,
            "--base-url",
            url,
            "--no-digest",
            *PART,
            "--quiet",
        )
        command(*arguments, IMAGENET_USERNAME="user", IMAGENET_ACCESS_KEY="key")
    assert len(Layout(data_dir).boxes_csv.read_text().splitlines()) == made_tiny.boxes_csv.count(
        b"\n"
    )
    assert sorted(path.name for path in existing(raw, "*")) == sorted(
        made_tiny.archives[key].name for key in ("train", "validation")
    )


def test_a_place_that_cannot_be_written_is_no_bug(tmp_path: Path, tiny_data_dir: Path) -> None:
    """A file in the place of a folder, and the system's refusal,
    are three lines and no traceback.
    """
    (tmp_path / "file").touch()
    for arguments in (("convert", tmp_path / "file"), ("demo", tmp_path / "file")):
        command(*arguments, status=2)
    result = command("convert", tiny_data_dir, "--output", "/proc/not-here", *PART, status=1)
    assert error_lines(result)[0] == "error: cannot write /proc/not-here/imagenet-prep"
    assert len(error_lines(result)) == 3


# files that are not ours to write over ------------------------------------------------------------


def a_shard(path: Path) -> Path:
    """A file of one record, which holds a picture and nothing else."""
    Image.new("RGB", (5, 4)).save(file := io.BytesIO(), "PNG")
    path.parent.mkdir(parents=True, exist_ok=True)
    write(path, [encode_example({"image/encoded": BytesList((file.getvalue(),))})])
    return path


def test_what_is_not_ours_is_not_written_over(tmp_path: Path) -> None:
    """show --image replaces its own picture alone, and verify --json a verdict;
    all else is refused, untouched.
    """
    shard, manifest = a_shard(tmp_path / "train-00000-of-00001"), Layout(tmp_path).manifest_path
    text, empty, link = (tmp_path / name for name in ("keep.txt", "empty", "link"))
    manifest.parent.mkdir()
    for path in (text, manifest):
        path.write_text("{}")
    empty.touch()
    link.symlink_to("nothing")
    before = shard_stamps(tmp_path)
    for path in (shard, text, empty, link):
        assert str(path) in command("show", shard, "--image", path, status=2).stderr
    for path in (shard, manifest, tmp_path):
        assert str(path) in command("verify", tmp_path, "--json", path, status=2).stderr
    assert shard_stamps(tmp_path) == before
    assert link.is_symlink()
    picture, verdict = tmp_path / "x.png", tmp_path / "v.json"
    picture.write_bytes(b"\x89PNG\r\n\x1a\nan old one")
    command("show", shard, "--image", picture)
    assert b"an old one" not in picture.read_bytes()
    manifest.unlink()
    verdict.write_text('{"old": 1}')
    command("verify", tmp_path, "--json", verdict, status=3)
    remedies = [problem["remedy"] for problem in json.loads(verdict.read_text())["problems"]]
    assert any(remedy.endswith("verify with --allow-incomplete") for remedy in remedies), remedies


def test_the_digests_of_a_raw_folder_are_not_written_over(tmp_path: Path) -> None:
    """An outcome of a command under their name is."""
    path = tmp_path / "checked.json"
    path.write_text('{"images": {}}')
    with pytest.raises(click.BadParameter, match="may hold the digests of checked images"):
        NewFile(b"{").convert(str(path), None, None)
    path.write_text('{\n  "command": "verify"}')
    assert NewFile(b"{").convert(str(path), None, None) == path


# what the system refuses --------------------------------------------------------------------------


def restricted(
    *arguments: str | Path, cwd: Path | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run the command line without root's right to read and write everything."""
    call = [*PROGRAM, *map(str, arguments)]
    if os.geteuid() == 0:
        if shutil.which("setpriv") is None:
            pytest.skip("root may read and write everything, and there is no setpriv")
        call = [
            "setpriv",
            "--bounding-set",
            "-dac_override,-dac_read_search",
            "--inh-caps",
            "-all",
            *call,
        ]
    return subprocess.run(
        call, capture_output=True, text=True, cwd=cwd, env={**os.environ, **environment}
    )


def test_output_on_a_full_disk_is_one_line(tmp_path: Path) -> None:
    """show > /dev/full is exit 7, and says in one line that the output could not be written."""
    if not Path("/dev/full").exists():
        pytest.skip("there is no /dev/full")
    shard = a_shard(tmp_path / "f")
    with open("/dev/full", "wb") as full:
        result = subprocess.run(
            [*PROGRAM, "show", shard], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 7
    assert result.stderr == "error: no space left while writing to standard output\n"


def test_output_over_the_limit_of_file_sizes_names_the_limit(tmp_path: Path) -> None:
    """show > FILE under ulimit -f is exit 1, and tells which limit it met."""
    shard = a_shard(tmp_path / "f")
    limited = ["bash", "-c", 'trap "" XFSZ; ulimit -f 0; exec "$@"', "bash", *PROGRAM]
    with (tmp_path / "out").open("wb") as out:
        result = subprocess.run(
            [*limited, "show", shard], stdout=out, stderr=subprocess.PIPE, text=True
        )
    assert result.returncode == 1
    assert error_lines(result) == [
        "error: standard output can't be written",
        "File too large",
        "its file system, or ulimit -f, limits file sizes: choose another folder, or raise the limit",
    ]


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
    assert re.search(
        rf"{re.escape(str(closed))}\S* can't be read: Permission denied$",
        status.stdout,
        re.MULTILINE,
    )
    assert {stage["state"] for stage in json.loads(as_json.stdout)["stages"]} == {"unknown"}


@pytest.mark.parametrize("command", ["verify", "convert"])
@pytest.mark.parametrize(
    ("kind", "reason"), [("loop", "Too many levels of symbolic links"), ("x" * 300, "too long")]
)
def test_a_path_that_the_system_refuses_is_no_bug(
    command: str, kind: str, reason: str, tmp_path: Path
) -> None:
    """A link to itself, or a name that is too long, as DATA_DIR:
    what and why in three lines, never a traceback.
    """
    if kind == "loop":
        (tmp_path / kind).symlink_to(kind)
    result = prep(command, tmp_path / kind)
    assert "Traceback" not in result.stderr
    assert result.returncode in (1, 2, 4)
    assert len(error_lines(result)) <= 3
    said_otherwise = "is a broken link" if kind == "loop" else "does not exist"
    assert reason in result.stderr or said_otherwise in result.stderr


# commands to copy ---------------------------------------------------------------------------------


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
    return subprocess.run(
        words, cwd=cwd, capture_output=True, text=True, env={**os.environ, "PATH": "/usr/bin:/bin"}
    )


def after(text: str, mark: str) -> list[str]:
    """The words of the command that follows a mark."""
    return shlex.split(text.split(mark, 1)[1].splitlines()[0])


def test_commands_to_copy_call_the_program_as_it_was_called(tmp_path: Path) -> None:
    """Off PATH, what status, an error and a remedy propose begins with the program's path,
    quoted.
    """
    program = installed(tmp_path / "my bin")
    made_here = a_shard(tmp_path / "d" / "train-00000-of-00001").parent
    status = off_path(program, "status", made_here, cwd=tmp_path)
    assert after(status.stdout, "next: ") == [str(program), "verify", str(made_here)]
    as_json = json.loads(off_path(program, "status", made_here, "--json", "-", cwd=tmp_path).stdout)
    assert shlex.split(as_json["next_command"])[0] == str(program)
    (tmp_path / "none").mkdir()
    error = off_path(program, "verify", "none", cwd=tmp_path).stderr
    assert after(error, "run the next step: ")[:2] == [str(program), "download"]


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


REQUIRED = os.environ.get("IMAGENET_PREP_SHELLS") == "required"


# help ---------------------------------------------------------------------------------------------


def test_help_has_every_command_on_a_line() -> None:
    """Each command once, in at most 80 columns, none cut; -V is --version."""
    assert sorted(COMMANDS) == sorted(load_commands())
    text = prep("--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    for name, words in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(words)}$", text, re.MULTILINE)
    version = r"imagenet-prep, version \d+\.\d+\.\d+(?: \([0-9a-f]{8}(?:, changed)?\))?\n"
    assert re.fullmatch(version, prep("-V").stdout)


@pytest.mark.parametrize("command", sorted(load_commands()))
def test_help_of_a_command_has_every_option_once(command: str) -> None:
    """Each option begins one line; no argument is listed as one."""
    is_long = isinstance(load_commands()[command], LongCommand)
    text = CliRunner().invoke(cli, [command, "--help-all" if is_long else "--help"]).output
    assert "INTEGER" not in text
    own = [each for each in load_commands()[command].params if each not in every_command]
    assert len(own) <= 21, "20 options of its own and DATA_DIR"
    assert f"Examples:\n  imagenet-prep {command} " in text
    if is_long:
        assert prep(command, "-h").stdout.count("\n  -") == 12 + len(("--help-all", "--help"))
    for each in load_commands()[command].params:
        found = re.findall(rf"^  (?:-\w, )?{each.opts[0]}\b", text, re.MULTILINE)
        assert len(found) == isinstance(each, click.Option), each.opts


# shells -------------------------------------------------------------------------------------------


SHELLS = {
    "bash": "source <(imagenet-prep completion bash); COMP_WORDS=({line}); COMP_CWORD={last}; "
    "_imagenet_prep_completion imagenet-prep; echo ${{COMPREPLY[@]}}",
    "zsh": "autoload -U compinit && compinit -u -D && source <(imagenet-prep completion zsh) && "
    "whence _imagenet_prep_completion && _IMAGENET_PREP_COMPLETE=zsh_complete "
    "COMP_WORDS='{line}' COMP_CWORD={last} "
    "imagenet-prep",
    "fish": "imagenet-prep completion fish | source; complete -C '{line}'",
}


@pytest.mark.once
@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes(name: str, tmp_path: Path) -> None:
    """A real shell that took our script makes convert of conv,
    and --train-shards of its beginning.
    """
    if not shutil.which(name):
        assert not REQUIRED, (
            f"{name} is not installed, and IMAGENET_PREP_SHELLS says that it is required"
        )
        pytest.skip(f"{name} is not installed")
    path = f"{installed(tmp_path / 'bin').parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(tmp_path)}
    for line, expected in (
        ("imagenet-prep conv", "convert"),
        ("imagenet-prep convert --train", "--train-shards"),
    ):
        code = SHELLS[name].format(line=line, last=line.count(" "))
        found = subprocess.run(
            [name, "-c", code], env=environment, capture_output=True, text=True, timeout=600
        )
        assert expected in found.stdout, found.stderr


# waiting ------------------------------------------------------------------------------------------


def test_status_says_who_is_at_work(tmp_path: Path) -> None:
    """As long as another process holds the folder, status and verify name it;
    one that was killed is not named.
    """
    lock = tmp_path / "imagenet-prep" / "lock"
    with held(lock) as holder:
        waiting = subprocess.Popen(
            ["flock", lock, "true"]
        )  # one who waits for a lock has a line in /proc/locks too
        while " -> " not in Path("/proc/locks").read_text():
            time.sleep(0.01)
        shown = prep("status", tmp_path).stdout.splitlines()[0]
        noted = prep("verify", tmp_path).stderr
    waiting.wait()
    assert re.fullmatch(
        rf"running: process {holder} on \S+ since \d{{4}}-\d\d-\d\d \d\d:\d\d", shown
    )
    assert f"process {holder} on" in noted
    assert lock.exists()
    assert prep("status", tmp_path).stdout.startswith("download")


def test_after_ctrl_c_no_bar_is_drawn(tmp_path: Path) -> None:
    """The last thing on the terminal is the command to go on with;
    the bar that was there is not drawn below it.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.execve(
            PROGRAM[0], [*PROGRAM, "demo", str(tmp_path / "new")], {**os.environ, "TERM": "xterm"}
        )
    shown = b""
    while b"making images" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    rest, status = rest_shown(pid, terminal)
    shown += rest
    assert status == 130
    after = shown[shown.index(b"interrupted;") :].decode()
    assert after.splitlines()[0].startswith(
        "interrupted; everything finished so far is kept. To resume:"
    )
    assert "making" not in after
    assert len(after.splitlines()) == 2


def test_a_stopped_dry_run_says_that_nothing_was_changed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A dry run makes nothing that could be kept."""
    monkeypatch.setattr(sys, "argv", ["imagenet-prep", "convert", "d", "--dry-run"])
    error = _stopped(INTERRUPTED).error
    assert error is not None
    assert "no image and no shard was changed. To start again: " in str(error["hint"])


# slips --------------------------------------------------------------------------------------------


def test_status_and_run_know_images_of_ones_own(tmp_path: Path) -> None:
    """status proposes init, run does so too in place of a download;
    where ImageNet's images lie, neither does.
    """
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "tom.jpg").write_bytes(b"")
    assert (
        prep("status", tmp_path).stdout.splitlines()[-1].endswith(f"imagenet-prep init {tmp_path}")
    )
    for option in ((), ("--dry-run",)):
        refused = prep("run", tmp_path, "--base-url", "http://127.0.0.1:9/", *option)
        assert refused.returncode == 2
        said = refused.stderr
        assert said.startswith(f"error: {tmp_path} holds images without ImageNet's names, and none")
        assert f"for your own data set: imagenet-prep init {tmp_path}" in said
    (tmp_path / "raw-data").mkdir()
    (tmp_path / "raw-data" / "ILSVRC2012_img_train.tar").write_bytes(bytes(10240))
    assert "init" not in prep("status", tmp_path).stdout
    assert own_images(Layout(tmp_path)) is None


def test_own_images_in_folders_of_splits_are_of_ones_own(tmp_path: Path) -> None:
    """convert, status, verify and report all name init."""
    for split in ("train", "val", "test"):
        (tmp_path / split / "cats").mkdir(parents=True)
        (tmp_path / split / "cats" / "tom.jpg").write_bytes(b"")
    for name in ("convert", "status", "verify", "report"):
        ran = prep(name, tmp_path)
        assert f"imagenet-prep init {tmp_path}" in ran.stdout + ran.stderr, name


def test_a_folder_of_raw_data_is_no_data_dir(tmp_path: Path) -> None:
    """The folder above it is named; nothing says to move its archives."""
    raw = tmp_path / "raw-data"
    raw.mkdir()
    for name in ("ILSVRC2012_img_train.tar", "ILSVRC2012_bbox_train_v2.tar.gz"):
        (raw / name).write_bytes(bytes(10240))
    (tmp_path / "train-00000-of-00001").write_bytes(b"")
    for name, named in {"status": "convert", "report": "verify"}.items() | {
        (name, name) for name in ("convert", "annotate", "verify")
    }:
        ran = prep(name, raw)
        said = ran.stdout + ran.stderr
        assert f"imagenet-prep {named} {tmp_path}" in re.split(r"next: |shards: |\n|    ", said)
        assert str(raw / "raw-data") not in said


def test_misplaced_images_of_imagenet_are_not_of_ones_own(tmp_path: Path) -> None:
    """Their names tell, wherever they are below the folder."""
    folder = tmp_path / "raw-data" / "pictures"
    folder.mkdir(parents=True)
    (folder / "n01440764_1.JPEG").write_bytes(b"")
    assert own_images(Layout(tmp_path)) is None
    said = prep("run", tmp_path, "--base-url", "http://127.0.0.1:9/").stderr
    assert "without ImageNet's names" not in said
    assert "n01440764_1.JPEG" in said


@pytest.mark.parametrize(
    ("package", "library"), [("torch", "PyTorch"), ("tensorflow", "TensorFlow")]
)
def test_a_framework_that_is_not_installed_is_named(
    package: str, library: str, tmp_path: Path
) -> None:
    """With the words that install it."""
    code = "import importlib.util as u; find = u.find_spec\n"
    code += (
        f"u.find_spec = lambda name, *more: None if name == '{package}' else find(name, *more)\n"
    )
    code += f"import imagenet_prep.{package}"
    result = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=600
    )
    expected = f"imagenet_prep.{package} needs {library}: {install_extra(package)}"
    assert result.stderr.splitlines()[-1] == f"ModuleNotFoundError: {expected}"


def test_demo_leaves_a_folder_alone_that_holds_something(tmp_path: Path) -> None:
    """A folder of somebody's own is refused; what the demo itself made is found done."""
    (tmp_path / "thesis.txt").write_text("mine")
    result = command("demo", tmp_path, status=2)
    assert error_lines(result)[0] == f"error: {tmp_path} holds other files"
    assert os.listdir(tmp_path) == ["thesis.txt"]
    small = ("demo", tmp_path / "new", "--classes", 2, "--per-class", 2)
    first, again = prep(*small), prep(*small)
    assert [first.returncode, again.returncode] == [0, 0]
    assert "making" in first.stderr
    assert "of an earlier run are kept" in again.stderr
    other = command(*small[:-1], 3, status=2)
    assert error_lines(other)[:2] == [
        f"error: {tmp_path / 'new'} holds a demo of 2 classes of 2 train images",
        "expected --classes 2 --per-class 2",
    ]
    numbers = Layout(tmp_path / "new").demo_path
    for damaged in ("{", "[1]", '{"classes": 2}'):
        numbers.write_text(damaged)
        refused = error_lines(command(*small, status=2))
        assert refused[0] == f"error: {tmp_path / 'new'} holds other files"
