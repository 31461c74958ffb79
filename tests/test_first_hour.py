"""The first hour: help that shows the way, shells that complete, slips that are refused before they cost anything."""

from __future__ import annotations

import fcntl
import os
import pty
import re
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
from pseudo_terminals import rest_shown
from running import command, error_lines, held, prep

import imagenet_prep
from imagenet_prep.cli import COMMANDS
from imagenet_prep.cli.commands import cli
from imagenet_prep.cli.options import LongCommand
from imagenet_prep.ilsvrc2012.raw_data import own_images
from imagenet_prep.storage.layout import Layout

HOME = Path(imagenet_prep.__file__).parents[1]
REQUIRED = os.environ.get("IMAGENET_PREP_SHELLS") == "required"


# help ------------------------------------------------------------------------------------------------------------


def test_help_has_every_command_on_a_line() -> None:
    """Each command once, in at most 80 columns, none cut; -V is --version."""
    assert sorted(COMMANDS) == sorted(cli.commands)
    text = prep("--help").stdout
    assert max(map(len, text.splitlines())) <= 80
    for name, words in COMMANDS.items():
        assert re.search(rf"^  {name} +{re.escape(words)}$", text, re.MULTILINE)
    assert re.fullmatch(r"imagenet-prep, version \d+\.\d+\.\d+\n", prep("-V").stdout)


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_help_of_a_command_has_every_option_once(command: str) -> None:
    """Each option begins one line; no argument is listed as one."""
    is_long = isinstance(cli.commands[command], LongCommand)
    text = CliRunner().invoke(cli, [command, "--help-all" if is_long else "--help"]).output
    assert "INTEGER" not in text
    assert len(cli.commands[command].params) <= 21, "20 options and DATA_DIR"
    assert f"Examples:\n  imagenet-prep {command} " in text
    if is_long:
        assert prep(command, "-h").stdout.count("\n  -") == 12 + len(("--help-all", "--help"))
    for each in cli.commands[command].params:
        found = re.findall(rf"^  (?:-\w, )?{each.opts[0]}\b", text, re.MULTILINE)
        assert len(found) == isinstance(each, click.Option), each.opts


# shells ----------------------------------------------------------------------------------------------------------


@pytest.fixture
def path_with_program(tmp_path: Path) -> str:
    """A PATH on which this very program is called imagenet-prep."""
    program = tmp_path / "bin" / "imagenet-prep"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\nexec {sys.executable} -c "from imagenet_prep.cli import main; main()" "$@"\n')
    program.chmod(0o755)
    return f"{program.parent}:{os.environ['PATH']}"


def shell(name: str) -> str:
    """The path of a shell; where it isn't there the test is skipped, unless that is not allowed."""
    found = shutil.which(name)
    if found is None and not REQUIRED:
        pytest.skip(f"{name} is not installed")
    assert found is not None, f"{name} is not installed, and IMAGENET_PREP_SHELLS says that it is required"
    return found


SHELLS = {
    "bash": "source <(imagenet-prep completion bash); COMP_WORDS=({line}); COMP_CWORD={last}; "
    "_imagenet_prep_completion imagenet-prep; echo ${{COMPREPLY[@]}}",
    "zsh": "autoload -U compinit && compinit -u -D && source <(imagenet-prep completion zsh) && "
    "whence _imagenet_prep_completion && _IMAGENET_PREP_COMPLETE=zsh_complete COMP_WORDS='{line}' COMP_CWORD={last} "
    "imagenet-prep",
    "fish": "imagenet-prep completion fish | source; complete -C '{line}'",
}


@pytest.mark.once
@pytest.mark.parametrize("name", SHELLS)
def test_a_shell_completes(name: str, path_with_program: str, tmp_path: Path) -> None:
    """A real shell that took our script makes convert of conv, and --train-shards of its beginning."""
    environment = {**os.environ, "PATH": path_with_program, "HOME": str(tmp_path)}
    for line, expected in (("imagenet-prep conv", "convert"), ("imagenet-prep convert --train", "--train-shards")):
        code = SHELLS[name].format(line=line, last=line.count(" "))
        found = subprocess.run([shell(name), "-c", code], env=environment, capture_output=True, text=True, timeout=60)
        assert expected in found.stdout, found.stderr


