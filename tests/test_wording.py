"""Who words what: a count and its noun, and the names of stages and settings in what is said to a person."""

from __future__ import annotations

import ast
import pickle
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from existing import existing

import imagenet_prep
from imagenet_prep.cli.commands import cli
from imagenet_prep.cli.remedies import STAGES, worded
from imagenet_prep.errors import Call, InputError, Phrase, Text, all_of
from imagenet_prep.text import number_of

ROOT = Path(imagenet_prep.__file__).parent
MODULES = sorted(str(path.relative_to(ROOT)) for path in existing(ROOT, "**/*.py"))

OPTIONS = {
    option
    for command in cli.commands.values()
    for parameter in command.params
    for option in parameter.opts
    if option.startswith("--")
}
SPOKEN = re.compile(rf"imagenet-prep ({'|'.join(cli.commands)})\b|({'|'.join(OPTIONS)})(?![\w-])")
"""A command of ours, or one of its options."""

EXCEPTED = ("cli/", "demo/")
"""What words command lines: cli and what runs it."""


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


# stages and settings -------------------------------------------------------------------------------------------


def _literals(tree: ast.Module) -> Iterator[str]:
    """Every string but those that stand alone: docstrings."""
    docstrings = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in docstrings:
            yield node.value


@pytest.mark.parametrize("module", [module for module in MODULES if not module.startswith(EXCEPTED)])
def test_only_the_command_line_words_commands(module: str) -> None:
    """No string of the library holds a command of ours or an option: it names stages and settings, in a Phrase."""
    tree = ast.parse((ROOT / module).read_text())
    assert [text for text in _literals(tree) if SPOKEN.search(text)] == []


def test_the_check_sees_commands_and_options() -> None:
    """Within an f-string too, but not in a docstring, nor where only a version or another dash follows."""
    tree = ast.parse('"""--raw"""\na = f"{b} --raw"\nc = "imagenet-prep convert"\nd = "imagenet-prep 1.0, --rawer"\n')
    assert [text for text in _literals(tree) if SPOKEN.search(text)] == ["imagenet-prep convert", " --raw"]


def _phrases() -> Iterator[tuple[str, int]]:
    """The words of every Phrase in the package, and how many values it is given; of a list of values at least one."""
    for module in MODULES:
        for node in ast.walk(ast.parse((ROOT / module).read_text())):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "Phrase":
                words, *values = node.args
                if isinstance(words, ast.Constant):
                    yield words.value, len(values)


def test_every_name_is_one_of_the_command_line() -> None:
    """What a Phrase names is a command or an option; it has a value for each gap."""
    assert set(cli.commands) >= STAGES
    found = list(_phrases())
    assert len(found) > 40
    for words, count in found:
        names = set(re.findall(r"\{([a-z_]+)\}", words))
        assert {f"--{name.replace('_', '-')}" for name in names - STAGES} <= OPTIONS, words
        assert words.count("{}") == count, words


CALL = Call("convert", Path("my data"), (("raw", Path("-r")), ("seed", -5), ("shuffle", False), ("skip_bad", True)))


@pytest.mark.parametrize(
    ("text", "command_line", "plain"),
    [
        ("as it is {raw}", "as it is {raw}", "as it is {raw}"),
        (Phrase("name it with {raw}"), "name it with --raw", "name it with `raw`"),
        (Phrase("the same {convert}, {skip_bad}"), "the same imagenet-prep convert, --skip-bad", None),
        (Phrase("{}: {config} {}", "{raw}", Path("a b")), "{raw}: --config 'a b'", "{raw}: `config` a b"),
        (Phrase("{}; {}", Phrase("{raw}"), "x"), "--raw; x", "`raw`; x"),
        (
            Phrase("again: {}", CALL),
            "again: imagenet-prep convert 'my data' --raw ./-r --seed -5 --no-shuffle --skip-bad",
            "again: run `convert` on my data with raw=-r, seed=-5, shuffle=False, skip_bad=True",
        ),
    ],
)
def test_a_text_has_the_names_of_who_shows_it(text: Text, command_line: str, plain: str | None) -> None:
    """Options and commands on the command line, names of Python elsewhere; what comes from data stays as it is."""
    again = pickle.loads(pickle.dumps(text))
    assert again == text
    assert worded(again) == command_line
    assert str(again) == (plain or "the same `convert`, `skip_bad`")


def test_a_command_calls_the_program_as_it_was_called() -> None:
    """Within other words too."""
    path = "/my bin/imagenet-prep"
    assert worded(Phrase("again: {}", Call("verify", Path("d"))), path) == f"again: '{path}' verify d"


def test_hints_of_several_obstacles_are_kept() -> None:
    """Each once, as the command line says them; what comes from data is not taken for a name."""
    hints = (Phrase("name it with {raw}"), "remove {raw}", Phrase("name it with {raw}"), "")
    error = all_of([InputError("what", hint=hint) for hint in hints])
    assert worded(error.hint) == "name it with --raw; remove {raw}"
    assert all_of([InputError("a"), InputError("b")]).hint == ""
