"""The documents agree with the code: links, commands, options, targets, messages, exit statuses, snippets."""

from __future__ import annotations

import ast
import functools
import inspect
import itertools
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click
import pytest
import tf_fixture
from existing import existing

import imagenet_prep
from imagenet_prep import cli as command_line
from imagenet_prep import errors
from imagenet_prep.cli.commands import cli
from imagenet_prep.engines import make_engine
from imagenet_prep.errors import PrepError, Terminated
from imagenet_prep.ilsvrc2012.settings import ConvertOptions
from imagenet_prep.model import ProblemKind
from imagenet_prep.stages.convert import convert
from imagenet_prep.state import manifest
from imagenet_prep.storage.layout import Layout

pytestmark = pytest.mark.project

tf = tf_fixture.tf

ROOT = Path(__file__).parents[1]
PACKAGE = Path(imagenet_prep.__file__).parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "data" / "README.md"])
every_document = pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))

README = (ROOT / "README.md").read_text()
PYTHON = (ROOT / "docs" / "python.md").read_text()
TROUBLES = (ROOT / "docs" / "troubleshooting.md").read_text()
CLI = (ROOT / "docs" / "cli.md").read_text()
PART = ConvertOptions(train_shards=8, validation_shards=128, allow_incomplete=True)


def options_of(command: str) -> set[str]:
    """The long options of a command, --help set aside."""
    return {name for each in cli.commands[command].params for name in each.opts if name.startswith("--")}


EVERY_OPTION = {option for command in cli.commands for option in options_of(command)} | {"--help", "--version"}


# Markdown ------------------------------------------------------------------------------------------------------


def blocks(text: str, language: str = "") -> list[str]:
    """The fenced code blocks of a text, of one language or of none."""
    return [body for found, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S) if found == language]


def prose(text: str) -> str:
    """A text without its code blocks."""
    return re.sub(r"^```.*?^```$", "", text, flags=re.M | re.S)


def code(text: str) -> Iterator[str]:
    """Every line of code in a text: of its blocks, and between backticks."""
    for _, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S):
        yield from body.replace("\\\n", " ").splitlines()
    yield from re.findall(r"`([^`\n]+)`", prose(text))


def section(text: str, heading: str) -> str:
    """What stands below a heading, down to the next one of its level or above."""
    found = re.search(rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{heading.count('#')}}} |\Z)", text, re.M | re.S)
    assert found, f"no heading {heading}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The rows of every table in a text, cell by cell, without headings."""
    tables = re.findall(r"^\|.*\n\|[-|]+\|\n((?:\|.*\n)*)", text, re.M)
    lines = "".join(tables).splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def anchor(heading: str) -> str:
    """The anchor that GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


def anchors(document: Path) -> set[str]:
    """The anchors of a document's headings; none if it is no document."""
    text = prose(document.read_text()) if document.suffix == ".md" and document.is_file() else ""
    return set(map(anchor, re.findall(r"^#+ (.*)$", text, re.M)))


def dead_links(document: Path) -> list[str]:
    """The relative links of a document that lead nowhere."""
    dead = []
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(document.read_text())):
        name, _, fragment = link.partition("#")
        target = document.parent / name if name else document
        is_elsewhere = re.match(r"[a-z]+:", link)
        if not is_elsewhere and (not target.exists() or (fragment and fragment not in anchors(target))):
            dead.append(link)
    return dead


# links, commands, options, targets -----------------------------------------------------------------------------


@every_document
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link is to a file that exists, and to a heading in it where it names one."""
    assert not dead_links(document)


def test_dead_links_are_found(tmp_path: Path) -> None:
    """A missing file and a missing heading are both found."""
    page = tmp_path / "page.md"
    page.write_text(
        "# Here it is\n[a](page.md#here-it-is) [b](page.md#gone) [c](gone.md) [d](https://x.org/y) [e](#z)\n"
    )
    assert dead_links(page) == ["page.md#gone", "gone.md", "#z"]


def misspelt(line: str) -> list[str]:
    """What a line of code says of our command that is not so: commands and options that don't exist."""
    wrong = []
    for command, rest in re.findall(r"imagenet-prep ([a-z][a-z-]*)(.*?)(?=imagenet-prep |$)", line):
        if command not in cli.commands:
            wrong.append(command)
        else:
            wrong += set(re.findall(r"--[a-z][a-z-]*", rest)) - options_of(command) - {"--help"}
    return wrong


