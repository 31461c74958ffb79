"""Figures of how the package reads; `make house` prints them.

    python scripts/house.py                                # of imagenet_prep
    python scripts/house.py FOLDER --list complex          # of a part, with the functions behind it

Tokens per statement and per line show how dense the code is. Names that hold no noun ("found",
"each") point at nothing. Complexity counts branches, boolean operators, comprehensions and
conditional expressions. Circles are modules that import each other, late imports included.
"""

from __future__ import annotations

import argparse
import ast
import io
import tokenize
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[1]

LISTS = ("names", "complex", "circles")

_NO_NOUNS = """
    after asked before each few first found given held kind known last least left made more most
    now odd other others own rest said same seen several some sort strange taken then there those
    told used value values wanted way ways what where which who how wrong
"""
EMPTY_NAMES = frozenset(_NO_NOUNS.split())

NO_CODE = {
    tokenize.COMMENT,
    tokenize.NL,
    tokenize.NEWLINE,
    tokenize.INDENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
}

BRANCHES = (
    ast.If,
    ast.IfExp,
    ast.For,
    ast.AsyncFor,
    ast.While,
    ast.ExceptHandler,
    ast.Assert,
    ast.match_case,
)

MOST_COMPLEX = 10
MOST_LINES = 40

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass
class Figures:
    """Counts over all modules of a package."""

    modules: int = 0
    lines: int = 0
    tokens: int = 0
    statements: int = 0
    names: int = 0
    long_functions: int = 0
    empty_names: Counter[str] = field(default_factory=Counter)
    complex_functions: list[tuple[int, str]] = field(default_factory=list)
    circles: list[list[str]] = field(default_factory=list)

    def __str__(self) -> str:
        empty = 100 * self.empty_names.total() / max(self.names, 1)
        return "\n".join(
            [
                f"modules                        {self.modules:>9,}",
                f"lines of code                  {self.lines:>9,}",
                f"tokens                         {self.tokens:>9,}",
                f"tokens per line                {self.tokens / max(self.lines, 1):>9.2f}",
                f"tokens per statement           {self.tokens / max(self.statements, 1):>9.2f}",
                f"names that point at nothing    {empty:>9.1f} %",
                f"functions of complexity > {MOST_COMPLEX}   {len(self.complex_functions):>9}",
                f"functions of > {MOST_LINES} lines        {self.long_functions:>9}",
                f"circles of imports             {len(self.circles):>9}",
            ]
        )


def measure(folder: Path) -> Figures:
    """The figures of all modules below a folder."""
    figures = Figures()
    for path in sorted(folder.rglob("*.py")):
        figures.modules += 1
        _add_module(figures, path)
    figures.circles = find_circles(folder)
    return figures


def _add_module(figures: Figures, path: Path) -> None:
    text = path.read_text()
    tree = ast.parse(text)
    docstrings = list(_docstrings(tree))
    tokens = list(_code_tokens(text, docstrings))
    statements = [node for node in ast.walk(tree) if isinstance(node, ast.stmt)]

    figures.tokens += len(tokens)
    figures.lines += len(_lines_of(tokens))
    figures.statements += len(statements) - len(docstrings)
    for node in statements:
        if isinstance(node, Function):
            _add_function(figures, node, path)


def _add_function(figures: Figures, function: Function, path: Path) -> None:
    branches = complexity(function)
    if branches > MOST_COMPLEX:
        place = f"{path.relative_to(ROOT)}:{function.lineno} {function.name}"
        figures.complex_functions.append((branches, place))

    last_line = function.body[-1].end_lineno or 0
    if last_line - function.body[0].lineno + 1 > MOST_LINES:
        figures.long_functions += 1

    for name, _ in set(_local_names(function)):
        figures.names += 1
        if name.strip("_").rstrip("0123456789") in EMPTY_NAMES:
            figures.empty_names[name] += 1


# tokens and lines ---------------------------------------------------------------------------------


