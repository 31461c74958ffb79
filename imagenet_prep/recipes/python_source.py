"""Seal the rows that a function of the user's yields: run once by convert, in a file that all later
commands read.

A sealed file is a zip in the state of the set, called by its content: each image that a row had as
bytes, and last the rows themselves as lines of JSON. The plan names it, so that ranks, repair and
merge read it and run no code.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

from imagenet_prep.errors import InputError, UsageError
from imagenet_prep.escaping import OptionValues, command, is_command_line, rerun
from imagenet_prep.hints import Hint
from imagenet_prep.images import ending_of
from imagenet_prep.recipes.box_policy import fault
from imagenet_prep.recipes.python_rows import Function, PythonRow
from imagenet_prep.recipes.recipe_file import RecipeFile
from imagenet_prep.recipes.recipe_paths import NOT_THERE, fault_of_path
from imagenet_prep.recipes.row_objects import shown_cell
from imagenet_prep.recipes.row_source import Rows, TableRow, find_roles, gather
from imagenet_prep.sources.names import text_of
from imagenet_prep.sources.remarks import fault_of_name
from imagenet_prep.sources.zips import SealedZip, check_zip, read_member
from imagenet_prep.state.set_records import SetRecords
from imagenet_prep.storage.durable import make_folder
from imagenet_prep.storage.layout import Layout
from imagenet_prep.storage.local import LocalSink, LocalStore, remove_abandoned
from imagenet_prep.storage.location import local_or_none
from imagenet_prep.storage.refusals import writing

if TYPE_CHECKING:
    from imagenet_prep.recipes.schema import Source

RECORDED = "rows"
"""The key of the plan's ``recipe`` that names the sealed file."""

_ENTRY = ".rows.jsonl"  # hidden: no listing of images has it
_FILE = "file_name"
_ONE_NAME = "expected another file_name for each image"
_SCHEMA = 1
_EPOCH = (1980, 1, 1, 0, 0, 0)  # the earliest time of a zip: no clock reaches it


def sealed_rows(
    file: RecipeFile, records: SetRecords, *, is_again: bool, is_allowed: bool
) -> Path | None:
    """The sealed file of a recipe's rows for convert, made unless it is there; None if the source
    is no function.

    The function runs if nothing intact is sealed, if its module has changed, and with ``is_again``.

    Raises:
        UsageError: the function would have to run, and may not; or it isn't there.
        InputError: the function fails, or yields what is no row.
    """
    source = file.recipe.source
    if source is None or source.kind != "python":
        return None
    recorded = recorded_rows(records, is_whole=is_allowed)
    function = Function.find(file, source.value)
    if recorded is not None and not is_again:
        is_unchanged = function is None or _head_of(recorded) == _head(function)
        if is_unchanged:
            return recorded
    if function is None:
        raise _no_module(file, source.value)
    if not is_allowed:
        reason = "" if is_again else _difference(recorded, function)
        raise _refuse_code(file, function, reason)
    _remove_superseded(records.layout, recorded)
    return _seal(function, records.layout)


def _no_module(file: RecipeFile, function: str) -> UsageError:
    """The error for a function whose module is no file of the current folder."""
    name = f"{function.partition(':')[0]}.py"
    problem = f"the current folder has no {name}"
    hint = f"run the command in the folder of {name}"
    fault_of_module = fault_of_path(Path.cwd() / name, "file")
    if fault_of_module != NOT_THERE:
        problem = f"{name} in the current folder {fault_of_module}"
        hint = ""
    return UsageError(
        f"{file.place(('source', 'python'))}: {problem}",
        f"expected the module of {function} in {Path.cwd()}",
        hint,
    )


def recorded_rows(records: SetRecords, *, is_whole: bool = False) -> Path | None:
    """The sealed file that the plan of a set names, if its rows are there and intact;
    ``is_whole``: its images too.
    """
    plan, folder = records.plan, local_or_none(records.layout.rows_dir)
    name = plan.recipe.get(RECORDED) if plan is not None else None
    if name is None or folder is None or not (folder / name).is_file():
        return None
    with contextlib.suppress(InputError):
        if is_whole:
            check_zip(folder / name)
        _read_lines(folder / name)
        return folder / name
    return None