@every_document
def test_commands_and_options_exist(document: Path) -> None:
    """Every `imagenet-prep COMMAND --option` is one, and so is every option that is named alone."""
    for line in code(document.read_text()):
        assert not misspelt(line), line
        if line.startswith("--"):
            assert line.split()[0].rstrip(",") in EVERY_OPTION, line


def test_misspelt_commands_are_found() -> None:
    """A command and an option that don't exist are found; what is right passes."""
    assert not misspelt("imagenet-prep convert /data/out --raw /data/kaggle")
    assert misspelt("imagenet-prep convertt D") == ["convertt"]
    assert misspelt("imagenet-prep status D --quick") == ["--quick"]


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_the_synopsis_of_a_command_has_its_options(command: str) -> None:
    """The first block of a command's section in cli.md names each of its options, and no other."""
    synopsis = blocks(section(CLI, f"## {command}"))[0]
    assert synopsis.startswith(f"imagenet-prep {command} ")
    assert set(re.findall(r"--[a-z][a-z-]*", synopsis)) == options_of(command)


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_every_option_is_explained(command: str) -> None:
    """Each option of each command begins a row of a table in cli.md."""
    explained = {word for row in rows(CLI) for word in re.findall(r"--[a-z][a-z-]*", row[0])}
    assert options_of(command) <= explained


@pytest.mark.parametrize("command", sorted(cli.commands))
def test_choices_and_defaults_are_those_of_the_code(command: str) -> None:
    """A synopsis shows the values to choose from, and a table's default is the option's own."""
    text = section(CLI, f"## {command}")
    for option in cli.commands[command].params:
        name = option.opts[0]
        if isinstance(option.type, click.Choice):
            choices = "|".join(map(str, option.type.choices))
            assert (f"[{name} {choices}]" if isinstance(option, click.Option) else choices) in text
        for row in rows(text):
            if len(row) == 3 and re.match(rf"`{name}[ `]", row[0]) and row[1]:
                assert row[1].strip("`") == str(option.default)


def test_every_command_is_in_the_first_table() -> None:
    """The table at the top of cli.md has all commands, and only those."""
    table = rows(CLI[: CLI.index("## ")])
    assert {re.sub(r"\[(\w+)\].*", r"\1", row[0]) for row in table} == set(cli.commands)


@every_document
def test_make_targets_exist(document: Path) -> None:
    """Every `make TARGET` is a target of the Makefile."""
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    named = {match[1] for line in code(document.read_text()) if (match := re.match(r"make (\w+)", line))}
    assert named <= targets
    if document.name == "README.md" and document.parent == ROOT:
        assert {"demo", "test", "imagenet"} <= named


# exit statuses, errors, messages -------------------------------------------------------------------------------


def exit_statuses() -> dict[str, int]:
    """The exit status of every error that the package raises, by name."""
    classes = (value for _, value in inspect.getmembers(errors, inspect.isclass))
    statuses = {each.__name__: each.exit_code for each in classes if issubclass(each, PrepError)}
    return {**statuses, Terminated.__name__: command_line.TERMINATED}


def test_exit_statuses_are_those_of_the_code() -> None:
    """The table in cli.md has every error at its own status, and the two of the signals."""
    table = rows(section(CLI, "## Exit status"))
    documented = {name: int(row[0]) for row in table for name in re.findall(r"`(\w+)`", row[2])}
    assert documented == exit_statuses()
    stopped = {command_line.INTERRUPTED, command_line.PIPE_CLOSED}
    assert {int(row[0]) for row in table} == {0, *exit_statuses().values(), *stopped}


