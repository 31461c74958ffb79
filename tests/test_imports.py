"""What pyproject.toml's import rule does not say:
heavy libraries load late, and only the command line talks.
"""

from __future__ import annotations

import ast
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from existing import existing

import imagenet_prep

ROOT = Path(imagenet_prep.__file__).parent

MODULES = sorted(str(path.relative_to(ROOT)) for path in existing(ROOT, "**/*.py"))


def _part(module: str) -> str:
    """The part of the house a file belongs to: images/jpeg.py is of images."""
    return Path(module).parts[0].removesuffix(".py")


def _tree(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text())


def _imports(node: ast.AST) -> Iterator[str]:
    """Full names of what is imported anywhere in ``node``:
    also within functions, also for type checking only.
    """
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom):
            assert each.level == 0, "imports are absolute"
            yield from (f"{each.module}.{alias.name}" for alias in each.names)


def _foreign_imports(node: ast.AST) -> set[str]:
    return {name.partition(".")[0] for name in _imports(node)}


def _at_module_level(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs when the module is imported: everything but function
    bodies and blocks for type checking.
    """
    pending: list[ast.AST] = list(tree.body)
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        pending += ast.iter_child_nodes(node)


def test_one_name_for_one_thing() -> None:
    """No two modules, and no two types, are called the same."""
    names = Counter(Path(module).stem for module in MODULES if not module.endswith("__init__.py"))
    types = (
        node
        for module in MODULES
        for node in ast.walk(_tree(module))
        if isinstance(node, ast.ClassDef)
    )
    names.update(f"class {node.name}" for node in types)
    assert [name for name, count in names.items() if count > 1] == []


def test_training_libraries_are_not_loaded_by_an_import() -> None:
    """tensorflow, torch and ray are imported within functions, if at all,
    but in the room that is named for one.
    """
    for module in MODULES:
        found = set().union(*map(_foreign_imports, _at_module_level(_tree(module))))
        assert not found & {"tensorflow", "torch", "ray"} - {_part(module)}, module


def _calls(tree: ast.Module) -> set[str]:
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def test_only_the_command_line_talks() -> None:
    """click, print, input and sys.exit belong to cli."""
    talk = {"print", "input", "exit", "quit", "sys.exit", "getpass.getpass", "getpass"}
    for module in MODULES:
        if _part(module) != "cli":
            tree = _tree(module)
            assert "click" not in _foreign_imports(tree), module
            assert not _calls(tree) & talk, module


def test_formats_are_pure() -> None:
    """Bytes in, values out: these rooms open no file, start no process and write no log."""
    system = {"os", "pathlib", "shutil", "subprocess", "logging", "socket", "tempfile"}
    for module in MODULES:
        if _part(module) in ("tfrecord", "images"):
            tree = _tree(module)
            assert not _foreign_imports(tree) & system, module
            assert "open" not in _calls(tree), module


def _loaded_by(statement: str) -> set[str]:
    """Top-level packages that a new interpreter holds after ``statement``."""
    script = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    return set(done.stdout.split())


HEAVY = {
    "numpy",
    "PIL",
    "requests",
    "urllib3",
    "simplejpeg",
    "tensorflow",
    "torch",
    "ray",
    "tqdm",
    "multiprocessing",
}
HEAVY |= {"matplotlib", "jinja2", "msgspec", "yaml", "pyarrow"}


@pytest.mark.parametrize(
    ("module", "needed"),
    [("cli", set()), ("stages.convert", {"multiprocessing", "numpy", "msgspec"})],
)
def test_what_is_imported_is_light(module: str, needed: set[str]) -> None:
    """The command line, all that --help needs, loads nothing that takes long;
    convert no image library or network.
    """
    assert not _loaded_by(f"import imagenet_prep.{module}") & (HEAVY - needed)
