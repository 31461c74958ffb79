"""Hints: commands are data from where an error is raised to the terminal, the page and JSON."""

from __future__ import annotations

import ast
import copy
import functools
import html
import pickle
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from existing import existing

import imagenet_prep
from imagenet_prep.checks.verdict import Verdict, load_verdict, save_verdict
from imagenet_prep.cli.commands import load_commands
from imagenet_prep.cli.terminal import fitted
from imagenet_prep.errors import InputError, all_of
from imagenet_prep.escaping import CommandLine, Shell, command, command_line, in_sequence, mention
from imagenet_prep.hints import (
    Hint,
    as_text,
    changed,
    join_hints,
    lines_of,
    load_parts,
    parts_of,
    save_parts,
)
from imagenet_prep.model import Problem, ProblemKind
from imagenet_prep.reporting.page import _load_template
from imagenet_prep.storage.layout import Layout

ROOT = Path(imagenet_prep.__file__).parent

REPAIR = command("repair", "/data/my set", (("raw", Path("/raw/it's here")),))
MOVE = command_line(["mv", "--", "/data/a b", "/data/a b.old"])
JOIN = command_line(["cat", "--", "/data/a b.0", "/data/a b.1"]).into("/data/a b")
PATTERN = command_line(["mv", "--", Shell("'/data/my set'/n*.tar"), "/data/new set"])
INSTALL = command_line(["pip", "install", "imagenet-prep[ray]"])
WHY = "a reason that alone is as long as a line of a narrow terminal: "

HINTS = {
    "a command alone": Hint(REPAIR),
    "a command without a sentence": INSTALL,
    "at the end": Hint(WHY, REPAIR),
    "at the start": Hint(MOVE, " gets it out of the way of the other files"),
    "with a note": Hint(WHY, REPAIR, "    (then run the same command again)"),
    "two": Hint(WHY, REPAIR, "; or take less: ", INSTALL),
    "one after another": Hint(WHY, MOVE.then(REPAIR)),
    "a choice": Hint("  ", WHY, REPAIR),
    "into a file": Hint(WHY, JOIN),
    "a pattern": Hint(WHY, PATTERN),
    "a hidden character": Hint(WHY, command_line(["rm", "--", "a\nb\u202e"])),
}


def commands_in(hint: str) -> list[CommandLine]:
    """The commands of a hint that can be copied."""
    return [part for part in lines_of(hint) if isinstance(part, CommandLine)]


@pytest.mark.parametrize("name", HINTS)
def test_the_terminal_prints_each_command_on_a_line_of_its_own(name: str) -> None:
    """However narrow it is; wide enough, or piped, the hint is one line."""
    hint = HINTS[name]
    lines = [line.strip() for line in fitted(hint, 30)]
    assert commands_in(hint)
    assert [line for line in lines if line in commands_in(hint)] == commands_in(hint)
    assert fitted(hint, 0) == fitted(hint, 1000) == [hint]
    assert all(line.isprintable() for line in lines)


def test_a_line_break_stands_for_the_punctuation_after_a_command() -> None:
    """So that nothing next to a command is copied with it."""
    assert fitted(Hint("run ", MOVE, ", then the same command again"), 30) == [
        "run",
        f"  {MOVE}",
        "  then the same command again",
    ]
    assert fitted(Hint(MOVE, "; or leave it"), 30) == [MOVE, "  or leave it"]


@pytest.mark.parametrize("name", HINTS)
def test_the_page_shows_each_command_with_a_button(name: str) -> None:
    """The text around it stays as it is."""
    hint = HINTS[name]
    macro = _load_template().environment.get_template("parts.html").module.hint  # type: ignore[attr-defined]
    page = str(macro(hint))
    shown = re.findall(r'<code>(.*?)</code><button type="button" class="copy">', page, re.DOTALL)
    assert [html.unescape(text) for text in shown] == commands_in(hint)
    text = html.unescape(re.sub("<button.*?</button>|<[^>]*>", "", page))
    assert text.strip() == hint.strip()