def test_the_architecture_has_the_same_exit_statuses() -> None:
    """So has the table of errors in architecture.md."""
    text = (ROOT / "docs" / "architecture.md").read_text()
    statuses = exit_statuses()
    for names, status in rows(section(text, "## Faults")):
        for name in re.findall(r"`(\w+)`", names):
            assert str(statuses[name]) == status.split(",")[0]


def text_of(node: ast.AST) -> str:
    """A string in the code; what is filled in at run time stands as "..."."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in parts)


@functools.cache
def messages() -> frozenset[tuple[str, int | None]]:
    """Every string in the package, with the exit status of the error that begins with it, if there is one."""
    statuses = {**exit_statuses(), "access_error": errors.AccessError.exit_code}
    found: set[tuple[str, int | None]] = set()
    for node in itertools.chain.from_iterable(
        ast.walk(ast.parse(path.read_text())) for path in existing(PACKAGE, "**/*.py")
    ):
        if isinstance(node, ast.Call) and node.args and ast.unparse(node.func) in statuses:
            found.add((text_of(node.args[0]), statuses[ast.unparse(node.func)]))
        elif isinstance(node, (ast.JoinedStr, ast.Constant)):
            found.add((text_of(node), None))
    return frozenset(found)


def quoted_messages() -> list[tuple[str, int]]:
    """The messages in the page on troubles, each with its exit status; those of other programs left out."""
    table = rows(TROUBLES)
    quoted = [(message, row[1]) for row in table for message in re.findall(r"`([^`]+)`", row[0])]
    return [
        (message, int(status.split(",")[0]))
        for message, status in quoted
        if status and not message.startswith("No such")  # click's own
    ]


@pytest.mark.parametrize(("message", "status"), quoted_messages())
def test_messages_are_quoted_word_for_word(message: str, status: int) -> None:
    """What people search for is what the code says, with the exit status that goes with it."""
    pieces = [re.escape(piece.strip()) for piece in re.split(r"\.\.\.|\d+", message) if piece.strip()]
    found = {status for text, status in messages() if re.search(".*".join(pieces), text)}
    assert found, "nothing in the code says so"
    assert found - {None} <= {status}


def test_troubleshooting_has_every_exit_status() -> None:
    """No exit status is left without a message to find it by."""
    table = rows(TROUBLES)
    named = {int(number) for row in table for number in re.findall(r"\d+", row[1])}
    assert named == {*exit_statuses().values(), command_line.INTERRUPTED}


def test_kinds_of_problems_are_those_of_the_code() -> None:
    """cli.md lists each kind that is ever reported, and no other."""
    sources = "".join(path.read_text() for path in existing(PACKAGE, "**/*.py"))
    used = {ProblemKind[name].value for name in re.findall(r"ProblemKind\.([A-Z_]+)\b", sources)}
    listed = {kind for row in rows(section(CLI, "### problems.jsonl")) for kind in re.findall(r"`([\w-]+)`", row[0])}
    assert listed == used


def test_json_examples_have_the_keys_of_the_code(tiny_data_dir: Path, tmp_path: Path) -> None:
    """The manifest and the verdict in cli.md have the keys of real ones."""
    layout, engine = Layout(tiny_data_dir), make_engine("threads", 2)
    convert(layout, engine, PART)
    victim = layout.shard_path("train-00000-of-00008")
    victim.write_bytes(victim.read_bytes()[:-1])
    verdict = tmp_path / "verdict.json"
    call = [sys.executable, "-m", "imagenet_prep", "verify", str(tiny_data_dir), "--json", str(verdict)]
    assert subprocess.run(call, capture_output=True).returncode == 3
    shown_verdict, shown_manifest = map(json.loads, blocks(CLI, "json"))
    assert keys(shown_verdict) == keys(json.loads(verdict.read_text()))
    assert keys(shown_manifest) == keys(json.loads(layout.manifest_path.read_text()))
    assert shown_manifest["schema"] == manifest.SCHEMA
    assert shown_manifest["settings"].keys() == PART.settings().keys()


def keys(value: Any, path: str = "") -> set[str]:
    """The paths to every key of a JSON value; all splits, shards, features count as one, and so do list entries."""
    if isinstance(value, list):
        return {path}.union(*(keys(each, path) for each in value))
    if not isinstance(value, dict):
        return {path}
    names = {name: re.sub(r"^(train\b|validation\b|image/).*", "*", name) for name in value}
    return {key for name, each in value.items() for key in keys(each, f"{path}/{names[name]}")}


# snippets ------------------------------------------------------------------------------------------------------


def snippet(word: str) -> str:
    """The one Python block of the README, or of the page on Python, that has a word in it."""
    (found,) = (block for block in blocks(README + PYTHON, "python") if word in block)
    return found


SNIPPETS = [(path, block) for path in DOCUMENTS for block in blocks(path.read_text(), "python")]


@pytest.mark.parametrize(("path", "block"), SNIPPETS, ids=[path.name for path, _ in SNIPPETS])
def test_snippets_compile(path: Path, block: str) -> None:
    """Each Python block of each page is valid Python."""
    compile(block, path.name, "exec")


def test_every_public_name_is_in_the_page_on_python() -> None:
    """The table has each name with the first line of its docstring."""
    table = dict(rows(section(PYTHON, "## Every public name")))
    told = {f"`{name}`": (getattr(imagenet_prep, name).__doc__ or "").splitlines()[0] for name in imagenet_prep.__all__}
    assert table == told


def test_the_api_example_runs(tiny_data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of the stages as functions makes shards, and finds no problem in them."""
    names: dict[str, Any] = {}
    exec(snippet("make_engine").replace("/data/imagenet", str(tiny_data_dir)), names)
    assert capsys.readouterr().out == "train 300 images in 64 shards\nvalidation 80 images in 8 shards\n"
    assert names["verdict"].problems == ()
    assert len(list(tiny_data_dir.glob("train-?????-of-00064"))) == 64