def require_rows(file: RecipeFile, records: SetRecords) -> Path | None:
    """The sealed file that the plan of a set names, for commands that run no code.

    Raises:
        UsageError: the source is a function, and none of its rows are there and intact.
    """
    recorded = recorded_rows(records)
    source = file.recipe.source
    if recorded is None and source is not None and source.kind == "python":
        layout = records.layout
        raise refuse_unsealed(file, layout.data_dir, layout.elsewhere())
    return recorded


def refuse_unlisted(file: RecipeFile, layout: Layout, *, is_made: bool) -> UsageError:
    """The error of verify without the rows of a recipe; ``is_made``: convert has worked in the
    folder, and kept some.
    """
    assert file.recipe.source is not None
    if is_made or layout.data_dir not in (layout.raw, file.path.parent):
        return refuse_unsealed(file, layout.data_dir, layout.elsewhere())
    place, function = file.place(("source", "python")), file.recipe.source.value
    folder = f"the folder {layout.data_dir}"
    if layout.data_dir == Path():
        folder = "the current folder"
    return UsageError(
        f"{place}: {folder} has no stored rows of {function}",
        "convert with --allow-python stores them in its DATA_DIR, with the shards",
        Hint("name that folder: ", command("verify", "DATA_DIR", (("config", file.path),))),
    )


def refuse_unsealed(file: RecipeFile, data_dir: object, elsewhere: OptionValues = ()) -> UsageError:
    """The error of commands that need rows which no convert has sealed, or which are damaged."""
    assert file.recipe.source is not None
    options = (*elsewhere, ("config", file.path), ("allow_python", True))
    again = command("convert", data_dir, options)
    place, function = file.place(("source", "python")), file.recipe.source.value
    return UsageError(
        f"{place}: the stored rows of {function} are missing or damaged in {data_dir}",
        "expected the rows that convert stored: no other command runs the function",
        Hint("run convert again: ", again),
    )


def _difference(recorded: Path | None, function: Function) -> str:
    """The difference of a function from the one whose rows are kept, as a clause; empty if none
    are kept.
    """
    if recorded is None:
        return ""
    kept_function = _head_of(recorded)["function"]
    if kept_function != function.name:
        return f": the stored rows are those of {kept_function}"
    return ", which changed since its rows were stored"


def _refuse_code(file: RecipeFile, function: Function, reason: str) -> UsageError:
    """The error for code that would run without permission."""
    place = file.place(("source", "python"))
    hint = Hint("read that file; then in Python: allow_python=True")
    if is_command_line():
        again = rerun((("allow_python", True),)).without("--dry-run")  # a dry run runs no code
        hint = Hint("read that file; then: ", again)
    return UsageError(
        f"{place}: convert would run {function.name} of {function.path}{reason}",
        "expected --allow-python: without it no recipe runs code",
        hint,
    )


# reading ------------------------------------------------------------------------------------------


def read_sealed(source: Source, sealed: Path, root: Path) -> Rows:
    """The rows of a sealed file; paths start at ``root``.

    Raises:
        InputError: it is damaged, or a value can't be.
    """
    head, *lines = map(json.loads, _read_lines(sealed))
    rows: list[TableRow] = []
    names: dict[str, None] = {}
    folder = text_of(str(root))
    for number, line in enumerate(lines, 1):
        names |= dict.fromkeys(line["values"])
        archive = sealed if line["is_sealed"] else None
        rows.append(
            TableRow(line["values"], f"{head['function']}, row {number}", folder, archive=archive)
        )
    roles = find_roles(names, head["function"], None, source.label, is_table=False)
    return gather(rows, roles, is_text=False)


def _read_lines(sealed: Path) -> list[bytes]:
    """The head and the rows of a sealed file, compared with their checksum."""
    content = read_member(sealed, _ENTRY.encode(), SealedZip.remedy)
    if content is None:
        raise InputError(
            f"{sealed} has no rows", "expected the file as convert wrote it", SealedZip.remedy
        )
    return content.splitlines()


def _head(function: Function) -> dict[str, Any]:
    """The head of the rows: the function, and the content of its module, which they depend on."""
    return {"schema": _SCHEMA, "function": function.name, "module": function.digest}


def _head_of(sealed: Path) -> Any:
    return json.loads(_read_lines(sealed)[0])


# sealing ------------------------------------------------------------------------------------------


