"""Archive, a container whose images are slices of its bytes;
walk, which lists a tar; list_tars, for zips too.
"""

from __future__ import annotations

import posixpath
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import ClassVar, Generic, Protocol

from msgspec import Struct

from imagenet_prep.errors import InputError
from imagenet_prep.model import Engine, Failed, R, T
from imagenet_prep.sources.archive_faults import TarFault, archive_error, other_file_error
from imagenet_prep.sources.catalog import Catalog, CatalogBuilder
from imagenet_prep.sources.compressed_tars import LONGEST_MAGIC, refuse_compressed
from imagenet_prep.sources.names import file_name
from imagenet_prep.sources.obstacles import Collecting, collected
from imagenet_prep.sources.remarks import fault_of_name, refuse_twice
from imagenet_prep.sources.skipped import HIDDEN_FILES, SYSTEM_FILES, Skipped, is_system_file
from imagenet_prep.sources.slices import Buffer, Container, FileSlices, Row, slices_of
from imagenet_prep.sources.tar_members import (
    BLOCK,
    WHOLE_COPY,
    Member,
    Sliceable,
    has_header,
    iter_members,
)
from imagenet_prep.sources.zips import Zip, walk_zip, with_slashes
from imagenet_prep.storage.files import view_of
from imagenet_prep.storage.location import AnyPath, local_or_none, split
from imagenet_prep.storage.refusals import unreadable
from imagenet_prep.storage.store import RangedView, changed

ZIP = ".zip"
_ZIP_MAGIC = b"PK\3\4"


class Archive(Container, frozen=True):
    """A file with images at offsets: a tar, tars within it, or a bundle."""

    is_sliced: ClassVar[bool] = True
    is_consumable: ClassVar[bool] = True

    def open(self) -> Callable[[Row], Buffer]:
        """The function that reads rows: slices of the archive's map, never copied;
        ranges of an object.
        """
        if local_or_none(self.path) is None:
            return lambda row: self.read_all([row])[0]
        archive = view_of(self.path)

        def read(row: Row) -> Buffer:
            _, offset, length, _ = row
            content = archive[offset : offset + length]
            return content if len(content) == length else _whole(content, self.path, row)

        return read

    def read_all(self, rows: Sequence[Row]) -> list[Buffer]:
        """The bytes of several rows, requested together."""
        store, name = split(self.path)
        ranges = [(row.offset, row.offset + row.length) for row in rows]
        try:
            contents = store.read_ranges(name, ranges)
        except FileNotFoundError as error:
            raise unreadable(self.path, error) from error
        pairs = zip(contents, rows, strict=True)
        return [_whole(content, self.path, row) for content, row in pairs]


def _whole(content: memoryview, path: AnyPath, row: Row) -> memoryview:
    if len(content) != row.length:
        raise changed(path, row.offset, row.length, len(content))
    return content


class NamedSlices(Sliceable, Protocol):
    """An archive to walk, and its name for messages."""

    @property
    def path(self) -> object:
        """Its path, for messages."""
        ...


def walk(
    view: NamedSlices, start: int = 0, stop: int | None = None, *, inside: str = "", hint: str
) -> Iterator[Member]:
    """List name, offset in the archive and length of each file in its tar from ``start`` to
    ``stop``.

    Names are without a leading "./".

    Raises:
        InputError: it is compressed, or damaged: the error has the archive, the tar ``inside`` it
            and the byte; ``hint``: the remedy.
    """
    try:
        for name, offset, length in iter_members(view, start, len(view) if stop is None else stop):
            yield (_without_dot(name) if name.startswith(b"./") else name), offset, length
    except TarFault as fault:
        archive = f"{view.path} ({inside})" if inside else str(view.path)
        end = len(view) if stop is None else stop
        if has_header(view, start, end):
            raise archive_error(archive, fault, hint) from fault
        refuse_compressed(view.path, bytes(view[start : start + LONGEST_MAGIC]), inside)
        head = bytes(view[start : min(end, start + BLOCK)])
        if head.startswith(_ZIP_MAGIC):
            remedy = _remedy_of_zip(view.path, inside) if hint == WHOLE_COPY else hint
            raise InputError(f"{archive} is a zip, not a tar", "expected a tar", remedy) from fault
        is_there = bool(head) or start == end  # otherwise it was cut after it was listed
        error = other_file_error(archive, head, "tar", hint) if is_there else None
        what = f"{archive} is not a tar, or is damaged at byte {fault.offset:,}"
        raise error or InputError(what, fault.reason, hint) from fault