def test_the_three_lines_run(tiny_data_dir: Path, torch: Any, tf: Any, capsys: pytest.CaptureFixture[str]) -> None:
    """Each gives batches of every image in the split, and reading by hand tells of each record."""
    convert(Layout(tiny_data_dir), make_engine("threads", 2), PART)
    count = {"batch_size=256": "batch_size=50", ".batch(256)": ".batch(50)", "num_workers=8": "num_workers=1"}

    def batches(word: str, **names: Any) -> list[Any]:
        program = snippet(word).replace("/data/imagenet", str(tiny_data_dir))
        for old, new in count.items():
            program = program.replace(old, new)
        exec(program, names)
        return list(names["train"])

    labels = sorted(record.label - 1 for record in imagenet_prep.open(tiny_data_dir, "train"))
    assert len(labels) == 300
    of_torch = batches("imagenet_prep.torch", transform=lambda image: image)
    of_grain = batches("import grain", prepare=lambda record: (record.array(), record.label - 1))
    of_tensorflow = batches("imagenet_prep.tensorflow")
    for found in (of_torch, of_grain, of_tensorflow):
        assert len(found) == 6
        assert sorted(int(label) for _, each in found for label in each) == labels
    assert of_torch[0][0].shape == (50, 3, 16, 16)
    assert of_grain[0][0].shape == (50, 16, 16, 3)
    assert of_tensorflow[0][0].shape == (50, 224, 224, 3)
    capsys.readouterr()
    exec(snippet("validation[-1]").replace("/data/imagenet", str(tiny_data_dir)), {})
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.split() == ["80", lines[-1].split()[0]]
    assert len(lines) == 80
    assert all(re.fullmatch(r"ILSVRC2012_val_\d{8}\.JPEG \d+ 16 16 \d+ \(16, 16, 3\)", line) for line in lines)
