"""The import rule: modules import leftwards only, heavy libraries load late, and only the command line talks."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from existing import existing

import imagenet_prep

ROOT = Path(imagenet_prep.__file__).parent

# The rooms in the order of imports: pyproject.toml has the rule, and `make lint` holds it.
LAYERS = re.findall(
    r'^    "([^"]+)",$', (ROOT.parent / "pyproject.toml").read_text().split("layers = [")[1].split("]")[0], re.M
)
ORDER = [line.split(" | ") for line in reversed(LAYERS)] + [["__init__"]]
RANK = {part: rank for rank, line in enumerate(ORDER) for part in line}
MODULES = sorted(str(path.relative_to(ROOT)) for path in existing(ROOT, "**/*.py"))
every_module = pytest.mark.parametrize("module", MODULES)


def _part(module: str) -> str:
    """The part of the house a file belongs to: images/jpeg.py is of images."""
    return Path(module).parts[0].removesuffix(".py")


def _tree(module: str) -> ast.Module:
    return ast.parse((ROOT / module).read_text())


def _imports(node: ast.AST) -> Iterator[str]:
    """Full names of what is imported anywhere in ``node``: also within functions, also for type checking only."""
    for each in ast.walk(node):
        if isinstance(each, ast.Import):
            yield from (alias.name for alias in each.names)
        elif isinstance(each, ast.ImportFrom):
            assert each.level == 0, "imports are absolute"
            yield from (f"{each.module}.{alias.name}" for alias in each.names)


def _own_imports(module: str) -> Iterator[tuple[str, str]]:
    """Part and full name of each import from this package; names that the package itself defines are passed over."""
    for name in _imports(_tree(module)):
        package, _, rest = name.partition(".")
        if package == "imagenet_prep" and rest and not rest.startswith("__version__"):
            yield rest.split(".")[0], rest


def _foreign_imports(node: ast.AST) -> set[str]:
    return {name.partition(".")[0] for name in _imports(node)}


def _at_module_level(tree: ast.Module) -> Iterator[ast.AST]:
    """What runs when the module is imported: everything but function bodies and blocks for type checking."""
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


@every_module
def test_modules_import_leftwards_only(module: str) -> None:
    """Every import of ours, lazy ones included, is of an earlier part or of the module's own folder."""
    part = _part(module)
    assert part in RANK, f"{part} has no place in the order of imports yet"
    for other, name in _own_imports(module):
        assert other in RANK, f"{module} imports {name}, which has no place in the order of imports"
        assert other == part or RANK[other] < RANK[part], f"{module} imports {name}"


def test_one_name_for_one_thing() -> None:
    """No two modules, and no two types, are called the same."""
    names = Counter(Path(module).stem for module in MODULES if not module.endswith("__init__.py"))
    types = (node for module in MODULES for node in ast.walk(_tree(module)) if isinstance(node, ast.ClassDef))
    names.update(f"class {node.name}" for node in types)
    assert [name for name, count in names.items() if count > 1] == []


def test_few_modules_stand_loose() -> None:
    """What belongs together lies in a room; the root keeps what everyone needs."""
    assert len([module for module in MODULES if "/" not in module]) <= 8


@every_module
def test_nobody_asks_whether_there_is_a_recipe(module: str) -> None:
    """A data set is asked what it is: that of a recipe is one among others."""
    if _part(module) not in ("recipes", "cli"):
        assert not re.search(r"recipe is (not )?None|if recipe\b", (ROOT / module).read_text())


@every_module
def test_training_libraries_are_not_loaded_by_an_import(module: str) -> None:
    """tensorflow, torch and ray are imported within functions, if at all, but in the room that is named for one."""
    found = set().union(*map(_foreign_imports, _at_module_level(_tree(module))))
    assert not found & {"tensorflow", "torch", "ray"} - {_part(module)}


@every_module
def test_only_the_command_line_talks(module: str) -> None:
    """click, print, input and sys.exit belong to cli."""
    if _part(module) == "cli":
        return
    tree = _tree(module)
    assert "click" not in _foreign_imports(tree)
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert not calls & {"print", "input", "exit", "quit", "sys.exit", "getpass.getpass", "getpass"}


@every_module
def test_formats_are_pure(module: str) -> None:
    """Bytes in, values out: these rooms open no file, start no process and write no log."""
    if _part(module) not in ("tfrecord", "images"):
        return
    tree = _tree(module)
    assert not _foreign_imports(tree) & {"os", "pathlib", "shutil", "subprocess", "logging", "socket", "tempfile"}
    calls = {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}
    assert "open" not in calls


def test_the_check_sees_what_it_should_see() -> None:
    """Lazy imports, imports for type checking and calls are found in a module that breaks every rule."""
    tree = ast.parse(
        "from typing import TYPE_CHECKING\n"
        "if TYPE_CHECKING:\n    import torch\n"
        "try:\n    import ray\nexcept ImportError:\n    pass\n"
        "def f():\n    from imagenet_prep.stages import convert\n    import tensorflow as tf\n"
    )
    assert set(_imports(tree)) == {
        "typing.TYPE_CHECKING",
        "torch",
        "ray",
        "imagenet_prep.stages.convert",
        "tensorflow",
    }
    assert set().union(*map(_foreign_imports, _at_module_level(tree))) == {"typing", "ray"}


def _loaded_by(statement: str) -> set[str]:
    """Top-level packages that a new interpreter holds after ``statement``."""
    script = f"import sys\n{statement}\nprint(*{{name.partition('.')[0] for name in sys.modules}})"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


HEAVY = {"numpy", "PIL", "requests", "urllib3", "simplejpeg", "tensorflow", "torch", "ray", "tqdm", "multiprocessing"}
HEAVY |= {"matplotlib", "jinja2", "msgspec", "yaml", "pyarrow"}


def test_the_command_line_starts_light() -> None:
    """Importing the command line, all that --help needs, loads no library that takes long."""
    assert not _loaded_by("import imagenet_prep.cli") & HEAVY


def test_the_package_starts_light() -> None:
    """Importing the package loads none either."""
    assert not _loaded_by("import imagenet_prep") & HEAVY


def test_converting_loads_little() -> None:
    """A conversion that decodes nothing needs NumPy for its table of images, and no image library or network."""
    loaded = _loaded_by("import imagenet_prep.stages.convert")
    assert not loaded & (HEAVY - {"multiprocessing", "numpy"})
