"""What reaches a terminal: names that would steer it, readers that go away,
streams that are closed from the start.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import shlex
import subprocess
import sys
import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from existing import existing
from hypothesis import given
from hypothesis import strategies as st
from made_sets import make_flowers, write
from running import PROGRAM

import imagenet_prep
from imagenet_prep.escaping import command_line, escaped
from imagenet_prep.tfrecord.example import BytesList, encode_example

FORGED = "x\nerror: forged\x1b[2J\x9b31m\u202etxt"
"""A name with a line of its own, two escape sequences and a mark that turns what follows."""
SHOWN = r"x\nerror: forged\x1b[2J\x9b31m\u202etxt"

HIDDEN = ("Cc", "Cf", "Cs", "Zl", "Zp")


def prep(*arguments: str | Path | bytes, **environment: str) -> subprocess.CompletedProcess[bytes]:
    """Run the command line to its end; what it prints stays bytes."""
    call = [*PROGRAM, *arguments]
    return subprocess.run(call, capture_output=True, timeout=600, env={**os.environ, **environment})


def assert_calm(*printed: bytes) -> None:
    """Nothing printed steers a terminal, and no line was forged."""
    for each in printed:
        text = each.decode("utf-8", "surrogateescape")
        assert not [char for char in text if unicodedata.category(char) in HIDDEN and char != "\n"]
        assert not [line for line in text.splitlines() if line.startswith("error: forged")]


# one line of text ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("Grüße 図\u3000一", "Grüße 図\u3000一"),
        (FORGED, SHOWN),
        ("\u2028\u2029\u200b\ufeff\xad", r"\u2028\u2029\u200b\ufeff\xad"),
        ("\ud800\U000e0041", r"\ud800\U000e0041"),
        ("by\udcff", r"by\xff"),
        ("\udcc2\udc9b31m", r"\xc2\x9b31m"),
    ],
)
def test_what_steers_a_terminal_is_written_out(text: str, shown: str) -> None:
    """Control characters, marks of direction, separators, bytes that are no text;
    other text stays as it is.
    """
    assert escaped(text) == shown


@given(
    st.text(
        st.characters(exclude_categories=())
        | st.sampled_from("\udcc2\udc9b\udce2\udc80\udcae\x1b\n")
    )
)
def test_no_text_steers_a_terminal(text: str) -> None:
    """Whatever the text, its bytes read again hold nothing hidden,
    and escaping once more changes nothing.
    """
    shown = escaped(text)
    assert_calm(shown.encode("utf-8", "surrogateescape"))
    assert "\n" not in shown
    assert escaped(shown) == shown


def test_quoted_words_reach_a_program_byte_for_byte() -> None:
    """A shell makes of each quoted word the very bytes it was,
    and none of them steers a terminal.
    """
    words = [
        FORGED,
        "",
        "a b",
        "it's",
        "\\",
        "-dash",
        "$HOME`id`",
        "\u202e'\\",
        "\n",
        "\x01" + "7",
        "é\n",
        "~",
        "!x\n",
    ]
    words += [os.fsdecode(bytes([byte])) for byte in range(1, 256)]
    words += [os.fsdecode(bytes([byte, 10])) for byte in range(1, 256)]
    line = command_line(words)
    assert escaped(line) == line
    printed = subprocess.run(
        ["bash", "-c", f"printf '%s\\0' {line}"], capture_output=True, check=True
    ).stdout
    assert printed == b"".join(os.fsencode(word) + b"\0" for word in words)


def test_one_function_does_the_printing() -> None:
    """In the whole of cli nothing but terminal.py writes to a stream;
    a bar's own text is escaped where it is given.
    """
    writing = re.compile(r"\b(print|click\.s?echo|std(out|err)\.write|print_exc)\(")
    for path in existing(Path(imagenet_prep.__file__).parent, "**/cli/*.py"):
        if path.name != "terminal.py":
            assert not writing.findall(path.read_text()), path


# names from data, from end to end -----------------------------------------------------------------


@pytest.mark.parametrize("more", [(), ("--json", "-")])
def test_show_prints_names_of_a_record_escaped(tmp_path: Path, more: tuple[str, ...]) -> None:
    """So it is with the name of a feature and that of the file; JSON stays JSON."""
    shard = tmp_path / "f"
    write(shard, [encode_example({f"{FORGED}\x7f": BytesList((b"value",))})])
    result = prep("show", shard, *more)
    assert result.returncode == 0, result.stderr
    assert_calm(result.stdout, result.stderr)
    if more:
        assert list(json.loads(result.stdout)["features"]) == [f"{FORGED}\x7f"]
    damaged = tmp_path / FORGED
    damaged.write_bytes(shard.read_bytes()[:-1])
    result = prep("show", damaged)
    assert result.returncode == 4
    assert_calm(result.stdout, result.stderr)
    assert len(result.stderr.splitlines()) <= 3


def test_commands_proposed_for_odd_names_can_be_copied(tmp_path: Path) -> None:
    """init, convert, status, verify, repair: each by the command that the one before printed,
    as a shell reads it.
    """
    make_flowers(tmp_path / f"my {FORGED}", 12, ("a", "b"))
    init = prep("init", tmp_path / f"my {FORGED}", "--output", tmp_path / f"{FORGED}.yaml")
    convert = copied(init, "next: ", tmp_path)
    shards = tmp_path / f"{FORGED}-shards"
    assert list(shards.glob("train-*"))
    verify = copied(prep("status", shards), "next: ", tmp_path)
    assert (convert.returncode, verify.returncode) == (0, 0)
    next(shards.glob("train-*")).unlink()
    damaged = prep("verify", shards)
    assert damaged.returncode == 3
    assert copied(damaged, "to do: make it again: ", tmp_path).returncode == 0
    assert b"next: imagenet-prep report $'" in prep("status", shards).stdout


def copied(
    result: subprocess.CompletedProcess[bytes], mark: str, cwd: Path
) -> subprocess.CompletedProcess[bytes]:
    """The outcome of the command that follows a mark, given to a shell as it was printed."""
    assert_calm(result.stdout, result.stderr)
    (line,) = (line for line in result.stdout.decode().split("\n") if line.startswith(mark))
    name, words = line.removeprefix(mark).split(" ", 1)
    assert name == "imagenet-prep"
    command = f"{shlex.join(PROGRAM)} {words}"
    outcome = subprocess.run(["bash", "-c", command], cwd=cwd, capture_output=True, timeout=600)
    assert_calm(outcome.stdout, outcome.stderr)
    return outcome


@pytest.mark.parametrize("arguments", [("verify", FORGED), ("convert", "d", f"--{FORGED}")])
def test_an_error_quotes_no_control_characters(arguments: tuple[str, ...], tmp_path: Path) -> None:
    """A path or an option that is wrong is quoted escaped, in errors of ours and of click's."""
    result = prep(*arguments)
    assert result.returncode == 2
    assert_calm(result.stdout, result.stderr)
    assert SHOWN.encode() in result.stderr or SHOWN.replace("\\", "\\\\").encode() in result.stderr


