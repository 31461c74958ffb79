"""The documents agree with the code: links, commands, options,
targets, messages, exit statuses, snippets.
"""

from __future__ import annotations

import ast
import functools
import importlib.util
import inspect
import itertools
import json
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import running
from click.testing import CliRunner
from docstrings import first_paragraph
from existing import existing
from made_sets import flip

import imagenet_prep
from imagenet_prep import ConvertOptions, Layout, PrepError, annotate, convert, errors, make_engine
from imagenet_prep import cli as command_line
from imagenet_prep.cli import cli
from imagenet_prep.cli.commands import load_commands
from imagenet_prep.errors import Terminated
from imagenet_prep.model import ProblemKind
from imagenet_prep.recipes.formats import all_formats
from imagenet_prep.state import manifest
from imagenet_prep.text import INSTALL

pytestmark = pytest.mark.project

ROOT = Path(__file__).parents[1]
PACKAGE = Path(imagenet_prep.__file__).parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), ROOT / "data" / "README.md"])
every_document = pytest.mark.parametrize(
    "document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT))
)

README = (ROOT / "README.md").read_text()
PYTHON = (ROOT / "docs" / "python.md").read_text()
TROUBLES = (ROOT / "docs" / "troubleshooting.md").read_text()
CLI = (ROOT / "docs" / "cli.md").read_text()
OPTIONS = (ROOT / "docs" / "generated" / "options.md").read_text()
FILES = (ROOT / "docs" / "files.md").read_text()
PART = ConvertOptions(train_shards=8, validation_shards=128, allow_incomplete=True)


def options_of(command: str) -> set[str]:
    """The long options of a command, --help set aside."""
    return {
        name
        for each in load_commands()[command].params
        for name in each.opts
        if name.startswith("--")
    }


EVERY_OPTION = {"--help", "--help-all", "--version"}.union(*map(options_of, load_commands()))


# Markdown -----------------------------------------------------------------------------------------


def blocks(text: str, language: str = "") -> list[str]:
    """The fenced code blocks of a text, of one language or of none."""
    return [
        body
        for found, body in re.findall(r"^```(\w*)\n(.*?)^```$", text, re.M | re.S)
        if found == language
    ]


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
    found = re.search(
        rf"^{re.escape(heading)}\n(.*?)(?=^#{{1,{heading.count('#')}}} |\Z)", text, re.M | re.S
    )
    assert found, f"no heading {heading}"
    return found[1]


def rows(text: str) -> list[list[str]]:
    """The rows of every table in a text, cell by cell, without headings."""
    tables = re.findall(r"^\|.*\n\|[-|]+\|\n((?:\|.*\n)*)", text, re.M)
    lines = "".join(tables).splitlines()
    return [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]


