"""Messages: words and commands in them, and how they are wrapped on a terminal."""

from __future__ import annotations

import ast
import fcntl
import json
import os
import pty
import re
import struct
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest
from existing import existing
from hypothesis import given
from hypothesis import strategies as st
from pseudo_terminals import rest_shown
from running import PROGRAM, prep

import imagenet_prep
from imagenet_prep.cli.commands import load_commands
from imagenet_prep.cli.terminal import fitted
from imagenet_prep.demo.archives import MadeSet
from imagenet_prep.errors import InputError, all_of
from imagenet_prep.escaping import command, command_line, mention, rerun
from imagenet_prep.hints import Hint
from imagenet_prep.text import number_of

ROOT = Path(imagenet_prep.__file__).parent
MODULES = sorted(str(path.relative_to(ROOT)) for path in existing(ROOT, "**/*.py"))

OPTIONS = {
    option
    for command in load_commands().values()
    for parameter in command.params
    for option in parameter.opts
    if option.startswith("--")
} | {"--help", "--help-all", "--version"}
COMMANDS = {
    *load_commands(),
    "can",
    "listing",
}  # the last two are words of a sentence, not commands
SPOKEN = re.compile(r"imagenet-prep ([a-z]+)\b|(?<![\w(-])(--[a-z][a-z-]*)")
"""What reads as a command of ours, or as an option."""


@pytest.mark.parametrize(
    ("count", "nouns", "words"),
    [
        (0, ["shard"], "0 shards"),
        (1, ["shard"], "1 shard"),
        (1024, ["train shard"], "1,024 train shards"),
        (1, ["shard was", "shards were"], "1 shard was"),
        (2, ["box", "boxes"], "2 boxes"),
    ],
)
def test_one_is_not_many(count: int, nouns: list[str], words: str) -> None:
    """One of something, or any other number of them."""
    assert number_of(count, *nouns) == words


# commands and options -----------------------------------------------------------------------------