def test_a_traceback_quotes_no_control_characters(tmp_path: Path) -> None:
    """Even what a bug of ours says of a name is escaped, and the traceback keeps its lines."""
    broken = (
        "import imagenet_prep.cli as c\ndef main(**k):\n    raise RuntimeError("
        + ascii(FORGED)
        + ")\n"
    )
    result = subprocess.run(
        [sys.executable, "-c", f"{broken}c.cli.main = main\nc.main()"],
        capture_output=True,
        timeout=600,
    )
    assert result.returncode == 1
    assert_calm(result.stderr)
    lines = result.stderr.decode().splitlines()
    assert lines[0] == "Traceback (most recent call last):"
    assert lines[-1].startswith("This is a bug")


def test_output_of_another_encoding_holds_what_it_can() -> None:
    """A character that the stream's encoding lacks is written out; nothing ends in a traceback."""
    for encoding, shown in (
        ("latin-1", b"gr\xfc\xdfe \\u56f3"),
        ("ascii", b"gr\\xfc\\xdfe \\u56f3"),
    ):
        result = prep("verify", "grüße 図", PYTHONIOENCODING=encoding, PYTHONUTF8="1")
        assert result.returncode == 2
        assert result.stderr.startswith(b"error: " + shown + b" does not exist")


# a reader that has gone, and a stream that is closed ----------------------------------------------


@contextlib.contextmanager
def nobody_reads() -> Iterator[int]:
    """The writing end of a pipe whose reading end is closed."""
    reading, writing = os.pipe()
    os.close(reading)
    try:
        yield writing
    finally:
        os.close(writing)


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with images, the recipe that init made of it, and its shards."""
    folder = tmp_path_factory.mktemp("made")
    make_flowers(folder / "images", 12, ("a", "b"))
    recipe = folder / "recipe.yaml"
    assert prep("init", folder / "images", "--output", recipe, "-q").returncode == 0
    assert prep("convert", folder / "shards", "--config", recipe, "-q").returncode == 0
    return folder


TELLING = {
    "show": "show {shard}",
    "status json": "status {made}/shards --json -",
    "convert": "convert {made}/shards --config {made}/recipe.yaml",
    "help": "--help",
}
"""Commands that print something to standard output."""


def told(name: str, made: Path) -> list[str]:
    """A command's words."""
    shard = sorted((made / "shards").glob("train-*"))[0]
    return [*PROGRAM, *TELLING[name].format(made=made, shard=shard).split()]