def anchors(document: Path) -> set[str]:
    """The anchors that GitHub gives a document's headings; none if it is no document."""
    text = prose(document.read_text()) if document.suffix == ".md" and document.is_file() else ""
    headings = re.findall(r"^#+ (.*)$", text, re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@every_document
def test_links_lead_somewhere(document: Path) -> None:
    """Every relative link is to a file that exists, and to a heading in it where it names one."""
    for link in re.findall(r"\]\(([^)\s]+)\)", prose(document.read_text())):
        name, _, fragment = link.partition("#")
        target = document.parent / name if name else document
        is_elsewhere = re.match(r"[a-z]+:", link)
        assert is_elsewhere or (
            target.exists() and (not fragment or fragment in anchors(target))
        ), link


# links, commands, options, targets ----------------------------------------------------------------


def misspelt(line: str) -> list[str]:
    """What a line of code says of our command that is not so:
    commands and options that don't exist.
    """
    wrong = []
    for command, rest in re.findall(r"imagenet-prep ([a-z][a-z-]*)(.*?)(?=imagenet-prep |$)", line):
        if command not in load_commands():
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


def reference() -> ModuleType:
    """scripts/cli_reference.py, which writes pages from the code."""
    spec = importlib.util.spec_from_file_location(
        "cli_reference", ROOT / "scripts/cli_reference.py"
    )
    assert spec is not None
    assert spec.loader is not None
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    return script


@pytest.mark.parametrize(
    "page", ["generated/options.md", "generated/formats.md", "generated/api.md", "tutorial.ipynb"]
)
def test_generated_pages_are_those_of_the_code(page: str) -> None:
    """Each is what the script writes, and the script writes no other."""
    pages = reference().PAGES
    assert page in pages
    assert len(pages) == 4
    assert pages[page]() == (ROOT / "docs" / page).read_text(), (
        "run python scripts/cli_reference.py"
    )


def test_every_command_with_options_is_on_their_page() -> None:
    """Each command has its section; the shared options have one."""
    script = reference()
    headings = set(re.findall(r"^## (.+)$", OPTIONS, re.M))
    commands = {name for name, each in load_commands().items() if script.options_of(each)}
    assert headings == {"Options that each command has", "Shared options", *commands}


def test_the_table_of_formats_is_that_of_their_modules() -> None:
    """Each format of annotations has the rows that its module declares, in any order."""
    text = (ROOT / "docs/generated/formats.md").read_text()
    written = [row for row in rows(section(text, "## Formats")) if len(row) == 3]
    declared = [
        [tool, f"`{box_format.structure}`", usage.replace("](#", "](../howto/coco-voc.md#")]
        for box_format in all_formats().values()
        for tool, usage in box_format.usage.items()
    ]
    assert sorted(written) == sorted(declared)


def test_extras_are_installed_from_the_clone() -> None:
    """Documents, messages and make install by one line; wheels are the only other way."""
    texts = [path.read_text() for path in DOCUMENTS] + [text for text, _ in messages()]
    for text in texts:
        assert not re.search(r"pip install '?imagenet-prep", text)
        assert not re.search(r"pip install (?!-e)'?\.", text)
    assert f"{INSTALL} ." in (ROOT / "docs/install.md").read_text()
    makefile = (ROOT / "Makefile").read_text()
    installing = re.findall(r"pip install .*? (-\S+) \"?\.", makefile)
    assert {"--editable"} == set(installing)
    extras = re.findall(r"install_extra\(['\"](\w+)", sources())
    extras += re.findall(r"missing_library\(\"[^)]*\"(\w+)\"\)", sources())
    assert len(extras) > 8
    declared = re.findall(r"^(\w+) = \[", (ROOT / "pyproject.toml").read_text(), re.M)
    assert set(extras) <= set(declared)
    named = re.findall(r"pip install -e '\.\[([\w,]+)\]'", "".join(texts))
    assert {extra for each in named for extra in each.split(",")} <= set(declared)


@pytest.mark.parametrize("command", sorted(load_commands()))
def test_examples_use_options_that_their_help_shows(command: str) -> None:
    """A reader of the help can look up each option of its examples."""
    shown = CliRunner().invoke(cli, [command, "--help"]).output
    examples, _, listed = shown.partition("\nOptions:\n")
    used = set(re.findall(r"--[a-z][a-z-]*", examples.partition("Examples:")[2]))
    assert used <= set(re.findall(r"--[a-z][a-z-]*", listed))


def test_badges_are_true() -> None:
    """They say what pyproject.toml says."""
    project = (ROOT / "pyproject.toml").read_text()
    pythons = re.findall(r"Python :: (3\.\d+)", project)
    assert f"badge/python-{pythons[0]}_to_{pythons[-1]}-" in README
    assert "badge/license-Apache_2.0-" in README
    assert 'license = "Apache-2.0"' in project
    assert len(re.findall(r"img\.shields\.io", README)) == 2


@every_document
def test_make_targets_exist(document: Path) -> None:
    """Every `make TARGET` is a target of the Makefile."""
    targets = set(re.findall(r"^(\w+):", (ROOT / "Makefile").read_text(), re.M))
    named = {
        match[1] for line in code(document.read_text()) if (match := re.match(r"make (\w+)", line))
    }
    assert named <= targets
    if document.name == "README.md" and document.parent == ROOT:
        assert {"demo", "test", "imagenet"} <= named


# exit statuses, errors, messages ------------------------------------------------------------------


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
    stopped = {command_line.INTERRUPTED, command_line.PIPE_CLOSED, 128 + signal.SIGKILL}
    assert {int(row[0]) for row in table} == {0, *exit_statuses().values(), *stopped}


def text_of(node: ast.AST) -> str:
    """A string in the code; what is filled in at run time stands as "..."."""
    parts = node.values if isinstance(node, ast.JoinedStr) else [node]
    return "".join(str(part.value) if isinstance(part, ast.Constant) else "..." for part in parts)


def sources() -> str:
    """The code of the package."""
    return "".join(path.read_text() for path in existing(PACKAGE, "**/*.py"))


@functools.cache
def messages() -> frozenset[tuple[str, int | None]]:
    """Every string in the package, with the exit status of the error that begins with it,
    if there is one.
    """
    statuses = {**exit_statuses(), "RefusedError": errors.AccessError.exit_code}
    found: set[tuple[str, int | None]] = set()
    for node in itertools.chain.from_iterable(
        ast.walk(ast.parse(path.read_text())) for path in existing(PACKAGE, "**/*.py")
    ):
        if (
            isinstance(node, ast.Call)
            and node.args
            and (name := ast.unparse(node.func).rpartition(".")[2]) in statuses
        ):
            found.add((text_of(node.args[0]), statuses[name]))
        elif isinstance(node, (ast.JoinedStr, ast.Constant)):
            found.add((text_of(node), None))
    return frozenset(found)


def quoted_messages() -> list[tuple[str, int]]:
    """The messages in the page on troubles, each with its exit status;
    those of other programs left out.
    """
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
    pieces = [
        re.escape(piece.strip()) for piece in re.split(r"\.\.\.|\d+", message) if piece.strip()
    ]
    found = {status for text, status in messages() if re.search(".*".join(pieces), text)}
    assert found, "nothing in the code says so"
    assert found - {None} <= {status}


def test_kinds_of_problems_are_those_of_the_code() -> None:
    """files.md lists each kind that is ever reported, and no other."""
    names = re.findall(r"ProblemKind\.([A-Z_]+)\b", sources())
    used = {ProblemKind[name].value for name in names}
    listed = {
        kind
        for row in rows(section(FILES, "## problems.jsonl"))
        for kind in re.findall(r"`([\w-]+)`", row[0])
    }
    assert listed == used


def test_json_examples_have_the_keys_of_the_code(tiny_data_dir: Path, tmp_path: Path) -> None:
    """The manifest and the verdict in files.md have the keys of real ones."""
    layout, engine = Layout(tiny_data_dir), make_engine("threads", 2)
    annotate(layout, engine)
    convert(layout, engine, PART)
    flip(layout.shard_path("train-00000-of-00008"), -1)
    verdict = tmp_path / "verdict.json"
    running.command("verify", tiny_data_dir, "--json", verdict, status=3)
    shown_manifest, shown_verdict = map(json.loads, blocks(FILES, "json"))
    outline = dict.fromkeys(("command", "version", "exit_status", "error", "seconds"))
    assert keys(outline | shown_verdict) == keys(json.loads(verdict.read_text()))
    assert keys(shown_manifest) == keys(json.loads(layout.manifest_path.read_text()))
    assert shown_manifest["schema"] == manifest.SCHEMA
    assert shown_manifest["settings"].keys() == PART.settings().keys()


def keys(value: Any, path: str = "") -> set[str]:
    """The paths to every key of a JSON value; all splits, shards,
    features count as one, and so do list entries.
    """
    if isinstance(value, list):
        return {path}.union(*(keys(each, path) for each in value))
    if not isinstance(value, dict):
        return {path}
    names = {name: re.sub(r"^(train\b|validation\b|image/).*", "*", name) for name in value}
    return {key for name, each in value.items() for key in keys(each, f"{path}/{names[name]}")}


# snippets -----------------------------------------------------------------------------------------


def snippet(word: str) -> str:
    """The one block of the page on Python that has a word in it."""
    (found,) = (block for block in blocks(PYTHON, "python") if word in block)
    return found


def test_every_public_name_is_in_the_page_of_the_api() -> None:
    """The page has each name with the first paragraph of its docstring."""
    words = " ".join((ROOT / "docs/generated/api.md").read_text().split())
    for name in imagenet_prep.__all__:
        if name != "records":
            paragraph = first_paragraph(getattr(imagenet_prep, name)).replace("``", "`")
            assert f"## {name} " in words
            assert " ".join(paragraph.split()) in words


def test_the_api_example_runs(tiny_data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example of the stages as functions makes shards, and finds no problem in them."""
    names: dict[str, Any] = {}
    exec(snippet("make_engine").replace("/data/imagenet", str(tiny_data_dir)), names)
    shown = "train 300 images in 64 shards\nvalidation 80 images in 8 shards\nincomplete: "
    assert capsys.readouterr().out.startswith(shown)
    assert names["verdict"].problems == ()
    assert len(list(tiny_data_dir.glob("train-?????-of-00064"))) == 64


@pytest.mark.timeout(1800)  # no limit that busy machines reach
def test_the_loop_of_the_readme_runs(tiny_data_dir: Path, torch: Any, tmp_path: Path) -> None:
    """It prints a loss for each batch of the demo set."""
    convert(Layout(tiny_data_dir), make_engine("threads", 2), PART)
    (tmp_path / "demo-data").symlink_to(tiny_data_dir)
    (loop,) = blocks(README, "python")
    done = subprocess.run(
        [sys.executable, "-c", loop], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert re.fullmatch(r"(loss \d+\.\d{3}\n){18}", done.stdout)


def test_reading_by_number_runs(tiny_data_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The example prints every record of validation."""
    convert(Layout(tiny_data_dir), make_engine("threads", 2), PART)
    exec(snippet("validation[-1]").replace("/data/imagenet", str(tiny_data_dir)), {})
    first, *lines = capsys.readouterr().out.splitlines()
    assert first.split() == ["80", lines[-1].split()[0]]
    assert len(lines) == 80
    assert all(
        re.fullmatch(r"ILSVRC2012_val_\d{8}\.JPEG \d+ 16 16 \d+ \(16, 16, 3\)", line)
        for line in lines
    )
