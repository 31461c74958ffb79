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


Nodes = list[ast.AST]


@pytest.fixture(scope="module")
def nodes() -> dict[str, Nodes]:
    """All nodes of each module, the module itself first."""
    return {module: list(ast.walk(ast.parse((ROOT / module).read_text()))) for module in MODULES}


def _imports(nodes: Nodes) -> Iterator[str]:
    """Full names of what these nodes import."""
    for each in nodes:
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom):
            assert each.level == 0, "imports are absolute"
            yield from (f"{each.module}.{alias.name}" for alias in each.names)


def _foreign_imports(nodes: Nodes) -> set[str]:
    return {name.partition(".")[0] for name in _imports(nodes)}


def _at_module_level(tree: ast.AST) -> Iterator[ast.AST]:
    """What runs when the module is imported: everything but function
    bodies and blocks for type checking.
    """
    pending = list(ast.iter_child_nodes(tree))
    while pending:
        node = pending.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            continue
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            yield node
        pending += ast.iter_child_nodes(node)


def test_one_name_for_one_thing(nodes: dict[str, Nodes]) -> None:
    """No two modules, and no two types, are called the same."""
    names = Counter(Path(module).stem for module in MODULES if not module.endswith("__init__.py"))
    types = (node for module in MODULES for node in nodes[module] if isinstance(node, ast.ClassDef))
    names.update(f"class {node.name}" for node in types)
    assert [name for name, count in names.items() if count > 1] == []


def test_training_libraries_are_not_loaded_by_an_import(nodes: dict[str, Nodes]) -> None:
    """tensorflow, torch and ray are imported within functions, if at all,
    but in the room that is named for one.
    """
    for module in MODULES:
        found = _foreign_imports(list(_at_module_level(nodes[module][0])))
        assert not found & {"tensorflow", "torch", "ray"} - {_part(module)}, module


def _calls(nodes: Nodes) -> set[str]:
    """The names that are called, with that of their module if they have one."""
    called = [node.func for node in nodes if isinstance(node, ast.Call)]
    names = {function.id for function in called if isinstance(function, ast.Name)}
    for function in called:
        if isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name):
            names.add(f"{function.value.id}.{function.attr}")
    return names


def test_only_the_command_line_talks(nodes: dict[str, Nodes]) -> None:
    """click, print, input and sys.exit belong to cli."""
    talk = {"print", "input", "exit", "quit", "sys.exit", "getpass.getpass", "getpass"}
    for module in MODULES:
        if _part(module) != "cli":
            assert "click" not in _foreign_imports(nodes[module]), module
            assert not _calls(nodes[module]) & talk, module


def test_formats_are_pure(nodes: dict[str, Nodes]) -> None:
    """Bytes in, values out: these rooms open no file, start no process and write no log."""
    system = {"os", "pathlib", "shutil", "subprocess", "logging", "socket", "tempfile"}
    for module in MODULES:
        if _part(module) in ("tfrecord", "images"):
            assert not _foreign_imports(nodes[module]) & system, module
            assert "open" not in _calls(nodes[module]), module


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
    [
        ("cli", set()),
        ("stages.convert", {"multiprocessing", "numpy", "msgspec"}),
        ("stages.verify", {"msgspec"}),
        ("ilsvrc2012.completeness", {"msgspec"}),  # verify imports it when it judges a set
    ],
)
def test_what_is_imported_is_light(module: str, needed: set[str]) -> None:
    """The command line, all that --help needs, loads nothing that takes long;
    convert no image library or network; verify no NumPy either.
    """
    assert not _loaded_by(f"import imagenet_prep.{module}") & (HEAVY - needed)