@pytest.mark.parametrize("name", ["a command alone", "two", "at the start"])
def test_a_shell_reads_the_words_of_a_command(name: str) -> None:
    """Paths with spaces and quotes too."""
    for part in commands_in(HINTS[name]):
        assert tuple(shlex.split(part)) == part.words


@pytest.mark.parametrize("name", HINTS)
def test_a_hint_keeps_its_commands(name: str) -> None:
    """In another process, in a copy, and in a file; JSON has the text."""
    hint = HINTS[name]
    for hint_again in (pickle.loads(pickle.dumps(hint)), copy.deepcopy(hint)):
        assert hint_again == hint
        assert parts_of(hint_again) == parts_of(hint)
        assert commands_in(hint_again)[0].words == commands_in(hint)[0].words
    loaded = load_parts(msgspec.json.decode(msgspec.json.encode(save_parts(hint))))
    assert loaded == hint
    assert [part.words for part in commands_in(loaded)] == [
        part.words for part in commands_in(hint)
    ]
    assert msgspec.to_builtins({"hint": hint}, enc_hook=as_text) == {"hint": str(hint)}


def test_an_error_keeps_the_commands_of_its_hints() -> None:
    """In another process, and together with other errors."""
    errors = [InputError("a", "b", HINTS["at the end"]), InputError("c", "d", HINTS["a pattern"])]
    for error in (all_of(errors), pickle.loads(pickle.dumps(all_of(errors)))):
        assert commands_in(error.hint) == [REPAIR, PATTERN]
    with_choices = errors[0].with_choices([HINTS["a choice"]])
    assert commands_in(pickle.loads(pickle.dumps(with_choices)).lines[-1]) == [REPAIR]


def test_a_verdict_that_was_kept_has_its_commands(tmp_path: Path) -> None:
    """The report shows the last verdict, which is kept as JSON."""
    problem = Problem(ProblemKind.MISSING_SHARD, "train-0", "gone", HINTS["at the end"])
    note = HINTS["two"]
    verdict = Verdict("full", (problem,), (), "incomplete", "", True, notes=(note, "plain"))
    layout = Layout(tmp_path)
    save_verdict(verdict, layout)
    kept = load_verdict(layout)
    assert kept is not None
    assert kept.verdict == verdict
    assert commands_in(kept.verdict.problems[0].remedy) == [REPAIR]
    assert commands_in(kept.verdict.notes[0]) == [REPAIR, INSTALL]
    assert verdict.as_dict()["problems"][0]["remedy"] == str(problem.remedy)


def test_a_name_within_a_sentence_is_no_line_to_copy() -> None:
    """It is wrapped as the words around it are."""
    hint = Hint("run the same ", mention("convert", "--overwrite"), " again")
    assert hint == "run the same imagenet-prep convert --overwrite again"
    assert [*lines_of(hint)] == [hint]
    assert fitted(hint, 30) == ["run the same imagenet-prep", "  convert --overwrite again"]


def test_parts_of_commands_are_changed_before_they_are_quoted() -> None:
    """A folder that nobody may read of is taken out of words and sentences."""
    hint = Hint("look into /data/my set: ", command("show", "/data/my set/train-0"))
    shown = changed(hint, lambda text: text.replace("/data/my set", "set"))
    assert shown == "look into set: imagenet-prep show set/train-0"
    assert commands_in(shown)[0].words == ("imagenet-prep", "show", "set/train-0")


def test_commands_are_joined() -> None:
    """One after another, or as alternatives."""
    assert in_sequence([MOVE, REPAIR, MOVE]) == f"{MOVE} && {REPAIR} && {MOVE}"
    assert commands_in(join_hints("; or ", [MOVE, REPAIR])) == [MOVE, REPAIR]
    assert REPAIR.without("--raw").words == (*REPAIR.words[:-2], REPAIR.words[-1])


# the source ---------------------------------------------------------------------------------------

PROSE = re.compile(
    rf"imagenet-prep (?:{'|'.join(load_commands())})\b|pip install \S|\b(?:mv|rm|mkdir|unzip|tar|gzip) -"
)
"""A command within a text, where it can't be told from the sentence around it."""

