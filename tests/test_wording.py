"""Words: a count and its noun, and the commands and options that messages name."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from existing import existing

import imagenet_prep
from imagenet_prep.cli.commands import cli
from imagenet_prep.errors import InputError, all_of
from imagenet_prep.escaping import command, rerun
from imagenet_prep.text import number_of

ROOT = Path(imagenet_prep.__file__).parent
MODULES = sorted(str(path.relative_to(ROOT)) for path in existing(ROOT, "**/*.py"))

OPTIONS = {
    option
    for command in cli.commands.values()
    for parameter in command.params
    for option in parameter.opts
    if option.startswith("--")
} | {"--help", "--help-all", "--version"}
COMMANDS = {*cli.commands, "can", "listing"}  # the last two are words of a sentence, not commands
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


# commands and options ------------------------------------------------------------------------------------------


def _literals(tree: ast.Module) -> Iterator[str]:
    """Every string but those that stand alone: docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


def _unknown(tree: ast.Module) -> list[str]:
    found = (match for text in _literals(tree) for match in SPOKEN.finditer(text))
    return [match[0] for match in found if match[1] not in COMMANDS and match[2] not in OPTIONS]


def test_messages_name_commands_and_options_that_exist() -> None:
    """A command or an option that a string of the package names is one of the command line; a slip is seen."""
    unknown = {module: _unknown(ast.parse((ROOT / module).read_text())) for module in MODULES}
    assert {module: words for module, words in unknown.items() if words} == {}
    assert _unknown(ast.parse('a = f"{b} --rew, --raw"')) == ["--rew"]


SETTINGS = (("raw", Path("-r")), ("set", "seed=-5"), ("set", "shuffle=false"), ("skip_bad", True))


def test_a_command_is_a_line_to_copy() -> None:
    """Settings become options; a shell reads each word as it is."""
    line = "imagenet-prep convert 'my data' --raw ./-r --set seed=-5 --set shuffle=false --skip-bad"
    assert command("convert", Path("my data"), SETTINGS) == line


def test_a_command_calls_the_program_as_it_was_called(monkeypatch: pytest.MonkeyPatch) -> None:
    """By its path where its name alone would not find it."""
    monkeypatch.setattr(sys, "argv", ["/my bin/imagenet-prep", "convert", "a b"])
    monkeypatch.setenv("PATH", "/nowhere")
    assert command("verify", Path("d")) == "'/my bin/imagenet-prep' verify d"
    assert rerun((("consume", True),)) == "'/my bin/imagenet-prep' convert 'a b' --consume"


def test_hints_of_several_obstacles_are_kept() -> None:
    """Each once."""
    hints = ("name it with --raw", "remove {raw}", "name it with --raw", "")
    error = all_of([InputError("what", hint=hint) for hint in hints])
    assert error.hint == "name it with --raw; remove {raw}"
    assert all_of([InputError("a"), InputError("b")]).hint == ""