def _remedy_of_zip(archive: object, inside: str) -> str:
    """The advice for a zip whose name is not that of a zip; it may be ``inside`` an archive."""
    if inside:
        return (
            f"unpack {archive}, rename {inside} so that it ends with {ZIP}, then name such files "
            f"in the recipe: source: {{tar: 'FOLDER/*{ZIP}', tar_folders: true}}"
        )
    rename = f"rename it so that it ends with {ZIP}"
    if not isinstance(archive, Path):
        return f"copy it to a local disk, and {rename}"
    return f"{rename}, and change its name in the recipe"


def _without_dot(name: bytes) -> bytes:
    while name.startswith(b"./"):
        name = name[2:]
    return name


def list_tars(
    archives: Sequence[AnyPath],
    engine: Engine,
    *,
    folder_each: bool,
    skipped: Skipped | None = None,
) -> Catalog:
    """List the files in all ``archives``, including those in tars within them; ``skipped`` counts
    hidden ones.

    Archives are tars, or zips by their names, whose entries are read in place too.

    A tar within an archive becomes a folder of its name, as in ImageNet-21k's ``fall11_whole.tar``,
    a tar of tars. It is read in place; a tar within that one is a file. With ``folder_each``, every
    archive becomes a folder too.

    Raises:
        InputError: an archive is damaged or compressed, a name leads out of it, or repeats.
    """
    tars = []
    for archive in archives:
        folder = folder_of_tar(file_name(archive)) if folder_each else ""
        tars.append(_Tar(archive, folder))
    tars.sort(key=_in_path_order)
    parts = _list_levels(tars, engine, Skipped() if skipped is None else skipped)
    remedy = "rename one of the two archives"
    if not folder_each:
        remedy = "in a recipe, add tar_folders: true to `source`, or rename one file"
    return refuse_twice(Catalog.join(parts), remedy)


def folder_of_tar(name: str) -> str:
    """The folder for a tar or a zip, such as ``cats/`` for ``cats.tar``."""
    stem = name[: -len(ZIP)] if is_zip(name) else name.removesuffix(".tar")
    return f"{stem}/"


def is_zip(name: str) -> bool:
    """Whether an archive is a zip, by its name."""
    return name.lower().endswith(ZIP)


def noun_of(names: Iterable[str]) -> str:
    """The word for archives of these names: tar, zip, or archive for both."""
    nouns = {"zip" if is_zip(name) else "tar" for name in names}
    return "archive" if len(nouns) > 1 else next(iter(nouns), "tar")


class _Tar(Struct, frozen=True):
    """A tar: its archive, the folder for its files, and,
    within an archive, its name and byte range.
    """

    archive: AnyPath
    folder: str
    inside: str = ""
    start: int = 0
    stop: int | None = None


def _in_path_order(tar: _Tar) -> tuple[bytes, str]:
    return tar.folder.encode("utf-8", "surrogateescape"), str(tar.archive)


class _Listed(Struct, frozen=True):
    """The files in a tar, sorted, the tars in it, and its hidden files."""

    files: Catalog
    inner: Sequence[_Tar]
    skipped: Skipped