MAKERS = re.compile(r"(?:\w*_)?command(?:_line|_as)?|rerun|mention|in_sequence|join_hints|Hint")
"""The functions that give commands, or hints with commands."""

HOLDERS = {"hint", "remedy", "following", "mend"}
"""The attributes that hold hints."""


def _texts(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Every string of a module but its docstrings, each with its line; an f-string without its
    values.
    """
    nodes = list(ast.walk(tree))
    no_texts = {id(node.value) for node in nodes if isinstance(node, ast.Expr)}
    for node in nodes:
        if isinstance(node, ast.JoinedStr):
            no_texts.update(id(value) for value in node.values)
            literals = [value for value in node.values if isinstance(value, ast.Constant)]
            yield node.lineno, "".join(str(literal.value) for literal in literals)
    for node in nodes:
        is_text = isinstance(node, ast.Constant) and isinstance(node.value, str)
        if is_text and id(node) not in no_texts:
            yield node.lineno, node.value


@functools.lru_cache(maxsize=1)
def _tree(source: str) -> ast.Module:
    """A module, which both questions below are about."""
    return ast.parse(source)


def prose_with_commands(source: str) -> list[str]:
    """The texts of a module that name a command; a line of what was expected may tell of one."""
    found = []
    for line, text in _texts(_tree(source)):
        if PROSE.search(text) and not text.startswith("expected "):
            found.append(f"{line}: {text}")
    return found


def commands_lost_in_text(source: str) -> list[str]:
    """The f-strings and joins of a module that make plain text of a command or a hint."""
    tree = _tree(source)
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    lost: dict[str, None] = {}
    for scope in (tree, *functions):
        nodes = list(ast.walk(scope))
        commands = _names_of_commands(nodes) if scope is not tree else set()
        for node in nodes:
            if isinstance(node, ast.FormattedValue):
                value = node.value
                is_command = isinstance(value, ast.Name) and value.id in commands
                is_hint = isinstance(value, ast.Attribute) and value.attr in HOLDERS
                if is_command or is_hint or _makes_command(value):
                    lost[f"{node.lineno}: {ast.unparse(value)}"] = None
    return [*lost]


def _names_of_commands(nodes: list[ast.AST]) -> set[str]:
    """The variables of a function, given by its nodes, that hold commands or hints."""
    names = set()
    for node in nodes:
        if isinstance(node, ast.Assign) and _makes_command(node.value):
            names.update(target.id for target in node.targets if isinstance(target, ast.Name))
    return names


def _makes_command(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call):
        return False
    name = node.func.attr if isinstance(node.func, ast.Attribute) else ""
    if isinstance(node.func, ast.Name):
        name = node.func.id
    return MAKERS.fullmatch(name) is not None


NO_HINTS = {
    "torch/__init__.py": "ImportError, which Python prints",
    "tensorflow/__init__.py": "ImportError, which Python prints",
    "ilsvrc2012/repacked.py": "the loop of a shell",
    "ilsvrc2012/misplaced_folders.py": "the loops of a shell",
    "text.py": "the words of the command itself",
    "model.py": "the text of a problem for logs",
}


def test_no_text_of_the_package_hides_a_command() -> None:
    """Each is data, so that no renderer looks for it in a sentence; the test sees a slip."""
    slips = {}
    for path in existing(ROOT, "**/*.py"):
        module = str(path.relative_to(ROOT))
        source = path.read_text()
        found = [*prose_with_commands(source), *commands_lost_in_text(source)]
        if found and module not in NO_HINTS:
            slips[module] = found
    assert slips == {}
    assert prose_with_commands('InputError("a", "b", f"{c}, then imagenet-prep verify {d}")')
    assert prose_with_commands('InputError("a", "b", "pip install torch")')
    assert commands_lost_in_text('InputError("a", "b", f"then: {command(1)}")')
    assert commands_lost_in_text('def f():\n again = rerun()\n return f"then: {again}"')
    assert commands_lost_in_text('x = f"{error.hint}; again"')