def _seal(function: Function, layout: Layout) -> Path:
    """Run the function and keep its rows: whole and durable under a name of their content,
    or not at all.
    """
    folder = local_or_none(layout.rows_dir)
    if folder is None:
        what = f"{layout.rows_dir} is in an object store"
        raise UsageError(
            what,
            "expected a folder of this machine for the rows of a function",
            f"name a local folder {'with --output' if layout.output else 'as DATA_DIR'}",
        )
    folder = folder.absolute()  # the function may change the current folder
    make_folder(folder)
    remove_abandoned(folder)
    store = LocalStore(folder)
    with (
        writing(folder),
        store.create("rows.zip") as sink,
        contextlib.closing(_Sealing(sink)) as sealing,
        contextlib.closing(function.rows()) as rows,
    ):
        sealing.add_line(_head(function))
        for row in rows:
            sealing.add(row, f"{function.name}, row {row.number}")
        digest = sealing.finish()
        name = f"rows-{digest[:16]}.zip"
        sink.seal()
        sink.commit(name)
        _set_time(folder / name, digest)
        store.sync_names()
    return folder / name


def _set_time(path: Path, digest: str) -> None:
    """Make the time of change one of the content:
    the same rows, sealed again, are no changed input.
    """
    seconds = int(digest[:8], 16) >> 1
    os.utime(path, (seconds, seconds))


class _Sealing:
    """A sealed file that is being written."""

    def __init__(self, sink: LocalSink) -> None:
        self._file = _Appended(sink)
        self._zip = zipfile.ZipFile(self._file, mode="w")
        self._digest = hashlib.sha256()
        self._lines: list[bytes] = []
        self._names: dict[str, str] = {}

    def add_line(self, value: Any) -> None:
        """Add a line to the rows."""
        self._lines.append(json.dumps(value, sort_keys=True).encode() + b"\n")

    def add(self, row: PythonRow, place: str) -> None:
        """Add a row and its image; raises InputError if its name can't be."""
        values = row.values
        if row.image is not None:
            name = values.setdefault(_FILE, f"{row.number:06}{ending_of(row.image)}")
            self._check_name(name, place)
            self._write(name, row.image)
        self.add_line({"values": values, "is_sealed": row.image is not None})

    def finish(self) -> str:
        """Write the rows and the directory; a digest of all."""
        self._write(_ENTRY, b"".join(self._lines))
        self._zip.close()
        return self._digest.hexdigest()

    def close(self) -> None:
        """Write nothing more: a ZipFile that is not finished writes its
        end when it is forgotten.
        """
        self._file.is_over = True

    def _write(self, name: str, content: bytes) -> None:
        self._digest.update(hashlib.sha256(content).digest())
        self._zip.writestr(zipfile.ZipInfo(name, _EPOCH), content)

    def _check_name(self, name: Any, place: str) -> None:
        if not _is_relative_path(name):
            expected = (
                "expected a path such as train/cat.png, without \\, in which no folder or file is "
                "empty or starts with a dot"
            )
            raise fault(place, f"{_FILE} is {shown_cell(name)}", expected)
        name_error = fault_of_name(name, Path())
        if name_error:
            raise fault(place, f"{_FILE} is {name[:60]!a}", name_error.detail)
        if name in self._names:
            earlier_row = self._names[name].rpartition(", ")[2]
            raise fault(place, f"{name!r} is in {earlier_row} already", _ONE_NAME)
        self._names[name] = place


def _is_relative_path(name: Any) -> bool:
    """Whether a name is a text whose folders and file are not hidden."""
    if not isinstance(name, str) or not name or "\\" in name:
        return False
    return not any(part[:1] in ("", ".") for part in name.split("/"))


class _Appended:
    """A sink as a file that is only written to."""

    def __init__(self, sink: LocalSink) -> None:
        self._sink = sink
        self.is_over = False

    def write(self, content: bytes, /) -> int:
        """Append all of it."""
        if not self.is_over:
            self._sink.write([content])
        return len(content)

    def flush(self) -> None:
        """Nothing is held back."""

    def close(self) -> None:
        """Nothing: the sink is closed at the end of its own block."""


def _remove_superseded(layout: Layout, recorded: Path | None) -> None:
    """Remove the rows that are older than the plan and not named by it."""
    folder, plan = local_or_none(layout.rows_dir), local_or_none(layout.plan_path)
    if folder is None or plan is None or not folder.is_dir() or not plan.is_file():
        return
    planned = plan.stat().st_ctime_ns
    for path in sorted(folder.glob("rows*")):
        if path != recorded and path.stat().st_ctime_ns < planned:
            path.unlink(missing_ok=True)