def in_bash(words: Sequence[str], streams: str) -> subprocess.CompletedProcess[str]:
    """A command whose streams are as a shell sets them."""
    script = f"{shlex.join(words)} {streams}"
    return subprocess.run(["bash", "-c", script], capture_output=True, timeout=600, text=True)


@pytest.mark.parametrize("name", TELLING)
def test_a_reader_that_has_gone_is_exit_141(name: str, made: Path) -> None:
    """Whatever the command: the promised status, and no word about it."""
    with nobody_reads() as pipe:
        result = subprocess.run(
            told(name, made), stdout=pipe, stderr=subprocess.PIPE, timeout=600, text=True
        )
    assert result.returncode == 141
    assert "Traceback" not in result.stderr
    assert "rror" not in result.stderr
    assert "bug" not in result.stderr


@pytest.mark.parametrize(
    "words", ["verify nowhere", "convert {made}/new --config {made}/recipe.yaml"]
)
def test_a_reader_of_errors_that_has_gone_is_exit_141(words: str, made: Path) -> None:
    """2>&1 | head: an error, wrong usage or progress that nobody reads."""
    with nobody_reads() as pipe:
        call = [*PROGRAM, *words.format(made=made).split()]
        assert subprocess.run(call, stdout=pipe, stderr=pipe, timeout=600).returncode == 141


@pytest.mark.parametrize("name", TELLING)
def test_standard_output_closed_from_the_start_is_an_error(name: str, made: Path) -> None:
    """What was to be printed can't be: three lines say so, and the exit status is 1."""
    result = in_bash(told(name, made), ">&-")
    assert result.returncode == 1
    assert [line for line in result.stderr.splitlines() if "standard output is closed" in line]
    assert len(result.stderr.partition("error: ")[2].splitlines()) == 3


def test_closed_streams_cost_nothing_where_nothing_is_printed(made: Path, tmp_path: Path) -> None:
    """convert --quiet with all three closed is exit 0,
    its shards byte for byte those of other runs.
    """
    call = [
        *PROGRAM,
        "convert",
        str(tmp_path / "shards"),
        "--config",
        str(made / "recipe.yaml"),
        "--quiet",
    ]
    assert in_bash(call, "<&- >&- 2>&-").returncode == 0
    for shard in existing(made, "shards/*-of-*"):
        assert (tmp_path / "shards" / shard.name).read_bytes() == shard.read_bytes()


def test_standard_error_closed_from_the_start_hinders_nothing(made: Path) -> None:
    """Progress and errors have nowhere to go; results and the exit status are as ever."""
    for words, status in ((told("convert", made), 0), ([*PROGRAM, "verify", "nowhere"], 2)):
        result = in_bash(words, "<&- 2>&-")
        assert result.returncode == status
        assert bool(result.stdout) is (status == 0)


def test_no_file_gets_the_number_of_a_closed_stream() -> None:
    """What a library prints to descriptor 1 or 2 never lands in a shard."""
    script = (
        "import os, imagenet_prep.cli as c\n"
        "c.cli.main = lambda **k: os._exit(os.open(os.devnull, os.O_RDONLY))\n"
        "c.main()"
    )
    assert in_bash([sys.executable, "-c", script], "<&- >&- 2>&-").returncode > 2


def test_a_log_on_a_full_disk_stops_no_work(made: Path, tmp_path: Path) -> None:
    """Progress that can't be written is passed over:
    the shards are made, and the summary is printed.
    """
    call = [*PROGRAM, "convert", tmp_path / "shards", "--config", made / "recipe.yaml"]
    with open("/dev/full", "wb") as full:
        result = subprocess.run(call, stdout=subprocess.PIPE, stderr=full, timeout=600)
    assert result.returncode == 0
    assert result.stdout.startswith(b"convert: train")


def test_ctrl_c_in_a_pipeline_stays_130(tmp_path: Path) -> None:
    """The reader is stopped by the same Ctrl-C:
    that nobody reads the last words is no other status.
    """
    script = (
        "import imagenet_prep.cli as c\ndef main(**k):\n    raise KeyboardInterrupt\nc.cli.main "
        "= main\nc.main()"
    )
    with nobody_reads() as pipe:
        assert (
            subprocess.run(
                [sys.executable, "-c", script], stdout=pipe, stderr=pipe, timeout=600
            ).returncode
            == 130
        )