def _list_levels(tars: Sequence[_Tar], engine: Engine, skipped: Skipped) -> Iterator[Catalog]:
    """The files in each archive, then those in each tar within them."""
    inner: list[_Tar] = []
    for listed in in_order(engine, _list_tar, tars):
        inner += listed.inner
        skipped.update(listed.skipped)
        yield listed.files
    inner.sort(key=_in_path_order)
    step = max(1, len(inner) // (16 * engine.workers))  # a small tar takes less time than a task
    groups = (inner[start : start + step] for start in range(0, len(inner), step))
    for group in in_order(engine, _list_inner, groups):
        for listed in group:
            skipped.update(listed.skipped)
            yield listed.files


def _list_inner(tars: Sequence[_Tar]) -> list[_Listed]:
    return list(map(_list_tar, tars))


def _is_hidden(name: str) -> bool:
    """Whether the file or one of its folders starts with a dot."""
    return any(part.startswith(".") for part in name.split("/"))


def _list_tar(tar: _Tar) -> _Listed:
    is_zipped = is_zip(file_name(tar.archive))
    files = CatalogBuilder(Zip(tar.archive) if is_zipped else Archive(tar.archive))
    inner, skipped = list[_Tar](), Skipped()
    with slices_of(tar.archive) as view:
        stamp = view.modified
        for raw, offset, length in _members(tar, view):
            place = offset if is_zipped else offset - BLOCK
            name = _checked(_words(tar), raw, place)
            path = tar.folder + name
            if is_system_file(raw):
                skipped.add(SYSTEM_FILES, path)
                continue
            if _is_hidden(name):
                skipped.add(HIDDEN_FILES, path)
                continue
            if fault := fault_of_name(path, tar.archive):
                raise fault
            if name.endswith(".tar") and not tar.inside and not is_zipped:
                folder = tar.folder + folder_of_tar(name)
                inner.append(_Tar(tar.archive, folder, name, offset, offset + length))
            else:
                files.append(path, offset, length, stamp)
    return _Listed(files.sorted(), inner, skipped)


def _members(tar: _Tar, view: FileSlices | RangedView) -> Iterator[Member]:
    """Name, place and length of each file in a tar or a zip."""
    if not is_zip(file_name(tar.archive)):
        yield from walk(view, tar.start, tar.stop, inside=tar.inside, hint=WHOLE_COPY)
        return
    if not isinstance(view, FileSlices):
        what = f"{tar.archive} is a zip in an object store"
        raise InputError(what, "expected a local zip, or a tar", "copy it to a local disk")
    for name, place, length in walk_zip(view):
        yield _without_dot(with_slashes(name)), place, length


def _words(tar: _Tar) -> str:
    return f"{tar.archive} ({tar.inside})" if tar.inside else str(tar.archive)


def _checked(archive: str, raw: bytes, place: int) -> str:
    """The name of a member as text; ``place`` is the byte of its header.

    Raises:
        InputError: it leads out of its archive, or is no plain path.
    """
    name = raw.decode("utf-8", "surrogateescape")
    if not name.startswith("/") and {"", ".", ".."}.isdisjoint(name.split("/")):
        return name
    got = raw[:100].decode("utf-8", "backslashreplace")
    leads_out = f"{posixpath.normpath(name)}/".startswith(("/", "../"))
    fault = "leads out of the folder" if leads_out else "is written in an unusual way"
    raise InputError(
        f"{archive} holds a file whose path {fault}, at byte {place:,}",
        "expected a path such as folder/image.png, without . and .., with one / between two names, "
        f"got '{got}'",
        "check where it comes from; to use it, unpack it into a folder, and pack that folder",
    )


def in_order(engine: Engine, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    """Yield the result of ``function`` for each task in order; raise the first failure. Early
    results are held.

    Where obstacles are collected, those of every task are, and a task that fails has no result.
    """
    obstacles = collected()
    if obstacles is not None:
        for result, task_obstacles in _in_order(engine, Collecting(function), tasks):
            obstacles.extend(task_obstacles)
            if result is not None:
                yield result
        return
    yield from _in_order(engine, function, tasks)


def _in_order(engine: Engine, function: Callable[[T], R], tasks: Iterable[T]) -> Iterator[R]:
    early: dict[int, R] = {}
    next_number = 0
    for outcome in engine.map(_Numbered(function), enumerate(tasks)):
        if isinstance(outcome, Failed):
            raise outcome.error
        number, _ = outcome.task
        early[number] = outcome.value
        while next_number in early:
            yield early.pop(next_number)
            next_number += 1


class _Numbered(Struct, Generic[T, R], frozen=True):
    """Calls a function with the task of a number; picklable if the function is."""

    function: Callable[[T], R]

    def __call__(self, task: tuple[int, T]) -> R:
        return self.function(task[1])