def _literals(tree: ast.Module) -> Iterator[str]:
    """Every string but those that stand alone: docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in docstrings
        ):
            yield node.value


def _unknown(tree: ast.Module) -> list[str]:
    found = (match for text in _literals(tree) for match in SPOKEN.finditer(text))
    return [match[0] for match in found if match[1] not in COMMANDS and match[2] not in OPTIONS]


def test_messages_name_commands_and_options_that_exist() -> None:
    """A command or an option that a string of the package names is one of the command line;
    a slip is seen.
    """
    of_others = {
        "ilsvrc2012/repacked.py": ["--rm", "--strip-components"],
        "storage/aws_profiles.py": ["--format"],
        "datasets/sampled_images.py": ["--checksum"],
        "sources/archive_faults.py": ["--ignore-zeros", "--dereference", "--hard-dereference"],
        "version.py": ["--no-optional-locks", "--porcelain"],
    }
    unknown = {module: _unknown(ast.parse((ROOT / module).read_text())) for module in MODULES}
    assert {module: words for module, words in unknown.items() if words} == of_others
    assert _unknown(ast.parse('a = f"{b} --rew, --raw"')) == ["--rew"]


SETTINGS = (
    ("raw", Path("-r")),
    ("set", "seed=-5"),
    ("set", "shuffle=false"),
    ("on_damaged", "skip"),
)


def test_a_command_is_a_line_to_copy() -> None:
    """Settings become options; a shell reads each word as it is."""
    line = (
        "imagenet-prep convert 'my data' --raw ./-r --set seed=-5 --set shuffle=false "
        "--on-damaged skip"
    )
    assert command("convert", Path("my data"), SETTINGS) == line


def test_a_command_calls_the_program_as_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its path where its name alone would not find it."""
    monkeypatch.setattr(sys, "argv", ["/my bin/imagenet-prep", "convert", "a b"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert command("verify", Path("d")) == "'/my bin/imagenet-prep' verify d"
    assert rerun((("consume", True),)) == "'/my bin/imagenet-prep' convert 'a b' --consume"


def test_hints_of_several_obstacles_are_kept() -> None:
    """Each once, with the numbers of its obstacles unless all have it."""
    hints = ("name it with --raw", "remove {raw}", "name it with --raw", "")
    error = all_of([InputError("what", hint=hint) for hint in hints])
    assert error.what == "4 problems: (1) what"
    assert error.detail == "(2) what; (3) what; (4) what"
    assert error.hint == "(1), (3) name it with --raw; (2) remove {raw}"
    assert all_of([InputError("a"), InputError("b")]).hint == ""
    same = all_of([InputError("a", hint="mend it"), InputError("b", hint="mend it")])
    assert same.lines == ["2 problems: (1) a", "(2) b", "mend it"]
    one = all_of([InputError("a"), InputError("b", hint="mend it")])
    assert one.lines == ["2 problems: (1) a", "(2) b", "(2) mend it"]


# wrapping -----------------------------------------------------------------------------------------


WORDS = st.text("abcdefg:;-/'.", min_size=1, max_size=30)


@given(words=st.lists(WORDS, min_size=1), indent=st.integers(0, 4), width=st.integers(1, 100))
def test_words_are_kept(words: list[str], indent: int, width: int) -> None:
    """No word is broken or lost; only a single word is ever longer than a line;
    what follows is indented by two.
    """
    first, *others = fitted(" " * indent + " ".join(words), width)
    assert [word for line in (first, *others) for word in line.split()] == words
    assert all(len(line) <= width or len(line.split()) == 1 for line in (first, *others))
    assert first.startswith(" " * indent)
    assert all(line.startswith(" " * (indent + 2)) for line in others)


@pytest.mark.parametrize("width", [0, 200])
def test_what_fits_stays_as_it_is(width: int) -> None:
    """Spaces and all; a terminal that does not say how wide it is breaks lines itself."""
    text = "  a  b    c: imagenet-prep verify d    (why)"
    assert fitted(text, width) == [text]


def test_a_command_has_a_line_of_its_own() -> None:
    """However long it is, it can be copied; what follows goes on below it."""
    command = command_line(
        ["imagenet-prep", "convert", "/data/my set", "--raw", "x" * 40, "--allow-incomplete"]
    )
    note = "note: this conversion is not finished, and there is more to say; to go on: "
    told = fitted(Hint(note, command), 60)
    assert told == [
        "note: this conversion is not finished, and there is more to",
        "  say; to go on:",
        f"  {command}",
    ]
    consume = command_line([f"/opt/bin/{command.words[0]}", *command.words[1:], "--consume"])
    told = fitted(Hint("free some space, then: ", command, "; or take less: ", consume), 60)
    assert told == [
        "free some space, then:",
        f"  {command}",
        "  or take less:",
        f"  /opt/bin/{command} --consume",
    ]
    assert fitted(Hint(command, "    (finds all)"), 60) == [command, "  (finds all)"]
    told = fitted(
        Hint("next: ", command_line(["/my venv/bin/imagenet-prep", "verify", "x" * 60])), 60
    )
    assert told == ["next:", f"  '/my venv/bin/imagenet-prep' verify {'x' * 60}"]
    prose = Hint("to do: run the same ", mention("convert"), " again: it makes what is missing")
    assert fitted(prose, 60) == [
        "to do: run the same imagenet-prep convert again: it makes",
        "  what is missing",
    ]


def fits(line: str, width: int) -> bool:
    """Whether it is no longer than that, but for a single word."""
    return len(line) <= width or len(line.split()) == 1


def on_terminal(*arguments: object, columns: int = 80, error_file: Path | None = None) -> list[str]:
    """The lines that a command writes to a terminal;
    with a file only its results, errors go there.
    """
    pid, terminal = pty.fork()
    if pid == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        if error_file is not None:
            os.dup2(os.open(error_file, os.O_WRONLY | os.O_CREAT), 2)
        os.execve(
            PROGRAM[0],
            [*PROGRAM, *map(str, arguments)],
            {**os.environ, "TERM": "xterm", "NO_COLOR": "1"},
        )
    shown, _ = rest_shown(pid, terminal)
    return shown.decode().splitlines()


def test_messages_fit_a_terminal(tmp_path: Path, made_tiny: MadeSet) -> None:
    """Notes, findings and errors; piped they are lines as ever,
    and JSON is on a terminal as it is piped.
    """
    data, raw = tmp_path / "d", made_tiny.archives["train"].parent
    words = (
        "convert",
        data,
        "--raw",
        raw,
        "--allow-incomplete",
        "--train-shards",
        8,
        "--validation-shards",
        2,
    )
    assert prep(*words, "--quiet").returncode == 0
    (data / "imagenet-prep" / "manifest.json").unlink()
    told = on_terminal("verify", data, columns=60, error_file=tmp_path / "progress")
    (command,) = (line for line in told if line.startswith("  imagenet-prep convert "))
    assert f"--raw {raw}" in command
    assert all(fits(line, 60) for line in told if line != command)
    one = prep("verify", data).stdout.splitlines()
    (note,) = (line for line in one if line.startswith("note: this conversion"))
    assert note.endswith(f"to resume: {command.strip()}")
    error = on_terminal("convert", data, "--raw", raw)
    assert any(line.startswith("  ") for line in error)
    assert all(fits(line, 80) for line in error)
    kept = tmp_path / "errors"
    on_terminal("convert", data, "--raw", raw, error_file=kept)
    assert kept.read_text() == prep("convert", data, "--raw", raw).stderr
    usage = on_terminal("convert", data, "--train-shards", "0")
    assert all(fits(line, 80) for line in usage)
    as_json = on_terminal("status", data, "--json", "-", columns=20)
    on_screen = json.loads("\n".join(as_json))
    piped = json.loads(prep("status", data, "--json", "-").stdout)
    assert on_screen | {"seconds": piped["seconds"]} == piped