# waiting ---------------------------------------------------------------------------------------------------------


def test_status_says_who_is_at_work(tmp_path: Path) -> None:
    """As long as another process holds the folder, status and verify name it; one that was killed is not named."""
    lock = tmp_path / "imagenet-prep" / "lock"
    with held(lock) as holder:
        waiting = subprocess.Popen(["flock", lock, "true"])  # one who waits for a lock has a line in /proc/locks too
        while " -> " not in Path("/proc/locks").read_text():
            time.sleep(0.01)
        shown = prep("status", tmp_path).stdout.splitlines()[0]
        noted = prep("verify", tmp_path).stderr
    waiting.wait()
    assert re.fullmatch(rf"running: process {holder} on \S+ since \d{{4}}-\d\d-\d\d \d\d:\d\d", shown)
    assert f"process {holder} on" in noted
    assert lock.exists()
    assert prep("status", tmp_path).stdout.startswith("download")


def test_after_ctrl_c_no_bar_is_drawn(tmp_path: Path) -> None:
    """The last thing on the terminal is the command to go on with; the bar that was there is not drawn below it."""
    pid, terminal = pty.fork()
    if pid == 0:
        program = [sys.executable, "-m", "imagenet_prep"]
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        os.execve(program[0], [*program, "demo", str(tmp_path / "new")], {**os.environ, "TERM": "xterm"})
    shown = b""
    while b"making images" not in shown:
        shown += os.read(terminal, 4096)
    os.write(terminal, b"\x03")
    rest, status = rest_shown(pid, terminal)
    shown += rest
    assert status == 130
    after = shown[shown.index(b"interrupted;") :].decode()
    assert after.splitlines()[0].startswith("interrupted; everything finished so far is kept. To resume:")
    assert "making" not in after
    assert len(after.splitlines()) == 2


# slips -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("arguments", [*(("run", ""), ("convert", "D", "--raw", "")), ("verify", "D", "--json", "")])
def test_an_empty_word_is_no_folder(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A variable that is not set must not be taken for the folder that the shell is in: nothing is made there."""
    result = command(*arguments, cwd=tmp_path, status=2)
    assert "the value is empty; is a shell variable unset?" in result.stderr
    assert not list(tmp_path.iterdir())


def test_status_and_run_know_images_of_ones_own(tmp_path: Path) -> None:
    """status proposes init, run says so before it asks for anything; where ImageNet's images lie, neither does."""
    (tmp_path / "cats").mkdir()
    (tmp_path / "cats" / "tom.jpg").write_bytes(b"")
    assert prep("status", tmp_path).stdout.splitlines()[-1].endswith(f"imagenet-prep init {tmp_path}")
    said = prep("run", tmp_path, "--base-url", "http://127.0.0.1:9/").stderr
    assert f"{tmp_path} holds images that are not from ImageNet; for your own data set: " in said
    assert said.index("imagenet-prep init") < said.index("error: ")
    (tmp_path / "raw-data").mkdir()
    (tmp_path / "raw-data" / "ILSVRC2012_img_train.tar").write_bytes(bytes(10240))
    assert "init" not in prep("status", tmp_path).stdout
    assert own_images(Layout(tmp_path)) is None


@pytest.mark.parametrize(("package", "library"), [("torch", "PyTorch"), ("tensorflow", "TensorFlow")])
def test_a_framework_that_is_not_installed_is_named(package: str, library: str, tmp_path: Path) -> None:
    """With the words that install it."""
    code = "import importlib.util as u; find = u.find_spec\n"
    code += f"u.find_spec = lambda name, *more: None if name == '{package}' else find(name, *more)\n"
    code += f"import imagenet_prep.{package}"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    expected = f"imagenet_prep.{package} needs {library}: pip install 'imagenet-prep[{package}]'"
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
    assert error_lines(other)[0] == f"error: {tmp_path / 'new'} holds a demo of 2 classes of 2 images"