def _docstrings(tree: ast.Module) -> Iterator[ast.Expr]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Module | ast.ClassDef | Function) and node.body:
            statement = node.body[0]
            if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
                yield statement


def _code_tokens(text: str, docstrings: list[ast.Expr]) -> Iterator[tokenize.TokenInfo]:
    skipped: set[int] = set()
    for docstring in docstrings:
        skipped.update(range(docstring.lineno, (docstring.end_lineno or 0) + 1))
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in NO_CODE and token.start[0] not in skipped:
            yield token


def _lines_of(tokens: list[tokenize.TokenInfo]) -> set[int]:
    lines: set[int] = set()
    for token in tokens:
        lines.update(range(token.start[0], token.end[0] + 1))
    return lines


# functions ----------------------------------------------------------------------------------------


def complexity(function: Function) -> int:
    """One, and one more for each way that a run can take."""
    total = 1
    for node in ast.walk(function):
        if isinstance(node, BRANCHES):
            total += 1
        elif isinstance(node, ast.BoolOp):
            total += len(node.values) - 1
        elif isinstance(node, ast.comprehension):
            total += 1 + len(node.ifs)
    return total


def _local_names(function: Function) -> Iterator[tuple[str, int]]:
    arguments = function.args
    for argument in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
        if argument.arg not in ("self", "cls"):
            yield argument.arg, argument.lineno
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id, node.lineno


# imports ------------------------------------------------------------------------------------------


def find_circles(folder: Path) -> list[list[str]]:
    """Groups of modules below a folder that reach each other by imports."""
    imports = {}
    for path in sorted(folder.rglob("*.py")):
        imports[_module_name(path)] = path
    reached = _reached_modules({name: _imported(path, imports) for name, path in imports.items()})

    circles: list[list[str]] = []
    grouped: set[str] = set()
    for name in imports:
        if name in grouped:
            continue
        circle = [other for other in imports if other in reached[name] and name in reached[other]]
        if len(circle) > 1:
            circles.append(circle)
            grouped.update(circle)
    return circles


def _module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts).removesuffix(".__init__")


def _imported(path: Path, modules: Mapping[str, Path]) -> set[str]:
    """The modules among ``modules`` that a file imports when it runs."""
    tree = ast.parse(path.read_text())
    for_types = _nodes_for_types(tree)
    imported: set[str] = set()
    for node in ast.walk(tree):
        if id(node) in for_types:
            continue
        if isinstance(node, ast.Import):
            imported.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            for alias in node.names:
                submodule = f"{node.module}.{alias.name}"
                imported.add(submodule if submodule in modules else node.module)
    return imported & modules.keys() - {_module_name(path)}


def _nodes_for_types(tree: ast.Module) -> set[int]:
    """The nodes under ``if TYPE_CHECKING:``, which never run."""
    nodes: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            nodes.update(id(child) for child in ast.walk(node))
    return nodes


def _reached_modules(imports: Mapping[str, set[str]]) -> dict[str, set[str]]:
    """By module, all modules that its imports lead to."""
    reached = {}
    for name in imports:
        pending = [name]
        modules: set[str] = set()
        while pending:
            new = imports[pending.pop()] - modules
            modules |= new
            pending.extend(new)
        reached[name] = modules
    return reached


def main() -> None:
    """Print the figures, and one list."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folder", nargs="?", type=Path, default=ROOT / "imagenet_prep")
    parser.add_argument("--list", choices=LISTS)
    options = parser.parse_args()

    figures = measure(options.folder.resolve())
    print(figures)
    if options.list == "names":
        for name, count in figures.empty_names.most_common():
            print(f"{count:5} {name}")
    elif options.list == "complex":
        for branches, place in sorted(figures.complex_functions, reverse=True):
            print(f"{branches:5} {place}")
    elif options.list == "circles":
        for circle in figures.circles:
            print(*circle)


if __name__ == "__main__":
    main()
